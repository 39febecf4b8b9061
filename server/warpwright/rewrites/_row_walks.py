"""Loops in which each thread walks along a row of its own, and what of a row is loaded and stored there.

Example: `for (int c = 0; c < columns; c++) { last += in[row * columns + c]; out[row * columns + c] = last; }`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.algebra.sums import coefficient, symbols
from warpwright.cuda.functions import called_name
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import Access, AccessKind, Kernel, Space
from warpwright.rewrites._code import NoMatchError, body, in_macro, names, squeezed
from warpwright.rewrites._guards import comparisons, is_early_return
from warpwright.rewrites._indices import Indices, Polynomial
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import changed_names, declared_names, locals_of
from warpwright.rewrites._loops import loop_start
from warpwright.rewrites._row_loop import root_name, targets
from warpwright.rewrites._row_stores import led_to
from warpwright.rewrites._uniform import is_even_loop, is_uniform
from warpwright.syntax.nodes import BREAKABLE, LOOPS, ancestors, declared_name, descendants, enclosing, uncommented
from warpwright.syntax.source import Source

_STEP = r"{0}\+\+|\+\+{0}|{0}\+=1|{0}={0}\+1"
_JUMPS = ("break_statement", "return_statement", "continue_statement")
_ALWAYS = frozenset(
    {
        "expression_statement", "declaration", "init_declarator", "assignment_expression", "binary_expression",
        "parenthesized_expression", "call_expression", "argument_list", "cast_expression", "unary_expression",
        "compound_statement", "subscript_expression", "subscript_argument_list", "field_expression",
        "condition_clause", "if_statement", "return_statement", "initializer_list",
    }
)  # fmt: skip
"""What a part of an iteration may stand in and still be evaluated in each; of an `if`, the condition alone."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What a loop uses of one row of `array`: every `uses` is the element at `index`, which grows by 1 with the loop.
    `pointer` is what is indexed: the array, or a variable that leads into it at `offset`."""

    array: str
    index: Node
    uses: tuple[Node, ...]
    loads: bool
    stores: bool
    offset: Node | None = None


@dataclass(frozen=True, slots=True)
class RowWalk:
    """`for (step = start; step < bound; update)`. `type` is that of the variable, which `declares` says the loop
    declares; `even` whether all threads run it equally often, over the same numbers."""

    node: Node
    body: Node
    step: str
    type: str
    start: Node
    bound: Node
    update: str
    declares: bool
    even: bool
    pieces: tuple[Piece, ...]


def row_walk(indices: Indices, node: Node, arrays: Collection[str]) -> RowWalk:
    """The parts of a loop that walks rows of some of the arrays. Raises NoMatchError with the reason."""
    kernel = indices.kernel
    source, line = kernel.source, line_of(kernel.source, node)
    if in_macro(node) or node.type != "for_statement":
        raise NoMatchError(f"The loop at line {line} is not a `for` that counts up by 1.")
    initializer, condition, update = (node.child_by_field_name(f) for f in ("initializer", "condition", "update"))
    inside = node.child_by_field_name("body")
    step, kind, start = loop_start(kernel, indices.variables.types, initializer)
    if start is None or condition is None or update is None or inside is None:
        raise NoMatchError(f"The loop at line {line} does not start an int or a wider integer at a value.")
    if not re.fullmatch(_STEP.format(re.escape(step)), squeezed(source.node_code(update))):
        raise NoMatchError(f"The loop at line {line} does not count {step} up by 1.")
    left, bound = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    less = operator is not None and source.node_text(operator) == "<" and condition.type == "binary_expression"
    if not less or left is None or bound is None or source.node_text(left) != step:
        raise NoMatchError(f"The loop at line {line} does not run while {step} is less than a bound.")
    for jump in descendants(inside, *_JUMPS):
        around = enclosing(jump, *BREAKABLE)
        own = around == node or (jump.type == "continue_statement" and enclosing(jump, *LOOPS) == node)
        if jump.type == "return_statement" or own:
            raise NoMatchError(
                f"An iteration of the loop at line {line} may end early, at line {line_of(source, jump)}."
            )
    changed = set(changed_names(source, inside)) | {source.node_text(t) for t in targets(inside, source)}
    if step in changed:
        raise NoMatchError(f"The loop at line {line} changes {step} in its body.")
    for word in re.findall(r"(?<![.\w])[A-Za-z_]\w*", source.node_code(bound)):
        if word in changed or word in declared_names(source, inside):
            raise NoMatchError(f"The bound {source.node_text(bound)} at line {line} may change while the loop runs.")
    if any(True for _ in descendants(bound, "call_expression", "assignment_expression", "update_expression")):
        raise NoMatchError(f"The bound {source.node_text(bound)} at line {line} is more than a value.")
    declares = initializer is not None and initializer.type == "declaration"
    if not declares:
        _require_not_read_behind(kernel, node, step)
    variables = locals_of(kernel)
    even = is_uniform(kernel, variables, start) and is_uniform(kernel, variables, bound)
    kind = kind.replace("const ", "")
    walk = RowWalk(node, inside, step, kind, start, bound, source.node_text(update), declares, even, ())
    pieces = tuple(p for array in sorted(arrays) for p in _pieces(indices, walk, array, changed))
    if not pieces:
        raise NoMatchError(f"The loop at line {line} does not walk along a row of its own in each thread.")
    return replace(walk, pieces=pieces)


def _require_not_read_behind(kernel: Kernel, loop: Node, step: str) -> None:
    """A variable that is declared before the loop is set again before it is read: where the loop has no iteration, it
    would keep another value."""
    source = kernel.source
    for use in names(kernel.node, source, step) if kernel.node is not None else ():
        if loop.start_byte <= use.start_byte < loop.end_byte:
            continue
        around = [n for n in ancestors(use) if n.type in ("for_statement", "init_declarator", "declaration")]
        loops = [n for n in around if n.type == "for_statement"]
        declaration = use.parent is not None and use.parent.type in ("declaration", "init_declarator")
        counted = any(_sets(source, n.child_by_field_name("initializer"), step) for n in loops)
        if not (declaration or counted):
            raise NoMatchError(f"`{step}`, which the loop at line {line_of(source, loop)} counts, is used outside.")


def _sets(source: Source, initializer: Node | None, name: str) -> bool:
    left = initializer.child_by_field_name("left") if initializer is not None else None
    return left is not None and source.node_text(left) == name


def _pieces(indices: Indices, walk: RowWalk, array: str, changed: Collection[str]) -> Iterator[Piece]:
    """What the loop uses of rows of one array: a piece for each index that is its own."""
    kernel = indices.kernel
    source = kernel.source
    found: dict[str, list[Node]] = {}
    offsets = _pointers(indices, array)
    for use in descendants(walk.body, "subscript_expression"):
        argument, index = use.child_by_field_name("argument"), _index(use)
        if argument is None or index is None or argument.type != "identifier" or in_macro(use):
            continue
        name = source.node_text(argument)
        if name in offsets and _grows_by_one(indices, walk, index, changed):
            found.setdefault(f"{name}[{squeezed(source.node_code(index))}]", []).append(use)
    for uses in found.values():
        if not any(_is_always_done(use, walk.body) for use in uses):
            continue
        argument, index = uses[0].child_by_field_name("argument"), _index(uses[0])
        if argument is None or index is None:
            continue
        kinds = [_kind(use) for use in uses]
        stores = any("store" in kind for kind in kinds)
        # what is stored in some iterations alone is loaded first, so that the others put back what was there
        kept = any(kind == "store" and _is_always_done(use, walk.body) for use, kind in zip(uses, kinds, strict=True))
        loads = any("load" in kind for kind in kinds) or (stores and not kept)
        yield Piece(array, index, tuple(uses), loads, stores, offsets[source.node_text(argument)])


def _index(element: Node) -> Node | None:
    indices = element.child_by_field_name("indices")
    inner = uncommented(indices) if indices is not None else []
    return inner[0] if len(inner) == 1 else None


def _kind(use: Node) -> str:
    """Whether an element is loaded, stored, or both."""
    parent = use.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    if parent is not None and parent.type == "update_expression":
        return "load store"
    if parent is not None and parent.type == "assignment_expression" and parent.child_by_field_name("left") == use:
        operator = parent.child_by_field_name("operator")
        plain = operator is not None and operator.type == "="
        value = parent.parent is None or parent.parent.type != "expression_statement"
        return "store" if plain and not value else "load store"
    return "load"


def _pointers(indices: Indices, array: str) -> dict[str, Node | None]:
    """The names under which an array is indexed, each with where it starts in it; None for the array itself."""
    source, block = indices.kernel.source, body(indices.kernel)
    found: dict[str, Node | None] = {array: None}
    for declared in descendants(block, "init_declarator") if block is not None else ():
        node, name = declared.child_by_field_name("value"), declared_name(source, declared)
        if name in indices.variables.changed or name not in indices.variables.types:
            continue
        if node is not None and node.type == "pointer_expression" and source.node_code(node).startswith("&"):
            element = node.child_by_field_name("argument")
            root = element.child_by_field_name("argument") if element is not None else None
            plain = element is not None and element.type == "subscript_expression"
            if plain and element is not None and root is not None and source.node_text(root) == array:
                found[name] = _index(element)
            continue
        operator = node.child_by_field_name("operator") if node is not None else None
        if node is None or node.type != "binary_expression" or operator is None or operator.type != "+":
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and source.node_text(left) == array:
            found[name] = right
    return {name: start for name, start in found.items() if name == array or start is not None}


def _grows_by_one(indices: Indices, walk: RowWalk, index: Node, changed: Collection[str]) -> bool:
    """Whether an index is a sum of the loop's variable and of what stays as it is while the loop runs."""
    value: Polynomial | None = indices.read(index)
    if value is None or coefficient(value, walk.step) != 1:
        return False
    own = declared_names(indices.kernel.source, walk.body)
    return not any(name in changed or name in own for name in symbols(value) - {walk.step})


