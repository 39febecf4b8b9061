"""Waits that order the accesses of a block's threads: where they go follows from the races of the text, and whether
they do what they should from reading the text again with them.

Example: in `tile[t] = in[i]; out[i] = tile[255 - t];` a `__syncthreads();` before the second statement, and in
`s[t] += s[t + 16];` a `__syncwarp();` between what a lane reads and what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.kept import kept_of_latest
from warpwright.facts.model import Basis, Divergence, Kernel, Race
from warpwright.rewrites._code import in_macro
from warpwright.rewrites._layout import after_statement, before_statement, free_name
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, enclosing, node_at, uncommented
from warpwright.syntax.source import Source, Span

MOST_WAITS = 12
WAIT = "/*wait*/"
"""What stands for a wait until it is known which."""


def races_of_blocks(kernel: Kernel) -> list[Race]:
    """Those that a wait of the block or of a warp may cure: not of two blocks, nor of lanes that store at once."""
    return [race for race in kernel.races if race.blocks[0] == race.blocks[1] and not _is_at_once(race)]


@kept_of_latest
def ordered(kernel: Kernel) -> Source | None:
    """The text with waits that leave as few such races as are found; None where no place for one is."""
    first = kernel.source
    for _ in range(MOST_WAITS):
        races = sorted(races_of_blocks(kernel), key=lambda race: race.in_warp)  # a barrier cures some of a warp, too
        tried: set[tuple[bool, tuple[TextEdit, ...]]] = set()
        after = next((found for race in races for found in _steps(kernel, race, tried)), None)
        if after is None:
            break
        kernel = after
    return None if kernel.source is first else kernel.source


def line_edits(before: Source, after: Source) -> tuple[TextEdit, ...]:
    """What differs between two texts, line by line."""
    old, new = before.data.splitlines(keepends=True), after.text().splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    matched = SequenceMatcher(None, before.text().splitlines(keepends=True), new, autojunk=False).get_opcodes()
    return tuple(
        TextEdit(starts[first], starts[last], "".join(new[start:end]))
        for kind, first, last, start, end in matched
        if kind != "equal"
    )


def _is_at_once(race: Race) -> bool:
    return race.at_once or (race.write.key == race.other.key and race.turns is None)


def _steps(kernel: Kernel, race: Race, tried: set[tuple[bool, tuple[TextEdit, ...]]]) -> Iterator[Kernel]:
    """The kernel with one wait more, at each place where it leaves fewer races and every thread comes to it; places
    that were tried for another race are passed over.

    Whether all lanes of a warp come to a `__syncwarp()` is asked of a barrier in its place.
    """
    if kernel.again is None:
        return
    for place in _places(kernel, race):
        if (wait := (race.in_warp, tuple(place))) in tried:
            continue
        tried.add(wait)
        after = _with(kernel, place, "__syncwarp();" if race.in_warp else "__syncthreads();")
        if after is None or not _is_better(after, kernel):
            continue
        asked = _with(kernel, place, "__syncthreads();") if race.in_warp else after
        if asked is not None and _missed(asked, in_warp=race.in_warp) <= _missed(kernel, in_warp=race.in_warp):
            yield after


def _with(kernel: Kernel, place: Sequence[TextEdit], wait: str) -> Kernel | None:
    edits = [TextEdit(edit.start, edit.end, edit.new_text.replace(WAIT, wait)) for edit in place]
    return None if kernel.again is None else kernel.again(kernel.source.edited(edits)).kernel(kernel.name)


def _is_better(after: Kernel, before: Kernel) -> bool:
    return (
        after.incomplete == before.incomplete
        and _count(after) < _count(before)
        and len(after.missed_waits) <= len(before.missed_waits)
        and len(after.unwritten) <= len(before.unwritten)
    )


def _missed(kernel: Kernel, *, in_warp: bool) -> int:
    """The barriers that part of the block, or of a warp, may miss."""
    uniform = {branch.span.key for branch in kernel.branches if branch.divergence is Divergence.UNIFORM}
    return sum(
        barrier.basis is not Basis.EXACT
        or (barrier.divergent and not (in_warp and barrier.condition and barrier.condition.key in uniform))
        for barrier in kernel.barriers
    )


def _count(kernel: Kernel) -> tuple[int, int]:
    """The pairs of places that race in one turn of the loops around them, and those that do from turn to turn."""
    pairs = {(race.write.key, race.other.key, race.turns is None) for race in kernel.races}
    return sum(pair[2] for pair in pairs), sum(not pair[2] for pair in pairs)


def _places(kernel: Kernel, race: Race) -> Iterator[Sequence[TextEdit]]:
    source = kernel.source
    pair = _in_one_function(kernel, race)
    if pair is None:
        return
    write, other = pair
    block = next((a for a in ancestors(write) if a.type == "compound_statement" and _holds(a, other)), None)
    if block is None:
        return
    one, two = (_child(block, node) for node in (write, other))
    if one is None or two is None or (not race.in_warp and _may_leave(one)):
        return
    if one != two:
        yield [before_statement(source, max(one, two, key=lambda node: node.start_byte), [WAIT])]
    elif race.turns is None and (edit := _parted(kernel, race, one, write, other)) is not None:
        yield [edit]
    for loop in (a for a in ancestors(write) if a.type in LOOPS and _holds(a, other)):
        inside = loop.child_by_field_name("body")
        if inside is not None and inside.type == "compound_statement" and uncommented(inside):
            yield [after_statement(source, uncommented(inside)[-1], [WAIT])]


def _in_one_function(kernel: Kernel, race: Race) -> tuple[Node, Node] | None:
    """Both sides in one function: of a side in another function, its one call."""
    nodes = [_node(kernel.source, span) for span in (race.write, race.other)]
    homes = [enclosing(node, "function_definition") if node is not None else None for node in nodes]
    if homes[0] != homes[1]:
        nodes = [node if home == kernel.node else _call(kernel, home) for node, home in zip(nodes, homes, strict=True)]
    write, other = nodes
    return None if write is None or other is None or in_macro(write) or in_macro(other) else (write, other)


def _node(source: Source, span: Span) -> Node | None:
    return node_at(source.root, span.start, span.end) if span.source is source else None


def _call(kernel: Kernel, function: Node | None) -> Node | None:
    """The one call of a function in the kernel's text."""
    if function is None or kernel.node is None:
        return None
    source = kernel.source
    declarator = function.child_by_field_name("declarator")
    head = source.node_code(declarator) if declarator is not None else ""
    calls = [
        call
        for call in descendants(kernel.node, "call_expression")
        if (name := called_name(call, source)) and head.split("(")[0].split()[-1:] == [name]
    ]
    return calls[0] if len(calls) == 1 else None


