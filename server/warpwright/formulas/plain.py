"""Shorter ways to write an equation, written out: `y[i] += v`, and reads of new values, `m'[i]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.tree import Call, Equation, Expr, Load, Name, rebuilt, walk


def plain(text: str, equations: Sequence[Equation]) -> list[Equation]:
    """Equations in which no new value is read by its prime and `+=` is left to places that are computed.

    `y[i] += v` is `y'[i] = y[i] + v`. Where `m'[i]` is read, its value is a stage of its own.

    >>> from warpwright.formulas.parser import parse
    >>> from warpwright.formulas.printer import equation
    >>> text = "m'[i] = b * m[i] + g[i]  w'[i] = w[i] - m'[i]"
    >>> print(*map(equation, plain(text, parse(text).equations)), sep="\\n")
    m'[i] = m_new[i]
    w'[i] = w[i] - m_new[i]
    m_new[i] = b * m[i] + g[i]
    """
    written_out = [_element(text, each) for each in equations]
    _once(text, written_out)
    return _new_values(text, written_out)


def _element(text: str, each: Equation) -> Equation:
    own = all(isinstance(index, Name) for index in each.index)
    if own and len(set(each.index)) < len(each.index):
        reason = f"A dimension stands twice in the indices of {each.name}: write a condition instead."
        raise FormulaError(text, each.at, reason)
    if each.temporary and (each.primed or each.combine):
        raise FormulaError(text, each.at, f"{each.name} is defined here alone: write '='.")
    if not own or not each.combine:
        return each
    value = Call(each.combine, (Load(each.name, each.index, None, each.at), each.value), each.at)
    return replace(each, value=value, combine="", primed=True)


def _once(text: str, equations: Sequence[Equation]) -> None:
    seen: set[str] = set()
    for each in equations:
        if each.name in seen:
            raise FormulaError(text, each.at, f"{each.name} is defined twice.")
        seen.add(each.name)


def _new_values(text: str, equations: Sequence[Equation]) -> list[Equation]:
    primed = {f"{each.name}'": each for each in equations if each.primed}
    nodes = [node for each in equations for part in (*each.index, each.value) for node in walk(part)]
    read = {_named(node): node.at for node in nodes if isinstance(node, Load | Name)}
    taken = {*read, *(each.name for each in equations)}
    stages: dict[str, str] = {}
    for name, at in read.items():
        if not name.endswith("'"):
            continue
        if name not in primed or not all(isinstance(index, Name) for index in primed[name].index):
            raise FormulaError(
                text, at, f"{name[:-1]} gets no new value that can be read: write {name}[i] = ... before."
            )
        stages[name] = f"{name[:-1].replace('.', '_')}_new"
        while stages[name] in taken:
            stages[name] += "_"
        taken.add(stages[name])

    def changed(node: Expr) -> Expr:
        match node:
            case Load(tensor=name) if name in stages:
                return replace(node, tensor=stages[name])
            case Name(name=name) if name in stages:
                return replace(node, name=stages[name])
        return node

    for name in stages:
        own = next((node for node in walk(primed[name].value) if _named(node) == name), None)
        if own is not None:
            raise FormulaError(text, own.at, f"{name} is defined by itself: read the old value, {name[:-1]}.")

    done: list[Equation] = []
    values: list[Equation] = []
    for each in equations:
        new = replace(
            each, value=rebuilt(each.value, changed), index=tuple(rebuilt(index, changed) for index in each.index)
        )
        stage = stages.get(f"{each.name}'") if each.primed else None
        if stage is not None:
            values.append(replace(new, name=stage, primed=False, temporary=True))
            new = replace(new, value=Load(stage, each.index, None, each.at) if each.index else Name(stage, each.at))
        done.append(new)
    return done + values


def _named(node: Expr) -> str:
    """The array or the number that is read; "" of another node."""
    return node.tensor if isinstance(node, Load) else node.name if isinstance(node, Name) else ""
