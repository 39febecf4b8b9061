"""How verification takes what the harness's process does, right or wrong: a process that plays a script of events."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.command import python_program
from warpwright.facts.analyze import analyze
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.progress import CancelledError, never_cancelled, silent
from warpwright.syntax.source import Source
from warpwright.verify import harness
from warpwright.verify.report import Status, Uncovered, What
from warpwright.verify.run import Observed, observe

CASES: list[dict[str, Any]] = [
    {"shape": {"n": 4096}, "time": True, "check": True, "distributions": ["normal"]},
    {"shape": {"n": 31}, "time": False, "check": True, "distributions": ["normal"]},
    {"shape": {"n": 1009}, "time": True, "check": True, "distributions": ["normal"]},
]
REQUEST = {"cases": CASES, "arguments": [{"kind": "array", "role": "in"}, {"kind": "array", "role": "out"}]}
DONE = {"event": "done"}


def begin(case: int, side: str) -> dict[str, Any]:
    return {"event": "begin", "phase": "check", "case": case, "side": side}


def right(n: int) -> dict[str, Any]:
    return {"event": "case", "shape": {"n": n}, "distribution": "normal", "ok": True, "max_abs": 0.0, "max_rel": 0.0,
            "spread": True, "sample": {"a": "[1.0]"}, "reason": ""}  # fmt: skip


def speed(n: int, low: float, high: float) -> dict[str, Any]:
    return {"event": "speed", "shape": {"n": n}, "baseline_us": 2.0, "candidate_us": 1.0, "speedup": (low + high) / 2,
            "ci95": [low, high], "least_effect": 1.02, "warm": {}}  # fmt: skip


class Player:
    """A program in the harness's place. Each request plays the next script: events, "hang", "die" or "garbage"."""

    def __init__(self, folder: Path) -> None:
        """`folder` is one that the harness may write to."""
        self.folder = folder
        self.program = folder / "python"
        python_program(
            self.program,
            f"""
import json, os, sys, time
folder = {str(folder)!r}
with os.fdopen(int(sys.argv[-1]), "w", buffering=1) as sink:
    sink.write(json.dumps(dict(event="hello", device=dict())) + "\\n")
    for request in sys.stdin:
        scripts = json.load(open(folder + "/scripts.json"))
        number = len([f for f in os.listdir(folder) if f.startswith("request")])
        open(folder + f"/process{{number}}", "w").write(str(os.getpid()))
        open(folder + f"/request{{number}}", "w").write(request)
        for step in scripts[min(number, len(scripts) - 1)]:
            if step == "hang": time.sleep(600)
            if step == "die": print("last words", file=sys.stderr); os._exit(3)
            sink.write("garbage\\n" if step == "garbage" else json.dumps(step) + "\\n")
""",
        )

    def play(self, *scripts: list[Any], request: dict[str, Any] = REQUEST, original: Problem | None = None) -> Observed:
        (self.folder / "scripts.json").write_text(json.dumps(scripts))
        return observe(request, progress=silent, is_cancelled=never_cancelled, original=original)

    def forget(self) -> None:
        """Play the scripts from the first on again."""
        for asked in self.folder.glob("request*"):
            asked.unlink()

    def request(self, number: int) -> dict[str, Any]:
        asked: dict[str, Any] = json.loads((self.folder / f"request{number}").read_text())
        return asked

    def process(self, number: int) -> int:
        return int((self.folder / f"process{number}").read_text())


@pytest.fixture
def player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Player:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path))
    (tmp_path / "harness").mkdir()
    made = Player(tmp_path / "harness")
    monkeypatch.setenv("WARPWRIGHT_GPU_PYTHON", str(made.program))
    monkeypatch.setattr(harness, "STEP_SECONDS", 0.5)
    harness.close_idle()
    return made


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_what_is_compared_and_timed_becomes_the_verdict(player: Player) -> None:
    timed = [speed(4096, 1.5, 1.6), speed(1009, 0.99, 1.01)]
    observed = player.play([right(4096), right(31), right(1009), *timed, DONE])
    assert observed.status is Status.FASTER
    assert [c.shape["n"] for c in observed.cases] == [4096, 31, 1009]
    assert observed.speed[0].ci95 == (1.5, 1.6)
    harness.close_idle()
    assert gone(player.process(0))


