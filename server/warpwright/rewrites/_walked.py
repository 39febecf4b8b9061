"""The elements that a thread moves along its row in a loop, and what else the loop does to their memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.linkage import is_header
from warpwright.facts.model import Access, Kernel
from warpwright.rewrites._code import NoMatchError, body, in_macro, moved_pointer, names, squeezed
from warpwright.rewrites._counted_walk import CountedWalk, moves_along, written_out
from warpwright.rewrites._element_arrays import ElementArray, done, is_certain, is_value
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import changed_names, declared_names, is_template_type, locals_of
from warpwright.rewrites._row_loop import root_name, targets
from warpwright.rewrites._templates import launched_beside_structures
from warpwright.rewrites._threads import unfit_call
from warpwright.syntax.nodes import LOOPS, declared_name, descendants, enclosing, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Moved:
    """The elements of an array at one index, which is given with the text that it stands in; `written` is the type of
    one as the kernel writes it, `of_template` where each instance has another, `memory` the parameter whose memory it
    is, empty where that is not known."""

    array: ElementArray
    index: tuple[Source, Node]
    written: str
    memory: str
    of_template: bool


def walked_elements(kernel: Kernel, walk: CountedWalk, walking: list[Access]) -> list[Moved]:
    """What can be moved of the arrays that the loop walks."""
    source, types = kernel.source, locals_of(kernel).types
    found: dict[tuple[str, str], Moved] = {}
    moving = set(changed_names(source, walk.body)) | declared_names(source, walk.body)
    refused = ""
    for access in walking:
        element = next(
            (
                n
                for n in descendants(walk.body, "subscript_expression")
                if n.start_byte <= access.span.start < n.end_byte and not in_macro(n)
            ),
            None,
        )
        name, index = _name_and_index(source, element)
        if element is None or index is None or (name, squeezed(source.node_code(index))) in found:
            refused = refused or f"`{access.expression}` is not written as an element of an array."
            continue
        if name in moving:
            refused = refused or f"`{name}` leads to another place in each iteration."
            continue
        place = written_out(kernel, walk, index)
        if not moves_along(kernel, walk, *place):
            refused = refused or f"`{access.expression}` is not at a sum of {walk.name} and of what stays the same."
            continue
        written = types.get(name, "")
        written = access.type if written == "auto" else written
        of_template = is_template_type(kernel, written)
        if not written or (of_template and (is_header(source) or launched_beside_structures(kernel))):
            refused = (
                refused or f"What type the elements of `{name}` have is not the same wherever {kernel.name} is used."
            )
            continue
        text = squeezed(source.node_code(index))
        same = [
            n
            for n in descendants(walk.body, "subscript_expression")
            if (known := _name_and_index(source, n))[0] == name
            and known[1] is not None
            and squeezed(source.node_code(known[1])) == text
        ]
        if not all(is_value(n, source) for n in same):
            refused = refused or f"The address of `{access.expression}` is taken."
            continue
        skip = _first_skip(walk)
        uses = [
            (done(n, source), n.end_byte <= skip and is_certain(n, walk.body.start_byte, walk.body.end_byte))
            for n in same
        ]
        stores, loads = any(d[1] for d, _ in uses), any(d[0] for d, _ in uses)
        if not any(certain and (d[1] or not stores) for d, certain in uses):
            refused = refused or f"`{access.expression}` is used only as a condition decides."
            continue
        kind = access.type
        memory = _memory(kernel, name)
        found[name, text] = Moved(
            ElementArray(name, kind, tuple(same), loads, stores), place, written, memory, of_template
        )
    if not found:
        raise NoMatchError(refused)
    return list(found.values())


def _first_skip(walk: CountedWalk) -> int:
    """Where an iteration may go on with the next; the end of the loop where none does."""
    skips = (n for n in descendants(walk.body, "continue_statement") if enclosing(n, *LOOPS) == walk.node)
    return min((n.start_byte for n in skips), default=walk.node.end_byte)


def _name_and_index(source: Source, element: Node | None) -> tuple[str, Node | None]:
    """`a` and `i` of `a[i]`; no index for anything else."""
    argument = element.child_by_field_name("argument") if element is not None else None
    indices = element.child_by_field_name("indices") if element is not None else None
    if argument is None or argument.type != "identifier" or indices is None or len(indices.named_children) != 1:
        return "", None
    return source.node_text(argument), uncommented(indices)[0]


def _memory(kernel: Kernel, name: str) -> str:
    """The pointer parameter whose memory a pointer leads to; empty where that is not known."""
    source, block = kernel.source, body(kernel)
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    changed = set(changed_names(source, block)) if block is not None else set()
    for _ in range(4):
        if name in pointers:
            return name
        values = [
            declared.child_by_field_name("value")
            for declared in (descendants(block, "init_declarator") if block is not None else ())
            if declared_name(source, declared) == name
        ]
        if len(values) != 1 or values[0] is None or name in changed:
            return ""
        following = moved_pointer(source, values[0])
        if following is None:
            return ""
        name = following
    return ""


def stored_by(kernel: Kernel, loop: Node) -> set[str]:
    """The pointers whose memory a loop changes."""
    source, pointers = kernel.source, {p.name for p in kernel.parameters if p.is_pointer}
    found: set[str] = set()
    types = locals_of(kernel).types
    arrays = {a.name for a in kernel.shared_arrays}
    for target in targets(loop, source):
        given = uncommented(target.child_by_field_name("arguments"))
        name = root_name(source, given[0] if target.type == "call_expression" and given else target)
        if target.type == "identifier" or name in arrays:
            continue
        memory = _memory(kernel, name)
        local = name in types and name not in pointers and not memory and _is_own_array(kernel, name)
        if not local:
            found.add(memory or name)
    return found


def _is_own_array(kernel: Kernel, name: str) -> bool:
    """Whether a name is declared as an array or a structure of the thread's own, not as a pointer or a reference."""
    source, block = kernel.source, body(kernel)
    kinds = [
        declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        for declaration in (descendants(block, "declaration") if block is not None else ())
        for declarator in declaration.children_by_field_name("declarator")
        if declared_name(source, declarator) == name
    ]
    return bool(kinds) and all(kind is not None and kind.type in ("array_declarator", "identifier") for kind in kinds)


