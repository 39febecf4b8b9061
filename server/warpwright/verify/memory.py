"""What one verification asks the history of, and leaves in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from warpwright.syntax.source import Source
from warpwright.verify.history import HistoryError, find_answer, keep_run, question
from warpwright.verify.report import Report
from warpwright.verify.run import Observed


class Memory:
    """Of one verification. `again` asks that both are run, even where the answer is known."""

    def __init__(self, again: bool) -> None:
        self.again = again
        self._asked = ""
        self._observed: Observed | None = None
        self._was_kept = False

    def answer(
        self, parts: tuple[object, ...], environment: Mapping[str, Any], run: Callable[[], Observed]
    ) -> tuple[Observed, dict[str, Any]]:
        """What was seen when the question that `parts` make was asked before, else what `run` sees now; with the
        environment that it was seen in. A history that cannot be read is a note, and `run` is called."""
        self._asked = question(*parts)
        lacking = ""
        try:
            kept = None if self.again else find_answer(self._asked)
        except HistoryError as error:
            kept, lacking = None, str(error)
        if kept is not None:
            self._was_kept = True
            when = datetime.fromtimestamp(kept.at).astimezone().strftime("%Y-%m-%d %H:%M %Z")
            said = f"both were run on {when}; nothing that decides the verdict has changed since"
            return replace(kept.observed, notes=[*kept.observed.notes, said]), {**kept.environment, "kept_from": when}
        observed = run()
        self._observed = replace(observed, notes=list(observed.notes))
        if lacking:
            observed.notes.append(lacking)
        return observed, {**environment, "sandbox": ", ".join(observed.sandbox) or "none"}

    def keep(self, report: Report, original: Source, candidate: Source) -> None:
        """Add the verification to the history, unless its answer comes from there. A history that cannot be written
        costs nothing but itself."""
        if self._was_kept:
            return
        with contextlib.suppress(HistoryError):
            keep_run(report, original, _what(original, candidate), self._asked, self._observed)


def _what(original: Source, candidate: Source) -> str:
    """The candidate in a few words: its file's name where it is another, and how many lines differ."""
    first, second = original.text().splitlines(), candidate.text().splitlines()
    added = removed = 0
    for tag, start, end, other_start, other_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += end - start
            added += other_end - other_start
    changed = f"+{added} -{removed} lines"
    same = Path(original.path).absolute() == Path(candidate.path).absolute()
    return changed if same else f"{Path(candidate.path).name}, {changed}"
