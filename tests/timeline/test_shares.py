"""Wall time is shared out whole, and to what a person would say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chrome_traces import Maker
from support.examples import examples
from warpwright.timeline.host import Cause
from warpwright.timeline.model import Activity, Call, Event, LineEvent, Place, Trace, TraceError, Work
from warpwright.timeline.report import Report, report_json, report_of
from warpwright.timeline.shares import Shared, shared
from warpwright.timeline.torch_trace import read_torch_trace, torch_trace

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def shared_of(made: Maker) -> Shared:
    return shared(torch_trace(made.document(), "made"))


def report(made: Maker, folder: Path) -> Report:
    return report_of(torch_trace(made.document(), "made"), folder)


def kinds(found: Report) -> list[str]:
    return [each.kind for each in found.proposals]


def test_small_kernels_are_bound_by_launches(tmp_path: Path) -> None:
    made = Maker()
    for index in range(100):
        made.launch(10 * index, 2)
    found = report(made, tmp_path)
    assert found.shared.bound is Cause.LAUNCHES
    assert found.shared.totals()[Cause.GPU] == 100 * 2000


def test_one_large_kernel_hides_all_of_the_host() -> None:
    made = Maker()
    for index in range(20):
        made.launch(10 * index, 1000, "gemm")
    whole = shared_of(made)
    assert whole.bound is Cause.GPU
    assert whole.totals()[Cause.LAUNCHES] == 6000, "only the first launch, before anything runs"


def test_idle_time_behind_a_wait_counts_for_the_wait() -> None:
    """Each step: 5 launches of 30 us, of which the host is through after 50, then a wait until all are done."""
    made = Maker()
    now = 0.0
    for _ in range(10):
        for _ in range(5):
            made.launch(now, 15)
            now += 10
        made.host("cuda_runtime", "cudaStreamSynchronize", now, made.gpu_free + 1 - now, correlation=0)
        now = made.gpu_free + 1
    totals = shared_of(made).totals()
    assert totals[Cause.SYNCHRONISATION] == 10 * 1000 + 9 * 6000, "what follows the call, and 1 us of the call itself"
    assert totals[Cause.LAUNCHES] == 6000


def test_a_wait_gives_no_more_than_it_took() -> None:
    """The host waits for 2 us of work; of the 96 us that follow, 2 are the wait's."""
    made = Maker()
    made.launch(0, 4)
    made.host("cuda_runtime", "cudaStreamSynchronize", 8, 2, correlation=0)
    made.launch(100, 4)
    totals = shared_of(made).totals()
    assert totals[Cause.SYNCHRONISATION] == 2000
    assert totals[Cause.PYTHON] == 88000


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("HtoD (Pageable -> Device)", Cause.COPIES), ("DtoH (Device -> Pageable)", Cause.SYNCHRONISATION)],
)
def test_a_copy_to_the_host_waits(kind: str, expected: Cause) -> None:
    made = Maker()
    made.copy(0, 100, 5, kind, 4)
    made.launch(110, 5)
    assert shared_of(made).bound is expected


def test_what_a_data_loader_does_is_data_loading(tmp_path: Path) -> None:
    made = Maker()
    for index in range(10):
        made.host("user_annotation", LOADER, 1000 * index, 900)
        made.op("aten::stack", 1000 * index + 100, 700)
        made.launch(1000 * index + 910, 50)
    found = report(made, tmp_path)
    assert found.shared.bound is Cause.LOADING
    assert kinds(found)[0] == "workers"


def test_gradients_on_another_thread_stand_for_the_main_one() -> None:
    made = Maker()
    made.op("aten::mul", 0, 10)
    for index in range(50):
        made.launch(20 + 10 * index, 1, thread=7)
    assert shared_of(made).bound is Cause.LAUNCHES


def test_a_proposal_has_its_gain_and_basis(tmp_path: Path) -> None:
    made = Maker()
    for index in range(20):
        made.copy(1000 * index, 500, 490, "HtoD (Pageable -> Device)", 4_000_000)
        made.launch(1000 * index + 500, 480, "gemm", (999, 1, 1))
    found = report(made, tmp_path)
    (pinned,) = [each for each in found.proposals if each.kind == "pinned memory"]
    assert 1.8 < pinned.gain < 2.2
    assert "assumed" in pinned.basis


