"""pow with a constant exponent for which a product or a square root is enough.

## Why is this bad?

The compiler does not turn `pow(x, 2)` into `x * x`, whatever the optimisation level: it calls the general function,
which takes logarithm and exponential at extended precision. `powf(x, 2.0f)` comes to some 75 instructions, `pow(x, 2)`
to some 200, nearly all of them double: with an integer exponent C++ computes in double even for a float `x`. For a
kernel that squares an array on an H200 that is 2.4 times the run time in double and 1.3 times in float.

## Example

```cuda
__global__ void energy(float *out, const float *v, float mass, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * mass * pow(v[i], 2);
}

void run(float *out, const float *v, float mass, int n) {
  energy<<<(n + 255) / 256, 256>>>(out, v, mass, n);
}
```

## Use instead

```cuda
__global__ void energy(float *out, const float *v, float mass, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * mass * (v[i] * v[i]);
}

void run(float *out, const float *v, float mass, int n) {
  energy<<<(n + 255) / 256, 256>>>(out, v, mass, n);
}
```

## Limits

- Exponents 2, 3, 4, -1, -2, 0.5, -0.5 and 1.5. Larger ones need more thought about rounding.
- A warning where the call computes in double or stands in a loop, information elsewhere.
- `__powf` is short already and is left alone, as is a pow that the program defines. With `-use_fast_math` nvcc makes
  `__powf` of a pow in float, which the text does not show.
- The last digits can change, and pow takes -0 and -infinity to the power 0.5 differently from sqrt: the fix is not
  called safe.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel, Power
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.weighing import is_small

severity = Severity.WARNING

INSTEAD = {
    2.0: "x * x",
    3.0: "x * x * x",
    4.0: "(x * x) * (x * x)",
    -1.0: "1 / x",
    -2.0: "1 / (x * x)",
    0.5: "sqrt(x)",
    -0.5: "rsqrt(x)",
    1.5: "x * sqrt(x)",
}
INSTRUCTIONS = {32: 75, 64: 200}
"""About how many a call comes to with nvcc 13.0, by bits of the result."""


def check(kernel: Kernel) -> Iterator[Finding]:
    for power in kernel.powers:
        if power.exponent not in INSTEAD:
            continue
        level = Severity.WARNING if power.bits == 64 or power.in_loop else Severity.INFORMATION
        yield Finding(
            span=power.span,
            message=_message(power),
            severity=Severity.HINT if is_small(kernel) else level,
            evidence={
                "exponent": power.exponent,
                "base_type": power.base_type,
                "computed_bits": power.bits,
                "in_loop": power.in_loop,
            },
            fixes=(Fix("expand-power", f"Write {INSTEAD[power.exponent]}", safe=False),),
        )


def _message(power: Power) -> str:
    kind = "double" if power.bits == 64 else "float"
    widened = " of a float base" if power.bits == 64 and power.base_type == "float" else ""
    again = " in a loop" if power.in_loop else ""
    return (
        f"`{power.name}` with constant exponent {power.exponent:g}: about {INSTRUCTIONS[power.bits]} {kind} "
        f"instructions{widened}{again}\nWrite {INSTEAD[power.exponent]} instead."
    )
