"""Tree to text: `parse` gives the same tree again."""

from __future__ import annotations

import math

from warpwright.formulas.functions import COMPARISONS
from warpwright.formulas.parser import (
    ATOM,
    CHOICE,
    COMPARISON,
    LEVELS,
    NO_CHOICE,
    NOT,
    POWER,
    PRODUCT,
    SIGN,
    SUM,
    body_level,
)  # fmt: skip
from warpwright.formulas.tree import Call, Declaration, Equation, Expr, Load, Name, Num, Range, Reduce, Written


def printed(written: Written) -> str:
    """The formula as text: declarations, a line for each equation, and the temporaries behind `where`.

    >>> from warpwright.formulas.parser import parse
    >>> print(printed(parse("y[r,c]=exp(x[r,c]-m[r]) where m[r]=max[c] x[r,c], n = 2**-3")))
    y[r, c] = exp(x[r, c] - m[r])
      where m[r] = max[c] x[r, c],
            n = 2 ** -3
    """
    lines = [declared(each) for each in written.declarations]
    lines += [equation(each) for each in written.equations if not each.temporary]
    behind = [equation(each) for each in written.equations if each.temporary]
    text = "\n".join(lines)
    return text + ("\n  where " + ",\n        ".join(behind) if behind else "")


def printed_in_one_line(written: Written) -> str:
    """As `printed`, with commas instead of line breaks.

    >>> from warpwright.formulas.parser import parse
    >>> print(printed_in_one_line(parse("x: bf16  y[i] = a[i]  z[i] = s * y[i] where a[i] = exp(x[i])  s = 2")))
    x: bf16, y[i] = a[i], z[i] = s * y[i] where a[i] = exp(x[i]), s = 2
    """
    first = [
        *map(declared, written.declarations),
        *(equation(each) for each in written.equations if not each.temporary),
    ]
    behind = [equation(each) for each in written.equations if each.temporary]
    return ", ".join(first) + (f" where {', '.join(behind)}" if behind else "")


def declared(each: Declaration) -> str:
    """`x: bf16[R, C](ld, 1)`."""
    extents = "" if each.extents is None else f"[{_listed(each.extents)}]"
    strides = f"({_listed(each.strides)})" if each.strides else "" if each.layout == "row" else f" {each.layout}"
    fields = f"{{{', '.join(each.fields)}}}" if each.fields else ""
    return f"{each.name}: {each.type}{extents}{strides}{fields}"


def equation(each: Equation) -> str:
    """`h[i] += x[i]`."""
    index = f"[{_listed(each.index)}]" if each.index else ""
    sign = f" {each.combine}=" if each.combine in ("max", "min") else f"{each.combine}="
    return f"{each.name}{chr(39) if each.primed else ''}{index} {sign.strip()} {shown(each.value)}"


def shown(node: Expr, least: int = CHOICE) -> str:
    """The expression, in parentheses where it binds less tightly than `least`.

    >>> from warpwright.formulas.parser import parse
    >>> shown(parse("y = (a + b) * -c ** 2").equations[0].value)
    '(a + b) * -c ** 2'
    """
    text, level = _text(node)
    return f"({text})" if level < least else text


def _text(node: Expr) -> tuple[str, int]:
    match node:
        case Num(value=value):
            return number(value), SIGN if not isinstance(value, bool) and _negative(value) else ATOM
        case Name(name=name):
            return name, ATOM
        case Load(tensor=tensor, index=index, outside=outside):
            return f"{tensor}[{_listed(index)}{_beyond(outside)}]" if index else tensor, ATOM
        case Reduce(op=op, ranges=ranges, body=body, accumulate=kind):
            over = ", ".join(map(_range, ranges))
            least = body_level(op) + 1
            return f"{op}{f':{kind}' if kind else ''}[{over}] {shown(body, least)}", min(least, PRODUCT)
        case Call(name="select", args=(condition, then, otherwise)):
            return f"{shown(then, NO_CHOICE)} if {shown(condition, NO_CHOICE)} else {shown(otherwise)}", CHOICE
        case Call(name="not", args=(operand,)):
            return f"not {shown(operand, NOT)}", NOT
        case Call(name="neg" | "~" as sign, args=(operand,)):
            # The minus of a number would become part of it.
            least = ATOM + 1 if sign == "neg" and isinstance(operand, Num) else SIGN
            return f"{'-' if sign == 'neg' else '~'}{shown(operand, least)}", SIGN
        case Call(name="**", args=(base, power)):
            return f"{shown(base, ATOM)} ** {shown(power, SIGN)}", POWER
        case Call(name=sign, args=(left, right)) if sign in LEVELS:
            level = LEVELS[sign]
            first = level + 1 if sign in COMPARISONS or (level == PRODUCT and isinstance(left, Reduce)) else level
            second = PRODUCT if level == SUM else level + 1
            return f"{shown(left, first)} {sign} {shown(right, second)}", level
        case Call(name=name, args=args):
            return f"{name}({_listed(args)})", ATOM


def _negative(value: float) -> bool:
    return math.copysign(1, value) < 0


def number(value: int | float) -> str:
    """A literal.

    >>> number(2), number(2.0), number(1e-5), number(float("-inf")), number(True)
    ('2', '2.0', '1e-05', '-inf', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if value == math.pi:
        return "pi"
    return repr(value)


def _listed(index: tuple[Expr, ...]) -> str:
    return ", ".join(map(shown, index))


def _beyond(outside: str | Num | None) -> str:
    if outside is None:
        return ""
    if isinstance(outside, str):
        return f"; {outside}"
    return "; zero" if outside == Num(0) else f"; {number(outside.value)}"


def _range(each: Range) -> str:
    if each.lower is not None and each.upper is None:
        return f"{each.name} >= {shown(each.lower, COMPARISON + 1)}"
    lower = "" if each.lower is None else f"{shown(each.lower, COMPARISON + 1)} <= "
    upper = "" if each.upper is None else f" {'<=' if each.closed else '<'} {shown(each.upper, COMPARISON + 1)}"
    return f"{lower}{each.name}{upper}"
