"""Loops whose iterations each work on an element of their own, whichever thread takes which."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.aliasing import LOOPS, handed_the_same
from warpwright.facts.model import Kernel
from warpwright.rewrites._arrays import takes_values
from warpwright.rewrites._code import KNOWN_FUNCTIONS, NoMatchError, body, called_name, names
from warpwright.rewrites._indices import Indices, Polynomial, combined, symbols
from warpwright.rewrites._loops import CountedLoop
from warpwright.rewrites._thread_numbers import NUMBER, WARP_LEVEL, calls_by_number
from warpwright.syntax.nodes import descendants, enclosing, uncommented

_VALUES = ("identifier", "field_expression")
_LINES = frozenset({"blockIdx.y", "blockIdx.z"})
"""Numbers that are the same for all threads of a line of blocks."""


def require_by_element(
    indices: Indices, loop: CountedLoop, element: Polynomial, places: list[Node], own: set[str]
) -> set[str]:
    """An iteration depends on its element alone and stores at that element alone. `places` name the element, as the
    variables `own` do. Returns the block's numbers, such as "blockIdx.y", that choose the line of every element that is
    stored."""
    kernel, source = indices.kernel, indices.kernel.source
    declared = {source.node_text(n) for n in declared_names(loop.body)}
    arrays = {source.node_text(n) for d in descendants(loop.body, "array_declarator") for n in d.named_children[:1]}
    for reference in descendants(loop.body, "reference_declarator", "lambda_expression"):
        line = source.position(reference.start_byte)[0]
        raise NoMatchError(f"`{source.node_text(reference)}` at line {line} may stand for another element.")
    inside = [(p.start_byte, p.end_byte) for p in places]
    for use in descendants(loop.body, "identifier"):
        name, line = source.node_text(use), source.position(use.start_byte)[0]
        if any(start <= use.start_byte < end for start, end in inside) or name in own:
            continue
        if NUMBER.fullmatch(name) or WARP_LEVEL.fullmatch(name) or name == loop.name:
            raise NoMatchError(f"`{name}` is used at line {line} for something else than the element.")
        read = symbols(indices.named(name) or {}) - _LINES
        if any(NUMBER.search(factor) or factor == loop.name for factor in read):
            raise NoMatchError(f"`{name}` at line {line} depends on the thread's number.")
    if reason := calls_by_number(kernel, loop.body):
        raise NoMatchError(reason)
    stored: dict[str, Polynomial] = {}
    for target in _targets(loop.body):
        line = source.position(target.start_byte)[0]
        first = next(descendants(target, "identifier"), None)
        name = source.node_text(first) if first is not None else ""
        if name in own or name == loop.name:
            raise NoMatchError(f"`{name}` is changed at line {line}.")
        if name in declared:
            own_array = target.type == "subscript_expression" and name in arrays
            if target.type not in _VALUES and not own_array:
                raise NoMatchError(f"`{source.node_text(target)}` at line {line} is changed through a pointer.")
            continue
        index = target.child_by_field_name("indices") if target.type == "subscript_expression" else None
        at = indices.read(next(iter(uncommented(index)), None)) if index is not None else None
        if at is None or not _is_of_element(indices, at, element):
            raise NoMatchError(f"`{source.node_text(target)}` is changed at line {line}, and is not the element alone.")
        stored[name] = at
    _require_calls(kernel, loop)
    for jump in descendants(loop.body, "break_statement", "return_statement"):
        if jump.type == "break_statement" and (_leaves_inner(jump, loop) or _at_the_end(indices, jump, loop, element)):
            continue
        raise NoMatchError(f"The loop is left at line {source.position(jump.start_byte)[0]}.")
    for name, at in stored.items():
        _require_own_uses(indices, loop, at, name)
    for one, other in handed_the_same(kernel):
        if one in stored or other in stored:
            raise NoMatchError(f"A launch hands the same array to {one} and {other}.")
    return {line for line in _LINES if all(line in symbols(at) for at in stored.values())}


def _require_calls(kernel: Kernel, loop: CountedLoop) -> None:
    """Nothing is called that could store through what it is given."""
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    source = kernel.source
    for call in descendants(loop.body, "call_expression"):
        name, line = called_name(call, source), source.position(call.start_byte)[0]
        arguments = [source.node_text(n) for n in uncommented(call.child_by_field_name("arguments"))]
        known = KNOWN_FUNCTIONS.fullmatch(name) and not name.startswith(("atomic", "printf", "assert", "__sync"))
        if pointers.intersection(arguments) or not (known or takes_values(call, source)) or name.startswith("atomic"):
            raise NoMatchError(f"`{name}` is called at line {line}, which may do more than compute a value.")


def _is_of_element(indices: Indices, at: Polynomial, element: Polynomial) -> bool:
    """Whether a place is the element's, in a line of elements that the block's number in y or z may choose."""
    line = combined("-", at, element)
    names = symbols(line) - _LINES if line is not None else {""}
    return all(indices.variables.is_fixed(name) for name in names)


def _require_own_uses(indices: Indices, loop: CountedLoop, element: Polynomial, array: str) -> None:
    """An array that the loop stores to is used at the element and nowhere else."""
    source, block = indices.kernel.source, body(indices.kernel)
    if array not in {p.name for p in indices.kernel.parameters if p.is_pointer}:
        raise NoMatchError(f"`{array}` is changed by the loop and declared outside of it.")
    for use in names(block, source, array) if block is not None else ():
        parent = use.parent
        index = parent.child_by_field_name("indices") if parent is not None else None
        at = indices.read(next(iter(uncommented(index)), None)) if index is not None else None
        if at != element or not loop.node.start_byte <= use.start_byte < loop.node.end_byte:
            line = source.position(use.start_byte)[0]
            raise NoMatchError(f"`{array}` is used at line {line} other than at the element that is stored.")


def _targets(node: Node) -> Iterator[Node]:
    for change in descendants(node, "assignment_expression", "update_expression"):
        target = change.child_by_field_name("left") or change.child_by_field_name("argument")
        if target is not None:
            yield target


def declared_names(node: Node) -> Iterator[Node]:
    for declaration in descendants(node, "declaration"):
        for declarator in declaration.children_by_field_name("declarator"):
            if (name := next(descendants(declarator, "identifier"), None)) is not None:
                yield name


def _leaves_inner(jump: Node, loop: CountedLoop) -> bool:
    """Whether a `break` leaves a loop or `switch` within the loop."""
    return enclosing(jump, *LOOPS, "for_range_loop", "switch_statement") != loop.node


def _at_the_end(indices: Indices, jump: Node, loop: CountedLoop, element: Polynomial) -> bool:
    """`if (i >= n) break;`: the elements of the iterations that follow lie behind the bound, too."""
    branch = enclosing(jump, "if_statement")
    clause = branch.child_by_field_name("condition") if branch is not None else None
    test = clause.child_by_field_name("value") if clause is not None else None
    if branch is None or test is None or test.type != "binary_expression" or enclosing(branch, *LOOPS) != loop.node:
        return False
    operator, bound = test.child_by_field_name("operator"), test.child_by_field_name("right")
    read = indices.read(bound)
    fixed = read is not None and all(indices.variables.is_fixed(name) for name in symbols(read))
    at_end = operator is not None and operator.type in (">=", ">")
    return at_end and fixed and indices.read(test.child_by_field_name("left")) == element
