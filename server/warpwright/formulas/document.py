"""A formula as plain lists and dictionaries, for a program that evaluates it and knows nothing of its text.

An expression is a list of its kind, its type and its parts:

    ["num", type, value]                                  a literal
    ["name", type, name]                                  a dimension, a size or a number that is handed over
    ["load", type, name, [index, ...], outside]           an element; outside is null, a number or a tree.Outside
    ["call", type, name, [argument, ...], operand type]   a function, an operator, "select" or a type as a cast
    ["reduce", type, op, [[name, lower, upper, closed], ...], body, accumulate]
"""

from __future__ import annotations

from typing import Any

from warpwright.formulas.literals import as_computed
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce
from warpwright.formulas.types import TYPES, ElementType
from warpwright.formulas.typing_rules import operand_type, settled, types_of


def document_of(formula: Formula) -> dict[str, Any]:
    """What json.dumps writes. `read` says of a stage whether loads of its name read it, not the array that is handed
    over.

    >>> from warpwright.formulas.resolve import formula_of
    >>> found = document_of(formula_of("y[i] = 2 * x[i]"))
    >>> found["stages"][0]["value"]
    ['call', 'f32', '*', [['num', 'i64', 2], ['load', 'f32', 'x', [['name', 'i64', 'i']], None]], 'f32']
    >>> found["inputs"], found["dims"]
    ({'x': {'type': 'f32', 'extents': [['name', 'i64', 'I']]}}, {'i': ['name', 'i64', 'I']})
    """

    formula = as_computed(formula)

    def named(name: str) -> ElementType:
        return TYPES["i64"] if name in formula.dims or name in formula.sizes else formula.type_of(name)

    type_of = types_of(named)

    def kind(node: Expr) -> ElementType:
        return settled(type_of(node))

    def part(node: Expr | None) -> Any:
        match node:
            case None:
                return None
            case Num(value=value):
                return ["num", kind(node).name, value]
            case Name(name=name):
                return ["name", kind(node).name, name]
            case Load(tensor=tensor, index=index, outside=outside):
                beyond = outside.value if isinstance(outside, Num) else outside
                return ["load", kind(node).name, tensor, [part(each) for each in index], beyond]
            case Call(name=name, args=args):
                own = kind(node)
                operands = operand_type(name, own, [kind(each) for each in args])
                return ["call", own.name, name, [part(each) for each in args], operands.name]
            case Reduce(op=op, ranges=ranges, body=body, accumulate=accumulate):
                over = [[each.name, part(each.lower), part(each.upper), each.closed] for each in ranges]
                return ["reduce", kind(node).name, op, over, part(body), accumulate]

    def stage(each: Stage) -> dict[str, Any]:
        return {
            "name": each.name,
            "type": each.type,
            "dims": list(each.dims),
            "value": part(each.value),
            "index": [part(index) for index in each.index],
            "extents": [part(extent) for extent in formula.extents_of(each.name)],
            "combine": each.combine,
            "keeps": each.keeps,
            "temporary": each.temporary,
            "read": formula.stage(each.name) is each,
        }

    return {
        "inputs": {
            each.name: {"type": each.type, "extents": [part(extent) for extent in each.extents]}
            for each in formula.inputs
        },
        "scalars": dict(formula.scalars),
        "sizes": list(formula.sizes),
        "dims": {name: part(extent) for name, extent in formula.dims.items()},
        "stages": [stage(each) for each in formula.stages],
        "outputs": [each.name for each in formula.outputs],
    }
