"""Call the fast versions of float functions, which are less exact.

## Before

```cuda
__global__ void decay(float *out, const float *rates, const float *times, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k < steps; k++)
      sum += 1.0f / (1.0f + expf(-rates[i] * times[k]));
    out[i] = sum;
  }
}

void run(float *out, const float *rates, const float *times, int n) {
  decay<<<(n + 127) / 128, 128>>>(out, rates, times, n, 16);
}
```

## After

```cuda
__global__ void decay(float *out, const float *rates, const float *times, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k < steps; k++)
      sum += __fdividef(1.0f, 1.0f + __expf(-rates[i] * times[k]));
    out[i] = sum;
  }
}

void run(float *out, const float *rates, const float *times, int n) {
  decay<<<(n + 127) / 128, 128>>>(out, rates, times, n, 16);
}
```

`exp` and the other overloads of a float are taken like `expf`. `1.0f / sqrtf(x)` becomes `rsqrtf(x)`, another float
over a root a product with it, and another quotient of floats in a loop becomes `__fdividef(a, b)`.

## Assumes

- The calls stand in a loop, where their instructions count. The functions are CUDA's own.
- The errors below are small enough for what the results are for.
- The base of `powf` is not negative: squares and their sums, a value of a function that is not, a parameter. `__powf`
  gives NaN for others, and for 0 to the power of 0. What is divided is finite. `sinf`, `cosf` and `tanf` stay, since
  their fast versions hold for arguments from -pi to pi alone.

## Cost

Exactness (CUDA C++ Programming Guide, "Intrinsic Functions"). The largest errors, in units in the last place: `__expf`
2 + |1.173 x|, `__exp10f` 2 + |2.97 x|, `__logf` 3, `__log2f` 2, `__log10f` 3, `rsqrtf` 2, three times as much where its
third power stands for `1 / (x * sqrtf(x))`, `__fdividef` 2, which gives 0 for a divisor above 2^126. From 0.5 to 2,
where a logarithm is near 0, it is off by up to 2^-21.4, 2^-22 and 2^-24.
`__powf` is `exp2f(y * __log2f(x))`.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.algebra.sums import as_number
from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import bare, body, functions_of, in_macro, macro_texts, overlaps, squeezed
from warpwright.rewrites._float_types import is_float
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import declared_names
from warpwright.rewrites._quotients import made_whole
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, enclosing, uncommented
from warpwright.syntax.source import Source, Span

NAME = "fast-math-functions"
title = "Use fast-math intrinsics"
goals = ("speed",)
relies_on = ()

_NEAR_ONE = ", and from 0.5 to 2 by 2^-{} in all"
ERRORS = {
    "expf": "__expf is off by 2 + |1.173 x| units in the last place",
    "exp10f": "__exp10f is off by 2 + |2.97 x| units in the last place",
    "logf": f"__logf is off by 3 units in the last place{_NEAR_ONE.format(21.4)}",
    "log2f": f"__log2f is off by 2 units in the last place{_NEAR_ONE.format(22)}",
    "log10f": f"__log10f is off by 3 units in the last place{_NEAR_ONE.format(24)}",
    "powf": "__powf(x, y) is exp2f(y * __log2f(x)), whose error grows with y * log2(x), and NaN for 0 to the power 0",
}
"""By function, the largest error of its fast version (CUDA C++ Programming Guide, "Intrinsic Functions")."""
_ROOT = "rsqrtf is off by 2 units in the last place"
_CUBED = "three factors rsqrtf are off by 6 units in the last place and their own roundings"
_QUOTIENT = "__fdividef is off by 2 units in the last place, and 0 where the divisor is above 2^126"
_BOUNDED = ("sinf", "cosf", "tanf", "sincosf")
_NOT_NEGATIVE = frozenset({"fabsf", "expf", "__expf", "exp2f", "sqrtf", "exp10f"})
_DEEPEST = 8
_LITERAL = re.compile(r"\d+\.?\d*(?:[eE][-+]?\d+)?[fF]|\d*\.\d+[fF]")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    source, block = kernel.source, body(kernel)
    if block is None:
        return Declined(NAME, f"{kernel.name} is defined elsewhere.")
    reason = "No function here has a fast version."
    own = functions_of(source).keys() | macro_texts(source).keys()
    own |= declared_names(source, block)
    edits: list[TextEdit] = []
    errors: dict[str, None] = {}
    indices = indices_of(kernel, None)
    for call in descendants(block, "call_expression"):
        written = called_name(call, source)
        name = _in_float(kernel, call, written)
        if at is not None and not overlaps(source.span(call), at):
            continue
        refusal = _refusal(source, indices, call, name, own | ({name} if written in own else set()))
        found = _fast(kernel, call, name) if not refusal else None
        reason = refusal or reason
        if found is not None:
            edits += found[0]
            errors[found[1]] = None
    for quotient in descendants(block, "binary_expression") if at is None else ():
        divided = _quotient(kernel, indices, quotient, edits)
        edits += divided
        errors |= dict.fromkeys([_QUOTIENT] if divided else [])
    if not edits:
        return Declined(NAME, reason)
    return Rewrite(
        NAME,
        title,
        source,
        tuple(edits),
        "The exact versions correct what the hardware's function units give, with several times as many instructions; "
        f"the fast ones do not. {'. '.join(errors)} (CUDA C++ Programming Guide, Intrinsic Functions).",
        safe=False,
    )


def _in_float(kernel: Kernel, call: Node, name: str) -> str:
    """The function that an overload stands for: "expf" for `exp` of a float."""
    arguments = uncommented(call.child_by_field_name("arguments"))
    known = f"{name}f" in ERRORS or name == "sqrt"
    return f"{name}f" if known and all(is_float(kernel, a) for a in arguments) else name


def _refusal(source: Source, indices: Indices, call: Node, name: str, own: set[str]) -> str:
    """Why a call of a function with a fast version stays; empty where it need not, or has none."""
    line = line_of(source, call)
    if name in _BOUNDED:
        return f"{name} at line {line} stays: its fast version holds for arguments from -pi to pi alone."
    if name not in ERRORS and name != "sqrtf":
        return ""
    if name in own:
        return f"{name} at line {line} is the program's own."
    if in_macro(call):
        return f"{name} at line {line} stands in a macro."
    quotient = _divided(source, call) if name == "sqrtf" else None
    if name == "sqrtf" and quotient is None:
        return ""
    if quotient is not None and any(c.type == "comment" for c in quotient.children):
        return f"A comment stands in the quotient at line {line}, and would be lost."
    if not any(n.type in LOOPS for n in ancestors(call)):
        return f"Nothing to gain: {name} at line {line} stands in no loop, and memory takes longer."
    if name == "powf" and not _is_in_range(indices, call):
        return f"The base of powf at line {line} may be negative, or 0 to the power of 0, and __powf would give NaN."
    return ""


def _fast(kernel: Kernel, call: Node, name: str) -> tuple[list[TextEdit], str] | None:
    source = kernel.source
    function = call.child_by_field_name("function")
    arguments = call.child_by_field_name("arguments")
    if function is None or arguments is None or function.type not in ("identifier", "qualified_identifier"):
        return None
    if name in ERRORS:
        return [TextEdit(function.start_byte, function.end_byte, f"__{name}")], ERRORS[name]
    quotient = _divided(source, call) if name == "sqrtf" else None
    left = quotient.child_by_field_name("left") if quotient is not None else None
    right = quotient.child_by_field_name("right") if quotient is not None else None
    operator = next((c for c in quotient.children if c.type == "/"), None) if quotient is not None else None
    if quotient is None or left is None or right is None or operator is None:
        return None
    root = f"rsqrtf{source.node_text(arguments)}"
    if right == call and re.fullmatch(r"1|1\.?0*[fF]", source.node_code(left)):
        return [TextEdit(quotient.start_byte, arguments.start_byte, "rsqrtf")], _ROOT
    if not is_float(kernel, left) or not is_float(kernel, uncommented(arguments)[0]):
        return None
    times = TextEdit(operator.start_byte, operator.end_byte, "*")
    if right == call:
        return [times, TextEdit(function.start_byte, function.end_byte, "rsqrtf")], _ROOT
    return [times, TextEdit(right.start_byte, right.end_byte, f"({root} * {root} * {root})")], _CUBED


def _divided(source: Source, root: Node) -> Node | None:
    """The quotient `a / sqrtf(x)` or `a / (x * sqrtf(x))`, x a variable, that a root is in the divisor of."""
    divisor, product = root, root.parent
    if product is not None and product.type == "binary_expression" and any(c.type == "*" for c in product.children):
        sides = (product.child_by_field_name("left"), product.child_by_field_name("right"))
        other = next((s for s in sides if s is not None and s != root), None)
        inside = uncommented(root.child_by_field_name("arguments"))
        same = other is not None and [source.node_text(n) for n in inside] == [source.node_text(other)]
        if not same or other is None or other.type != "identifier" or product.parent is None:
            return None
        divisor = product.parent
        if divisor.type != "parenthesized_expression":
            return None
    parent = divisor.parent
    if parent is None or parent.type != "binary_expression" or not any(c.type == "/" for c in parent.children):
        return None
    return parent if parent.child_by_field_name("right") == divisor else None


def _quotient(kernel: Kernel, indices: Indices, node: Node, edits: list[TextEdit]) -> list[TextEdit]:
    """A quotient of floats in a loop by `__fdividef`; nothing where one of the edits has it already."""
    source = kernel.source
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None or not any(c.type == "/" for c in node.children) or in_macro(node):
        return []
    loop = enclosing(node, *LOOPS)
    if loop is None or any(e.start < right.start_byte and left.end_byte < e.end for e in edits):
        return []
    if not is_float(kernel, node) or right.type == "number_literal" or made_whole(source, indices, node):
        return []
    if any(c.type == "comment" for c in (*node.children, *right.children)):
        return []
    counts = {source.node_text(n) for n in descendants(right, "identifier")}
    if not counts or counts <= macro_texts(source).keys() or as_number(indices.read(right)) is not None:
        return []  # of a constant, which the compiler knows the reciprocal of where it is exact
    outer, inner = bare(left), bare(right)
    return [
        TextEdit(node.start_byte, outer.start_byte, "__fdividef("),
        TextEdit(outer.end_byte, inner.start_byte, ", "),
        TextEdit(inner.end_byte, right.end_byte, ")"),
    ]


def _is_in_range(indices: Indices, call: Node) -> bool:
    """Whether `__powf` holds for a call's arguments: y * log2(x) is a number."""
    source = indices.kernel.source
    arguments = [source.node_text(a) for a in uncommented(call.child_by_field_name("arguments"))]
    if len(arguments) != 2:
        return False
    numbers = [float(a.rstrip("fF")) if _LITERAL.fullmatch(a) else 0.0 for a in arguments]
    base = uncommented(call.child_by_field_name("arguments"))[0]
    is_parameter = (
        base.type == "identifier"
        and indices.variables.is_fixed(arguments[0])
        and (arguments[0] in indices.variables.parameters)
    )
    return numbers[0] >= 2 or is_parameter or is_not_negative(indices, base)