def test_runs_of_elementwise_kernels_can_be_fused(tmp_path: Path) -> None:
    made = Maker()
    for index in range(40):
        made.launch(
            10 * index, 100, "gemm" if index % 4 == 0 else "void at::native::vectorized_elementwise_kernel<4>()"
        )
    (fusion,) = [each for each in report(made, tmp_path).proposals if each.kind == "fusion"]
    assert fusion.saved == 10 * 200_000
    assert 1.9 < fusion.gain < 2.1


def test_what_is_fused_is_one_turn_of_a_loop(tmp_path: Path) -> None:
    made = Maker()
    for index in range(40):
        made.launch(10 * index, 100, f"void at::native::vectorized_elementwise_kernel<{index % 4}>()")
    (fusion,) = [each for each in report(made, tmp_path).proposals if each.kind == "fusion"]
    assert fusion.saved == 10 * 300_000


def test_a_fused_run_reads_what_it_does_not_make(tmp_path: Path) -> None:
    """f.sigmoid() * c + i.sigmoid() * g.tanh(): 6 kernels read 9 arrays and write 6; fused they read 4 and write 1."""
    made = Maker()
    now = 0.0
    for _ in range(20):
        for operands in (2, 3, 2, 2, 3, 3):
            made.launch(
                now, 50 * operands, f"void vectorized_elementwise_kernel<4, F, std::array<char*, {operands}ul> >"
            )
            now += 10
        now = made.launch(now, 1000, "gemm")
    (fusion,) = [each for each in report(made, tmp_path).proposals if each.kind == "fusion"]
    assert fusion.saved == 20 * (15 - 5) * 50_000


def test_a_copy_of_a_few_bytes_is_the_wait_for_it() -> None:
    made = Maker()
    for index in range(10):
        made.launch(100 * index, 2)
        made.copy(100 * index + 20, 60, 50, "DtoH (Device -> Pinned)", 4)
        made.host("cuda_runtime", "cudaStreamSynchronize", 100 * index + 80, 5, correlation=0)
    totals = shared_of(made).totals()
    assert totals[Cause.COPIES] == 10 * 60_000, "the host is in the call that copies"
    assert totals[Cause.SYNCHRONISATION] == 10 * 5_000


LOOP = "import torch\n\nfor each in many:\n    each.add_(1)\n"


@pytest.mark.parametrize(("operator", "gain"), [("aten::select", 66.0), ("aten::detach", 16.0)])
def test_tensors_of_a_list_cost_something_each(operator: str, gain: float, tmp_path: Path) -> None:
    """100 turns of 10 us, of tensors apart or of parts of one."""
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    made = Maker()
    events = []
    for index in range(101):
        events.append(LineEvent(10_000 * index, "100/100", Place(str(tmp_path / "loop.py"), 3)))
        if index < 100:
            events.append(LineEvent(10_000 * index + 500, "100/100", Place(str(tmp_path / "loop.py"), 4)))
            made.op(operator, 10 * index + 0.6, 0.3)
            made.launch(10 * index + 1, 1)
    trace = replace(torch_trace(made.document(), "made"), lines=tuple(events))
    (batching,) = [each for each in report_of(trace, tmp_path).proposals if each.kind == "batching"]
    assert batching.gain == pytest.approx(gain, rel=0.15)


