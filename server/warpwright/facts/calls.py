"""Calls of one warp: device functions, member functions and lambdas are run in place, built-ins by intrinsics.py."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpwright.facts import ir
from warpwright.facts.addressing import pointer_to_local
from warpwright.facts.barrier_objects import barrier_method
from warpwright.facts.callees import fit, special_arguments, visible
from warpwright.facts.evaluate import Evaluator
from warpwright.facts.intrinsics import call_intrinsic, group_method
from warpwright.facts.lower import Lowerer
from warpwright.facts.places import (
    Frame,
    Location,
    Reference,
    SlotPlace,
)
from warpwright.facts.predication import NEVER
from warpwright.facts.types import UNKNOWN_TYPE, CType
from warpwright.facts.unit import FunctionText
from warpwright.facts.values import (
    MOST_KEPT,
    AnyValue,
    ArrayValue,
    Closure,
    FunctionName,
    Group,
    StructValue,
    Value,
    clone,
    unknown,
)
from warpwright.syntax.nodes import by_reference, function_declarator, uncommented

MAX_CALL_DEPTH = 12
MAX_RECURSION = 1
"""Runs of a function within its own run whose arguments are not known; each may call it several times."""
MAX_RECURSIONS = 200
"""Runs of functions within their own runs, of one warp."""


@dataclass(slots=True)
class Overloads:
    """The functions that a call by name may mean, with the arguments of explicit specializations, the others, and which
    of these fits by the arguments' types: by their places in memory, so they are kept with it."""

    texts: Sequence[FunctionText]
    special: list[tuple[FunctionText, list[str]]]
    general: list[FunctionText]
    fitting: dict[tuple[int, ...], tuple[list[CType], FunctionText]] = field(default_factory=lambda: {})


