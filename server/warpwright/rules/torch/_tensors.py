"""What the C++ side of an extension does with its tensors: the pointers that it takes, what it checks before,
dispatches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.extension.unit import Function, Unit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source, Span

POINTER = re.compile(r"\b(\w+)\s*\.\s*((?:mutable_|const_)?data_ptr)\s*(?:<\s*(?:const\s+)?([\w:]+)\s*>)?\s*\(")
ASPECTS = {
    "device": r"is_cuda\(|\bdevice\(|device_of\(|get_device\(|device_type\(|CUDAGuard|options\(\)\.device",
    "contiguity": r"is_contiguous\(|\.contiguous\(|\.strides?\(|is_non_overlapping",
    "dtype": r"scalar_type\(|\bdtype\(|\.type\(",
    "size": r"\.size\(|\.sizes\(|\.numel\(|\.dim\(|sizes_equal|\.nbytes\(",
}
"""What code says that looks at each property of a tensor."""
_LOOKS = {aspect: re.compile(pattern) for aspect, pattern in ASPECTS.items()}
_CHECKS = re.compile(r"check|assert|verify|validate|expect|require|enforce", re.IGNORECASE)
_CONTIGUOUS = r"\b(\w+)\s*=\s*(?:{0})\s*(?:\.\s*\w+\([^()]*\)\s*)*\.\s*contiguous\("
_SAME = r"\b(\w+)\s*=\s*(?:{0})\s*(?:;|\.\s*(?:detach|view|reshape|flatten)\()"
_LIKE = r"\b(\w+)\s*=\s*(?:torch|at)::(?:\w+\([^;]*\b(?:{0})\s*\.\s*options\(\)|\w+_like\(\s*(?:{0})\b)[^;]*;"
_ASSIGNED = r"\b{0}\s*=(?!=)"
_MOST_CALLS = 16
_SCALAR, _INDEX, _OF_INDICES = "scalar_t", "index_t", "AT_DISPATCH_INDEX_TYPES"


@dataclass(frozen=True)
class Use:
    """A place that takes the pointer of a tensor, `type` as it is written, "" for none."""

    function: Function
    span: Span
    name: str
    type: str


@dataclass(frozen=True)
class Flow:
    """What becomes of a tensor from the function that Python calls: where its pointer is taken, and which of ASPECTS
    the code on the way looks at."""

    uses: tuple[Use, ...]
    looked_at: frozenset[str]


def flow(unit: Unit, function: Function, parameter: str, depth: int = 4) -> Flow:
    names = {parameter}
    looked_at: set[str] = set()
    for pattern, aspect in ((_CONTIGUOUS, "contiguity"), (_SAME, "")):
        for match in re.finditer(pattern.format(re.escape(parameter)), function.code):
            names.add(match[1])
            looked_at |= {aspect} - {""}
    any_name = "|".join(map(re.escape, sorted(names)))
    for statement in re.split(r"[;{}]", function.code):
        if re.search(rf"\b(?:{any_name})\b", statement):
            near = "".join(m[0] for m in re.finditer(rf"\b(?:{any_name})\b\s*(?:\.\s*\w+\([^()]*\)\s*)*", statement))
            guard = "CUDAGuard" in statement
            looked_at |= {
                aspect
                for aspect, look in _LOOKS.items()
                if look.search(near.replace(" ", "")) or (aspect == "device" and (guard or "device_of(" in statement))
            }
    uses = [
        Use(function, span, match[1], match[3] or "") for span, match in function.found(POINTER) if match[1] in names
    ]
    for call in function.calls[: _MOST_CALLS * 8]:
        arguments = uncommented(call.child_by_field_name("arguments"))
        places = [at for at, each in enumerate(arguments) if function.source.node_code(each) in names]
        callee = call.child_by_field_name("function")
        called = unit.called(call, function.source)
        if called is not None and depth and called.node.id != function.node.id:
            for at in places:
                if at < len(called.parameters):
                    below = flow(unit, called, called.parameters[at][0], depth - 1)
                    uses += below.uses
                    looked_at |= below.looked_at
        elif places and callee is not None and _CHECKS.search(name := function.source.node_code(callee)):
            looked_at |= _looked_at_by(unit, name.strip())
    return Flow(tuple(uses), frozenset(looked_at))


def _looked_at_by(unit: Unit, macro: str, depth: int = 3) -> set[str]:
    """What a macro checks of its argument; everything where its text is not seen."""
    body = unit.macros.get(macro)
    if body is None:
        return set(ASPECTS)
    found = {aspect for aspect, look in _LOOKS.items() if look.search(body.replace(" ", ""))}
    for name in re.findall(r"\b(\w+)\s*\(", body) if depth else ():
        if name in unit.macros and name != macro:
            found |= _looked_at_by(unit, name, depth - 1)
    return found


def launches_below(unit: Unit, function: Function) -> bool:
    """Whether the function, or one that it calls, launches a kernel."""
    return any(next(each.launches, None) is not None for each in unit.reached(function))


@dataclass(frozen=True)
class Dispatch:
    """One `AT_DISPATCH_...(tensor.scalar_type(), "name", [&] { ... })`, or a use of a macro of the extension's own that
    chooses a type so, in `function`. `on` is the tensor, `scalar` the name of the type in `body`, `expansion` what
    the extension's own macro stands for."""

    function: Function
    macro: str
    span: Span
    on: str
    on_span: Span
    body: Node
    scalar: str
    expansion: str = ""

    @property
    def source(self) -> Source:
        return self.function.source

    def pointers(self) -> Iterator[tuple[Span, str, str]]:
        """(place, tensor, type) of each pointer of a type that the body takes."""
        text = self.source.node_code(self.body)
        for match in POINTER.finditer(text):
            if match[3]:
                start = self.body.start_byte + len(encoded(text[: match.start(3)]))
                yield Span(self.source, start, start + len(match[3])), match[1], match[3]
        for match in re.finditer(r"\b(\w+)\s*\.\s*(?:packed_accessor\w*|accessor)\s*<\s*([\w:]+)", text):
            start = self.body.start_byte + len(encoded(text[: match.start(2)]))
            yield Span(self.source, start, start + len(match[2])), match[1], match[2]


