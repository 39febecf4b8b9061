"""What is wrong with a kernel that nvcc rejects, where it is certain: a `;`, a misspelled name, the index of a thread.

A repair is certain where the text leaves one way to read it. A name of the user's own is taken for another only where
that one is used nowhere: `row` is no misspelled `rows`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.assist.screen import DEVICE_FUNCTIONS
from warpwright.facts.model import Kernel
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, walk
from warpwright.syntax.source import Source
from warpwright.toolchain.remarks import Remark

BUILT_IN = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
TYPES = frozenset(
    {"float", "double", "half", "int", "unsigned", "short", "char", "long", "size_t", "bool", "void", "const"}
)
_UNDEFINED = re.compile(r'^identifier "(\w+)" is undefined')
_UNUSED = re.compile(r'^variable "(\w+)" was (?:declared but never referenced|set but never used)')
_SHORTEST = 4
"""Letters of a name that is taken for misspelled."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Edits of the kernel's file that cure one error. `name` says the defect."""

    name: str
    explanation: str
    edits: tuple[TextEdit, ...]


def certain_repair(kernel: Kernel, remarks: Sequence[Remark]) -> Repair | None:
    """The repair of the first error, by what the compiler said of the kernel's file; None where none is certain.

    Errors behind the first may follow from it, so that they are left for the next compilation.
    """
    error = next((remark for remark in remarks if remark.severity == "error"), None)
    if error is None or not kernel.span.start <= error.start <= kernel.span.end:
        return None
    if error.message.startswith('expected a ";"'):
        return _missing_semicolon(kernel, error.start)
    undefined = _UNDEFINED.match(error.message)
    if undefined is None:
        return None
    unused = {match[1] for remark in remarks if (match := _UNUSED.match(remark.message))}
    return _misspelled(kernel, undefined[1], unused) or _missing_index(kernel, undefined[1])


def _missing_semicolon(kernel: Kernel, at: int) -> Repair | None:
    """Behind the last token before the one that the compiler did not expect, if a line ends between them."""
    source = kernel.source
    before = [leaf for leaf in _leaves(kernel.node) if leaf.end_byte <= at and leaf.end_byte > leaf.start_byte]
    last = max(before, key=lambda leaf: leaf.end_byte, default=None)
    if last is None or last.type in ("{", "}", ";") or b"\n" not in source.data[last.end_byte : at]:
        return None
    line = source.position(last.start_byte)[0]
    return Repair(
        "missing-semicolon",
        f"The statement that ends in line {line} had no `;`.",
        (TextEdit(last.end_byte, last.end_byte, ";"),),
    )


def _misspelled(kernel: Kernel, name: str, unused: set[str]) -> Repair | None:
    source = kernel.source
    uses = [
        n for n in _leaves(kernel.node) if n.type in ("identifier", "type_identifier") and source.node_text(n) == name
    ]
    meant = _meant(name, _known(uses), _declared(source, kernel.node), unused)
    if meant is None or not uses:
        return None
    edits = tuple(TextEdit(use.start_byte, use.end_byte, meant) for use in uses)
    places = "1 place" if len(uses) == 1 else f"{len(uses)} places"
    return Repair("misspelled-name", f"`{name}` is declared nowhere; `{meant}` is meant, in {places}.", edits)


def _meant(name: str, known: Iterable[str], declared: Iterable[str], unused: set[str]) -> str | None:
    """The one name that is meant, of those that `known` ones are and those that the kernel `declared`.

    >>> _meant("threadidx", ["threadIdx"], ["row"], set()), _meant("idx", [], ["id", "n"], {"id"})
    ('threadIdx', 'id')
    >>> _meant("row", [], ["rows"], set()), _meant("sqrft", ["sqrtf", "sqrt"], [], set()), _meant("N", [], ["n"], set())
    (None, None, None)
    """
    own = [other for other in declared if len(name) > 1 and other.casefold() == name.casefold()]
    own += [other for other in declared if other in unused and other not in own and _is_near(name, other)]
    others = list(dict.fromkeys(known))
    same = [other for other in others if other.casefold() == name.casefold()]
    near = [other for other in others if len(name) >= _SHORTEST and _is_near(name, other)]
    found = dict.fromkeys([*own, *(same or near)])
    return next(iter(found)) if len(found) == 1 else None


