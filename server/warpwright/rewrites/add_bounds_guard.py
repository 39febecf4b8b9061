"""Keep the threads beyond the end of the data from reading and writing there.

## Before

```cuda
__global__ void scale(float *out, const float *in, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = factor * in[i];
}

void run(float *host, int n) {
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  scale<<<(n + 255) / 256, 256>>>(out, in, 2.0f, n);
  cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
}
```

## After

```cuda
__global__ void scale(float *out, const float *in, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  out[i] = factor * in[i];
}

void run(float *host, int n) {
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  scale<<<(n + 255) / 256, 256>>>(out, in, 2.0f, n);
  cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
}
```

Where a barrier follows, so that no thread may leave, the stores at the thread's index stand under an `if` instead.

## Assumes

- The parameter that every launch in this file rounds up to whole blocks is the number of elements: of all launches, the
  grid is the fewest blocks that cover it. Arrays that the host is seen to allocate for whole blocks are refused.
- The kernel does nothing but its element's work after the index: no other use of the thread's index, which could be
  work of the block as a whole.

## Cost

A comparison in each thread. Elements below the bound get the same values bit for bit; elements beyond it, where there
are any, are not written any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.cuda.functions import called_name
from warpwright.facts.host_scopes import written_names
from warpwright.facts.model import Basis, Kernel, Launch
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import body, host_launches, require_marked, unseen_launch
from warpwright.rewrites._formulas import Formula, formula
from warpwright.rewrites._grids import arguments_of, call_of, grid_formula
from warpwright.rewrites._layout import after_statement, indent_unit
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._thread_numbers import NUMBER, WARP_LEVEL, calls_by_number
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "add-bounds-guard"
title = "Add a bounds check"
goals = ("fix",)
relies_on = (Reliance.SIZES,)

_TESTS = (
    "if_statement",
    "for_statement",
    "while_statement",
    "do_statement",
    "conditional_expression",
    "switch_statement",
)


@dataclass(frozen=True, slots=True)
class _Index:
    """`int i = blockIdx.x * blockDim.x + threadIdx.x;`, of axis 0, and the parameter `bound` that it stays below."""

    name: str
    axis: int
    declaration: Node
    bound: str


class _RefusedError(Exception):
    """The message is the reason for the user."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if reason := unmovable(kernel) or unseen_launch(kernel):
        return Declined(NAME, reason)
    require_marked(kernel, at)
    try:
        return _guarded(kernel)
    except _RefusedError as refused:
        return Declined(NAME, str(refused))


def _guarded(kernel: Kernel) -> Rewrite:
    source, block = kernel.source, body(kernel)
    launches = host_launches(kernel)
    if block is None or not launches:
        raise _RefusedError(f"No launch of {kernel.name} is found, and it says how many elements there are.")
    for launch in launches:
        if launch.span is None or launch.span.source is not source or call_of(launch) is None:
            raise _RefusedError(f"The launch at {launch.source} is in a macro or in another file than the kernel.")
        if launch.basis is not Basis.EXACT:
            raise _RefusedError(f"The block of the launch at {launch.source} is not known from the text.")
    indices = [index for axis in range(3) for index in _indices(kernel, block, launches, axis)]
    if not indices:
        raise _RefusedError(f"No thread of {kernel.name} is seen to use an element beyond a bound that it is given.")
    _require_unguarded(source, block, indices)
    for index in indices:
        _require_tight(kernel, launches, index)
    last = max(indices, key=lambda index: index.declaration.start_byte).declaration
    behind = [s for s in uncommented(block) if s.start_byte >= last.end_byte]
    edits = _wrapped(kernel, indices, behind) if kernel.barriers else _early(kernel, indices, last, behind)
    tests = " and ".join(f"{index.name} below {index.bound}" for index in indices)
    return Rewrite(
        rewrite=NAME,
        title=f"Add a bounds check: {tests}",
        source=source,
        edits=tuple(edits),
        explanation=(
            "The grid is rounded up to whole blocks, so its last threads have indices past the end of the data, where "
            f"{kernel.name} accesses other memory. Now a thread works only with {tests}. Elements past that, if the "
            "arrays are longer, stay as they are."
        ),
    )


