"""GBNF of the answers to one request for a formula: the language as it is printed, with the request's names.

It admits what `formulas.printer` prints in one line, with at most `DEPTH` brackets in each other and chains of bounded
length, so that a model cannot lose itself in it. What it admits parses, unless it is of many hundred characters with a
hundred expressions in each other; whether it has a meaning, `read_formula` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from warpwright.assist.formula_task import FormulaRequest
from warpwright.formulas import sampler_words as words
from warpwright.formulas.functions import COMPARISONS, FUNCTIONS, KEYWORDS, REDUCTIONS
from warpwright.formulas.types import OTHER_NAMES, TYPES

DEPTH = 10
TESTS = ("any", "all")
FIELD_LISTS = ("x, y", "x, y, z", "x, y, z, w", "r, g, b", "r, g, b, a", "re, im")
_NAME = re.compile(r"[A-Za-z_]\w{0,31}", re.ASCII)
_FIELD_LIST = re.compile(r"\{([^{}]*)\}")
_FIELD = re.compile(r"([A-Za-z_]\w*)\s*(?:[,;}]|$)", re.ASCII)
_MOST_NAMES = 200

VOCABULARY = (
    *"abcdefghijklmnopqrstuvwxyz", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    *(name for together in (*words.INPUTS, *words.MATRIX, *words.CUBE, *words.IMAGES) for name in together),
    *words.OUTPUTS, *words.WEIGHTS, *words.BIASES, *words.NUMBERS, *words.INDICES, *words.VECTOR,
    "mean", "var", "total", "peak", "score", "first", "values", "col", "table", "seed", "logits", "probs", "loss",
    "label", "lr", "beta2", "x1", "x2", "ms", "mx", "lo", "hi", "avg", "spread", "count",
)  # fmt: skip
"""Names that an answer may use whatever the request says: those of the sampler."""


def formula_grammar(request: FormulaRequest) -> str:
    """GBNF with the rule `root` for what follows the prompt of `request`.

    >>> formula_grammar(FormulaRequest("scale x")).splitlines()[0]
    'root ::= " " (declaration ", "){0,8} equations (" where " equations)?'
    """
    fields = _field_lists(f"{request.given} {request.comment}")
    singles = {name for each in fields for name in each.split(", ")}
    rules = [
        'root ::= " " (declaration ", "){0,8} equations (" where " equations)?',
        'equations ::= equation (", " equation){0,7}',
        'equation ::= result (" = " | " += " | " *= " | " max= " | " min= ") expr0',
        """result ::= name "'"? ("[" expr1 (", " expr1){0,5} "]")?""",
        f'declaration ::= name ": " type ({_shapes()})?',
        f"fields ::= {_choice(f'{{{each}}}' for each in fields)}",
        f"type ::= {_trie(TYPES)}",
        f'name ::= ({_trie(names_of(request))}) ("." ({_trie(singles)}))?',
        f"unary ::= {_trie((*_functions(1), *TYPES))}",
        f"binary ::= {_trie(_functions(2))}",
        f"ternary ::= {_trie(_functions(3))}",
        f"total ::= {_trie({*REDUCTIONS} - {*TESTS})}",
        f"test ::= {_trie(TESTS)}",
        f"comparison ::= {_choice(f' {sign} ' for sign in COMPARISONS)}",
        'product ::= " * " | " / " | " // " | " % "',
        'number ::= whole ("." [0-9]{1,20})? ("e" [-+]? [0-9]{1,2})?',
        'whole ::= "0" | [1-9] [0-9]{0,11}',
        'outside ::= "zero" | "clamp" | "wrap" | "reflect" | "-"? (number | "inf" | "pi") | "nan"',
        'constant ::= "inf" | "nan" | "pi" | "true" | "false"',
    ]
    for depth in range(DEPTH + 1):
        rules += _expression(depth)
    return "\n".join(rules)


def names_of(request: FormulaRequest) -> list[str]:
    """The names that an answer may use: the request's, also in capitals and in small letters, and the vocabulary.

    >>> {"rows", "ROWS", "gamma", "x"} <= set(names_of(FormulaRequest("norm of rows", "const float* gamma")))
    True
    """
    said = _NAME.findall(f"{request.given} {request.comment}")[:_MOST_NAMES]
    found = dict.fromkeys(name for each in said for name in (each, each.upper(), each.lower()))
    taken = {*KEYWORDS, *REDUCTIONS, *OTHER_NAMES, *TYPES}
    return [name for name in dict.fromkeys((*found, *VOCABULARY)) if name not in taken]


def _expression(depth: int) -> list[str]:
    """The rules of an expression with `depth` brackets around it, from what binds least to what binds tightest.

    The ends of a range hold no reduction: that of `any` would take the comparison behind it.
    """
    d, inner = depth, depth + 1
    plain, reduced = """number | constant | name "'"?""", ""
    if depth < DEPTH:
        index = f'expr{inner} (", " expr{inner}){{0,5}} ("; " outside)?'
        plain += f""" | name "'"? "[" {index} "]" | "(" expr{inner} ")" | unary "(" expr{inner} ")\""""
        plain += f' | binary "(" expr{inner} ", " expr{inner} ")"'
        plain += f' | ternary "(" expr{inner} ", " expr{inner} ", " expr{inner} ")"'
        over = f'(":" type)? "[" range{inner} (", " range{inner}){{0,3}} "] "'
        reduced = f' | total {over} factors{inner} | test {over} "not "? factors{inner}'
    return [
        f'expr{d} ::= either{d} (" if " either{d} " else " either{d}){{0,2}}',
        f'either{d} ::= both{d} (" or " both{d}){{0,2}}',
        f'both{d} ::= truth{d} (" and " truth{d}){{0,2}}',
        f'truth{d} ::= "not "? bits{d} (comparison bits{d})?',
        f'bits{d} ::= terms{d} ((" | " | " ^ " | " & " | " << " | " >> ") terms{d}){{0,5}}',
        f'terms{d} ::= factors{d} ((" + " | " - ") factors{d}){{0,13}}',
        f"factors{d} ::= signed{d} (product signed{d}){{0,5}}",
        f'signed{d} ::= [-~]{{0,2}} atom{d} (" ** " [-~]? atom{d}){{0,2}}',
        f"atom{d} ::= plain{d}{reduced}",
        f"plain{d} ::= {plain}",
        f'range{d} ::= name ((" < " | " <= " | " >= ") end{d})? | end{d} " <= " name (" < " | " <= ") end{d}',
        f'end{d} ::= "-"? plain{d} ((" + " | " - " | product) plain{d}){{0,4}}',
    ]


