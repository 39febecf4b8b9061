"""Folders that try to run a program when they are opened or checked, with the real server, compiler and files.

Whatever is tried, it makes the file `ran`; and what lies outside of the folder leaves no word in what is said. The
first tests take the compiler's confinement away and allow the folders: not even then is anything run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command import environment, run_command
from support.editor import VSCODE, Editor, Page, start_editor
from support.unconfined import unconfined

pytestmark = [pytest.mark.nvcc, pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a shell and named pipes")]

KERNEL = """__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = EXTRA + 2.0f * in[i * 2];
}
void run(const float* in, float* out, int n) { k<<<(n + 127) / 128, 128>>>(in, out, n); }
"""
SECRET = "warpwright_test_secret"
Attack = Callable[[Path, Path], None]
"""Fills the folder given first; what it runs is to make the file given second."""


def program(path: Path, ran: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch '{ran}'\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def by_commands(*arguments: str, line: bool = False) -> Attack:
    """Options in compile_commands.json; RAN stands for a command, HERE for the folder."""

    def make(folder: Path, ran: Path) -> None:
        words = [word.replace("RAN", f"touch {ran}").replace("HERE", str(folder)) for word in arguments]
        program(folder / "bin" / "gcc", ran)
        (folder / "options.txt").write_text(
            f"-ccbin={folder}/bin/gcc -DEXTRA=$(touch {ran}) --compiler-options -B{folder}/bin"
        )
        entry = {"directory": str(folder), "file": "k.cu"}
        told = (
            {"command": " ".join(["nvcc", *words, "-c k.cu"])}
            if line
            else {"arguments": ["nvcc", *words, "-c", "k.cu"]}
        )
        (folder / "compile_commands.json").write_text(json.dumps([{**entry, **told}]))

    return make


def by_settings(text: str, name: str = "warpwright.toml") -> Attack:
    def make(folder: Path, ran: Path) -> None:
        program(folder / "bin" / "gcc", ran)
        (folder / name).write_text(text.replace("RAN", f"touch {ran}").replace("HERE", str(folder)))

    return make


def by_names(folder: Path, ran: Path) -> None:
    """A folder, a file and a header whose names are commands; the compiler's own files, beside the text."""
    inner = folder / "$(touch ran) `touch ran`;touch ran"
    inner.mkdir()
    (inner / "$(touch ran).h").write_text("#define EXTRA 1\n")
    (inner / "k.cu").write_text('#include "$(touch ran).h"\n' + KERNEL)
    for name in ("nvcc.profile", "options.txt", "specs", "gcc.spec"):
        (inner / name).write_text(f"NVVMIR_LIBRARY_DIR = $(touch {ran})\n%{{:$(touch {ran})}}\n")
    for name in ("nvcc", "gcc", "g++", "cudafe++", "cicc", "ptxas", "as", "ld", "sh", "git", "nvidia-smi", "cc1plus"):
        program(inner / name, ran)


def by_modules(folder: Path, ran: Path) -> None:
    """Python that would be imported from the folder, a torch reference, and hooks and drivers of git."""
    text = f"open({str(ran)!r}, 'w')\n"
    for name in (
        "reference.py",
        "sitecustomize.py",
        "usercustomize.py",
        "numpy.py",
        "json.py",
        "conftest.py",
        "click.py",
    ):
        (folder / name).write_text(text)
    (folder / "sample.toml").write_text('[kernels.k]\nreference = "reference.py"\n')
    program(folder / "nvidia" / "cu99" / "bin" / "nvcc", ran)
    hooks = folder / ".git" / "hooks"
    for name in ("post-checkout", "post-index-change", "fsmonitor-watchman"):
        program(hooks / name, ran)
    (folder / ".git" / "config").write_text(
        f'[core]\nfsmonitor = "touch {ran}"\npager = "touch {ran}"\n[diff "x"]\ntextconv = "touch {ran}"\n'
        f'[filter "x"]\nsmudge = "touch {ran}"\n[alias]\ncat-file = "!touch {ran}"\n'
    )
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "objects").mkdir()
    (folder / ".git" / "refs").mkdir()
    (folder / ".gitattributes").write_text("*.cu diff=x filter=x\n")


