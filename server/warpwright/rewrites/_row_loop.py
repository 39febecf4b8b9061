"""A loop whose iterations the lanes of a warp can share: counts up by 1, and each iteration stands for itself but for
the variables that it accumulates into."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.numbers import number_at
from warpwright.facts.model import WARP, AccessKind, Kernel, Space
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._accumulate import Update, is_idempotent, is_neutral, match_update, shuffled_type
from warpwright.rewrites._code import NoMatchError, names, squeezed
from warpwright.rewrites._iteration_variables import own_variables, set_anew, visible_at
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import is_floating, locals_of
from warpwright.rewrites._threads import NUMBERS
from warpwright.syntax.nodes import BREAKABLE, LOOPS, ancestors, descendants, enclosing, uncommented
from warpwright.syntax.source import Source

Accumulated = dict[str, tuple[str, str, CType]]
"""By variable: the operation, the function that is called for it, and the variable's type."""


@dataclass(frozen=True, slots=True)
class RowLoop:
    """`for (T step = initial; step < bound; step++)`; `updates` are its accumulations."""

    node: Node
    step: str
    initial: Node
    update: Node
    updates: tuple[Update, ...]


FREE_ATOMICS = frozenset({"atomicAdd", "atomicSub", "atomicAnd", "atomicOr", "atomicXor", "atomicMax", "atomicMin"})
"""Atomics that come to the same in any order, where nobody asks for what they return."""
_WRITES = re.compile(r"sincos|modf|frexp|remquo|lgamma_r")
"""Functions of the mathematical library that write through pointers."""


def targets(node: Node, source: Source) -> Iterator[Node]:
    """What is assigned or stepped below a node, or written through its address, and calls of atomics."""
    for found in descendants(node, "assignment_expression", "update_expression", "call_expression"):
        if found.type == "call_expression":
            name = called_name(found, source)
            if name.startswith("atomic"):
                yield found
            elif _WRITES.match(name):
                for argument in uncommented(found.child_by_field_name("arguments")):
                    inner = argument.child_by_field_name("argument") if argument.type == "pointer_expression" else None
                    yield from [inner] if inner is not None else []
        else:
            target = found.child_by_field_name("left") or found.child_by_field_name("argument")
            if target is not None:
                yield target


def root_name(source: Source, node: Node) -> str:
    """The variable that an element belongs to: `a` of `a[i].x`, `*(a + i)` and `&a[i]`."""
    first = next(descendants(node, "identifier"), None)
    return source.node_text(first) if first is not None else ""


def row_loop(kernel: Kernel, node: Node, least: int = WARP) -> RowLoop:
    """The loop with what it accumulates into variables; refuses one whose iterations depend on each other otherwise."""
    counted, inside = step_loop(kernel, node, least), node.child_by_field_name("body")
    return replace(counted, updates=updates_of(kernel, node, inside) if inside is not None else ())


def step_loop(kernel: Kernel, node: Node, least: int = WARP) -> RowLoop:
    """The loop's header, whatever its body does to variables; refuses one of fewer iterations than `least`."""
    source = kernel.source
    line = line_of(source, node)
    if node.type != "for_statement":
        raise NoMatchError(f"The loop at line {line} is not a `for` that counts up by 1.")
    initializer, condition, update = (node.child_by_field_name(f) for f in ("initializer", "condition", "update"))
    inside = node.child_by_field_name("body")
    step, initial = _start(source, initializer)
    if initial is None or condition is None or update is None or inside is None:
        raise NoMatchError(f"The loop at line {line} does not start an int or a wider integer of its own at a value.")
    s = re.escape(step)
    if not re.fullmatch(rf"{s}\+\+|\+\+{s}|{s}\+=1[uU]?|{s}={s}\+1[uU]?", squeezed(source.node_code(update))):
        raise NoMatchError(f"The loop at line {line} does not count {step} up by 1.")
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    if condition.type != "binary_expression" or operator is None or left is None or right is None:
        raise NoMatchError(f"The loop at line {line} does not run while {step} is less than a bound.")
    if source.node_text(operator) not in ("<", "<=") or source.node_text(left) != step:
        raise NoMatchError(f"The loop at line {line} does not run while {step} is less than a bound.")
    bound = squeezed(source.node_code(right))
    if (number_at(source, node, bound) or least) < least:
        raise NoMatchError(f"Nothing to gain: the loop at line {line} has fewer than {least} iterations.")
    changed = {source.node_text(t) for t in targets(inside, source) if t.type == "identifier"}
    if any(n in changed for n in re.findall(r"(?<![.\w])\w+", bound)) or re.search(
        r"[(\[]", bound.replace("sizeof(", "")
    ):
        raise NoMatchError(f"The bound {source.node_text(right)} at line {line} may change while the loop runs.")
    if step in changed:
        raise NoMatchError(f"The loop at line {line} changes {step} in its body.")
    for jump in descendants(inside, "break_statement", "return_statement"):
        around = enclosing(jump, *BREAKABLE)
        if jump.type == "return_statement" or around == node:
            raise NoMatchError(f"The loop ends early at line {line_of(source, jump)}.")
    return RowLoop(node, step, initial, update, ())


