"""`warpwright check`: what it reads, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from cli.kernels import CLEAN, CONFLICT
from support.command import COMMAND, environment, run_command
from support.pages import code, sections
from warpwright.rules.occupancy import register_spill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clean.cu").write_text(CLEAN, encoding="utf-8")
    (tmp_path / "conflict.cu").write_text(CONFLICT, encoding="utf-8")
    return tmp_path


def test_a_clean_file(folder: Path) -> None:
    ran = run_command("check", "clean.cu", cwd=folder)
    assert (ran.status, ran.stderr) == (0, "")
    assert ran.stdout == "No findings in 1 file, 1 kernel.\n"


def test_a_finding_shows_its_line_and_its_numbers(folder: Path) -> None:
    ran = run_command("check", "conflict.cu", cwd=folder)
    assert ran.status == 1
    assert "[bank-conflict]" in ran.stdout
    assert "conflict.cu:5:" in ran.stdout
    assert "32" in ran.stdout.splitlines()[0]
    lines = ran.stdout.splitlines()
    quoted = next(at for at, line in enumerate(lines) if line.startswith("5 |"))
    start = lines[quoted].index("tile[threadIdx.x][threadIdx.y]")
    carets = lines[quoted + 1]
    assert carets.index("^") >= lines[quoted].index("out[") and carets.index("^") <= start
    assert ran.stdout.rstrip().splitlines()[-1].startswith("1 finding (1 warning) in 1 file, 1 kernel;")


def test_json(folder: Path) -> None:
    ran = run_command("check", "conflict.cu", "--format", "json", cwd=folder)
    assert ran.status == 1
    (finding,) = ran.json
    contract = {
        "file", "line", "column", "end_line", "end_column", "rule", "severity", "message", "kernel",
        "evidence", "fixes", "related", "estimated_gain",
    }  # fmt: skip
    assert set(finding) == contract
    assert (finding["file"], finding["line"], finding["rule"]) == ("conflict.cu", 5, "bank-conflict")
    assert (finding["severity"], finding["kernel"]) == ("warning", "transpose")
    line = CONFLICT.splitlines()[4]
    marked = line[finding["column"] - 1 : finding["end_column"] - 1]
    assert marked == "tile[threadIdx.x][threadIdx.y]"
    assert {"rewrite": "pad-shared-array", "safe": True}.items() <= finding["fixes"][0].items()


def test_json_of_nothing_is_an_empty_list(folder: Path) -> None:
    assert run_command("check", "clean.cu", "--format", "json", cwd=folder).json == []


def test_a_directory_is_walked(folder: Path) -> None:
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (folder / "notes.txt").write_text(CONFLICT, encoding="utf-8")
    ran = run_command("check", ".", "--format", "json", cwd=folder)
    assert ran.status == 1
    assert [finding["file"] for finding in ran.json] == ["conflict.cu"]


def test_many_files_are_checked_in_parallel_and_reported_in_order(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02}.cu").write_text("" if number % 8 else CONFLICT, encoding="utf-8")
    ran = run_command("check", ".", "--format", "json", cwd=tmp_path)
    assert ran.status == 1
    assert [finding["file"] for finding in ran.json] == [f"{number:02}.cu" for number in range(0, 40, 8)]


@pytest.mark.parametrize("included", ["tile.cuh", "tile.cu"])
def test_an_included_file_is_judged_by_the_launch_in_the_file_that_includes_it(included: str, tmp_path: Path) -> None:
    kernel, _, launch = CONFLICT.partition("void launch")
    (tmp_path / included).write_text("#pragma once\n" + kernel, encoding="utf-8")
    (tmp_path / "main.cu").write_text(f'#include "{included}"\nvoid launch' + launch, encoding="utf-8")
    (finding,) = run_command("check", ".", "--format", "json", cwd=tmp_path).json
    assert (finding["file"], finding["line"], finding["rule"]) == (included, 6, "bank-conflict")
    assert finding["evidence"]["block"] == [32, 32, 1]


def test_one_bad_input_does_not_hide_the_others(folder: Path) -> None:
    ran = run_command("check", "conflict.cu", "none.cu", "--format", "json", cwd=folder)
    assert ran.status == 2
    assert len(ran.json) == 1
    assert ran.stderr == "error: none.cu: no such file\n"


def test_a_directory_without_cuda_files(tmp_path: Path) -> None:
    ran = run_command("check", ".", cwd=tmp_path)
    assert ran.status == 2
    assert "no .cu or .cuh file in this directory" in ran.stderr


def test_invalid_utf8_is_analysed_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"// caf\xe9\n" + CONFLICT.encode())
    ran = run_command("check", "a.cu", "--format", "json", cwd=tmp_path)
    assert ran.status == 1
    assert [finding["line"] for finding in ran.json] == [6]
    assert ran.stderr == "warning: a.cu:1:7: byte 0xe9 is not UTF-8; the file is read as it is\n"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("size", [1, 57, 120, 200, 333])
def test_a_half_written_kernel(size: int, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT[:size], encoding="utf-8")
    assert run_command("check", "a.cu", cwd=tmp_path).status in (0, 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", ["", "int main() { return 0; }\n", "this is no C++ at all {{{ ]]"])
def test_a_file_without_a_kernel(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    ran = run_command("check", "a.cu", cwd=tmp_path)
    assert ran.status == 0
    assert ran.stderr == "note: a.cu: no kernel (__global__ function) in this file\n"


def test_select_and_ignore(folder: Path) -> None:
    assert run_command("check", "conflict.cu", "--ignore", "bank-conflict", cwd=folder).status == 0
    assert run_command("check", "conflict.cu", "--select", "divergent-branch,unchecked-launch", cwd=folder).status == 0
    assert run_command("check", "conflict.cu", "--select", "memory", cwd=folder).status == 1


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_rule(option: str, folder: Path) -> None:
    ran = run_command("check", "conflict.cu", option, "bank-conflicts", cwd=folder)
    assert ran.status == 2
    assert ran.stderr == "error: there is no rule or group 'bank-conflicts'. Did you mean 'bank-conflict'?\n"
    assert ran.stdout == ""


def test_arch(folder: Path) -> None:
    assert run_command("check", "clean.cu", "--arch", "80", cwd=folder).status == 0
    ran = run_command("check", "clean.cu", "--arch", "hopper", cwd=folder)
    assert ran.status == 2
    assert "'hopper' is not an architecture" in ran.stderr


def test_a_suppression_comment(folder: Path) -> None:
    text = CONFLICT.replace("    out[", "    // warpwright: ignore[bank-conflict]\n    out[")
    (folder / "a.cu").write_text(text, encoding="utf-8")
    assert run_command("check", "a.cu", cwd=folder).status == 0


def test_a_terminal_is_not_obeyed(tmp_path: Path) -> None:
    """A source line goes to the user's terminal: its escape sequences do not."""
    text = CONFLICT.replace("[threadIdx.y];", "[threadIdx.y]; // \x1b[31mred\x07")
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    ran = run_command("check", "a.cu", cwd=tmp_path)
    assert ran.status == 1
    assert "\x1b" not in ran.stdout and "\x07" not in ran.stdout


