"""What the loops around a launch make of its variables, and blocks whose size the host code takes from elsewhere.

A launch in `for (int t = 0; t < 50; t++) step<<<grid, block>>>(a, b, t);` is run as in the first iteration, the second,
one in the middle and the last. A block that is `atoi(argv[1])`, or a parameter of a function that nobody calls, is
tried at several legal sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tree_sitter import Node

from warpwright.cuda.loops import Listed, Moved, moved_variables
from warpwright.cuda.paths import LaunchPath, parameter_place
from warpwright.cuda.walks import nodes_below
from warpwright.facts.model import Program
from warpwright.problems.expressions import (
    OPERATORS,
    Binary,
    Expression,
    ExpressionError,
    Name,
    Number,
    evaluate,
    names,
    show,
    substitute,
)
from warpwright.problems.host import HostExpressions, Pinned, Way
from warpwright.syntax.nodes import descendants

MOST_ITERATIONS = 4096
"""Of a loop with known bounds that are gone through; of a longer one the last is computed."""
MOST_LISTED = 6
BLOCKS = {1: (32, 64, 96, 128, 256, 512, 1024), 2: (8, 16, 32), 3: (4, 8)}
"""Sizes of a block that is not known, by the number of its variables; each of a block of several has the same."""

_OUTSIDE = re.compile(
    r"\b(?:argv|ato[il]l?|ato[fi]|strto\w+|sto[iul]\w*|getenv|s?scanf|cin|getopt\w*|optarg)\b|Occupancy"
)

Place = tuple[int, str]


def iterations(program: Program, path: LaunchPath) -> list[Pinned]:
    """The variables of the loops around a path's launch and calls in the iterations that are run.

    Only loops that decide what is launched or passed count. In the first iteration a variable is what the text before
    the loop says, but for one that takes its values from a list.
    """
    used = variables_used(path, [*path.site.configuration, *path.site.arguments])
    rows: dict[Place, Sequence[Expression]] = {}
    first: dict[Place, Expression] = {}
    for depth in range(len(path.calls) + 1):
        source, function = path.scope(depth)
        place = path.site.call if depth == 0 else path.calls[depth - 1].node
        for each in moved_variables(source, place):
            if (depth, each.name) in used and function is not None:
                values = _values(HostExpressions(program, source, function, way=Way(path, {}, depth)), each)
                if len(values) > 1:
                    rows[depth, each.name] = values
                if isinstance(each, Listed) and values:
                    first[depth, each.name] = values[0]
    if not rows:
        return [first]
    longest = max(map(len, rows.values()))
    together = [{key: values[min(at, len(values) - 1)] for key, values in rows.items()} for at in range(1, longest)]
    alone = [{key: values[1]} for key, values in rows.items()] if len(rows) > 1 else []
    return [first, *together, *alone]


def variables_used(path: LaunchPath, nodes: Iterable[Node]) -> set[Place]:
    """The host variables that expressions of a launch depend on, through definitions and the calls on the path."""
    found: set[Place] = set()
    todo = [(0, node) for node in nodes]
    while todo:
        depth, node = todo.pop()
        source, function = path.scope(depth)
        whole = [node] if node.type == "identifier" else descendants(node, "identifier")
        for name in {source.plain_text(identifier) for identifier in whole}:
            if (depth, name) in found or function is None:
                continue
            found.add((depth, name))
            todo += [(depth, value) for value in _definitions(path, depth, name)]
            place = parameter_place(source, function, name)
            passed = path.argument(depth, place) if place is not None else None
            todo += [(passed[1], passed[0])] if passed is not None else []
    return found


def _definitions(path: LaunchPath, depth: int, name: str) -> Iterator[Node]:
    """The values that a variable of a function is given."""
    source, function = path.scope(depth)
    assert function is not None
    for node in nodes_below(source, function, "init_declarator", "assignment_expression"):
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is None or value is None:
            continue
        named = target if target.type == "identifier" else next(descendants(target, "identifier"), None)
        if named is not None and source.plain_text(named) == name:
            yield value
    for node in nodes_below(source, function, "declaration"):  # `dim3 block(threads)` reads like a function
        for outer in node.children_by_field_name("declarator"):
            label, value = outer.child_by_field_name("declarator"), outer.child_by_field_name("parameters")
            if label is not None and value is not None and source.plain_text(label) == name:
                yield value


def open_blocks(path: LaunchPath) -> list[Pinned]:
    """Sizes for the variables that the size of a launch's block comes from where it is not in the text."""
    if len(path.site.configuration) < 2:
        return []
    found: list[Place] = []
    for depth, name in sorted(variables_used(path, path.site.configuration[1:2])):
        source, function = path.scope(depth)
        place = parameter_place(source, function, name)
        given = [source.plain_text(value) for value in _definitions(path, depth, name)] if function is not None else []
        is_open = place is not None and not given and path.argument(depth, place) is None
        if (is_open and _is_number(path, depth, name)) or any(map(_OUTSIDE.search, given)):
            found.append((depth, name))
    sizes = BLOCKS.get(len(found), ())
    return [dict.fromkeys(found, Number(size)) for size in sizes]


