"""Mistakes to be made in a kernel: each takes a text that is right to texts that are likely wrong, with the reason.

Nothing here knows whether a mistake shows: that is for the compiler and the emulator to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

COMPILE, RUN = "compile", "run"


@dataclass(frozen=True, slots=True)
class Bug:
    """A broken text. `kind` names the mistake, `shows` who is to say it, `why` is the mistake in one sentence."""

    kind: str
    shows: str
    why: str
    text: str


@dataclass(frozen=True, slots=True)
class _Mistake:
    """A mistake by text: what is found and what stands in its place, as `re` has them; `why` may name groups."""

    kind: str
    shows: str
    why: str
    pattern: str
    instead: str


_NAME = r"[A-Za-z_]\w*"
_NUMBER = r"(?:float|double|int|Index|long long|unsigned|size_t)"
_SIMPLE = r"[\w.]+(?:\[[^][]*\])?"
_MISTAKES = (
    _Mistake(
        "semicolon",
        COMPILE,
        "The statement lacks its semicolon.",
        r";(?=[ \t]*(?://[^\n]*)?\n)",
        "",
    ),
    _Mistake(
        "parenthesis",
        COMPILE,
        "A closing parenthesis is missing.",
        r"\)(?=[^()\n]*;[ \t]*\n)",
        "",
    ),
    _Mistake(
        "undeclared",
        COMPILE,
        "{1} is used and is declared nowhere.",
        rf"(?<=\n)[ \t]*const {_NUMBER} ({_NAME}) = [^;\n]*;\n",
        "",
    ),
    _Mistake(
        "pointer",
        COMPILE,
        "{2} is a pointer and not a number.",
        rf"(?<=[(\s])(const [\w:]+)\* (?:__restrict__ )?({_NAME})(?=[,)])",
        r"\1 \2",
    ),
    _Mistake(
        "pointer",
        COMPILE,
        "{2} is a number and no pointer.",
        rf"(?<=\n)([ \t]*(?:const )?{_NUMBER}) ({_NAME})(?= = )",
        r"\1* \2",
    ),
    _Mistake(
        "const",
        COMPILE,
        "{2} changes, so it is not const.",
        rf"(?<=\n)([ \t]*)(?={_NUMBER} ({_NAME}) = )",
        r"\1const ",
    ),
    _Mistake(
        "builtin",
        COMPILE,
        "The thread's index is threadIdx.",
        r"\bthreadIdx\b",
        "threadIndex",
    ),
    _Mistake(
        "builtin",
        COMPILE,
        "The block's size is blockDim.",
        r"\bblockDim\b",
        "blockSize",
    ),
    _Mistake(
        "builtin",
        COMPILE,
        "An index has the members x, y and z.",
        r"\b(threadIdx|blockIdx)\.[xyz]\b",
        r"\1.i",
    ),
    _Mistake(
        "argument",
        COMPILE,
        "{1} lacks an argument.",
        rf"\b(?!if|for|while|switch|return)({_NAME}(?:<[\w, ]+>)?)\(({_SIMPLE}), ({_SIMPLE})\)",
        r"\1(\2)",
    ),
    _Mistake(
        "barrier",
        RUN,
        "Threads read what others write: a barrier stands between.",
        r"(?<=\n)[ \t]*__syncthreads\(\);[^\n]*\n",
        "",
    ),
    _Mistake(
        "divergent-barrier",
        RUN,
        "All threads of the block have to reach the barrier.",
        r"(?<=\n)([ \t]*)__syncthreads\(\);",
        r"\1if (threadIdx.x < 16) __syncthreads();",
    ),
    _Mistake(
        "syncwarp",
        RUN,
        "Lanes read what others write: __syncwarp() stands between.",
        r"(?<=\n)[ \t]*__syncwarp\([^)\n]*\);[^\n]*\n",
        "",
    ),
    _Mistake(
        "mask",
        RUN,
        "All 32 lanes take part, so the mask is full.",
        r"\b0xffffffff(u?)\b",
        r"0x0000ffff\1",
    ),
    _Mistake(
        "guard",
        RUN,
        "Threads beyond the end must do nothing.",
        r"(?<=\n)[ \t]*if \([^\n]*\) (?:return|break|continue);\n",
        "",
    ),
    _Mistake(
        "guard",
        RUN,
        "Threads beyond the end must do nothing.",
        r"(?<=\n)([ \t]*)if \([^\n]*<[^\n]*\) (?!return|break|continue|\{)",
        r"\1",
    ),
    _Mistake(
        "off-by-one",
        RUN,
        "The last index is one below {2}.",
        rf"({_NAME}) < ({_NAME})\b(?![<(:])",
        r"\1 <= \2",
    ),
    _Mistake(
        "off-by-one",
        RUN,
        "Index {2} lies outside already.",
        rf"({_NAME}) >= ({_NAME}(?: \* {_NAME})*)",
        r"\1 > \2",
    ),
    _Mistake(
        "first-element",
        RUN,
        "The loop begins at 0.",
        rf"(?<=for \()({_NUMBER} {_NAME}) = 0;",
        r"\1 = 1;",
    ),
    _Mistake(
        "swapped-indices",
        RUN,
        "The row's number {1} is multiplied by the row's length, the column's is added.",
        rf"(?<=\[)({_NAME}) \* ({_NAME}) \+ ({_NAME})(?=\])",
        r"\3 * \2 + \1",
    ),
    _Mistake(
        "swapped-indices",
        RUN,
        "/ gives the row and % the column.",
        rf"( = {_NAME}) / ({_NAME});(\n[^\n]* = {_NAME}) % \2;",
        r"\1 % \2;\3 / \2;",
    ),
    _Mistake(
        "flat-index",
        RUN,
        "A block has blockDim.x threads.",
        r"(blockIdx\.x\)?) \* blockDim\.x",
        r"\1",
    ),
    _Mistake(
        "flat-index",
        RUN,
        "Each thread has a place of its own: threadIdx.x is added.",
        r"( \* (?:blockDim\.x|\d+)) \+ threadIdx\.x",
        r"\1",
    ),
    _Mistake(
        "identity",
        RUN,
        "The sum begins with 0.",
        rf"(?<=\n)([ \t]*{_NUMBER} {_NAME} = )0(\.0f?)?;",
        r"\g<1>1\2;",
    ),
    _Mistake(
        "identity",
        RUN,
        "The product begins with 1.",
        rf"(?<=\n)([ \t]*{_NUMBER} {_NAME} = )1(\.0f?)?;",
        r"\g<1>0\2;",
    ),
    _Mistake(
        "identity",
        RUN,
        "The greatest begins with -INFINITY and the least with INFINITY.",
        r"(= )-?INFINITY;",
        r"\g<1>0.0f;",
    ),
    _Mistake(
        "accumulate",
        RUN,
        "The value is added to what {1} holds.",
        rf"(?<=[\s)])({_NAME}(?:\[[^\n]*?\])?) [+*]= ",
        r"\1 = ",
    ),
    _Mistake(
        "accumulate",
        RUN,
        "The result is of {1} and the new value.",
        rf"\b({_NAME}) = (?:{_NAME})\(\1, ([^\n]*)\);",
        r"\1 = \2;",
    ),
    _Mistake(
        "narrow-type",
        RUN,
        "{1} holds fractions, so it is a float.",
        rf"(?<=\n)([ \t]*)(?:float|double) ({_NAME}) = 0\.0f?;",
        r"\1int \2 = 0;",
    ),
    _Mistake(
        "step",
        RUN,
        "Each thread goes on by the number of threads.",
        rf"; ({_NAME}) \+= [^;)\n]+\)",
        r"; ++\1)",
    ),
    _Mistake(
        "halving",
        RUN,
        "The distance is halved.",
        rf"; ({_NAME}) (?:/= 2|>>= 1)\)",
        r"; --\1)",
    ),
    _Mistake(
        "one-writer",
        RUN,
        "One thread alone writes the result.",
        r"if \((?:threadIdx\.x|lane|\w*lane\w*) == 0\) ",
        "",
    ),
    _Mistake(
        "shared-size",
        RUN,
        "The shared array has to hold an element for each index.",
        r"(__shared__ [^\[\n;]*\[)32\b",
        r"\g<1>16",
    ),
    _Mistake(
        "shared-size",
        RUN,
        "The shared array has to hold an element for each index.",
        r"(__shared__ [^\[\n;]*\[)256\b",
        r"\g<1>128",
    ),
    _Mistake(
        "atomic",
        RUN,
        "Several threads add to one place: that takes an atomic.",
        r"atomicAdd\(&([^\n]*?), ([^\n]*)\);",
        r"\1 += \2;",
    ),
    _Mistake(
        "atomic",
        RUN,
        "Several threads add to one place: that takes an atomic.",
        rf"atomicAdd\(({_NAME}) \+ ([^\n]*?), ([^\n]*)\);",
        r"\1[\2] += \3;",
    ),
    _Mistake(
        "integer-division",
        RUN,
        "Both are whole numbers: one is converted before the division.",
        r"\b1\.0f? / ",
        "1 / ",
    ),
    _Mistake(
        "integer-division",
        RUN,
        "Both are whole numbers: one is converted before the division.",
        r"static_cast<(?:float|double)>\(([^()]*)\) / static_cast<(?:float|double)>\(([^()]*)\)",
        r"\1 / \2",
    ),
)


def bugs_of(text: str) -> list[Bug]:
    """All mistakes that can be made in a kernel's text, in an order that depends on the text alone.

    >>> [(bug.kind, bug.text) for bug in bugs_of("__global__ void k(int n) {\\n  s = s + 1;\\n}\\n")]
    [('semicolon', '__global__ void k(int n) {\\n  s = s + 1\\n}\\n')]
    """
    found = [bug for mistake in _MISTAKES for bug in _made(mistake, text)]
    return [*found, *_misspelt(text), *_strides(text)]


KINDS = tuple(dict.fromkeys([*(each.kind for each in _MISTAKES), "misspelt", "stride"]))


def _made(mistake: _Mistake, text: str) -> Iterator[Bug]:
    for match in _matches(mistake.pattern, text):
        why = mistake.why.format(match[0], *match.groups())
        broken = text[: match.start()] + match.expand(mistake.instead) + text[match.end() :]
        if broken != text:
            yield Bug(mistake.kind, mistake.shows, why, broken)


def _misspelt(text: str) -> Iterator[Bug]:
    """A name that the kernel declares, with its last letters the other way round where it is used."""
    declared = dict.fromkeys(match[1] for match in _matches(rf"{_NUMBER} ({_NAME}) = ", text))
    for name in declared:
        wrong = f"{name}_" if len(name) < 3 or name[-1] == name[-2] else f"{name[:-2]}{name[-1]}{name[-2]}"
        uses = list(_matches(rf"\b{name}\b", text))[1:]
        for match in uses[:2]:
            broken = text[: match.start()] + wrong + text[match.end() :]
            yield Bug("misspelt", COMPILE, f"The name is {name}.", broken)


def _strides(text: str) -> Iterator[Bug]:
    """A size for another one where an index is computed."""
    sizes = re.findall(r"(?:Index|int|long long) ([A-Z]\w*)\b(?=[,)])", text.partition("{")[0])
    for one in sizes:
        for other in sizes:
            for match in _matches(rf"(?<=\* ){one}\b(?! \*)", text) if one != other else ():
                why = f"The step from one to the next is {one}."
                yield Bug("stride", RUN, why, text[: match.start()] + other + text[match.end() :])


def _matches(pattern: str, text: str) -> Iterator[re.Match[str]]:
    """Outside of comments and of lines for the preprocessor."""
    for match in re.finditer(pattern, text):
        begin = text.rfind("\n", 0, match.start()) + 1
        before = text[begin : match.start()]
        if "//" not in before and not before.lstrip().startswith("#"):
            yield match
