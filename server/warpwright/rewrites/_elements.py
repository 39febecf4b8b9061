"""A kernel whose thread does one element of a grid of two dimensions: its text, to be done for other elements too.

Example: of `int row = blockIdx.y * blockDim.y + threadIdx.y; ... if (row < rows && column < columns) c[...] = sum;` the
statements that depend on row or column are done again with other values of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Kernel, Launch
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, macros_naming
from warpwright.rewrites._guards import Condition, loads_nothing
from warpwright.rewrites._indices import Indices, Polynomial
from warpwright.rewrites._launch_shape import covers
from warpwright.rewrites._layout import line_of, with_comment, without_text
from warpwright.rewrites._locals import changed_names
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import BREAKABLE, ancestors, declared_name, descendants, uncommented
from warpwright.syntax.source import Source

_PLACE = re.compile(r"\b(?:threadIdx|blockDim|gridDim)\b|\bblockIdx\s*(?!\s*\.\s*z\b)")


@dataclass(frozen=True, slots=True)
class Variable:
    """One declarator of a kernel's declarations: `value` is None where it has none."""

    name: str
    statement: Node
    declarator: Node
    value: Node | None


@dataclass(frozen=True, slots=True)
class Elements:
    """`own` are the names of the element's index in x and in y, `hoisted` the declarations that are the same for every
    element and can stand before all of them, `each` the other variables before the work, `dropped` those of them that
    only led to the indices."""

    indices: Indices
    own: Mapping[str, str]
    hoisted: tuple[Node, ...]
    each: tuple[Variable, ...]
    dropped: frozenset[str]

    def declared(self, name: str) -> Variable:
        return next(v for v in self.each if v.name == name)

    def needed(self, texts: Iterable[str], given: Collection[str]) -> list[Variable]:
        """The variables of an element that pieces of code need, in order, without those that are `given`. Raises
        NoMatchError where one does more than set a variable."""
        words = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
        found: list[Variable] = []
        source = self.indices.kernel.source
        for variable in reversed(self.each):
            if variable.name not in words or variable.name in given:
                continue
            if variable.value is None or not loads_nothing(source, variable.statement):
                raise NoMatchError(
                    f"`{variable.name}` at line {line_of(source, variable.statement)} is more than a number that could "
                    "be had for another element."
                )
            words |= set(re.findall(r"[A-Za-z_]\w*", source.node_code(variable.declarator)))
            found.insert(0, variable)
        return found


def elements_of(kernel: Kernel, indices: Indices, block: Node, head: list[Node], work: list[Node]) -> Elements:
    """The variables that stand before the work of an element: `head` are the statements before it, `work` it and what
    follows. Raises NoMatchError with the reason."""
    source = kernel.source
    text = source.node_code(block)
    if found := TIES.search(text):
        raise NoMatchError(f"{kernel.name} uses `{found.group()}`, so its threads are not independent.")
    for macro in macros_naming(source, re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim)\b")):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            raise NoMatchError(f"{kernel.name} uses the macro {macro}, which reads the thread's index.")
    if reason := unfit_call(kernel, block):
        raise NoMatchError(reason)
    variables = [
        Variable(declared_name(source, d), s, d, d.child_by_field_name("value"))
        for s in head
        if s.type == "declaration"
        for d in s.children_by_field_name("declarator")
    ]
    twice = {v.name for v in variables if v.name not in indices.variables.types}
    if twice:
        raise NoMatchError(f"`{min(twice)}` is declared more than once in {kernel.name}.")
    own = _own(kernel, indices, variables)
    changed = frozenset(name for s in (*head, *work) for name in changed_names(source, s))
    varying: set[str] = set(own.values())
    hoisted: list[Node] = []
    for statement in head:
        declares = [v for v in variables if v.statement == statement]
        words = set(re.findall(r"[A-Za-z_]\w*", source.node_code(statement)))
        names = {v.name for v in declares}
        varies = _PLACE.search(source.node_code(statement)) or words & varying or names & changed
        keeps = all(is_number(indices, v) for v in declares)
        if declares and keeps and not varies and loads_nothing(source, statement):
            hoisted.append(statement)
        elif declares:
            varying |= names
    each = tuple(v for v in variables if v.statement not in hoisted)
    kept = {v.name for v in each}
    for name in sorted(changed - kept):
        if name in indices.variables.parameters or name in {v.name for v in variables}:
            raise NoMatchError(f"`{name}` changes in {kernel.name} for all elements.")
    return Elements(indices, own, tuple(hoisted), each, _dropped(source, block, each, own))


def is_number(indices: Indices, variable: Variable) -> bool:
    """Whether a variable is a number or a pointer: of arrays and objects, parts may change unseen."""
    shapes = [n.type for n in descendants(variable.declarator, "array_declarator", "pointer_declarator")]
    known = builtin_type(indices.variables.types.get(variable.name, "")) is not None
    return "array_declarator" not in shapes and (known or "pointer_declarator" in shapes)


def _own(kernel: Kernel, indices: Indices, variables: list[Variable]) -> dict[str, str]:
    """By axis, the variable that is the element's index: `blockIdx.x * blockDim.x + threadIdx.x`."""
    found: dict[str, str] = {}
    for axis, extent in zip("xy", indices.block or (), strict=False):
        wanted = {(f"blockIdx.{axis}",): extent, (f"threadIdx.{axis}",): 1}
        names = [v.name for v in variables if v.value is not None and indices.named(v.name) == wanted]
        if len(names) != 1:
            raise NoMatchError(f"{kernel.name} has no one variable for the thread's place in the grid in {axis}.")
        found[axis] = names[0]
    return found


