"""A source file as bytes, lines and a tree-sitter tree.

Offsets are byte offsets everywhere inside warpwright: they are what tree-sitter gives and what edits need.
Lines and columns are for people and are 1-based; a column counts characters, not bytes.
"""

from __future__ import annotations

import codecs
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Point, Tree

from warpwright.files import read_start
from warpwright.syntax.code import code_of, without_comments
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.readable import readable, with_line_feeds

CUDA = Language(tree_sitter_cuda.language())
HEADERS = (".cuh", ".h", ".hpp", ".hh", ".hxx", ".inl", ".inc", ".ipp", ".tpp")
"""How the names of files end that others include."""
MOST_BYTES = 64 << 20
"""Of a file that is read: what is larger is data, or a device without an end."""
MOST_NESTING = 16_000
"""Levels of a tree that is looked into, at most; a sum of so many terms is one."""
MOST_PIECES = 30_000
"""Of a text that is no program, at most."""
MOST_TURNS = 10_000
BYTES_OF_TURN = 16
"""Turns of the parser, of a hundred operations each, for a text: so many, and one for so many bytes. A program takes
one for 100 bytes; of some texts, such as `a<b>::a<b>::...`, it makes ever more readings at once."""
_PIECE = 1 << 16
_BLANKS = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


class SourceError(Exception):
    """A file that cannot be analysed; the message is one sentence for the user."""


