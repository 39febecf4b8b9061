"""Make the double literals of float expressions float, so that nothing is computed in double.

## Before

```cuda
__global__ void smooth(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.25 * in[i] + 0.1 * M_PI;
}
```

## After

```cuda
__global__ void smooth(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.25f * in[i] + 0.1f * (float)M_PI;
}
```

## Assumes

- The expression is one of floats that only literals make double, as its finding says. A named constant (a macro, a
  `const double`) keeps its definition and is converted where it is used.
- Refused: a literal that a float cannot hold even roughly (`1e300`, `1e-60`), and one inside a macro's body. So is a
  comparison that a rounded literal decides otherwise, such as `x > 0.1` for the float nearest to 0.1, and a kernel that
  stores nothing but integers, which the last digits decide.

## Cost

Results change in the last digits: a literal such as 0.1 is rounded to float, and so is each step of the expression.
"""

from __future__ import annotations

import re
import struct

from warpwright.facts.model import AccessKind, Kernel, Promotion, Space
from warpwright.rewrites._code import overlaps
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Span

NAME = "suffix-float-literals"
title = "Add an f suffix to the literals"
goals = ("speed",)
relies_on = ()

LARGEST = 3.4028234e38
SMALLEST = 1.1754944e-38
"""The largest and the smallest normal float (IEEE 754 binary32)."""

_NUMBER = re.compile(r"[-+]?(?:0[xX][\da-fA-F'.]+[pP][-+]?\d+|(?:\d[\d']*\.?[\d']*|\.\d[\d']*)(?:[eE][-+]?\d+)?)[lL]?")
_COMPARED = re.compile(r"(?P<sign>[<>]=?)\s*(?P<literal>[-+]?[\d.'eE]+)$")
_WHOLE = frozenset((
    "bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "unsigned",
    "long", "unsigned long", "long long", "unsigned long long",
))  # fmt: skip
_NAMED = re.compile(r"[A-Za-z_]\w*")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    here = [p for p in kernel.promotions if at is None or overlaps(p.span, at)]
    if not here:
        return Declined(NAME, "No float expression here is computed in double because of a literal.")
    stores = [a for a in kernel.accesses if a.kind is AccessKind.STORE and a.space is Space.GLOBAL]
    if stores and all(store.type in _WHOLE for store in stores):
        return Declined(NAME, f"{kernel.name} stores integers alone: the last digits decide which.")
    moved = next((p for p in here if not _decides_alike(p)), None) if all(p.comparison for p in here) else None
    if moved is not None:
        return Declined(NAME, f"`{moved.span.one_line}` would be decided otherwise for floats next to the literal.")
    source = here[0].span.source
    edits: dict[int, TextEdit] = {}
    refusal = ""
    for promotion in here:
        found = _edits(promotion)
        if isinstance(found, str):
            refusal = refusal or found
        elif promotion.span.source is source:
            edits |= {edit.start: edit for edit in found}
    if not edits:
        return Declined(NAME, refusal or "The literals are not in this file.")
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits[start] for start in sorted(edits)),
        explanation=(
            "In C++ a literal without `f` is a double, and an operation of a float with it is done in double. With "
            "float literals the arithmetic stays in float: results can change in the last digits."
        ),
        safe=False,
    )


def _decides_alike(promotion: Promotion) -> bool:
    """Whether every float is on the same side of the rounded literal: no float lies between the two."""
    found = _COMPARED.search(promotion.span.one_line)
    if found is None or len(promotion.literals) != 1 or not _NUMBER.fullmatch(found["literal"]):
        return False
    value = float(found["literal"].replace("'", ""))
    is_up = struct.unpack("f", struct.pack("f", value))[0] > value if abs(value) <= LARGEST else False
    return (found["sign"] in ("<", ">=")) is is_up


def _edits(promotion: Promotion) -> list[TextEdit] | str:
    """What makes each literal of an expression float, or the reason why one cannot be."""
    out: list[TextEdit] = []
    for literal in promotion.literals:
        text = literal.text
        if _NUMBER.fullmatch(text):
            digits = text.rstrip("lL")
            value = float.fromhex(digits) if "0x" in digits.lower() else float(digits.replace("'", ""))
            if abs(value) > LARGEST or 0 < abs(value) < SMALLEST:
                return f"`{text}` is beyond what a float can hold."
            out.append(TextEdit(literal.start, literal.end, f"{digits}f"))
        elif _NAMED.fullmatch(text):
            out.append(TextEdit(literal.start, literal.start, "(float)"))
        else:
            return f"A literal stands inside the macro `{text.split('(')[0].strip()}`, which other code may use."
    return out