def _start(source: Source, initializer: Node | None) -> tuple[str, Node | None]:
    declared = [c for c in initializer.named_children if c.type == "init_declarator"] if initializer is not None else []
    if initializer is None or initializer.type != "declaration" or len(declared) != 1:
        return "", None
    if any(c.type == "," for c in initializer.children):
        return "", None
    name, value = declared[0].child_by_field_name("declarator"), declared[0].child_by_field_name("value")
    if name is None or name.type != "identifier":
        return "", None
    kind = initializer.child_by_field_name("type")
    wide = shuffled_type(source.node_text(kind)) if kind is not None else None
    return (source.node_text(name), value) if wide is not None and wide.is_integer else ("", None)


def updates_of(kernel: Kernel, loop: Node, inside: Node, handled: frozenset[int] = frozenset()) -> tuple[Update, ...]:
    """The accumulations of a loop's body; refuses every other change that outlives an iteration, but for the targets
    that start at the bytes `handled`, which the caller knows."""
    source = kernel.source
    own = own_variables(inside, source)
    if hidden := own & visible_at(kernel, loop):
        line = line_of(source, loop)
        raise NoMatchError(f"`{min(hidden)}` names one variable in the loop at line {line} and another around it.")
    own |= set_anew(kernel, loop, inside)
    updates: dict[int, Update] = {}
    for statement in descendants(inside, "expression_statement", "if_statement"):
        update = match_update(source, statement)
        if update is not None:
            updates.setdefault(update.target.start_byte, update)
    found: list[Update] = []
    for target in targets(inside, source):
        name = root_name(source, target)
        line = line_of(source, target)
        if target.type == "call_expression":
            _require_free_atomic(kernel, target, line)
            continue
        if target.type == "identifier":
            if name in own or target.start_byte in handled:
                continue
            update = updates.get(target.start_byte)
            if update is None or (update.operand is not None and any(names(update.operand, source, name))):
                raise NoMatchError(
                    f"What happens to `{name}` at line {line} depends on the iteration before in another way than a "
                    "sum, product, minimum or maximum."
                )
            found.append(update)
        elif name not in own:
            require_apart(kernel, target, line)
    for update in found:
        name = source.node_text(update.target)
        if any(name == source.node_text(o.target) and _kind(o) != _kind(update) for o in found):
            line = line_of(source, loop)
            raise NoMatchError(f"`{name}` is changed by different operations in the loop at line {line}.")
        mine = [u.node for u in found if source.node_text(u.target) == name]
        for use in names(loop, source, name):
            if not any(_part_of(use, u) for u in found if u.node in mine):
                raise NoMatchError(f"`{name}` is read at line {line_of(source, use)}, in the middle of the loop.")
    return tuple(found)


def _kind(update: Update) -> tuple[str, str]:
    return update.operation, update.function


def _part_of(use: Node, update: Update) -> bool:
    """Whether a use of the variable is the update's own, not a part of what it combines or does besides."""
    operand = update.operand
    in_operand = operand is not None and operand.start_byte <= use.start_byte < operand.end_byte
    return update.node.start_byte <= use.start_byte < update.node.end_byte and not in_operand


