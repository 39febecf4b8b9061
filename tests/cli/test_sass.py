"""`warpwright sass`: the machine code of a file by line, for people, as data and as a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.command import Ran, run_command

TEXT = """\
// "<b>&" in the text is no markup
__device__ __forceinline__ double mix(double a, float b) {
    return a * b + 0.5;
}
__global__ void k(const float* a, double* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        d[i] = mix(d[i], a[i]);
}
template <typename T> __global__ void copied(T* to, const T* from) { to[threadIdx.x] = from[threadIdx.x]; }
template __global__ void copied<float>(float*, const float*);
template __global__ void copied<float4>(float4*, const float4*);
"""
TEMPLATE = "template <int N> __global__ void t(int* a) { *a = N; }"


def run(*arguments: str) -> Ran:
    return run_command(*arguments, cwd=Path(arguments[1]).parent)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k.cu"
    path.write_text(TEXT)
    return path


@pytest.mark.sass
@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
def test_each_line_is_followed_by_its_instructions(file: Path, arch: str) -> None:
    result = run("sass", str(file), "--arch", arch, "--kernel", "k")
    assert result.status == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"k  {arch}, nvcc ")
    assert "  the only global store is 8 bytes wide" in lines
    assert any(re.match(r"  \d+ registers a thread, no spills", line) for line in lines)
    at = next(i for i, line in enumerate(lines) if "return a * b + 0.5;" in line)
    assert re.search(r"F2F\.F64\.F32 .*FP64, inlined at k\.cu:8$", lines[at + 1])
    assert "copied" not in result.stdout


@pytest.mark.sass
def test_one_line_shows_what_was_inlined_there_too(file: Path) -> None:
    result = run("sass", str(file), "--line", "8")
    assert re.findall(r"^ {3}(\d)  ", result.stdout, re.MULTILINE) == ["3", "8"]
    assert "DFMA" in result.stdout
    assert "S2R" not in result.stdout
    ptx = run("sass", str(file), "--line", "8", "--ptx")
    assert "fma.rn.f64" in ptx.stdout
    assert "DFMA" not in ptx.stdout
    none = run("sass", str(file), "--line", "1")
    assert (none.status, none.stderr.count("\n")) == (2, 1)
    assert "no instruction for line 1" in none.stderr


@pytest.mark.sass
def test_an_instance_is_chosen_by_its_name(file: Path) -> None:
    both = json.loads(run("sass", str(file), "--kernel", "copied", "--format", "json").stdout)
    assert {each["name"] for each in both["kernels"]} == {"copied<float>", "copied<float4>"}
    one = json.loads(run("sass", str(file), "--kernel", "copied<float4>", "--format", "json").stdout)
    (kernel,) = one["kernels"]
    assert kernel["accesses"] == [
        {"space": "global", "kind": "load", "width": 16, "count": 1},
        {"space": "global", "kind": "store", "width": 16, "count": 1},
    ]
    assert kernel["marks"]["128-bit"] == 2
    assert sum(kernel["families"].values()) == len(kernel["sass"])


@pytest.mark.sass
def test_the_page_is_one_file_that_asks_for_nothing(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    result = run("sass", str(file), "--format", "html", "--output", str(target))
    assert result.status == 0, result.stderr
    page = target.read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)=["'](?!#)|@import|url\(|fetch\(""", page)
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page
    assert page.count("<section data-kernel=") == 3
    rows = re.findall(r'<tr class="step[^"]*" data-at="([\d: ]+)"', page)
    assert "0:3 0:8" in rows


@pytest.mark.sass
def test_markdown_has_a_listing_for_each_kernel(file: Path) -> None:
    text = run("sass", str(file), "--format", "markdown").stdout
    assert re.findall(r"^# `(.*)`, sm_90$", text, re.MULTILINE) == ["k", "copied<float4>", "copied<float>"]
    assert text.count("```text") == 3


@pytest.mark.sass
@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (TEXT, ("--kernel", "missing"), "no kernel 'missing'; it has: k, copied<float4>, copied<float>"),
        (TEMPLATE, ("--kernel", "t"), "nvcc made no kernel of it"),
        (f"__global__ void k() {{}}\n{TEMPLATE}", ("--kernel", "t"), "no instance of t"),
        ("__global__ void k() { missing(); }", (), "missing"),
    ],
    ids=["no such kernel", "no kernel at all", "no instance", "does not compile"],
)  # fmt: skip
def test_what_cannot_be_shown_is_one_sentence(tmp_path: Path, text: str, options: tuple[str, ...], said: str) -> None:
    path = tmp_path / "a.cu"
    path.write_text(text)
    result = run("sass", str(path), *options)
    assert result.status == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_no_compiler_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_NVCC", "/nowhere/nvcc")
    result = run("sass", str(file))
    assert result.status == 2
    assert "/nowhere/nvcc" in result.stderr


@pytest.mark.nvcc
def test_no_disassembler_is_said(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.toolchain.find._tool", lambda name, home: None)
    from click.testing import CliRunner
    from warpwright.cli.sass import command

    result = CliRunner().invoke(command, [str(file)])
    assert result.exit_code == 2
    assert "nvdisasm" in result.output