def _is_always_done(node: Node, inside: Node) -> bool:
    """Whether each iteration comes to a part of its body."""
    child = node
    for parent in ancestors(node):
        if inside in (parent, child):
            return True
        if parent.type not in _ALWAYS:
            return False
        if parent.type == "if_statement" and parent.child_by_field_name("condition") != child:
            return False
        operator = parent.child_by_field_name("operator")
        if parent.type == "binary_expression" and operator is not None and operator.type in ("&&", "||"):
            return False
        child = parent
    return False


def condition_before(kernel: Kernel, block: Node, loops: Collection[Node]) -> tuple[str, Node | None]:
    """What holds for the threads that come to the loops, and the statement that sees to it; empty and None where all
    threads do. Raises NoMatchError where threads of a warp may come there differently often."""
    source = kernel.source
    found: dict[int, Node] = {}
    for loop in loops:
        outer: Node = loop
        while outer.parent is not None and outer.parent != block:
            parent = outer.parent
            is_body = parent.type == "compound_statement"
            guard = parent.type == "if_statement" and parent.parent == block
            alone = parent.child_by_field_name("alternative") is None
            even = parent.type == "for_statement" and is_even_loop(kernel, parent)
            if not (is_body or (guard and alone) or even):
                line = line_of(source, parent)
                raise NoMatchError(
                    f"The loop stands within the statement at line {line}, so not all lanes may come there."
                )
            if guard:
                found[parent.start_byte] = parent
            elif even and (jump := next(_leaving(parent), None)) is not None:
                raise NoMatchError(f"Lanes may leave at line {line_of(source, jump)}, before the loop.")
            outer = parent
        for leave in descendants(block, "return_statement"):
            statement = next((n for n in (leave, *ancestors(leave)) if n.parent == block), leave)
            if leave.start_byte > max(n.end_byte for n in loops):
                continue
            if not is_early_return(statement):
                raise NoMatchError(f"Lanes may leave at line {line_of(source, leave)}, before the loop.")
            found[statement.start_byte] = statement
    if not found:
        return "", None
    guards = [found[start] for start in sorted(found)]
    if any(not is_early_return(g) for g in guards[:-1]):
        raise NoMatchError(f"Loops stand within several conditions, as at line {line_of(source, guards[-1])}.")
    last = guards[-1]
    if any(loop.start_byte < last.start_byte for loop in loops):
        raise NoMatchError(f"Lanes may leave at line {line_of(source, last)}, between loops over a row.")
    clause = last.child_by_field_name("condition")
    test = clause.child_by_field_name("value") if clause is not None else None
    conditions = comparisons(source, test, leaves=is_early_return(last))
    if test is None or conditions is None:
        raise NoMatchError(f"The condition at line {line_of(source, last)} is more than comparisons.")
    for change in descendants(test, "assignment_expression", "update_expression", "call_expression"):
        raise NoMatchError(f"The condition at line {line_of(source, change)} does more than compare.")
    return " && ".join(condition.text(source) for condition in conditions), last