def _shapes() -> str:
    """Extents with strides, a layout or fields behind them."""
    strided = [f'"[" {_ends(count)} "](" {_ends(count)} ")"' for count in range(1, 5)]
    laid = ['"[" end1 (", " end1){0,5} "]" (" column" | " channels_last")? fields?', '" column"', '" channels_last"']
    return " | ".join((*laid, *strided))


def _ends(count: int) -> str:
    return ' ", " '.join(["end1"] * count)


def _field_lists(said: str) -> list[str]:
    """Names of fields as they stand in a declaration: the usual ones, and those of structs in the user's words.

    >>> _field_lists("struct Body { float mass, vx; };")[-1]
    'mass, vx'
    """
    found = [dict.fromkeys(_FIELD.findall(body)) for body in _FIELD_LIST.findall(said)]
    return list(
        dict.fromkeys((*FIELD_LISTS, *(", ".join(each) for each in found if each and not {*KEYWORDS} & {*each})))
    )


def _functions(arguments: int) -> list[str]:
    return [name for name, function in FUNCTIONS.items() if function.least == arguments]


def _choice(texts: Iterable[str]) -> str:
    return " | ".join(f'"{each}"' for each in texts)


def _trie(names: Iterable[str]) -> str:
    """One of `names`, letter by letter: what a model's choice is compared with stays small.

    >>> _trie(["max", "min", "m"])
    '"m" ("ax" | "in")?'
    """
    by_letter: dict[str, list[str]] = {}
    for name in sorted({*names} - {""}):
        by_letter.setdefault(name[0], []).append(name)
    return " | ".join(_branch(each) for each in by_letter.values())


def _branch(names: list[str]) -> str:
    """One of `names`, which are in order and begin alike."""
    first, last = names[0], names[-1]
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    head = first[:same]
    rests = [name[len(head) :] for name in names]
    if rests == [""]:
        return f'"{head}"'
    return f'"{head}" ({_trie(rests)}){"?" if "" in rests else ""}'
