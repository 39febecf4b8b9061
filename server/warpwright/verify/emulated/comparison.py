"""The upper rungs of the ladder without a GPU: both kernels' PTX is run on the CPU and compared, and nothing is timed.

It gives the events that the harness gives (see `run`), so that one verdict is made of both. On the same inputs each
kernel runs twice, with other bytes in its outputs before; more runs of the original on inputs that were moved measure
how far rounding lets two results differ. What the emulator finds wrong with the candidate and not with the original is
the candidate's fault; a shape at which the original itself is at fault proves nothing and is left out.

Work is counted in lane-steps (`emulator.launch`). A shape is compared where one launch of the original stays below
`Budget.launch` and all runs together below `Budget.together`: some seconds. The largest shape for which that leaves
room is tried with every distribution of values, the others with two, as on a GPU.

NumPy comes with what is imported here: only the emulator's process (`__main__`) imports this module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from math import prod
from typing import Any

from warpwright.emulator.agreement import (
    compare,
    equal_bits,
    equally_finite,
    impostor_that_passes,
    is_spread,
)
from warpwright.emulator.launch import (
    Argument,
    ArrayArgument,
    Launch,
    LaunchError,
    run,
)
from warpwright.emulator.program import Program
from warpwright.emulator.report import faults_of, said
from warpwright.emulator.values import (
    POISONS,
    Alteration,
    Change,
    UnknownTypeError,
    arguments_of,
    as_numbers,
    results_of,
    variables_of,
)
from warpwright.emulator.work import work_of
from warpwright.facts.profile import Fault, FaultKind
from warpwright.facts.work import Work
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.guesses import About, Guess, not_reconstructed
from warpwright.problems.model import Array, Case, Problem
from warpwright.problems.shapes import alike_shape
from warpwright.problems.types import element_type
from warpwright.progress import CancelledError, IsCancelled, never_cancelled
from warpwright.toolchain.names import demangle
from warpwright.verify.budget import MOST_BYTES, Budget
from warpwright.verify.child import Event
from warpwright.verify.emulated.dependence import changes_of, dependence_events
from warpwright.verify.emulated.events import case_event, unsafe, unsupported
from warpwright.verify.emulated.outputs import (
    PERTURBATIONS,
    Moved,
    Ran,
    arrays_of,
    in_order,
    is_steady,
    open_results,
    outputs_of,
    tolerance_for,
    wider_tolerance,
    written_of,
)
from warpwright.verify.emulated.picked import picked_event
from warpwright.verify.emulated.prints import are_prints_lost, other_prints, stops_alone
from warpwright.verify.emulated.steps import behind, launches_of, put_behind
from warpwright.verify.run import at
from warpwright.verify.thresholds import THRESHOLD, has_threshold_values
from warpwright.verify.tried import EDGE_DISTRIBUTIONS, EVERY_DISTRIBUTION, KINDS

MOST_COUNTED_BYTES = 512 << 20
COUNTED_LANES = 4096
"""Threads of the blocks whose work is counted: enough for several blocks, few enough for the user's own sizes."""

COUNTED_SEED = 0

LEAST_ELEMENTS = 64
"""A shape with fewer, in all arrays together, proves nothing where it is the largest that is run."""

RUNS = 5 + PERTURBATIONS
"""Of a kernel for one comparison."""

THREAD_STEPS = 256
"""Of a candidate's thread, which are never too many: one with more threads may do little in each."""

LAUNCH_STEPS = 20_000
"""What a launch costs in lane-steps beyond those of its threads, where a side makes several."""

_RACES = frozenset({FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE, FaultKind.MISSING_SYNCWARP})
"""What an original may do wrong and yet run to its end."""
_ORDERS = (None, 1)
"""Of the first and of the second run: in what order lanes add floats to one word (see `emulator.launch.run`)."""

