"""Let neighbouring threads take neighbouring elements, where each walks over a chunk of its own.

## Before

```cuda
constexpr int CHUNK = 8;

__global__ void scale(float *out, const float *in, float factor, int n) {
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < CHUNK; k++) {
    int i = tid * CHUNK + k;
    if (i < n)
      out[i] = factor * in[i];
  }
}

void run(float *out, const float *in, int n) {
  scale<<<(n + 1023) / 1024, 128>>>(out, in, 2.0f, n);
}
```

## After

```cuda
constexpr int CHUNK = 8;

__global__ void scale(float *out, const float *in, float factor, int n) {
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  const int threads = gridDim.x * blockDim.x;
  for (int k = 0; k < CHUNK; k++) {
    int i = k * threads + tid;
    if (i < n)
      out[i] = factor * in[i];
  }
}

void run(float *out, const float *in, int n) {
  scale<<<(n + 1023) / 1024, 128>>>(out, in, 2.0f, n);
}
```

A loop from `tid * chunk` to that and `chunk` more, cut off at n, becomes `for (int i = tid; i < n; i += threads)`.

## Assumes

- Each iteration works on its element alone: what it stores, it stores at the element's place, and what the kernel
  stores is read nowhere else. Sums over a chunk are refused: each thread would add other elements.
- Every thread of the grid walks over a chunk: no condition stands around the loop, and no thread leaves before it.
- All launches are in this file, with one-dimensional blocks. Of a grid of two dimensions the block's number in y
  chooses the row of what is stored. Where the loop is cut off at a bound, threads times chunk are seen
  to be as many as the bound.
- Arrays that are handed to different parameters do not overlap.

## Cost

None: the two loops, over the threads and over a chunk, change places. Results stay the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.aliasing import loop_around
from warpwright.facts.model import Access, Kernel, Launch, Space
from warpwright.rewrites._by_element import declared_names, require_by_element
from warpwright.rewrites._code import NoMatchError, body, by_cost, called_name, macro_texts, names, overlaps
from warpwright.rewrites._formulas import Values, formula, holds
from warpwright.rewrites._gain import no_fewer_sectors
from warpwright.rewrites._grids import arguments_of, grid_formula, launches_along_x
from warpwright.rewrites._indices import Indices, Polynomial, as_number, combined, indices_of
from warpwright.rewrites._layout import before_statement, free_name, with_comment, without_text
from warpwright.rewrites._loops import CountedLoop, counted_loop, loop_of_two_bounds, pragmas_before
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._thread_numbers import NUMBER
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "interchange-loops"
title = "Let neighbouring threads take neighbouring elements"
goals = ("speed",)

STRIDED = 2.0
"""Sectors for each one needed from which the order of the loops matters."""
_WIDE = ("size_t", "long", "int64_t", "uint64_t", "std::size_t", "long long", "unsigned long", "unsigned long long")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    walks = [a for a in kernel.accesses if a.space is Space.GLOBAL and (a.excess or 0.0) >= STRIDED and a.in_loop]
    chosen = [a for a in by_cost(walks) if a.loop_step == a.bytes and (at is None or overlaps(a.span, at))]
    refusal = Declined(NAME, "No loop here is known to walk over a chunk of its own in each thread.")
    for place, access in enumerate(chosen):
        try:
            return _interchanged(kernel, access)
        except NoMatchError as refused:
            refusal = Declined(NAME, str(refused)) if place == 0 else refusal
    return refusal


def _interchanged(kernel: Kernel, access: Access) -> Rewrite:
    source, block = kernel.source, body(kernel)
    node = loop_around(access.span) if access.span.source is source else None
    loop = counted_loop(source, node) if node is not None else None
    second: Node | None = None
    if node is not None and loop is None and (bounded := loop_of_two_bounds(source, node)) is not None:
        loop, second = bounded
    if node is None or loop is None or block is None or loop.step is not None:
        raise NoMatchError(f"The loop around `{access.expression}` does not count up by one.")
    launches = launches_along_x(kernel)
    if isinstance(launches, str):
        raise NoMatchError(launches)
    sizes = {launch.block[0] or 0 for launch in launches}
    indices = indices_of(kernel, (min(sizes), 1, 1) if len(sizes) == 1 else None)
    _require_all_threads(source, block, node)
    if as_number(indices.read(loop.start)) == 0 and second is None:
        edits, lines = _by_number(indices, loop)
    else:
        ends = [loop.bound, second] if second is not None else _ends(indices, loop.bound)
        edits, lines = _from_start(indices, loop, ends, launches)
    _require_lines(launches, lines)
    if reason := no_fewer_sectors(kernel, edits):
        raise NoMatchError(reason)
    got, ideal = access.sectors_per_request or 0.0, access.ideal_sectors_per_request or 0.0
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Each thread walked over elements of its own, so that the lanes of a warp were a chunk apart: {got:g} "
            f"sectors per request of {access.array} where {ideal:g} would do. Now a thread goes on by as many elements "
            "as there are threads, and the lanes of a warp use neighbours. Every element is worked on once, as before."
        ),
    )


def _require_lines(launches: list[Launch], lines: set[str]) -> None:
    """Blocks of another number in y or z work on other elements."""
    for launch in launches:
        for axis, blocks in zip("yz", launch.grid[1:], strict=True):
            if blocks != 1 and f"blockIdx.{axis}" not in lines:
                raise NoMatchError(f"The launch at {launch.source} has more than one dimension.")


def _require_all_threads(source: Source, block: Node, loop: Node) -> None:
    for around in ancestors(loop):
        if around == block:
            break
        if around.type != "compound_statement":
            line = source.position(around.start_byte)[0]
            raise NoMatchError(
                f"The loop stands within the statement at line {line}, so not all threads may come there."
            )
    for leave in descendants(block, "return_statement"):
        raise NoMatchError(f"Threads may leave at line {source.position(leave.start_byte)[0]}.")


def _thread(indices: Indices) -> Polynomial:
    """The thread's number in a one-dimensional grid."""
    size = indices.block
    blocks: Polynomial = {("blockIdx.x",): size[0]} if size is not None else {("blockDim.x", "blockIdx.x"): 1}
    return {**blocks, ("threadIdx.x",): 1}


