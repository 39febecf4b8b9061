"""A host loop and the graph that a candidate makes of it launch the same, or the candidate is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cases import read_cases
from support.findings import program, proposed
from support.pages import code, sections
from warpwright.cli.report_text import report_text
from warpwright.progress import never_cancelled, silent
from warpwright.rewrites import capture_graph
from warpwright.rewrites.base import Rewrite
from warpwright.syntax.source import Source
from warpwright.verify.host_change import HostChange, host_change, launches_new_graph
from warpwright.verify.recorded import timed
from warpwright.verify.recorded.cases import recorded_cases
from warpwright.verify.recorded.run import observe_recorded
from warpwright.verify.recorded.timed import ITERATIONS, UntimableError, known_variables
from warpwright.verify.report import RECORDER, USUAL, CaseResult, Level, Report, Status
from warpwright.verify.run import Observed
from warpwright.verify.verify import verify

pytestmark = pytest.mark.sampled(4)

FILE = Path(__file__).parent.parent / "rewrites" / "cases" / "capture-graph.md"
CASES = {case.name: case.text for case in read_cases(FILE)}
PAGE = sections(capture_graph.__doc__ or "")
BEFORE, AFTER = code(PAGE["Before"])[0], code(PAGE["After"])[0]


def source(text: str) -> Source:
    return Source("k.cu", text.encode())


def edited(old: str, new: str) -> Source:
    assert AFTER.count(old) == 1, old
    return source(AFTER.replace(old, new))


def change(candidate: Source, original: str = BEFORE) -> HostChange | str:
    assert launches_new_graph(source(original), candidate)
    return host_change(source(original), candidate)


def observed(original: Source, candidate: Source) -> Observed:
    place = host_change(original, candidate)
    assert isinstance(place, HostChange), place
    seen, _ = observe_recorded(
        (original, candidate), place, arch="sm_90", flags=(), reads=None, is_cancelled=never_cancelled
    )
    return seen


def test_the_place_is_the_loop_with_the_variables_that_it_uses() -> None:
    place = change(source(AFTER))
    assert isinstance(place, HostChange)
    assert (place.function, place.line, place.bounds) == ("run", 10, ("steps",))
    assert [(v.name, v.kind) for v in place.variables] == [
        ("a", "pointer"), ("b", "pointer"), ("n", "int"), ("steps", "int"),
    ]  # fmt: skip
    assert place.before.startswith("for (int t = 0;")
    assert place.after.startswith("int done = 0;")


DESTROY = "cudaGraphDestroy(graph);"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('system("ls");', "the candidate uses `system`, which the original does not"),
        ("return;", "line 26 may leave the place, or do more than call"),
        ("static int calls;", "line 12 has static variables, assembly or directives"),
        ("errno = 1;", "the candidate uses `errno`, which the original does not"),
        ("[] {}();", "line 26 may leave the place, or do more than call"),
        ("*(&done + 9) = 0;", "line 26 of the candidate reaches into memory: `*(&done + 9)`"),
        ("(&done)[9] = 0;", "line 26 of the candidate reaches into memory: `(&done)[9]`"),
        ("done += 0x4000;", "the candidate has the number `0x4000`, which is not tried"),
        ("if (steps > 99999) done = 1;", "the candidate has the number `99999`, which is not tried"),
        ("if (steps > 99 * 99) done = 1;", "the candidate computes `99 * 99`, a number that may not be tried"),
        ("/**/ %:define n 1\n", "line 12 has static variables, assembly or directives"),
    ],
)
def test_a_candidate_that_does_more_than_make_a_graph_is_not_run(more: str, said: str) -> None:
    assert change(edited(DESTROY, f"{DESTROY} {more}")) == said


AGAIN = "    diffuse<<<1, 256>>>(b, a, n);\n"


def with_more(text: str, before: str, behind: str) -> str:
    """The function's statements in a block of their own, with more around them."""
    text = text.replace("int steps) {\n", f"int steps) {{\n  if (n) {{\n{before}")
    return f"{text.rstrip().removesuffix('}')}{behind}  }}\n}}\n"


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (("", AGAIN), ("", f"int n = 0;\n{AGAIN}"), "`n`, which line 38 declares, is used after the changed code"),
        (("int m = n;\n", "n = m;\n"), ("int m = 0;\n", "n = m;\n"), "`m`, which line 11 declares, is used after"),
        (("", AGAIN), ("", f"enum {{ n }};\n{AGAIN}"), "line 38 is not a statement that calls, loops or declares"),
        (("", AGAIN), ("", f"// again \\ \n{AGAIN}"), "the candidate continues a line with a backslash"),
    ],
)
def test_a_candidate_that_changes_what_stands_behind_is_not_run(
    mine: tuple[str, str], theirs: tuple[str, str], said: str
) -> None:
    assert str(change(source(with_more(AFTER, *theirs)), with_more(BEFORE, *mine))).startswith(said)


