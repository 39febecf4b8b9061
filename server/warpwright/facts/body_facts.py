"""What is said of a kernel's bodies without running a warp: arithmetic that costs, and arrays in local memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from warpwright.facts import ir
from warpwright.facts.arithmetic import divisions, powers, promotions
from warpwright.facts.bodies import Callees, bodies
from warpwright.facts.local_arrays import LocalUse, local_accesses, local_uses
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import Access, Division, Power, Promotion
from warpwright.facts.types import UNKNOWN_TYPE, CType
from warpwright.facts.unit import Unit

log = logging.getLogger(__name__)

T = TypeVar("T", Promotion, Division, Power)


@dataclass(slots=True)
class BodyFacts:
    """One entry per place in the text, over all launches and callers; the one in a loop where there are several."""

    promotions: dict[tuple[str, int, int], Promotion] = field(default_factory=lambda: {})
    divisions: dict[tuple[str, int, int], Division] = field(default_factory=lambda: {})
    powers: dict[tuple[str, int, int], Power] = field(default_factory=lambda: {})

    def read(self, unit: Unit, function: ir.Function, callees: Callees, launch: int) -> list[Access]:
        """Add the bodies that a kernel runs at one launch; returns its accesses to local memory.

        An expression that nests too deeply to be walked costs the facts of its body and of those behind it.
        """
        uses: list[LocalUse] = []
        try:
            for body in bodies(function, callees, _global_types(unit)):
                for promotion in promotions(body):
                    _keep(self.promotions, promotion, promotion.in_loop)
                for power in powers(body):
                    _keep(self.powers, power, power.in_loop)
                for division in divisions(body):
                    _keep(self.divisions, division, not division.fixed_divisor)
                uses += local_uses(body)
        except RecursionError:
            log.warning("%s: an expression nests too deeply for its arithmetic to be judged", function.name)
        return local_accesses(uses, launch)


def _keep(found: dict[tuple[str, int, int], T], fact: T, graver: bool) -> None:
    key = fact.span.key
    if key not in found or graver:
        found[key] = fact


def _global_types(unit: Unit) -> Callable[[str], CType]:
    known: dict[str, CType] = {}

    def type_of(name: str) -> CType:
        if name not in known:
            variable = unit.variables.get(name)
            kind = UNKNOWN_TYPE
            if variable is not None:
                lowerer = Lowerer(unit, variable.source)
                base = lowerer.type_of(variable.declaration.child_by_field_name("type"))
                inner = variable.declarator
                if inner.type == "init_declarator":
                    inner = inner.child_by_field_name("declarator") or inner
                kind = lowerer.declared(base, inner)[0]
            known[name] = kind
        return known[name]

    return type_of
