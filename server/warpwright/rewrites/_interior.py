"""The way through a kernel that most elements take: past its guards, and past the branch for the borders.

Example: of `if (x >= w || y >= h) return; if (x == 0 || y == 0) { out[at] = 0; return; } out[at] = f(in, at);` it is
the last statement, where neither condition holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.sums import coefficient, symbols
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, bare, condition_of, with_names
from warpwright.rewrites._guards import comparisons
from warpwright.rewrites._indices import Indices, Polynomial
from warpwright.rewrites._layout import with_comment, without_text
from warpwright.rewrites._locals import changed_names
from warpwright.rewrites._loops import pragmas_before
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, declared_name, descendants, uncommented
from warpwright.syntax.source import Source

_TOUCHES = (
    "subscript_expression",
    "call_expression",
    "pointer_expression",
    "assignment_expression",
    "update_expression",
)
_SIGNED = re.compile(r"-?(?:\d+|0[xX][\da-fA-F]{1,7})[lL]*")
"""A literal of a signed type: `100`, not `100u`, nor `0xffffffff`."""
_MOST_STEPS = 16
"""Of a loop that is unrolled on the way."""


@dataclass(frozen=True, slots=True)
class Way:
    """`conditions` are texts that all hold where an element takes the way, `statements` what it does there, and `edits`
    what changes in them: tests that the conditions have passed already are gone."""

    conditions: tuple[str, ...]
    statements: tuple[Node, ...]
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class _Walk:
    """A loop whose variable runs from `first` to `last` by steps of 1, as texts; `steps` where both are numbers."""

    name: str
    first: str
    last: str
    steps: int | None


def interior(indices: Indices, statements: list[Node]) -> Way:
    """The way of most elements through a kernel's statements. Raises NoMatchError where they leave in other ways."""
    source = indices.kernel.source
    late = {
        declared_name(source, d)
        for s in statements
        for n in descendants(s, "declaration")
        for d in n.children_by_field_name("declarator")
    }
    conditions: list[str] = []
    taken: list[Node] = []
    for place, statement in enumerate(statements):
        last = place == len(statements) - 1
        test = _test(statement)
        consequence = statement.child_by_field_name("consequence")
        other = statement.child_by_field_name("alternative")
        if test is None or consequence is None or not _is_known_before(indices, test, late):
            taken.append(statement)
        elif other is None and _leaves(consequence):
            conditions.append(f"!({source.node_text(test)})")
        elif last and other is None:
            conditions.append(f"({source.node_text(test)})")
            taken += _inner(consequence)
        elif last and other is not None and (operator := _joined(test)):
            rest = next(iter(uncommented(other)), None)
            conditions.append(f"{'!' if operator == '||' else ''}({source.node_text(test)})")
            taken += _inner(rest) if operator == "||" and rest is not None else _inner(consequence)
        else:
            taken.append(statement)
    for statement in taken:
        for leave in descendants(statement, "return_statement"):
            raise NoMatchError(f"Threads may leave at line {source.position(leave.start_byte)[0]}, after other work.")
    edits: list[TextEdit] = []
    for statement in taken:
        for branch in descendants(statement, "if_statement"):
            edits += _passed(indices, branch, late, conditions)
    return Way(tuple(dict.fromkeys(conditions)), tuple(taken), tuple(edits))


def _test(statement: Node) -> Node | None:
    return condition_of(statement) if statement.type == "if_statement" else None


def _is_known_before(indices: Indices, test: Node, late: Collection[str], steps: Collection[str] = ()) -> bool:
    """Whether a test can be made before all statements: it touches no memory, and reads nothing that is declared late
    or changes, but for the variables of loops in `steps`."""
    source = indices.kernel.source
    if test.type == "declaration" or any(True for _ in descendants(test, *_TOUCHES)):
        return False
    names = {source.node_text(n) for n in descendants(test, "identifier")}
    return not names & (set(late) | (indices.variables.changed - set(steps)))


def _inner(node: Node) -> list[Node]:
    return uncommented(node) if node.type == "compound_statement" else [node]


def _leaves(consequence: Node) -> bool:
    inner = _inner(consequence)
    return bool(inner) and inner[-1].type == "return_statement" and not uncommented(inner[-1])


def _is_continue(consequence: Node) -> bool:
    inner = _inner(consequence)
    return len(inner) == 1 and inner[0].type == "continue_statement"


def _joined(test: Node) -> str:
    """The operator that joins a test's outermost comparisons: `||`, `&&`, or none."""
    test = bare(test)
    found = {c.type for c in test.children if not c.is_named} if test.type == "binary_expression" else set()
    return next((o for o in ("||", "&&") if o in found), "")