def _by_number(indices: Indices, loop: CountedLoop) -> tuple[list[TextEdit], set[str]]:
    """`for (k = 0; k < chunk; k++)` over elements `tid * chunk + k`: edits, and what chooses a line."""
    kernel, source = indices.kernel, indices.kernel.source
    chunk, thread = indices.read(loop.bound), _thread(indices)
    first = combined("*", thread, chunk) if chunk is not None else None
    element = combined("+", first, {(loop.name,): 1}) if first is not None else None
    if element is None:
        raise NoMatchError(f"How far the loop over {loop.name} goes is not a plain number.")
    places = list(_maximal(indices, loop.body, element))
    if not places:
        raise NoMatchError(f"The loop over {loop.name} uses no element of a chunk of the thread's own.")
    own = {name for name in indices.variables.values if indices.named(name) == element}
    lines = require_by_element(indices, loop, element, [n for n in places if n.type != "identifier"], own)
    number = _variable(indices, thread, loop.node)
    kind = next((t for n in places for t in _types(indices, n) if t in _WIDE), "int")
    threads = free_name(_used(kernel), "threads")
    for place in places:
        for cast in descendants(place, "cast_expression", "call_expression"):
            raise NoMatchError(f"`{source.node_text(cast)}` at line {source.position(cast.start_byte)[0]} is a cast.")
    new = f"{loop.name} * {threads} + {number}"
    edits = [_before(source, loop, f"const {kind} {threads} = gridDim.x * blockDim.x;")]
    for place in places:
        if place.type != "identifier":
            alone = place.parent is not None and place.parent.type in ("init_declarator", "subscript_argument_list")
            paired = place.type == "parenthesized_expression"
            text = new if alone and not paired else f"({new})"
            edits.append(TextEdit(place.start_byte, place.end_byte, text))
    base = [name for name in indices.variables.values if indices.named(name) == first and chunk != {(): 1}]
    return [*edits, *_unused(kernel, base, [(p.start_byte, p.end_byte) for p in places])], lines


