"""Lines of C++ with their indentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass
class Text:
    """Collects lines.

    >>> text = Text()
    >>> with text.block("for (int i = 0; i < n; ++i)"):
    ...     text("y[i] = 0;")
    >>> print(text)
    for (int i = 0; i < n; ++i) {
        y[i] = 0;
    }
    """

    lines: list[str] = field(default_factory=list)
    depth: int = 0

    def __call__(self, line: str = "") -> None:
        """Adds a line; one of the preprocessor begins at the margin."""
        margin = "" if not line or line.startswith("#") else "    " * self.depth
        self.lines.append(margin + line)

    def add(self, lines: Iterable[str]) -> None:
        for line in lines:
            self(line)

    @contextmanager
    def unrolled(self, index: str, count: int | str) -> Iterator[None]:
        """A loop whose count the compiler knows."""
        depth = self.depth
        self.begin_unrolled(index, count)
        yield
        self.end(depth)

    def begin_unrolled(self, index: str, count: int | str) -> None:
        """As `unrolled`, up to `end`."""
        self("#pragma unroll")
        self(f"for (int {index} = 0; {index} < {count}; ++{index}) {{")
        self.depth += 1

    def end(self, depth: int) -> None:
        """Ends all that has begun since the text had that depth."""
        while self.depth > depth:
            self.depth -= 1
            self("}")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines in braces behind `head`."""
        self(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self(tail)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def mentions(text: str, name: str) -> bool:
    """Whether a text of C++ has a name.

    >>> mentions("x[i] + 1", "i"), mentions("x[i] + 1", "")
    (True, False)
    """
    return bool(name) and re.search(rf"\b{name}\b", text) is not None


_LEAST = 16
"""Letters before a sign of arithmetic, of which fewer look lost on a line."""
_BREAKS = re.compile(r", |; | (?:&&|\|\||\?|:|[-+*/%]) ")
_ORDER = {",": 0, ";": 0, "?": 1, ":": 1, "||": 2, "&&": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
"""At which a line may end, from what binds least."""


def broken(line: str, width: int = 120) -> list[str]:
    """A statement on several lines where it is too long for one, broken in as few parentheses as possible. Comments,
    text in quotes and launches stay as they are.

    >>> broken("    y[i] = f(a, b) + g(c, d);", 26)
    ['    y[i] = f(a, b) +', '            g(c, d);']
    >>> broken("    total[i] = f(a, g(b, c));", 27)
    ['    total[i] =', '            f(a, g(b, c));']
    """
    if len(line) <= width or line.startswith("#") or any(sign in line for sign in ("//", '"', "<<<", "template ")):
        return [line]
    margin = " " * (len(line) - len(line.lstrip()) + 8)
    lines = []
    while len(line) > width and (end := _end(line, width)) > len(margin):
        lines.append(line[:end].rstrip())
        line = margin + line[end:]
    return [*lines, line]


def _end(line: str, width: int) -> int:
    """Where a line may end: in as few parentheses as possible, behind the operator that binds least (before those of a
    select), and then as late as possible; behind an assignment's sign where that saves parentheses; not after a few
    letters; 0 where it may not."""
    depths = list(accumulate((letter in "([{") - (letter in ")]}") for letter in line))
    indent = len(line) - len(line.lstrip())
    assigned = line.find(" = ") + 3
    fits_behind = assigned > 2 and depths[assigned] == 0 and indent + 8 + len(line) - assigned <= width
    ends = []
    for found in _BREAKS.finditer(line.rstrip(), 0, width):
        depth, sign = depths[found.start()], found[0].strip()
        # A comma outside of parentheses is one between the arguments of a template.
        if depth or sign != ",":
            end = found.start() + 1 if sign in "?:" else found.end()
            ends.append((depth, _ORDER[sign], -end))
    early = indent + _LEAST
    best = min(
        [each for each in ends if -each[2] >= (early if each[1] > _ORDER["&&"] else indent + 1)], default=(0, 0, 0)
    )
    return assigned if fits_behind and best[0] else -best[2]


def listed(parts: list[str], head: str, tail: str, width: int = 110) -> list[str]:
    """`head` + parts + `tail` on one line, or broken behind commas and aligned by four blanks more.

    >>> listed(["int a", "int b"], "void f(", ") {")
    ['void f(int a, int b) {']
    """
    whole = head + ", ".join(parts) + tail
    if len(whole) <= width:
        return [whole]
    lines, line = [head], ""
    for number, part in enumerate(parts):
        piece = part + (", " if number + 1 < len(parts) else tail)
        if line and len(line) + len(piece.rstrip()) + 8 > width:
            lines.append("        " + line.rstrip())
            line = ""
        line += piece
    return [*lines, "        " + line]