def _indices(kernel: Kernel, block: Node, launches: list[Launch], axis: int) -> list[_Index]:
    """The variable that is the thread's index along an axis, if it picks elements and a parameter bounds it."""
    source, letter = kernel.source, "xyz"[axis]
    for declaration in uncommented(block):
        declarators = declaration.children_by_field_name("declarator") if declaration.type == "declaration" else []
        for declarator in declarators:
            target, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
            if target is None or value is None or target.type != "identifier":
                continue
            if not _is_thread(source, value, launches, axis) or not _picks(source, block, source.node_text(target)):
                continue
            bound = _bound(kernel, launches, axis)
            if bound is None:
                raise _RefusedError(
                    f"No parameter of {kernel.name} is seen to be what the grid's {letter} is rounded up from."
                )
            if not bound:
                return []
            name = source.node_text(target)
            for changed in written_names(block):
                if source.node_text(changed) in (name, bound):
                    raise _RefusedError(f"`{source.node_text(changed)}` changes in {kernel.name}.")
            return [_Index(name, axis, declaration, bound)]
    return []


def _is_thread(source: Source, value: Node, launches: list[Launch], axis: int) -> bool:
    number, letter = formula(source, value), "xyz"[axis]
    block, size, thread = f"blockIdx.{letter}", f"blockDim.{letter}", f"threadIdx.{letter}"
    if number is None or not number.symbols <= {block, size, thread} or thread not in number.symbols:
        return False

    def same(values: Values) -> bool:
        return number.value(values) == values[block] * values[size] + values[thread]

    symbols = frozenset({block, size, thread})
    return all(holds(same, symbols, {size: launch.block[axis] or 0}) for launch in launches)


def _made(source: Source, block: Node, name: str) -> set[str]:
    """A variable, and those that are made of it by their declarations."""
    made = {name}
    for declarator in descendants(block, "init_declarator"):
        target, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
        if target is not None and value is not None and any(source.node_text(n) in made for n in _identifiers(value)):
            made.add(source.node_text(target))
    return made


def _picks(source: Source, block: Node, name: str) -> bool:
    """Whether an index of an array is made of the variable, itself or through others."""
    made = _made(source, block, name)
    indices = descendants(block, "subscript_argument_list")
    return any(source.node_text(n) in made for index in indices for n in _identifiers(index))


def _bound(kernel: Kernel, launches: list[Launch], axis: int) -> str | None:
    """The parameter that each launch's grid is rounded up from; "" where a grid is exact, None where it is not seen."""
    candidates = [p.name for p in kernel.parameters if not p.is_pointer and _is_integer(p.type, p.name)]
    for launch in launches:
        given, threads = arguments_of(kernel, launch), launch.block[axis]
        grid = grid_formula(kernel.source, launch, axis)
        if grid is None or threads is None:
            return None
        candidates = [name for name in candidates if name in given and _covers(grid, given[name], threads)]
        if not grid.symbols and all(not given[name].symbols for name in candidates):
            exact = [name for name in candidates if (grid.value({}) or 0) * threads == given[name].value({})]
            if exact:
                return ""
    return candidates[0] if candidates else None


def _is_integer(text: str, name: str) -> bool:
    kind = builtin_type(" ".join(word for word in text.split() if word not in ("const", name)))
    return kind is not None and kind.is_integer and (kind.size or 0) >= 4


