"""CUDA programs that are no Python: what is loaded into them, and what it wrote."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.command import run_command
from warpwright.cli.trace import cuda_toolkit
from warpwright.timeline import program
from warpwright.timeline.host import Cause
from warpwright.timeline.model import TraceError
from warpwright.timeline.program import Toolkit, cupti_trace, find_cupti, record_program, recorder_defines
from warpwright.timeline.record import Recording
from warpwright.timeline.report import report_of

needs_compiler = pytest.mark.skipif(
    not shutil.which("g++") or not shutil.which("addr2line"), reason="needs g++ and addr2line"
)
CALLS = """\
D\tNVIDIA H200
R\tcudaLaunchKernel_v7000\t1000\t3000\t7\t1
R\tcudaDeviceSynchronize_v3020\t3000\t50000\t7\t2
K\tstep(float*)\t2500\t49000\t0\t7\t1\t4\t1\t1\t256\t1\t1
R\tcudaMemcpy_v3020\t90000\t130000\t7\t3
C\t1\t1\t3\t4096\t91000\t129000\t0\t7\t3
F\t140000\t141000\t0\t7\t4
R\tcudaFree
"""
PROBE = """\
#include <execinfo.h>
#include <cstdint>
#include <cstdio>
__attribute__((noinline)) void call() {
    void* frames[8];
    const int count = backtrace(frames, 8);
    std::printf("S\\t1\\t1\\t0\\t0\\nT\\t1");
    for (int each = 1; each < count; ++each) std::printf("\\t%ju", (uintmax_t)(uintptr_t)frames[each]);
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    char line[4200], rights[8], path[4097];
    unsigned long start, end, offset;
    std::puts("");
    while (std::fgets(line, sizeof(line), maps)) {
        if (std::sscanf(line, "%lx-%lx %7s %lx %*s %*s %4096s", &start, &end, rights, &offset, path) == 5 &&
            rights[2] == 'x' && path[0] == '/') std::printf("M\\t%lu\\t%lu\\t%lu\\t%s\\n", start, end, offset, path);
    }
}
int main() {
    call();  // here
    return 0;
}
"""

HOST = """\
#include <cstdio>
void launch();
void begin();
unsigned known();
__attribute__((noinline)) void step() {
    launch();  // in a function
    asm volatile("");
}
int main() {
    begin();
    for (int each = 0; each < 100; ++each) {
        launch();  // first
        step();
        launch();  // second
    }
    std::printf("%u", known());
    return 0;
}
"""


def test_what_was_written_is_a_trace() -> None:
    trace = cupti_trace(CALLS, "a.out")
    assert [each.name for each in trace.calls] == ["cudaLaunchKernel", "cudaDeviceSynchronize", "cudaMemcpy"]
    assert [(each.name, each.bytes, each.pageable) for each in trace.activities] == [
        ("step(float*)", 0, False), ("Memcpy HtoD (pageable)", 4096, True), ("Memset", 0, False),
    ]  # fmt: skip
    report = report_of(trace, Path.cwd())
    assert Cause.PYTHON not in report.shared.totals()
    assert report.shared.totals()[Cause.GPU] == 46500 + 1000


def test_only_what_a_program_wants_profiled_counts() -> None:
    text = (
        "R\tcudaMalloc_v3020\t0\t900000\t7\t1\nR\tcudaProfilerStart_v4000\t900000\t900010\t7\t2\n"
        "R\tcudaLaunchKernel_v7000\t900020\t900030\t7\t3\nK\tstep()\t900040\t900090\t0\t7\t3\t4\t1\t1\t256\t1\t1\n"
        "R\tcudaProfilerStop_v4000\t900100\t900110\t7\t4\nR\tcudaFree_v3020\t900200\t990000\t7\t5\n"
    )
    whole = report_of(cupti_trace(text, "a.out"), Path.cwd()).shared
    assert (whole.start, whole.end) == (900010, 900100)


def test_what_recording_took_is_not_the_programs_time() -> None:
    text = (
        "R\tcudaLaunchKernel_v7000\t1000\t2000\t7\t1\nR\tcudaLaunchKernel_v7000\t6000\t7000\t7\t2\n"
        "T\t1\t4096\nS\t2\t1\t2500\t5800\n"
    )
    totals = report_of(cupti_trace(text, "a.out"), Path.cwd()).shared.totals()
    assert totals == {Cause.RECORDING: 3500, Cause.LAUNCHES: 2000, Cause.HOST: 500}


@needs_compiler
@pytest.mark.parametrize("way", ["-pie", "-no-pie"])
def test_a_call_has_the_line_that_debug_information_gives_it(way: str, tmp_path: Path) -> None:
    (tmp_path / "probe.cpp").write_text(PROBE, encoding="utf-8")
    built = ["g++", "-O1", "-g", *(["-fPIE"] if way == "-pie" else []), way, "probe.cpp", "-o", "probe"]
    subprocess.run(built, cwd=tmp_path, check=True)
    said = subprocess.run(["./probe"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (line,) = cupti_trace(f"{said}R\tcudaLaunchKernel_v7000\t1\t2\t7\t1\n", "probe").lines
    assert line.place is not None
    assert (Path(line.place.file).name, line.place.line, line.place.function) == (
        "probe.cpp",
        1 + PROBE.splitlines().index("    call();  // here"),
        "main",
    )


@needs_compiler
@pytest.mark.skipif(find_cupti(cuda_toolkit()) is None, reason="needs CUPTI")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_stack_that_is_known_is_not_looked_at_again(level: str, tmp_path: Path) -> None:
    cupti = find_cupti(cuda_toolkit())
    assert cupti is not None
    (tmp_path / "host.cpp").write_text(HOST, encoding="utf-8")
    cupti_here = Path(__file__).parent / "cupti_without_gpu.cpp"
    source = Path(program.__file__).parents[2] / "warpwright_harness"
    given = [*recorder_defines(cupti), f"-I{cupti.header.parent}", f"-I{source}"]
    subprocess.run(
        ["g++", "-std=c++17", "-c", level, *given, str(cupti_here), "-o", "cupti.o"], cwd=tmp_path, check=True
    )
    subprocess.run(["g++", level, "-g", "host.cpp", "cupti.o", "-o", "host"], cwd=tmp_path, check=True)
    written = tmp_path / "trace.tsv"
    variables = {"WARPWRIGHT_CUPTI_TRACE": str(written)}
    done = subprocess.run(["./host"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "3", "one of each place"
    text = written.read_text(encoding="utf-8")
    trace = cupti_trace(text, "host")
    said = [HOST.splitlines()[each.place.line - 1].strip() for each in trace.lines if each.place]
    assert said == ["launch();  // first", "launch();  // in a function", "launch();  // second"] * 100
    assert len(trace.recorded) == 300


@needs_compiler
@pytest.mark.skipif(find_cupti(cuda_toolkit()) is None, reason="needs CUPTI")
def test_a_program_that_calls_no_driver_is_said_to(tmp_path: Path) -> None:
    (tmp_path / "quiet.cpp").write_text("int main() { return 3; }\n", encoding="utf-8")
    subprocess.run(["g++", "quiet.cpp", "-o", "quiet"], cwd=tmp_path, check=True)
    with pytest.raises(
        TraceError, match=r"it made no call of CUDA's that a driver saw; the program ended with status 3"
    ):
        record_program(Recording(tmp_path / "quiet"), cuda_toolkit(), lambda: False)


def test_what_cannot_be_run_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").write_text("no program\n", encoding="utf-8")
    with pytest.raises(TraceError, match="is neither a Python script nor a program that can be run"):
        record_program(Recording(tmp_path / "notes.txt"), Toolkit(None, ()), lambda: False)
    (tmp_path / "notes.txt").chmod(0o755)
    monkeypatch.setattr(program, "find_nsys", lambda: None)
    with pytest.raises(TraceError, match="takes CUPTI, which CUDA's toolkit has"):
        record_program(Recording(tmp_path / "notes.txt"), Toolkit(None, ()), lambda: False)


def test_without_a_driver_the_command_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.out").write_text("", encoding="utf-8")
    ran = run_command("trace", "a.out", cwd=tmp_path)
    assert ran.status == 2
    assert "there is no NVIDIA driver here" in ran.stderr
