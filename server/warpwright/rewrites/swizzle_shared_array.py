"""XOR-swizzle the rows of a shared array, so that a column lies in different banks, without padding.

## Before

```cuda
__global__ void transpose(float *out, const float *in, int n) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

void run(float *out, const float *in, int n) {
  transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(out, in, n);
}
```

## After

```cuda
__global__ void transpose(float *out, const float *in, int n) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x ^ threadIdx.y] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y ^ threadIdx.x];
}

void run(float *out, const float *in, int n) {
  transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(out, in, n);
}
```

## Assumes

- The array is a static `__shared__` array of two dimensions whose rows are a power of two long, and every use of it
  names one element with both indices, so that nothing depends on where in its row an element lies. Taking an address
  (other than for an atomic), `sizeof`, passing the array or a row on, and walking over the end of a row are refused.
- The indices have no side effects: the row's is written twice.
- The swizzle lowers the wavefronts of the counted accesses. `pad-shared-array` does too, for some bytes in each row;
  a swizzle takes none, and rows stay aligned for wide accesses.

## Cost

An exclusive or for each access, for which the compiler finds a place in most address computations. Results stay the
same bit for bit.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.memory import wavefronts
from warpwright.facts.model import Access, Kernel, SharedArray, Space
from warpwright.rewrites._arrays import declarator_of, element_uses, in_brackets, indices_of, misuse, walks_over_rows
from warpwright.rewrites._code import body, is_power_of_two
from warpwright.rewrites._conflicts import of_worst_conflict
from warpwright.rewrites._movable import hidden_by
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "swizzle-shared-array"
title = "XOR-swizzle the shared array"
goals = ("speed",)
relies_on = ()

_EFFECTS = ("assignment_expression", "update_expression", "call_expression", "lambda_expression")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    return of_worst_conflict(kernel, at, NAME, _swizzled)


def _swizzled(kernel: Kernel, access: Access) -> Rewrite | Declined:
    array = next((a for a in kernel.shared_arrays if a.name == access.array), None)
    block, source = body(kernel), kernel.source
    if array is None or block is None:
        return Declined(NAME, f"`{access.expression}` is not an access to a __shared__ array of this kernel.")
    rows, width = array.dims if len(array.dims) == 2 else (None, None)
    if array.dynamic or rows is None or width is None or array.element_bytes is None:
        return Declined(NAME, f"`{array.name}` is not a static array of two dimensions whose sizes are known.")
    if not is_power_of_two(width):
        return Declined(NAME, f"The rows of `{array.name}` have {width} elements, which is not a power of two.")
    declarator = declarator_of(block, source, array.name)
    if declarator is None:
        return Declined(NAME, f"The declaration of `{array.name}` is not in the body of {kernel.name}.")
    if reason := misuse(block, source, array.name, 2, declarator) or walks_over_rows(block, source, array):
        return Declined(NAME, reason)
    if array.leaves_rows:
        return Declined(NAME, f"An index into `{array.name}` passes the end of its row, as in flat memory.")
    mine = [a for a in kernel.accesses if a.array == array.name and a.space is Space.SHARED]
    if any(a.joined for a in mine):
        return Declined(
            NAME, f"The compiler moves neighbours in the rows of `{array.name}` at once, and could not then."
        )
    if any(a.lanes is None for a in mine):
        return Declined(NAME, f"Not every address in `{array.name}` is known from the text.")
    before, after = _cost(kernel, array, width, swizzled=False), _cost(kernel, array, width, swizzled=True)
    if after >= before:
        return Declined(NAME, f"Permuting the rows of `{array.name}` would not lower the wavefronts of its accesses.")
    edits: list[TextEdit] = []
    for use in element_uses(block, source, array.name, declarator):
        edit = _edit(source, use, width if rows > width else None)
        if isinstance(edit, str):
            return Declined(NAME, edit)
        edits.append(edit)
    return Rewrite(
        rewrite=NAME,
        title=f"XOR-swizzle {array.name}",
        source=source,
        edits=tuple(edits),
        explanation=(
            "Element c of row r now lies at c ^ r in its row, so that the elements of a column are in different banks: "
            f"one request of each access to {array.name} takes {after} wavefronts in all where it took {before}. It "
            "costs an exclusive or for each access, and no shared memory."
        ),
    )


def _edit(source: Source, element: Node, width: int | None) -> TextEdit | str:
    """The last index with the row's number in it; `width` where there are more rows than elements in one."""
    column, row = (uncommented(indices) for indices in indices_of(element)[:2])
    line = source.position(element.start_byte)[0]
    if len(column) != 1 or len(row) != 1:
        return f"`{source.node_text(element)}` at line {line} has no plain indices."
    if any(True for index in (*column, *row) for _ in descendants(index, *_EFFECTS)):
        return f"An index of `{source.node_text(element)}` at line {line} does more than name an element."
    if macro := hidden_by(source, source.node_code(row[0])):
        return f"The macro {macro} in an index at line {line} does more than name an element."
    number = in_brackets(source, row[0])
    if width is not None:
        number = f"({number} & {width - 1})"
    return TextEdit(column[0].start_byte, column[0].end_byte, f"{in_brackets(source, column[0])} ^ {number}")


def _cost(kernel: Kernel, array: SharedArray, width: int, *, swizzled: bool) -> int:
    """Wavefronts of the worst requests to an array, as it is or with the elements of its rows permuted."""
    size = array.element_bytes or 1
    total = 0
    for access in kernel.accesses:
        if access.array == array.name and access.space is Space.SHARED and access.lanes is not None:
            addresses = access.lanes.addresses
            moved = [_place(a, width, size) if a is not None else None for a in addresses] if swizzled else addresses
            total += wavefronts(list(moved), access.bytes)
    return total


def _place(address: int, width: int, size: int) -> int:
    """Where the byte at an address within the array goes."""
    element, byte = divmod(address, size)
    row, column = divmod(element, width)
    return (row * width + (column ^ row % width)) * size + byte
