"""Equations as people write them in a comment, `D_ij = min_k (A_ik + B_kj)` or `y = mask ? x / (1 - p) : 0`.

They are read beside a formula that somebody else read in the same words: of it are the types, and the index of what
an equation names without one. What cannot be read is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from warpwright.formulas.equality import same
from warpwright.formulas.functions import FUNCTIONS, KEYWORDS, REDUCTIONS
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Equation, Load, Name, walk

MOST_ENDS = 12
"""Places at which an equation may end that are tried, the last first."""
MOST_CHARACTERS = 300
_BEGIN = re.compile(
    r"(?<![\w\]])(?P<name>[A-Za-z]\w*?)(?P<index>_\{?[a-z](?:,?[a-z]){0,3}\}?|(?:\s?\[[^\[\]=]*\])+)?\s*"
    r"(?P<sign>[-+*/:])?=(?!=)\s*"
)
_END = re.compile(r"[.;,)](?=\s|$)|\s(?=\(|-\s|(?:where|with|for|and|in|if|then)\b)|//|$")
_REDUCED = re.compile(
    rf"\b(?P<how>{'|'.join(REDUCTIONS)})\s*(?:_\{{?(?P<low>[a-z])\}}?|\s+over\s+(?P<over>[a-z])\b)(?:\s+of\b)?"
)
_LETTERS = re.compile(r"\b([A-Za-z]+\d?)_\{?([a-z](?:,?[a-z]){0,3})\}?(?![\w}])")
_BESIDE = re.compile(r"\]\s*\[")
_CHOICE = re.compile(r"(?P<then>[^?:]+)\?(?P<one>[^?:]+):(?P<other>[^?:]+)")
_TOKEN = re.compile(
    rf"(?P<reduction>\b(?:{'|'.join(REDUCTIONS)})\[[^\]]*\])|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)f?\b|(?P<sign>\*\*|[<>=!]=|//|\S)"
)


def is_written(formula: Formula, comment: str) -> bool:
    """Whether an equation in a comment says a formula that was read in it, or several of them together do.

    >>> read = formula_of("D[i, j] = min[k] (A[i, k] + B[k, j])")
    >>> is_written(read, "tropical product: D_ij = min_k (A_ik + B_kj). one squaring step")
    True
    >>> is_written(read, "tropical product: D_ij = max_k (A_ik + B_kj)")
    False
    >>> is_written(formula_of("y[i] = x[i] / (1 - p) if m[i] > 0 else 0"), "dropout: y = m > 0 ? x/(1-p) : 0")
    True
    """
    found: list[Equation] = []
    index = _index(formula)
    result = index.get(formula.outputs[0].name, "") if len(formula.outputs) == 1 else ""
    for begin in _BEGIN.finditer(comment[:MOST_CHARACTERS]):
        readings = list(_readings(comment, begin, {begin["name"]: result, **index} if result else index))
        if any(_says((each,), formula) for each in readings):
            return True
        found += readings[:1]
    return len(found) > 1 and _says(tuple(found), formula)


def _says(equations: tuple[Equation, ...], formula: Formula) -> bool:
    """Whether equations say a formula with its declarations, whatever its one result is called."""
    if len(equations) == len(formula.outputs) == 1:
        equations = (replace(equations[0], name=formula.outputs[0].name, primed=formula.outputs[0].primed),)
    try:
        text = printed_in_one_line(replace(parse(formula.text), equations=equations))
        return same(formula_of(text), formula)
    except FormulaError:
        return False


def _index(formula: Formula) -> Mapping[str, str]:
    """The index of each array where it is made of dimensions alone, as `[i, j]`."""
    found: dict[str, str] = {}
    for stage in formula.stages:
        index = [(stage.name, stage.own_index)]
        index += [(node.tensor, node.index) for node in walk(stage.value) if isinstance(node, Load)]
        for name, at in index:
            names = [each.name for each in at if isinstance(each, Name)]
            if names and len(names) == len(at):
                found.setdefault(name.rstrip("'"), f"[{', '.join(names)}]")
    return found


def _readings(comment: str, begin: re.Match[str], index: Mapping[str, str]) -> Iterator[Equation]:
    """The equation that begins there, the longest first."""
    rest = comment[begin.end() : begin.end() + MOST_CHARACTERS]
    ends = sorted({each.start() for each in _END.finditer(rest)} - {0}, reverse=True)
    left = begin["name"] + (begin["index"] or "")
    for end in ends[-MOST_ENDS:]:
        right = rest[:end]
        if begin["sign"] not in (None, ":"):
            right = f"{left} {begin['sign']} ({right})"
        try:
            (equation,) = parse(f"{_plain(left, index)} = {_plain(right, index)}").equations
        except (FormulaError, ValueError):
            continue
        is_read = any(isinstance(each, Load) and each.tensor == equation.name for each in walk(equation.value))
        yield replace(equation, primed=is_read)


def _plain(text: str, index: Mapping[str, str]) -> str:
    """An expression in the language of formulas.

    >>> _plain("sum_k A_ik B_kj + 2 v_j", {}), _plain("a - |x|^2", {"x": "[i]"})
    ('sum[k] A[i, k] * B[k, j] + 2 * v[j]', 'a - abs (x[i]) ** 2')
    """
    text = _REDUCED.sub(lambda each: f"{each['how']}[{each['low'] or each['over']}] ", text)
    text = _LETTERS.sub(lambda each: f"{each[1]}[{', '.join(each[2].replace(',', ''))}]", text)
    text = _BESIDE.sub(", ", text).replace("^", "**").replace("×", "*")
    text = re.sub(r"\|([^|]+)\|", r"abs(\1)", text) if "||" not in text else text
    if choice := _CHOICE.fullmatch(text):
        text = f"({choice['one']}) if ({choice['then']}) else ({choice['other']})"
    return _multiplied(text, index)


def _multiplied(text: str, index: Mapping[str, str]) -> str:
    """The text with a sign where two factors stand side by side, and an index where an array has none."""
    words: list[str] = []
    is_factor = False  # what stands before may be multiplied
    is_indexed = False
    tokens = list(_TOKEN.finditer(text))
    for number, each in enumerate(tokens):
        following = tokens[number + 1][0] if number + 1 < len(tokens) else ""
        name = each["name"] or ""
        is_word = name in KEYWORDS and name not in ("inf", "pi")
        begins = bool(each["reduction"] or each["number"] or (name and not is_word)) or (each[0] == "(" and is_factor)
        if begins and is_factor and not (each[0] == "(" and not is_indexed):
            words.append("*")
        is_bare = name in index and following != "["
        words.append(name + index[name] if is_bare else each["number"] or each[0])
        is_factor = is_bare or bool(each["number"]) or each[0] in ("]", ")") or bool(name and not is_word)
        if name in FUNCTIONS or (name in REDUCTIONS and following == "("):
            is_factor = False
        is_indexed = is_bare or each[0] in ("]", ")") or bool(each["number"])
        if each["reduction"]:
            is_factor = False
        if name and following == "[":
            is_factor = False
    joined = " ".join(words)
    return re.sub(r"(?<=\w) (?=\[)|(?<=[\[(]) | (?=[\]),])", "", joined).replace("- >", "->")