class Source:
    """One version of one file. Immutable: an edit gives a new Source.

    >>> source = Source("a.cu", b"int x;\\nint y;\\n")
    >>> source.position(11)
    (2, 5)
    >>> source.line_text(2)
    'int y;'
    """

    def __init__(self, path: str, data: bytes, tree: Tree | None = None, changed: tuple[Source, ...] = ()) -> None:
        self.path = path
        self.data = data
        self.changed = changed
        """Files that it includes and that are read as these, not as they are on disk."""
        self._tree = tree

    def __repr__(self) -> str:
        return f"Source({self.path!r}, {len(self.data)} bytes)"

    @cached_property
    def tree(self) -> Tree:
        return self._tree if self._tree is not None else _parse(self.data)

    @property
    def root(self) -> Node:
        return self.tree.root_node

    def including(self, *changed: Source) -> Source:
        """This file with those in the place of files of their paths that it includes."""
        return Source(self.path, self.data, self._tree, changed)

    @cached_property
    def closed_root(self) -> Node:
        """The root for reading half-written text: where that shows more functions, the brackets that are open at the
        end of the text count as closed there. Offsets are those of the text.

        >>> [n.type for n in Source("a.cu", b"__global__ void k(int* a) { a[threadIdx.x").closed_root.named_children]
        ['function_definition']
        """
        if not self.root.has_error:
            return self.root
        closers = _closers(self.code)
        if not closers:
            return self.root
        closed = self.edited([TextEdit(len(self.data), len(self.data), decoded(closers))]).root
        return closed if _functions(closed) > _functions(self.root) else self.root

    @cached_property
    def is_tangled(self) -> bool:
        """Whether the text took the parser too long, or the tree is so deep, or as an error so wide, that nothing is
        read of it: tree-sitter finds a node's parent from the root on, so what looks outwards would take the square of
        its size.

        A tree that is deep somewhere is so over a long run of its nodes: some are looked at.
        """
        if not self.root.child_count and self.data.strip():
            return True
        if self.closed_root.type == "ERROR" and self.closed_root.child_count > MOST_PIECES:
            return True
        count = self.closed_root.descendant_count
        cursor = self.closed_root.walk()
        for index in range(0, count if count > MOST_NESTING else 0, MOST_NESTING // 4):
            cursor.goto_descendant(index)
            if cursor.depth > MOST_NESTING // 2:
                return True
        return False

    @cached_property
    def _is_ascii(self) -> bool:
        return self.data.isascii()

    @cached_property
    def line_starts(self) -> list[int]:
        """Byte offset of the first byte of each line; as for gcc, a return ends a line, too."""
        starts = [0]
        data = with_line_feeds(self.data)
        at = data.find(b"\n")
        while at >= 0:
            starts.append(at + 1)
            at = data.find(b"\n", at + 1)
        return starts

    def text(self, start: int = 0, end: int | None = None) -> str:
        """The text between two byte offsets; `encoding.decoded` says what becomes of bytes that are not UTF-8."""
        return decoded(self.data[start:end])

    def node_text(self, node: Node) -> str:
        """What stands there: for what is written or shown, and for nodes that are one word."""
        return decoded(self.data[node.start_byte : node.end_byte])

    @cached_property
    def code(self) -> bytes:
        """The bytes without what comments and literals say, of the same length (`code.code_of`): for what decides."""
        return code_of(self.data)

    def code_text(self, start: int = 0, end: int | None = None) -> str:
        """As `text`, of `code`."""
        return decoded(self.code[start:end])

    def node_code(self, node: Node) -> str:
        """As `node_text`, of `code`."""
        return decoded(self.code[node.start_byte : node.end_byte])

    def plain_text(self, node: Node) -> str:
        """As `node_text`, with comments as blanks: for what is written on one line, or read further."""
        return decoded(without_comments(self.data[node.start_byte : node.end_byte]))

    def position(self, offset: int) -> tuple[int, int]:
        """1-based (line, column) of a byte offset; the column counts characters."""
        offset = max(0, min(offset, len(self.data)))
        line = bisect_right(self.line_starts, offset)
        start = self.line_starts[line - 1]
        if self._is_ascii:
            return line, offset - start + 1
        return line, len(decoded(self.data[start:offset])) + 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its line end."""
        return self.text(*self._line(line)).rstrip("\r\n")

    def line_code(self, line: int) -> str:
        """As `line_text`, of `code`."""
        return self.code_text(*self._line(line)).rstrip("\r\n")

    def _line(self, line: int) -> tuple[int, int]:
        return self.line_starts[line - 1], self.line_starts[line] if line < len(self.line_starts) else len(self.data)

    def line_span(self, line: int) -> Span:
        """A 1-based line without the white space around its text."""
        start, end = self._line(line)
        text = self.data[start:end]
        return Span(self, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))

    def line_indent(self, offset: int) -> str:
        """The white space at the start of the line that holds a byte offset."""
        text = self.line_text(self.position(offset)[0])
        return text[: len(text) - len(text.lstrip())]

    def span(self, node: Node) -> Span:
        return Span(self, node.start_byte, node.end_byte)

    def edited(self, edits: list[TextEdit]) -> Source:
        """The Source after `edits`, parsed incrementally, with the same `changed` files.

        >>> Source("a.cu", b"int x;").edited([TextEdit(4, 5, "yy")]).text()
        'int yy;'
        """
        data = apply_edits(self.data, edits)
        read = readable(self.data)
        if apply_edits(read, edits) != readable(data) or read.count(b"\n") != self.data.count(b"\n"):
            return Source(self.path, data, None, self.changed)  # the parser sees more change than the edits say
        tree = self.tree.copy()
        for edit in sorted(
            edits, key=lambda e: (e.start, e.end), reverse=True
        ):  # the last one first, as in apply_edits
            new = encoded(edit.new_text)
            tree.edit(
                edit.start,
                edit.end,
                edit.start + len(new),
                self._point(edit.start),
                self._point(edit.end),
                _advance(self._point(edit.start), new),
            )
        return Source(self.path, data, _parse(data, tree), self.changed)

    def _point(self, offset: int) -> Point:
        row = bisect_right(self.line_starts, offset) - 1
        return Point(row, offset - self.line_starts[row])


_BRACKETS = re.compile(rb"[(){}\[\]]")
_CLOSERS = {b"(": b")", b"[": b"]", b"{": b";}"}


def _closers(code: bytes) -> bytes:
    """What closes the brackets that are open at the end of the text, innermost first."""
    stack: list[bytes] = []
    for match in _BRACKETS.finditer(code):
        bracket = match.group(0)
        if bracket in _CLOSERS:
            stack.append(_CLOSERS[bracket])
        elif bracket in (b")", b"]", b"}") and stack and stack[-1].endswith(bracket):
            stack.pop()
    return b"\n" + b"".join(reversed(stack)) if stack else b""


def _functions(root: Node) -> int:
    return sum(child.type in ("function_definition", "template_declaration") for child in root.named_children)


def _parse(data: bytes, old: Tree | None = None) -> Tree:
    """The tree of a text; that of blanks where it takes the parser more turns than any program does.

    Between two turns other threads run, and an analysis that is to stop stops.
    """
    text = readable(data)
    left = MOST_TURNS + len(text) // BYTES_OF_TURN

    def is_enough(_offset: int, _has_error: bool) -> bool:
        nonlocal left
        left -= 1
        return left < 0

    def piece(start: int, _point: Point) -> bytes:
        return text[start : start + _PIECE]

    parse = partial(Parser(CUDA).parse, piece, progress_callback=is_enough)
    try:
        return parse(old_tree=old) if old is not None else parse()
    except ValueError:
        return Parser(CUDA).parse(text.translate(_BLANKS))


def _advance(point: Point, inserted: bytes) -> Point:
    rows = inserted.count(b"\n")
    if not rows:
        return Point(point.row, point.column + len(inserted))
    return Point(point.row + rows, len(inserted) - inserted.rfind(b"\n") - 1)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one file, in byte offsets; `end` is exclusive."""

    source: Source
    start: int
    end: int

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def text(self) -> str:
        return self.source.text(self.start, self.end)

    @property
    def code(self) -> str:
        """The same without what comments and literals say."""
        return self.source.code_text(self.start, self.end)

    @property
    def one_line(self) -> str:
        """The text with each stretch of white space and comments as one blank.

        >>> Span(Source("a.cu", b"x = a[i  // mine\\n      + 1];"), 4, 27).one_line
        'a[i + 1]'
        """
        return " ".join(decoded(without_comments(self.source.data[self.start : self.end])).split())

    @property
    def key(self) -> tuple[str, int, int]:
        """Path, start and end: the same for a place in every version of its file that has it there."""
        return self.path, self.start, self.end

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    @property
    def end_line(self) -> int:
        return self.source.position(self.end)[0]

    @property
    def end_column(self) -> int:
        return self.source.position(self.end)[1]

    def contains(self, offset: int) -> bool:
        return self.start <= offset <= self.end


def read_source(path: str | Path) -> Source:
    """Read a file from disk.

    Bytes that are not UTF-8 are kept as they are (nvcc takes them in comments) and shown as U+FFFD.
    Raises SourceError for what is missing, unreadable or binary.
    """
    path = Path(path)
    try:
        data = read_start(path, MOST_BYTES + 1)
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise SourceError(f"{path}: is a directory") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
    if len(data) > MOST_BYTES:
        raise SourceError(f"{path}: is larger than {MOST_BYTES >> 20} MB, more than a source that a person edits")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{path}: is in UTF-16, which nvcc does not read; save it as UTF-8")
    if b"\0" in data:
        raise SourceError(f"{path}: is a binary file, not CUDA source")
    return Source(str(path), data)


_C_HEADER = re.compile(
    r"(?:assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|memory|setjmp|signal|std\w+|strings?"
    r"|tgmath|threads|time|uchar|unistd|wchar|wctype)\.h"
)
_HEADER_FOLDERS = ("", "include", "inc", "src")
_MOST_FOLDERS = 32
"""Of folders beside a file in which an include is looked for; a folder of more is no project's."""
_ANCESTORS = 4


def is_file(path: str | Path) -> bool:
    """Whether there is a file; of a name that is too long or cannot be looked up there is none."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises there


def read_include(from_path: str, name: str, folders: Sequence[str] = ()) -> Source | None:
    """The file that `#include "name"` in `from_path` means; None where it is not there or cannot be read.

    Looked for beside it, then in `folders` (the compiler's `-I`), then where projects keep what their build files would
    name: in the folders around it and their `include`, `inc` and `src`; last in all folders beside it and, up to the
    root of its checkout, beside those, where only one holds such a file. A name in angle brackets is looked for in
    `folders` first, and the C library's nowhere else.
    """
    plain = name.strip("<>")
    folder = Path(from_path).parent
    given = [Path(other) / plain for other in folders]
    candidates = given if name.startswith("<") else [folder / plain, *given]
    found = next((path for path in candidates if is_file(path)), None)
    if found is None and (not name.startswith("<") or _may_be_own(plain)):
        found = _in_project(folder, plain)
    try:
        return read_source(found) if found is not None else None
    except SourceError:
        return None


def _may_be_own(name: str) -> bool:
    """Whether a header in angle brackets may be the project's: not the C++ library's, and not the C library's."""
    return name.endswith((*HEADERS, ".cu")) and not _C_HEADER.fullmatch(name)


def _in_project(folder: Path, name: str) -> Path | None:
    around = [folder, *list(folder.absolute().parents)[:_ANCESTORS]]
    for parent in around:
        for base in _HEADER_FOLDERS:
            if is_file(parent / base / name):
                return parent / base / name
    root = next((at for at, parent in enumerate(around) if (parent / ".git").exists()), 1)
    for parent in around[: max(root, 1) + 1]:
        beside = [sub / name for sub in _folders_in(parent) if is_file(sub / name)]
        if len(beside) == 1:
            return beside[0]
    return None


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []
    return sorted(found) if len(found) <= _MOST_FOLDERS else []


def include_reader(sources: Mapping[str, Source], folders: Sequence[str] = ()) -> Callable[[str, str], Source | None]:
    """A `read_include` with these folders that prefers `sources`, by path, to the disk: a changed text, or what an
    editor has open."""

    def read(from_path: str, name: str) -> Source | None:
        beside = os.path.normpath(Path(from_path).parent / name)
        if beside in sources:
            return sources[beside]
        found = read_include(from_path, name, folders)
        if found is None:
            return None
        return sources.get(found.path) or sources.get(os.path.normpath(found.path)) or found

    return read
