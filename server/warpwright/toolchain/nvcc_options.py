"""From the options of a project's command line to those with which nvcc makes the same device code elsewhere.

This is the one place that says what a project may tell nvcc. What is not listed here is not given on: least of all what
names a program or a library to run (`-ccbin`, `-fplugin`, `-specs`, `-B`, `-wrapper`), and no file of options, which is
read here and treated alike. How it is given on without a shell's reading it is `command_line`'s part.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpwright.syntax.flags import Option, macro_name, standard_of
from warpwright.syntax.source import is_file

_MOST_DEPTH = 8
_MOST_WORDS = 100_000

ReadText = Callable[[Path], str | None]
"""The text of a file of options; None where there is none."""
WhyNot = Callable[[Path], str]
"""Why a folder or a file of includes is not used, as the end of a sentence; "" where it is."""


@dataclass(frozen=True, slots=True)
class NvccOptions:
    """`taken` are given to nvcc in any folder. `left_out` change device code, and are not taken: what they are for
    cannot be run or measured alone (code to be linked, code for a debugger). `refused` are sentences on those that a
    project may not choose, or that are malformed."""

    taken: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


_LAST_HOLDS = ("-std", "-O", "-maxrregcount", "-ftz", "-prec-div", "-prec-sqrt", "-fmad", "-default-stream")
_LEFT_OUT = ("-rdc", "-dc", "-fgpu-rdc", "-G", "-dopt", "-dlto")
_VALUES = {
    "-maxrregcount": re.compile(r"\d{1,3}"),
    "-ftz": re.compile("true|false"),
    "-prec-div": re.compile("true|false"),
    "-prec-sqrt": re.compile("true|false"),
    "-fmad": re.compile("true|false"),
    "-default-stream": re.compile("legacy|null|per-thread"),
    "-O": re.compile("[0-3]"),
}
"""What the options with one value may say."""
_QUIET = frozenset({"-v", "--verbose"})
_PTXAS = re.compile(
    r"-O[0-4]|--?opt-level=[0-4]|(?:-dlcm|--def-load-cache|-dscm|--def-store-cache)=c[agsv]"
    r"|(?:-fmad|--fmad|--?allow-expensive-optimizations|--?opt-pointers)=(?:true|false)|--?maxrregcount=\d{1,3}"
    r"|-(?:-warn-on-spills|warn-spills|-warn-on-local-memory-usage|warn-lmem-usage|-disable-optimizer-constants"
    r"|-disable-warnings|w|-suppress-stack-size-warning|-position-independent-code|-preserve-relocs)"
)
_MACRO = re.compile(r"[^\W\d]\w*(?:\([\w\s,.]*\))?", re.ASCII)
_NO_NAME = re.compile(r'[\x00-\x1f\x7f"]')
"""What no name of a folder or a file may have that a compiler is told of."""


def nvcc_options(options: Sequence[Option], folder: Path, why_not: WhyNot = lambda _path: "") -> NvccOptions:
    """Options that `read_options` gave, for nvcc, without the architecture; relative names count from `folder`.

    Of macros, and of options with one value, the last holds. clang's options become nvcc's nearest.

    >>> nvcc_options([("-D", "N=1"), ("-I", "inc"), ("-D", "N=2"), ("-std", "gnu++17"), ("-G", "")], Path("/a"))
    NvccOptions(taken=('-I/a/inc', '-DN=2', '-std=c++17'), left_out=('-G',), refused=())
    >>> nvcc_options([("-ccbin", "./cc")], Path("/a")).refused
    ('`-ccbin=./cc` is left out: a project does not choose the host compiler; NVCC_CCBIN does.',)
    """
    kept: dict[tuple[str, str], str] = {}
    left_out: list[str] = []
    refused: list[str] = []
    for option, value in map(_as_nvcc, options):
        if option in _LEFT_OUT:
            if value not in ("false", "off"):
                left_out.append(f"{option}={value}" if value else option)
            continue
        if reason := _why_refused(option, value, folder, why_not):
            joined = "" if option in ("-D", "-U", "-I", "-O") else "=" if value else ""
            refused.append(f"`{_shown(option + joined + value)}` is left out: {reason}.")
            continue
        word = _word(option, value, folder)
        if word is None:
            continue
        about = macro_name(value) if option in ("-D", "-U") else "" if option in _LAST_HOLDS else value
        key = ("-D" if option == "-U" else option, about)
        if option not in ("-I", "-isystem", "-include"):
            kept.pop(key, None)  # the last of its kind, where the last stood
        kept.setdefault(key, word)
    return NvccOptions(tuple(kept.values()), tuple(dict.fromkeys(left_out)), tuple(dict.fromkeys(refused)))


def _shown(word: str) -> str:
    """A word for people, on one line.

    >>> _shown("-DX=a\\nb")
    '-DX=a b'
    """
    line = re.sub(r"\s+|[\x00-\x1f\x7f`]", " ", word)
    return line if len(line) <= 80 else line[:77] + "..."


def _why_refused(option: str, value: str, folder: Path, why_not: WhyNot) -> str:
    """Why an option is not given on, as the end of a sentence; "" where it may be."""
    match option:
        case "-D" | "-U":
            name, _, body = value.partition("=") if "(" not in value.partition("=")[0] else _function_like(value)
            if not _MACRO.fullmatch(name) or (option == "-U" and name != value):
                return "it names no macro"
            if re.search(r"[\x00\r\n]", body):
                return "its text has a line break"
            if body.endswith("\\") or re.search(r"/\*(?!.*\*/)", body):
                return "its text does not end where it does"
        case "-I" | "-isystem" | "-include":
            if _NO_NAME.search(value):
                return "its name has a quote or a control character"
            beside = folder / value
            return why_not(beside) if option != "-include" or is_file(beside) else ""
        case "-ccbin":
            return "a project does not choose the host compiler; NVCC_CCBIN does"
        case "-Xptxas":
            if not all(_PTXAS.fullmatch(word) for word in value.split(",") if word not in _QUIET):
                return "it is none of ptxas's options for optimising that are known"
        case _ if option in _VALUES and not _VALUES[option].fullmatch(value):
            return "it has no such value"
    return ""


def _function_like(definition: str) -> tuple[str, str, str]:
    """The name with its parameters, `=`, and the text of a macro that takes arguments.

    >>> _function_like("F(a, b)=a == b")
    ('F(a, b)', '=', 'a == b')
    """
    head, close, rest = definition.partition(")")
    return head + close, rest[:1], rest[1:]


def _as_nvcc(option: Option) -> Option:
    """clang's options as nvcc's nearest."""
    match option:
        case ("-ffast-math", _):
            return "--use_fast_math", ""
        case ("-fcuda-flush-denormals-to-zero", _):
            return "-ftz", "true"
        case ("-ffp-contract", how):
            return "-fmad", "false" if how == "off" else "true"
    return option


def _word(option: str, value: str, folder: Path) -> str | None:
    """One word for nvcc; None for what is not given on."""
    match option:
        case "-D" | "-U":
            return f"{option}{value}"
        case "-I":
            return f"-I{folder / value}"
        case "-isystem":
            return f"-isystem={folder / value}"
        case "-include":
            beside = folder / value
            return f"-include={beside if is_file(beside) else value}"
        case "-std":
            standard = standard_of(value)
            return f"-std=c++{standard}" if standard in ("11", "14", "17", "20", "23") else None
        case "-O":
            return f"-O{value}"
        case "-Xptxas":
            words = [word for word in value.split(",") if word not in _QUIET]
            return f"{option}={','.join(words)}" if words else None
        case _ if option in _VALUES:
            return f"{option}={value}"
        case _ if option.startswith("--") and not value:
            return option
    return None


def shell_words(text: str, *, windows: bool) -> list[str]:
    r"""The words of a command line. Quotes that do not close are taken as they are: nothing raises.

    On Windows as CommandLineToArgvW takes it apart: a backslash is one, but before a quote.

    >>> shell_words(r'nvcc.exe -DT=\"a\" "-IC:\my inc\\" -c', windows=True)
    ['nvcc.exe', '-DT="a"', '-IC:\\my inc\\', '-c']
    >>> shell_words("nvcc '-DT=a b' -c", windows=False)
    ['nvcc', '-DT=a b', '-c']
    """
    if windows:
        return _windows_words(text)
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _windows_words(text: str) -> list[str]:
    words: list[str] = []
    word, quoted, started = "", False, False
    for part in re.finditer(r'(\\*)"|\\+|[^\\" \t\r\n]+|[ \t\r\n]', text):
        piece = part[0]
        if piece.endswith('"'):
            slashes = len(part[1])
            word += "\\" * (slashes // 2)
            started = True
            if slashes % 2:
                word += '"'
            else:
                quoted = not quoted
        elif piece in " \t\r\n" and not quoted:
            if started:
                words.append(word)
            word, started = "", False
        else:
            word, started = word + piece, True
    return [*words, word] if started else words


def with_option_files(words: Sequence[str], read: ReadText, folder: Path, *, windows: bool) -> tuple[list[str], str]:
    """The words with those of the files that they name (`@file`, `--options-file file`) in their places.

    The second is one sentence where such a file cannot be read; the other words are given all the same.
    """
    found: list[str] = []
    trouble = ""

    def add(word_list: Sequence[str], depth: int) -> None:
        nonlocal trouble
        left = list(word_list)[::-1]
        while left and len(found) < _MOST_WORDS:
            word = left.pop()
            names = _option_files(word, left)
            if not names:
                found.append(word)
            for name in names:
                text = read(folder / name) if depth < _MOST_DEPTH else None
                if text is None:
                    trouble = trouble or f"The file of options {folder / name} cannot be read."
                else:
                    add(shell_words(text, windows=windows), depth + 1)

    add(words, 0)
    return found, trouble


def _option_files(word: str, following: list[str]) -> list[str]:
    """The files that a word names; the word after it is taken from `following` where it is the name."""
    if word.startswith("@") and len(word) > 1:
        return [word[1:]]
    if word in ("--options-file", "-optf"):
        return following.pop().split(",") if following else []
    head, equals, value = word.partition("=")
    return value.split(",") if equals and head in ("--options-file", "-optf") else []