ATTACKS: dict[str, Attack] = {
    "a define": by_commands("-DEXTRA=$(RAN)"),
    "a define with backticks": by_commands("-DEXTRA=`RAN`"),
    "a define that closes its quotes": by_commands(
        '-DEXTRA=";RAN;"', "-DA='$(RAN)", "-DB=\n#$(RAN)", "-DC=\\", "-DD=$(RAN)"
    ),
    "the name of a define": by_commands("-D$(RAN)=1", "-D", "`RAN`", "-DA(`RAN`)=1", "-U$(RAN)"),
    "a line for a shell": by_commands("-DEXTRA='$(RAN)'", "`RAN`", "; RAN", "&& RAN", "| RAN", line=True),
    "folders": by_commands("-I$(RAN)", "-isystem", "`RAN`", '-I";RAN;"', "-include", "$(RAN)", "-iquote`RAN`"),
    "a host compiler": by_commands("-ccbin", "HERE/bin/gcc", "-ccbin=HERE/bin", "--compiler-bindir=HERE/bin"),
    "files of options": by_commands("--options-file", "options.txt", "@options.txt", "-optf=options.txt"),
    "options of ptxas": by_commands("-Xptxas=$(RAN)", "-Xptxas", "-O3;RAN", "-Xptxas=--options-file=options.txt"),
    "the host compiler's options": by_commands(
        "-Xcompiler=-BHERE/bin", "-Xcompiler=-wrapper,HERE/bin/gcc", "-Xcompiler=-fplugin=HERE/bin/gcc",
        "-Xcompiler=-specs=HERE/options.txt", "-Xcompiler=-D$(RAN)", "-Xlinker=$(RAN)", "-BHERE/bin",
        "-fplugin=HERE/bin/gcc",
    ),
    "architectures and the rest": by_commands(
        "-arch=$(RAN)", "-gencode", "arch=compute_90,code=`RAN`", "-std=$(RAN)", "-O$(RAN)", "-maxrregcount=$(RAN)",
        "-ftz=`RAN`", "-default-stream=;RAN", "-ldir=HERE/bin", "-target-dir=$(RAN)", "-x", "$(RAN)", "--dryrun$(RAN)",
        "-run", "-run-args=$(RAN)", "--use-local-env", "-odir=$(RAN)", "-o", "$(RAN)", "-MF", "$(RAN)",
    ),
    "defines of the settings": by_settings('[defines]\nEXTRA = "$(RAN)"\nA = "`RAN`"\nB = \'";RAN;"\'\n'),
    "options of the settings": by_settings('flags = ["-DEXTRA=$(RAN)", "-DA=`RAN`", "-Xptxas=-v"]\n'),
    "a host compiler of the settings": by_settings('flags = ["-ccbin=HERE/bin/gcc", "-Xcompiler=-BHERE/bin"]\n'),
    "every other setting": by_settings(
        'arch = "$(RAN)"\narchitectures = ["sm_90;RAN"]\nincludeFolders = ["$(RAN)", "`RAN`"]\nmodel = "$(RAN)"\n'
        'compileCommands = "$(RAN)"\ninterpreter = "HERE/bin/gcc"\nselect = ["$(RAN)"]\n[blocks]\n"$(RAN)" = [32]\n'
    ),
    "pyproject.toml": by_settings('[tool.warpwright.defines]\nEXTRA = "$(RAN)"\n', "pyproject.toml"),
    "names": by_names,
    "modules and hooks": by_modules,
}  # fmt: skip