@pytest.mark.parametrize(
    ("own", "other", "status"),
    [
        ((1.5, 1.6), (0.8, 0.9), Status.SLOWER),
        ((0.99, 1.2), (1.0, 1.0), Status.INCONCLUSIVE),
        ((1.005, 1.015), (1.0, 1.0), Status.INCONCLUSIVE),
        ((0.6, 0.7), (1.0, 1.0), Status.SLOWER),
    ],
)
def test_faster_is_faster_at_the_users_launch_and_slower_nowhere(
    own: tuple[float, float], other: tuple[float, float], status: Status, player: Player
) -> None:
    observed = player.play([right(4096), speed(4096, *own), speed(1009, *other), DONE])
    assert observed.status is status
    assert observed.reason


def peers(n: int, eager: float, compiled: float | None) -> dict[str, Any]:
    return {"event": "peers", "case": 0, "shape": {"n": n}, "peers": {"eager_us": eager, "compile_us": compiled}}


def test_who_is_fastest_beside_the_candidate_is_named(player: Player) -> None:
    events = [right(4096), speed(4096, 1.5, 1.6), speed(31, 1.5, 1.6), peers(4096, 3.0, 0.8), peers(31, 4.0, None)]
    observed = player.play([*events, DONE])
    assert observed.status is Status.FASTER
    first, second = (each.details["best_baseline"] for each in observed.speed)
    assert first == {"name": "torch.compile", "us": 0.8, "speedup": 0.8}
    assert second == {"name": "the original", "us": 2.0, "speedup": 2.0}
    assert observed.speed[0].details["peers"] == {"eager_us": 3.0, "compile_us": 0.8}


def test_a_compilation_of_the_reference_that_hangs_costs_no_verdict(player: Player) -> None:
    hanging = {"event": "begin", "phase": "peers", "case": 0, "side": ""}
    observed = player.play([right(4096), speed(4096, 1.5, 1.6), hanging, "hang"])
    assert observed.status is Status.FASTER
    assert "torch.compile of the reference did not finish" in observed.notes[0]
    assert gone(player.process(0))


def test_measured_rates_are_handed_on(player: Player) -> None:
    rates = {"event": "rates", "rates": {"dram_bytes": 4e12}}
    observed = player.play([right(4096), rates, speed(4096, 1.5, 1.6), DONE])
    assert observed.rates == {"dram_bytes": 4e12}


def test_one_wrong_case_is_the_verdict(player: Player) -> None:
    wrong = {**right(31), "ok": False, "reason": "a[3] is 1 and should be 2; 1 of 31 values differ"}
    observed = player.play([right(4096), wrong, DONE])
    assert observed.status is Status.WRONG
    assert (
        observed.reason
        == "The candidate is wrong at n = 31 (normal values): a[3] is 1 and should be 2; 1 of 31 values differ."
    )


def test_a_candidate_that_hangs_is_killed_and_named(player: Player) -> None:
    observed = player.play([begin(0, "candidate"), "hang"])
    assert observed.status is Status.TIMEOUT
    assert "The candidate does not finish at n = 4096" in observed.reason
    assert gone(player.process(0))


def test_a_candidate_that_faults_is_unsafe(player: Player) -> None:
    fault = {"event": "fault", "name": "CUDA_ERROR_ILLEGAL_ADDRESS", "text": "an illegal memory access was encountered"}
    observed = player.play([begin(1, "candidate"), fault])
    assert observed.status is Status.UNSAFE
    assert observed.reason == "The candidate fails at n = 31: an illegal memory access was encountered."


JUDGED = {
    **REQUEST,
    "judge": "baseline",
    "baseline": "original.cubin",
    "candidate": "candidate.cubin",
    "cases": [{**case, "baseline": {"block": [64]}, "candidate": {"block": [32]}} for case in CASES],
}
FAULT = {"event": "fault", "name": "E", "text": "an illegal memory access was encountered"}
OUTSIDE = {**right(31), "case": 1, "ok": False, "unsafe": True, "reason": "it writes outside a, whose extent is 31"}


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        (["hang"], "does not finish there (nothing happened for"),
        ([FAULT], "is not safe there (an illegal memory access was encountered)"),
        ([OUTSIDE, DONE], "is not safe there (it writes outside a, whose extent is 31)"),
    ],
)
def test_a_shape_at_which_the_original_fails_as_the_candidate_does_says_nothing_of_it(
    failing: list[Any], said: str, player: Player
) -> None:
    failed = [right(4096), begin(1, "candidate"), *failing]
    rest = [right(1009), speed(4096, 1.5, 1.6), speed(1009, 1.5, 1.6), DONE]
    observed = player.play(failed, failed, rest, request=JUDGED)
    assert observed.status is Status.FASTER
    assert observed.reason == ""
    assert observed.notes[0].startswith(f"n = 31 was left out: the original itself {said}")
    assert [case.shape["n"] for case in observed.cases] == [4096, 1009]
    alone = player.request(1)
    assert alone["candidate"] == "original.cubin"
    assert [case["check"] for case in alone["cases"]] == [False, True, False]
    assert alone["cases"][1]["candidate"] == {"block": [64]}
    assert [case["shape"]["n"] for case in player.request(2)["cases"]] == [4096, 1009]


