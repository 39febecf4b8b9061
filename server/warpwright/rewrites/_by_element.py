"""Loops whose iterations each work on an element of their own, whichever thread of the block takes which."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import Kernel
from warpwright.rewrites._arrays import takes_values
from warpwright.rewrites._chunks import Chunk, one_for_block
from warpwright.rewrites._code import NoMatchError, body, condition_of, names
from warpwright.rewrites._indices import Polynomial
from warpwright.rewrites._locals import declared_names
from warpwright.rewrites._names import reached_names
from warpwright.rewrites._thread_numbers import WARP_LEVEL, calls_by_number
from warpwright.syntax.nodes import BREAKABLE, LOOPS, ancestors, descendants, enclosing, uncommented
from warpwright.syntax.source import Source

_VALUES = ("identifier", "field_expression")
_WRITES = ("assignment_expression", "update_expression")


def require_by_element(chunk: Chunk) -> None:
    """An iteration depends on its element and on what is one for the block, stores at its element alone, and loads
    nothing that other elements store. Raises NoMatchError."""
    kernel, source, loop = chunk.indices.kernel, chunk.indices.kernel.source, chunk.node
    declared = declared_names(source, chunk.body)
    if hidden := declared & _declared_around(source, loop):
        raise NoMatchError(f"`{min(hidden)}` names one variable in the loop and another around it.")
    for reference in descendants(chunk.body, "reference_declarator", "lambda_expression"):
        line = source.position(reference.start_byte)[0]
        raise NoMatchError(f"`{source.node_text(reference)}` at line {line} may stand for another element.")
    stored = _stored(chunk, declared)
    _require_of_block(chunk, declared | set(stored))
    if reason := calls_by_number(kernel, chunk.body):
        raise NoMatchError(reason)
    _require_calls(kernel, chunk)
    for jump in descendants(chunk.body, "break_statement", "return_statement"):
        if jump.type == "break_statement" and (_leaves_inner(jump, loop) or _at_the_end(chunk, jump)):
            continue
        raise NoMatchError(f"The loop is left at line {source.position(jump.start_byte)[0]}.")
    for name, at in stored.items():
        _require_own_uses(chunk, name, at)
    _require_apart(chunk, set(stored))


def _require_of_block(chunk: Chunk, declared: set[str]) -> None:
    """Nothing but the places is another value in another thread."""
    indices, source, block = chunk.indices, chunk.indices.kernel.source, body(chunk.indices.kernel)
    inside = [(p.start_byte, p.end_byte) for p in chunk.places]
    arrays = {p.name for p in indices.kernel.parameters} | {a.name for a in indices.kernel.shared_arrays}
    for use in descendants(chunk.body, "identifier"):
        name, line = source.node_text(use), source.position(use.start_byte)[0]
        if any(start <= use.start_byte < end for start, end in inside) or name in chunk.own | declared | arrays:
            continue
        if name == "threadIdx" or WARP_LEVEL.fullmatch(name) or name == chunk.name:
            raise NoMatchError(f"`{name}` is used at line {line} for something other than the element.")
        if one_for_block(indices, name):
            continue
        if block is not None and "threadIdx" in reached_names(block, source, use):
            raise NoMatchError(f"`{name}` at line {line} depends on the thread's index.")


def _stored(chunk: Chunk, declared: set[str]) -> dict[str, Polynomial]:
    """By array that the loop stores to, where: at one place that is the element and something one for the block."""
    indices, source = chunk.indices, chunk.indices.kernel.source
    own_arrays = {
        source.node_text(n) for d in descendants(chunk.body, "array_declarator") for n in d.named_children[:1]
    }
    stored: dict[str, Polynomial] = {}
    for target in _targets(chunk.body):
        line = source.position(target.start_byte)[0]
        first = next(descendants(target, "identifier"), None)
        name = source.node_text(first) if first is not None else ""
        if name in chunk.own or name == chunk.name:
            raise NoMatchError(f"`{name}` is changed at line {line}.")
        if name in declared:
            own_array = target.type == "subscript_expression" and name in own_arrays
            if target.type not in _VALUES and not own_array:
                raise NoMatchError(f"`{source.node_text(target)}` at line {line} is changed through a pointer.")
            continue
        at = _index(chunk, target)
        if at is None or chunk.sign(at) not in (1, -1):
            raise NoMatchError(f"`{source.node_text(target)}` is changed at line {line}, and is not the element alone.")
        if stored.setdefault(name, at) != at:
            raise NoMatchError(f"`{name}` is changed at line {line} and at another place.")
    given = {p.name for p in indices.kernel.parameters if p.is_pointer} | {a.name for a in indices.kernel.shared_arrays}
    for name in stored.keys() - given - {name for name in stored if _row_of(chunk, name)}:
        raise NoMatchError(f"`{name}` is changed by the loop and declared outside of it.")
    return stored


def _row_of(chunk: Chunk, pointer: str) -> str:
    """The array of which a pointer such as `float *line = out + row * width` is one row for the block, where the kernel
    uses that array for nothing else; else empty."""
    indices, source, block = chunk.indices, chunk.indices.kernel.source, body(chunk.indices.kernel)
    value = indices.variables.values.get(pointer) or _initial(block, source, pointer)
    if value is None or block is None or pointer in indices.variables.changed:
        return ""
    words = [source.node_text(n) for n in descendants(value, "identifier")]
    arrays = [word for word in words if word in {p.name for p in indices.kernel.parameters if p.is_pointer}]
    plain = not any(True for _ in descendants(value, "subscript_expression", "call_expression", "pointer_expression"))
    others = all(word in arrays or word == "blockIdx" or one_for_block(indices, word) for word in words)
    alone = len(arrays) == 1 and len(list(names(block, source, arrays[0]))) == 1
    return arrays[0] if plain and others and alone and "threadIdx" not in words else ""


def _initial(block: Node | None, source: Source, pointer: str) -> Node | None:
    """The value of `T *pointer = value;`, where the block declares that name once."""
    found = [
        declarator
        for declarator in (descendants(block, "init_declarator") if block is not None else ())
        if (name := next(descendants(declarator, "identifier"), None)) is not None and source.node_text(name) == pointer
    ]
    return found[0].child_by_field_name("value") if len(found) == 1 else None


def _index(chunk: Chunk, element: Node) -> Polynomial | None:
    """The index of `array[index]`; None for anything else."""
    index = element.child_by_field_name("indices") if element.type == "subscript_expression" else None
    array = element.child_by_field_name("argument")
    inner = uncommented(index) if index is not None and array is not None and array.type == "identifier" else []
    return chunk.indices.read(inner[0]) if len(inner) == 1 else None


def _require_own_uses(chunk: Chunk, array: str, at: Polynomial) -> None:
    """An array that the loop stores to is used by the loop at that place alone."""
    source = chunk.indices.kernel.source
    for use in names(chunk.body, source, array):
        if use.parent is None or _index(chunk, use.parent) != at:
            line = source.position(use.start_byte)[0]
            raise NoMatchError(f"`{array}` is used at line {line} other than at the element that is stored.")


def _require_apart(chunk: Chunk, stored: set[str]) -> None:
    """What the loop stores is used, and what it loads is stored, outside of the loop only beyond a barrier."""
    kernel, source, block = chunk.indices.kernel, chunk.indices.kernel.source, body(chunk.indices.kernel)
    if block is None:
        return
    constant = {p.name for p in kernel.parameters if p.is_const or not p.is_pointer}
    arrays = {p.name for p in kernel.parameters} | {a.name for a in kernel.shared_arrays}
    for pointer in descendants(block, "pointer_declarator"):
        name = next(descendants(pointer, "identifier"), None)
        if name is not None and any(names(chunk.body, source, source.node_text(name))):
            if source.node_text(name) in stored:
                _require_only_here(chunk, block, name)
                continue
            line = source.position(pointer.start_byte)[0]
            from_ = enclosing(pointer, "init_declarator")
            value = from_.child_by_field_name("value") if from_ is not None else None
            led = (
                {source.node_text(n) for n in descendants(value, "identifier")} & arrays if value is not None else set()
            )
            if not led or not led <= constant:
                raise NoMatchError(f"The memory behind the pointer at line {line} may be written.")
    changed = {source.node_text(n) for n in _changed_arrays(block)}
    for array in sorted(arrays - constant):
        if array not in stored and (array not in changed or not any(names(chunk.body, source, array))):
            continue
        for use in names(block, source, array):
            declared = enclosing(use, "array_declarator") is not None and use.parent is not None and (
                use.parent.type == "array_declarator"
            )  # fmt: skip
            inside = chunk.node.start_byte <= use.start_byte < chunk.node.end_byte
            if not inside and not declared and not _barrier_between(source, block, chunk.node, use):
                line = source.position(use.start_byte)[0]
                raise NoMatchError(f"`{array}` is used at line {line}, too, and no barrier stands between.")


def _require_only_here(chunk: Chunk, block: Node, pointer: Node) -> None:
    """A pointer to what the loop stores is used by the loop alone."""
    source = chunk.indices.kernel.source
    for use in names(block, source, source.node_text(pointer)):
        inside = chunk.node.start_byte <= use.start_byte < chunk.node.end_byte
        if not inside and use != pointer:
            line = source.position(use.start_byte)[0]
            raise NoMatchError(f"`{source.node_text(pointer)}` is used at line {line}, too.")


def _changed_arrays(block: Node) -> Iterator[Node]:
    """The variables of which something is assigned, stepped, or handed to a function."""
    for node in descendants(block, *_WRITES, "call_expression", "pointer_expression", "init_declarator"):
        if node.type in _WRITES:
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            first = next(descendants(target, "identifier"), None) if target is not None else None
            yield from [first] if first is not None else []
        elif node.type == "init_declarator":
            kind = node.child_by_field_name("declarator")
            if kind is not None and kind.type in ("pointer_declarator", "reference_declarator"):
                yield from descendants(node, "identifier")
        else:
            for part in uncommented(node.child_by_field_name("arguments")) or [node]:
                if part.type != "subscript_expression":
                    yield from descendants(part, "identifier")


def _barrier_between(source: Source, block: Node, one: Node, other: Node) -> bool:
    """Whether a barrier of the kernel's outermost level stands between two pieces of its text."""
    first, last = sorted((one, other), key=lambda node: node.start_byte)
    return any(
        first.end_byte <= statement.start_byte and statement.end_byte <= last.start_byte
        for statement in block.named_children
        if source.node_text(statement).replace(" ", "") == "__syncthreads();"
    )