def dispatches(unit: Unit, function: Function) -> Iterator[Dispatch]:
    for call in function.calls:
        callee = call.child_by_field_name("function")
        name = function.source.node_code(callee) if callee is not None else ""
        arguments = uncommented(call.child_by_field_name("arguments"))
        if len(arguments) < 2 or callee is None or not (name.startswith("AT_DISPATCH_") or name in unit.macros):
            continue
        body = next((each for each in arguments if next(descendants(each, "lambda_expression"), None)), None)
        expansion = "" if name.startswith("AT_DISPATCH_") else _expansion(unit, name)
        scalar = _INDEX if name.startswith(_OF_INDICES) else _SCALAR if not expansion else _chosen(expansion)
        if body is None or not scalar:
            continue
        for each in arguments:
            text = function.source.node_code(each)
            match = re.match(r"(\w+)\s*\.\s*(?:scalar_type|type|dtype)\(", text)
            if match and each.id != body.id:
                on = Span(function.source, each.start_byte, each.start_byte + len(match[1]))
                yield Dispatch(function, name, function.source.span(callee), match[1], on, body, scalar, expansion)
                break


def _expansion(unit: Unit, macro: str, depth: int = 4) -> str:
    """The text of a macro with those of the macros of the extension that it uses."""
    body = unit.macros[macro]
    used = [name for name in re.findall(r"\b(\w+)\s*\(", body) if name in unit.macros and name != macro]
    return body + "".join(_expansion(unit, name, depth - 1) for name in dict.fromkeys(used) if depth)


def _chosen(expansion: str) -> str:
    """The name that a macro's text gives to the type that it chooses; "" where it chooses none.

    >>> [_chosen(each) for each in ("using weight_t = float; f();", "AT_DISPATCH_SWITCH(T, N, C(V))", "check(x)")]
    ['weight_t', 'scalar_t', '']
    """
    named = re.search(r"\busing\s+(\w+)\s*=|\btypedef\s+[\w:]+\s+(\w+)\s*;|_USING_HINT\w*\([^,()]*,\s*(\w+)", expansion)
    if named is not None:
        return named[1] or named[2] or named[3]
    if _OF_INDICES in expansion:
        return _INDEX
    return _SCALAR if "AT_DISPATCH_" in expansion else ""


def same_type(function: Function, tensor: str) -> set[str]:
    """The tensor and the names of the function that are known to hold the type of its elements: copies, and what is
    made like it without a type of its own, where nothing else is put into them."""
    found = {tensor}
    for _ in range(4):
        names = "|".join(map(re.escape, sorted(found)))
        for pattern in (_CONTIGUOUS, _SAME, _LIKE):
            for match in re.finditer(pattern.format(names), function.code):
                is_only = len(re.findall(_ASSIGNED.format(re.escape(match[1])), function.code)) == 1
                if is_only and not re.search(r"\b(?:dtype|toType|to)\(|\bk[A-Z]\w+", match[0]):
                    found.add(match[1])
    return found