def _passed(indices: Indices, branch: Node, late: set[str], conditions: list[str]) -> Iterator[TextEdit]:
    """The edits that drop a test in loops with known ends. Its comparisons are put among the conditions, each at the
    ends of the loops where it is hardest to hold: signed sums grow or fall with a loop's variable all the way."""
    source, test = indices.kernel.source, _test(branch)
    consequence = branch.child_by_field_name("consequence")
    walks = _walks(indices, branch)
    if test is None or consequence is None or branch.child_by_field_name("alternative") is not None or not walks:
        return
    inside = {n for n in late if _in_loop(indices, n) is not None} | {w.name for w in walks}
    if not _is_known_before(indices, test, late - inside, {w.name for w in walks}):
        return
    changed = indices.variables.changed - {w.name for w in walks}
    if any(n in (late - inside) | changed for n in _leaves_of(indices, test)):
        return
    found: list[str] = []
    skips = _is_continue(consequence)
    compared = comparisons(source, test, leaves=skips)
    if not compared:
        return
    for condition in compared:
        if condition.operator in ("==", "!="):
            return
        sides = [indices.read(condition.left), indices.read(condition.right)]
        if any(value is None for value in sides):
            return
        used = {name for value in sides if value is not None for name in symbols(value)}
        steps = [w for w in walks if w.name in used]
        if any(coefficient(value, w.name) is None for value in sides if value is not None for w in steps):
            return
        if not all(_is_signed(indices, side) for side in (condition.left, condition.right)):
            return
        new = {w.name: _worst(w, condition.operator, sides) for w in steps}
        texts = [_written_out(indices, node, new) for node in (condition.left, condition.right)]
        found.append(f"{texts[0]} {condition.operator} {texts[1]}")
    if late & set(re.findall(r"[A-Za-z_]\w*", " ".join(found))):
        return
    conditions += found
    yield (
        without_text(source, *with_comment(source, branch))
        if skips
        else TextEdit(branch.start_byte, consequence.start_byte, "")
    )


def _worst(walk: _Walk, operator: str, sides: list[Polynomial | None]) -> str:
    """The end of a loop at which a comparison is hardest to hold."""
    left, right = ((coefficient(value, walk.name) or 0) if value is not None else 0 for value in sides)
    grows = left > right
    end = walk.last if grows == operator.startswith("<") else walk.first
    return end if re.fullmatch(r"\w+", end) else f"({end})"


def _leaves_of(indices: Indices, node: Node) -> Iterator[str]:
    """The names in an expression, and those in the values of variables that are declared in loops."""
    source = indices.kernel.source
    for use in descendants(node, "identifier"):
        name = source.node_text(use)
        yield name
        if (value := _in_loop(indices, name)) is not None:
            yield from _leaves_of(indices, value)


def _in_loop(indices: Indices, name: str) -> Node | None:
    """The value of a variable that is declared in a loop and keeps it."""
    value = indices.variables.values.get(name)
    return value if value is not None and any(n.type == "for_statement" for n in ancestors(value)) else None


def _is_signed(indices: Indices, node: Node) -> bool:
    """Whether an expression is computed in signed integers of 32 bits or more: its names, literals and casts, and the
    values of variables that are declared in loops. In `(unsigned)(i + k) < n` and `i + k < 100u` a sum below 0 is
    large."""
    source = indices.kernel.source
    for part in descendants(node, "number_literal", "cast_expression", "call_expression"):
        text = source.node_code(part)
        kind = part.child_by_field_name("type") if part.type == "cast_expression" else None
        function = part.child_by_field_name("function")
        cast = re.fullmatch(r"static_cast\s*<([^<>]*)>|([\w ]+)", source.node_code(function)) if function else None
        written = source.node_text(kind) if kind is not None else (cast[1] or cast[2]) if cast is not None else ""
        if not (_SIGNED.fullmatch(text) if part.type == "number_literal" else _is_signed_type(written)):
            return False
    for use in descendants(node, "identifier"):
        value = _in_loop(indices, source.node_text(use))
        called = use.parent is not None and use.parent.type == "call_expression"
        if not (called or _is_signed_name(indices, source.node_text(use))):
            return False
        if value is not None and not _is_signed(indices, value):
            return False
    return True