def _covers(grid: Formula, elements: Formula, threads: int) -> bool:
    """Whether the grid is always the fewest blocks that cover the elements."""

    def fewest(values: Values) -> bool | None:
        blocks, wanted = grid.value(values), elements.value(values)
        return None if blocks is None or not wanted or wanted <= 0 else int(blocks) == -(-int(wanted) // threads)

    return holds(fewest, grid.symbols | elements.symbols)


def _require_unguarded(source: Source, block: Node, indices: list[_Index]) -> None:
    named = {name for index in indices for name in _made(source, block, index.name)}
    for test in descendants(block, *_TESTS):
        condition = test.child_by_field_name("condition")
        if condition is not None and any(source.node_text(n) in named for n in _identifiers(condition)):
            line = source.position(test.start_byte)[0]
            raise _RefusedError(f"Line {line} tests the thread's index already.")


def _require_tight(kernel: Kernel, launches: list[Launch], index: _Index) -> None:
    """No array is seen to be allocated for all threads of the whole blocks."""
    source = kernel.source
    sizes = {p.name: p.element_bytes for p in kernel.parameters if p.is_pointer}
    for launch in launches:
        call, grid = call_of(launch), grid_formula(source, launch, index.axis)
        given = uncommented(call.child_by_field_name("arguments")) if call is not None else []
        for parameter, argument in zip(kernel.parameters, given, strict=False):
            size = sizes.get(parameter.name)
            extent = _allocated(source, source.node_text(argument)) if size else None
            if extent is None or size is None or grid is None:
                continue
            fixed = {name: size for name in extent.symbols if name.startswith("sizeof")}
            threads = launch.block[index.axis] or 0

            def padded(
                values: Values, extent: Formula = extent, grid: Formula = grid, step: int = threads * size
            ) -> bool | None:
                room, blocks = extent.value(values), grid.value(values)
                return None if room is None or blocks is None else room >= int(blocks) * step

            if holds(padded, extent.symbols | grid.symbols, fixed):
                raise _RefusedError(f"`{source.node_text(argument)}` is allocated for all threads of the grid.")


def _allocated(source: Source, argument: str) -> Formula | None:
    """The bytes that cudaMalloc is asked for, for a pointer."""
    for call in descendants(source.root, "call_expression"):
        if called_name(call, source) in ("cudaMalloc", "cudaMallocManaged", "cudaMallocAsync"):
            arguments = uncommented(call.child_by_field_name("arguments"))
            if len(arguments) > 1 and source.node_text(arguments[0]).split("&")[-1].strip(" )") == argument:
                return formula(source, arguments[1])
    return None


def _identifiers(node: Node) -> Iterator[Node]:
    return descendants(node, "identifier")


def _names_in(source: Source, node: Node) -> list[str]:
    """The names below a node, in order."""
    return [source.node_text(n) for n in descendants(node, "identifier", "namespace_identifier", "type_identifier")]


def _early(kernel: Kernel, indices: list[_Index], last: Node, behind: list[Node]) -> list[TextEdit]:
    """`if (i >= n) return;` behind the last index."""
    source, block = kernel.source, body(kernel)
    for statement in behind:
        line = source.position(statement.start_byte)[0]
        for name in _names_in(source, statement):
            if NUMBER.fullmatch(name) or WARP_LEVEL.fullmatch(name):
                raise _RefusedError(f"`{name}` is used at line {line}, where threads beyond the data may have work.")
        if reason := calls_by_number(kernel, statement):
            raise _RefusedError(reason)
    before = [s for s in uncommented(block) if s.end_byte <= last.start_byte]
    for statement in before:
        for element in descendants(statement, "subscript_expression"):
            used = {source.node_text(n) for n in descendants(element, "identifier")}
            if used & {index.name for index in indices}:
                line = source.position(element.start_byte)[0]
                raise _RefusedError(f"`{source.node_text(element)}` at line {line} stands before the last index.")
    if any(last.start_byte <= n.start_byte < last.end_byte for n in descendants(last, "subscript_expression")):
        raise _RefusedError(f"Line {source.position(last.start_byte)[0]} uses an element where it declares its index.")
    unit = indent_unit(source, block) if block is not None else "  "
    test = " || ".join(f"{index.name} >= {index.bound}" for index in indices)
    return [after_statement(source, last, [f"if ({test})", f"{unit}return;"])]


def _wrapped(kernel: Kernel, indices: list[_Index], behind: list[Node]) -> list[TextEdit]:
    """`if (i < n)` before each statement that stores at the thread's index; all threads come to the barriers."""
    source = kernel.source
    named = {index.name for index in indices}
    test = " && ".join(f"{index.name} < {index.bound}" for index in indices)
    edits: list[TextEdit] = []
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    for statement in behind:
        uses = [
            element
            for element in descendants(statement, "subscript_expression")
            if any(source.node_text(n) in named for n in descendants(element, "identifier"))
        ]
        if not uses:
            continue
        assignment = uncommented(statement)[0] if statement.type == "expression_statement" else None
        target = assignment.child_by_field_name("left") if assignment is not None else None
        first = next(descendants(target, "identifier"), None) if target is not None else None
        if target is None or first is None or source.node_text(first) not in pointers:
            line = source.position(statement.start_byte)[0]
            raise _RefusedError(
                f"What a thread beyond the data should take at line {line} for what it does not load is not seen."
            )
        if warp := next((w for n in _names_in(source, statement) if (w := WARP_LEVEL.fullmatch(n))), None):
            raise _RefusedError(f"`{warp.group()}` needs all lanes of the warp.")
        edits.append(TextEdit(statement.start_byte, statement.start_byte, f"if ({test}) "))
    if not edits:
        raise _RefusedError(f"No statement of {kernel.name} stores at the thread's index alone.")
    return edits
