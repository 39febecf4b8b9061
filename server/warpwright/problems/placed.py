"""Which pointers of a launch lead into one piece of memory, and how far from its start each points.

Example: of `k<<<grid, block>>>(x + n, x, n)` the first is the array, of as many elements as both reach, with the offset
"n"; the second is a pointer into it with the offset "0".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from warpwright.cuda.addresses import NULL_POINTERS, Address, address_of
from warpwright.problems import ranges
from warpwright.problems.arguments import ArgumentReader
from warpwright.problems.expressions import (
    Binary,
    Expression,
    ExpressionError,
    Name,
    Number,
    names,
    parse,
    show,
    substitute,
)
from warpwright.problems.host import HostExpressions, Way
from warpwright.problems.lacking import LackingError
from warpwright.problems.model import Array, Pointer
from warpwright.problems.types import element_type


def placed(
    arguments: ArgumentReader, arrays: Mapping[str, Array], way: Way, symbols: tuple[str, ...]
) -> dict[str, Array | Pointer]:
    """The arrays as they lie in memory on the way to a launch. Raises LackingError where how far they are apart is not
    known."""
    together: dict[object, list[tuple[Array, str]]] = {}
    for name, array in arrays.items():
        node = arguments.passed.get(name)
        address = address_of(way.path, node) if node is not None else Address(("", -1, name))
        memory = address.memory if address.memory[2] not in NULL_POINTERS else name
        together.setdefault(memory, []).append((array, _offset(arguments, address, array, way, symbols)))
    out: dict[str, Array | Pointer] = dict(arrays)
    for members in together.values():
        if len(members) > 1 or members[0][1] != "0":
            for each in _of_one_memory(members):
                out[each.name] = each
    return out


def _of_one_memory(members: list[tuple[Array, str]]) -> list[Array | Pointer]:
    """The first that the kernel writes is the array, the others lead into it."""
    holder, shift = next(((a, o) for a, o in members if a.role != "in"), members[0])
    size = _bytes(holder)
    extent: Expression | None = None
    for array, offset in members:
        reached = ranges.combine("+", parse(offset), parse(array.extent))
        if reached is not None and _bytes(array) != size:
            whole = Binary("+", Binary("*", reached, Number(_bytes(array))), Number(size - 1))
            reached = Binary("/", whole, Number(size))
        extent = reached if extent is None or reached is None else ranges.largest(extent, reached)
        if extent is None:
            raise LackingError(f"how far {array.name} and {holder.name} reach in their one array is not known")
    roles = {array.role for array, _ in members}
    role = holder.role if len(roles) == 1 else "in-out"
    values = next((array.values for array, _ in members if array.values != "any"), "any")
    assert extent is not None
    found: list[Array | Pointer] = [replace(holder, extent=show(extent), role=role, values=values, offset=shift)]
    found += [Pointer(a.name, a.type, holder.name, offset) for a, offset in members if a is not holder]
    return found


def _bytes(array: Array) -> int:
    element = element_type(array.type)
    return element.bytes if element is not None else 1


def _offset(arguments: ArgumentReader, address: Address, array: Array, way: Way, symbols: tuple[str, ...]) -> str:
    """How many elements of the array the address lies behind the start of its memory. Raises LackingError."""
    whole: Expression = Number(0)
    for move in address.moves:
        source, function = way.path.scope(move.depth)
        here = replace(way, depth=move.depth)
        try:
            reader = HostExpressions(arguments.program, source, function, arguments.reader.symbolic, way=here)
            found = _in_symbols(arguments, reader, reader.resolve(move.node), move.depth, symbols)
        except ExpressionError as error:
            raise LackingError(f"how far {array.name} lies behind its array's start is not known ({error})") from None
        element = element_type(" ".join(re.sub(r"\b(const|volatile|__restrict__|auto)\b|[*&]", " ", move.type).split()))
        own = _bytes(array)
        if element is not None and element.bytes != own:
            found = Binary("/", Binary("*", found, Number(element.bytes)), Number(own))
        whole = Binary("+" if move.sign > 0 else "-", whole, found)
    return show(ranges.normal(substitute(whole, {})))


def _in_symbols(
    arguments: ArgumentReader, reader: HostExpressions, found: Expression, depth: int, symbols: tuple[str, ...]
) -> Expression:
    """In the problem's symbols: a caller's variable as the parameter that it is passed for, else as its value. Raises
    ExpressionError."""
    for name, value in reader.defaults.items():
        arguments.reader.defaults.setdefault(name, value)
    if depth == 0:
        return arguments.settled(found, symbols)
    passed = arguments.reader.called_with
    known = {n: Number(v) for n, v in reader.defaults.items() if n not in passed}
    inner = substitute(substitute(found, known), {n: Name(p) for n, p in passed.items()})
    if any(n in names(found) and n not in passed and n not in reader.defaults for n in names(found)):
        raise ExpressionError(f"`{show(found)}` has no known value")
    return arguments.settled(inner, symbols)