def require_apart(kernel: Kernel, target: Node, line: int) -> None:
    """A store goes to another place of global memory in every iteration; an array of a thread's own is each lane's."""
    source = kernel.source
    span = source.span(target)
    seen = [
        a
        for a in kernel.accesses
        if a.kind is AccessKind.STORE and a.span.source is source and span.start <= a.span.start < span.end
    ] or [
        a
        for a in kernel.accesses
        if a.kind is AccessKind.STORE and a.span.source is source and a.span.start <= span.start < a.span.end
    ]
    known = seen and all(a.space is Space.GLOBAL and a.loop_step is not None for a in seen)
    if not known or any(abs(a.loop_step or 0) < a.bytes for a in seen):
        raise NoMatchError(
            f"`{source.node_text(target)}` at line {line} is not known to be another element in each iteration."
        )


def _require_free_atomic(kernel: Kernel, call: Node, line: int) -> None:
    """An atomic may be any lane's, at any time: what it returns is not used, and the kernel does nothing else with the
    array than the same operation."""
    source, function = kernel.source, called_name(call, kernel.source)
    arguments = uncommented(call.child_by_field_name("arguments"))
    if function not in FREE_ATOMICS or len(arguments) != 2:
        raise NoMatchError(f"The loop changes memory by {function} at line {line}.")
    if call.parent is None or call.parent.type != "expression_statement":
        raise NoMatchError(f"What {function} returns at line {line} is used.")
    name = root_name(source, arguments[0])
    if not any(p.name == name and p.is_pointer for p in kernel.parameters) or kernel.node is None:
        raise NoMatchError(
            f"`{source.node_text(arguments[0])}` at line {line} is not in an array that the kernel is given."
        )
    alike = {
        next(descendants(first, "identifier")).start_byte
        for other in descendants(kernel.node, "call_expression")
        if called_name(other, source) == function and other.parent and other.parent.type == "expression_statement"
        for first in uncommented(other.child_by_field_name("arguments"))[:1]
        if root_name(source, first) == name
    }
    inside = kernel.node.child_by_field_name("body")
    for use in names(inside, source, name) if inside is not None else ():
        if use.start_byte not in alike:
            raise NoMatchError(f"`{name}`, which {function} changes, is used at line {line_of(source, use)}, too.")


def accumulated(kernel: Kernel, block: Node, loop: RowLoop) -> Accumulated:
    """The variables that a loop accumulates into, each with a type that a shuffle takes and a start that may be had by
    all lanes."""
    source = kernel.source
    found: Accumulated = {}
    for update in loop.updates:
        name = source.node_text(update.target)
        if name in found:
            continue
        kind = variable_type(kernel, block, name)
        if update.admits_nan and not kind.is_integer:
            raise NoMatchError(f"A NaN comes into `{name}` and goes with the next number, so the order matters.")
        require_kind(kernel, update, kind)
        if not is_idempotent(update.operation):
            _require_neutral_start(source, block, loop, name, update.operation)
        found[name] = update.operation, update.function, kind
    return found


def require_kind(kernel: Kernel, update: Update, kind: CType) -> None:
    """No integer takes floating-point numbers: what is cut off depends on the order."""
    source, operand = kernel.source, update.operand
    if kind.is_integer and operand is not None and is_floating(source, operand, locals_of(kernel).types):
        name, line = source.node_text(update.target), line_of(source, update.node)
        raise NoMatchError(f"`{name}` is an integer and takes a floating-point number at line {line}.")
    require_same_order(source, update, kind, locals_of(kernel).types)


def require_same_order(source: Source, update: Update, kind: CType, types: Mapping[str, str]) -> None:
    """An integer maximum or minimum compares as its variable's type does, and keeps what it takes: `m = max(m, x)` with
    an int and an unsigned compares them as unsigned, and parts of the sum of the lanes as int."""
    if update.operation not in ("max", "min") or not kind.is_integer or update.operand is None:
        return
    own = kind.size or 4
    for other in _kinds(source, update.operand, types):
        size = other.size or 4
        if size > own or (kind.kind == "int" and other.kind == "uint" and size == own):
            name, line = source.node_text(update.target), line_of(source, update.node)
            raise NoMatchError(f"`{name}` is {kind.name} and takes {other.name} at line {line}: the order is another.")


