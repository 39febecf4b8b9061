"""nvcc behind the editor: what it says stands at its place, stays there, and goes when the text it marks changes."""

from __future__ import annotations

import os
import re
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from lsprotocol import types
from support.editor import NEOVIM, OLD_NEOVIM, VSCODE, Editor, Page, start_editor
from support.processes import running

pytestmark = pytest.mark.nvcc

BROKEN = """\
#define TWICE(x) ((x) + (y))
template <typename T> __device__ T half_of(T x) { return x / undefined_in_template; }
__global__ void k(float *a, int n) {
  int unused;
  /* é😀 */ a[0] = missing + TWICE(a[1]);
  a[1] = half_of(a[2]);
}
"""
CLEAN = "__global__ void k(float *a, int n) { a[threadIdx.x] = n; }\nvoid run(float *a) { k<<<1, 256>>>(a, 3); }\n"
BIG = """\
__global__ void big(float *a) {
  __shared__ float t[10240];
  t[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = t[255 - threadIdx.x];
}
void run(float *a) { big<<<512, 256>>>(a); }
"""


@pytest.fixture(scope="module", params=[VSCODE, NEOVIM, OLD_NEOVIM], ids=lambda profile: profile.name)
def any_editor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with start_editor(request.param, tmp_path_factory.mktemp("workspace")) as editor:
        yield editor
        assert not [line for line in editor.log if "Traceback" in line], editor.log


@pytest.fixture(scope="module")
def vscode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with start_editor(VSCODE, tmp_path_factory.mktemp("workspace")) as editor:
        yield editor
        assert not [line for line in editor.log if "Traceback" in line], editor.log


def said(page: Page) -> list[types.Diagnostic]:
    """What the compiler says, of what is shown now."""
    return [d for d in page.diagnostics() if d.source == "nvcc"]


def wait_for(page: Page, *words: str) -> list[types.Diagnostic]:
    """The compiler's diagnostics once each of the words is said by one of them."""

    def all_said() -> list[types.Diagnostic]:
        found = said(page)
        return found if all(any(word in d.message for d in found) for word in words) else []

    found: list[types.Diagnostic] = page.editor.wait(all_said, f"{words} by nvcc")
    return found


def wait_for_none(page: Page) -> None:
    page.editor.wait(lambda: not said(page), "an end of what nvcc says")


def marked(page: Page, found: list[types.Diagnostic], words: str) -> str:
    return page.words(next(d for d in found if words in d.message).range)


