"""warpwright.toml and [tool.warpwright]: found from the file upward, read with the reasons for what is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.command import run_command
from support.kernels import CONFLICT
from warpwright.editor.project import project_of
from warpwright.editor.settings import Settings, parse_settings, settings_json


def settings_of(path: Path, root: Path | None = None, editor: Settings | None = None) -> Settings:
    return project_of(str(path), root).over(editor or Settings())


def test_the_nearest_file_counts_and_the_root_bounds_the_search(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "kernels"
    inner.mkdir(parents=True)
    file = inner / "a.cu"
    (tmp_path / "warpwright.toml").write_text('arch = "sm_70"\n')
    assert settings_of(file).arch == "sm_70"
    assert settings_of(file, root=inner.parent).arch == ""
    (inner.parent / ".git").mkdir()
    assert settings_of(file).arch == ""
    (inner.parent / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert project_of(str(file)).path == ""
    (inner.parent / "pyproject.toml").write_text('[tool.warpwright]\narch = "sm_80"\n')
    assert settings_of(file).arch == "sm_80"
    (inner.parent / "warpwright.toml").write_text('arch = "sm_90"\n')
    assert settings_of(file).arch == "sm_90"
    (inner / "pyproject.toml").write_text('[tool.warpwright]\narch = "sm_100"\n')
    assert settings_of(file).arch == "sm_100"


def test_it_holds_over_the_editors_settings_and_its_names_count_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "warpwright.toml").write_text(
        'includeFolders = ["include"]\nflags = ["-Ithird", "-DN=4"]\ncompileCommands = "out"\ncompile = "onSave"\n'
        '[blocks]\ntranspose = [32, 8]\n[severities]\nmemory = "hint"\n'
    )
    editor = Settings(arch="sm_80", include_folders=("/elsewhere",), severities={"memory": "error"})
    found = settings_of(tmp_path / "sub" / "a.cu", editor=editor)
    assert found.arch == "sm_80"
    assert found.folders == (str(tmp_path / "include"), str(tmp_path / "third"))
    assert found.assumptions.defines == {"N": "4"}
    assert found.compile_commands == str(tmp_path / "out")
    assert found.blocks == {"transpose": (32, 8, 1)}
    assert found.severities == {"memory": "hint"}
    assert found.compile == "onSave"
    assert parse_settings(settings_json(found)) == (found, ())
    untrusted = settings_of(tmp_path / "a.cu", editor=Settings(compile="off"))
    assert (untrusted.compile, untrusted.blocks) == ("off", found.blocks)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a = 1\narch = 9\n", 2, "warpwright.arch: must be an architecture"),
        ("\ncolour = 1\n", 2, "warpwright.colour: there is no such setting."),
        ("[severities]\n\nmemory = 'off'\nbank-conflit = 'off'\n", 4, "did you mean 'bank-conflict'?"),
        ("severities.memory = 'loud'\n", 1, "warpwright.severities: must be an object of rules"),
        ("ignore = [\n'nonsense'\n]\n", 1, "there is no rule or group 'nonsense'."),
        ("arch = 'sm_90'\nblock = [32,\n", 3, "not valid TOML"),
        ("block = [32, 8]\nblock = 4\n", 2, "not valid TOML"),
        ("flags = ['-arch=sm_90']", 1, "without"),
        ("[blocks]\nk = [2048]\n", 1, "warpwright.blocks: must be an object of kernels"),
        ("optimizeSeconds = nan\nblock = 'x'\nplan = true", 1, "warpwright.optimizeSeconds: must be"),
        (f"block = {'1' * 5000}\n", 1, "it has a number with thousands of digits."),
        (f"arch = ''\nblock = 0x{'f' * 9000}\n", 2, "not a number with thousands of digits"),
        (f"ignore = {['bank-conflit'] * 20_000}\n{''.join(f'k{n} = 1{chr(10)}' for n in range(40_000))}", 2, "k0: "),
    ],
)
def test_what_is_wrong_is_named_by_its_line_and_costs_its_own_value(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    path = tmp_path / "warpwright.toml"
    path.write_text(text)
    problems = project_of(str(tmp_path / "a.cu")).problems
    named = [problem for problem in problems if said in problem.sentence or said == "without"]
    assert [(problem.path, problem.line) for problem in named] == [(str(path), line)]
    assert isinstance(settings_of(tmp_path / "a.cu"), Settings)


def test_a_file_that_cannot_be_read_is_said_and_another_tools_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "warpwright.toml"
    path.write_bytes(b"arch = '\xff'\n")
    assert "not UTF-8" in project_of(str(tmp_path / "a.cu")).problems[0].sentence
    path.unlink()
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nx = \n")
    assert project_of(str(tmp_path / "a.cu"), tmp_path).problems == ()
    (tmp_path / "pyproject.toml").write_text("\ufeff[tool . warpwright]\narch = 'sm_80'\n", encoding="utf-8")
    assert settings_of(tmp_path / "a.cu").arch == "sm_80"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_has_no_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "warpwright.toml"
    for make in (os.mkfifo, lambda link: link.symlink_to("/dev/zero")):
        make(path)
        assert [each.sentence for each in project_of(str(tmp_path / "a.cu")).problems] == [
            "it is not valid TOML and not used: it cannot be read (it is a device, a pipe or a socket)."
        ]
        path.unlink()


def test_names_that_no_file_has_are_kept_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_TRUSTED_FOLDERS", str(tmp_path))
    long = "x" * 5000
    (tmp_path / "warpwright.toml").write_text(
        f"includeFolders = ['~nosuchuser/a', '{long}']\ncompileCommands = '~nosuchuser'\nmodel = '{long}'\n"
        f"flags = ['-include={long}']\n"
    )
    found = settings_of(tmp_path / "a.cu")
    assert found.include_folders == (str(tmp_path / "~nosuchuser/a"), str(tmp_path / long))
    assert (found.compile_commands, found.model) == (str(tmp_path / "~nosuchuser"), long)


def test_a_change_on_disk_is_seen_at_once(tmp_path: Path) -> None:
    path = tmp_path / "warpwright.toml"
    path.write_text('arch = "sm_80"')
    assert settings_of(tmp_path / "a.cu").arch == "sm_80"
    stamp = path.stat()
    path.with_suffix(".new").write_text('arch = "sm_90"')
    path.with_suffix(".new").replace(path)  # as editors save, and with the time and the size of the one before
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert settings_of(tmp_path / "a.cu").arch == "sm_90"


def test_the_command_line_takes_the_projects_settings(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT.split("void run")[0], encoding="utf-8")
    (tmp_path / "warpwright.toml").write_text(
        'colour = 1\n[blocks]\ntranspose = [16, 16]\n[severities]\nbank-conflict = "information"\n'
    )
    done = run_command("check", "a.cu", cwd=tmp_path)
    assert done.status == 0
    assert "note[bank-conflict]" in done.stdout
    assert "block 16 x 16 from settings" in done.stdout
    assert done.stderr.count("warpwright.toml:1: warpwright.colour: there is no such setting.") == 1
    (tmp_path / "warpwright.toml").write_text('ignore = ["memory"]\n')
    assert "bank-conflict" not in run_command("check", "a.cu", cwd=tmp_path).stdout
    assert "bank-conflict" in run_command("check", "a.cu", "--ignore", "launch", cwd=tmp_path).stdout


@pytest.mark.nvcc
def test_a_search_takes_the_model_of_an_allowed_project(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (tmp_path / "warpwright.toml").write_text('plan = "model"\nmodel = "not/there.gguf"\n')
    ran = run_command("optimize", "a.cu", cwd=tmp_path, env={"WARPWRIGHT_TRUSTED_FOLDERS": str(tmp_path)})
    assert ran.status == 2
    assert "not/there.gguf" in ran.stderr or "llama-cpp-python" in ran.stderr


def test_no_other_project_chooses_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "warpwright.toml").write_text('arch = "sm_80"\nmodel = "evil.gguf"\n')
    (tmp_path / "evil.gguf").write_bytes(b"GGUF")
    project = project_of(str(tmp_path / "a.cu"))
    assert project.given == {"arch": "sm_80"}
    assert [(each.line, each.sentence) for each in project.problems] == [
        (2, f"warpwright.model: only an allowed folder chooses it: `warpwright trust {tmp_path}`.")
    ]
    monkeypatch.setenv("WARPWRIGHT_TRUSTED_FOLDERS", str(tmp_path))
    assert project_of(str(tmp_path / "a.cu")).given["model"] == "evil.gguf"


def test_a_program_and_what_is_wrong_in_its_table(tmp_path: Path) -> None:
    file = tmp_path / "warpwright.toml"
    file.write_text('arch = "sm_80"\n[program]\nbuild = "make"\nrun = "./app"\nspeed = 1\n')
    project = project_of(str(tmp_path / "k.cu"), tmp_path)
    assert project.program is not None
    assert (project.program.folder, project.program.build, project.program.run) == (tmp_path, "make", "./app")
    assert [(each.line, each.sentence) for each in project.problems] == [
        (5, "warpwright.program.speed: there is no such key.")
    ]
    file.write_text('[program]\nbuild = "make"\nrun = 7\n')
    project = project_of(str(tmp_path / "k.cu"), tmp_path)
    assert project.program is None
    assert [(each.line, each.sentence) for each in project.problems] == [
        (3, "warpwright.program.run: must be a command line; no program is run.")
    ]
