"""What an expression becomes before it is run: a Python function, made once for each node and kept on it.

A node's code is called for every warp and iteration with the interpreter and the lanes that are on. What the node alone
tells (its operator, the slot of a variable, the codes of its operands) was looked up when the code was made, so that
running it is not a walk over the tree. The makers are in evaluate.py (values) and addressing.py (places).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING

from warpwright.facts import ir
from warpwright.facts.places import Location
from warpwright.facts.values import AnyValue

if TYPE_CHECKING:
    from warpwright.facts.evaluate import Evaluator

ValueCode = Callable[["Evaluator", int], AnyValue]
"""What an expression is worth in the lanes of the mask. It counts one step for each node that it runs."""
PlaceCode = Callable[["Evaluator", int], Location]
"""The place that an expression names; None for what is no place."""


@singledispatch
def make_value(node: ir.Expr) -> ValueCode:
    """The value code of a node, registered by its class."""
    raise TypeError(f"no code for {type(node).__name__}")


@singledispatch
def make_place(_node: ir.Expr) -> PlaceCode:
    """The place code of a node, registered by its class; what has none names no place."""
    return no_place


def value_code(node: ir.Expr) -> ValueCode:
    code = node.value_code
    if code is None:
        code = node.value_code = make_value(node)
    return code


def place_code(node: ir.Expr) -> PlaceCode:
    code = node.place_code
    if code is None:
        code = node.place_code = make_place(node)
    return code


def no_place(_run: Evaluator, _mask: int) -> Location:
    return None
