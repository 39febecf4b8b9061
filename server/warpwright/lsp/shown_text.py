"""Ghost text that was shown: kept by what it was asked for, and while the user types it himself."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from warpwright.syntax.encoding import encoded, shown_bytes

MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class _Last:
    """What was shown last: for which file, between which bytes."""

    path: str
    before: bytes
    after: bytes
    texts: tuple[str, ...]


class ShownText:
    """The texts for the requests of the past. Used from the loop's thread alone."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._last: _Last | None = None

    def find(self, key: str) -> tuple[str, ...]:
        """The texts for a key, none where there are none."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key, ())

    def keep(self, key: str, texts: tuple[str, ...]) -> None:
        self._kept[key] = texts
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def forget(self, key: str) -> None:
        self._kept.pop(key, None)

    def show(self, path: str, data: bytes, offset: int, texts: tuple[str, ...]) -> None:
        """Remember what is shown at an offset of a text."""
        self._last = _Last(path, data[:offset], data[offset:], texts)

    def typed_through(self, path: str, data: bytes, offset: int) -> tuple[str, ...]:
        """What is left of the last texts where all that was changed since is that their beginning was typed.

        >>> shown = ShownText()
        >>> shown.show("a.cu", b"// x\\n", 5, ("int y;", "long y;"))
        >>> shown.typed_through("a.cu", b"// x\\nint", 8), shown.typed_through("a.cu", b"// x\\nout", 8)
        ((' y;',), ())
        """
        last = self._last
        if last is None or last.path != path or offset <= len(last.before):
            return ()
        if not data.startswith(last.before) or data[offset:] != last.after:
            return ()
        typed = data[len(last.before) : offset]
        rests = (encoded(each)[len(typed) :] for each in last.texts if encoded(each).startswith(typed))
        return tuple(shown_bytes(each) for each in rests if each)