@pytest.mark.parametrize(
    ("head", "old", "new", "said"),
    [
        ("int steps = 8;\n", ", int steps", "", "`steps` is a variable of the file, with a value that is not known"),
        ("int made;\nvoid count() { ++made; }\n", "swap(a, b);", "swap(a, b); count();", "`count`, which the original"),
        ("#define NEXT n++\n", "(b, a, n)", "(b, a, NEXT)", "the macro `NEXT` may be another value each time"),
        ("__global__ ", "void run", "void run", "the candidate differs in a function that runs on the GPU"),
    ],
)
def test_what_a_place_does_unseen_is_not_judged(head: str, old: str, new: str, said: str) -> None:
    def with_head(text: str) -> str:
        at = text.index("void run")
        return text[:at] + head + text[at:].replace(old, new)

    assert str(change(source(with_head(AFTER)), with_head(BEFORE))).startswith(said)


def test_made_up_values_are_others_each_time() -> None:
    place = change(source(AFTER))
    assert isinstance(place, HostChange)
    assert recorded_cases(place) != recorded_cases(place)
    assert any(case.shown["steps"] >= 20_000 for case in recorded_cases(place))


def test_a_candidate_whose_kernel_differs_too_is_not_run() -> None:
    assert change(edited("0.25f *", "0.5f *")) == "the texts differ in more than the statements of one block"


def test_what_cannot_be_made_up_is_said() -> None:
    def with_options(text: str) -> str:
        text = text.replace("int steps)", "Options options)").replace("steps", "options.steps")
        return f"struct Options {{ int steps; }};\n{text}"

    place = change(source(with_options(AFTER)), with_options(BEFORE))
    assert place == "`Options options` is not a number, pointer, dim3 or stream that can be made up"


def held_by(text: str) -> dict[str, dict[str, Any]]:
    rewrite = proposed(text, "capture-graph", "k.cu")
    assert isinstance(rewrite, Rewrite)
    place = host_change(rewrite.source, rewrite.apply())
    assert isinstance(place, HostChange), place
    return {each["name"]: each for each in known_variables(place, program(text, "k.cu"))}


def test_on_a_gpu_the_variables_hold_what_the_kernels_are_run_with() -> None:
    held = held_by(CASES["three_kernels_tabs"])
    assert {name: held[name]["count"] for name in ("f", "v", "x")} == {"f": 4096, "v": 4096, "x": 4096}
    assert (held["grid"]["value"], held["block"]["value"]) == ([32, 1, 1], [128, 1, 1])
    assert (held["steps"]["value"], held["i"]["value"], held["dt"]["value"]) == (ITERATIONS, 0, 0.01)


def test_arrays_that_change_places_are_as_large_as_the_largest() -> None:
    held = held_by(BEFORE)
    assert held["a"]["count"] == held["b"]["count"] >= held["n"]["value"]


def test_what_no_kernel_tells_is_not_made_up_for_the_gpu() -> None:
    with pytest.raises(UntimableError, match="what `extra` holds is not known"):
        held_by(BEFORE.replace("int steps)", "int steps, int extra)").replace("(n + 255) / 256", "(n + extra) / 256"))


def judged(event: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Observed:
    """What becomes of a recorded candidate where the harness answers with one event."""
    place = change(source(AFTER))
    assert isinstance(place, HostChange)
    monkeypatch.setattr(timed, "run_request", lambda request, is_cancelled: iter([{"event": "hello"}, event]))
    libraries = (Path("before.so"), Path("after.so"))
    return timed.with_times(Observed(Status.CORRECT), place, program(BEFORE), libraries, silent, never_cancelled)


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [(2.4, 2.6, Status.FASTER), (0.99, 1.02, Status.INCONCLUSIVE), (0.8, 0.9, Status.SLOWER)],
)
def test_the_interval_of_the_times_decides(
    low: float, high: float, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"baseline_us": 3000.0, "candidate_us": 1200.0, "speedup": (low + high) / 2, "ci95": [low, high]}
    seen = judged({"event": "host", "same": True, **times, "least_effect": 1.01, "rounds": 16}, monkeypatch)
    assert seen.status is status
    assert any("sizes of the arrays are assumed" in note for note in seen.notes)


