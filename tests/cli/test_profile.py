"""`warpwright profile`: the table, the JSON and the page of what one run counted, and what it does with bad input."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from cli.kernels import CLEAN, CONFLICT, UNCHECKED
from support.command import Ran, run_command
from support.ncu import line_of, source_page

COLUMN = line_of(CONFLICT, "tile[threadIdx.x][threadIdx.y]")
TABLE = source_page(
    "/build/a.cu",
    CONFLICT,
    {
        line_of(CONFLICT, "tile[threadIdx.y]"): [
            ("0x10", "LDG.E R2, desc[UR4][R2.64]",
             {"inst": 2048, "on": 65536, "space": "Global", "op": "Load", "bits": 32, "sec": 8192, "ideal": 8192}),
            ("0x20", "STS [R5], R2",
             {"inst": 2048, "on": 65536, "space": "Shared", "op": "Store", "bits": 32, "wf": 2048, "wfi": 2048}),
        ],
        COLUMN: [
            ("0x30", "LDS R2, [R7]",
             {"inst": 2048, "on": 65536, "space": "Shared", "op": "Load", "bits": 32, "wf": 65536, "wfi": 2048}),
            ("0x40", "STG.E desc[UR4][R2.64], R2",
             {"inst": 2048, "on": 65536, "space": "Global", "op": "Store", "bits": 32, "sec": 8192, "ideal": 8192}),
        ],
    },
    "transpose(const float *, float *)",
)  # fmt: skip


def profile(folder: Path, *arguments: str) -> Ran:
    (folder / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (folder / "report.csv").write_text(TABLE, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(folder / "cache"), "COLUMNS": "160"}
    return run_command("profile", "a.cu", "--from", "report.csv", *arguments, cwd=folder, env=env)


def test_json(tmp_path: Path) -> None:
    ran = profile(tmp_path, "--format", "json")
    assert (ran.status, ran.stderr) == (0, "")
    assert (ran.json["kernel"], ran.json["backend"], ran.json["basis"]) == ("transpose", "ncu", "measured")
    line = next(each for each in ran.json["lines"] if each["line"] == COLUMN)
    assert (line["file"], line["instruction_set"], line["instructions"]) == ("a.cu", "sass", 4096)
    assert (line["wavefronts"], line["ideal_wavefronts"], line["sectors"]) == (65536, 2048, 8192)
    assert line["threads_per_instruction"] == 32.0


def test_text_has_each_line_and_the_totals(tmp_path: Path) -> None:
    ran = profile(tmp_path)
    assert ran.status == 0
    row = next(line for line in ran.stdout.splitlines() if line.startswith(f"{COLUMN} "))
    assert re.search(r"4,096\s+█{8}\s+32\.0\s+8,192\s+65,536\s+32\.0x", row)
    assert "8,192 SASS instructions, 32.0 threads each" in ran.stdout
    assert "67,584 shared wavefronts (ideal 4,096)" in ran.stdout


def test_sorted_the_worst_comes_first(tmp_path: Path) -> None:
    ran = profile(tmp_path, "--sort", "wavefronts")
    numbers = [line.split()[0] for line in ran.stdout.splitlines() if re.match(r"\d+ ", line)]
    assert numbers == [str(COLUMN), "3"]


class _Page(HTMLParser):
    """What a browser would load from elsewhere, and how many rows have a figure."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.open: list[str] = []
        self.figures = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [
            str(value) for name, value in attrs if name in ("src", "href") and not str(value).startswith("#")
        ]
        self.figures += given.get("class") == "figure"
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(tmp_path: Path) -> None:
    ran = profile(tmp_path, "--format", "html")
    assert (ran.status, ran.stderr) == (0, "note: written to a.transpose.html\n")
    text = (tmp_path / "a.transpose.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    assert page.loaded == []
    assert page.open == []
    assert page.figures == 8
    assert "url(" not in text and "@import" not in text
    assert ">measured<" in text and "SASS instructions" in text and "prefers-color-scheme:dark" in text


def test_source_text_cannot_break_the_page(tmp_path: Path) -> None:
    hostile = CONFLICT.replace("void launch", '/* </script><script>alert("x")</script>\n<b>& */ void launch')
    (tmp_path / "a.cu").write_text(hostile, encoding="utf-8")
    (tmp_path / "report.csv").write_text(TABLE, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    ran = run_command("profile", "a.cu", "--from", "report.csv", "--format", "html", cwd=tmp_path, env=env)
    assert ran.status == 0
    text = (tmp_path / "a.transpose.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    assert page.open == []
    assert text.count("<script>") == 1
    assert '<span class="comment">&lt;b&gt;&amp; */</span>' in text


def test_output_goes_where_it_is_asked(tmp_path: Path) -> None:
    ran = profile(tmp_path, "--output", "out.txt")
    assert (ran.status, ran.stdout) == (0, "")
    assert "\x1b" not in (tmp_path / "out.txt").read_text(encoding="utf-8")
    ran = profile(tmp_path, "--output", "none/out.txt")
    assert (ran.status, ran.stderr) == (2, "error: none/out.txt cannot be written (No such file or directory)\n")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.cu", "--from", "report.csv"], "none.cu: no such file"),
        (["a.cu", "--from", "none.csv"], "none.csv cannot be read (No such file or directory)"),
        (["a.cu", "--from", "a.cu"], "a.cu is not Nsight Compute's source page"),
        (["a.cu", "--from", "report.csv", "--kernel", "none"], "a.cu: no kernel 'none'; it has: transpose"),
        (["empty.cu", "--from", "report.csv"], "empty.cu: no kernel (__global__ function) in this file"),
        (["changed/a.cu", "--from", "report.csv"], "was made of another text than changed/a.cu has now: its line 3"),
        (["a.cu", "--from", "report.csv", "--against", "a.cu"], "--against runs both texts; a report is of one"),
        (["a.cu", "--against", "a.cu", "--format", "json"], "--against is for text and html"),
        (["a.cu", "--from", "report.csv", "--shape", "n=3"], "--shape is for a run; a report has its own sizes"),
        (["other.cu", "--from", "report.csv"], "report.csv holds none of the kernels scale"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (tmp_path / "empty.cu").write_text("int x;\n", encoding="utf-8")
    (tmp_path / "other.cu").write_text(CLEAN, encoding="utf-8")
    (tmp_path / "changed").mkdir()
    (tmp_path / "changed" / "a.cu").write_text(CONFLICT.replace("tile[threadIdx.y]", "tile[0]"), encoding="utf-8")
    (tmp_path / "report.csv").write_text(TABLE, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    ran = run_command("profile", *arguments, cwd=tmp_path, env=env)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ") and said in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_report_needs_ncu(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (tmp_path / "r.ncu-rep").write_bytes(b"NVR\0")
    env = {"WARPWRIGHT_NCU": str(tmp_path / "no-ncu")}
    ran = run_command("profile", "a.cu", "--from", "r.ncu-rep", cwd=tmp_path, env=env)
    assert ran.status == 2
    assert ran.stderr.startswith("error: r.ncu-rep needs Nsight Compute to be read: WARPWRIGHT_NCU names ")


GATHER = """\
__global__ void gather(float *out, const float *in, const int *at) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = at[i];
    float v = in[j];
    out[i] = v;
}
void launch(float *out, const float *in, const int *at) {
    gather<<<64, 256>>>(out, in, at);
    if (cudaGetLastError() != cudaSuccess) return;
}
"""
SCATTERED = source_page(
    "/build/a.cu",
    GATHER,
    {
        line_of(GATHER, "in[j]"): [
            ("0x10", "LDG.E R2, desc[UR4][R2.64]",
             {"inst": 512, "on": 16384, "space": "Global", "op": "Load", "bits": 32, "sec": 16384, "ideal": 2048}),
        ]
    },
    "gather(float *, const float *, const int *)",
)  # fmt: skip


def test_check_judges_by_the_profile_until_the_text_changes(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(GATHER, encoding="utf-8")
    (tmp_path / "report.csv").write_text(SCATTERED, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}

    def findings(*arguments: str) -> list[tuple[str, object]]:
        ran = run_command("check", "a.cu", "--format", "json", *arguments, cwd=tmp_path, env=env)
        return [(row["rule"], row["evidence"].get("basis")) for row in ran.json]

    before = findings()
    assert ("uncoalesced-access", "measured") not in before
    assert run_command("profile", "a.cu", "--from", "report.csv", cwd=tmp_path, env=env).status == 0
    assert findings() == before
    assert ("uncoalesced-access", "measured") in findings("--profile")
    (tmp_path / "a.cu").write_text(GATHER + "\n", encoding="utf-8")
    assert ("uncoalesced-access", "measured") not in findings("--profile")


@pytest.mark.nvcc
def test_the_emulator_runs_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(UNCHECKED, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    ran = run_command("profile", "a.cu", "--shape", "n=1000", "--format", "json", cwd=tmp_path, env=env)
    assert ran.status == 0, ran.stderr
    assert (ran.json["backend"], ran.json["basis"], ran.json["launch"]["grid"]) == ("emulator", "emulated", [4, 1, 1])
    line = next(each for each in ran.json["lines"] if each["line"] == line_of(UNCHECKED, "data[i] ="))
    assert (line["file"], line["instruction_set"]) == ("a.cu", "ptx")
    assert (line["requests"], line["sectors"], line["ideal_sectors"]) == (64, 250, 250)


@pytest.mark.nvcc
def test_two_texts_beside_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    padded = CONFLICT.replace("tile[32][32]", "tile[32][33]")
    assert padded != CONFLICT
    (tmp_path / "b.cu").write_text(padded, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "200"}
    ran = run_command("profile", "b.cu", "--against", "a.cu", cwd=tmp_path, env=env)
    assert ran.status == 0
    assert "a.cu -> b.cu" in ran.stdout
    number = COLUMN
    (row,) = (line for line in ran.stdout.splitlines() if line.split()[:2] == [str(number)] * 2)
    wavefronts = re.findall(r"([\d,]+) -> ([\d,]+) ", row)[-1]
    each = [int(count.replace(",", "")) for count in wavefronts]
    assert each[0] == 32 * each[1]
    assert re.search(r"Total: .*; shared wavefronts [\d,]+ -> [\d,]+ \(0\.06x\)", ran.stdout)
    declared = [line for line in ran.stdout.splitlines() if "__shared__" in line]
    assert [re.search(r"[-+] {2,}__shared__", line) is not None for line in declared] == [True, True]
    page = run_command(
        "profile", "b.cu", "--against", "a.cu", "--format", "html", "--output", "p.html", cwd=tmp_path, env=env
    )
    assert page.status == 0
    html = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert (html.count('class="went"'), html.count('class="came"')) == (1, 1)
    assert f"{each[0]:,} → {each[1]:,}" in html


@pytest.mark.nvcc
def test_what_the_emulator_does_not_run_is_named_with_its_line(tmp_path: Path) -> None:
    text = """\
__global__ void k(float* a) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    a[threadIdx.x] = 1;
    asm volatile("griddepcontrol.wait;");
}
int main() { float* a; cudaMalloc(&a, 128); k<<<1, 32>>>(a); }
"""
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    ran = run_command("profile", "a.cu", "--arch", "sm_90a", cwd=tmp_path, env=env)
    assert ran.status == 2
    assert "a.cu:2: an exchange of registers between warps (setmaxnreg) is not emulated" in ran.stderr
    assert "a.cu:4: programmatic dependent launch (griddepcontrol) is not emulated" in ran.stderr


@pytest.mark.nvcc
def test_a_fault_is_shown_at_its_line_and_fails_the_command(tmp_path: Path) -> None:
    text = "// warpwright: array data[n] in-out\n" + UNCHECKED.replace("if (i < n)", "if (i < n + 8)")
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "120"}
    ran = run_command("profile", "a.cu", "--shape", "n=1000", cwd=tmp_path, env=env)
    assert ran.status == 1
    lines = ran.stdout.splitlines()
    number = line_of(text, "data[i] =")
    below = lines[next(at for at, line in enumerate(lines) if line.startswith(f"{number} ")) + 1]
    assert below.strip() == "^ out-of-bounds"
    assert f"fault: a.cu:{number}: out-of-bounds: Thread (232, 0, 0) of block (3, 0, 0) reads" in ran.stdout
    page = run_command("profile", "a.cu", "--shape", "n=1000", "--format", "html", cwd=tmp_path, env=env)
    assert page.status == 1
    html = (tmp_path / "a.scale.html").read_text(encoding="utf-8")
    assert f'href="#a-cu-{number}"' in html and f'id="a-cu-{number}" class="fault"' in html


@pytest.mark.nvcc
def test_check_makes_what_is_not_there(tmp_path: Path) -> None:
    directives = "// warpwright: array in[65536] in\n// warpwright: array out[65536] out\n"
    (tmp_path / "a.cu").write_text(directives + CONFLICT, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    ran = run_command("check", "a.cu", "--profile", "--format", "json", cwd=tmp_path, env=env)
    conflict = next(row for row in ran.json if row["rule"] == "bank-conflict")
    assert (conflict["evidence"]["basis"], conflict["evidence"]["wavefronts_per_request"]) == ("emulated", 32.0)
    assert ", emulated." in conflict["message"]
    assert ran.status == 1
    assert "note:" not in ran.stderr and "warning:" not in ran.stderr


RACING = """\
__global__ void shift(float *out, const float *in, const int *from) {
  __shared__ float tile[512];
  int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x] = in[i];
  out[i] = tile[from[i] & 255];
}
int main() {
  float *out, *in;
  int *from;
  cudaMalloc(&out, 64 * 256 * sizeof(float));
  cudaMalloc(&in, 64 * 256 * sizeof(float));
  cudaMalloc(&from, 64 * 256 * sizeof(int));
  shift<<<64, 256>>>(out, in, from);
  return cudaDeviceSynchronize();
}
"""


@pytest.mark.slow
@pytest.mark.nvcc
def test_what_a_run_finds_is_a_finding_in_every_format(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(RACING, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    options = ("--profile", "--select", "shared-memory-race")

    def check(*more: str) -> Any:
        return run_command("check", "a.cu", *options, *more, cwd=tmp_path, env=env)

    assert run_command("check", "a.cu", *options[1:], cwd=tmp_path, env=env).status == 0
    ran = check("--format", "json")
    assert ran.status == 1
    assert "warning" not in ran.stderr
    (row,) = ran.json
    assert (row["rule"], row["line"], row["kernel"]) == ("shared-memory-race", 5, "shift")
    assert [each["line"] for each in row["related"]] == [4]
    first, second = row["evidence"]["threads"]
    assert first != second
    sarif = check("--format", "sarif").json
    (result,) = sarif["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("shared-memory-race", "error")
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["region"]["startLine"] == 4
    text = check()
    assert text.status == 1
    assert "error[shared-memory-race]" in text.stdout and "the other access by thread" in text.stdout
    assert check("--format", "github").stdout.startswith("::error file=a.cu,line=5,")
    (entry,) = check("--format", "gitlab").json
    assert (entry["check_name"], entry["location"]["lines"]["begin"]) == ("shared-memory-race", 5)
    assert check("--fail-on", "never").status == 0
    assert check("--write-baseline", "known.json").status == 0
    assert check("--baseline", "known.json").status == 0


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_launch_that_could_not_be_reconstructed_is_no_fault_of_the_kernel(tmp_path: Path) -> None:
    """Which is said with what was guessed and the directive that settles it; said so, the fault is the kernel's."""
    kernel = (
        "// warpwright: array a[n] out\n"
        "__global__ void k(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i <= n) a[i] = 0; }\n"
    )
    (tmp_path / "a.cu").write_text(kernel, encoding="utf-8")
    env = {"WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (run_command("check", "a.cu", "--profile", cwd=tmp_path, env=env) for _ in range(2))
    for ran in (first, second):
        assert ran.status == 0
        assert "note: a.cu:2: k: could not reconstruct this launch: out-of-bounds: " in ran.stderr
        assert (
            "guessed: the launch and the sizes were taken from the kernel's text (`// warpwright: launch grid("
            in ran.stderr
        )
    shown = run_command("profile", "a.cu", cwd=tmp_path, env=env)
    assert shown.status == 2
    assert "error: k: could not reconstruct this launch" in shown.stderr
    assert "; could not reconstruct this launch" in shown.stdout
    said = "// warpwright: launch grid((n + 255) / 256) block(256)\n"
    (tmp_path / "a.cu").write_text(said + kernel, encoding="utf-8")
    assert run_command("profile", "a.cu", cwd=tmp_path, env=env).status == 1
    ran = run_command("check", "a.cu", "--profile", "--format", "json", cwd=tmp_path, env=env)
    assert ran.status == 1
    assert ("missing-bounds-check", 3) in [(row["rule"], row["line"]) for row in ran.json]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("n", "Invalid value for '--shape': 'n' is not a size; write it as n=1000"),
        ("n=0", "'n=0' is not a size"),
        ("m=4", "error: scale has no size `m`: its symbols are n. `warpwright problem` lists them."),
    ],
)
def test_a_size_that_is_none(tmp_path: Path, sizes: str, said: str) -> None:
    (tmp_path / "a.cu").write_text(UNCHECKED, encoding="utf-8")
    ran = run_command("profile", "a.cu", "--shape", sizes, cwd=tmp_path)
    assert ran.status == 2
    assert said in ran.stderr
