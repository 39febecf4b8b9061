"""Kernels that do the same to each element: `int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = ...;`.

The guard may stand around the work or return before it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.trials import Values
from warpwright.cuda.functions import called_name
from warpwright.facts.host_scopes import written_names
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import Basis, Kernel, Launch
from warpwright.rewrites._code import body, in_macro, macros_naming
from warpwright.rewrites._formulas import formula
from warpwright.rewrites._indent import end_with_comment, indented
from warpwright.rewrites._layout import indent_unit
from warpwright.rewrites._linear_threads import SIZE, is_thread_number
from warpwright.rewrites._thread_numbers import NUMBER, OF_GRID, WARP_LEVEL, calls_by_number
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

_INTEGER = re.compile(r"(?:(?:un)?signed|int|long|auto|size_t|uint|ulong|(?:std::)?u?int(?:32|64)_t|\s)+")
_BARRIERS = re.compile(r"__syncthreads\w*|sync|arrive\w*|wait\w*")
_LEAVING = ("return_statement", "goto_statement", "labeled_statement", "lambda_expression", "asm_statement")


@dataclass(frozen=True, slots=True)
class Elements:
    """`declaration` is `int i = initial;`, `guard` the `if` against `bound`; `early` where it returns before the work.

    `work` are the statements for one element, and `before` those that stand before the guard.
    """

    index: str
    declaration: Node
    initial: Node
    guard: Node
    bound: Node
    early: bool
    work: tuple[Node, ...]
    before: tuple[Node, ...]

    @property
    def start(self) -> int:
        return self.work[0].start_byte

    @property
    def end(self) -> int:
        return self.work[-1].end_byte


def match_elements(kernel: Kernel) -> Elements | str:
    """The parts of such a kernel, or the reason why it is none. Blocks and grids are not looked at."""
    block, source = body(kernel), kernel.source
    if block is None:
        return f"The body of {kernel.name} is not in this file."
    if in_macro(block) or any(True for _ in descendants(block, "preproc_if", "preproc_ifdef", "preproc_def")):
        return f"{kernel.name} has parts that the preprocessor chooses."
    statements = uncommented(block)
    reason = f"{kernel.name} has no `if` that tests an element's index against their count before the work on it."
    for place, guard in enumerate(statements):
        tested = _tested(source, guard)
        if tested is None:
            continue
        index, bound, early = tested
        before = statements[:place]
        declared = [d for d in before if declares(source, d, index, kernel.number_types)]
        if len(declared) != 1:
            continue
        work = statements[place + 1 :] if early else inner_statements(guard)
        if not early and place + 1 < len(statements):
            line = source.position(statements[place + 1].start_byte)[0]
            reason = f"{kernel.name} goes on at line {line} after the work on its element."
            continue
        if not work:
            continue
        initial = initial_value(declared[0])
        if initial is None:
            continue
        return Elements(index, declared[0], initial, guard, bound, early, tuple(work), tuple(before))
    return reason


def _tested(source: Source, guard: Node) -> tuple[str, Node, bool] | None:
    """The index, the bound and whether the `if` returns: `if (i < n) ...`, `if (n > i) ...`, `if (i >= n) return;`."""
    if guard.type != "if_statement" or guard.child_by_field_name("alternative") is not None:
        return None
    clause = guard.child_by_field_name("condition")
    test = clause.child_by_field_name("value") if clause is not None else None
    if test is None or test.type != "binary_expression":
        return None
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    operator = test.child_by_field_name("operator")
    if left is None or right is None or operator is None:
        return None
    returns = [s.type for s in inner_statements(guard)] == ["return_statement"]
    op = operator.type
    if op in (">", "<="):
        left, right, op = right, left, {">": "<", "<=": ">="}[op]
    if left.type != "identifier" or op != (">=" if returns else "<"):
        return None
    return source.node_text(left), right, returns


def inner_statements(guard: Node, field: str = "consequence") -> list[Node]:
    """The statements under an `if`, or with the field "body" in a loop, with or without braces."""
    consequence = guard.child_by_field_name(field)
    if consequence is None:
        return []
    return uncommented(consequence) if consequence.type == "compound_statement" else [consequence]


def declares(source: Source, statement: Node, name: str, types: Container[str] = ()) -> bool:
    """Whether it is `int name = ...;`, of an integer type, or one of `types`, and nothing else."""
    declarators = statement.children_by_field_name("declarator") if statement.type == "declaration" else []
    if len(declarators) != 1 or declarators[0].type != "init_declarator":
        return False
    target, kind = declarators[0].child_by_field_name("declarator"), statement.child_by_field_name("type")
    return (
        target is not None
        and target.type == "identifier"
        and source.node_text(target) == name
        and kind is not None
        and (_INTEGER.fullmatch(source.node_code(kind)) is not None or source.node_text(kind) in types)
        and not any(source.node_text(c) == "static" for c in statement.children)
    )


def initial_value(declaration: Node) -> Node | None:
    """What `int i = value;` sets its one variable to."""
    declarator = declaration.child_by_field_name("declarator")
    return declarator.child_by_field_name("value") if declarator is not None else None


def not_the_thread(kernel: Kernel, elements: Elements, launches: Iterable[Launch]) -> str:
    """Why the index is not the thread's index in the grid at every launch; empty where it is."""
    number = formula(kernel.source, elements.initial)
    reason = f"`{elements.index}` is not known to be blockIdx.x * blockDim.x + threadIdx.x."
    if number is None:
        return reason
    known = {launch.block[0] or 0 if launch.basis is Basis.EXACT else None for launch in launches}
    sizes: list[Values] = [{SIZE: size} if size is not None else {} for size in known]
    exact = all(is_thread_number(number, size) for size in sizes)
    return "" if sizes and exact else reason