@pytest.mark.parametrize("original", [[right(31), DONE], [begin(1, "candidate"), "hang"]])
def test_a_candidate_that_fails_where_the_original_does_not_is_to_blame(original: list[Any], player: Player) -> None:
    observed = player.play([begin(1, "candidate"), FAULT], original, request=JUDGED)
    assert observed.status is Status.UNSAFE
    assert observed.reason == "The candidate fails at n = 31: an illegal memory access was encountered."


@pytest.mark.parametrize("way", ["hang", "fault", "refused"])
def test_an_original_that_fails_costs_only_that_shape(way: str, player: Player) -> None:
    ending: Any = "hang" if way == "hang" else {"event": way, "name": "E", "text": "bad", "reason": "bad"}
    first = [right(4096), begin(1, "baseline"), ending]
    observed = player.play(first, [right(1009), speed(4096, 1.5, 1.6), speed(1009, 1.5, 1.6), DONE])
    assert observed.status is Status.FASTER
    assert len(observed.notes) == 1
    assert "n = 31 was left out: the original itself" in observed.notes[0]
    same_process = player.process(0) == player.process(1)
    assert same_process == (way == "refused"), "a refusal harms nothing, so the same process answers on"
    asked = player.request(1)["cases"]
    assert [(c["shape"]["n"], c["check"]) for c in asked] == [(4096, False), (1009, True)]


COPY = """\
__global__ void copy(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i];
}
"""
SAID = """\
// warpwright: launch block(256)
// warpwright: array a[n] in
// warpwright: array out[n] out
"""
LAUNCH_GUESSED = "(`// warpwright: launch grid((n + 255) / 256) block(256)` says it)"
MISALIGNED = {"event": "fault", "name": "E", "text": "misaligned address", "kinds": ["misaligned"]}
BEYOND = {"said": "it writes outside a, whose extent is 31", "kinds": ["out-of-bounds"], "array": "a"}
NOT_SOUND = {
    "event": "unsupported", "case": 1, "shape": {"n": 31}, "distribution": "normal", "fault": BEYOND,
    "reason": f"the original is not sound here: {BEYOND['said']}",
}  # fmt: skip


def problem_of(text: str) -> Problem:
    program = analyze(Source("a.cu", text.encode()))
    found = find_problem(program, program.kernel("copy"))
    assert isinstance(found, Problem)
    return found


@pytest.mark.parametrize(
    ("failing", "said", "directive"),
    [
        ([NOT_SOUND], "it writes outside a, whose extent is 31", "(`// warpwright: array a[n] in` says it)"),
        ([begin(1, "baseline"), MISALIGNED], "misaligned address", LAUNCH_GUESSED),
        ([begin(1, "baseline"), "hang"], "it does not finish (nothing happened for ", LAUNCH_GUESSED),
    ],
)
def test_an_original_that_fails_as_it_was_guessed_to_be_launched_is_not_blamed(
    failing: list[Any], said: str, directive: str, player: Player
) -> None:
    first, rest = [right(4096), *failing, DONE], [right(1009), DONE]
    (note,) = player.play(first, rest, original=problem_of(COPY)).notes
    assert note.startswith(f"n = 31 was left out: could not reconstruct this launch: {said}")
    assert directive in note.partition("; guessed: ")[2]
    player.forget()
    (note,) = player.play(first, rest, original=problem_of(SAID + COPY)).notes
    assert note.startswith("n = 31 was left out: the original i")
    assert "guessed" not in note


@pytest.mark.parametrize("failing", [[MISALIGNED], [{**OUTSIDE, "fault": BEYOND}, DONE], ["hang"]])
def test_a_launch_in_which_both_fail_may_be_the_guessed_one(failing: list[Any], player: Player) -> None:
    failed = [right(4096), begin(1, "candidate"), *failing]
    observed = player.play(failed, failed, [right(1009), DONE], request=JUDGED, original=problem_of(COPY))
    assert observed.status is Status.CORRECT
    assert observed.notes[0].startswith("n = 31 was left out: could not reconstruct this launch: ")
    assert LAUNCH_GUESSED in observed.notes[0]


