"""Barriers that inline assembly waits at or arrives at, as calls of what the instructions are named."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.facts import ir
from warpwright.facts.types import INT
from warpwright.syntax.source import Span

BAR_SYNC, BAR_ARRIVE = "bar.sync", "bar.arrive"
CLUSTER_ARRIVE = "barrier.cluster.arrive"

_BARRIER = re.compile(
    r"(?:\s|\\n|\\t)*(?:(?P<cluster>barrier\.cluster\.(?:arrive|wait))"
    r"|bar(?:rier)?(?:\.cta)?\.(?P<what>sync|arrive))(?:\.(?:aligned|acquire|release|relaxed))*"
    r"(?:\s+(?P<name>%?\d+)(?:\s*,\s*(?P<threads>%?\d+))?)?\s*;(?:\s|\\n|\\t)*"
)
"""A statement of assembly of one such instruction (PTX ISA, "bar, barrier" and "barrier.cluster")."""


def barrier_call(span: Span, text: str, operands: Sequence[ir.Expr]) -> ir.Call | None:
    """The call that assembly of that text stands for, of a barrier's number and, where it has one, a number of threads;
    None for other assembly.

    >>> from warpwright.syntax.source import Source
    >>> call = barrier_call(Span(Source("a.cu", b""), 0, 0), "bar.sync 1, 64;", ())
    >>> call.name, [argument.value for argument in call.arguments]
    ('bar.sync', [1, 64])
    """
    found = _BARRIER.fullmatch(text)
    if found is None:
        return None
    if found["cluster"]:
        return ir.Call(span, found["cluster"], []) if not found["name"] else None
    given = [number for number in (found["name"], found["threads"]) if number]
    places = [int(number[1:]) for number in given if number.startswith("%")]
    if not given or any(place >= len(operands) for place in places):
        return None
    arguments = [
        operands[int(number[1:])] if number.startswith("%") else ir.Const(span, int(number), INT) for number in given
    ]
    return ir.Call(span, f"bar.{found['what']}", arguments)