def not_by_element(kernel: Kernel, elements: Elements, same: Container[str] = ()) -> str:
    """Why the work may depend on more than its element and on what is the same for all, or touch more than its own;
    empty where the elements can be worked on by any thread in any order. `same` are variables that are the same for all
    threads that share the elements."""
    source, index = kernel.source, elements.index
    for statement in elements.work:
        reason = (
            _number_in(kernel, statement, index) or _leaves(source, statement) or calls_by_number(kernel, statement)
        )
        if reason:
            return reason
    tied = tied_to_thread(source, elements)
    declared = {name for s in elements.work for name in declared_in(source, s)}
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    bound = {source.node_text(n) for n in descendants(elements.bound, "identifier")}
    for statement in elements.work:
        for use in descendants(statement, "identifier"):
            name = source.node_text(use)
            if name in tied and name not in declared and name not in same:
                return f"`{name}` is computed from the thread or block index before the work on the element."
        for name, direct, line in _written(source, statement):
            if name == index or name in bound:
                return f"`{name}` is changed at line {line}."
            if name not in declared and (direct or name not in pointers):
                return f"`{name}` is changed at line {line} and declared before the work on the element."
    if any(True for _ in descendants(elements.bound, "call_expression", "subscript_expression", "update_expression")):
        return f"The bound `{source.node_text(elements.bound)}` is not a plain number."
    if index in bound or NUMBER.search(source.node_code(elements.bound)) or bound & tied:
        return f"The bound `{source.node_text(elements.bound)}` depends on the thread."
    return ""


def _number_in(kernel: Kernel, statement: Node, index: str) -> str:
    source = kernel.source
    for use in descendants(statement, "identifier", "type_identifier", "namespace_identifier"):
        name = source.node_text(use)
        if NUMBER.fullmatch(name) or WARP_LEVEL.fullmatch(name):
            return f"`{name}` is used at line {source.position(use.start_byte)[0]}, in the work on the element."
    text = source.node_code(statement)
    for macro in macros_naming(source, re.compile(rf"{NUMBER.pattern}|{WARP_LEVEL.pattern}|\b{re.escape(index)}\b")):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            return f"The macro {macro} names `{index}` or the thread's index."
    return ""


def _leaves(source: Source, statement: Node) -> str:
    """What in a statement is no plain work: barriers, `return`, labels, machine code, static variables."""
    for node in descendants(statement, *_LEAVING, "gnu_asm_expression", "call_expression", "storage_class_specifier"):
        line = source.position(node.start_byte)[0]
        if node.type == "call_expression":
            if _BARRIERS.fullmatch(called_name(node, source)):
                return f"`{source.node_text(node)}` at line {line} waits for other threads."
        elif node.type != "storage_class_specifier" or source.node_text(node) == "static":
            return f"`{source.node_text(node).splitlines()[0]}` at line {line} cannot be repeated for other elements."
    return ""


def tied_to_thread(source: Source, elements: Elements) -> set[str]:
    """Variables before the guard that hold something else in another thread, `__shared__` ones in another block."""
    numbers, own = set(macros_naming(source, NUMBER)), set(macros_naming(source, OF_GRID))
    tied: set[str] = set()
    of_block = {elements.index}
    for statement in elements.before:
        text = source.node_code(statement)
        words = set(re.findall(r"[A-Za-z_]\w*", text))
        names = set(declared_in(source, statement)) | {name for name, _, _ in _written(source, statement)}
        by_block = bool(words & (of_block | own) or OF_GRID.search(text))
        if by_block:
            of_block |= names
        if by_block or words & (tied | numbers) or NUMBER.search(text):
            tied |= {n for n in names if by_block or not _is_shared(source, elements, n)}
    return tied - {elements.index}


