"""Align a structure, so that the compiler loads and stores several of its members at once.

## Before

```cuda
struct Particle {
  float x, y, z;
  float vx, vy, vz;
  float mass, charge;
};

__global__ void step(Particle *particles, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    particles[i].x += dt * particles[i].vx;
    particles[i].y += dt * particles[i].vy;
    particles[i].z += dt * particles[i].vz;
  }
}

void run(Particle *particles, int n) {
  step<<<(n + 127) / 128, 128>>>(particles, 0.5f, n);
}
```

## After

```cuda
struct __align__(16) Particle {
  float x, y, z;
  float vx, vy, vz;
  float mass, charge;
};

__global__ void step(Particle *particles, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    particles[i].x += dt * particles[i].vx;
    particles[i].y += dt * particles[i].vy;
    particles[i].z += dt * particles[i].vz;
  }
}

void run(Particle *particles, int n) {
  step<<<(n + 127) / 128, 128>>>(particles, 0.5f, n);
}
```

A structure of 8, 24 or 40 bytes is aligned to 8.

## Assumes

- The structure holds numbers and arrays of numbers, and its size is a multiple of the new alignment, so that its
  members and the structures of an array stay where they are.
- It is defined in this file, is not a part of another structure, and no pointer of another type is cast to it: memory
  from `cudaMalloc`, `malloc` or `new` is aligned to 16 bytes and more. Callers in other files hand over whole such
  arrays.

## Cost

None: registers for the members, which are loaded together. Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.linkage import is_header
from warpwright.facts.model import Access, AccessKind, Kernel, Space
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, by_cost, in_macro, overlaps, structure_names
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._locals import is_template_type
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source, Span

NAME = "align-structure"
title = "Align the structure"
goals = ("speed",)
relies_on = (Reliance.ALIGNED,)

STRIDED = 2.0
"""Sectors for each one needed from which lanes are taken to step over structures."""
WIDTHS = (16, 8)
"""Bytes that one lane may move at a time, the widest first."""

_ALIGNED = re.compile(r"__align__|alignas|__attribute__|\baligned\b|\bpacked\b|__declspec")
_ALLOCATES = ("malloc", "calloc", "realloc", "aligned_alloc")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    found = [a for a in kernel.accesses if a.space is Space.GLOBAL and a.structure is not None and not a.joined]
    strided = [a for a in by_cost(found) if (a.excess or 0.0) >= STRIDED and (at is None or overlaps(a.span, at))]
    if not strided:
        return Declined(NAME, "No lanes are known to step over structures in global memory here.")
    return _aligned(kernel, strided[0], found)


def _aligned(kernel: Kernel, access: Access, found: list[Access]) -> Rewrite:
    source, structure = kernel.source, access.structure
    if structure is None:
        raise NoMatchError(f"`{access.expression}` is not a structure.")
    name = _type_of(kernel, access)
    node = _definition(source, name)
    members = _members(indices_of(kernel, None), node, name)
    width = next((w for w in WIDTHS if structure.bytes % w == 0), 0)
    if not width:
        raise NoMatchError(f"A {name} has {structure.bytes} bytes, which is not a multiple of 8.")
    if structure.align >= width:
        raise NoMatchError(f"{name} is aligned to {structure.align} bytes already.")
    _require_whole(source, node, name)
    end = max((offset + size for offset, size in members.values()), default=0)
    if not structure.bytes - structure.align < end <= structure.bytes:
        raise NoMatchError(f"The members of {name} do not add up to its {structure.bytes} bytes.")
    now, then = _requests([a for a in found if a.structure == structure and a.array == access.array], members, width)
    if now < 2 * then:
        raise NoMatchError(f"Nothing to gain: {now} requests for members of a {name} would become {then}.")
    keyword = node.children[0]
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(TextEdit(keyword.end_byte, keyword.end_byte, f" __align__({width})"),),
        explanation=(
            f"The compiler knows a {name} of {structure.bytes} bytes to be aligned to {structure.align}, so "
            f"it loads and stores its members one by one, and each request of a warp touches "
            f"{access.sectors_per_request or 0.0:g} sectors again: {now} requests for {access.array}. Aligned to "
            f"{width} bytes, members that lie within {width} bytes are moved by one request: about {then} are left. "
            "The members stay where they are; memory from cudaMalloc is aligned to 256 bytes."
        ),
    )


def _type_of(kernel: Kernel, access: Access) -> str:
    """The name under which the kernel is handed the structures, which a `typedef` may have given."""
    parameter = next((p for p in kernel.parameters if p.is_pointer and p.name == access.array), None)
    if parameter is None:
        raise NoMatchError(f"`{access.expression}` is not in an array that {kernel.name} is given.")
    skipped = ("const", "__restrict__", "__restrict", "restrict", "volatile", "struct", parameter.name)
    written = " ".join(word for word in parameter.type.replace("*", " ").split() if word not in skipped)
    bound = access.structure is not None and is_template_type(kernel, written)
    return access.structure.name if bound and access.structure is not None else written


def _definition(source: Source, name: str) -> Node:
    """The structure's definition, which can be aligned in this file."""
    if is_header(source):
        raise NoMatchError(f"{name} may be defined in a header, and other files may hold it at other addresses.")
    last = name.rpartition("::")[2]
    found = [
        s
        for s in descendants(source.root, "struct_specifier")
        if s.child_by_field_name("body") is not None and last in structure_names(source, s)
    ]
    if len(found) != 1 or in_macro(found[0]):
        raise NoMatchError(f"The structure {name} is not defined once in this file.")
    return found[0]