def _require_calls(kernel: Kernel, chunk: Chunk) -> None:
    """Nothing is called that could store through what it is given."""
    pointers = {p.name for p in kernel.parameters if p.is_pointer} | {a.name for a in kernel.shared_arrays}
    source = kernel.source
    for call in descendants(chunk.body, "call_expression"):
        name, line = called_name(call, source), source.position(call.start_byte)[0]
        arguments = [source.node_text(n) for n in uncommented(call.child_by_field_name("arguments"))]
        known = KNOWN_FUNCTIONS.fullmatch(name) and not name.startswith(("atomic", "printf", "assert", "__sync"))
        if pointers.intersection(arguments) or not (known or takes_values(call, source)) or name.startswith("atomic"):
            raise NoMatchError(f"`{name}` is called at line {line}, which may do more than compute a value.")


def _targets(node: Node) -> Iterator[Node]:
    for change in descendants(node, *_WRITES):
        target = change.child_by_field_name("left") or change.child_by_field_name("argument")
        if target is not None:
            yield target


def _declared_around(source: Source, loop: Node) -> set[str]:
    """The names that are declared in the braces around a loop."""
    found: set[str] = set()
    for around in ancestors(loop):
        if around.type == "function_definition":
            break
        for child in around.named_children if around.type == "compound_statement" else ():
            if child.type == "declaration":
                found |= declared_names(source, child)
    return found


def _leaves_inner(jump: Node, loop: Node) -> bool:
    """Whether a `break` leaves a loop or `switch` within the loop."""
    return enclosing(jump, *BREAKABLE) != loop


def _at_the_end(chunk: Chunk, jump: Node) -> bool:
    """`if (i >= n) break;`: the elements of the iterations that follow lie behind the bound, too."""
    branch, indices = enclosing(jump, "if_statement"), chunk.indices
    test = condition_of(branch) if branch is not None else None
    if branch is None or test is None or test.type != "binary_expression" or enclosing(branch, *LOOPS) != chunk.node:
        return False
    operator, bound = test.child_by_field_name("operator"), test.child_by_field_name("right")
    read = indices.read(bound)
    at_end = operator is not None and operator.type in (">=", ">")
    fixed = read is not None and all(one_for_block(indices, n) for product in read for n in product)
    return at_end and fixed and chunk.sign(indices.read(test.child_by_field_name("left"))) == 1