@pytest.mark.sampled(3)
def test_messages_stand_at_their_token_and_are_carried_by_edits(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", BROKEN)
    found = wait_for(page, '"missing"', '"y"', '"unused"', "undefined_in_template")
    assert marked(page, found, '"missing"') == "missing"
    assert marked(page, found, '"y"') == "TWICE"
    assert marked(page, found, "undefined_in_template") == "undefined_in_template"
    unused = next(d for d in found if '"unused"' in d.message)
    assert (unused.code, unused.severity) == ("177-D", types.DiagnosticSeverity.Warning)
    page.replace("__global__", "// ein größeres Wort\n\n__global__")
    moved = said(page)
    assert marked(page, moved, '"missing"') == "missing"
    page.replace("missing", "a[2]")
    assert not [d for d in said(page) if '"missing"' in d.message]


@pytest.mark.sampled(3)
def test_they_go_when_the_text_compiles(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CLEAN.replace("= n", "= nn"))
    (found,) = wait_for(page, '"nn"')
    assert found.severity == types.DiagnosticSeverity.Error
    page.replace("= nn", "= n")
    wait_for_none(page)


def test_an_error_in_an_include_stands_at_the_include_and_leads_there(vscode: Editor) -> None:
    page = vscode.open("a.cu", CLEAN)
    folder = Path(page.uri.removeprefix("file://")).parent
    (folder / "outer.cuh").write_text('#pragma once\n#include "inner.cuh"\n')
    (folder / "inner.cuh").write_text('#pragma once\n#include "outer.cuh"\nint x = not_there;\n')
    page.set('#include <cstdio>\n#include "outer.cuh"\n' + CLEAN)
    found = wait_for(page, "not_there")
    assert marked(page, found, "not_there") == '"outer.cuh"'
    (error,) = found
    assert error.message.startswith("in inner.cuh, line 3: ")
    (related,) = error.related_information or ()
    assert related.location.uri == (folder / "inner.cuh").as_uri()
    assert related.location.range.start.line == 2


@pytest.mark.slow
def test_what_a_template_is_instantiated_with_is_related(vscode: Editor) -> None:
    text = (
        "template <typename T> __device__ T f(T x) { return x.foo; }\n__global__ void k(float *a) { a[0] = f(a[1]); }\n"
    )
    page = vscode.open("a.cu", text)
    (error,) = wait_for(page, "must have class type")
    (related,) = error.related_information or ()
    assert "instantiation" in related.message
    assert related.location.uri == page.uri
    assert related.location.range.start.line == 1


def test_ptxas_speaks_of_its_kernel(vscode: Editor) -> None:
    fine = "__global__ void fine(float *a) { *a = 1; }\n"
    body = "__shared__ float t[90000]; t[1] = a[1]; __syncthreads(); a[0] = t[threadIdx.x];"
    text = f"{fine}__global__ void big(float *a) {{ {body} }}\n"
    page = vscode.open("a.cu", text)
    found = wait_for(page, "too much shared data")
    assert marked(page, found, "too much shared data") == "big"


@pytest.mark.slow
def test_an_error_of_inline_assembly_stands_at_its_line(vscode: Editor) -> None:
    text = '__global__ void k(float *a) {\n  float v = 1;\n  asm("bogus.f32 %0;" : "=f"(v));\n  a[0] = v;\n}\n'
    page = vscode.open("a.cu", text)
    (error,) = wait_for(page, "'bogus'")
    assert page.words(error.range) == 'asm("bogus.f32 %0;" : "=f"(v));'


def test_a_long_compilation_shows_progress_and_its_button_ends_it(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, environment=slow_nvcc(tmp_path)) as editor:
        editor.open("a.cu", CLEAN)
        (compiler,) = editor.wait(lambda: compilers(tmp_path), "the compiler")
        reports = editor.client.progress_reports
        (token,) = editor.wait(lambda: [token for token, seen in reports.items() if seen], "a progress")
        assert reports[token][0].title == "Compiling a.cu"
        editor.notify("window/workDoneProgress/cancel", types.WorkDoneProgressCancelParams(token=token))
        editor.wait(lambda: not is_running(compiler), "the compiler's end")
        editor.wait(lambda: isinstance(reports[token][-1], types.WorkDoneProgressEnd), "the end of the progress")


def test_an_unsaved_include_is_waited_for(vscode: Editor) -> None:
    page = vscode.open("a.cu", CLEAN)
    path = Path(page.uri.removeprefix("file://")).parent / "size.cuh"
    path.write_text("#define SIZE 3\n")
    page.set('#include "size.cuh"\n' + CLEAN.replace("= n", "= SIZE"))
    wait_for_none(page)
    header = vscode.open("size.cuh", "#define SIZE 3\n", uri=path.as_uri())
    header.replace("3", "bad")
    (waiting,) = wait_for(page, "size.cuh has unsaved changes")
    assert waiting.severity == types.DiagnosticSeverity.Information
    assert page.words(waiting.range) == '"size.cuh"'
    path.write_text(header.text)
    vscode.notify("textDocument/didSave", types.DidSaveTextDocumentParams(header.identifier))
    (error,) = wait_for(page, '"bad"')
    assert page.words(error.range) == "SIZE"


@pytest.mark.sampled(3)
def test_what_a_kernel_takes_stands_above_it_and_is_marked_when_it_is_older(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", BIG)
    *commands, taken = any_editor.wait(lambda: _with(page.titles(), "registers"), "the registers")
    assert re.fullmatch(r"sm_90: occupancy [\d.]+ % \(shared memory\), \d+ registers, 40 KB shared", taken)
    assert commands[:4] == ["Optimize", "Verify", "Profile (emulated)", "Show SASS"]
    assert "40,960 bytes of static shared memory" in page.hover_text("big(float")
    page.replace("float t[10240]", "float t[5120]")
    older = page.titles()[-1]
    assert "40 KB shared (before the last edits)" in older
    assert "occupancy" not in older
    assert "before the last edits" in page.hover_text("big(float")
    any_editor.wait(lambda: "occupancy" in page.titles()[-1] and "20 KB shared" in page.titles()[-1], "the new numbers")


@pytest.mark.slow
def test_each_architecture_of_the_settings_has_its_numbers(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"architectures": ["sm_80", "sm_120"]}) as editor:
        page = editor.open("a.cu", BIG)
        editor.wait(lambda: _with(page.titles(), "sm_80: ", "; sm_120: "), "both architectures")


SPILLING = """\
__global__ void __launch_bounds__(1024, 2) crowded(float *a) {
  float x[64];
#pragma unroll
  for (int i = 0; i < 64; i++)
    x[i] = a[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 64; i++)
    a[i * 1024 + threadIdx.x] = x[63 - i] * x[i];
}
"""


def test_spills_are_found_and_the_finding_goes_with_the_text(vscode: Editor) -> None:
    page = vscode.open("a.cu", SPILLING)

    def spills() -> list[types.Diagnostic]:
        return [d for d in page.diagnostics() if d.code == "register-spill"]

    (found,) = vscode.wait(spills, "register-spill")
    assert page.words(found.range) == "crowded"
    assert found.data["evidence"]["spill_store_bytes"] > 0
    assert "spills: " in page.titles()[-1]
    page.replace("i < 64", "i < 8")
    assert spills() == []
    assert "before the last edits" in page.titles()[-1]


@pytest.mark.slow
def test_switching_it_off_takes_it_all_away(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path) as editor:
        page = editor.open("a.cu", BROKEN)
        wait_for(page, '"missing"')
        editor.set_settings({"compile": "off"})
        wait_for_none(page)


def _with(lines: list[str], *words: str) -> list[str]:
    return lines if all(word in lines[-1] for word in words) else []


@pytest.mark.slow
def test_a_document_in_no_file_is_compiled(vscode: Editor) -> None:
    page = vscode.open("", CLEAN.replace("= n", "= nn"), uri="untitled:Untitled-1")
    found = wait_for(page, '"nn"')
    assert marked(page, found, '"nn"') == "nn"


@pytest.mark.slow
def test_only_on_save_and_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "off").mkdir()
    with start_editor(VSCODE, tmp_path, options={"compile": "onSave"}) as editor:
        page = editor.open("a.cu", CLEAN)
        page.replace("= n", "= nn")
        wait_for_the_next(editor)
        assert said(page) == []
        editor.notify("textDocument/didSave", types.DidSaveTextDocumentParams(page.identifier))
        wait_for(page, '"nn"')
    with start_editor(VSCODE, tmp_path / "off", options={"compile": "off"}) as editor:
        page = editor.open("b.cu", CLEAN.replace("= n", "= nn"))
        editor.notify("textDocument/didSave", types.DidSaveTextDocumentParams(page.identifier))
        assert page.hover("a[threadIdx.x]") is not None  # the save was taken
        assert page.hover("a[threadIdx.x]") is not None  # and whoever is to compile was started
        assert children(editor.process.pid) == []
        assert said(page) == []


