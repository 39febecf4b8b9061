"""Launch blocks of the size that keeps the most warps resident.

## Before

```cuda
__global__ void scale(float *data, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    data[i] *= by;
}

void run(float *data, int n) {
  scale<<<(n + 31) / 32, 32>>>(data, 2.0f, n);
}
```

## After

```cuda
__global__ void scale(float *data, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    data[i] *= by;
}

void run(float *data, int n) {
  scale<<<(n + 63) / 64, 64>>>(data, 2.0f, n);
}
```

The number is changed where it is written: in the launch, in a variable or a macro that only these launches and their
grids use, and as one less in a grid that is rounded up.

## Assumes

- The kernel does the same to each element, whose number is `blockIdx.x * blockDim.x + threadIdx.x`, under a test
  against their count; no shared memory, no barrier, no warp function, no other use of the thread's or the block's
  index.
- All launches are in the file, with one size of block in one dimension. The new grid is seen to cover the count, and to
  have less than a block more.
- Registers are those of the last compile; where there was none, they are taken not to limit the blocks.

## Cost

Blocks of another size leave in other portions: a grid of few blocks spreads less evenly over the multiprocessors when
they grow, and is left as it is. Results stay the same bit for bit, apart from the order of atomic additions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.facts.compiled import occupancies
from warpwright.facts.host_scopes import read_definitions
from warpwright.facts.lifts import Footprint, cause_words, lifts, percent
from warpwright.facts.model import WARP, Kernel, Launch
from warpwright.rewrites._code import macros_naming, names, overlaps
from warpwright.rewrites._elementwise import Elements, match_elements, not_by_element, not_the_thread
from warpwright.rewrites._formulas import Formula, formula
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites._grids import arguments_of, call_of, grid_formula, launches_in_sight, uncovered
from warpwright.rewrites._layout import line_of
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants, enclosing, launch_configuration, uncommented
from warpwright.syntax.source import Source, Span

NAME = "occupancy-block-size"
title = "Change the block size"
goals = ("speed",)
relies_on = ()

GAIN = 1 / 8
"""How many more warps, as a share of those now, another size has to bring."""
MULTIPROCESSORS = 32
"""A grid of fewer blocks than this many times those that fit on one multiprocessor leaves most GPUs unfilled."""
MOST_NAMES = 16
"""Of variables and macros behind one extent."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    elements = match_elements(kernel)
    if isinstance(elements, str):
        return Declined(NAME, elements)
    launches = launches_in_sight(kernel)
    if isinstance(launches, str):
        return Declined(NAME, launches)
    if at is not None and not any(launch.span is not None and overlaps(launch.span, at) for launch in launches):
        return Declined(NAME, f"The marked code is not a launch of {kernel.name}.")
    if reason := _bound_to_block(kernel, elements, launches):
        return Declined(NAME, reason)
    found = _better(kernel, launches)
    if isinstance(found, str):
        return Declined(NAME, found)
    threads, why = found
    edits = _resized(kernel, elements, launches, threads)
    if isinstance(edits, str):
        return Declined(NAME, edits)
    if reason := _wrong(kernel, edits, threads):
        return Declined(NAME, reason)
    return Rewrite(
        rewrite=NAME,
        title=f"Use blocks of {threads} threads",
        source=kernel.source,
        edits=tuple(edits),
        explanation=f"{why} The grid changes with the block, and every element still has one thread.",
    )


def _bound_to_block(kernel: Kernel, elements: Elements, launches: list[Launch]) -> str:
    """Why the kernel's work may depend on the size of its blocks; empty where it does not."""
    source = kernel.source
    for statement in elements.before:
        if statement.type != "declaration" or "__shared__" in source.node_code(statement):
            return f"Line {line_of(source, statement)} prepares something before the test, which may need its block."
    if "__launch_bounds__" in source.code_text(kernel.span.start, elements.start):
        return f"{kernel.name} is compiled for blocks of a size that its __launch_bounds__ gives."
    sizes = {launch.block[0] for launch in launches}
    if len(sizes) > 1:
        return f"{kernel.name} is launched with blocks of several sizes."
    if any(launch.dynamic_shared_bytes != 0 for launch in launches):
        return f"{kernel.name} is launched with dynamic shared memory."
    return not_the_thread(kernel, elements, launches) or not_by_element(kernel, elements)