def _is_shared(source: Source, elements: Elements, name: str) -> bool:
    """Whether a variable before the guard is `__shared__`: one for all threads of the block."""
    return any(
        statement.type == "declaration"
        and any(source.node_text(child) == "__shared__" for child in statement.children)
        and name in declared_in(source, statement)
        for statement in elements.before
    )


def declared_in(source: Source, statement: Node) -> Iterator[str]:
    """Variables that a statement declares, at any depth."""
    for declaration in descendants(statement, "declaration", "for_range_loop"):
        for declarator in declaration.children_by_field_name("declarator"):
            target: Node | None = declarator
            while target is not None and target.type != "identifier":
                target = target.child_by_field_name("declarator")
            if target is not None:
                yield source.node_text(target)


def _written(source: Source, statement: Node) -> Iterator[tuple[str, bool, int]]:
    """What a statement assigns or counts: the variable, whether itself and not through `[...]` or `*`, the line."""
    for name in written_names(statement):
        yield source.node_text(name), True, source.position(name.start_byte)[0]
    for node in descendants(statement, "assignment_expression", "update_expression"):
        target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if target is None or target.type == "identifier":
            continue
        first = next(descendants(target, "identifier"), None)
        if first is not None:
            yield source.node_text(first), False, source.position(target.start_byte)[0]


def leaves_traces(kernel: Kernel, elements: Elements) -> str:
    """Why what stands before the guard may do more than fill the block's own variables, so that it matters how many
    blocks do it; empty where it does nothing else."""
    source = kernel.source
    arrays = {name for statement in elements.before for name in _arrays_in(source, statement)}
    declared = {name for statement in elements.before for name in declared_in(source, statement)}
    for statement in elements.before:
        for name, direct, line in _written(source, statement):
            if name not in (declared if direct else arrays):
                return f"`{name}` is changed at line {line}, by each block."
        for call in descendants(statement, "call_expression"):
            name = called_name(call, source)
            pure = KNOWN_FUNCTIONS.fullmatch(name) and not re.match(r"atomic|printf|assert|__st|__trap", name)
            if not pure and not _BARRIERS.fullmatch(name):
                return f"`{name}` is called at line {source.position(call.start_byte)[0]}, by each block."
    return ""


def barriers_before(kernel: Kernel, elements: Elements) -> list[Node]:
    """The block-wide barriers before the guard."""
    calls = (call for statement in elements.before for call in descendants(statement, "call_expression"))
    return [call for call in calls if _BARRIERS.fullmatch(called_name(call, kernel.source))]


def _arrays_in(source: Source, statement: Node) -> Iterator[str]:
    """Arrays that a statement declares."""
    for declarator in descendants(statement, "array_declarator"):
        name = declarator.child_by_field_name("declarator")
        if name is not None and name.type == "identifier":
            yield source.node_text(name)


def without_const(source: Source, declaration: Node) -> list[TextEdit]:
    """Edits that let a constant count on."""
    for child in declaration.children:
        if child.type == "type_qualifier" and source.node_text(child) in ("const", "constexpr"):
            rest = source.data[child.end_byte :]
            return [TextEdit(child.start_byte, len(source.data) - len(rest.lstrip()), "")]
    return []


def with_header(kernel: Kernel, elements: Elements, header: str, behind: str = "") -> list[TextEdit]:
    """The work under another header than its guard: a loop or an `if`; an early return becomes one with braces.
    `behind` follows the work."""
    source, guard, block = kernel.source, elements.guard, body(kernel)
    if not elements.early or block is None:
        clause = guard.child_by_field_name("condition")
        end = clause.end_byte if clause is not None else guard.start_byte
        last = end_with_comment(source, guard.end_byte)
        edits = [TextEdit(guard.start_byte, end, header)]
        return [*edits, TextEdit(last, last, behind)] if behind else edits
    end, indent = end_with_comment(source, elements.end), source.line_indent(guard.start_byte)
    inside = [node for node in block.named_children if node.start_byte >= end_with_comment(source, guard.end_byte)]
    edits = [TextEdit(guard.start_byte, guard.end_byte, f"{header} {{")]
    edits += indented(source, inside, indent_unit(source, block))
    return [*edits, TextEdit(end, end, f"\n{indent}}}{behind}")]