def wait_for_the_next(editor: Editor) -> None:
    """One document is compiled after the other: wait for one that is opened now, behind all that others asked for."""
    wait_for(editor.open("next.cu", CLEAN.replace("= n", "= in_the_next")), '"in_the_next"')


def test_no_compiler_is_said_once(tmp_path: Path) -> None:
    environment = slow_nvcc(tmp_path)
    nvcc = (tmp_path / "nvcc").rename(tmp_path / "elsewhere")
    with start_editor(VSCODE, tmp_path, environment=environment) as editor:
        for name in ("a.cu", "b.cu"):
            editor.open(name, CLEAN)
        editor.wait(lambda: editor.messages, "a message")
        editor.open("c.cu", CLEAN)
        nvcc.rename(tmp_path / "nvcc")
        editor.wait(lambda: compilers(tmp_path), "the compiler, for a document behind both")
        (message,) = editor.messages
        assert f"{tmp_path / 'nvcc'}, which does not exist" in message
        assert editor.log == []


def slow_nvcc(folder: Path) -> dict[str, str]:
    """The environment with a compiler that answers what it is asked about itself, and never ends a compilation."""
    path = folder / "nvcc"
    path.write_text(
        "#!/bin/sh\ncase \"$*\" in\n*--version*) echo 'Cuda compilation tools, release 13.0, V13.0.88' ;;\n"
        f"*--dryrun*) echo '#$ TOP={folder}' >&2 ;;\n*) echo $$ > running; exec sleep 600 ;;\nesac\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return {"WARPWRIGHT_NVCC": str(path), "WARPWRIGHT_CACHE_DIR": str(folder / "cache")}


def compilers(folder: Path) -> list[int]:
    """The compilers that are at work now, by their process numbers."""
    found = []
    for file in (folder / "cache" / "compilations" / "building").glob("*/running"):
        with suppress(OSError, ValueError):
            found.append(int(file.read_text()))
    return found


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_compiler_that_hangs_is_ended_and_one_of_an_older_text_too(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, environment=slow_nvcc(tmp_path)) as editor:
        page = editor.open("a.cu", CLEAN)
        (first,) = editor.wait(lambda: compilers(tmp_path), "the compiler")
        page.replace("256", "128")
        editor.wait(lambda: not is_running(first), "the first compiler's end")
        (second,) = editor.wait(lambda: compilers(tmp_path), "the next compiler")
        editor.set_settings({"compileSeconds": 1})
        editor.wait(lambda: [m for m in editor.messages if "did not finish in 1 seconds" in m], "a message")
        assert not is_running(second)
        assert page.hover("a[threadIdx.x]") is not None


def children(number: int) -> list[int]:
    found = []
    for stat_file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat_file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == number:
            found.append(int(stat_file.parent.name))
    return found


def ends_within(seconds: float, pid: int) -> bool:
    """Whether a process is gone in time; the system takes a moment to clear up after one that was killed."""
    end = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_running(pid)


@pytest.mark.slow
@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="a GPU is here")
def test_what_a_search_needs_is_started_once_a_kernel_has_compiled(tmp_path: Path) -> None:
    def emulators(editor: Editor) -> list[int]:
        (worker, *others) = children(editor.process.pid)
        return [each for one in (worker, *others) for each in running("warpwright.verify.emulated", one)]

    with start_editor(VSCODE, tmp_path) as editor:
        page = editor.open("a.cuh", CLEAN)
        wait_for_the_next(editor)
        assert len(children(editor.process.pid)) == 1, "a header and a text that does not compile are no reason"
        editor.open("b.cu", "__device__ float twice(float x) { return 2 * x; }\n" + CLEAN)
        (ready,) = editor.wait(lambda: emulators(editor), "the process that emulates")
        assert page.hover("a[threadIdx.x]") is not None
    assert ends_within(10, ready)