CANDIDATE_FACTOR = 16
"""A candidate that takes so many times the original's steps, and more than `Budget.least_candidate`, is taken for one
that never ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of the two kernels, ready to run, or the programs of its problem's steps; `own` names the user's files (see
    `emulator.lines`)."""

    programs: tuple[Program, ...]
    problem: Problem
    own: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    original: Side
    candidate: Side
    cases: tuple[tuple[Case, Case], ...]
    distributions: tuple[tuple[str, ...], ...]
    """The kinds of values with which each case is tried."""
    seed: int
    budget: Budget
    unfilled: tuple[str, ...] = ()
    """The arrays that the candidate's host code no longer fills."""

    def events(self, is_cancelled: IsCancelled) -> Iterator[Event]:
        """Raises CancelledError. An emulator that fails is an event too, as a dead harness would be."""
        try:
            yield from self._events(is_cancelled)
        except CancelledError:
            raise
        except UnknownTypeError as error:
            yield {"event": "error", "text": str(error)}
        except MemoryError:
            yield {"event": "error", "text": "the run needs more memory than there is"}
        except Exception as error:
            yield {"event": "error", "text": f"the emulator failed ({type(error).__name__}: {str(error)[:200]})"}

    def _events(self, stop: IsCancelled) -> Iterator[Event]:
        yield {"event": "progress", "text": "Emulating the original at small sizes first", "share": 0.4}
        sized, too_large = self._sized(stop)
        alone = self._alone(sized, too_large, stop)
        left = self.budget.together
        plan: list[tuple[int, int, tuple[str, ...]]] = []
        largest_first = sorted(sized.items(), key=lambda each: -each[1])
        most = self.budget.together // 4 // (RUNS * len(self.every))
        plain = [(index, steps) for index, steps in largest_first if not self._is_more(index)]
        whole = next((index for index, steps in plain if steps <= most), None)
        sure = whole
        if sure is None:
            least_first = [index for index, _ in reversed(plain)]
            shows = (index for index in least_first if self._elements(index) >= LEAST_ELEMENTS)
            sure = next(shows, next(iter(least_first), None))
        # One size has its share for sure, then the values of further kinds, which would be left uncovered; of the other
        # sizes what costs little is not left out for what costs much.
        for index, steps in sorted(largest_first, key=lambda e: (e[0] != sure, not self._has_kinds(e[0]), e[1])):
            distributions = self.every if index == whole else self.distributions[index]
            cost = RUNS * steps * len(distributions)
            if cost > left and index != alone:
                too_large.append(index)
                continue
            left -= cost
            plan.append((index, steps, distributions))
        plan.sort(key=lambda each: (self._is_more(each[0]), -each[1]))
        example = self._example(plan)
        yield from self._left_out(too_large)
        if too_large and all(self._elements(index) < LEAST_ELEMENTS for index, *_ in plan):
            yield {"event": "error", "text": "no shape is small enough to emulate"}
            return
        proven, is_sound = False, False
        for done, (index, steps, distributions) in enumerate(plan):
            if self._is_more(index) and not is_sound:
                break
            share = 0.45 + 0.55 * done / len(plan)
            yield {"event": "progress", "text": f"Emulating at {at(self.cases[index][0].shape)}", "share": share}
            for salt, distribution in enumerate(distributions):
                event = self.compared(index, steps, distribution, salt, stop)
                yield {"shape": dict(self.cases[index][0].shape), "distribution": distribution, **event}
                if event["event"] == "unsupported":
                    if distribution in KINDS:
                        continue
                    break
                if not event["ok"]:
                    return
                is_sound = True
                if index == example and distribution == distributions[-1]:
                    proven = True
        if proven and example is not None:
            yield {"event": "progress", "text": "Changing one input at a time", "share": 0.95}
            yield from dependence_events(self, example, stop)
        if self.unfilled and is_sound and (read := self._unfilled_read(plan[0][0], stop)) is not None:
            yield read
            return
        if (large := self._own_size(too_large)) is not None and is_sound:
            yield {"event": "progress", "text": "Emulating some blocks at the program's own size", "share": 0.97}
            event = picked_event(self, large, stop)
            yield event
            if not event.get("ok", True):
                return
        if not self.original.problem.steps and (counted := self._counted()) is not None:
            yield {"event": "progress", "text": "Counting what both do", "share": 0.98}
            with suppress(LaunchError):
                works = self.works(counted, stop)
                if works is not None:
                    original, candidate = works
                    yield {"event": "work", "original": asdict(original), "candidate": asdict(candidate)}
        yield {"event": "done"}

    def _own_size(self, too_large: Collection[int]) -> int | None:
        """The case of the program's own size, where it is not run whole."""
        own = self.original.problem.own_shape
        return next((index for index in too_large if self.cases[index][0].shape == own), None)

    @property
    def adds_up(self) -> bool:
        """Whether a kernel changes memory of the grid by atomics."""
        programs = (*self.original.programs, *self.candidate.programs)
        return any(step.opcode in ("atom", "red") for program in programs for step in program.steps)

    def named(self, variables: Mapping[str, bytes], program: Program) -> dict[str, bytes]:
        """The file's variables by the names that they have in the PTX."""
        return _mangled(variables, program)

    def _has_kinds(self, index: int) -> bool:
        return any(each in KINDS for each in self.distributions[index])

    def _is_more(self, index: int) -> bool:
        """Whether a case shows nothing by itself, where the original is at fault at all the others."""
        return not {*EDGE_DISTRIBUTIONS} <= {*self.distributions[index]}

    def _left_out(self, too_large: Sequence[int]) -> Iterator[Event]:
        """What is said of the cases for which there is no time."""
        budget = self.budget
        limit = f"the emulator takes on {budget.launch:,} lane-steps for one launch and {budget.together:,} in all"
        kinds = [each for index in too_large if self._has_kinds(index) for each in self.distributions[index]]
        for each in kinds:
            yield {"event": "uncovered", "what": "input", "text": f"{each} values were not tried: {limit}"}
        shapes = [self.cases[index][0].shape for index in sorted(too_large) if not self._has_kinds(index)]
        if shapes:
            sizes = [at(shape) for shape in shapes]
            more = f" and {len(sizes) - 3} more" if len(sizes) > 3 else ""
            yield {"event": "note", "text": f"not run whole at {'; '.join(sizes[:3])}{more}: {limit}"}

    @property
    def every(self) -> tuple[str, ...]:
        """The distributions of the largest shape for which there is time."""
        return (*EVERY_DISTRIBUTION, THRESHOLD) if has_threshold_values(self.original.problem) else EVERY_DISTRIBUTION

    def works(self, index: int, stop: IsCancelled) -> tuple[Work, Work] | None:
        """What some blocks of each side, of one kernel each, do at one shape on the same values; None where that is
        more than is taken on. Raises LaunchError.

        The values are the same in every process, so that the same texts have the same prediction, and what the original
        does is counted once for all candidates that this process is asked about.
        """
        asked, case = self.original.problem, self.cases[index][0]
        given = cache(partial(arguments_of, asked, case, "normal", COUNTED_SEED))
        variables = cache(partial(variables_of, asked, case, "normal", COUNTED_SEED))
        found: list[Work] = []
        for side, own in zip((self.original, self.candidate), self.cases[index], strict=True):
            (program,) = side.programs
            key = program.sha256, program.kernel, repr(asked), repr(own)
            work = _counted_works.get(key) or self._work(program, own, given(), variables(), stop)
            if work is None:
                return None
            _counted_works[key] = work
            found.append(work)
        return found[0], found[1]

    def _work(
        self, program: Program, own: Case, given: list[Argument], variables: Mapping[str, bytes], stop: IsCancelled
    ) -> Work | None:
        threads = own.block[0] * own.block[1] * own.block[2]
        blocks = min(_threads(own) // threads, max(1, COUNTED_LANES // threads))
        ran = run(
            program,
            Launch(own.grid, own.block, own.dynamic_shared_bytes),
            given,
            variables=_mangled(variables, program),
            most_lane_steps=CANDIDATE_FACTOR * self.budget.launch,
            with_reach=True,
            some_blocks=blocks,
            is_cancelled=stop,
        )
        return work_of(program, ran, blocks, threads) if ran.is_complete else None

    def _counted(self) -> int | None:
        """The user's own shape, or, where that is not known, the largest that is not too large and no secret: the same
        text has the same prediction."""
        asked = self.original.problem
        known = [i for i, (case, _) in enumerate(self.cases) if case.shape in (asked.own_shape, *asked.check)]
        fitting = [i for i in known if self._bytes(self.cases[i][0]) <= MOST_COUNTED_BYTES]
        own = [i for i in fitting if self.cases[i][0].shape == asked.own_shape]
        return next(iter(own), max(fitting, key=lambda i: self._bytes(self.cases[i][0]), default=None))

    def _bytes(self, case: Case) -> int:
        return self.original.problem.bytes(case.shape)

    def _example(self, plan: Sequence[tuple[int, int, tuple[str, ...]]]) -> int | None:
        """The largest shape at which there is time to change each input alone."""
        changes = len(changes_of(self.original.problem, self.cases[plan[0][0]][0])) if plan else 0
        affordable = [
            (steps, index) for index, steps, _ in plan if (RUNS + 2) * (changes + 1) * steps <= self.budget.together
        ]
        return max(affordable)[1] if affordable else None

    def _sized(self, stop: IsCancelled) -> tuple[dict[int, int], list[int]]:
        """What one launch of the original takes at each shape, smallest first, and the shapes that take too much.

        What a thread did at the last shape says which are not even tried; one that does more than that is stopped.
        """
        sized: dict[int, int] = {}
        too_large: list[int] = []
        each_thread = 0.0
        for index in sorted(range(len(self.cases)), key=lambda i: (_threads(self.cases[i][0]), self._elements(i))):
            case = self.cases[index][0]
            is_large = self.original.problem.bytes(case.shape) > MOST_BYTES
            wanted = each_thread * _threads(case) + LAUNCH_STEPS * sum(repeat.times for repeat in case.repeats)
            if is_large or wanted > self.budget.launch:
                too_large.append(index)
                continue
            try:
                ran = self.run(self.original, index, "normal", 0, stop)
            except LaunchError:
                sized[index] = 0
                continue
            each_thread = ran.thread_steps / _threads(case)
            if FaultKind.STEP_LIMIT in ran.kinds:
                too_large.append(index)
            else:
                sized[index] = ran.lane_steps
        return sized, too_large

    def _alone(self, sized: dict[int, int], too_large: list[int], stop: IsCancelled) -> int | None:
        """The shape that is run although it takes more than `Budget.launch`, moved to the others, where these show
        nothing."""
        if any(self._elements(index) >= LEAST_ELEMENTS and not self._is_more(index) for index in sized):
            return None
        small = (i for i in too_large if self.original.problem.bytes(self.cases[i][0].shape) <= MOST_BYTES)
        index = min((i for i in small if not self._is_more(i)), key=lambda i: _threads(self.cases[i][0]), default=None)
        if index is None:
            return None
        with suppress(LaunchError):
            ran = self.run(self.original, index, "normal", 0, stop, most=self.budget.alone)
            if FaultKind.STEP_LIMIT not in ran.kinds:
                too_large.remove(index)
                sized[index] = ran.lane_steps
                return index
        return None

    def _elements(self, index: int) -> int:
        return sum(self.cases[index][0].counts.values())

    def run(
        self,
        side: Side,
        index: int,
        distribution: str,
        salt: int,
        stop: IsCancelled,
        *,
        poison: int = POISONS[0],
        alter: Alteration | None = None,
        change: Change | None = None,
        unwritten: Collection[str] = (),
        most: int | None = None,
        atomic_order: int | None = None,
        after: Ran | None = None,
    ) -> Ran:
        """One launch on values that depend on the seed, the shape and the salt alone; `after` is the launch of this
        side that its variables hold the contents of. Raises LaunchError."""
        if stop():
            raise CancelledError
        asked = self.original.problem
        case, other = self.cases[index]
        own = case if side is self.original else other
        seed = self.seed_of(index, salt)
        given = arguments_of(asked, case, distribution, seed, poison=poison, alter=alter, change=change)
        held = {argument.name: argument for argument in given}
        variables = variables_of(asked, case, distribution, seed, alter=alter, change=change)
        poisoned = results_of(asked, case, poison)
        state = dict(after.variables) if after is not None else {}
        all_of: list[Ran] = []
        for number, names, starts in launches_of(side.problem, own, tuple(held)):
            program = side.programs[number]
            first = _mangled({**variables, **poisoned}, program)
            ran = run(
                program,
                Launch(own.grid, own.block, own.dynamic_shared_bytes),
                [behind(held[name], start) for name, start in zip(names, starts, strict=True)],
                variables={**first, **state},
                unwritten=unwritten if state else {*unwritten, *_mangled(poisoned, program)},
                most_lane_steps=most or self.budget.launch,
                atomic_order=atomic_order,
                is_cancelled=stop,
            )
            faults = faults_of(program, ran, side.own)
            grave = tuple(fault for fault in faults if fault.kind is not FaultKind.UNUSED_RESULT)
            places = dict(zip(names, starts, strict=True))
            outputs = {n: put_behind(held.get(n), places.get(n, 0), data) for n, data in ran.outputs.items()}
            spent = ran.lane_steps + (LAUNCH_STEPS if side.problem.steps else 0)
            left = self._results(program, ran.variables, {**variables, **poisoned})
            kept = ran.changed_inputs, ran.changed_variables, spent, ran.tallies.lane_steps, ran.variables, ran.printed
            all_of.append(Ran({**outputs, **left}, grave, *kept))
            if not ran.is_complete:
                break
            # what a step wrote is there for the next one
            state = dict(ran.variables)
            held |= {n: ArrayArgument(n, data) for n, data in outputs.items() if side.problem.steps}
        return all_of[0] if len(all_of) == 1 else in_order(all_of)

    def _results(self, program: Program, left: Mapping[str, bytes], before: Mapping[str, bytes]) -> dict[str, Any]:
        """What a launch left in the variables that are compared. One that the compiler left out of a program holds what
        it held before."""
        found: dict[str, Any] = {}
        for array in self.original.problem.results:
            (name,) = _mangled({array.name: b""}, program)
            element = element_type(array.type)
            first = self.original.programs[0]
            (its,) = _mangled({array.name: b""}, first)
            variable = first.module.variables.get(its) or program.module.variables.get(name)
            if element is None or variable is None:
                continue
            begun = before.get(array.name) or (variable.initial or b"").ljust(variable.size or 0, b"\0")
            found[array.name] = as_numbers(element.scalar, left.get(name, begun))
        return found

    def _guesses_behind(self, fault: Fault, index: int) -> tuple[Guess, ...]:
        """What was guessed that a fault of the original may come of. The sizes are no part of it where the same happens
        at some that divide as the program's own."""
        guesses = self.original.problem.guesses_behind(fault, self.cases[index][0].shape)
        others = tuple(guess for guess in guesses if guess.about is not About.SIZE)
        if others != guesses and (fault.kind, fault.file, fault.line) in _faults_alike(self):
            return others
        return guesses

    def _unfilled_read(self, index: int, stop: IsCancelled) -> Event | None:
        """An event "case" where the candidate reads what its host code no longer writes."""
        problem = self.original.problem
        arguments = tuple(
            replace(each, role="out") if isinstance(each, Array) and each.name in self.unfilled else each
            for each in problem.arguments
        )
        empty = replace(self, original=replace(self.original, problem=replace(problem, arguments=arguments)))
        ran = empty.run(self.candidate, index, "normal", 0, stop)
        fault = next((each for each in ran.faults if each.kind is FaultKind.UNINITIALISED_READ), None)
        if fault is None:
            return None
        reason = f"{said(fault)}; the candidate's host code no longer fills {' and '.join(self.unfilled)}"
        return {"shape": dict(self.cases[index][0].shape), "distribution": "normal", **unsafe(reason)}

    def _other_variables(self, own: Sequence[Ran], theirs: Sequence[Ran]) -> list[str]:
        """Variables of both programs beyond those that are compared, such as members of a class, that other files may
        read and in which the candidate leaves other bytes."""
        compared = _mangled({array.name: b"" for array in self.original.problem.results}, self.candidate.programs[0])
        touched = own[0].changed_variables | theirs[0].changed_variables
        found: list[str] = []
        for name in sorted(touched - compared.keys()):
            sides = [ran.variables.get(name) for ran in (own[0], own[1], theirs[0])]
            is_own = name.startswith("_ZL") or "_GLOBAL__N_" in name
            if None not in sides and not is_own and sides[0] == sides[1] != sides[2]:
                found.append(demangle(name))
        return found

    def seed_of(self, index: int, salt: int) -> int:
        return (self.seed * 1009 + index) * 101 + salt

    def compared(
        self,
        index: int,
        steps: int,
        distribution: str,
        salt: int,
        stop: IsCancelled,
        change: Change | None = None,
        after: tuple[Ran | None, Ran | None] = (None, None),
    ) -> Event:
        """One shape and distribution: an event "case", or "unsupported" where the original is not sound there. `after`
        are the launches that went before, of both sides, where the file's variables hold what these left."""
        run_ = partial(self.run, index=index, distribution=distribution, salt=salt, stop=stop, change=change)
        original = partial(run_, self.original, most=4 * self.budget.launch, after=after[0])
        try:
            own = [original(poison=poison, atomic_order=order) for poison, order in zip(POISONS, _ORDERS, strict=True)]
        except LaunchError as error:
            return unsupported(f"the original cannot be launched there: {error}")
        most = max(
            CANDIDATE_FACTOR * max(steps, own[0].lane_steps),
            THREAD_STEPS * _threads(self.cases[index][1]),
            self.budget.least_candidate,
        )
        # Where the original waits for ever, a candidate that takes too long does no worse.
        excused = own[0].kinds | ({FaultKind.STEP_LIMIT} if FaultKind.DEADLOCK in own[0].kinds else set())
        theirs: list[Ran] = []
        for poison, order in zip(POISONS, _ORDERS, strict=True):
            try:
                theirs.append(run_(self.candidate, poison=poison, most=most, atomic_order=order, after=after[1]))
            except LaunchError as error:
                return unsafe(f"it cannot be launched: {error}")
            if fault := theirs[-1].fault(but=excused):
                ends = fault.kind is not FaultKind.STEP_LIMIT
                return unsafe(said(fault)) if ends else {**unsafe(said(fault)), "timed_out": True}
        if stopped := stops_alone(own[0], theirs[0]):
            return unsafe(stopped)
        if fault := own[0].fault() or own[1].fault():
            cured = not (theirs[0].faults or theirs[1].faults)
            told = said(fault) + ("; the candidate does not do that" if cured else "")
            if guessed := self._guesses_behind(fault, index):
                return unsupported(not_reconstructed(told, guessed))
            cured = cured and (not _RACES.issuperset(own[0].kinds) or self._write_alike(own, theirs))
            return unsupported(f"the original is not sound here: {told}", cured=cured)
        if changed := own[0].changed_inputs:
            return unsupported(f"the original is not sound here: it changes its input {changed[0]}")
        if changed := theirs[0].changed_inputs:
            return unsafe(f"it changes its input {changed[0]}")
        case = self.cases[index][0]
        given = arguments_of(self.original.problem, case, distribution, self.seed_of(index, salt), change=change)
        return self._judged(own, theirs, distribution, Moved(original), case, arrays_of(given))

    def _write_alike(self, own: Sequence[Ran], theirs: Sequence[Ran]) -> bool:
        """Whether both sides write the same elements."""

        def wrote(runs: Sequence[Ran], name: str, role: str) -> Any:
            return written_of([ran.outputs[name] for ran in runs], role)

        return all(
            equal_bits(wrote(own, output.name, role), wrote(theirs, output.name, role))
            for output, role in outputs_of(self.original.problem)
            if all(output.name in ran.outputs for ran in (*own, *theirs))
        )

    def _judged(
        self,
        own: list[Ran],
        theirs: list[Ran],
        distribution: str,
        moved: Moved,
        case: Case,
        given: Mapping[str, Any],
    ) -> Event:
        """An event "case" from the runs of both sides; `given` is what the arrays held before."""
        differences = []
        spread, restless = False, False
        loose: dict[str, str] = {}
        weighed = 0
        sample = {}
        why = other_prints(own, theirs)
        variables = {array.name for array in self.original.problem.results}
        other_variables = self._other_variables(own, theirs)
        restless_variables: list[str] = []  # such as a list in the order in which blocks come
        for output, role in outputs_of(self.original.problem):
            if any(output.name not in ran.outputs for ran in (*own, *theirs)):
                continue  # a variable that neither program has
            mine, others = ([ran.outputs[output.name] for ran in runs] for runs in (own, theirs))
            due, wrote = (written_of(each, role) for each in (mine, others))
            if output.name in variables and not is_steady(output, mine, due):
                restless_variables.append(output.name)
                continue
            if not output.is_float and not equal_bits(mine[0][due], mine[1][due]):
                return unsupported(f"the original's own {output.name} differs from run to run")
            if output.is_float and not equally_finite(output, mine[0][due], mine[1][due]):
                return unsupported(f"the original's own {output.name} is finite in one run and not in another")
            is_same = equal_bits(wrote, due) and all(
                equal_bits(other[due], one[due]) for other, one in zip(others, (mine[0], others[0]), strict=True)
            )
            tolerance = 0.0 if is_same else tolerance_for(output, mine, due, distribution, moved)
            if not is_same:
                others = open_results(output, mine[0], others, distribution, moved)
            found = compare(output, others[0], mine[0], (wrote, due), tolerance)
            if found.why and distribution != "zeros":
                tolerance = wider_tolerance(output, mine[0], due, tolerance, moved)
                found = compare(output, others[0], mine[0], (wrote, due), tolerance)
            again = compare(output, others[1], others[0], (wrote, wrote), tolerance)
            if output.name in self.original.problem.unread:
                other_variables += [output.name] if found.why or again.why else []
                continue
            differences.append(found)
            if not why and found.why:
                why = found.why
            elif not why and again.why:
                why = f"it gives another result when the memory around its arrays holds other values: {again.why}"
            spread = spread or is_spread(output, mine[0][due])
            weighed = max(weighed, int(due.sum()))
            steady, steady_too = equal_bits(mine[0][due], mine[1][due]), equal_bits(others[0][wrote], others[1][wrote])
            restless = restless or (steady and not steady_too)
            if output.is_float and tolerance >= 0.0 and distribution != "zeros":
                before = given.get(output.name) if role == "in-out" else None
                if found_loose := impostor_that_passes(output, mine[0], due, tolerance, before, case.shape):
                    loose[output.name] = found_loose
            sample[output.name] = repr(mine[0][:1].tolist())
        event = case_event(differences, why, spread=spread, sample=sample)
        return {
            **event,
            "restless": restless,
            "loose": loose,
            "weighed": weighed,
            "prints_lost": are_prints_lost(own, theirs),
            "restless_variables": restless_variables,
            "other_variables": other_variables,
        }


@lru_cache(maxsize=2)
def _faults_alike(comparison: Comparison) -> frozenset[tuple[FaultKind, str, int]]:
    """What the original does wrong at sizes that divide as the program's own; empty where it cannot be run there."""
    problem = comparison.original.problem
    shape = alike_shape(problem.symbols, problem.own_shape, problem.size)
    with suppress(ExpressionError, LaunchError):
        case = problem.case(shape or {})
        ran = replace(comparison, cases=((case, case),)).run(comparison.original, 0, "normal", 0, never_cancelled)
        return frozenset((fault.kind, fault.file, fault.line) for fault in ran.faults)
    return frozenset()


_counted_works: dict[tuple[str, ...], Work] = {}


def _threads(case: Case) -> int:
    """Of all launches."""
    times = sum(repeat.times for repeat in case.repeats) or 1
    return times * prod(case.grid) * prod(case.block)


def _mangled(variables: Mapping[str, bytes], program: Program) -> dict[str, bytes]:
    """The file's variables by the names that they have in the PTX."""
    names = {demangle(name).rpartition("::")[2]: name for name in program.module.variables}
    return {names.get(name, name): content for name, content in variables.items()}
