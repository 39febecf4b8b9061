"""A formula as CUDA C++: the kernels, the launch function, the whole file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from warpwright.formulas.functions import FUNCTIONS
from warpwright.formulas.model import Formula
from warpwright.formulas.normal import normal, tensors_of
from warpwright.schedules.model import Schedule
from warpwright.writer.alternatives import alternatives as laid_otherwise
from warpwright.writer.code import Code, Kernel, Launch, Step, pruned
from warpwright.writer.fast import ScheduleError, made_code
from warpwright.writer.helpers import helper_texts
from warpwright.writer.launch import HOST_HELPERS, launch_function
from warpwright.writer.names import part_name, with_free_names
from warpwright.writer.partition import partition
from warpwright.writer.pointwise import pointwise
from warpwright.writer.scatter import filling
from warpwright.writer.text import broken
from warpwright.writer.types import headers_for
from warpwright.writer.wide import with_wide_products

__all__ = ["ScheduleError", "alternatives", "file_text", "in_lines", "instances_text", "plain", "written"]

_MATHS = "|".join(each for each, function in FUNCTIONS.items() if function.result == "float" or each.startswith("f"))
_HEADERS = {
    "algorithm": re.compile(r"std::(?:min|max)\b"),
    "climits": re.compile(r"\b(?:INT|LLONG)_(?:MIN|MAX)\b"),
    "cmath": re.compile(rf"\b(?:INFINITY|NAN|M_PI|isnan|isinf|isfinite|(?:{_MATHS}|ceil|rint|trunc|pow)f?\()"),
    "cstdint": re.compile(r"\bu?int(?:8|16|32|64|ptr)_t\b"),
    "cuda_pipeline.h": re.compile("__pipeline_"),
    "initializer_list": re.compile("std::initializer_list"),
}
"""Headers beside those of types, by what of them a text names."""


def plain(formula: Formula, name: str) -> Code:
    """A thread for each element: right for every size, and as fast as a first version by hand."""
    formula = _prepared(formula)
    kernels: list[Kernel] = []
    steps: list[Step] = []
    kept: dict[str, None] = {}
    groups = partition(formula)
    for number, group in enumerate(groups):
        own = f"{name}_kernel" if len(groups) == 1 else part_name(name, group.stages[-1])
        if filled := filling(formula, group):
            kernel, step = pointwise(*filled, part_name(f"{name}_fill", group.stages[0]))
            kernels.append(kernel)
            steps.append(step)
        if any(each.name == own for each in kernels):
            own = f"{own}_{number}"
        kernel, step = pointwise(formula, group, own)
        kernels.append(kernel)
        steps.append(step)
        kept.update(dict.fromkeys(each.name for each in group.stages if each.name in group.kept))
    tensors = tensors_of(formula)
    return pruned(Code(name, formula, tuple(kernels), tuple(steps), tuple(tensors[each] for each in kept)))


def written(
    formula: Formula, name: str, schedule: Schedule | None = None, sizes: Mapping[str, int] | None = None
) -> Code:
    """The formula with the schedules that its shape, its types and, where given, `sizes` suggest, or with one that a
    caller wants; each path is tested for at run time, and the general one stands last.

    Raises ScheduleError where the wanted schedule does not fit.
    """
    return pruned(made_code(_prepared(formula), name, schedule, sizes))


def alternatives(formula: Formula, sizes: Mapping[str, int]) -> tuple[Schedule, ...]:
    """The schedules that a search tries at some sizes."""
    return laid_otherwise(_prepared(formula), sizes)


def _prepared(formula: Formula) -> Formula:
    return with_wide_products(with_free_names(normal(formula)))


def file_text(*codes: Code) -> str:
    """The whole file, of one formula or several: includes, helpers, kernels, launch functions."""
    launches = [launch_function(code) for code in codes]
    host = [text for name, text in HOST_HELPERS.items() if any(f"{name}(" in each for each in launches)]
    parts = [*_kernels([each for code in codes for each in code.kernels]), *host, "}  // namespace"]
    return _file([*(each.rstrip() for each in parts), *launches], codes)


def instances_text(codes: Sequence[Code], launches: Iterable[Launch]) -> str:
    """The kernels of these launches alone, for a compiler that is to make no other instances of templates."""
    called = dict.fromkeys((each.kernel, each.arguments) for each in launches)
    names = {kernel for kernel, _ in called}
    parts = _kernels([each for code in codes for each in code.kernels if each.name in names])
    instances = [f"{kernel}<{', '.join(arguments)}>" if arguments else kernel for kernel, arguments in called]
    listed = ",\n".join(f"    reinterpret_cast<const void*>({each})" for each in instances)
    parts += ["}  // namespace", f"const void* const kernels[] = {{\n{listed}}};"]
    return _file([each.rstrip() for each in parts], codes)


def _file(parts: Sequence[str], codes: Sequence[Code]) -> str:
    """The parts behind the headers that they need."""
    text = "\n\n".join(parts) + "\n"
    types = {each.type for code in codes for each in code.formula.tensors.values()}
    types |= {each for code in codes for kernel in code.kernels for each in kernel.types}
    headers = {"cuda_runtime.h", *headers_for(types), *(name for name, needs in _HEADERS.items() if needs.search(text))}
    return "\n".join(f"#include <{each}>" for each in sorted(headers)) + f"\n\n{text}"


def _kernels(kernels: Sequence[Kernel]) -> list[str]:
    """The beginning of a namespace, which is left open: helpers and kernels."""
    helpers = helper_texts({each for kernel in kernels for each in kernel.helpers})
    return ["namespace {", *helpers, *(in_lines(each.text) for each in kernels)]


def in_lines(text: str) -> str:
    """The text of a kernel as a file has it: no line is too long."""
    return "\n".join(part for line in text.split("\n") for part in broken(line))