class TestBaseline:
    def test_only_new_findings_fail(self, folder: Path) -> None:
        assert run_command("check", ".", "--write-baseline", "known.json", cwd=folder).status == 0
        ran = run_command("check", ".", "--baseline", "known.json", cwd=folder)
        assert ran.status == 0
        assert "1 known finding left out by the baseline" in ran.stdout

        (folder / "conflict.cu").write_text("// moved\n\n" + CONFLICT, encoding="utf-8")
        assert run_command("check", ".", "--baseline", "known.json", cwd=folder).status == 0

        second = CONFLICT.replace("transpose", "transpose_again")
        (folder / "conflict.cu").write_text(CONFLICT + second, encoding="utf-8")
        ran = run_command("check", ".", "--baseline", "known.json", "--format", "json", cwd=folder)
        assert ran.status == 1
        assert [finding["kernel"] for finding in ran.json] == ["transpose_again"]

    def test_what_is_recorded_and_gone_is_named(self, folder: Path) -> None:
        run_command("check", ".", "--write-baseline", "known.json", cwd=folder)
        (folder / "conflict.cu").write_text(CONFLICT.replace("tile[32][32]", "tile[32][33]"), encoding="utf-8")
        ran = run_command("check", ".", "--baseline", "known.json", cwd=folder)
        assert ran.status == 0
        assert "1 finding of known.json no longer found: bank-conflict in conflict.cu (transpose)" in ran.stderr
        assert "--write-baseline known.json" in ran.stderr

        (folder / "other.cu").write_text("int x;\n", encoding="utf-8")
        ran = run_command("check", "other.cu", "--baseline", "known.json", cwd=folder)
        assert "no longer found" not in ran.stderr

    def test_it_holds_wherever_it_is_run_from(self, folder: Path) -> None:
        run_command("check", ".", "--write-baseline", "known.json", cwd=folder)
        (folder / "below").mkdir()
        assert run_command("check", "..", "--baseline", "../known.json", cwd=folder / "below").status == 0

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"{ not json", "is not JSON"),
            (b"\xff\xfe", "is not JSON"),
            (b"[]", "not a baseline of version 1"),
            (b'{"version": 2, "findings": []}', "not a baseline of version 1"),
            (b'{"version": 1, "findings": [{"rule": "x"}]}', "not a baseline of version 1"),
        ],
    )
    def test_a_broken_one(self, content: bytes, said: str, folder: Path) -> None:
        (folder / "known.json").write_bytes(content)
        ran = run_command("check", ".", "--baseline", "known.json", cwd=folder)
        assert ran.status == 2
        assert said in ran.stderr

    def test_a_missing_one(self, folder: Path) -> None:
        ran = run_command("check", ".", "--baseline", "known.json", cwd=folder)
        assert ran.status == 2
        assert "no such baseline" in ran.stderr

    def test_one_that_cannot_be_written(self, folder: Path) -> None:
        ran = run_command("check", ".", "--write-baseline", "nowhere/known.json", cwd=folder)
        assert ran.status == 2
        assert "cannot be written" in ran.stderr


