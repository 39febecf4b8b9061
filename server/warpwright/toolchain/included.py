"""A file that a text includes, compiled as it is in memory: an unsaved header, or one that a rewrite has changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.source import Source, SourceError, is_file, read_include, read_source

_INCLUDE = re.compile(rb'^(?P<head>[ \t]*#[ \t]*include[ \t]*)(?P<name>"[^"\r\n]+"|<[^>\r\n]+>)', re.MULTILINE)
_MOST_FILES = 256
"""Files that are looked through for the folders of headers."""
_BY_MACRO = re.compile(rb"^[ \t]*#[ \t]*include(?:_next)?[ \t]+[A-Za-z_].*", re.MULTILINE)


class IncludeError(Exception):
    """Which file is compiled is not certain; the message is one sentence."""


def with_changed(main: Source, folders: Sequence[str]) -> tuple[bytes, dict[str, bytes]]:
    """The text of a file and, by the names that it includes them by, copies of what leads to its `changed` files.

    Every file between them is copied, with its includes made out to the copies and to the files beside it, so that no
    change is passed by. Raises IncludeError where a macro names what one of these files includes.

    >>> header = Source("/p/scale.h", b"int x;")
    >>> main = Source("/p/main.cu", b'#include "scale.h"\\n').including(header)
    >>> with_changed(main, ())[0]
    b'#include "included_0.h"\\n'
    """
    changed = {_absolute(source.path): source for source in main.changed}
    if not changed:
        return main.data, {}
    given = [str(Path(main.path).absolute().parent), *folders]
    texts: dict[Path, Source] = {_absolute(main.path): main, **changed}
    leads: dict[Path, bool] = {}

    def leads_there(path: Path) -> bool:
        """Whether a file is changed, or includes one that is or that leads to one."""
        if path not in leads:
            leads[path] = path in changed
            text = _text(path, texts)
            inner = [leads_there(_meant(path, name, given, texts)) for name in _names(text)] if text is not None else []
            leads[path] = leads[path] or any(inner)
        return leads[path]

    leads_there(_absolute(main.path))
    copied = [path for path, found in leads.items() if found and path != _absolute(main.path)]
    names = {path: f"included_{number}{path.suffix}" for number, path in enumerate(copied)}

    def written(path: Path, source: Source) -> bytes:
        if found := _BY_MACRO.search(source.data):
            line = source.position(found.start())[0]
            raise IncludeError(
                f"What {source.path}:{line} includes is named by a macro, so its text may not be the one meant."
            )

        def include(match: re.Match[bytes]) -> bytes:
            spelt = _decoded(match["name"])
            meant = _meant(path, spelt, given, texts)
            moved = source is not main and spelt[0] == '"' and is_file(path.parent / spelt[1:-1])
            name = f'"{names[meant]}"' if meant in names else f'"{meant}"' if moved else spelt
            return match["head"] + encoded(name)

        return _INCLUDE.sub(include, source.data)

    copies = {name: with_line_marker(written(path, texts[path]), texts[path].path) for path, name in names.items()}
    return written(_absolute(main.path), main), copies


def included_files(main: Source, folders: Sequence[str]) -> list[str]:
    """The files that a file includes, itself or through others: those that are there, the system's left out."""
    given = [str(Path(main.path).absolute().parent), *folders]
    texts: dict[Path, Source] = {_absolute(source.path): source for source in (main, *main.changed)}
    found: dict[Path, None] = {}
    waiting = [_absolute(main.path)]
    while waiting:
        path = waiting.pop()
        text = _text(path, texts)
        if text is None or path in found:
            continue
        found[path] = None
        waiting += [_meant(path, name, given, texts) for name in _names(text)]
    return [str(path) for path in found][1:]


def folders_found(path: str, folders: Sequence[str]) -> tuple[str, ...]:
    """The folders of the project that no compiler is told of, and in which alone the headers lie that a file includes,
    itself or through others: those where the analysis reads them."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [path]
    while waiting and len(seen) < _MOST_FILES:
        if (at := waiting.pop()) in seen or (text := _text(Path(at), {})) is None:
            continue
        seen.add(at)
        for spelt in _names(text):
            name = spelt[1:-1]
            header = read_include(at, name if spelt[0] == '"' else spelt, (*folders, *found))
            if header is None:
                continue
            waiting.append(header.path)
            around = [Path(at).parent] if spelt[0] == '"' else []
            told = any(is_file(folder / name) for folder in (*around, *map(Path, (*folders, *found))))
            if not told and header.path.endswith(f"/{name}"):
                found[header.path.removesuffix(f"/{name}")] = None
    return tuple(found)


def names_by_macro(sources: Sequence[Source], files: Sequence[str]) -> bool:
    """Whether a macro names what one of these texts and files includes: which file that is, is not known here."""
    texts = {_absolute(source.path): source for source in sources}
    for path in dict.fromkeys((*texts, *map(_absolute, files))):
        text = _text(path, texts)
        if text is not None and _BY_MACRO.search(text.data):
            return True
    return False


def with_line_marker(data: bytes, path: str) -> bytes:
    """The text such that the compiler's messages and line table name the user's file.

    A quote, a backslash or a control character in its name does not survive the compiler, and becomes `_`.

    >>> with_line_marker(b"int x;", "a b.cu")
    b'#line 1 "a b.cu"\\nint x;'
    """
    quoted = re.sub(r'[\x00-\x1f\x7f"\\]', "_", path)
    return b'#line 1 "%s"\n' % encoded(quoted) + data.removeprefix(b"\xef\xbb\xbf")


def _names(source: Source) -> Iterator[str]:
    return (_decoded(match["name"]) for match in _INCLUDE.finditer(source.data))


def _decoded(name: bytes) -> str:
    return decoded(name)


def _meant(path: Path, spelt: str, folders: Sequence[str], texts: dict[Path, Source]) -> Path:
    """The file that an include in a file means; the one beside it where there is none."""
    name, around = spelt[1:-1], [path.parent] if spelt[0] == '"' else []
    candidates = [_absolute(str(folder / name)) for folder in (*around, *map(Path, folders))]
    return next((each for each in candidates if each in texts or is_file(each)), candidates[0])


def _text(path: Path, texts: dict[Path, Source]) -> Source | None:
    if path not in texts:
        try:
            texts[path] = read_source(path)
        except (SourceError, OSError):
            return None
    return texts[path]


def _absolute(path: str) -> Path:
    return Path(path).resolve()