def test_long_kernels_of_few_blocks_are_not_to_be_batched(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    made = Maker()
    events = []
    for index in range(101):
        events.append(LineEvent(1_000_000 * index, "100/100", Place(str(tmp_path / "loop.py"), 3)))
        events.append(LineEvent(1_000_000 * index + 500, "100/100", Place(str(tmp_path / "loop.py"), 4)))
        made.launch(1000 * index + 1, 900, "persistent gemm", (132, 1, 1))
    trace = replace(torch_trace(made.document(), "made"), lines=tuple(events))
    assert "batching" not in kinds(report_of(trace, tmp_path))


def test_a_function_of_the_user_is_narrowed_to_the_line_that_waits(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n\ndef step(x):\n    y = x * 2\n    return y.item()\n", encoding="utf-8")
    made = Maker()
    made.frame(f"{script}(3): step", 0, 200)
    made.frame("torch/_tensor.py(10): item", 50, 100)
    made.op("aten::item", 60, 90)
    made.copy(62, 80, 2, "DtoH (Device -> Pageable)", 4)
    made.launch(300, 10)
    (line,) = [each for each in report(made, tmp_path).lines if each.waits]
    assert (line.place.file, line.place.line, line.place.exact) == (str(script), 5, True)
    assert line.waits == {".item()": 1}


def test_the_source_of_a_kernel_is_found(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("#include <x>\n\n__global__ void __launch_bounds__(256) saxpy(int n) {}\n")
    made = Maker()
    made.launch(0, 10, "void saxpy<float>(int)")
    (kernel,) = report(made, tmp_path).kernels
    assert (kernel.file, kernel.line) == (str(tmp_path / "k.cu"), 3)


def test_recording_is_not_the_programs_time() -> None:
    place = Place("a.py", 1)
    lines = tuple(LineEvent(time, "1", place) for time in range(0, 10_000, 100))
    trace = Trace("t", ops=(Event("aten::add", 0, 10, "1"), Event("aten::add", 9990, 10_000, "1")), lines=lines,
                  costs=(0, 0, 60))  # fmt: skip
    whole = shared(trace)
    assert whole.totals()[Cause.RECORDING] == pytest.approx(5970, abs=60)
    assert sum(whole.shares().values()) == pytest.approx(1)


TIMES = st.integers(0, 1000)
SPANS = st.tuples(TIMES, st.integers(0, 200)).map(lambda pair: (pair[0], sum(pair)))
NAMES = st.sampled_from(["cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaMalloc", "cudaGetDevice"])
THREADS = st.sampled_from(["1", "2"])
TRACES = st.builds(
    Trace,
    made_by=st.just("t"),
    ops=st.lists(
        st.builds(lambda span, thread: Event("aten::add", *span, thread), SPANS, THREADS), min_size=1
    ).map(tuple),
    calls=st.lists(
        st.builds(
            lambda name, span, thread, key: Call(name, *span, thread, key), NAMES, SPANS, THREADS, st.integers(0, 3)
        )
    ).map(tuple),
    activities=st.lists(
        st.builds(
            lambda kind, span, key: Activity(kind, "k", *span, 0, 7, key, direction="DtoH", pageable=True),
            st.sampled_from(Work), SPANS, st.integers(0, 3),
        )
    ).map(tuple),
    ranges=st.lists(st.builds(lambda span: Event(LOADER, *span, "1"), SPANS)).map(tuple),
    lines=st.lists(st.builds(lambda time: LineEvent(time, "1", Place("a.py", 1)), TIMES)).map(tuple),
    costs=st.tuples(*(st.integers(0, 50) for _ in range(3))),
)  # fmt: skip


@given(TRACES)
@examples(120)
def test_pieces_are_the_whole_window(trace: Trace) -> None:
    whole = shared(trace)
    assert sum(whole.totals().values()) == whole.wall
    assert all(one.end == other.start for one, other in zip(whole.pieces, whole.pieces[1:], strict=False))
    assert all(piece.start < piece.end for piece in whole.pieces)
    if whole.own:
        assert sum(whole.shares().values()) == pytest.approx(1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.just("X") | VALUES,
        "cat": st.sampled_from(["cpu_op", "kernel", "gpu_memcpy", "cuda_runtime", "python_function"]) | VALUES,
        "name": st.sampled_from(["Memcpy HtoD (Pageable -> Device)", "cudaLaunchKernel", "a.py(3): f"]) | VALUES,
        "ts": st.floats(0, 1e6) | VALUES,
        "dur": st.floats(0, 1e3) | VALUES,
        "pid": st.integers(0, 2) | VALUES,
        "tid": VALUES,
        "args": st.fixed_dictionaries({}, optional={"correlation": st.integers(0, 2) | VALUES, "grid": VALUES})
        | VALUES,
    },
)


@given(st.fixed_dictionaries({"traceEvents": st.lists(EVENTS, max_size=8) | VALUES}) | VALUES)
@examples(150)
def test_any_json_is_read_or_refused(document: object) -> None:
    try:
        trace = torch_trace(json.loads(json.dumps(document)), "any")
    except TraceError as error:
        assert "any" in str(error)
        return
    json.dumps(report_json(report_of(trace, Path("/nonexistent"))))


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"\x1f\x8b\x08garbage", b"\xff\xfe", b"9" * 5000, b"[]"])
def test_any_bytes_are_refused_in_a_sentence(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    with pytest.raises(TraceError):
        read_torch_trace(path)