@pytest.fixture
def attacked(names: tuple[str, ...], tmp_path: Path) -> Iterator[tuple[dict[str, Path], Path]]:
    """A folder with each attack in one of its own, and what any of them makes; none of them is there at the end."""
    ran = tmp_path / "ran"
    files: dict[str, Path] = {}
    for number, name in enumerate(names):
        folder = tmp_path / "folders" / str(number)
        folder.mkdir(parents=True)
        ATTACKS[name](folder, ran)
        files[name] = next(folder.rglob("k.cu"), folder / "k.cu")
        if not files[name].exists():
            files[name].write_text(KERNEL)
    yield files, ran
    assert not ran.exists()
    assert not list(tmp_path.rglob("ran"))


def opened(editor: Editor, file: Path) -> Page:
    return editor.open(file.name, file.read_text(), file.as_uri())


def own_environment(tmp_path: Path) -> dict[str, str]:
    return {
        "WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
        "WARPWRIGHT_TRUSTED_FOLDERS": str(tmp_path / "folders"),
        "PATH": f".{os.pathsep}{os.environ['PATH']}{os.pathsep}",
    }


def is_compiled(page: Page) -> bool:
    return any("registers" in title for title in page.titles()) or any(d.source == "nvcc" for d in page.diagnostics())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "names", [(*list(ATTACKS)[first::3], "names") for first in range(3)], ids=lambda names: names[0]
)
def test_opening_runs_nothing(names: tuple[str, ...], attacked: tuple[dict[str, Path], Path], tmp_path: Path) -> None:
    """Each file is compiled to its end; by a server that was started in one of the folders, with `.` on PATH."""
    files, ran = attacked
    server = unconfined(sys.executable, "-P", "-m", "warpwright.lsp")
    command = ["sh", "-c", 'cd "$0" && exec "$@"', str(files["names"].parent), *server]
    with start_editor(VSCODE, tmp_path / "folders", command=command, environment=own_environment(tmp_path)) as editor:
        pages = {name: opened(editor, file) for name, file in files.items()}
        for name, page in pages.items():
            editor.wait(lambda page=page: is_compiled(page), f"what nvcc says of {name}", 240)
            page.hover_text("in[i * 2]")
            assert not ran.exists(), name
        if any("a host compiler" in name for name in names):
            assert any("host compiler" in message for message in editor.messages), editor.messages
        assert not [line for line in editor.log if "Traceback" in line], editor.log


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "names",
    [("a define",), ("a host compiler",), ("defines of the settings",), ("names",), ("modules and hooks",)],
    ids=lambda names: names[0],
)
def test_checking_runs_nothing(names: tuple[str, ...], attacked: tuple[dict[str, Path], Path], tmp_path: Path) -> None:
    (name,) = names
    file = attacked[0][name]
    for arguments in (["check", "--compile"], ["sass"], ["fix"]):
        command = unconfined(sys.executable, "-m", "warpwright.cli", *arguments, file.name)
        done = subprocess.run(
            command, cwd=file.parent, env=environment(own_environment(tmp_path)), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr, done
    if name == "a host compiler":
        assert "`-ccbin=" in done.stderr and "NVCC_CCBIN does" in done.stderr


OUTSIDE = {
    "include": '#include "{secret}"\n',
    "include of the system's": "#include </etc/passwd>\n",
    "a name up": '#include "../../secret.txt"\n',
    "bytes of the host": 'asm(".section .rodata\\n.incbin \\"{secret}\\"\\n.text");\n',
    "bytes of the device": '__device__ void d() {{ asm(".incbin \\"{secret}\\""); }}\n',
    "embed": 'const char bytes[] = {{\n#embed "{secret}"\n}};\n',
    "a folder that is named": "#include <secret.txt>\n",
    "a link in the folder": '#include "link.h"\n',
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OUTSIDE)
def test_what_lies_outside_of_the_project_is_not_read(name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(f"int {SECRET};\n#error {SECRET}\n")
    folder = tmp_path / "project" / "src"
    folder.mkdir(parents=True)
    (folder.parent / ".git").mkdir()
    (folder / "link.h").symlink_to(secret)
    entry = {
        "directory": str(folder),
        "file": "k.cu",
        "arguments": ["nvcc", f"-I{tmp_path}", "-I/etc", "-I/", "-c", "k.cu"],
    }
    (folder.parent / "compile_commands.json").write_text(json.dumps([entry]))
    (folder / "k.cu").write_text("#define EXTRA 1\n" + OUTSIDE[name].format(secret=secret) + KERNEL)
    cache = tmp_path / "cache"
    for arguments in (["check", "--compile"], ["sass", "--ptx"], ["sass"]):
        done = run_command(*arguments, "k.cu", cwd=folder, env={"WARPWRIGHT_CACHE_DIR": str(cache)})
        assert SECRET not in done.stdout + done.stderr
        assert "root:" not in done.stdout + done.stderr
        assert "-I/etc` is left out: it is not an include folder" in done.stderr
    kept = [file.read_bytes() for file in cache.rglob("*") if file.is_file()]
    assert not [data for data in kept if SECRET.encode() in data]


def test_a_folder_outside_is_included_from_once_the_project_is_allowed(tmp_path: Path) -> None:
    project, library = tmp_path / "project", tmp_path / "library"
    (project / ".git").mkdir(parents=True)
    library.mkdir()
    (library / "library.h").write_text("#define EXTRA 1\n")
    (project / "k.cu").write_text("#include <library.h>\n" + KERNEL)
    (project / "warpwright.toml").write_text('includeFolders = ["../library"]\n')
    own = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache"), "WARPWRIGHT_CONFIG_DIR": str(tmp_path / "config")}
    before = run_command("check", "--compile", "k.cu", cwd=project, env=own)
    assert f"`warpwright trust {project}` does" in before.stderr
    assert "judged by its text alone" in before.stderr
    run_command("trust", ".", cwd=project, env=own)
    after = run_command("check", "--compile", "k.cu", cwd=project, env=own)
    assert "warpwright trust" not in after.stderr and "judged by its text alone" not in after.stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text", ['compileCommands = "/dev/stdin"', 'compileCommands = "/dev/zero"', 'compileCommands = "pipe"', ""]
)
def test_a_device_or_a_pipe_stops_nobody(text: str, tmp_path: Path) -> None:
    """A server whose folder names one answers for all files, and ends when it is told to."""
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    for name in (
        "a.cuh",
        "sample.toml",
        "reference.py",
        *(["compile_commands.json", "warpwright.toml"] if not text else []),
    ):
        os.mkfifo(folder / name)
    (folder / "loop.h").symlink_to("loop.h")
    (folder / "zero.h").symlink_to("/dev/zero")
    (folder / "self.cuh").write_text('#include "self.cuh"\n#include "k.cu"\n')
    includes = "".join(
        f'#include "{name}"\n' for name in ("a.cuh", "loop.h", "zero.h", "self.cuh", "/dev/stdin", "pipe", "k.cu")
    )
    if text:
        (folder / "warpwright.toml").write_text(text + "\n")
    (folder / "k.cu").write_text(includes + KERNEL)
    own = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    with start_editor(VSCODE, folder, environment=own) as editor:
        page = opened(editor, folder / "k.cu")
        assert "k" in page.hover_text("k(const")
        other = editor.open("other.cu", KERNEL)
        assert other.diagnostics() and page.diagnostics()
        if "/dev" in text:
            sentence = "it cannot be read (it is a device, a pipe or a socket)"
            editor.wait(lambda: any(sentence in message for message in editor.messages), "what is not read")
        process = editor.process
    assert process.returncode == 0
    done = run_command("check", "k.cu", cwd=folder, env=own)
    assert done.status in (0, 1)


def test_a_file_of_ten_gigabytes_is_named_and_left(tmp_path: Path) -> None:
    for name in ("huge.h", "compile_commands.json", "sample.toml"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(10 << 30)
    (tmp_path / "k.cu").write_text('#include "huge.h"\n' + KERNEL)
    done = run_command("check", "k.cu", cwd=tmp_path, seconds=60)
    assert "larger than 256 MB" in done.stderr
    assert done.status in (0, 1)