def _known(uses: Sequence[Node]) -> frozenset[str]:
    """The names that nobody declares and that may stand where these do."""
    if uses and all(use.type == "type_identifier" for use in uses):
        return TYPES
    called = [use for use in uses if use.parent is not None and use.parent.type == "call_expression"]
    if called and len(called) == len(uses):
        return frozenset(DEVICE_FUNCTIONS)
    return BUILT_IN


def _missing_index(kernel: Kernel, name: str) -> Repair | None:
    """The declaration of a thread's index in a kernel that knows of no thread, launched along one axis alone."""
    source, node = kernel.source, kernel.node
    body = node.child_by_field_name("body") if node is not None else None
    shapes = [(launch.block, launch.grid) for launch in kernel.launches if launch.span is not None]
    if body is None or not shapes or any(extent != 1 for shape in shapes for dim in shape for extent in dim[1:]):
        return None
    words = {source.node_text(leaf) for leaf in _leaves(node)}
    indexed = any(name in source.node_text(s) for s in descendants(body, "subscript_argument_list"))
    first = next((child for child in body.named_children if child.type != "comment"), None)
    if words & {"threadIdx", "blockIdx"} or not indexed or first is None:
        return None
    kind = _compared_with(kernel, body, name)
    declaration = f"{kind} {name} = blockIdx.x * blockDim.x + threadIdx.x;\n{source.line_indent(first.start_byte)}"
    return Repair(
        "missing-index",
        f"`{name}` is declared nowhere and indexes an array; it is taken for the index of the thread in the grid.",
        (TextEdit(first.start_byte, first.start_byte, declaration),),
    )


def _compared_with(kernel: Kernel, body: Node, name: str) -> str:
    """The type of the parameter that the index is compared with; int without one."""
    source = kernel.source
    for comparison in descendants(body, "binary_expression"):
        left, right = (comparison.child_by_field_name(side) for side in ("left", "right"))
        if left is None or right is None or source.node_text(left) != name:
            continue
        for parameter in descendants(kernel.node, "parameter_declaration") if kernel.node is not None else ():
            kind, declarator = (parameter.child_by_field_name(field) for field in ("type", "declarator"))
            if kind is not None and declarator is not None and source.node_text(declarator) == source.node_text(right):
                return source.node_text(kind)
    return "int"


def _declared(source: Source, node: Node | None) -> list[str]:
    """The names of a kernel's parameters and variables."""
    if node is None:
        return []
    declarations = descendants(node, "parameter_declaration", "declaration")
    declarators = (d for each in declarations for d in each.children_by_field_name("declarator"))
    named = (next((n for n in walk(d) if n.type == "identifier"), None) for d in declarators)
    return list(dict.fromkeys(source.node_text(n) for n in named if n is not None))


def _leaves(node: Node | None) -> Iterator[Node]:
    return (n for n in walk(node) if n.child_count == 0 and n.type != "comment") if node is not None else iter(())


def _is_near(a: str, b: str) -> bool:
    """Whether one letter more, one less, another one, or two exchanged turn one name into the other.

    >>> _is_near("flaot", "float"), _is_near("__syncthread", "__syncthreads"), _is_near("a", "b2")
    (True, True, False)
    """
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    if len(a) == len(b):
        return a[start + 1 :] == b[start + 1 :] or (
            a[start : start + 2] == b[start : start + 2][::-1] and a[start + 2 :] == b[start + 2 :]
        )
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return longer[start + 1 :] == shorter[start:]