def _from_start(
    indices: Indices, loop: CountedLoop, ends: list[Node], launches: list[Launch]
) -> tuple[list[TextEdit], set[str]]:
    """`for (i = tid * chunk; i < min(tid * chunk + chunk, n); i++)`, or with `&&`, over elements i: edits, and the
    numbers of blocks that choose a line."""
    kernel, source = indices.kernel, indices.kernel.source
    thread, start = _thread(indices), indices.read(loop.start)
    if start is None or not ends:
        raise NoMatchError(f"Where the loop over {loop.name} starts and ends is not seen.")
    chunks = [(end, chunk) for end in ends if (chunk := _chunk(indices, thread, start, end)) is not None]
    rest = [end for end in ends if end not in [node for node, _ in chunks]]
    if len(chunks) != 1 or len(rest) != 1:
        raise NoMatchError(f"The loop over {loop.name} does not run over a chunk of the thread's own up to a bound.")
    bound = rest[0]
    lines = require_by_element(indices, loop, {(loop.name,): 1}, [], {loop.name})
    _require_bound(indices, bound, loop)
    for launch in launches:
        _require_covered(kernel, launch, chunks[0][1], bound)
    number = _variable(indices, thread, loop.node)
    wide = loop.type if loop.type in _WIDE else "int"
    threads = free_name(_used(kernel), "threads")
    condition = loop.node.child_by_field_name("condition") or loop.node
    update = loop.node.child_by_field_name("update") or loop.node
    edits = [
        _before(source, loop, f"const {wide} {threads} = gridDim.x * blockDim.x;"),
        TextEdit(loop.start.start_byte, loop.start.end_byte, number),
        TextEdit(condition.start_byte, condition.end_byte, f"{loop.name} < {source.node_text(bound)}"),
        TextEdit(update.start_byte, update.end_byte, f"{loop.name} += {threads}"),
    ]
    gone = [(n.start_byte, n.end_byte) for n in (loop.start, condition)]
    used = [source.node_text(n) for n in (loop.bound, loop.start) if n.type == "identifier"]
    return [*edits, *_unused(kernel, used, gone)], lines


def _ends(indices: Indices, bound: Node) -> list[Node]:
    """The two numbers of which the loop ends at the smaller one: `min(a, b)`, itself or as a variable."""
    source = indices.kernel.source
    if bound.type == "identifier":
        bound = indices.variables.values.get(source.node_text(bound), bound)
    if bound.type == "call_expression" and called_name(bound, source) in ("min", "umin", "std::min"):
        return uncommented(bound.child_by_field_name("arguments"))
    return []


def _chunk(indices: Indices, thread: Polynomial, start: Polynomial, end: Node) -> Node | None:
    """The node of the chunk's size, where a loop from `start` to `end` runs over the thread's own."""
    last = indices.read(end)
    size = combined("-", last, start) if last is not None else None
    if not size or combined("*", thread, size) != start:
        return None
    candidates = [end, *(v for v in indices.variables.values.values())]
    parts = [part for c in candidates for part in descendants(c, "identifier", "number_literal", "binary_expression")]
    return next((part for part in parts if indices.read(part) == size), None)


def _require_bound(indices: Indices, bound: Node, loop: CountedLoop) -> None:
    source = indices.kernel.source
    words = {source.node_text(n) for n in descendants(bound, "identifier")}
    fixed = all(indices.variables.is_fixed(w) or w not in indices.variables.types for w in words)
    read = indices.read(bound)
    dependent = read is None or any(NUMBER.search(name) for product in read for name in product)
    if not fixed or dependent or words & indices.variables.changed:
        raise NoMatchError(f"The bound `{source.node_text(bound)}` of the loop over {loop.name} is not a plain number.")


