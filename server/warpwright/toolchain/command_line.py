"""How nvcc is told a project's options: nvcc hands its own options to a shell, so none has a project's text in it.

Macros whose text is more than a number or a name, and files that are included before the text, go into a header of
ours. A folder of another name than of letters, digits and the like is reached by a link of ours. What is left are
words of which a shell makes nothing, and `unsafe_word` finds one that is not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpwright.syntax.flags import read_options
from warpwright.toolchain.nvcc_options import nvcc_options

HEADER = "command_line.h"
"""The header of ours, in the folder in which nvcc runs."""
_OF_NAMES = r"\w ./:+@=~-" + ("\\\\" if sys.platform == "win32" else "")
_SAFE = re.compile(f"[,{_OF_NAMES}]*")
"""Words that mean themselves between double quotes, which nvcc puts around a name with a blank."""
_SAFE_FOLDER = re.compile(f"[{_OF_NAMES}]+")  # nvcc takes a comma for the end of a name
_SAFE_MACRO = re.compile(r"-[DU]\w+(?:=[\w.+-]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """`words` for nvcc; `header` is the text of HEADER, empty where there is none; `links` are the folders that are
    known by other names in the folder in which nvcc runs, by those names."""

    words: tuple[str, ...]
    header: str
    links: Mapping[str, str]

    def told(self, text: str, spelt: Callable[[str], str] = str) -> str:
        """What a compiler said, or wrote down, with the folders' own names, as `spelt` writes a name there.

        >>> CommandLine((), "", {"folder_0": "/a;b"}).told("folder_0/x.h(3): error: see folder_0/y.h")
        '/a;b/x.h(3): error: see /a;b/y.h'
        """
        return re.sub(r"(?<![\w/])(folder_\d+)/", lambda found: f"{spelt(self.links.get(found[1], found[1]))}/", text)


def command_line(flags: Sequence[str], beside: Path) -> CommandLine:
    """nvcc's options (of which those that a project may not choose are left out), and first the folder `beside`.

    >>> given = ["-DN=4", "-DEXPR=(1+2)", "-U", "M", "-I/with space", "-I/$(id)", "-include=/a/b.h"]
    >>> made = command_line(given, Path("/p"))
    >>> made.words
    ('-I/p', '-DN=4', '-UM', '-I/with space', '-Ifolder_0', '-include=command_line.h')
    >>> print(made.header, made.links)
    #define EXPR (1+2)
    #include "/a/b.h"
     {'folder_0': '/$(id)'}
    """
    links: dict[str, str] = {}

    def folder(option: str, path: str) -> str:
        if _SAFE_FOLDER.fullmatch(path):
            return option + path
        name = next((name for name, linked in links.items() if linked == path), f"folder_{len(links)}")
        links[name] = path
        return option + name

    words = [folder("-I", str(beside))]
    lines: list[str] = []
    for word in nvcc_options(read_options(flags), Path()).taken:
        if word.startswith("-include="):
            lines.append(f'#include "{word.removeprefix("-include=")}"')
        elif word.startswith("-isystem="):
            words.append(folder("-isystem=", word.removeprefix("-isystem=")))
        elif word.startswith("-I"):
            words.append(folder("-I", word.removeprefix("-I")))
        elif word.startswith(("-D", "-U")) and not _SAFE_MACRO.fullmatch(word):
            lines.append(_define(word.removeprefix("-D")))
        else:
            words.append(word)
    if lines:
        words.append(f"-include={HEADER}")
    return CommandLine(tuple(words), "".join(f"{line}\n" for line in lines), links)


def _define(definition: str) -> str:
    """
    >>> _define("F(a)=a == 1"), _define("F(a)"), _define('S="x y"')
    ('#define F(a) a == 1', '#define F(a) 1', '#define S "x y"')
    """
    found = re.match(r"(\w+(?:\([^)]*\))?)(=?)", definition)
    assert found is not None
    return f"#define {found[1]} {definition[found.end() :] if found[2] else '1'}"


def unsafe_word(words: Iterable[str]) -> str | None:
    """The first word in which a shell might see more than a name; None where there is none.

    >>> unsafe_word(["-arch=sm_90", "-DX=$(id)"]), unsafe_word(["-I/a b"])
    ('-DX=$(id)', None)
    """
    return next((word for word in words if not _SAFE.fullmatch(word)), None)
