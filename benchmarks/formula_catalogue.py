"""The formulas that the writer is measured with, in formulas.toml.

A formula has a `kind`, a `name`, its `text`, the element `types` to try in the place of f32 (none: as it is written),
`small`, `odd` and `large` sizes, and `torch`, an expression of the same for a peer, where torch has one. Names in it
are the arrays, numbers and sizes of the formula, `torch` and `F` (torch.nn.functional); several outputs are a tuple.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.variants import in_type

FILE = Path(__file__).with_name("formulas.toml")


@dataclass(frozen=True)
class Entry:
    """One formula of the catalogue."""

    kind: str
    name: str
    text: str
    small: Mapping[str, int]
    odd: Mapping[str, int]
    large: Mapping[str, int]
    types: tuple[str, ...] = ()
    torch: str = ""

    @property
    def formula(self) -> Formula:
        return formula_of(self.text)

    def texts(self) -> dict[str, str]:
        """The formula in each of its types, by type; in "" alone where the text says all types."""
        return {kind: in_type(self.text, kind) for kind in self.types} or {"": self.text}


def catalogue() -> list[Entry]:
    """All formulas, kind by kind."""
    document: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return [Entry(**{**each, "types": tuple(each.get("types", ()))}) for each in document["formula"]]