def test_a_killed_worker_costs_one_message(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, environment=slow_nvcc(tmp_path)) as editor:
        page = editor.open("a.cu", CLEAN)
        (first,) = editor.wait(lambda: compilers(tmp_path), "the compiler")
        (worker,) = children(editor.process.pid)
        os.kill(worker, signal.SIGKILL)
        editor.wait(lambda: [m for m in editor.messages if "ended unexpectedly" in m], "a message")
        editor.wait(lambda: not is_running(first), "the compiler's end")
        page.replace("256", "128")
        editor.wait(lambda: set(compilers(tmp_path)) - {first}, "the next compiler")


@pytest.mark.slow
def test_a_compiler_that_is_killed_twice_costs_one_message(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, environment=slow_nvcc(tmp_path)) as editor:
        editor.open("a.cu", CLEAN)
        (first,) = editor.wait(lambda: compilers(tmp_path), "the compiler")
        os.kill(first, signal.SIGKILL)
        (second,) = editor.wait(lambda: set(compilers(tmp_path)) - {first}, "the compiler, run once more")
        assert editor.messages == []
        os.kill(second, signal.SIGKILL)
        editor.wait(lambda: editor.messages, "a message")
        editor.open("b.cu", CLEAN)
        editor.wait(lambda: set(compilers(tmp_path)) - {second}, "the compiler, for the next document")
        (message,) = editor.messages
        assert "nvcc was killed twice" in message


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_text("a file where a folder should be")
    with start_editor(VSCODE, tmp_path, environment={"WARPWRIGHT_CACHE_DIR": str(cache)}) as editor:
        pages = [editor.open("a.cu", text) for text in (CLEAN, CLEAN.replace("256", "128"))]
        editor.wait(lambda: editor.messages, "a message")
        cache.unlink()
        wait_for_the_next(editor)
        (message,) = editor.messages
        assert "WARPWRIGHT_CACHE_DIR" in message
        assert [said(page) for page in pages] == [[], []]


@pytest.mark.slow
def test_a_large_file_is_left_alone(vscode: Editor) -> None:
    page = vscode.open("a.cu", "// " + "x" * 5_000_000 + "\n" + CLEAN)
    wait_for_the_next(vscode)
    assert said(page) == []