def _dropped(source: Source, block: Node, each: tuple[Variable, ...], own: Mapping[str, str]) -> frozenset[str]:
    """Variables that are used for the indices alone. Raises NoMatchError where more depends on the thread's place."""
    replaced = [v.value for v in each if v.name in own.values() and v.value is not None]
    dropped: set[str] = set()
    for variable in reversed(each):
        uses = [n for n in descendants(block, "identifier") if source.node_text(n) == variable.name]
        free = [n for n in uses if not _is_within(n.start_byte, replaced)]
        by_place = variable.value is not None and _PLACE.search(source.node_code(variable.value))
        if variable.name not in own.values() and variable.value is not None and by_place and len(free) == 1:
            dropped.add(variable.name)
            replaced.append(variable.value)
    for place in _PLACE.finditer(source.node_code(block)):
        at = block.start_byte + len(encoded(source.node_code(block)[: place.start()]))
        if not _is_within(at, replaced):
            raise NoMatchError(
                f"`{place.group().strip()}` is used at line {source.position(at)[0]} for more than the element's index."
            )
    return frozenset(dropped)


def _is_within(offset: int, nodes: list[Node]) -> bool:
    return any(node.start_byte <= offset < node.end_byte for node in nodes)


def require_repeatable(source: Source, statements: Iterable[Node]) -> None:
    """A `return` among the statements leaves them, and no loop, so that a `continue` can stand in its place."""
    for statement in statements:
        for leave in descendants(statement, "return_statement"):
            if uncommented(leave) or any(n.type in BREAKABLE for n in _up_to(leave, statement)):
                raise NoMatchError(f"Threads may leave a loop at line {line_of(source, leave)}.")


def _up_to(node: Node, last: Node) -> Iterable[Node]:
    for parent in ancestors(node):
        yield parent
        if parent == last:
            return


def require_covered(
    kernel: Kernel, indices: Indices, conditions: Iterable[Condition], by: tuple[int, int], launches: list[Launch]
) -> None:
    """Elements beyond the old grid find nothing to do where its blocks become `by` times as large: the guard tests the
    index against what the grid is made of, or the grid is a multiple. Raises NoMatchError where that is not certain."""
    for place, axis in enumerate("xy"):
        wanted: Polynomial = {(f"blockIdx.{axis}",): (indices.block or (0, 0))[place], (f"threadIdx.{axis}",): 1}
        bounds = [bound for c in conditions if (bound := _bound(indices, c, wanted))]
        for launch in launches:
            known = launch.grid[place]
            whole = known is not None and known % by[place] == 0
            if not whole and by[place] > 1 and not any(covers(kernel, launch, b, place) for b in bounds):
                raise NoMatchError(
                    f"Whether the grid of the launch at {launch.source} is made in {axis} of the number of elements "
                    f"that {kernel.name} tests its index against is not certain."
                )


def _bound(indices: Indices, condition: Condition, wanted: Polynomial) -> str:
    """The parameter that a condition keeps an index below; empty for none."""
    sides = {"<": (condition.left, condition.right), ">": (condition.right, condition.left)}
    if condition.operator not in sides:
        return ""
    index, limit = sides[condition.operator]
    text = indices.kernel.source.node_text(limit)
    fixed = text in indices.variables.parameters and indices.variables.is_fixed(text)
    return text if fixed and indices.read(index) == wanted else ""


def element_text(
    elements: Elements, statements: list[Node], values: Mapping[str, str], edits: Iterable[TextEdit] = ()
) -> str:
    """The text from the first to the last of the statements, from its first character on, for one element: variables
    with other values, a `return` as `continue`, without what is hoisted or dropped, and with further edits."""
    source = elements.indices.kernel.source
    start, end = statements[0].start_byte, with_comment(source, statements[-1])[1]
    further = list(edits)
    found: list[TextEdit] = []
    for statement in elements.hoisted:
        found.append(without_text(source, *with_comment(source, statement)))
    shortened = {v.statement.id: v.statement for v in elements.each if v.name in elements.dropped}
    for variable in elements.each:
        if variable.name in values and variable.value is not None and variable.statement.id not in shortened:
            found.append(TextEdit(variable.value.start_byte, variable.value.end_byte, values[variable.name]))
    for statement in shortened.values():
        found += _without(source, statement, elements.dropped, values)
    for leave in (n for s in statements for n in descendants(s, "return_statement")):
        found.append(TextEdit(leave.start_byte, leave.end_byte, "continue;"))
    found = [e for e in found if not any(f.start <= e.start and e.end <= f.end for f in further)] + further
    inside = [e for e in found if (e.end > start and e.start < end) or (e.start == e.end == start and e.new_text)]
    shifted = [TextEdit(max(e.start, start) - start, min(e.end, end) - start, e.new_text) for e in inside]
    return decoded(apply_edits(source.data[start:end], shifted)).strip()


def _without(source: Source, statement: Node, names: Collection[str], values: Mapping[str, str]) -> list[TextEdit]:
    """A declaration without some of its variables, others with other values."""
    declarators = statement.children_by_field_name("declarator")
    kept = [d for d in declarators if declared_name(source, d) not in names]
    if not kept:
        return [without_text(source, *with_comment(source, statement))]
    texts: list[str] = []
    for declarator in kept:
        value, name = declarator.child_by_field_name("value"), declared_name(source, declarator)
        end = value.start_byte if value is not None and name in values else declarator.end_byte
        texts.append(source.text(declarator.start_byte, end) + (values.get(name, "") if value is not None else ""))
    return [TextEdit(declarators[0].start_byte, declarators[-1].end_byte, ", ".join(texts))]