def test_other_contents_on_the_gpu_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = judged({"event": "host", "same": False, "differing": ["a"]}, monkeypatch)
    assert (seen.status, seen.reason) == (Status.WRONG, "The candidate leaves other contents in `a` on the GPU.")


def test_a_gpu_that_fails_leaves_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = judged({"event": "error", "text": "the GPU has not enough free memory for this problem"}, monkeypatch)
    assert seen.status is Status.CORRECT
    assert seen.notes == ["the host code was not timed: the GPU has not enough free memory for this problem"]


@pytest.mark.nvcc
@pytest.mark.gpu
def test_on_a_gpu_a_graph_of_short_kernels_is_faster() -> None:
    report = verify(source(BEFORE), source(AFTER), again=True)
    assert report.status is Status.FASTER, (report.reason, report.notes)
    assert report.speed[0].shape["steps"] == ITERATIONS


@pytest.mark.sampled(2)
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("old", "new", "status", "said"),
    [
        ("256, 0, capturing>>>(b, a, n)", "256, 0, capturing>>>(a, b, n)", Status.WRONG, "with other arguments"),
        ("    cudaStreamDestroy(capturing);\n", "", Status.UNSAFE, "it keeps 1 of the streams and graphs"),
        ("done <= steps - 16)\n    cudaGetLastError();", "done > steps);", Status.WRONG, "it leaves an error behind"),
    ],
)
def test_a_graph_that_is_not_the_loop_is_refused(old: str, new: str, status: Status, said: str) -> None:
    seen = observed(source(BEFORE), edited(old, new))
    assert seen.status is status
    assert said in seen.reason


@pytest.mark.sampled(3)
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ModeThreadLocal", "ModeGlobal", "it calls cudaStreamBeginCapture with other arguments than are modelled."),
        ("graph, 0)", "graph, 1)", "it calls cudaGraphInstantiate with other arguments than are modelled."),
        ("steps >= 64 && cudaStream", "steps > 4096 + 4096 * 8 && cudaStream", "launches no graph at the values"),
    ],
)
def test_a_graph_that_is_not_launched_here_proves_nothing(old: str, new: str, said: str) -> None:
    original = BEFORE.replace("(n + 255)", "(4096 * 8 - 4096 * 8 + n + 255)")
    candidate = AFTER.replace("(n + 255)", "(4096 * 8 - 4096 * 8 + n + 255)").replace(old, new)
    seen = observed(source(original), source(candidate))
    assert seen.status is Status.NOT_RUN
    assert said in seen.reason


@pytest.mark.nvcc
def test_each_call_that_may_fail_is_seen_to_fail() -> None:
    seen = observed(source(BEFORE), edited("(captured, 0) == cudaSuccess)", "(captured, 0) != cudaErrorUnknown)"))
    assert seen.status is Status.WRONG
    assert [case.distribution for case in seen.cases if not case.ok] == [
        "cudaGraphLaunch fails",
        "cudaGraphLaunch fails the second time",
    ]


@pytest.mark.sampled(3)
@pytest.mark.nvcc
@pytest.mark.parametrize("case", ["from_one_to_and_with", "three_kernels_tabs", "host_template"])
def test_a_loop_in_another_style_is_proved(case: str) -> None:
    rewrite = proposed(CASES[case], "capture-graph", "k.cu")
    assert isinstance(rewrite, Rewrite)
    seen = observed(rewrite.source, rewrite.apply())
    assert seen.status is Status.CORRECT, seen.reason
    assert max(case.details["launches"] for case in seen.cases) > 64


def test_the_report_says_what_was_compared_and_that_nothing_was_timed() -> None:
    cases = tuple(
        CaseResult({"steps": steps}, kind, True, 0.0, 0.0, details={"launches": steps})
        for steps, kind in ((1000, USUAL), (3, USUAL), (1000, "cudaGraphLaunch fails"))
    )
    levels = (Level.PARSED, Level.COMPILED, Level.ANALYSED, Level.CORRECT)
    report = Report(Status.CORRECT, levels, backend=RECORDER, kernel="diffuse", cases=cases)
    shown = " ".join(report_text(report.to_json()).split())
    assert "3 of 3 runs of the host code launch the same, in the same order" in shown
    assert "steps: 3, 1000." in shown
    assert "each by itself: cudaGraphLaunch fails." in shown
    assert "not timed: the recorder times nothing" in shown
