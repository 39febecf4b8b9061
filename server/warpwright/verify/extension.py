"""A torch extension's upper rungs, on a GPU: both files are built as Python would, and their functions called.

Each function that is bound and described is compared and timed through its Python entry; a function that nothing
describes is named in a note. What a library computes is no kernel: a candidate that calls one where the original does
not is rejected before anything runs.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from warpwright.cuda.extension.entries import find_entries
from warpwright.missing import Missing
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.extension.model import ExtensionProblem
from warpwright.problems.extension.problem import find_extension_problem
from warpwright.problems.shapes import LARGEST_CHECK_BYTES, Shape
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import CompiledLibrary, Ending, TorchBuild
from warpwright.toolchain.compile import EXTENSION_MODULE, compile_extension
from warpwright.toolchain.library_symbols import kernel_symbols, library_calls
from warpwright.verify.plan import SECONDS_PER_SHAPE, gpu_lock
from warpwright.verify.report import Status
from warpwright.verify.run import Observed, added, observe
from warpwright.verify.tried import EDGE_DISTRIBUTIONS, EVERY_DISTRIBUTION

_HIDDEN_SIZES = (3000, 300, 60)
"""The largest drawn, for a call of one, of two and of more sizes."""
_BAD = (Status.WRONG, Status.UNSAFE, Status.TIMEOUT, Status.DOES_NOT_COMPILE)


@dataclass(slots=True)
class ExtensionOutcome:
    """What came of it: `functions` are those that were called, as Python names them."""

    observed: Observed
    functions: tuple[str, ...] = ()
    not_run_because: str = ""
    facts: dict[str, Any] = field(default_factory=lambda: {})


@dataclass(frozen=True, slots=True)
class Built:
    """One side, built: its library, the kernels of its own text in it, and what it calls of other libraries."""

    library: Path
    kernels: tuple[str, ...]
    calls: frozenset[str]


def observe_extension(
    original: Source,
    candidate: Source,
    torch: TorchBuild,
    *,
    arch: str,
    flags: tuple[str, ...],
    kernels: tuple[frozenset[str], frozenset[str]],
    rates: Mapping[str, float],
    goal: str,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> ExtensionOutcome:
    """Build, compare and time both. `kernels` are the names of those that each text defines, `rates` the
    machine's where they are known. Raises CancelledError."""
    described, lacking = _problems(original)
    if not described:
        return _not_run(lacking[0], "how to call it is not known")
    if goal == "reference" and (without := [p.entry.called for p in described if p.reference is None]):
        reason = f"{without[0]} has no reference in torch (`reference` in sample.toml)."
        return _not_run(reason, "how to run it is not known")
    if why := _unlike(described, candidate):
        return ExtensionOutcome(Observed(Status.WRONG, why))
    progress("Building both extensions", 0.36)
    started = time.monotonic()

    def built(one: tuple[Source, frozenset[str]]) -> Built | CompiledLibrary | Missing:
        return _built(one[0], torch, arch=arch, flags=flags, kernels=one[1], is_cancelled=is_cancelled)

    with ThreadPoolExecutor(2) as compilers:
        after, before = compilers.map(built, ((candidate, kernels[1]), (original, kernels[0])))
    if isinstance(after, CompiledLibrary):
        status = {Ending.ERRORS: Status.DOES_NOT_COMPILE, Ending.TIMEOUT: Status.TIMEOUT}.get(after.ending)
        reason = f"The candidate is not built: {after.reason}"
        return ExtensionOutcome(Observed(status, reason)) if status else _not_run(reason, "it could not be built")
    for side in (before, after):
        if isinstance(side, CompiledLibrary):
            return _not_run(f"The original is not built: {side.reason}", "the original could not be built")
        if isinstance(side, Missing):
            return _not_run(str(side), f"no {side.what} here")
    assert isinstance(before, Built)
    assert isinstance(after, Built)
    calls = {"original": sorted(before.calls), "candidate": sorted(after.calls)}
    hashes = {"original": _hash(before.library), "candidate": _hash(after.library)}
    facts = {"torch": torch.version, "library_calls": calls, "sha256": hashes}
    if new := sorted(after.calls - before.calls):
        reason = f"The candidate makes a library call where a kernel was asked for: {', '.join(new[:3])}."
        return ExtensionOutcome(Observed(Status.WRONG, reason), facts=facts)
    building = {"build": round(time.monotonic() - started, 2)}
    observed = Observed(notes=list(lacking), seconds=building)
    outcome = ExtensionOutcome(observed, tuple(p.entry.called for p in described), facts=facts)
    for number, problem in enumerate(described):
        name = problem.entry.called
        request = make_request(problem, before, after, timed=goal != "fix", judge=_judge_of(problem, goal), rates=rates)
        said = _named(progress, name) if len(described) > 1 else progress
        _add(outcome.observed, observe(request, progress=said, is_cancelled=is_cancelled), name, first=number == 0)
        if outcome.observed.status in (*_BAD, Status.NOT_RUN):
            break
    facts["seconds"] = dict(observed.seconds)
    if outcome.observed.status is Status.NOT_RUN:
        outcome.not_run_because = "not verified"
    return outcome


