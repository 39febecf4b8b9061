"""Objects of one warp: member functions, constructors, conversions and subscripts, with their template arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpwright.cuda.functions import CONVERSION
from warpwright.facts import ir
from warpwright.facts.callees import fit
from warpwright.facts.calls import MAX_CALL_DEPTH, Caller, own_parameters, parameter_count
from warpwright.facts.lower import Lowerer
from warpwright.facts.places import FieldPlace, Frame, Location, MemoryPlace, Reference, SlotPlace
from warpwright.facts.qualified import Origin, base_types
from warpwright.facts.types import UNKNOWN_TYPE, CType
from warpwright.facts.unit import FunctionText
from warpwright.facts.values import AnyValue, ArrayValue, StructValue, Value, unknown
from warpwright.syntax.nodes import parameters_of

MAX_LINEAGE = 4
_CONVERTED = ("pointer", "int", "uint", "float", "bool")


@dataclass(slots=True)
class Objects(Caller):
    """Finds the functions of structs and runs them on their objects."""

    def method(self, node: ir.Call, target: ir.Expr, mask: int) -> ir.Function | None:
        name = node.name
        if name not in self.unit.methods and not (isinstance(target, ir.Var) and target.name == name):
            return None
        self.see_steps()
        place = self.place(target, mask)
        if place is None and not isinstance(target, ir.Construct):
            return None
        kind = _type_of(place if isinstance(place, MemoryPlace) else self.load(place, 0))
        if isinstance(target, ir.Construct):
            kind = target.type or UNKNOWN_TYPE
        elif isinstance(target, ir.Var) and target.name == name:
            name = "operator()"
        return self.member_function(kind, name, node, mask)

    def static_method(self, owner: CType, node: ir.Call, mask: int) -> ir.Function | None:
        return self.member_function(owner, node.name, node, mask)

    def member_function(
        self, kind: CType, name: str, node: ir.Call | None, mask: int, given: Sequence[CType] | None = None
    ) -> ir.Function | None:
        """The member function that takes arguments of the call's types, or of those `given`, of the struct itself or
        the nearest of its bases that has one for as many; the first of those that fit as well."""
        if self.call_depth >= MAX_CALL_DEPTH or name not in self.unit.methods:
            return None
        count = len(given) if given is not None else len(node.arguments) if node is not None else 0
        for owner, texts in self._candidates(kind, name):
            taking = [text for text in texts if _takes(text, count)]
            if not taking:
                continue
            if len(taking) == 1:
                return self._bound(taking[0], kind, owner, node, mask)
            if given is None and node is not None:
                given = [self.argument_type(argument, mask) for argument in node.arguments]
            functions = [self._bound(text, kind, owner, node, mask) for text in taking]
            scores = [
                fit(own_parameters(function), given or (), frozenset(p.name for p in text.template if p.is_type))
                for function, text in zip(functions, taking, strict=True)
            ]
            return functions[scores.index(max(scores))]
        return None

    def _bound(self, text: FunctionText, kind: CType, owner: CType, node: ir.Call | None, mask: int) -> ir.Function:
        bindings = dict(owner.origin.bindings) if isinstance(owner.origin, Origin) else {}
        if node is not None and text.template:
            bindings |= self.bindings(node, text, mask)
        return self.lowered(text, bindings, kind, owner)

    def _candidates(self, kind: CType, name: str) -> Iterator[tuple[CType, list[FunctionText]]]:
        """The functions of that name of the struct and of its bases, those of a derived one first."""
        texts = self.unit.methods.get(name, [])
        for owner in self._lineage(kind, 0) if texts else ():
            label = owner.origin.text.name if isinstance(owner.origin, Origin) else owner.name
            yield owner, [text for text in texts if text.owner == label]

    def _lineage(self, kind: CType, depth: int) -> Iterator[CType]:
        yield kind
        if isinstance(kind.origin, Origin) and depth < MAX_LINEAGE:
            for base in base_types(Lowerer(self.unit, kind.origin.text.source), kind.origin):
                yield from self._lineage(base, depth + 1)

    def constructed(self, kind: CType, values: list[AnyValue], mask: int) -> AnyValue | None:
        """What a struct's own constructor makes; None where it has none that fits."""
        name = kind.name.split("<")[0].strip()
        function = self.member_function(kind, name, None, mask, [_type_of(value) for value in values])
        if function is None:
            return None
        frame = Frame([StructValue(kind, {n: unknown(t) for n, _, t in kind.fields if n})])
        given: list[AnyValue | Reference] = [Reference(SlotPlace(frame, 0))]
        for parameter, value in zip(function.parameters[1:], values, strict=False):
            given.append(self.converted(value, parameter.type))
        self.run_function(function, given, mask, None)
        made = frame.slots[0]
        return made if not isinstance(made, Reference) else None

    def as_type(self, value: AnyValue, kind: CType, mask: int) -> AnyValue:
        """A struct as the type that a conversion of its own makes of it: `T *rows = Shared<T>();`"""
        if isinstance(value, ArrayValue) and kind.kind == "struct":
            return self.constructed(kind, list(value.elements.values()), mask) or self.converted(value, kind)
        if not isinstance(value, StructValue) or kind.kind not in _CONVERTED or CONVERSION not in self.unit.methods:
            return value
        for owner, texts in self._candidates(value.type, CONVERSION):
            for text in texts:
                function = self._bound(text, value.type, owner, None, mask)
                if function.returns.kind == kind.kind:
                    return self.run_function(function, [value], mask, None)
        return value

    def subscript(self, base: ir.Expr, index: ir.Expr, mask: int) -> Location:
        """What `object[index]` names where the object's struct has an operator for it; None elsewhere."""
        if "operator[]" not in self.unit.methods or not isinstance(base, (ir.Var, ir.Member, ir.Index, ir.Deref)):
            return None
        self.see_steps()
        inner = self.place(base, mask)
        kind = inner.type if isinstance(inner, (MemoryPlace, FieldPlace)) else _type_of(self.load(inner, 0))
        if kind.kind != "struct" or inner is None:
            return None
        function = self.member_function(kind, "operator[]", None, mask, [self.argument_type(index, mask)])
        if function is None:
            return None
        given: list[AnyValue | Reference] = [Reference(inner), self.any_value(index, mask)]
        frame = Frame([])
        value = self.run_function(function, given, mask, None, frame)
        return frame.place if frame.place is not None else SlotPlace(Frame([value]), 0)


def _takes(text: FunctionText, count: int) -> bool:
    required = sum(p.type != "optional_parameter_declaration" for p in parameters_of(text.node))
    return required <= count <= max(parameter_count(text), required)


def _type_of(whole: object) -> CType:
    return whole.type if isinstance(whole, (MemoryPlace, Value, StructValue, ArrayValue)) else UNKNOWN_TYPE