@pytest.mark.parametrize(
    ("limit", "status"), [("error", 0), ("warning", 1), ("information", 1), ("hint", 1), ("never", 0)]
)
def test_the_severity_that_fails(limit: str, status: int, folder: Path) -> None:
    assert run_command("check", "conflict.cu", "--fail-on", limit, cwd=folder).status == status
    assert run_command("check", "none.cu", "--fail-on", limit, cwd=folder).status == 2


def test_github_annotations(folder: Path) -> None:
    (folder / "below").mkdir()
    ran = run_command("check", "../conflict.cu", "--format", "github", cwd=folder / "below")
    assert ran.status == 1
    assert f"file={folder.resolve()}/conflict.cu," in ran.stdout  # no checkout holds both
    (folder / ".git").mkdir()
    ran = run_command("check", "../conflict.cu", "--format", "github", cwd=folder / "below")
    assert "file=conflict.cu," in ran.stdout
    ran = run_command("check", ".", "--format", "github", cwd=folder)
    (line,) = ran.stdout.splitlines()
    command, _, message = line.removeprefix("::").partition("::")
    assert command.startswith("warning file=conflict.cu,line=5,endLine=5,title=warpwright%3A bank-conflict,col=")
    assert message


def test_no_name_of_a_file_breaks_a_github_annotation(tmp_path: Path) -> None:
    name = "50%, a:b\n::error::x.cu"
    (tmp_path / name).write_text(CONFLICT, encoding="utf-8")
    ran = run_command("check", name, "none\n.cu", "--format", "github", cwd=tmp_path)
    assert ran.status == 2
    finding, failure = ran.stdout.splitlines()
    properties, _, message = finding.removeprefix("::warning ").partition("::")
    assert properties.startswith("file=50%25%2C a%3Ab%0A%3A%3Aerror%3A%3Ax.cu,line=5,")
    assert "from 50%25, a:b%0A::error::x.cu:9." in message
    assert failure == "::error title=warpwright::none%0A.cu: no such file"


def test_gitlab_code_quality(folder: Path) -> None:
    ran = run_command("check", ".", "--format", "gitlab", cwd=folder)
    (finding,) = ran.json
    assert ran.status == 1
    assert (finding["check_name"], finding["severity"]) == ("bank-conflict", "major")
    assert finding["location"] == {"path": "conflict.cu", "lines": {"begin": 5, "end": 5}}
    assert finding["description"].startswith("32-way bank conflict on")
    assert len(finding["fingerprint"]) == 32
    assert run_command("check", "clean.cu", "--format", "gitlab", cwd=folder).json == []