def _problems(source: Source) -> tuple[list[ExtensionProblem], list[str]]:
    """The calls that are known, and a sentence for each function that is not."""
    described: list[ExtensionProblem] = []
    lacking: list[str] = []
    for entry in find_entries(source):
        problem = find_extension_problem(source, entry.name)
        if isinstance(problem, ExtensionProblem):
            described.append(problem)
        else:
            lacking.append(str(problem))
    if not described and not lacking:
        lacking.append("No function is bound to Python in the file.")
    return described, lacking


def _unlike(described: list[ExtensionProblem], candidate: Source) -> str:
    """One sentence where the candidate does not bind what the original does; "" where it does."""
    bound = {entry.called: entry for entry in find_entries(candidate)}
    for problem in described:
        own = bound.get(problem.entry.called)
        if own is None:
            return f"The candidate does not bind {problem.entry.called}."
        if own.signature != problem.entry.signature:
            return f"The candidate's {own.called} takes other parameters than the original's."
    return ""


def _built(
    source: Source,
    torch: TorchBuild,
    *,
    arch: str,
    flags: tuple[str, ...],
    kernels: frozenset[str],
    is_cancelled: IsCancelled,
) -> Built | CompiledLibrary | Missing:
    made = compile_extension(source, torch, arch=arch, flags=flags, is_cancelled=is_cancelled)
    if made.library is None:
        return made
    symbols = kernel_symbols(made.library, is_cancelled)
    calls = library_calls(made.library, is_cancelled)
    if isinstance(symbols, Missing):
        return symbols
    if isinstance(calls, Missing):
        return calls
    own = tuple(symbol for symbol in symbols if any(f"{len(name)}{name}" in symbol for name in kernels))
    return Built(made.library, own, calls)


def make_request(
    problem: ExtensionProblem, before: Built, after: Built, *, timed: bool, judge: str, rates: Mapping[str, float]
) -> dict[str, Any]:
    """What the harness is sent. The first size is the user's own, where it is known; one is drawn that nobody knows."""
    own = [problem.own_shape] if problem.own_shape is not None else []
    times = [*own, *(s for s in problem.time if s not in own)] if timed else []
    hidden = _hidden_shape(problem)
    shapes = [*times[:1]]
    shapes += [s for s in (*problem.check, hidden, *times) if s is not None and s not in shapes]
    cases: list[dict[str, Any]] = []
    for shape in shapes:
        try:
            arguments = problem.call(shape)
        except ExpressionError:
            continue
        whole = not cases or shape == hidden
        cases.append({
            "shape": dict(shape),
            "arguments": arguments,
            "distributions": EVERY_DISTRIBUTION if whole else EDGE_DISTRIBUTIONS,
            "check": True,
            "time": shape in times,
        })  # fmt: skip
    entry = problem.entry
    return {
        "extension": {"module": EXTENSION_MODULE, "namespace": entry.namespace, "name": entry.name},
        "baseline": _side(before),
        "candidate": _side(after),
        "arguments": [{"kind": "array", "name": t.name, "role": "in"} for t in problem.tensors],
        "cases": cases,
        "notes": list(problem.notes),
        "seed": secrets.randbits(31),
        "judge": judge,
        "reference": str(problem.reference) if problem.reference else None,
        "rates": dict(rates),
        "seconds_per_shape": SECONDS_PER_SHAPE,
        "lock": gpu_lock(),
    }


def _side(built: Built) -> dict[str, Any]:
    return {"library": str(built.library), "kernels": list(built.kernels)}


def _hidden_shape(problem: ExtensionProblem) -> Shape | None:
    """Sizes that nobody can know beforehand; None for a call without sizes, or where no draw is one of its sizes."""
    symbols = problem.symbols
    if not symbols:
        return None
    most = _HIDDEN_SIZES[min(len(symbols), len(_HIDDEN_SIZES)) - 1]
    source = random.SystemRandom()
    for _ in range(20):
        shape = {symbol: source.randrange(2, most) for symbol in symbols}
        if 0 < problem.bytes(shape) <= LARGEST_CHECK_BYTES and shape not in problem.check:
            return shape
    return None


def _judge_of(problem: ExtensionProblem, goal: str) -> str:
    return "reference" if goal in ("fix", "reference") and problem.reference is not None else "baseline"


def _named(progress: Progress, name: str) -> Callable[[str, float | None], None]:
    return lambda text, share: progress(f"{name}: {text}", share)


def _add(whole: Observed, part: Observed, name: str, *, first: bool) -> None:
    """Put what was seen of one more function to the rest: the worst of them is the verdict."""
    whole.cases += part.cases
    whole.speed += part.speed
    whole.rates = part.rates or whole.rates
    whole.sandbox = part.sandbox or whole.sandbox
    whole.seconds = added(whole.seconds, part.seconds)
    whole.uncovered += part.uncovered
    whole.notes += part.notes if first else [f"{name}: {note}" for note in part.notes]
    order = (*_BAD, Status.NOT_RUN, Status.SLOWER, Status.FASTER, Status.INCONCLUSIVE, Status.CORRECT)
    if first or order.index(part.status) < order.index(whole.status):
        whole.status, whole.reason = part.status, part.reason


def _hash(library: Path) -> str:
    """Of what was compared and timed: each side loads it once."""
    return sha256(library.read_bytes()).hexdigest()


def _not_run(reason: str, because: str) -> ExtensionOutcome:
    return ExtensionOutcome(Observed(Status.NOT_RUN, reason), not_run_because=because)
