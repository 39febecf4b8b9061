"""What a compiler may read: of the project, of what it includes, and of where compilers are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.syntax.source import Source
from warpwright.toolchain.find import Toolchain
from warpwright.toolchain.rights import (
    candidate_reads,
    compiler_policy,
    own_reads,
    project_root,
    why_not_included,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "home" / "project"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "inner").mkdir(parents=True)
    (root / "src" / "used.h").write_text('#include "inner/more.inl"\n#include "../../beside/far.h"\n')
    (root / "src" / "inner" / "more.inl").write_text("")
    (root / "src" / "own.cuh").write_text("")
    (root / "Makefile").write_text("")
    (root.parent / "beside").mkdir()
    (root.parent / "beside" / "far.h").write_text('#include "secret.txt"\n')
    (root.parent / "beside" / "secret.txt").write_text("")
    return root


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return tmp_path / "home"


def source(project: Path, text: str, name: str = "k.cu") -> Source:
    return Source(str(project / "src" / name), text.encode())


def names(reads: tuple[str, ...], project: Path) -> set[str]:
    return {str(Path(each).relative_to(project.parent)) for each in reads}


def test_a_text_reads_its_project_and_the_source_files_that_it_includes_elsewhere(project: Path) -> None:
    reads = own_reads(source(project, '#include "used.h"\n'), ("-I/usr/include/x",))
    assert reads == (str(project), "/usr/include/x", str(project.parent / "beside" / "far.h"))


def test_a_candidate_reads_what_it_and_the_original_include(project: Path) -> None:
    original, candidate = source(project, '#include "used.h"\n'), source(project, '#include "own.cuh"\n', "b.cu")
    reads = candidate_reads(original, candidate, (f"-I{project}/src", f"-I{project.parent}/library"), ())
    assert names(reads, project) == {
        "project/src/used.h", "project/src/inner/more.inl", "beside/far.h", "project/src/own.cuh",
        "library",
    }  # fmt: skip
    reads = candidate_reads(
        original, source(project, '#include "../Makefile"\n#include "../../beside/far.h"\n'), (), ()
    )
    assert not any("Makefile" in each for each in reads)


def test_where_a_macro_names_what_is_included_all_of_the_project_is_read(project: Path) -> None:
    original = source(project, '#define NAME "used.h"\n#include NAME\n')
    assert str(project) in candidate_reads(original, source(project, ""), (), ())


@pytest.mark.parametrize("folder", ["/", "/etc", "/proc/self", "HOME", "HOME/..", "HOME/.ssh", "HOME/other"])
def test_folders_outside_are_not_included_from(
    folder: str, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(folder.replace("HOME", str(home)))
    why_not = why_not_included(str(project / "src" / "k.cu"))
    assert why_not(path)
    assert not why_not(project / "include") and not why_not(Path("/usr/include/eigen3"))
    monkeypatch.setenv("WARPWRIGHT_TRUSTED_FOLDERS", str(project))
    assert bool(why_not(path)) == (folder not in ("HOME/.ssh", "HOME/other"))


def test_a_link_out_of_the_project_leads_outside(project: Path, home: Path) -> None:
    (project / "include").symlink_to("/etc")
    assert why_not_included(str(project / "src" / "k.cu"))(project / "include")


def test_no_project_is_the_users_home(home: Path, project: Path) -> None:
    (home / ".git").mkdir()
    assert project_root(project / "src" / "k.cu") == project
    (project / ".git").rmdir()
    assert project_root(project / "src" / "k.cu") == project / "src"
    (project / "warpwright.toml").write_text("")
    assert project_root(project / "src" / "k.cu") == project


def test_a_chosen_host_compiler_can_be_read_with_its_libraries(home: Path) -> None:
    compiler = home / "tools" / "gcc" / "bin" / "g++"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    toolchain = Toolchain(Path("/usr/local/cuda/bin/nvcc"), "13.0.88", "PATH", None, None, ())
    for environment in ({"NVCC_CCBIN": str(compiler)}, {"NVCC_PREPEND_FLAGS": f"-ccbin {compiler.parent}"}):
        reads = compiler_policy((), toolchain, environment, may_be_unconfined=False).reads
        assert reads is not None
        assert str(home / "tools" / "gcc") in reads
        assert not {str(home), str(home / "tools"), "/", "/home", "/tmp", "/root", "/etc"} & {*reads}
