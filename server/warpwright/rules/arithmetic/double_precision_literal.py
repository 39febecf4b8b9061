"""A literal such as 0.1 makes float arithmetic double.

## Why is this bad?

In C++ `0.1` is a double, so `x * 0.1` converts a float `x` to double, multiplies in double and rounds back. A data
centre GPU does half as many double operations per cycle as float ones, a desktop GPU one for 64, and each conversion
costs as much as several multiplications. In a loop of one multiplication and one addition, an H200 took 8 times as
long. With `exp(x * 0.1)` the whole function is the double one, of several times the instructions.

The compiler itself drops the double where the result is the same, and that is not reported: a single `+ - * /` between
floats, or with a literal that a float holds exactly, whose result goes to a float (`x * 0.5`, `1.0 / x`), and a
comparison with such a literal.

## Example

```cuda
__global__ void smooth(float *out, const float *in, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = in[i];
    for (int k = 0; k < steps; k++)
      x = 0.9 * x + 0.1;
    out[i] = x;
  }
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n, 100);
}
```

## Use instead

```cuda
__global__ void smooth(float *out, const float *in, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = in[i];
    for (int k = 0; k < steps; k++)
      x = 0.9f * x + 0.1f;
    out[i] = x;
  }
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n, 100);
}
```

## Limits

- A warning in a loop; information where a function such as exp is the double one, and for a comparison in a loop; a
  hint elsewhere, since an operation or two per thread hide behind its loads.
- Where a double variable, array, parameter or function takes part, double is taken to be wanted and nothing is said.
- Types that the text does not give (`auto` of a library's function, a template that nothing instantiates) are not
  judged.
- The results change in the last digits with the fix, so it is never called safe.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel, Promotion
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.weighing import is_small
from warpwright.rules.words import plural

severity = Severity.WARNING

MOST_NAMED = 3
"""Literals that a message names."""


def check(kernel: Kernel) -> Iterator[Finding]:
    for promotion in kernel.promotions:
        if promotion.operations == 1 and promotion.functions == ("pow",):
            continue  # one call of pow with a constant exponent, which has a rule of its own
        literals = list(dict.fromkeys(literal.one_line for literal in promotion.literals))
        yield Finding(
            span=promotion.span,
            message=_message(promotion, literals),
            severity=Severity.HINT if is_small(kernel) else _severity(promotion),
            evidence={
                "literals": literals,
                "double_operations": promotion.operations,
                "double_functions": list(promotion.functions),
                "in_loop": promotion.in_loop,
            },
            fixes=(Fix("suffix-float-literals", "Add an f suffix to the literals", safe=False),),
        )


def _severity(promotion: Promotion) -> Severity:
    if promotion.comparison:
        return Severity.INFORMATION if promotion.in_loop else Severity.HINT
    if promotion.in_loop:
        return Severity.WARNING
    return Severity.INFORMATION if promotion.functions else Severity.HINT


def _message(promotion: Promotion, literals: list[str]) -> str:
    named = ", ".join(f"`{literal}`" for literal in literals[:MOST_NAMED])
    what, makes = ("literal", "makes") if len(literals) == 1 else ("literals", "make")
    if promotion.comparison:
        does = "a float comparison double"
    else:
        calls = f" ({', '.join(dict.fromkeys(promotion.functions))})" if promotion.functions else ""
        does = f"{plural(promotion.operations, 'float operation')} double{calls}"
    again = ", in a loop" if promotion.in_loop else ""
    better = ", ".join(_better(literal) for literal in literals[:MOST_NAMED])
    return f"Double {what} {named} {makes} {does}{again}\nWrite {better}."


def _better(literal: str) -> str:
    return f"`(float){literal}`" if literal[:1].isalpha() or literal[:1] == "_" else f"`{literal}f`"