def _kinds(source: Source, node: Node, types: Mapping[str, str]) -> Iterator[CType]:
    """The types of integers that an expression is made of, as far as they are known."""
    text, parts = source.node_text(node), node.named_children
    match node.type:
        case "identifier":
            written = "unsigned int" if text in NUMBERS else types.get(text, "")
        case "number_literal":
            written = "unsigned int" if re.search(r"[uU]", text) else ""
        case "cast_expression":
            kind = node.child_by_field_name("type")
            written, parts = (source.node_code(kind) if kind is not None else ""), []
        case _:
            written = ""
    if node.type == "subscript_expression":
        parts = [n for n in (node.child_by_field_name("argument"),) if n is not None]
    elif node.type == "conditional_expression":
        parts = [n for f in ("consequence", "alternative") if (n := node.child_by_field_name(f)) is not None]
    known = builtin_type(written)
    if known is not None and known.is_integer:
        yield known
    for part in parts:
        yield from _kinds(source, part, types)


def variable_type(kernel: Kernel, block: Node, name: str) -> CType:
    """The type of a variable that a shuffle takes; refuses any other."""
    source = kernel.source
    declared: list[str] = []
    for declaration in descendants(block, "declaration"):
        for child in declaration.children_by_field_name("declarator"):
            inner = child.child_by_field_name("declarator") if child.type == "init_declarator" else child
            if inner is not None and source.node_text(inner) == name:
                first = declaration.children_by_field_name("declarator")[0]
                declared.append(source.text(declaration.start_byte, first.start_byte))
    kind = shuffled_type(declared[0].strip()) if len(declared) == 1 else None
    if kind is None:
        what = declared[0].strip() if len(declared) == 1 else "not of one known type"
        raise NoMatchError(f"`{name}` is {what}, which is not known to be a number that a shuffle takes.")
    return kind


def _require_neutral_start(source: Source, block: Node, loop: RowLoop, name: str, operation: str) -> None:
    """Each time before the loop runs, the variable is set to the number that changes nothing, with no loop between."""
    start = None
    for node in (loop.node, *ancestors(loop.node)):
        if node == block or (node != loop.node and node.type in LOOPS):
            break
        start, is_set = _last_set_before(source, node, name)
        if is_set:
            break
    if start is None or not is_neutral(source.node_text(start), operation):
        raise NoMatchError(
            f"`{name}` does not start at the neutral number right before line {line_of(source, loop.node)}, so what it "
            "starts at would be counted more or less often."
        )


def _last_set_before(source: Source, node: Node, name: str) -> tuple[Node | None, bool]:
    """The value that a variable is last set to by a statement before a node in the same braces, and whether one
    changes it; no value where it is changed in another way than by being set."""
    earlier = node.prev_named_sibling
    while earlier is not None:
        if earlier.type == "declaration":
            for child in earlier.children_by_field_name("declarator"):
                inner = child.child_by_field_name("declarator") if child.type == "init_declarator" else child
                if inner is not None and source.node_text(inner) == name:
                    return (child.child_by_field_name("value") if child.type == "init_declarator" else None), True
        if any(source.node_text(t) == name for t in targets(earlier, source)):
            return (_set_to(source, earlier, name) if earlier.type == "expression_statement" else None), True
        earlier = earlier.prev_named_sibling
    return None, False


def _set_to(source: Source, statement: Node, name: str) -> Node | None:
    """The value in `name = value;` and in `other = name = value;`."""
    node: Node | None = uncommented(statement)[0] if len(uncommented(statement)) == 1 else None
    is_ours = False
    while node is not None and node.type == "assignment_expression":
        left, operator = node.child_by_field_name("left"), node.child_by_field_name("operator")
        if operator is None or left is None or source.node_text(operator) != "=":
            return None
        is_ours = is_ours or source.node_text(left) == name
        node = node.child_by_field_name("right")
    return node if is_ours else None
