"""What the text of a kernel of windows and its launches have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Expr
from warpwright.schedules.windows import Neighbours
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text


@dataclass
class Frame:
    """One kernel being written. Of each dimension that a thread runs over, `tiles` has a variable and how many results
    there are, `firsts` what the first one is called."""

    formula: Formula
    group: Group
    found: Neighbours
    scope: Scope
    body: Text = field(default_factory=lambda: Text(depth=1))
    tiles: dict[str, tuple[str, str]] = field(init=False)
    firsts: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        scope, found = self.scope, self.found
        scope.index_type = "int"
        tiled = {found.out: ("out", "kOuts"), found.row: ("row", "kRows"), found.col: ("col", "kCols")}
        self.tiles = {dim: (scope.free(var), size) for dim, (var, size) in tiled.items() if dim}
        self.firsts = {dim: scope.free(f"{dim}_first") for dim in self.tiles}

    @property
    def threads(self) -> int:
        """Of a block: more where they wait for memory, and few where arithmetic bounds the kernel."""
        return 128 if self.found.is_heavy else 256

    @property
    def stored(self) -> list[Stage]:
        """The stages whose values go to memory."""
        return [each for each in self.group.stages if not each.temporary or each.name in self.group.kept]

    def factor(self, node: Expr) -> str:
        return self.scope.expressions.of(node, PRODUCT + 1)

    def extent(self, dim: str) -> str:
        return self.scope.expressions.of(self.formula.dims[dim], PRODUCT)

    def step_names(self, dim: str) -> tuple[str, str]:
        """Of a window that is taken several elements at a time: the variable in a step, and where the step begins."""
        return self.scope.free(f"{dim}_step"), self.scope.free(f"{dim}_first")


def is_named(name: str, text: str) -> bool:
    """Whether a text of C++ has the name."""
    return re.search(rf"\b{name}\b", text) is not None
