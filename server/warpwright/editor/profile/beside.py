"""Two profiles of one kind beside each other: an earlier text of a kernel and the present one, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from warpwright.editor.profile.view import Counts, Row, View


@dataclass(frozen=True, slots=True)
class Lines:
    """A line that both texts have; or, with one of the two missing, one that went or came."""

    before: Row | None
    now: Row | None

    @property
    def row(self) -> Row:
        row = self.now or self.before
        assert row is not None
        return row

    @property
    def sign(self) -> str:
        """As in a diff."""
        return " " if self.before and self.now else "-" if self.before else "+"


@dataclass(frozen=True, slots=True)
class Measure:
    """One column: its name, and how it is read off counts."""

    name: str
    value: Callable[[Counts], int | None]

    def pair(self, before: Counts | None, now: Counts | None) -> tuple[int | None, int | None]:
        return (self.value(before) if before else None), (self.value(now) if now else None)

    def words(self, lines: Lines) -> str:
        """What a line did before and now; of one that went or came, what it did."""
        before, now = (row.counts if row is not None else None for row in (lines.before, lines.now))
        old, new = self.pair(before, now)
        return change(old, new) if lines.sign == " " else change(*[old if lines.before else new] * 2)


def measures(before: View, now: View) -> list[Measure]:
    """The columns that one of the two has a count for."""
    every = (
        Measure(f"{now.instruction_set.value.upper()} instructions", lambda counts: counts.instructions),
        Measure("global sectors", lambda counts: _got(counts.global_sectors)),
        Measure("shared wavefronts", lambda counts: _got(counts.shared_wavefronts)),
        Measure("local sectors", lambda counts: _got(counts.local_sectors)),
        Measure("divergent branches", lambda counts: counts.divergent_branches if counts.branches else None),
    )
    return [each for each in every if each.pair(before.total, now.total) != (None, None)]


def _got(pair: tuple[int, int | None] | None) -> int | None:
    return pair[0] if pair is not None else None


def beside(before: View, now: View) -> Iterator[Lines]:
    """The lines of the kernel in both texts, in the order of a diff; those that differ in blanks alone are the same."""
    old, new = _rows(before), _rows(now)
    before_texts, now_texts = ([row.text.strip() for row in rows] for rows in (old, new))
    for same, first, last, start, end in SequenceMatcher(None, before_texts, now_texts, autojunk=False).get_opcodes():
        if same == "equal":
            yield from map(Lines, old[first:last], new[start:end])
        else:
            yield from (Lines(row, None) for row in old[first:last])
            yield from (Lines(None, row) for row in new[start:end])


def _rows(view: View) -> list[Row]:
    file = view.files[0]
    return [row for row in file.rows if file.first <= row.number <= file.last]


def totals(before: View, now: View) -> list[str]:
    """`shared wavefronts 131,775 -> 8,088 (0.06x)` for each column."""
    found = []
    for each in measures(before, now):
        old, new = each.pair(before.total, now.total)
        ratio = f" ({(new or 0) / old:.2f}x)" if old and old != new else ""
        found.append(f"{each.name} {change(old, new)}{ratio}")
    return found


def change(before: int | None, now: int | None) -> str:
    """
    >>> change(131775, 8088), change(5, 5), change(None, 4), change(7, None), change(None, None)
    ('131,775 -> 8,088', '5', '0 -> 4', '7 -> 0', '')
    """
    if before == now:
        return f"{now:,}" if now is not None else ""
    return f"{before or 0:,} -> {now or 0:,}"
