"""Integer division or modulo by a run-time value in a loop.

## Why is this bad?

A GPU has no instruction for integer division. By a constant, the compiler multiplies and shifts; by a value that is
known only at run time it computes a reciprocal and corrects it. Where the divisor stays the same over the loop, that is
6 to 14 instructions each time; where it changes, about 18 (unsigned) to 25; in 64 bits about 30, and twice as many when
the numbers do not fit 32 bits. In a loop that otherwise loads and adds, most of the instructions are then the division.

## Example

```cuda
__global__ void filter(float *out, const float *ring, int n, unsigned int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k < 8; k++) {
      sum += ring[(i + k) % length];
    }
    out[i] = sum;
  }
}

void run(float *out, const float *ring, int n, unsigned int length) {
  filter<<<(n + 255) / 256, 256>>>(out, ring, n, length);
}
```

## Use instead

An index that moves by one can wrap around with a comparison:

```cuda
__global__ void filter(float *out, const float *ring, int n, unsigned int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    auto wrapped = i % length;
    for (int k = 0; k < 8; k++) {
      sum += ring[wrapped];
      if (++wrapped == length) wrapped = 0;
    }
    out[i] = sum;
  }
}

void run(float *out, const float *ring, int n, unsigned int length) {
  filter<<<(n + 255) / 256, 256>>>(out, ring, n, length);
}
```

## Limits

- Information in 64 bits and where the divisor changes; else a hint.
- A quotient that is the same at every iteration is not reported, since the compiler computes it once; of `x / n` and
  `x % n` one is reported, since they share the work.
- A loop that strides over the data by the size of the grid runs few times per thread, and is not one of these.
- The `tid % (2 * s)` of an interleaved reduction is divergent-branch's, whose fix takes it away too.
- There is a fix to press where the divisor is unsigned and stays the same. Elsewhere the way out (a power of two, a
  template argument, a precomputed reciprocal) is the author's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Division, Kernel
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.reductions import in_doubling_loop
from warpwright.rules.weighing import is_small
from warpwright.rules.words import code

severity = Severity.INFORMATION

WIDE = 30
"""Instructions of a division in 64 bits by numbers that fit 32 (nvcc 13.0, sm_90), read from the machine code."""
FIXED = {("/", True): 14, ("%", True): 12, ("/", False): 9, ("%", False): 6}
"""Those of one in 32 bits by what stays the same over the loop, by operator and whether signed."""
MOVING = {True: 25, False: 18}


def check(kernel: Kernel) -> Iterator[Finding]:
    said: set[tuple[str, str]] = set()
    for division in kernel.divisions:
        operands = (division.dividend, division.divisor)
        interleaved = division.op == "%" and not division.fixed_divisor and in_doubling_loop(division.span)
        if division.strided or interleaved or operands in said:
            continue
        said.add(operands)
        costly = division.bits == 64 or not division.fixed_divisor
        level = Severity.INFORMATION if costly else Severity.HINT
        yield Finding(
            span=division.span,
            message=_message(division),
            severity=Severity.HINT if is_small(kernel) else level,
            evidence={
                "divisor": division.divisor,
                "bits": division.bits,
                "signed": division.signed,
                "divisor_fixed_over_loop": division.fixed_divisor,
                "instructions": _instructions(division),
            },
            fixes=(Fix("replace-division", "Replace the division by a counter"),) if _may_count(division) else (),
        )


def _may_count(division: Division) -> bool:
    """Whether a counter that wraps around could take the division's place."""
    return division.fixed_divisor and not division.signed and division.bits == 32


def _instructions(division: Division) -> int:
    if division.bits == 64:
        return WIDE
    return FIXED[division.op, division.signed] if division.fixed_divisor else MOVING[division.signed]


def _message(division: Division) -> str:
    what = "Division" if division.op == "/" else "Modulo"
    wide = " (twice beyond 32 bits)" if division.bits == 64 else ""
    in_macro = division.divisor == division.span.one_line
    divisor = f"a run-time value in {code(division.divisor)}" if in_macro else f"run-time {code(division.divisor)}"
    advice = (
        "\nUse 32-bit integers where they suffice."
        if division.bits == 64
        else ""
        if not division.fixed_divisor
        else "\nMake the divisor a constant or template argument, or keep a counter that wraps around."
        if division.op == "%"
        else "\nMake the divisor a constant or template argument, or multiply by a reciprocal."
    )
    return f"{what} by {divisor} in a loop: about {_instructions(division)} instructions each{wide}{advice}"