def _require_covered(kernel: Kernel, launch: Launch, chunk: Node, bound: Node) -> None:
    """All threads of a launch together reach the bound."""
    source, given = kernel.source, arguments_of(kernel, launch)
    grid, size, most = grid_formula(source, launch), formula(source, chunk, given), formula(source, bound, given)
    threads = launch.block[0]
    inside = [formula(source, node) for node in (chunk, bound)]
    known = all(f is not None and f.symbols <= given.keys() for f in inside)
    if grid is None or size is None or most is None or threads is None or not known:
        raise NoMatchError(f"Whether the threads at {launch.source} reach {source.node_text(bound)} cannot be told.")

    def covers(values: Values) -> bool | None:
        blocks, each, wanted = grid.value(values), size.value(values), most.value(values)
        return None if blocks is None or each is None or wanted is None else int(blocks) * threads * each >= wanted

    if not holds(covers, grid.symbols | size.symbols | most.symbols):
        raise NoMatchError(f"The threads at {launch.source} are not seen to reach {source.node_text(bound)}.")


def _maximal(indices: Indices, node: Node, element: Polynomial) -> Iterator[Node]:
    """The largest expressions below a node that are a sum of products."""
    if node.type in ("binary_expression", "parenthesized_expression", "identifier", "cast_expression"):
        if node.type == "cast_expression" and indices.read(node) == element:
            node = node.child_by_field_name("value") or node
        if indices.read(node) == element:
            yield node
            return
    for child in node.named_children:
        yield from _maximal(indices, child, element)


def _variable(indices: Indices, thread: Polynomial, before: Node) -> str:
    """How the thread's number is written: a variable that holds it, or the expression itself."""
    block = body(indices.kernel)
    for name, value in indices.variables.values.items():
        holder = value.parent.parent.parent if value.parent is not None and value.parent.parent is not None else None
        if holder == block and value.start_byte < before.start_byte and indices.named(name) == thread:
            return name
    return "(blockIdx.x * blockDim.x + threadIdx.x)"


def _types(indices: Indices, node: Node) -> Iterator[str]:
    for name in descendants(node, "identifier"):
        yield indices.variables.types.get(indices.kernel.source.node_text(name), "")


def _used(kernel: Kernel) -> str:
    """The names that a new variable of the kernel may not have."""
    return " ".join([kernel.span.text, *macro_texts(kernel.source)])


def _before(source: Source, loop: CountedLoop, line: str) -> TextEdit:
    """A line before the loop and the directives that belong to it."""
    directives = pragmas_before(source, loop.node)
    if not directives:
        return before_statement(source, loop.node, [line])
    start = source.line_starts[source.position(directives[0].start_byte)[0] - 1]
    return TextEdit(start, start, f"{source.line_indent(loop.node.start_byte)}{line}\n")


def _unused(kernel: Kernel, candidates: list[str], gone: list[tuple[int, int]]) -> Iterator[TextEdit]:
    """Edits that take away declarations of variables whose every use is gone."""
    source, block = kernel.source, body(kernel)
    removed = list(gone)
    for name in candidates:
        declarations = [
            d
            for d in (descendants(block, "declaration") if block is not None else ())
            if len(d.children_by_field_name("declarator")) == 1
            and name in {source.node_text(n) for n in declared_names(d)}
        ]
        if len(declarations) != 1:
            continue
        declaration = declarations[0]
        uses = [u.start_byte for u in names(block, source, name)] if block is not None else []
        spans = [*removed, (declaration.start_byte, declaration.end_byte)]
        if all(any(start <= use < end for start, end in spans) for use in uses):
            removed.append((declaration.start_byte, declaration.end_byte))
            yield without_text(source, *with_comment(source, declaration))
