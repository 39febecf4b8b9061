"""Lines of C++ with their indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


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