def is_not_negative(indices: Indices, node: Node, deep: int = 0) -> bool:
    """Whether an expression cannot be negative: sums, products and quotients of squares and of functions that cannot,
    and variables that are set to nothing else."""
    source = indices.kernel.source
    sides = [node.child_by_field_name(side) for side in ("left", "right")]
    match node.type:
        case "number_literal":
            return True
        case "parenthesized_expression":
            inner = uncommented(node)
            return len(inner) == 1 and is_not_negative(indices, inner[0], deep)
        case "call_expression":
            return called_name(node, source) in _NOT_NEGATIVE
        case "binary_expression":
            operator = next((c.type for c in node.children if not c.is_named), "")
            texts = {squeezed(source.node_code(side)) for side in sides if side is not None}
            square = operator == "*" and len(texts) == 1 and not any(True for _ in descendants(node, "call_expression"))
            alike = all(side is not None and is_not_negative(indices, side, deep) for side in sides)
            return square or (operator in ("+", "*", "/") and alike)
        case "identifier" if deep < _DEEPEST:
            given = _values(indices, source.node_text(node))
            return bool(given) and all(is_not_negative(indices, value, deep + 1) for value in given)
    return False


def _values(indices: Indices, name: str) -> list[Node]:
    """All that a variable of the kernel is set to; empty where that is not certain."""
    source, block = indices.kernel.source, body(indices.kernel)
    if name not in indices.variables.types or name in indices.variables.parameters or block is None:
        return []
    found: list[Node] = []
    for node in descendants(
        block, "init_declarator", "assignment_expression", "update_expression", "pointer_expression"
    ):
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        target = target or node.child_by_field_name("argument")
        if target is None or source.node_text(target) != name:
            continue
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        plain = node.type == "init_declarator" or (operator is not None and source.node_text(operator) in ("=", "+="))
        if value is None or not plain:
            return []
        found.append(value)
    return found
