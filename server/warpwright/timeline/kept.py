"""What the last trace of a program said of its lines, kept for editors: by the file's path, with the text that ran."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpwright.directories import cache_dir, read_kept, write_kept
from warpwright.files import read_file
from warpwright.syntax.encoding import decoded, encoded
from warpwright.timeline.words import does, milliseconds

if TYPE_CHECKING:
    from warpwright.timeline.report import Report  # editors read what is kept, and make no report

_MOST_BYTES = 1 << 20
_MOST_LINES = 5000
"""Of a text that was edited since: longer ones are not compared."""


@dataclass(frozen=True, slots=True)
class TracedLine:
    """`said` is what the line cost, `advice` what would help, "" where nothing is proposed; `share` is that of the wall
    time."""

    line: int
    share: float
    said: str
    advice: str


def keep(report: Report) -> None:
    """Keep what is said of each file whose text can be read."""
    found: dict[str, list[TracedLine]] = {}
    for cost in report.lines:
        if not cost.place.exact:
            continue
        share = cost.wall / max(1, report.shared.wall)
        _, cause = max(((time, str(each)) for each, time in cost.idle.items()), default=(0, ""))
        what = "while no GPU worked" if report.has_gpu else "of the time"
        said = f"{milliseconds(cost.wall)} {what} ({share:.0%} of the run{f', {cause}' if cause else ''})"
        said += f": {does(cost)}" if does(cost) else ""
        helps = [each for each in report.proposals if cost.place in each.places]
        advice = " ".join(f"{each.text.rstrip('.')}: up to {each.gain:.2f}x." for each in helps)
        found.setdefault(cost.place.file, []).append(TracedLine(cost.place.line, share, said, advice))
    for file, lines in found.items():
        path = Path(file).absolute()
        try:
            text = decoded(read_file(path, _MOST_BYTES)).split("\n")
            write_kept(_kept_at(path), {"text": text, "lines": [asdict(each) for each in lines]})
        except OSError:
            continue  # what cannot be read or kept is not shown in an editor


def traced(path: str, text: str) -> tuple[TracedLine, ...]:
    """What the last trace said of the lines that this text still has, at their present places."""
    kept = read_kept(_kept_at(Path(path).absolute()))
    if not isinstance(kept, dict):
        return ()
    try:
        lines = [TracedLine(**each) for each in kept["lines"]]
        places = _places(kept["text"], text.split("\n"))
    except (KeyError, TypeError):
        return ()
    moved = ((places.get(each.line), each) for each in lines)
    return tuple(TracedLine(at, each.share, each.said, each.advice) for at, each in moved if at is not None)


def _places(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Where each line of the old text is in the new one, from 1."""
    if list(old) == list(new):
        return {line: line for line in range(1, len(new) + 1)}
    if max(len(old), len(new)) > _MOST_LINES:
        return {}
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return {a + each + 1: b + each + 1 for a, b, size in blocks for each in range(size)}


def _kept_at(path: Path) -> Path:
    return cache_dir() / "traces" / f"{hashlib.sha256(encoded(str(path))).hexdigest()[:32]}.json"
