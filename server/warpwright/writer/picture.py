"""A schedule in words, and a picture of which threads hold what."""

from __future__ import annotations

from warpwright.schedules.attention import FusedAttention
from warpwright.schedules.contraction import CoreProduct, TensorProduct
from warpwright.schedules.model import Bins, Columns, Pointwise, Rows, Scan, Schedule, Segments, Tile
from warpwright.schedules.pairs import Pairs
from warpwright.schedules.windows import Windows

MOST_LINES = 4
"""Of rows of a picture; those between the first ones and the last are three dots."""


def described(schedule: Schedule) -> str:
    """One or two sentences.

    >>> described(Rows(32, 4, 4, 8))
    'A warp shares a row and keeps it in registers: each lane 8 times 4 elements. A block has 4 rows.'
    """
    match schedule:
        case Rows(lanes=lanes, rows=rows, vector=vector, per_lane=count, keep=keep):
            who = "A warp" if lanes == 32 else f"{lanes} lanes of a warp" if lanes < 32 else f"A block of {lanes}"
            shares = "shares" if lanes >= 32 else "share"
            own = f"each lane {_times(count)}{_elements(vector)}"
            several = f" A block has {rows} rows." if rows > 1 else ""
            several += "" if schedule.is_whole else " Single lanes take what lies before and behind whole words."
            if keep == "registers":
                kept = "keeps" if lanes >= 32 else "keep"
                return f"{who} {shares} a row and {kept} it in registers: {own}.{several}"
            where = "reads it anew for each pass" if keep == "reload" else f"keeps it in {keep} memory"
            return f"{who} {shares} a row and {where}, {_elements(vector)} a thread at once.{several}"
        case Pointwise(threads=threads, vector=vector, packs=packs):
            return f"A thread takes {_times(packs)}{_elements(vector)} side by side; a block has {threads} threads."
        case Columns(vector=vector, warps=warps, split=split):
            return (
                f"A lane takes {vector} columns. {warps} warps of a block and {split} blocks share the rows; a second "
                "launch brings their parts together."
            )
        case Tile(side=side, rows=rows, vector=vector):
            moved = f"{rows} rows at a time, {_elements(vector)} a thread"
            return f"A block turns {side} x {side} elements in shared memory, {moved}."
        case Bins(threads=threads, blocks=blocks, vector=vector):
            own = f"{_elements(vector)} a thread at once"
            return (
                f"Up to {blocks} blocks of {threads} threads gather in shared memory, {own}; then each adds its places."
            )
        case Scan(warps=warps, rows=rows, vector=vector, packs=packs):
            several = f"; a block has {rows} rows" if rows > 1 else ""
            own = f"each lane {_times(packs)}{_elements(vector)}{several}"
            return f"{_warps_share(warps)} a row and keep it in registers: {own}."
        case Segments(lanes=lanes):
            return "A thread takes a segment." if lanes == 1 else f"{lanes} lanes share a segment."
        case Windows():
            return _window(schedule)
        case Pairs(bodies=bodies, parts=parts):
            shared = "" if parts == 1 else f" {parts} groups of threads share a tile."
            return f"A thread takes {_results(bodies)}; tiles of the others pass through shared memory.{shared}"
        case CoreProduct() | TensorProduct():
            return _product(schedule)
        case FusedAttention(rows=rows, keys=keys, warps=warps):
            return (
                f"A block keeps {rows} rows of the first operand in shared memory, and walks over {keys} rows of the "
                f"others at a time. Each of {warps} warps has the scores of {rows // warps} rows and what they sum up "
                "in registers; the softmax is online: where the largest score grows, the sums shrink."
            )


def _warps_share(warps: int) -> str:
    return "The lanes of a warp share" if warps == 1 else f"{warps} warps share"