def _is_number(path: LaunchPath, depth: int, name: str) -> bool:
    source, function = path.scope(depth)
    place = parameter_place(source, function, name)
    if function is None or place is None:
        return False
    kinds = [
        source.plain_text(kind)
        for parameter in nodes_below(source, function, "parameter_declaration")
        if (kind := parameter.child_by_field_name("type")) is not None
        and any(source.plain_text(label) == name for label in descendants(parameter, "identifier"))
    ]
    return bool(kinds) and re.search(r"\b(int|unsigned|long|short|size_t|u?int\d+_t)\b", kinds[0]) is not None


def _values(reader: HostExpressions, moved: Moved | Listed) -> list[Expression]:
    """A variable's values in the iterations that are run, the first among them; fewer than two where they are not
    known."""
    found: list[Expression] = []
    with suppress(ExpressionError):
        if isinstance(moved, Listed):
            return [reader.resolve(value) for value in moved.values[:MOST_LISTED]]
        found.append(_first(reader, moved))
        bound = reader.resolve(moved.bound) if moved.bound is not None else None
        numbers = _numbers(reader, moved, found[0], bound)
        if numbers:
            picked = dict.fromkeys((0, 1, len(numbers) // 2, len(numbers) - 1))
            return [Number(numbers[at]) for at in picked if at < len(numbers)]
        found.append(_next(reader, moved, found[0]))
        found.append(_next(reader, moved, found[1]))
        last = _last(moved.relation, bound, found[0], found[1]) if bound is not None else None
        found += [last] if last is not None else []
    return found


def _first(reader: HostExpressions, moved: Moved) -> Expression:
    """The value in the first iteration: of a variable that is a constant before the loop, that."""
    if moved.start is not None:
        return reader.resolve(moved.start)
    found = reader.resolve_name(moved.name)
    known = reader.defaults.get(found.name) if isinstance(found, Name) else None
    return Number(known) if known is not None else found


def _numbers(reader: HostExpressions, moved: Moved, first: Expression, bound: Expression | None) -> list[int]:
    """The values one by one where first, bound and steps are numbers; the last is exact for steps that are added."""
    if not isinstance(first, Number) or not isinstance(bound, Number) or not moved.relation:
        return []
    out: list[int] = []
    value = int(first.value)
    while len(out) < MOST_ITERATIONS and evaluate(f"({value}) {moved.relation} ({bound.value})", {}):
        out.append(value)
        after = _next(reader, moved, Number(value))
        if not isinstance(after, Number) or after.value == value:
            return []
        value = int(after.value)
    if len(out) == MOST_ITERATIONS:
        step, end = out[1] - out[0], int(bound.value)
        if out[2] - out[1] != step or moved.relation == "!=":
            return []
        reach = abs(end - out[0]) - (moved.relation in ("<", ">"))
        out.append(out[0] + reach // abs(step) * step)
    return out


def _next(reader: HostExpressions, moved: Moved, value: Expression) -> Expression:
    """The variable after one more iteration. Raises ExpressionError."""
    text, node = reader.text(moved.update), moved.update
    if node.type == "update_expression":
        return substitute(Binary("+" if "++" in text else "-", value, Number(1)), {})
    operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
    assert operator is not None and right is not None and reader.way is not None
    pinned = {**reader.way.pinned, (reader.way.depth, moved.name): value}
    inside = HostExpressions(reader.program, reader.source, reader.function, way=replace(reader.way, pinned=pinned))
    given = inside.resolve(right)
    reader.defaults.update({k: v for k, v in inside.defaults.items() if k not in reader.defaults})
    sign = reader.text(operator).removesuffix("=")
    if sign and sign not in OPERATORS:
        raise ExpressionError(f"`{text}` cannot be followed")
    return substitute(Binary(sign, value, given), {}) if sign else given


def _last(relation: str, bound: Expression, first: Expression, second: Expression) -> Expression | None:
    """The last value of a variable that moves by one, None where it is not told."""
    step = substitute(Binary("-", second, first), {})
    try:
        by = evaluate(step, dict.fromkeys(names(step), 7))
    except ExpressionError:
        return None
    if by == 1 and relation in ("<", "!="):
        return substitute(Binary("-", bound, Number(1)), {})
    if by == -1 and relation in (">", "!="):
        return substitute(Binary("+", bound, Number(1)), {})
    return bound if (by, relation) in ((1, "<="), (-1, ">=")) else None


def shown(pinned: Mapping[Place, Expression]) -> str:
    """What variables are taken to be, in words.

    >>> shown({(0, "t"): Number(49), (1, "k"): Number(2)})
    't = 49, k = 2'
    """
    return ", ".join(f"{name} = {show(value)}" for (_, name), value in pinned.items())
