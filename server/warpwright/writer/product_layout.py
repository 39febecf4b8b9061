"""What a schedule adds to what is written of a product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpwright.formulas.model import Tensor
from warpwright.formulas.tree import Expr
from warpwright.writer.code import Kernel, Path
from warpwright.writer.product_text import ProductText
from warpwright.writer.scope import Scope


@dataclass(frozen=True)
class Layout:
    """What one schedule adds, or several of one kernel; `names` are those of expressions that its paths share."""

    kernels: list[Kernel]
    paths: list[Path]
    names: Mapping[str, Expr]
    between: Sequence[Tensor] = ()


def kernel_of(
    made: ProductText, scope: Scope, name: str, text: str, parameters: tuple[str, ...], own: set[str]
) -> Kernel:
    helpers = frozenset({*scope.expressions.helpers, *own})
    types = {made.sum_type.name, made.left_type.name, made.right_type.name, *scope.expressions.types}
    types |= {each.type for each in scope.touched()}
    return Kernel(name, text, parameters, size_type="int", helpers=helpers, types=frozenset(types))
