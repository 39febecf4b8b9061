"""Source positions: what the `.loc`, `.file` and `.debug_str` of a PTX text say.

Source: PTX ISA 9.0, section 11.5 "Debugging Directives".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from warpwright.emulator.ptx.model import Place
from warpwright.emulator.ptx.tokens import Cursor
from warpwright.syntax.encoding import shown_bytes
from warpwright.toolchain.file_names import unescaped

_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d{1,9})[ \t]+"((?:[^"\\\n]|\\.)*)"', re.MULTILINE | re.ASCII)
_STRINGS = re.compile(r"^[ \t]*\.section[ \t]+\.debug_str\s*\{([^}]*)\}", re.MULTILINE)
_LABEL_OR_BYTES = re.compile(r"([\w$]+):|\.b8[ \t]+([\d, \t]+)", re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)


class Places:
    """The files and names that `.loc` refers to, which stand after the code that does, and the places seen so far."""

    def __init__(self, text: str) -> None:
        self._files = {int(number): unescaped(path) for number, path in _FILE.findall(text)}
        section = _STRINGS.search(text)
        self._strings, self._labels = _debug_strings(section[1] if section else "")
        self._seen: dict[tuple[int, int, int], Place] = {}

    def start_function(self) -> None:
        """Forget the places of the function before: a call is inlined where its own function says."""
        self._seen.clear()

    def read(self, cursor: Cursor) -> Place:
        """The rest of a `.loc`: `1 26 13`, or `1 126 3, function_name $L__info_string1, inlined_at 1 156 3`.

        The place that `inlined_at` gives has been a place of its own before, so that a chain of calls is known.
        """
        place, key = self._position(cursor)
        function, caller = "", None
        while cursor.take(","):
            if cursor.take("function_name"):
                function = self._string(cursor)
            elif cursor.take("inlined_at"):
                position, caller_key = self._position(cursor)
                caller = self._seen.get(caller_key, position)
            else:
                raise cursor.unexpected("`function_name` or `inlined_at`")
        if caller is not None:
            place = Place(place.file, place.line, place.column, caller, function)
        self._seen[key] = place
        return place

    def _position(self, cursor: Cursor) -> tuple[Place, tuple[int, int, int]]:
        number, line, column = (cursor.whole(what, 2**31) for what in ("a file's number", "a line", "a column"))
        if number not in self._files:
            cursor.at -= 3
            raise cursor.error(f"`.loc` names file {number}, which no .file declares; the text seems to be cut off.")
        return Place(self._files[number], line, column), (number, line, column)

    def _string(self, cursor: Cursor) -> str:
        """The string at a label of .debug_str; "" where there is none."""
        label = cursor.name("a label")
        start = self._labels.get(label, len(self._strings))
        if cursor.take("+"):
            start += cursor.whole("an offset")
        end = self._strings.find(b"\0", start)
        return shown_bytes(self._strings[start : end if end >= 0 else None])


@lru_cache(maxsize=4)
def _debug_strings(section: str) -> tuple[bytes, Mapping[str, int]]:
    """The bytes of the section .debug_str, and where in them each label stands. Kernels of one file share it.

    >>> _debug_strings("$L0:\\n.b8 95,90\\n.b8 0\\n$L1:\\n.b8 65,0\\n")
    (b'_Z\\x00A\\x00', {'$L0': 0, '$L1': 3})
    """
    data, labels = bytearray(), {}
    for label, numbers in _LABEL_OR_BYTES.findall(section):
        if label:
            labels[label] = len(data)
        else:
            data += bytes(int(number[-3:]) & 0xFF for number in _NUMBER.findall(numbers))
    return bytes(data), labels