def _parted(kernel: Kernel, race: Race, statement: Node, write: Node, other: Node) -> TextEdit | None:
    """`s[t] += s[t + 16];` as a read, a wait and a write, under its condition where it has one."""
    source, condition, inner = kernel.source, "", statement
    if statement.type == "if_statement" and statement.child_by_field_name("alternative") is None:
        test, then = (statement.child_by_field_name(name) for name in ("condition", "consequence"))
        if test is None or then is None or any(True for _ in descendants(test, "call_expression")):
            return None
        inner = uncommented(then)[0] if then.type == "compound_statement" and len(uncommented(then)) == 1 else then
        condition = f"if {source.node_text(test)} "
    assignment = uncommented(inner)[0] if inner.type == "expression_statement" else None
    if assignment is None or assignment.type != "assignment_expression":
        return None
    left, operator, right = (assignment.child_by_field_name(name) for name in ("left", "operator", "right"))
    if left is None or operator is None or right is None or not (_holds(left, write) and _holds(right, other)):
        return None
    is_own = enclosing(statement, "function_definition") == kernel.node
    kinds = [array.element_type for array in kernel.shared_arrays if array.name == race.array and is_own]
    kind = next(iter(kinds), "")
    name, value = free_name(source.code_text(), "next"), source.node_text(right)
    stored = f"{condition}{source.node_text(left)} {source.node_text(operator)} {name};"
    if not condition:
        lines = [f"{kind or 'const auto'} {name} = {value};", WAIT, stored]
    else:
        if not kind:
            return None
        lines = [f"{kind} {name} = 0;", f"{condition}{name} = {value};", WAIT, stored]
    indent = source.line_indent(statement.start_byte)
    block = statement.parent
    if block is None or not _is_alone_in_its_line(source, statement, block):
        return TextEdit(statement.start_byte, statement.end_byte, f"\n{indent}".join(lines))
    deeper = f"\n{indent}" + ("\t" if "\t" in indent else "  ")
    text = "".join(deeper + line for line in lines) + f"\n{indent}"
    return TextEdit(block.start_byte + 1, block.end_byte - 1, text)


def _is_alone_in_its_line(source: Source, statement: Node, block: Node) -> bool:
    """Whether it is all that braces hold on one line: `if (t) { s[t] += s[t + 1]; }`."""
    text = source.node_text(block)
    return block.type == "compound_statement" and "\n" not in text and block.named_children == [statement]


def _may_leave(statement: Node) -> bool:
    """Whether threads may have left the function before or in a statement."""
    function = enclosing(statement, "function_definition")
    if function is None:
        return True
    return any(leave.start_byte < statement.end_byte for leave in descendants(function, "return_statement"))


def _holds(around: Node, node: Node) -> bool:
    return around.start_byte <= node.start_byte and node.end_byte <= around.end_byte


def _child(block: Node, node: Node) -> Node | None:
    return next((child for child in block.named_children if _holds(child, node)), None)
