"""Scans along a slow dimension: a thread has columns of its own and keeps some rows of them in registers; blocks below
each other carry on."""

from __future__ import annotations

from warpwright.formulas.model import Tensor
from warpwright.schedules.model import Scan
from warpwright.writer.code import Kernel
from warpwright.writer.places import coordinates
from warpwright.writer.scan_text import ScanText, names_in
from warpwright.writer.text import Text

SAID = """// Each thread has kVector columns and keeps kItems rows of them in registers. Warps of a block lie
// below each other and, where kChained, so do blocks, which tell each other what they add up to."""


def columns_kernel(text: ScanText, name: str, told: Tensor, ready: Tensor, schedule: Scan) -> Kernel:
    """A template over the type of indices and the width of packs."""
    scope, found = text.scope, text.found
    along, k, m, at = found.along, text.element, text.pack, text.at
    free = scope.free
    lane, warp, first, values, front = (free(n) for n in ("lane", "warp", "first", "values", "front"))
    length, columns, rows = text.extent(along), text.extent(*found.cols), text.extent(*found.rows)
    held, start = text.held, text.start
    for each in (told, ready):
        scope.used[each.name] = scope.stored[each.name] = None
    scope.expressions.helpers |= {"next_part", f"running_column_parts_{found.op}"}

    inner = Text(depth=1)
    inner(f"{held} {values}[kItems][kVector];")
    inner("#pragma unroll")
    position = f"{length} - 1 - {first} - {m}" if found.reverse else f"{first} + {m}"
    with inner.block(f"for (int {m} = 0; {m} < kItems; ++{m})"):
        with inner.block(f"if (is_inside && {first} + {m} < {length})"):
            inner(f"const Index {along} = {position};")
            text.gathered(inner, f"{values}[{m}]")
        inner.lines[-1] += " else {"
        inner("#pragma unroll")
        inner(f"    for (int {k} = 0; {k} < kVector; ++{k}) {values}[{m}][{k}] = {start};")
        inner("}")
    inner("#pragma unroll")
    with inner.block(f"for (int {m} = 1; {m} < kItems; ++{m})"):
        inner("#pragma unroll")
        line = f"{values}[{m}][{k}] = {text.joined(f'{values}[{m} - 1][{k}]', f'{values}[{m}][{k}]')};"
        inner(f"for (int {k} = 0; {k} < kVector; ++{k}) {line}")
    inner(f"{held} {front}[kVector], whole[kVector];")
    inner(f"{text.helper('running_columns')}<kWarps, kVector, {held}>({start}, {values}[kItems - 1], {front}, whole);")
    with inner.block("if constexpr (kChained)"):
        inner(f"{held} parts_front[kVector];")
        whole = f"{rows} * {columns}" if found.rows else columns
        place = f"{text.row} * {columns} + {at}" if found.rows else at
        inner(f"const long long all = static_cast<long long>({whole});")
        inner(f"{held}* const totals = {text.told(told)} + {place};")
        inner(f"{held}* const upto = totals + (parts - 1) * all;")
        inner(f"int* const flags = {ready.name} + 1 + 2 * (parts - 1) * (ticket % chains);")
        inner(f"running_column_parts_{found.op}<kWarps, kVector, {held}>(")
        inner(f"        {start}, whole, parts_front, is_inside, part, parts - 1, all, totals, upto, flags);")
        inner("#pragma unroll")
        line = f"{front}[{k}] = {text.joined(f'parts_front[{k}]', f'{front}[{k}]')};"
        inner(f"for (int {k} = 0; {k} < kVector; ++{k}) {line}")
    inner("if (!is_inside) return;")
    with inner.unrolled(m, "kItems"):
        inner(f"if ({first} + {m} >= {length}) break;")
        inner(f"const Index {along} = {position};")
        value = text.joined(f"{front}[{k}]", f"{values}[{m}][{k}]")
        if not found.closed:
            other = text.joined(f"{front}[{k}]", f"{values}[{m} - 1][{k}]")
            value = f"{m} == 0 ? {front}[{k}] : {other}"
        text.results(inner, value)

    body = Text(depth=1)
    body(f"constexpr int kWarps = {schedule.warps};")
    body(f"constexpr int kItems = {schedule.packs};")
    body(f"const int {lane} = threadIdx.x % 32;")
    body(f"const int {warp} = threadIdx.x / 32;")
    body(f"[[maybe_unused]] const int parts = static_cast<int>(({length} + kWarps * kItems - 1) / (kWarps * kItems));")
    stripes = f"({columns} + 32 * kVector - 1) / (32 * kVector)"
    body(f"const Index stripes = {stripes};")
    body(f"const Index chains = {f'{rows} * stripes' if found.rows else 'stripes'};")
    body(f"const int ticket = kChained ? next_part({ready.name}) : static_cast<int>(blockIdx.x);")
    body("const int part = static_cast<int>(ticket / chains);")
    if found.rows:
        body(f"const Index {text.row} = ticket % chains / stripes;")
    body(f"const Index {at} = (ticket % stripes * 32 + {lane}) * kVector;")
    body(f"const Index {first} = (static_cast<Index>(part) * kWarps + {warp}) * kItems;")
    body(f"const bool is_inside = {at} < {columns};")
    if len(found.rows) > 1 and names_in(str(inner), found.rows):
        body.add(coordinates(scope.expressions, found.rows, text.formula.dims, text.row, str(inner)))
    body.lines += inner.lines
    return text.kernel(name, SAID, "typename Index, int kVector, bool kChained", str(32 * schedule.warps), body)