def _better(kernel: Kernel, launches: list[Launch]) -> tuple[int, str] | str:
    """The threads of a better block, and why; or a reason why the present one is good."""
    now = _footprint(kernel, launches[0])
    try:
        before = now.occupancy
    except ValueError:
        return f"How many warps a multiprocessor of {kernel.arch} holds is not known."
    for launch in launches:
        blocks = None if None in launch.grid else prod(extent or 0 for extent in launch.grid)
        if blocks is not None and blocks < before.blocks * MULTIPROCESSORS:
            return f"Nothing to gain: the {blocks} blocks of the launch at {launch.source} do not fill a GPU as it is."
    whole = replace(now, threads=-(-now.threads // WARP) * WARP)
    larger = next((lift for lift in lifts(whole) if lift.threads is not None), None)
    if larger is not None and larger.occupancy.fraction >= (1 + GAIN) * whole.occupancy.fraction:
        then = f"With {larger.threads} threads it is {percent(larger.occupancy.fraction)}%."
        return larger.threads or 0, (
            f"Occupancy is capped at {percent(before.fraction)}% on {now.arch}: {cause_words(now)}. {then}"
        )
    if whole.threads != now.threads:
        idle = whole.threads - now.threads
        return whole.threads, (
            f"A block of {now.threads} threads takes {whole.threads // WARP} warps, of whose lanes {idle} stay idle; "
            "one "
            f"of {whole.threads} uses them all."
        )
    return (
        f"Nothing to gain: occupancy is {percent(before.fraction)}% with blocks of {now.threads} threads, and no other "
        "block size reaches an eighth more."
    )


def _footprint(kernel: Kernel, launch: Launch) -> Footprint:
    """What the launch takes, of the instance that takes most where the kernel was compiled; else with no registers."""
    taken = [each.footprint for each in occupancies(kernel) if each.launch == launch]
    return max(taken, key=lambda f: f.registers, default=Footprint(kernel.arch, 0, 0, launch.threads or 1))


@dataclass(frozen=True, slots=True)
class _Name:
    """A variable or macro that says the block's or the grid's size: its value, and the text that may use it."""

    text: str
    value: Node
    scope: Node


def _resized(kernel: Kernel, elements: Elements, launches: list[Launch], threads: int) -> list[TextEdit] | str:
    """The edits that give every launch a block of so many threads; a reason where they cannot be written."""
    source, old = kernel.source, launches[0].block[0] or 0
    grids: list[Node] = []
    blocks: list[Node] = []
    known: dict[str, _Name] = {}
    for launch in launches:
        call = call_of(launch)
        configuration = uncommented(launch_configuration(call)) if call is not None else []
        if len(configuration) < 2:
            return f"The launch at {launch.source} is in a macro."
        for name in _names_behind(source, configuration[1], alone=False):
            known[name.text] = name
            blocks.append(name.value)
        for name in _names_behind(source, configuration[0], alone=True):
            known[name.text] = name
            grids.append(name.value)
        grids.append(configuration[0])
        blocks.append(configuration[1])
    for name in known.values():
        if macros := macros_naming(source, re.compile(rf"\b{re.escape(name.text)}\b")):
            return f"The macro {macros[0]} uses `{name.text}`, so it may mean more than the blocks of {kernel.name}."
        for use in names(name.scope, source, name.text):
            inside = any(p.start_byte <= use.start_byte < p.end_byte for p in (*grids, *blocks, elements.initial))
            if not inside and not _defines(use, name.value):
                line = line_of(source, use)
                return f"`{name.text}` is used at line {line} for more than the launches of {kernel.name}."
    found = {at: edit for place in (*grids, *blocks) for at, edit in _edits_in(source, place, old, threads)}
    if not any(place.start_byte <= at < place.end_byte for place in blocks for at in found):
        return f"The block of {kernel.name} is not written as a number that can be changed."
    return list(found.values())


def _edits_in(source: Source, place: Node, old: int, new: int) -> Iterator[tuple[int, TextEdit]]:
    """The block's size, and one less as in a grid that is rounded up, in a piece of the text, changed to the new "
    "one."""
    literals = [place] if place.type == "preproc_arg" else descendants(place, "number_literal")
    for literal in literals:
        text = source.node_code(literal).rstrip()
        number = re.fullmatch(r"\(?\s*([1-9]\d*)[uUlL]*\s*\)?", text)
        value = int(number[1]) if number else 0
        if value > 0 and value in (old, old - 1):
            changed = re.sub(r"\d+", str(new - (old - value)), text, count=1)
            yield literal.start_byte, TextEdit(literal.start_byte, literal.start_byte + len(text), changed)


def _names_behind(source: Source, extent: Node, *, alone: bool) -> Iterator[_Name]:
    """The variables and macros that give an extent its value, and those that give it to these; with `alone` only where
    they are all that is written, so that a count in a grid's expression is none."""
    waiting, seen = [extent], set[str]()
    while waiting and len(seen) < MOST_NAMES:
        place = waiting.pop()
        for use in _first_alone(place) if alone else descendants(place, "identifier"):
            text = source.node_text(use)
            if text not in seen and (name := _defined(source, extent, text)) is not None:
                yield name
                waiting.append(name.value)
            seen.add(text)


def _first_alone(place: Node) -> list[Node]:
    """The name in `blocks`, `(blocks)`, `dim3(blocks)` and `{blocks, 1}`."""
    while place.type != "identifier":
        inner = place.child_by_field_name("arguments") if place.type == "call_expression" else place
        if inner is None or inner.type not in ("argument_list", "initializer_list", "parenthesized_expression"):
            return []
        listed = uncommented(inner)
        if not listed:
            return []
        place = listed[0]
    return [place]


def _defined(source: Source, near: Node, text: str) -> _Name | None:
    """What a name means in the function of a launch, where that is one value."""
    function = enclosing(near, "function_definition")
    local = read_definitions(source, function).get(text, []) if function is not None else []
    if local:
        value = local[0].value
        return _Name(text, value, function) if len(local) == 1 and value is not None and function is not None else None
    macros = [m for m in descendants(source.root, "preproc_def") if _is_named(source, m, "name", text)]
    constants = [
        declared
        for declared in descendants(source.root, "init_declarator")
        if _is_named(source, declared, "declarator", text) and enclosing(declared, "function_definition") is None
    ]
    found = [*macros, *constants]
    value = found[0].child_by_field_name("value") if len(found) == 1 else None
    return _Name(text, value, source.root) if value is not None else None


def _is_named(source: Source, node: Node, field: str, text: str) -> bool:
    name = node.child_by_field_name(field)
    return name is not None and source.node_text(name) == text


def _defines(use: Node, value: Node) -> bool:
    """Whether a name stands in front of its value, as it is defined."""
    return any(parent == use.parent for parent in ancestors(value)) and use.end_byte <= value.start_byte


def _wrong(kernel: Kernel, edits: list[TextEdit], threads: int) -> str:
    """Why the launches as edited may not have a thread for each element, or have too many; empty where they do."""
    again = edited_kernel(kernel, edits)
    elements = match_elements(again) if again is not None else ""
    launches = launches_in_sight(again) if again is not None else ""
    unclear = f"How the launches of {kernel.name} would change with their blocks is not clear from the text."
    if again is None or isinstance(elements, str) or isinstance(launches, str):
        return unclear
    if any(launch.block != (threads, 1, 1) for launch in launches) or not_the_thread(again, elements, launches):
        return unclear
    for launch in launches:
        if reason := uncovered(again, launch, elements.bound):
            return reason
        grid, given = grid_formula(again.source, launch), arguments_of(again, launch)
        wanted = formula(again.source, elements.bound, given)
        if grid is None or wanted is None:
            return unclear

        def fits(values: Values, grid: Formula = grid, wanted: Formula = wanted) -> bool | None:
            blocks, count = grid.value(values), wanted.value(values)
            return None if blocks is None or count is None else blocks * threads <= count + threads

        if not holds(fits, grid.symbols | wanted.symbols):
            return f"The grid at {launch.source} would have blocks without work, for its number is not the count's."
    return ""
