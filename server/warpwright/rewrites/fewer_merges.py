"""Launch fewer blocks, each with more elements, where every block adds up its own counts at the end.

## Before

```cuda
__global__ void histogram(int *bins, const unsigned char *data, int n) {
  __shared__ int own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&own[data[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

void run(int *bins, const unsigned char *data, int n) {
  histogram<<<(n + 255) / 256, 256>>>(bins, data, n);
}
```

## After

```cuda
__global__ void histogram(int *bins, const unsigned char *data, int n) {
  __shared__ int own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&own[data[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

void run(int *bins, const unsigned char *data, int n) {
  histogram<<<((n + 255) / 256 < 1024 ? (n + 255) / 256 : 1024), 256>>>(bins, data, n);
}
```

## Assumes

- Each block sets shared arrays to zero, adds to them by `atomicAdd` for each of its elements, which an `if` tests
  against their number, and after a barrier adds them to arrays that the kernel uses for nothing else. Sums of parts
  are the same then, however the elements are split among blocks.
- Nothing but the element's index depends on the block's index. All launches are in this file, with one-dimensional
  blocks and a grid that is seen to cover the elements.
- A sum within a block has the type of the sum of all, or counts elements one by one.
- The number of elements and 262,144 together stay under the largest value of the index's type.

## Cost

A comparison and an addition for each element. Blocks stay for longer. Integer sums stay the same bit for bit. The order
in which atomics add floats was never fixed; other parts change it once more, so the last bits can change: the error of
any order of n numbers is at most about n * 2^-24 * sum(|x|) (N. J. Higham, Accuracy and Stability of Numerical
Algorithms, section 4.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._accumulate import is_neutral
from warpwright.rewrites._code import (
    NoMatchError,
    body_of,
    macros_naming,
    matched,
    names,
    require_marked,
    squeezed,
)
from warpwright.rewrites._elementwise import Elements, not_the_thread, with_header, without_const
from warpwright.rewrites._grids import capped, grid_formula, launches_in_sight, uncovered
from warpwright.rewrites._guards import comparisons
from warpwright.rewrites._interleaved import is_barrier, statements_of
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._limits import THREADS
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._row_loop import root_name, targets
from warpwright.rewrites._thread_numbers import OF_GRID
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, declared_name, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "fewer-merges"
title = "Process more elements per block before merging"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.SIZES)


@dataclass(frozen=True, slots=True)
class _Merge:
    """The work on an element, the statements behind it, and the shared arrays that are added up."""

    elements: Elements
    behind: tuple[Node, ...]
    arrays: frozenset[str]


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    require_marked(kernel, at)
    return _rewrite(kernel, block, _matched(kernel, block))


def _matched(kernel: Kernel, block: Node) -> _Merge:
    source, statements = kernel.source, uncommented(block)
    variables = locals_of(kernel)
    arrays = frozenset(array.name for array in kernel.shared_arrays)
    for place, guard in enumerate(statements):
        clause = guard.child_by_field_name("condition") if guard.type == "if_statement" else None
        test = clause.child_by_field_name("value") if clause is not None else None
        conditions = comparisons(source, test, leaves=False) if test is not None else None
        then = guard.child_by_field_name("consequence")
        if conditions is None or len(conditions) != 1 or then is None or guard.child_by_field_name("alternative"):
            continue
        index, bound = source.node_text(conditions[0].left), conditions[0].right
        initial = variables.values.get(index)
        declared = [s for s in statements[:place] if s.type == "declaration" and _declares(source, s, index)]
        if conditions[0].operator != "<" or initial is None or len(declared) != 1 or place + 2 >= len(statements):
            continue
        adds = any(called_name(call, source) == "atomicAdd" for call in descendants(then, "call_expression"))
        if not adds or not is_barrier(statements[place + 1], source):
            continue
        elements = Elements(
            index, declared[0], initial, guard, bound, False, tuple(statements_of(then)), tuple(statements[:place])
        )
        used = frozenset(a for a in arrays if any(names(then, source, a)))
        if not used:
            continue
        return _Merge(elements, tuple(statements[place + 1 :]), used)
    raise NoMatchError("No block here counts elements in shared memory and, after a barrier, adds its counts up.")


def _declares(source: Source, statement: Node, name: str) -> bool:
    declarators = statement.children_by_field_name("declarator")
    return len(declarators) == 1 and declared_name(source, declarators[0]) == name


def _rewrite(kernel: Kernel, block: Node, merge: _Merge) -> Rewrite:
    source, elements = kernel.source, merge.elements
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    launches = matched(launches_in_sight(kernel))
    if reason := not_the_thread(kernel, elements, launches):
        raise NoMatchError(reason)
    _require_alike(kernel, block, elements)
    _require_zeroed(source, merge)
    counts = _require_counted(kernel, merge)
    exact = _require_added(kernel, block, merge, counts)
    edits: list[TextEdit] = []
    for launch in launches:
        most = THREADS // (launch.block[0] or 1)
        grid = grid_formula(source, launch)
        blocks = grid.value({}) if grid is not None and not grid.symbols else None
        if reason := uncovered(kernel, launch, elements.bound):
            raise NoMatchError(reason)
        if blocks is not None and blocks <= most:
            raise NoMatchError(f"Nothing to gain: the {int(blocks)} blocks at {launch.source} are all at work at once.")
        edit = matched(capped(source, launch, most))
        edits.append(edit)
    bound = source.node_text(elements.bound)
    loop = f"for (; {elements.index} < {bound}; {elements.index} += blockDim.x * gridDim.x)"
    rounding = (
        "" if exact else " The order of the sums, which atomics never fixed, changes, so the last bits can change."
    )
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(*edits, *without_const(source, elements.declaration), *with_header(kernel, elements, loop)),
        explanation=(
            f"Each block took one element for each thread and then added all of "
            f"{' and '.join(f'`{a}`' for a in sorted(merge.arrays))} to global memory, at the same places as all other "
            "blocks. With no more blocks than a GPU holds at once, each sets up and merges once and goes on to the "
            f"elements that lie one grid further.{rounding}"
        ),
        safe=exact,
    )


def _require_alike(kernel: Kernel, block: Node, elements: Elements) -> None:
    """Nothing depends on the block but the index, which the work alone uses; no thread leaves."""
    source, guard = kernel.source, elements.guard
    for leave in descendants(block, "return_statement"):
        raise NoMatchError(f"Threads may leave at line {line_of(source, leave)}.")
    declaration = elements.declaration
    for use in descendants(block, "identifier"):
        text, inside = source.node_text(use), guard.start_byte <= use.start_byte < guard.end_byte
        if declaration.start_byte <= use.start_byte < declaration.end_byte:
            continue
        if OF_GRID.fullmatch(text) or (text == elements.index and not inside):
            raise NoMatchError(f"`{text}` is used at line {line_of(source, use)}, where it would be another.")
    text = source.node_code(block)
    for macro in macros_naming(source, re.compile(rf"{OF_GRID.pattern}|\b{re.escape(elements.index)}\b")):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            raise NoMatchError(f"{kernel.name} uses the macro {macro}, which reads the element's or the block's index.")
    bound = {source.node_text(n) for n in descendants(elements.bound, "identifier")}
    variables = locals_of(kernel)
    if any(True for _ in descendants(elements.bound, "call_expression", "subscript_expression")) or not all(
        variables.is_fixed(n) or n not in variables.types for n in bound
    ):
        raise NoMatchError(f"The bound `{source.node_text(elements.bound)}` is not a plain number.")


def _require_zeroed(source: Source, merge: _Merge) -> None:
    """What stands before the work sets the arrays to zero, changes variables of the thread, and nothing else."""
    for statement in merge.elements.before:
        for target in targets(statement, source):
            line = line_of(source, target)
            if target.type == "identifier":
                continue
            assignment = target.parent
            value = assignment.child_by_field_name("right") if assignment is not None else None
            operator = assignment.child_by_field_name("operator") if assignment is not None else None
            zero = value is not None and operator is not None and source.node_text(operator) == "="
            zero = zero and value is not None and is_neutral(source.node_text(value), "+")
            if target.type == "call_expression" or root_name(source, target) not in merge.arrays or not zero:
                raise NoMatchError(f"Line {line} does more than set the counts to zero, and each block does it.")


def _require_counted(kernel: Kernel, merge: _Merge) -> bool:
    """The work adds to the arrays by atomics and changes nothing else; whether all that it adds are ones."""
    source, ones = kernel.source, True
    guard = merge.elements.guard
    if tied := TIES.search(source.node_code(guard)):
        raise NoMatchError(f"The work on an element uses `{tied.group()}`, which ties the threads together.")
    if reason := unfit_call(kernel, guard):
        raise NoMatchError(reason)
    own = {
        declared_name(source, d)
        for declaration in descendants(guard, "declaration")
        for d in declaration.children_by_field_name("declarator")
    }
    counted: set[int] = set()
    for target in targets(guard, source):
        line = line_of(source, target)
        if target.type == "identifier" and source.node_text(target) in own:
            continue
        arguments = uncommented(target.child_by_field_name("arguments"))
        adds = target.type == "call_expression" and called_name(target, source) == "atomicAdd" and len(arguments) == 2
        if not adds or root_name(source, arguments[0]) not in merge.arrays:
            raise NoMatchError(f"Line {line} changes more than the counts in shared memory.")
        if target.parent is None or target.parent.type != "expression_statement":
            raise NoMatchError(f"What atomicAdd returns at line {line} is used.")
        counted.add(next(descendants(arguments[0], "identifier")).start_byte)
        ones = ones and re.fullmatch(r"1[uU]?", squeezed(source.node_code(arguments[1]))) is not None
    for array in merge.arrays:
        for use in names(guard, source, array):
            if use.start_byte not in counted:
                raise NoMatchError(f"`{array}` is read at line {line_of(source, use)}, in the work on an element.")
    return ones


def _require_added(kernel: Kernel, block: Node, merge: _Merge, ones: bool) -> bool:
    """What stands behind the work adds the arrays to global memory and does nothing else; whether in integers."""
    source, exact = kernel.source, True
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    kinds = {a.name: builtin_type(a.element_type) for a in kernel.shared_arrays}
    merged: dict[str, set[int]] = {}
    allowed: set[int] = set()
    copies: dict[str, str] = {}
    for statement in merge.behind:
        text = source.node_code(statement)
        tied = TIES.search(re.sub(r"\b__syncthreads\b", "", text))
        reason = (
            f"`{tied.group()}` after the work ties the threads together." if tied else unfit_call(kernel, statement)
        )
        if reason and not is_barrier(statement, source):
            raise NoMatchError(reason)
        copies |= _copies(source, statement, merge.arrays)
    for name, origin in copies.items():
        written, of = locals_of(kernel).types.get(name, ""), kinds[origin]
        kept = builtin_type(written)
        same = kept is not None and of is not None and (kept.kind, kept.size) == (of.kind, of.size)
        if written != "auto" and not same:
            raise NoMatchError(f"`{name}` holds the block's counts as {written or 'another type'}.")
    own = {
        declared_name(source, d)
        for statement in merge.behind
        for declaration in descendants(statement, "declaration")
        for d in declaration.children_by_field_name("declarator")
    }
    for statement in merge.behind:
        for target in targets(statement, source):
            line = line_of(source, target)
            name = source.node_text(target)
            if target.type == "identifier" and name in own - copies.keys():
                continue
            arguments = uncommented(target.child_by_field_name("arguments"))
            adds = target.type == "call_expression" and called_name(target, source) == "atomicAdd"
            if not adds or len(arguments) != 2 or target.parent is None or target.parent.type != "expression_statement":
                raise NoMatchError(f"Line {line}, after the work, does more than add up the block's counts.")
            value = squeezed(source.node_code(arguments[1]))
            array = copies.get(value) or _element_of(source, arguments[1], merge.arrays)
            root = root_name(source, arguments[0])
            if array is None or root not in pointers:
                raise NoMatchError(f"Line {line} adds a value that is not one of the block's counts.")
            exact = _require_room(kernel, kinds[array], root, ones, line) and exact
            merged.setdefault(root, set()).add(next(descendants(arguments[0], "identifier")).start_byte)
            allowed |= {n.start_byte for n in descendants(arguments[1], "identifier")}
            allowed |= _tests(source, target, value, ones)
    for statement in merge.behind:
        for use in descendants(statement, "identifier"):
            text = source.node_text(use)
            declares = use.parent is not None and use.parent.type == "init_declarator" and text in copies
            copied = any(n.type == "init_declarator" and declared_name(source, n) in copies for n in ancestors(use))
            if text in merge.arrays | copies.keys() and use.start_byte not in allowed and not declares and not copied:
                raise NoMatchError(f"`{text}` is used at line {line_of(source, use)} for more than to be added up.")
    if not merged:
        raise NoMatchError("No block here counts elements in shared memory and, after a barrier, adds its counts up.")
    for root, places in merged.items():
        for use in names(block, source, root):
            if use.start_byte not in places:
                raise NoMatchError(f"`{root}` is used at line {line_of(source, use)}, too.")
    return exact


def _copies(source: Source, statement: Node, arrays: frozenset[str]) -> dict[str, str]:
    """The variables in `int count = bins[k];`, with the array."""
    found: dict[str, str] = {}
    for declared in descendants(statement, "init_declarator"):
        value = declared.child_by_field_name("value")
        array = _element_of(source, value, arrays) if value is not None else None
        if array is not None:
            found[declared_name(source, declared)] = array
    return found


def _element_of(source: Source, node: Node, arrays: frozenset[str]) -> str | None:
    """The array in `bins[k]` and `bins[w][k]`, whose subscripts name no such array; None for anything else."""
    array = root_name(source, node) if node.type == "subscript_expression" else ""
    again = [n for n in descendants(node, "identifier") if source.node_text(n) in arrays]
    return array if array in arrays and len(again) == 1 else None


def _require_room(kernel: Kernel, kind: CType | None, root: str, ones: bool, line: int) -> bool:
    """A block's sum may hold more elements than now: it has the type of the whole sum, or counts; whether exact."""
    whole = builtin_type(locals_of(kernel).types.get(root, ""))
    if kind is None or whole is None:
        raise NoMatchError(f"What is added up at line {line} is not of a known type.")
    if (kind.is_integer, kind.size) != (whole.is_integer, whole.size) and not (ones and kind.is_integer):
        raise NoMatchError(f"A block's sum is {kind.name} and that of all {whole.name}: more elements may not fit.")
    return kind.is_integer


def _tests(source: Source, call: Node, value: str, ones: bool) -> set[int]:
    """The places of names in tests around an atomic that a sum of zero alone fails: `if (bins[k] != 0)`."""
    v = re.escape(value)
    passed = re.compile(rf"{v}|{v}!=0(?:\.0*f?)?[uU]?|0!={v}" + (rf"|{v}>0[uU]?|0<{v}" if ones else ""))
    found: set[int] = set()
    for around in ancestors(call):
        clause = around.child_by_field_name("condition") if around.type == "if_statement" else None
        tested = clause is not None and passed.fullmatch(squeezed(source.node_code(clause)))
        if clause is not None and tested and around.child_by_field_name("alternative") is None:
            found |= {n.start_byte for n in descendants(clause, "identifier")}
        if around.type == "function_definition":
            break
    return found