def unsound(n: int) -> dict[str, Any]:
    return {"event": "unsupported", "shape": {"n": n}, "distribution": "normal", "reason": "the original is not sound"}


def test_sizes_are_not_covered_where_the_original_fails_at_most(player: Player) -> None:
    events = [unsound(4096), right(1009), {**unsound(31), "distribution": "ties"}, unsound(31), DONE]
    observed = player.play(events)
    assert observed.status is Status.CORRECT
    named = [f"n = {n} was left out: the original is not sound" for n in (4096, 31)]
    assert observed.uncovered == [Uncovered(What.SIZE, text) for text in named]
    assert observed.notes == ["ties values were left out: the original is not sound"]


def test_the_program_s_own_size_is_not_covered_where_the_original_fails_at_it(player: Player) -> None:
    events = [unsound(4096), right(1009), right(31), DONE]
    observed = player.play(events)
    assert observed.notes == ["n = 4096 was left out: the original is not sound"]
    assert observed.uncovered == []
    player.forget()
    host = "int main() { int n = 4096; float *a, *b; cudaMalloc(&a, 4 * n); copy<<<n / 256, 256>>>(a, b, n); }"
    observed = player.play(events, original=problem_of(COPY + host))
    assert observed.uncovered == [Uncovered(What.SIZE, "n = 4096 was left out: the original is not sound")]
    assert observed.notes == []


def test_a_harness_that_dies_or_talks_nonsense_is_said(player: Player) -> None:
    assert "ended unexpectedly with exit status 3 (last words)" in player.play(["die"]).reason
    assert "something that is not an event" in player.play(["garbage"]).reason
    observed = player.play([{"event": "error", "text": "the GPU has not enough free memory for this problem"}])
    assert observed.status is Status.NOT_RUN
    assert observed.reason == "It was not run: the GPU has not enough free memory for this problem."


def test_outputs_that_never_change_prove_nothing(player: Player) -> None:
    constant = {**right(4096), "spread": False, "sample": {"a": "[0.0]"}}
    observed = player.play([constant, {**constant, "distribution": "integers"}, DONE])
    assert observed.status is Status.NOT_RUN
    assert "the same whatever its inputs hold" in observed.reason


def loose(n: int, **more: Any) -> dict[str, Any]:
    return {**right(n), "loose": {"a": "zero everywhere"}, "weighed": n, "sample": {"a": f"[{n}.0]"}, **more}


def test_outputs_that_zeros_pass_for_everywhere_prove_nothing(player: Player) -> None:
    observed = player.play([loose(4096), loose(1009), {**right(31), "weighed": 31}, DONE])
    assert observed.status is Status.NOT_RUN
    assert observed.reason.startswith("The original's a is lost in its own rounding: zero everywhere would pass")


def test_one_case_that_tells_is_enough(player: Player) -> None:
    observed = player.play([loose(4096), {**right(1009), "weighed": 1009}, DONE])
    assert observed.status is Status.CORRECT


def test_results_that_differ_from_run_to_run_are_a_note(player: Player) -> None:
    observed = player.play([{**right(4096), "restless": True}, right(1009), DONE])
    assert observed.status is Status.CORRECT
    assert "the candidate's last bits differ from run to run; the original's do not" in observed.notes


def test_nothing_that_could_be_compared_is_said(player: Player) -> None:
    left_out = {"event": "unsupported", "case": 0, "shape": {"n": 4096}, "reason": "the original is not sound here"}
    observed = player.play([left_out, DONE])
    assert observed.status is Status.NOT_RUN
    assert "n = 4096 was left out: the original is not sound here" in observed.reason


def test_a_cancel_kills_the_process(player: Player) -> None:
    (player.folder / "scripts.json").write_text(json.dumps([[begin(0, "candidate"), "hang"]]))
    with pytest.raises(CancelledError):
        observe(REQUEST, progress=silent, is_cancelled=(player.folder / "request0").exists)
    assert gone(player.process(0))


def test_a_python_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    harness.close_idle()
    monkeypatch.setenv("WARPWRIGHT_GPU_PYTHON", "/nowhere/python")
    observed = observe(REQUEST, progress=silent, is_cancelled=never_cancelled)
    assert observed.status is Status.NOT_RUN
    assert "could not be started" in observed.reason


def test_a_request_without_launches_of_sides_asks_no_original(player: Player) -> None:
    failed = [right(4096), begin(1, "candidate"), OUTSIDE, DONE]
    assert player.play(failed, request={**JUDGED, "cases": CASES}).status is Status.UNSAFE