def _is_signed_name(indices: Indices, name: str) -> bool:
    """Whether a name is a signed integer of 32 bits or more, as a variable or a constant of the file."""
    if name in indices.variables.types:
        return _is_signed_type(indices.variables.types[name])
    if name in indices.macros:
        return all(
            _is_signed_name(indices, word) if word[0].isalpha() or word[0] == "_" else _SIGNED.fullmatch(word)
            for text in indices.macros[name]
            for word in re.findall(r"[\w.]+", text)
        )
    if name in indices.constants:
        declaration = next(n for n in ancestors(indices.constants[name]) if n.type == "declaration")
        kind = declaration.child_by_field_name("type")
        return kind is not None and _is_signed_type(indices.kernel.source.node_text(kind))
    return False


def _is_signed_type(kind: str) -> bool:
    known = builtin_type(kind)
    return known is not None and known.kind == "int" and (known.size or 0) >= 4


def _walks(indices: Indices, node: Node) -> list[_Walk]:
    """The loops around a node, where the ends of all of them are the same throughout; else none."""
    found: list[_Walk] = []
    for parent in ancestors(node):
        if parent.type in ("while_statement", "do_statement", "for_range_loop", "lambda_expression"):
            return []
        if parent.type == "for_statement":
            walk = _walk(indices, parent)
            if walk is None:
                return []
            found.append(walk)
    return found


def _walk(indices: Indices, loop: Node) -> _Walk | None:
    source = indices.kernel.source
    head = [loop.child_by_field_name(field) for field in ("initializer", "condition", "update")]
    if any(part is None for part in head):
        return None
    initializer, condition, update = (source.node_text(part) for part in head if part is not None)
    begun = re.fullmatch(r"(?:int|unsigned|unsigned int)\s+(\w+)\s*=[^,]*;?", initializer.strip())
    if begun is None or head[0] is None or head[1] is None:
        return None
    name = begun[1]
    declarator = next(descendants(head[0], "init_declarator"), None)
    compared = re.match(rf"{name}\s*(<=?)(?![<=])", condition)
    stepped = re.sub(r"\s", "", update) in (f"{name}++", f"++{name}", f"{name}+=1")
    changes = [n for n in changed_names(source, loop) if n == name]
    if declarator is None or compared is None or not stepped or len(changes) != 1:
        return None
    ends = [declarator.child_by_field_name("value"), head[1].child_by_field_name("right")]
    start, bound = (_end(indices, node) for node in ends)
    if start is None or bound is None:
        return None
    first, last = indices.number(ends[0]), indices.number(ends[1])
    if last is not None:
        last, bound = (last, str(last)) if compared[1] == "<=" else (last - 1, str(last - 1))
    elif compared[1] == "<":
        bound = f"{bound} - 1" if re.fullmatch(r"\w+", bound) else f"({bound}) - 1"
    steps = last - first + 1 if first is not None and last is not None else None
    return _Walk(name, start if first is None else str(first), bound, steps)


def _end(indices: Indices, node: Node | None) -> str | None:
    """A signed number that stays the same throughout, as text; None for others."""
    value = indices.read(node)
    if node is None or value is None:
        return None
    fixed = all(indices.variables.is_fixed(n) or n not in indices.variables.types for n in _leaves_of(indices, node))
    text = indices.kernel.source.node_text(node)
    return text if fixed and _is_signed(indices, node) else None


def _written_out(indices: Indices, node: Node, new: dict[str, str]) -> str:
    """An expression with variables of the loops in terms of what stands outside of them."""
    source = indices.kernel.source
    names = dict(new)
    for use in descendants(node, "identifier"):
        name = source.node_text(use)
        if name not in names and (value := _in_loop(indices, name)) is not None:
            names[name] = f"({_written_out(indices, value, new)})"
    return with_names(source, node, names)


def unrolled(indices: Indices, way: Way) -> Iterator[TextEdit]:
    """Directives before the loops on the way, so that their loads are issued together. Raises NoMatchError where one
    has many steps, or how many is not known."""
    source: Source = indices.kernel.source
    for loop in (n for statement in way.statements for n in descendants(statement, "for_statement")):
        walk = _walk(indices, loop)
        if walk is None or walk.steps is None or not 0 < walk.steps <= _MOST_STEPS:
            line = source.position(loop.start_byte)[0]
            raise NoMatchError(f"Nothing to gain: the time of an element goes into its loop at line {line}.")
        alone = not source.text(source.data.rfind(b"\n", 0, loop.start_byte) + 1, loop.start_byte).strip()
        if alone and not pragmas_before(source, loop):
            indent = source.line_indent(loop.start_byte)
            yield TextEdit(loop.start_byte, loop.start_byte, f"#pragma unroll\n{indent}")
