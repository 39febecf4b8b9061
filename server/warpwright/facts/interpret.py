"""Runs a kernel for one warp at a time and tells a Recorder what it sees.

Lanes run together under a mask, as on the hardware: a statement is given the lanes that are on and returns those that
go on behind it. A condition that is not known sends the same lanes down both sides and joins what they leave. A loop
is run for its first iterations; if every variable then moves by a constant per iteration, the trip count is searched
for and the interpreter jumps to a middle iteration, which counts for all that were left out, and to the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from warpwright.facts import ir
from warpwright.facts.loops import Moved, advance, deltas_of, join_slots
from warpwright.facts.model import Space
from warpwright.facts.objects import Objects
from warpwright.facts.places import (
    Frame,
    Reference,
    truth,
)
from warpwright.facts.position import Guard
from warpwright.facts.predication import NEVER, Side, Sides, is_constant
from warpwright.facts.progress import LoopPosition
from warpwright.facts.types import BOOL, UNKNOWN_TYPE
from warpwright.facts.values import (
    ASSUMED,
    EXACT,
    FULL,
    UNKNOWN,
    AnyValue,
    ArrayValue,
    Region,
    StructValue,
    Value,
    binary,
    clone,
    merge,
    soft,
    unknown,
)
from warpwright.facts.warp_memory import LoopState

UNDECIDED_ITERATIONS = 2
PROBES = 3
FULL_ITERATIONS = (16, 16, 8, 4)
"""Iterations that are run one by one before jumping, by depth of nesting."""
UNROLLED = 4
"""Successive iterations that are looked at together in the middle of a loop whose accesses the compiler merges."""
SLOTS_PER_STEP = 32
"""Variables that are kept for the second side of a condition, and joined behind it, in one step."""
HARD_LIMIT = 40
THRIFTY_LIMIT = 6
"""The same for a loop that moves unevenly, with the budget ample and with a quarter of it gone."""


_Exits = tuple[int, list[tuple[int, int]], dict[str, int]]
"""The lanes that have returned, those that left each loop, and those on their way to a label."""


@dataclass(slots=True)
class Interpreter(Objects):
    """Runs a function's statements for one warp."""

    moved: Moved = field(default_factory=dict)

    def run(self, function: ir.Function, arguments: list[AnyValue]) -> int:
        """Run the kernel's body; returns the lanes that had not returned early."""
        self.frame = self.kernel_frame = Frame([None] * max(function.slots, 1))
        for parameter, value in zip(function.parameters, arguments, strict=True):
            self.frame.slots[parameter.slot] = value
        out = self.statement(function.body, self.warp.mask)
        return out & ~self.frame.returned

    # -- statements ---------------------------------------------------------------------------------------------

    def statement(self, node: ir.Stmt, mask: int) -> int:
        if not mask:
            return 0
        self.step()
        return _STATEMENTS[type(node)](self, node, mask)

    def _block(self, node: ir.Block, mask: int) -> int:
        for child in node.body:
            if node.has_labels and isinstance(child, ir.Label):
                self.recorder.flush()
                mask |= self.frame.jumps.pop(child.name, 0)
            mask = self.statement(child, mask)
            if not mask and not node.has_labels:
                return 0
        return mask

    def _evaluate(self, node: ir.Evaluate, mask: int) -> int:
        self.last_call = node.last and self.ending
        self.value(node.expr, mask)
        return mask

    def _runs_unseen(self, node: ir.Declare) -> bool:
        """Whether a variable's struct has a destructor, or a constructor without arguments, which are not followed."""
        name = node.type.name.split("<")[0].strip()
        return f"~{name}" in self.unit.methods or (node.init is None and name in self.unit.methods)

    def _declare(self, node: ir.Declare, mask: int) -> int:
        slots = self.frame.slots
        if node.slot >= len(slots):  # a lambda's own variables
            slots.extend([None] * (node.slot + 1 - len(slots)))
        kind = node.type
        if kind.kind == "struct" and not node.reference and node.shared is None and self._runs_unseen(node):
            self.recorder.intervals.lost = True
        if node.shared is not None:
            slots[node.slot] = self.shared_variable(node.shared)
        elif node.reference and node.init is not None:
            place = self.place(node.init, mask)
            slots[node.slot] = Reference(place) if place is not None else self.any_value(node.init, mask)
        elif kind.kind == "array":
            array = ArrayValue(kind, bare=node.init is None and not node.static)
            if isinstance(node.init, ir.Construct):
                element = kind.to or UNKNOWN_TYPE
                for i, item in enumerate(node.init.arguments):
                    array.elements[i] = self.converted(self.any_value(item, mask), element)
            slots[node.slot] = array
        elif node.init is None:
            slots[node.slot] = StructValue(kind, {}) if kind.kind == "struct" else unknown(kind, UNKNOWN, False)
        else:
            made = self.as_type(self.any_value(node.init, mask), kind, mask)
            value = self.converted(clone(made) or unknown(), kind)
            old = slots[node.slot]
            slots[node.slot] = value if mask == FULL or isinstance(old, Reference) else merge(old, value, mask)
        return mask

    def shared_variable(self, variable: ir.SharedVariable) -> Value:
        name = "extern __shared__" if variable.dynamic else f"{variable.name}@{variable.span.start}"
        start = self.starts.get(name)
        if start is None:
            size = self.warp.dynamic_bytes if variable.dynamic else variable.bytes
            region = Region(variable.name, Space.SHARED, variable.element, bytes=size)
            start = self.starts[name] = Value(0, variable.type, 0, 0, False, region)
        return start if start.type is variable.type else start.holding(0, variable.type)

    def _if(self, node: ir.If, mask: int) -> int:
        condition = self.condition(node.condition, mask, node.span, "if")
        if not condition.decided:
            return self._both_sides(node, condition, mask)
        taken = truth(condition) & mask
        sides = self.recorder.sides(node.span, node.last and self.ending, node.otherwise is not None)
        if condition.basis >= ASSUMED and taken in (0, mask) and self._hides(condition, sides):
            return self._both_sides(node, condition, mask)
        if taken in (0, mask) and self.recorder.is_forced(node.span):
            self.recorder.forcing += 1
            try:
                return self._both_sides(node, condition, mask)
            finally:
                self.recorder.forcing -= 1
        if condition.basis >= ASSUMED:
            self.recorder.intervals.guessed = True
        self.guards.append(Guard(node.condition.span, mask, taken, condition, False))
        folded = self.call_depth > 0 and condition.uniform and not condition.thread and condition.basis == EXACT
        dead = folded or is_constant(node.condition)
        out = self._side(sides.then, node.then, taken, dead)
        if node.otherwise is not None and sides.otherwise is not None:
            self.guards[-1] = Guard(node.condition.span, mask, mask & ~taken, condition, False)
            out |= self._side(sides.otherwise, node.otherwise, mask & ~taken, dead)
        else:
            out |= mask & ~taken
        self.guards.pop()
        if not dead:
            self.recorder.outcome(node.span, bool(taken) or _leaves(node.then), bool(out & taken or mask & ~taken))
        return out

    def _hides(self, condition: Value, sides: Sides) -> bool:
        """Whether a condition on assumed numbers, of one outcome for the warp, would hide a side from view."""
        return not (condition.thread and sides.then.executed)

    def _side(self, side: Side, statement: ir.Stmt, mask: int, dead: bool) -> int:
        """One side of a condition; `dead` where the compiler knows which side it is."""
        if dead:
            return self.statement(statement, mask)
        self.recorder.flush()
        if not mask:
            side.skipped += self.request_weight
            return 0
        before, addressed = self.cost, self.addressed
        self.addressed = set()
        outer = self.recorder.open_sides
        outer.append(side)
        try:
            out = self.statement(statement, mask)
            self.recorder.flush()
        finally:
            outer.pop()
            self.addressed = addressed
        side.executed += self.request_weight
        side.cost = max(side.cost, self.cost - before)
        if side.requests and outer:
            outer[-1].nests = True
        return out

    def _both_sides(self, node: ir.If, condition: Value, mask: int) -> int:
        """The condition is not known: the same lanes go down both sides, and what they leave is joined."""
        self.steps += len(self.frame.slots) // SLOTS_PER_STEP
        before = [clone(v) if not isinstance(v, Reference) else v for v in self.frame.slots]
        exits = self._exits()
        never, always = self.settled if not condition.decided else (0, 0)
        self.recorder.nests()
        self.recorder.flush()
        taken = truth(condition) & mask if condition.decided else mask
        guard = Guard(node.condition.span, mask, taken, condition, True)
        self.guards.append(guard)
        out = self.statement(node.then, mask & ~never) | mask & never
        after_then = self.frame.slots
        exits_then = self._exits()
        self.frame.slots = before
        self._restore_exits(exits)
        self.recorder.flush()
        left = mask & ~taken if condition.decided else mask
        self.guards[-1] = Guard(node.condition.span, mask, left, condition, True, otherwise=True)
        out_else = self.statement(node.otherwise, mask & ~always) if node.otherwise is not None else mask
        self.recorder.flush()
        self.guards.pop()
        if not (out and out_else):
            self.recorder.intervals.leaves(condition)
            if not condition.uniform:
                self.warp.position.thinned = True
                leaving = (self._exits() if out else exits_then)[1]
                if self.loops and self.loops[-1].parted is None and exits[1] != leaving:
                    self.loops[-1].parted = guard
        if not out_else:  # only the first side goes on
            self.frame.slots = after_then
            self._restore_exits(exits if out else exits_then)
        elif out:
            self.frame.slots = join_slots(after_then, self.frame.slots, condition)
            self._restore_exits(exits)
        else:
            jumps = {**self.frame.jumps, **exits_then[2]}
            self._restore_exits(exits)
            self.frame.jumps = jumps
        return out | out_else

    def _exits(self) -> _Exits:
        return self.frame.returned, [(s.broken, s.continued) for s in self.loops], dict(self.frame.jumps)

    def _restore_exits(self, exits: _Exits) -> None:
        self.frame.returned, self.frame.jumps = exits[0], dict(exits[2])
        for state, (broken, continued) in zip(self.loops, exits[1], strict=True):
            state.broken, state.continued = broken, continued

    def _loop(self, node: ir.Loop, mask: int) -> int:
        if node.init is not None:
            mask = self.statement(node.init, mask)
        state = LoopState()
        self.cost += NEVER
        self.loops.append(state)
        self.loop_depth += 1
        guard_depth = len(self.guards)
        outer_weight = self.weight
        outer = self.warp.position.loop
        self.recorder.loops_run += 1
        self.warp.position.loop = LoopPosition(self.recorder.loops_run)
        try:
            left = self._iterate(node, state, mask)
        finally:
            self.weight = outer_weight
            self.warp.position.loop = outer
            self.loop_depth -= 1
            self.loops.pop()
            del self.guards[guard_depth:]
        return (left | state.broken) & ~self.frame.returned

    def _iterate(self, node: ir.Loop, state: LoopState, mask: int) -> int:
        """Returns the lanes that left by the condition."""
        active, left = mask, 0
        thrifty = self.steps > self.allowance // 12
        limit = PROBES if thrifty else FULL_ITERATIONS[min(self.loop_depth, len(FULL_ITERATIONS)) - 1]
        hard_limit = self._most_iterations(thrifty)
        history: list[list[AnyValue | Reference | None]] = []
        undecided = 0
        iteration = 0
        last_jump = False
        position = self.warp.position.loop
        self.recorder.flush()
        while active and iteration < hard_limit:
            position.iteration = iteration if not last_jump else -1
            first_of_do = node.kind == "do" and iteration == 0
            if not first_of_do and node.condition is not None:
                condition = self.condition(node.condition, active, node.span, node.kind)
                if condition.decided:
                    taken = truth(condition) & active
                    if iteration == 0:
                        if not taken and self.recorder.is_forced(node.span):
                            return self._forced_iteration(node, active)
                        self.recorder.outcome(node.span, bool(taken), passed=True)
                    self.guards.append(Guard(node.condition.span, active, taken, condition, False))
                    if condition.basis >= ASSUMED:
                        self.recorder.intervals.guessed = True
                    left |= active & ~taken
                    active = taken
                else:
                    self.guards.append(Guard(node.condition.span, active, active, condition, True))
                    undecided += 1
                    self.recorder.open_ended = True
                    self._may_wait(condition)
                    if undecided > UNDECIDED_ITERATIONS:
                        left |= active
                        self._forget_progress(history)
                        break
            if not active:
                break
            out = self.statement(node.body, active)
            active = (out | state.continued) & ~self.frame.returned
            state.continued = 0
            if node.step is not None and active:
                self.value(node.step, active)
            if not node.straight:
                self.recorder.flush()
            iteration += 1
            if active and self.steps > self.allowance // 2:  # what stands behind the loop is to be seen too
                self._forget_progress(history)
                break
            if last_jump or undecided or not active:
                continue
            history.append(list(self.frame.slots))
            if len(history) > PROBES:
                history.pop(0)
            if iteration == PROBES:
                jumped = self._jump(node, state, history, active, limit - PROBES)
                if jumped is not None:
                    active = jumped
                    last_jump = True
        self.recorder.flush()
        if active:
            self.recorder.open_ended = True
            self._ends_early(node)
        return left if not active else left | active

    def _most_iterations(self, thrifty: bool) -> int:
        """How many iterations are run of a loop that moves unevenly."""
        return THRIFTY_LIMIT if thrifty else HARD_LIMIT

    def _may_wait(self, condition: Value) -> None:
        """How long a loop goes on is not known."""

    def _ends_early(self, node: ir.Loop) -> None:
        """A loop is left before its end."""

    def _forced_iteration(self, node: ir.Loop, active: int) -> int:
        """One iteration of a loop that no warp entered, to see what it does."""
        self.recorder.forcing += 1
        assumed = soft(BOOL, True)
        self.guards.append(Guard(node.span, active, active, assumed, True))
        try:
            self.statement(node.body, active)
        finally:
            self.recorder.forcing -= 1
            self.guards.pop()
        self.recorder.flush()
        return active & ~self.frame.returned

    def _jump(
        self, node: ir.Loop, state: LoopState, history: list[list[AnyValue | Reference | None]], active: int, few: int
    ) -> int | None:
        """Run a middle iteration and go to the last one; the lanes that are still in the loop.

        None where the loop is short or its length is not known.
        """
        if len(history) < PROBES or node.condition is None:
            return None
        deltas = deltas_of(history)
        remaining = self._remaining(node.condition, deltas, active)
        if remaining is None or remaining <= few:
            return None
        base = list(self.frame.slots)
        outer = self.weight
        unrolled = self.recorder.flush()
        together = UNROLLED if node.straight and unrolled and remaining > UNROLLED else 1
        middle = remaining // 2
        middle -= (PROBES + middle) % together
        self.weight = outer * (remaining - 1) / together
        out = 0
        position = self.warp.position.loop
        for ahead in range(middle, middle + together):
            self.frame.slots = advance(base, deltas, ahead, self.moved)
            position.iteration, position.skips = -1, True
            taken = self._decided(node, active)
            out |= self.statement(node.body, taken) | state.continued
            state.continued = 0
        self.recorder.flush()
        position.skips = False
        self.weight = outer
        self.frame.slots = advance(base, deltas, remaining - 1, self.moved)
        return active & out or active

    def _decided(self, node: ir.Loop, active: int) -> int:
        if node.condition is None:
            return active
        condition = self.condition(node.condition, active, node.span, node.kind)
        return truth(condition) & active if condition.decided else active

    def _remaining(self, condition: ir.Expr, deltas: dict[int, int | float], active: int) -> int | None:
        """How many more iterations some lane makes; None where the condition does not tell."""
        base = list(self.frame.slots)
        enabled, self.recorder.enabled = self.recorder.enabled, False

        def goes_on(count: int) -> bool | None:
            self.frame.slots = advance(base, deltas, count, self.moved)
            value = self.scalar(self.any_value(condition, active))
            return bool(truth(value) & active) if value.decided else None

        try:
            low, high = 0, 1
            if goes_on(0) is None:
                return None
            while goes_on(high):
                low, high = high, high * 2
                if high > 1 << 24:
                    return None
            while high - low > 1:
                middle = (low + high) // 2
                if goes_on(middle):
                    low = middle
                else:
                    high = middle
            return high
        finally:
            self.recorder.enabled = enabled
            self.frame.slots = base

    def _forget_progress(self, history: list[list[AnyValue | Reference | None]]) -> None:
        """After a loop of unknown length, what it moved is known only up to its step."""
        if not history:
            return
        start = history[0]
        self.frame.slots = join_slots(start, self.frame.slots, soft(BOOL, False))

    def _switch(self, node: ir.Switch, mask: int) -> int:
        value = self.asked(self.value(node.value, mask))
        hits, left = self._hits(node, value, mask)
        ways = [hit for hit in (*hits, left) if hit]
        weight, in_loop = self.request_weight, self.loop_depth > 0
        self.recorder.branch(
            node.value.span,
            node.span,
            "switch",
            value,
            ways[0] if ways else 0,
            mask,
            weight,
            self.warp.position,
            in_loop,
        )
        if not value.decided:
            self.recorder.intervals.lost = True
        state = LoopState()
        self.loops.append(state)
        on, depth = 0, len(self.guards)
        for hit, (_, statements) in zip(hits, node.cases, strict=True):
            on |= hit
            self.recorder.flush()
            self.guards.append(Guard(node.value.span, mask, on, value, not value.decided))
            for child in statements:
                on = self.statement(child, on)
            self.recorder.flush()
            del self.guards[depth:]
        self.loops.pop()
        if self.loops:
            self.loops[-1].continued |= state.continued
        out = on | state.broken | left
        return out & ~self.frame.returned

    def _hits(self, node: ir.Switch, value: Value, mask: int) -> tuple[list[int], int]:
        """The lanes that go to each case, and those that go to none; all go to all where the value is not known."""
        if not value.decided:
            return [mask] * len(node.cases), mask
        hits, left = [], mask
        for label, _ in node.cases:
            match = binary("==", value, self.value(label, mask)) if label is not None else None
            hit = left if match is None or not match.decided else truth(match) & left
            hits.append(hit if label is not None else 0)
            left &= ~hits[-1]
        for number, (label, _) in enumerate(node.cases):
            if label is None:
                hits[number], left = left, 0
        return hits, left

    def _return(self, node: ir.Return, mask: int) -> int:
        if self.call_depth == 0:
            self.cost += NEVER
        if node.value is not None and self.frame.wants_place:
            self.frame.place = self.place(node.value, mask)
        elif node.value is not None:
            value = clone(self.any_value(node.value, mask)) or unknown()
            self.frame.result = value if self.frame.result is None else merge(self.frame.result, value, mask)
        self.frame.returned |= mask
        self.frame.left = self.guards[-1] if self.guards else None
        return 0

    def _goto(self, node: ir.Goto, mask: int) -> int:
        self.cost += NEVER
        self.recorder.flush()
        self.recorder.intervals.lost = True
        self.frame.jumps[node.label] = self.frame.jumps.get(node.label, 0) | mask
        return 0

    def _label(self, _node: ir.Label, mask: int) -> int:
        return mask

    def _break(self, _node: ir.Break, mask: int) -> int:
        self.cost += NEVER
        if self.loops:
            self.loops[-1].broken |= mask
        return 0

    def _continue(self, _node: ir.Continue, mask: int) -> int:
        self.cost += NEVER
        if self.loops:
            self.loops[-1].continued |= mask
        return 0


def _leaves(statement: ir.Stmt) -> bool:
    """Whether a statement does nothing but leave its loop or function."""
    if isinstance(statement, ir.Block) and len(statement.body) == 1:
        statement = statement.body[0]
    return isinstance(statement, (ir.Return, ir.Break, ir.Continue))


_Statement = Callable[..., int]

_STATEMENTS: dict[type[ir.Stmt], _Statement] = {
    ir.Block: Interpreter._block,
    ir.Evaluate: Interpreter._evaluate,
    ir.Declare: Interpreter._declare,
    ir.If: Interpreter._if,
    ir.Loop: lambda run, node, mask: run._loop(node, mask),  # a subclass has its own
    ir.Switch: Interpreter._switch,
    ir.Return: Interpreter._return,
    ir.Break: Interpreter._break,
    ir.Continue: Interpreter._continue,
    ir.Goto: Interpreter._goto,
    ir.Label: Interpreter._label,
}