def _members(indices: Indices, node: Node, name: str) -> dict[str, tuple[int, int]]:
    """By member: its offset and size in bytes. Refused where one is no number or array of numbers."""
    source, inside, offset = indices.kernel.source, node.child_by_field_name("body"), 0
    head = source.text(node.start_byte, inside.start_byte) if inside is not None else ""
    behind = source.text(inside.end_byte if inside is not None else node.end_byte, len(source.data)).partition(";")[0]
    if _ALIGNED.search(head + behind) or re.search(r"#\s*pragma\s+pack", source.code_text()):
        raise NoMatchError(f"How {name} is laid out is said by an attribute or a directive already.")
    parts = ("function_definition", "function_declarator", "base_class_clause", "bitfield_clause", "template_type",
             "preproc_if", "preproc_ifdef", "preproc_call")  # fmt: skip
    for part in descendants(node, *parts):
        raise NoMatchError(f"{name} is more than plain members: see line {source.position(part.start_byte)[0]}.")
    found: dict[str, tuple[int, int]] = {}
    for member in inside.named_children if inside is not None else ():
        if member.type == "comment":
            continue
        kind = member.child_by_field_name("type") if member.type == "field_declaration" else None
        known = builtin_type(source.node_text(kind)) if kind is not None else None
        size = known.size if known is not None else None
        line = source.position(member.start_byte)[0]
        if size is None or "volatile" in source.node_code(member) or _ALIGNED.search(source.node_code(member)):
            raise NoMatchError(f"The member of {name} at line {line} is not a plain number.")
        for declarator in member.children_by_field_name("declarator"):
            count, inner = 1, declarator
            while inner.type == "array_declarator":
                extent, held = inner.child_by_field_name("size"), inner.child_by_field_name("declarator")
                number = indices.number(extent)
                if number is None or held is None:
                    raise NoMatchError(f"How long the array of {name} at line {line} is cannot be told.")
                count, inner = count * number, held
            if inner.type != "field_identifier":
                raise NoMatchError(f"The member of {name} at line {line} is not a plain number.")
            offset = -(-offset // size) * size
            found[source.node_text(inner)] = (offset, size * count)
            offset += size * count
    return found


def _require_whole(source: Source, node: Node, name: str) -> None:
    """Structures lie in arrays of their own: none is a part of another one, or made of memory of another type."""
    names = _with_aliases(source, set(structure_names(source, node)), name)
    for use in descendants(source.root, "type_identifier"):
        if source.node_text(use) not in names or node.start_byte <= use.start_byte < node.end_byte:
            continue
        line = source.position(use.start_byte)[0]
        for around in ancestors(use):
            if around.type in ("field_declaration", "base_class_clause", "template_argument_list") and (
                around.type != "template_argument_list" or _casts(source, around)
            ):
                if around.type == "field_declaration" and "*" in source.node_code(around):
                    break
                raise NoMatchError(f"{name} is used at line {line} as a part of something else, or cast to.")
            if around.type == "cast_expression":
                value = around.child_by_field_name("value")
                called = called_name(value, source) if value is not None and value.type == "call_expression" else ""
                if "*" in source.node_code(around.child_by_field_name("type") or around) and called not in _ALLOCATES:
                    raise NoMatchError(f"Memory of another type is cast to {name} at line {line}.")
            if around.type in ("compound_statement", "translation_unit", "parameter_list"):
                break


def _with_aliases(source: Source, names: set[str], name: str) -> set[str]:
    """The names of a structure with those that `using P = Particle;` and `typedef Particle P;` give it further. Refuses
    names of pointers to it: in `(Pointer)(bytes + 8)` they are no type in the syntax tree."""
    for alias in descendants(source.root, "alias_declaration", "type_definition"):
        kind = alias.child_by_field_name("type")
        written = source.node_code(kind).partition("{")[0] if kind is not None else ""
        given = [*alias.children_by_field_name("name"), *alias.children_by_field_name("declarator")]
        own = {source.node_text(n) for new in given for n in (new, *descendants(new, "type_identifier"))}
        if not (set(re.findall(r"\w+", written)) | own) & names:
            continue
        names = names | own
        if "*" in written or any("*" in source.node_code(new) for new in given):
            line = source.position(alias.start_byte)[0]
            raise NoMatchError(
                f"A pointer to {name} has a name of its own at line {line}, so casts to it are not seen."
            )
    return names


def _casts(source: Source, arguments: Node) -> bool:
    """Whether template arguments are those of a cast: `reinterpret_cast<Particle *>(bytes)`."""
    parent = arguments.parent
    return parent is not None and re.match(r"\w+_cast\b", source.node_code(parent)) is not None


def _requests(accesses: list[Access], members: dict[str, tuple[int, int]], width: int) -> tuple[int, int]:
    """How many requests a lane makes for its structures now, one for each member, and aligned, one for so many bytes;
    a member that is used several times counts once."""
    now: set[tuple[AccessKind, int]] = set()
    then: set[tuple[AccessKind, int]] = set()
    for access in accesses:
        member = re.search(r"(?:\.|->)\s*(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*$", access.expression)
        if member is not None and member[1] in members:
            start = members[member[1]][0] + int(member[2] or 0) * access.bytes
            pieces = range(start, start + 1)
        else:
            pieces = range(0, max(access.value_bytes, access.bytes), access.bytes)
        now |= {(access.kind, piece) for piece in pieces}
        then |= {(access.kind, piece // width) for piece in pieces}
    return len(now), len(then)