def _window(schedule: Windows) -> str:
    counts = ((schedule.rows, "row"), (schedule.outs, "channel"))
    more = [f"{count} {name}s" for count, name in counts if count > 1]
    several = f" in each of {' and '.join(more)}" if more else ""
    own = f"A thread computes {_results(schedule.cols)} side by side{several}"
    return f"{own} from neighbours that it holds in registers, and moves {_elements(schedule.vector)} at once."


def _results(count: int) -> str:
    return "1 result" if count == 1 else f"{count} results"


def _product(schedule: CoreProduct | TensorProduct) -> str:
    cores = (
        f"each thread has {schedule.thread_m} x {schedule.thread_n} sums"
        if isinstance(schedule, CoreProduct)
        else f"{schedule.stages} slices are under way by cp.async, and tensor cores multiply them"
    )
    return (
        f"A block of {schedule.threads} threads computes {schedule.tile_m} x {schedule.tile_n} elements, a warp "
        f"{schedule.warp_m} x {schedule.warp_n}: {cores}. Slices are {schedule.depth} deep."
    )


def _times(count: int) -> str:
    return "" if count == 1 else f"{count} times "


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


def picture(schedule: Schedule) -> str:
    """Lines of text, a cell for a thread or a warp; "" where words say it all.

    >>> print(picture(Rows(32, 4, 4, 2)))
    row 0  |lane 0: 0-3    |lane 1: 4-7    |...|lane 31: 124-127|
           |lane 0: 128-131|lane 1: 132-135|...|lane 31: 252-255|
    row 1  as row 0, the next 32 threads
    ...
    row 3
    """
    match schedule:
        case Rows():
            return _rows(schedule)
        case Pointwise(threads=threads, vector=vector, packs=packs):
            names = [f"pack {n}" if packs > 1 else "" for n in range(packs)]
            return "\n".join(_grid(names, "thread", threads, vector))
        case Tile(side=side):
            return "\n".join([f"in   rows of {side} along the input's fastest dimension", "         | shared memory |",
                              f"out  rows of {side} along the output's fastest dimension"])  # fmt: skip
        case CoreProduct() | TensorProduct():
            return _warps(schedule)
    return ""


def _rows(schedule: Rows) -> str:
    packs = schedule.per_lane if schedule.keep == "registers" else 1
    lines = _grid(["row 0", *[""] * (packs - 1)], "lane", schedule.lanes, schedule.vector)
    if schedule.rows > 1:
        lines.append(f"row 1  as row 0, the next {schedule.lanes} threads")
        lines += ["...", f"row {schedule.rows - 1}"] if schedule.rows > 2 else []
    return "\n".join(lines)


def _grid(names: list[str], what: str, threads: int, vector: int) -> list[str]:
    """A line for each pack: the first two threads and the last, with the elements that they hold."""
    shown = [0, 1, threads - 1] if threads > 2 else list(range(threads))
    cells = [
        [f"{what} {thread}: {_span((pack * threads + thread) * vector, vector)}" for thread in shown]
        for pack in range(len(names))
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(shown))]
    label = max(6, *map(len, names)) if any(names) else 0
    lines = []
    for name, row in zip(names, cells, strict=True):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if threads > 3:
            padded.insert(2, "...")
        lines.append(f"{name.ljust(label)}{' ' * bool(label)}|{'|'.join(padded)}|")
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 2], " " * label + " ...", lines[-1]]


def _span(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}-{first + count - 1}"


def _warps(schedule: CoreProduct | TensorProduct) -> str:
    """The warps of a block over its tile."""
    down, along = schedule.tile_m // schedule.warp_m, schedule.tile_n // schedule.warp_n
    width = len(f"warp {down * along - 1}")
    rule = "+" + "+".join(["-" * (width + 2)] * along) + "+"
    rows = [
        "|" + "|".join(f" {f'warp {row * along + column}'.ljust(width)} " for column in range(along)) + "|"
        for row in range(down)
    ]
    head = f"{schedule.tile_m} rows x {schedule.tile_n} columns"
    return "\n".join([head, rule, *(line for row in rows for line in (row, rule))])
