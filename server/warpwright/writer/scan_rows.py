"""Scans along the fastest dimension: warps share a row, or a part of one, and keep it in registers."""

from __future__ import annotations

from warpwright.formulas.model import Tensor
from warpwright.writer.code import Kernel
from warpwright.writer.places import coordinates
from warpwright.writer.scan_text import ScanText, names_in
from warpwright.writer.text import Text, listed

SAID = """// kWarps warps share a row and keep kPacks packs of a lane in registers. In a longer row values are
// carried from turn to turn or, where kChained, from block to block."""
TEMPLATE = "typename Index, int kVector, int kPacks, int kWarps, int kRows, bool kChained"


def rows_kernel(text: ScanText, name: str, told: Tensor, ready: Tensor) -> Kernel:
    """A template over the shape of a block and whether rows are cut into parts."""
    scope, found = text.scope, text.found
    p, k = text.pack, text.element
    free = scope.free
    lane, warp, begin, end, first, carried, values, front, lead, total = (
        free(n) for n in ("lane", "warp", "begin", "end", "first", "carried", "values", "front", "lead", "total")
    )
    length, rows = text.extent(found.along), text.extent(*found.rows)
    held, start = text.held, text.start
    scope.used[told.name] = scope.stored[told.name] = None
    scope.used[ready.name] = scope.stored[ready.name] = None

    loop = Text(depth=2)
    loop(f"const Index {first} = {begin} + ({warp} * kPacks * 32 + {lane}) * kVector;")
    loop(f"{held} {values}[kPacks][kVector];")
    with loop.unrolled(p, "kPacks"):
        with loop.block(f"if ({first} + {p} * 32 * kVector < {length})"):
            loop(_at(text, first, length))
            text.gathered(loop, f"{values}[{p}]")
        loop.lines[-1] += " else {"
        loop("#pragma unroll")
        loop(f"    for (int {k} = 0; {k} < kVector; ++{k}) {values}[{p}][{k}] = {start};")
        loop("}")
    loop(f"{held} {lead}[kPacks];  // in front of each pack, of what the warp holds")
    loop(f"{held} {total} = {start};")
    with loop.unrolled(p, "kPacks"):
        own = f"{values}[{p}]"
        loop("#pragma unroll")
        if found.reverse:
            line = f"{own}[{k} - 1] = {text.joined(f'{own}[{k} - 1]', f'{own}[{k}]')};"
            loop(f"for (int {k} = kVector - 1; {k} > 0; --{k}) {line}")
        else:
            line = f"{own}[{k}] = {text.joined(f'{own}[{k} - 1]', f'{own}[{k}]')};"
            loop(f"for (int {k} = 1; {k} < kVector; ++{k}) {line}")
        last = "0" if found.reverse else "kVector - 1"
        loop(f"{lead}[{p}] = {text.helper('running_lanes')}({own}[{last}], {total});")
    loop(f"{held} {front};")
    with loop.block("if constexpr (kChained)"):
        loop(f"{held} whole = {start};")
        loop(f"{front} = {text.helper('running_warps')}<kWarps>({total}, whole);")
        scope.expressions.helpers |= {f"running_parts_{found.op}", "next_part"}
        row = f"{text.row} * last_part"
        other = f"({rows} + {text.row}) * last_part" if found.rows else "last_part"
        loop(f"{held}* const totals = {text.told(told)}{f' + {row}' if found.rows else ''};")
        loop(f"{held}* const upto = {text.told(told)} + {other};")
        flags = f"{ready.name} + 1 + 2 * {row}" if found.rows else f"{ready.name} + 1"
        loop(f"int* const flags = {flags};")
        call = f"const {held} parts_front = running_parts_{found.op}<32 * kWarps, {held}>("
        loop.add(listed([start, "whole", "part", "last_part", "totals", "upto", "flags"], call, ");"))
        loop(f"{front} = {text.joined('parts_front', front)};")
    loop.lines[-1] += " else {"
    loop(f"    {front} = {text.helper('running_warps')}<kWarps>({total}, {carried});")
    loop("}")
    with loop.unrolled(p, "kPacks"):
        loop(f"if ({first} + {p} * 32 * kVector >= {length}) break;")
        loop(_at(text, first, length))
        before = free("before")
        loop(f"const {held} {before} = {text.joined(front, f'{lead}[{p}]')};")
        text.results(loop, _value(text, f"{values}[{p}]", before))

    body = Text(depth=1)
    body("constexpr int kTile = 32 * kWarps * kPacks * kVector;")
    body(f"const int {lane} = threadIdx.x % 32;")
    body(f"const int {warp} = threadIdx.x / 32 % kWarps;")
    if found.rows:
        body(f"Index {text.row} = static_cast<Index>(blockIdx.x) * kRows + threadIdx.x / (32 * kWarps);")
    body(f"Index {begin} = 0;")
    body(f"Index {end} = {length};")
    body("[[maybe_unused]] int part = 0;")
    body("[[maybe_unused]] int last_part = 0;")
    with body.block("if constexpr (kChained)"):
        body(f"last_part = static_cast<int>(({length} + kTile - 1) / kTile) - 1;")
        body(f"part = next_part({ready.name});")
        if found.rows:
            body(f"{text.row} = part / (last_part + 1);")
            body("part %= last_part + 1;")
        body(f"{begin} = static_cast<Index>(part) * kTile;")
        body(f"{end} = min({begin} + kTile, {end});")
    if found.rows:
        body(f"if ({text.row} >= {rows}) return;")
    if len(found.rows) > 1 and names_in(str(loop), found.rows):
        body.add(coordinates(scope.expressions, found.rows, text.formula.dims, text.row, str(loop)))
    body(f"{held} {carried} = {start};")
    with body.block(f"for (; {begin} < {end}; {begin} += kTile)"):
        body.lines += loop.lines
    return text.kernel(name, SAID, TEMPLATE, "32 * kWarps * kRows", body)


def _at(text: ScanText, first: str, length: str) -> str:
    """Where a pack begins; from the end of the row where it is scanned from there."""
    place = f"{first} + {text.pack} * 32 * kVector"
    if text.found.reverse:
        place = f"{length} - kVector - ({place})"
    return f"const Index {text.at} = {place};"


def _value(text: ScanText, values: str, before: str) -> str:
    """The running value of element k of a pack."""
    k, found = text.element, text.found
    if found.closed:
        return text.joined(before, f"{values}[{k}]")
    is_first, other = (f"{k} == kVector - 1", f"{k} + 1") if found.reverse else (f"{k} == 0", f"{k} - 1")
    return f"{is_first} ? {before} : {text.joined(before, f'{values}[{other}]')}"
