"""What the compiler made of the kernel on both sides."""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.verify.presentation.blocks import Cell, Json, Section, Table, Tone, cells

_BYTES = {
    "spill stores": "spill_store_bytes",
    "spill loads": "spill_load_bytes",
    "stack": "stack_bytes",
    "shared memory": "shared_bytes",
}


def compiled_section(report: Json) -> Section | None:
    compiled = report["compile"]
    if compiled is None or "registers" not in compiled:
        return None
    rows: tuple[tuple[Cell, ...], ...] = tuple(_rows(compiled.get("original"), compiled))
    head: tuple[str, ...] = (f"{report['kernel']} for {compiled['arch']}", "original", "candidate", "change")
    if report.get("goal") == "reference":  # both are one text
        head, rows = (head[0], ""), tuple((row[0], row[2]) for row in rows)
    return Section("Compiled", (Table(head, rows),))


def changes(report: Json) -> str:
    """What the candidate takes more or less of, in a line; "" where that is nothing, or not known."""
    section = compiled_section(report)
    if section is None or report.get("goal") == "reference":
        return ""
    tables = (block for block in section.blocks if isinstance(block, Table))
    rows = (row for table in tables for row in table.rows)
    return "; ".join(
        f"{row[0].text} {row[1].text} -> {row[2].text}" for row in rows if row[3].text and row[1].text != "-"
    )


def _rows(original: Json | None, candidate: Json) -> Iterator[tuple[Cell, ...]]:
    yield _row("registers", original, candidate, "registers", "")
    for name, key in _BYTES.items():
        yield _row(name, original, candidate, key, " B")
    if (original or candidate).get("barriers") != candidate.get("barriers"):
        yield _row("barriers", original, candidate, "barriers", "")
    occupied = [side.get("occupancy") if side else None for side in (original, candidate)]
    if not any(occupied):
        yield cells("occupancy", "unknown", "unknown", "the block is not known")
        return
    yield (Cell("occupancy"), *(Cell(f"{o['fraction']:.1%}" if o else "-") for o in occupied), _moved(*occupied))
    yield (Cell("warps, blocks"), *(Cell(f"{o['warps']}, {o['blocks']}" if o else "-") for o in occupied), Cell(""))
    yield (Cell("limited by"), *(Cell(o["limiter"] if o else "-") for o in occupied), Cell(""))


def _row(name: str, original: Json | None, candidate: Json, key: str, unit: str) -> tuple[Cell, ...]:
    before, after = original[key] if original else None, candidate[key]
    change = Cell("")
    if before is not None and before != after:
        change = Cell(f"{after - before:+d}{unit}", "warn" if after > before else "good")
    return Cell(name), Cell("-" if before is None else f"{before}{unit}"), Cell(f"{after}{unit}"), change


def _moved(before: Json | None, after: Json | None) -> Cell:
    if not before or not after or before["fraction"] == after["fraction"]:
        return Cell("")
    tone: Tone = "warn" if after["fraction"] < before["fraction"] else "good"
    return Cell(f"{(after['fraction'] - before['fraction']) * 100:+.1f} points", tone)