def _leaving(loop: Node) -> Iterator[Node]:
    """What ends an iteration of a loop early."""
    inside = loop.child_by_field_name("body")
    for jump in descendants(inside, *_JUMPS) if inside is not None else ():
        around = enclosing(jump, *BREAKABLE)
        if around == loop or (around is not None and around.type == "switch_statement"):
            yield jump


def require_own_rows(kernel: Kernel, block: Node, walks: Collection[RowWalk]) -> None:
    """What is stored of the pieces is used through them alone, and what is loaded of others is stored nowhere."""
    source = kernel.source
    leads_to = led_to(kernel, block)
    staged = {use.start_byte for walk in walks for piece in walk.pieces for use in piece.uses}
    arrays = {piece.array for walk in walks for piece in walk.pieces}
    stored = {piece.array for walk in walks for piece in walk.pieces if piece.stores}
    for walk in walks:
        for array in stored:
            if len({_place(source, p) for p in walk.pieces if p.array == array}) > 1:
                raise NoMatchError(f"Several rows of {array}, which is stored to, are used in one loop.")
    for target in targets(block, source):
        inner = target
        if target.type == "call_expression":
            arguments = uncommented(target.child_by_field_name("arguments"))
            inner = arguments[0] if arguments else target
        if inner.type == "identifier" or _within(inner, staged):
            continue
        root = root_name(source, inner)
        if hit := leads_to.get(root, {root}) & arrays:
            raise NoMatchError(f"{min(hit)} is stored to at line {line_of(source, inner)}, too.")
    for use in descendants(block, "identifier"):
        name = source.node_text(use)
        hit = leads_to.get(name, {name}) & stored
        if hit and not _within(use, staged) and not _makes_pointer(use):
            raise NoMatchError(f"{min(hit)} is stored to along rows, and used at line {line_of(source, use)}, too.")
    for call in descendants(block, "call_expression"):
        given = {source.node_text(n) for n in uncommented(call.child_by_field_name("arguments"))}
        handed = {array for name in given for array in leads_to.get(name.lstrip("&"), set[str]())} & arrays
        if handed and not KNOWN_FUNCTIONS.fullmatch(called_name(call, source)):
            raise NoMatchError(f"{min(handed)} is handed to a function at line {line_of(source, call)}.")


def _place(source: Source, piece: Piece) -> str:
    offset = squeezed(source.node_code(piece.offset)) if piece.offset is not None else ""
    return f"{offset}+{squeezed(source.node_code(piece.index))}"


def _within(node: Node, starts: Collection[int]) -> bool:
    """Whether a node is the array of one of the elements that start there, or the element."""
    element = node if node.type == "subscript_expression" else node.parent
    return element is not None and element.type == "subscript_expression" and element.start_byte in starts


def _makes_pointer(use: Node) -> bool:
    around = enclosing(use, "init_declarator", "parameter_declaration")
    declarator = around.child_by_field_name("declarator") if around is not None else None
    if around is None or declarator is None:
        return False
    return declarator.type == "pointer_declarator" or around.type != "init_declarator"


def walking(kernel: Kernel, strided: float, fewest: int) -> list[Access]:
    """The accesses with which each lane walks along consecutive elements far from those of the others."""
    return [
        access
        for access in kernel.accesses
        if access.space is Space.GLOBAL
        and access.kind is not AccessKind.ATOMIC
        and access.span.source is kernel.source
        and access.loop_step == access.bytes
        and access.iterations >= fewest
        and (access.excess or 0.0) >= strided
    ]