def test_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("// größer ≥\n" + CONFLICT.replace("tile", "größe"), encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, "check", "a.cu", "--format", "json"],
        cwd=tmp_path,
        env=environment({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"Error" not in done.stderr
    assert len(json.loads(done.stdout)) == 1


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc to find a process's children")
def test_a_killed_check_leaves_no_process_behind(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number}.cu").write_text(CONFLICT, encoding="utf-8")
    with subprocess.Popen(
        [*COMMAND, "check", "."], cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL
    ) as check:
        listed = Path(f"/proc/{check.pid}/task/{check.pid}/children")
        workers: list[str] = []
        while check.poll() is None and not workers:
            workers = listed.read_text().split()
        check.kill()
    assert workers, "it ended before it had started a process"
    until = time.monotonic() + 30
    while any(_lives(int(worker)) for worker in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_lives(int(worker)) for worker in workers)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_baseline_knows_a_renamed_file_but_not_a_copy(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    run_command("check", ".", "--write-baseline", "b.json", cwd=tmp_path)
    (tmp_path / "a.cu").rename(tmp_path / "renamed.cu")
    renamed = run_command("check", ".", "--baseline", "b.json", "--format", "json", cwd=tmp_path)
    assert (renamed.status, renamed.json) == (0, [])
    (tmp_path / "copy.cu").write_text(CONFLICT, encoding="utf-8")
    assert run_command("check", ".", "--baseline", "b.json", cwd=tmp_path).status == 1


@pytest.mark.nvcc
def test_compile_finds_what_only_the_compiler_knows(tmp_path: Path) -> None:
    (example,) = code(sections(register_spill.__doc__ or "")["Example"])
    (tmp_path / "a.cu").write_text(example, encoding="utf-8")
    (tmp_path / "broken.cu").write_text("__global__ void k(float *x) { x[0] = y; }\n", encoding="utf-8")
    assert run_command("check", ".", "--select", "register-spill", cwd=tmp_path).status == 0
    ran = run_command("check", ".", "--compile", "--select", "register-spill", "--format", "json", cwd=tmp_path)
    (finding,) = ran.json
    assert (ran.status, finding["rule"], finding["kernel"]) == (1, "register-spill", "outer")
    evidence = finding["evidence"]
    assert (evidence["registers"], evidence["most_registers"], evidence["basis"]) == (64, 64, "exact")
    assert evidence["spill_store_bytes"] > 0
    assert "broken.cu: judged by its text alone: nvcc found an error: broken.cu:1:" in ran.stderr


def test_compile_without_a_compiler_could_not_run(folder: Path) -> None:
    ran = run_command("check", ".", "--compile", cwd=folder, env={"WARPWRIGHT_NVCC": "/nowhere/nvcc"})
    assert (ran.status, ran.stdout) == (2, "")
    assert "WARPWRIGHT_NVCC names /nowhere/nvcc, which does not exist." in ran.stderr


def test_what_is_not_evaluated_is_said(tmp_path: Path) -> None:
    gather = (
        "__global__ void k(const int *at, float *out) { out[at[threadIdx.x]] = 1; }\nvoid f(int *at, float *out) {\n"
    )
    (tmp_path / "a.cu").write_text(f"{gather}  k<<<1, 32>>>(at, out);\n}}\n", encoding="utf-8")
    lines = run_command("check", "a.cu", cwd=tmp_path).stdout.splitlines()
    assert lines[-1] == "1 of 2 memory accesses not evaluated: the address is read from memory (1)."


def test_unchecked_launches_of_a_file_are_one_hint(tmp_path: Path) -> None:
    kernels = "".join(f"__global__ void k{i}(int *p) {{ p[threadIdx.x] = {i}; }}\n" for i in range(3))
    launches = "".join(f"void f{i}(int *p) {{\n  k{i}<<<1, 32>>>(p);\n}}\n" for i in range(3))
    (tmp_path / "a.cu").write_text(kernels + launches, encoding="utf-8")
    (found,) = run_command("check", "a.cu", "--format", "json", cwd=tmp_path).json
    assert (found["rule"], found["severity"], len(found["related"])) == ("unchecked-launch", "hint", 2)
    assert found["message"].startswith("Errors of 3 launches are not checked: ")


def test_findings_by_what_they_are_worth(folder: Path) -> None:
    (found,) = run_command("check", "conflict.cu", "--format", "json", cwd=folder).json
    assert 0.5 < found["estimated_gain"] < 1
    table = run_command("check", "conflict.cu", "--statistics", cwd=folder).stdout
    assert table.splitlines()[1].split()[::3] == ["1", "bank-conflict"]
    assert run_command("check", "conflict.cu", "--min-gain", "99", "--sort", "gain", cwd=folder).status == 0


def test_a_change_is_checked_as_long_as_one_watches(folder: Path) -> None:
    ran = subprocess.Popen(
        [*COMMAND, "check", "--watch", "clean.cu"], cwd=folder, env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    end = threading.Timer(60, ran.kill)
    end.start()
    try:
        assert ran.stdout is not None
        lines = iter(ran.stdout.readline, "")
        assert "No findings in 1 file" in next(lines)
        assert next(lines) == "note: watching 1 file; Ctrl-C ends it\n"
        (folder / "clean.cu").write_text(CONFLICT, encoding="utf-8")
        assert any("warning[bank-conflict]" in line for line in lines)
        assert any("watching 1 file" in line for line in lines)
        ran.send_signal(signal.SIGINT)
        assert ran.wait(20) == 130
    finally:
        end.cancel()
        ran.kill()
        ran.communicate()
