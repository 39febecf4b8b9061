"""The body of a kernel whose name and parameters are another's: one launch, which begins threads of one dimension.

A thread computes a result, or a row of results where these share reductions of the row. What else a formula may take, a
second launch or arrays in between, has no place in a body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.formulas.model import Formula
from warpwright.formulas.normal import normal
from warpwright.formulas.tree import Num, product
from warpwright.formulas.types import TYPES, computed
from warpwright.writer.code import Code, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.helpers import HELPERS
from warpwright.writer.names import renamed
from warpwright.writer.partition import partition
from warpwright.writer.places import coordinates
from warpwright.writer.pointwise import THREADS, flatten, stages_in
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text, broken
from warpwright.writer.types import NAMES
from warpwright.writer.wide import with_wide_products

_HELPER = re.compile(r"(\w+) \w+\(([^()]*)\) \{\n(.*?)\n\}", re.DOTALL)
"""What a lambda takes over of a helper."""


class NoBodyError(Exception):
    """A formula that no single kernel of this form computes: one sentence."""


def body(
    formula: Formula, head: str, name: str, parameters: Sequence[str], sizes: Mapping[str, str], index_type: str
) -> tuple[Code, list[str]]:
    """The code of a kernel with the head of a caller, `__global__ void f(...)`, and the lines of its body. `parameters`
    are its names in order, `sizes` their names for those of the formula. Raises NoBodyError."""
    formula = with_wide_products(renamed(normal(formula), {}, {**sizes, **_free_dims(formula, parameters)}))
    groups = partition(formula)
    own = groups[0].dims
    if not own or any(each.is_scatter or each.dims[: len(own)] != own for each in groups):
        raise NoBodyError("The formula takes more than one kernel.")
    if any(len(each.dims) > len(own) + 1 for each in groups):
        raise NoBodyError("The formula takes more than one kernel.")
    scope = Scope(formula)
    scope.index_type = index_type
    text = Text(depth=1)
    thread = own[0] if len(own) == 1 else scope.free("i", "at", "element", "thread")
    count = product([formula.dims[each] for each in own])
    block = "blockIdx.x" if index_type == "int" else f"static_cast<{index_type}>(blockIdx.x)"
    text(f"const {index_type} {thread} = {block} * blockDim.x + threadIdx.x;")
    text(f"if ({thread} >= {scope.expressions.of(count)}) return;")
    flatten(scope, groups[0], thread)
    inner = Text(depth=1)
    for group in groups:
        alone = replace(group, kept=frozenset())
        if len(group.dims) == len(own):
            stages_in(inner, scope, alone, index_type)
            continue
        along = group.dims[-1]
        extent = scope.expressions.of(formula.dims[along])
        with inner.block(f"for ({index_type} {along} = 0; {along} < {extent}; ++{along})"):
            stages_in(inner, scope, alone, index_type)
    if len(own) > 1:
        for line in coordinates(scope.expressions, own, formula.dims, thread, str(inner)):
            text(line.replace("const Index ", f"const {index_type} "))
    stages = [stage.name for group in groups for stage in group.stages if stage.temporary]
    if {*stages} & {*scope.used, *scope.stored} or {*scope.used} - {*parameters}:
        raise NoBodyError("The formula keeps what the signature has no place for.")
    lines = _with_lambdas(scope, [part for line in (*text.lines, *inner.lines) for part in broken(line)])
    step = Step((Path((Launch(name, (ceiling(count, THREADS), Num(1), Num(1)), (THREADS, 1, 1)),)),), count)
    whole = "\n".join([f"{head} {{", *lines, "}"])
    kernel = Kernel(name, whole, tuple(parameters), False, index_type, frozenset(), _types(scope))
    return Code(f"launch_{name}", formula, (kernel,), (step,)), lines


def _types(scope: Scope) -> frozenset[str]:
    return frozenset({each.type for each in scope.touched()} | scope.expressions.types)


def _free_dims(formula: Formula, parameters: Sequence[str]) -> dict[str, str]:
    """Other names for the dimensions that are called as a parameter is."""
    taken = {*parameters, *formula.dims, *formula.tensors, *formula.scalars}
    free = (letter for letter in "pqtuvwijkl" if letter not in taken)
    return dict(zip((each for each in formula.dims if each in parameters), free, strict=False))


def _with_lambdas(scope: Scope, lines: list[str]) -> list[str]:
    """The lines behind the helpers that they call, as functions of their own."""
    wanted = set(scope.expressions.helpers)
    wanted |= {needed for each in wanted for needed in HELPERS[each].needs}
    kinds = {computed(TYPES[each.type]).name for each in scope.touched()}
    floats = {NAMES[each] for each in kinds if each in ("f32", "f64")}
    found: list[str] = []
    for name in (each for each in HELPERS if each in wanted):
        helper = _HELPER.search(HELPERS[name].text)
        named = {kind for line in lines for kind in re.findall(rf"\b{name}<([\w ]+)>\(", line)}
        if helper is None or any(each not in wanted for each in HELPERS[name].needs) or len(named or floats) != 1:
            raise NoBodyError(f"The formula calls {name}, which a body has no place for.")
        (kind,) = named or floats
        result, taken, inside = (re.sub(r"\bT\b", kind, each) for each in helper.groups())
        bound = "&" if HELPERS[name].needs else ""
        if "\n" in inside:
            whole = [f"    const auto {name} = [{bound}]({taken}) -> {result} {{"]
            found += [*whole, *(f"    {each}" for each in inside.split("\n")), "    };"]
        else:
            found.append(f"    const auto {name} = [{bound}]({taken}) {{ {inside.strip()} }};")
        lines = [line.replace(f"{name}<{kind}>(", f"{name}(") for line in lines]
    return [*found, *lines]