@dataclass(slots=True)
class Caller(Evaluator):
    """Runs the bodies of called functions."""

    overloads: dict[ir.Call, Overloads] = field(default_factory=lambda: {})  # looked up once for a call

    def call(self, node: ir.Call, mask: int, returned: Frame | None = None) -> AnyValue:
        """What a call returns; `returned.place` becomes the place that a returned reference names."""
        called = self._called(node)
        if isinstance(called, Closure):
            return self._inline(node, called.function, node.arguments, mask, called.frame, returned)
        if isinstance(called, FunctionName):
            return self.call(ir.Call(node.span, called.name, node.arguments), mask, returned)
        if node.target is not None:
            method = self.method(node, node.target, mask)
            if method is not None:
                objects = [node.target] if takes_this(method) else []
                return self._inline(node, method, [*objects, *node.arguments], mask, None, returned)
            if barrier_method(self, node, self.place(node.target, mask), mask):
                return unknown()
            target = self.any_value(node.target, mask)
            if isinstance(target, Group):
                return group_method(self, target, node, mask)
            for argument in node.arguments:
                self.any_value(argument, mask)
            self.cost += NEVER  # what is not known is not short
            self.recorder.intervals.lost = True
            return unknown()
        if node.owner is not None:
            method = self.static_method(node.owner, node, mask)
            if method is not None and not takes_this(method):
                return self._inline(node, method, node.arguments, mask, None, returned)
        found = self.user_function(node, mask)
        if found is not None:
            return self._inline(node, found, node.arguments, mask, None, returned)
        return call_intrinsic(self, node, mask)

    def _called(self, node: ir.Call) -> AnyValue | None:
        """The lambda or function that a variable, a lambda or `*pointer` in the place of a function's name means."""
        target = node.target
        if isinstance(target, ir.Lambda):
            return Closure(target.function, self.frame)
        if isinstance(target, ir.Deref):
            target = target.pointer
        if not isinstance(target, ir.Var) or (target is node.target and target.name != node.name):
            return None
        held = self.load(SlotPlace(self.frame, target.slot), 0)
        return held if isinstance(held, (Closure, FunctionName)) else None

    def called_place(self, node: ir.Call, mask: int) -> Location:
        """The place that a call names, as in `view(i, j) = x`; None where the function returns no reference."""
        called = self._called(node)
        if isinstance(called, Closure):
            if not called.function.reference:
                return None
        else:
            named = self.unit.methods.get(node.name) if node.target is not None else self.unit.functions.get(node.name)
            if isinstance(called, FunctionName):
                named = self.unit.functions.get(called.name)
            elif isinstance(node.target, ir.Var) and node.target.name == node.name:
                named = self.unit.methods.get("operator()")
            if not any(_returns_reference(text) for text in named or []):
                return None
        self.see_steps()
        frame = Frame([])
        value = self.call(node, mask, frame)
        return frame.place if frame.place is not None else SlotPlace(Frame([value]), 0)

    @abstractmethod
    def static_method(self, owner: CType, node: ir.Call, mask: int) -> ir.Function | None:
        """The member function that `owner::name(...)` means."""

    def user_function(self, node: ir.Call, mask: int) -> ir.Function | None:
        overloads = self.overloads.get(node)
        if overloads is None:
            overloads = self.overloads[node] = self._overloads(node)
        if not overloads.texts:
            return None
        text = self._meant(node, overloads, mask)
        if text is None:
            return None
        bindings = self.bindings(node, text, mask) if text.template else {}
        return self.lowered(text, bindings)

    def _overloads(self, node: ir.Call) -> Overloads:
        texts = self.unit.functions.get(node.name, ())
        self.spend(len(texts))
        matching = [t for t in texts if parameter_count(t) == len(node.arguments)] or [
            t for t in texts if parameter_count(t) > len(node.arguments)
        ]
        seen = visible(matching, node)
        special = [(text, arguments) for text in seen if (arguments := special_arguments(text)) is not None]
        general = [text for text in seen if all(text is not other for other, _ in special)]
        if node.template_arguments:
            general = [text for text in general if text.template] or general
        return Overloads(seen, special, general)

    def _fitting(self, overloads: Overloads, general: Sequence[FunctionText], given: list[CType]) -> FunctionText:
        """Of some of the overloads, the one that fits arguments of these types best."""
        key = tuple(map(id, (*general, *given)))
        if key not in overloads.fitting:
            self.spend(len(general))
            scores = [
                fit(self.lowered(text, {}).parameters, given, frozenset(p.name for p in text.template if p.is_type))
                for text in general
            ]
            best = max(scores)
            found = next(t for t, score in zip(reversed(general), reversed(scores), strict=True) if score == best)
            if len(overloads.fitting) >= MOST_KEPT:
                overloads.fitting.clear()
            overloads.fitting[key] = given, found
        return overloads.fitting[key][1]

    def _meant(self, node: ir.Call, overloads: Overloads, mask: int) -> FunctionText | None:
        """The function that fits the arguments best, the last of several; of a template, the specialization. None where
        the template is only declared and has no specialization for what the call gives."""
        texts, special, general = overloads.texts, overloads.special, overloads.general
        if not general:
            return self._specialization(node, overloads, mask)
        if len(texts) == 1:
            return texts[-1]
        found = general[-1]
        if len(general) > 1:
            given = [self.argument_type(argument, mask) for argument in node.arguments]
            found = self._fitting(overloads, general, given)
        if special and found.template:
            bound = self.bindings(node, found, mask)
            for text, arguments in special:
                lowerer = Lowerer(self.unit, text.source)
                if all(
                    parameter.name in bound
                    and bound[parameter.name]
                    == (lowerer.named_type(written) if parameter.is_type else lowerer.constant_of_text(written))
                    for parameter, written in zip(found.template, arguments, strict=False)
                ):
                    return text
        return found

    def _specialization(self, node: ir.Call, overloads: Overloads, mask: int) -> FunctionText | None:
        """The specialization of a template without a definition; of several by the types of the arguments."""
        found = overloads.special
        for place, given in enumerate(node.template_arguments):
            if isinstance(given, CType):
                wanted: CType | int = given
            else:
                value = self.value(given, mask)
                if not value.decided or not isinstance(value.data, int):
                    return None
                wanted = value.data
            found = [each for each in found if place < len(each[1]) and self._is_argument(*each, place, wanted)]
        if len(found) < 2:
            return found[0][0] if found else None
        given_types = [self.argument_type(argument, mask) for argument in node.arguments]
        return self._fitting(overloads, [text for text, _ in found], given_types)

    def _is_argument(self, text: FunctionText, arguments: list[str], place: int, wanted: CType | int) -> bool:
        lowerer, written = Lowerer(self.unit, text.source), arguments[place]
        return wanted == (
            lowerer.named_type(written) if isinstance(wanted, CType) else lowerer.constant_of_text(written)
        )

    def argument_type(self, argument: ir.Expr, mask: int) -> CType:
        """The type of an argument, found without what its evaluation changes or accesses."""
        while isinstance(argument, (ir.Update, ir.Assign)):
            argument = argument.target
        self.see_steps()
        enabled, self.recorder.enabled = self.recorder.enabled, False
        try:
            passed = self.any_value(argument, mask)
        finally:
            self.recorder.enabled = enabled
        return passed.type if isinstance(passed, (Value, StructValue, ArrayValue)) else UNKNOWN_TYPE

    def lowered(
        self,
        text: FunctionText,
        bindings: dict[str, CType | int],
        this: CType | None = None,
        owner: CType | None = None,
    ) -> ir.Function:
        """A function with its template parameters bound, lowered once for all warps and launches of a kernel."""
        named = sorted((k, v if isinstance(v, int) else v.name) for k, v in bindings.items())
        key = (text.node.id, repr((named, this.name if this is not None else "")))
        found = self.functions.get(key)
        if found is None:
            found = self.functions[key] = Lowerer(self.unit, text.source, bindings).function(text, this, owner)
        return found

    def bindings(self, node: ir.Call, text: FunctionText, mask: int) -> dict[str, CType | int]:
        """Template parameters from explicit arguments, then from the types of the call's arguments."""
        out: dict[str, CType | int] = {}
        for (name, is_type, _), given in zip(text.template, node.template_arguments, strict=False):
            if isinstance(given, CType):
                if is_type:
                    out[name] = given
            elif not is_type:
                value = self.value(given, mask)
                if value.decided and isinstance(value.data, int):
                    out[name] = value.data
        open_names = {name for name, is_type, _ in text.template if is_type and name not in out}
        if open_names:
            generic = self.lowered(text, out)
            for parameter, argument in zip(generic.parameters, node.arguments, strict=False):
                wanted, have = parameter.type, self.argument_type(argument, mask)
                while wanted.kind == "pointer" and wanted.to is not None and have.to is not None:
                    wanted, have = wanted.to, have.to
                label = wanted.name.replace("const ", "").strip()
                if label in open_names and have.size is not None:
                    out.setdefault(label, have)
        return out

    def _inline(
        self,
        node: ir.Call,
        function: ir.Function,
        arguments: list[ir.Expr],
        mask: int,
        closure: Frame | None,
        returned: Frame | None = None,
    ) -> AnyValue:
        self.recorder.callees.setdefault(node, (function, arguments))
        if self.call_depth >= MAX_CALL_DEPTH:
            self.recorder.left_out.add(
                f"calls are followed {MAX_CALL_DEPTH} deep: what {function.name} does is not known"
            )
            self.recorder.intervals.lost = True
            return unknown(function.returns)
        ending, self.ending, self.last_call = self.ending, self.last_call, False
        given: list[AnyValue | Reference] = []
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            place = self.place(argument, mask) if parameter.reference else None
            if place is not None:
                given.append(Reference(place))
            else:
                value = self.any_value(argument, mask)
                if isinstance(value, ArrayValue) and parameter.type.kind == "pointer":
                    value = pointer_to_local(self, argument, mask) or value
                value = self.as_type(value, parameter.type, mask)
                given.append(self.converted(clone(value) or unknown(), parameter.type))
        try:
            return self.run_function(function, given, mask, closure, returned)
        finally:
            self.ending = ending

    def run_function(
        self,
        function: ir.Function,
        given: list[AnyValue | Reference],
        mask: int,
        closure: Frame | None,
        returned: Frame | None = None,
    ) -> AnyValue:
        """Run a function's body; `returned.place` becomes the place that it returns a reference to."""
        runs = self.running.count(function)
        if runs > MAX_RECURSION:
            followed = all(not isinstance(value, Value) or value.decided for value in given)
            if not followed or self.recursions >= MAX_RECURSIONS:
                self.recorder.left_out.add(f"the recursion of {function.name} is not followed to its end")
                self.recorder.intervals.lost = True
                return unknown(function.returns)
        self.recursions += runs > 0
        outer, loops = self.frame, self.loops
        depth = len(self.guards)
        self.call_depth += 1
        self.running.append(function)
        if closure is not None:
            saved = closure.returned, closure.result, closure.wants_place, closure.place
            if len(closure.slots) < function.slots:
                closure.slots.extend([None] * (function.slots - len(closure.slots)))
            self.frame = closure
            closure.returned, closure.result, closure.place = 0, None, None
        else:
            saved = (0, None, False, None)
            self.frame = Frame([None] * max(function.slots, 1))
        self.loops = []
        for parameter, bound in zip(function.parameters, given, strict=False):
            self.frame.slots[parameter.slot] = bound
        for parameter in function.parameters[len(given) :]:
            if parameter.default is not None:
                value = self.as_type(self.any_value(parameter.default, mask), parameter.type, mask)
                self.frame.slots[parameter.slot] = self.converted(value, parameter.type)
        self.frame.wants_place = returned is not None and function.reference
        try:
            self.statement(function.body, mask)
            result = self.frame.result
            if returned is not None:
                returned.place = self.frame.place
        finally:
            if closure is not None:
                closure.returned, closure.result, closure.wants_place, closure.place = saved
            self.frame, self.loops = outer, loops
            del self.guards[depth:]
            self.call_depth -= 1
            self.running.pop()
        if result is None:
            return unknown(function.returns)
        if isinstance(result, ArrayValue):  # `return {a, b};`
            result = self.as_type(result, function.returns, mask)
        return self.converted(result, function.returns)


def takes_this(function: ir.Function) -> bool:
    """Whether a member function has an object to work on."""
    return bool(function.parameters) and function.parameters[0].name == "this"


def own_parameters(function: ir.Function) -> list[ir.FunctionParameter]:
    """The parameters that a call gives arguments for."""
    return function.parameters[1:] if takes_this(function) else function.parameters


def parameter_count(text: FunctionText) -> int:
    """How many parameters a function takes, a pack counted once."""
    declarator = function_declarator(text.node)
    return len(uncommented(declarator.child_by_field_name("parameters"))) if declarator is not None else 0


def _returns_reference(text: FunctionText) -> bool:
    return by_reference(text.source, text.node.child_by_field_name("declarator"))