def require_vectors_apart(kernel: Kernel, walk: CountedWalk, elements: list[Moved]) -> None:
    """No store in the loop changes what a vector was loaded with, and no vector is stored over another store."""
    source = kernel.source
    if reason := unfit_call(kernel, walk.body):
        raise NoMatchError(reason)
    for reference in descendants(body(kernel) or walk.body, "reference_declarator"):
        raise NoMatchError(f"What the reference at line {line_of(source, reference)} leads to is not followed.")
    stored = stored_by(kernel, walk.node)
    line = line_of(source, walk.node)
    for one in elements:
        if not one.memory and stored:
            raise NoMatchError(f"Where `{one.array.name}` leads is not known, and the loop at line {line} stores.")
        if one.memory in stored:
            others = [n for n in names(walk.body, source, one.array.name) if not _is_use(n, one)]
            if others or not one.array.is_stored:
                raise NoMatchError(
                    f"The loop at line {line} stores to `{one.memory}` at another place than where it loads from it."
                )
            if way := next(_other_ways(kernel, walk, elements, one.memory), ""):
                raise NoMatchError(
                    f"`{way}` in the loop at line {line} may lead to `{one.memory}`, which it stores to."
                )
        for other in elements:
            shared = one is not other and one.memory == other.memory
            if shared and (one.array.is_stored or other.array.is_stored):
                raise NoMatchError(f"The loop at line {line} stores to `{one.memory}` at two places.")


def _other_ways(kernel: Kernel, walk: CountedWalk, elements: list[Moved], memory: str) -> Iterator[str]:
    """The pointers in a loop's body, other than those of its elements, that lead to a parameter's memory, or nobody
    knows where."""
    source, known = kernel.source, locals_of(kernel)
    moved, parameters = {each.array.name for each in elements}, {p.name for p in kernel.parameters}
    arrays = {a.name for a in kernel.shared_arrays}
    for name in dict.fromkeys(source.node_text(n) for n in descendants(walk.body, "identifier")):
        value = known.values.get(name)
        is_auto = known.types.get(name) == "auto" and value is not None and value.type != "subscript_expression"
        if name in moved | arrays or name not in known.types or (name in parameters and name != memory):
            continue
        leads, is_pointer = _memory(kernel, name), not _is_own_array(kernel, name)
        if (is_pointer and leads in ("", memory)) or (is_auto and leads == memory):
            yield name


def _is_use(name: Node, one: Moved) -> bool:
    return any(use.start_byte <= name.start_byte < use.end_byte for use in one.array.uses)
