r"""Read the error of a launch, in the way that the file already does it.

## Before

```cuda
#include <cstdio>
#include <cstdlib>

__global__ void fill(float *out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = value;
}

void run(float *out, int n) {
  fill<<<(n + 255) / 256, 256>>>(out, 1.0f, n);
}
```

## After

```cuda
#include <cstdio>
#include <cstdlib>

__global__ void fill(float *out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = value;
}

void run(float *out, int n) {
  fill<<<(n + 255) / 256, 256>>>(out, 1.0f, n);
  if (cudaError_t error = cudaGetLastError()) {
    fprintf(stderr, "fill: %s\n", cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}
```

The first of these that fits is used:

- a macro or function that the file defines for launches, such as `CHECK_LAUNCH()`;
- a macro or function that the file wraps around CUDA calls, such as `CUDA_CHECK(...)`, `gpuErrchk(...)` or
  `checkCudaErrors(...)`;
- `C10_CUDA_KERNEL_LAUNCH_CHECK()` in an extension of PyTorch;
- `return error;` in a function that returns `cudaError_t`;
- a message and `exit`, as above.

## Assumes

- The launch is a statement of its own in host code.

## Cost

Some nanoseconds of host time: `cudaGetLastError()` does not wait for the kernel. It also clears the error that it
reads, so a check further down no longer sees it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._code import STATEMENTS, called_name, host_launches, in_macro, overlaps
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, enclosing, node_at, uncommented
from warpwright.syntax.source import Source, Span

NAME = "check-launch"
title = "Check the launch"
goals = ("fix",)

_READS_ERROR = re.compile(r"\bcuda(?:GetLastError|PeekAtLastError)\b")
_HANDLES_ERROR = re.compile(r"\bcuda(?:Success|GetErrorString|GetErrorName)\b")
_RUNTIME_CALL = re.compile(r"cuda[A-Z]\w*")
_NOT_WRAPPERS = re.compile(
    r"cudaGetError\w+|(?:static|reinterpret|const)_cast|assert|return|if|while|switch|\(?void\)?"
)
_ACTS = re.compile(r"\b(?:throw|goto|cerr|cout|(?!cuda|sizeof|if|while|for|switch|return)\w+\s*\()")
"""What makes a helper more than a question about the error: it says, ends or calls something."""
_WORKS = re.compile(
    r"<<<|\bcuda(?!GetLastError|PeekAtLastError|GetErrorString|GetErrorName|DeviceSynchronize|StreamSynchronize)[A-Z]\w*\s*\("
)
"""What no check of a launch does: a function with it is a part of the program that checks its own launches."""
_STD = re.compile(r"\bstd::(?:f?printf|exit|abort|malloc|free)\b")
_TORCH = re.compile(r"#\s*include\s*[<\"](?:torch/|ATen/|c10/)")
_TORCH_CHECK_HEADER = re.compile(
    r"#\s*include\s*[<\"](?:c10/cuda/CUDAException\.h|ATen/cuda/(?:CUDAContext|Exceptions)\.h)"
)


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    unchecked = [launch for launch in host_launches(kernel) if not launch.checked]
    if at is not None:
        unchecked = [launch for launch in unchecked if launch.span is not None and overlaps(launch.span, at)]
    if not unchecked:
        return Declined(NAME, f"Every launch of {kernel.name} here is checked already.")
    return _check(kernel, unchecked[-1])


def _check(kernel: Kernel, launch: Launch) -> Rewrite | Declined:
    span = launch.span
    node = node_at(span.source.root, span.start, span.end) if span is not None else None
    if span is None or node is None:
        return Declined(NAME, f"The launch at {launch.source} is not in the text.")
    if "<<<" not in span.text:
        return Declined(NAME, f"The launch at {launch.source} is in a macro, which is where the check belongs.")
    statement = node if node.type == "expression_statement" else node.parent
    if statement is None or statement.type != "expression_statement" or in_macro(statement):
        return Declined(
            NAME, f"The launch at {launch.source} is part of a larger expression, so no statement can follow it."
        )
    function = enclosing(statement, "function_definition")
    if function is None:
        return Declined(NAME, f"The launch at {launch.source} is not in a function.")
    source = span.source
    head = source.text(function.start_byte, statement.start_byte)
    if re.search(r"__global__|__device__", head.split("{", 1)[0]):
        return Declined(NAME, f"The launch at {launch.source} is in device code, where errors are read in another way.")
    lines, includes, manner = _style(kernel, source, function, statement)
    return Rewrite(
        rewrite=NAME,
        title=f"Check the launch of {kernel.name}",
        source=source,
        edits=tuple(_include_edits(source, includes) + _insert(source, statement, lines)),
        explanation=(
            f"A launch that fails says nothing by itself. The check reads its error {manner}, without waiting for "
            "the kernel."
        ),
    )


def _style(kernel: Kernel, source: Source, function: Node, statement: Node) -> tuple[list[str], list[str], str]:
    """The lines of the check, headers that it needs, and how it is said."""
    launch_check = _launch_checker(source, statement.start_byte)
    if launch_check:
        return [f"{launch_check};"], [], f"with this file's {launch_check.split('(')[0]}"
    wrapper = _wrapper(source, statement.start_byte)
    if wrapper:
        return [f"{wrapper}(cudaGetLastError());"], [], f"with this file's {wrapper}"
    text = source.text()
    if _TORCH.search(text):
        header = [] if _TORCH_CHECK_HEADER.search(text) else ["#include <c10/cuda/CUDAException.h>"]
        return ["C10_CUDA_KERNEL_LAUNCH_CHECK();"], header, "as PyTorch's own kernels do"
    error = _fresh_name(source, function)
    returned = function.child_by_field_name("type")
    plain = (function.child_by_field_name("declarator") or function).type == "function_declarator"
    plain = plain and enclosing(statement, "function_definition", "lambda_expression") == function
    if plain and returned is not None and source.node_text(returned) == "cudaError_t":
        return (
            [f"if (cudaError_t {error} = cudaGetLastError())", f"\treturn {error};"],
            [],
            "and returns it to the caller",
        )
    includes = [
        f"#include <{names[0]}>"
        for names in (("cstdio", "stdio.h"), ("cstdlib", "stdlib.h"))
        if not re.search(rf"#\s*include\s*[<\"](?:{'|'.join(map(re.escape, names))})[>\"]", text)
    ]
    std = "std::" if _STD.search(text) else ""
    return (
        [
            f"if (cudaError_t {error} = cudaGetLastError()) {{",
            f'\t{std}fprintf(stderr, "{kernel.name}: %s\\n", cudaGetErrorString({error}));',
            f"\t{std}exit(EXIT_FAILURE);",
            "}",
        ],
        includes,
        "and ends the program with a message",
    )


def _launch_checker(source: Source, before: int) -> str:
    """A call that takes no error and reads the last one, such as `CHECK_LAUNCH()`; "" for none."""
    for helper in _helpers(source):
        fits = helper.reads_error and helper.handles_error and helper.acts and not helper.works
        if helper.end <= before and not helper.parameters and fits:
            return f"{helper.name}()"
    return 'getLastCudaError("kernel launch failed")' if "getLastCudaError" in _statements(source).used else ""


def _wrapper(source: Source, before: int) -> str:
    """What the file wraps around CUDA's calls, as a statement; "" for nothing.

    What it already uses most counts before what it only defines.
    """
    helpers = _helpers(source)
    late = {helper.name for helper in helpers} - {helper.name for helper in helpers if helper.end <= before}
    late |= {helper.name for helper in helpers if not helper.acts}
    for name, _ in _statements(source).wrappers.most_common():
        if name not in late:
            return name
    for helper in helpers:
        fits = helper.handles_error and helper.acts and not helper.reads_error
        if helper.end <= before and helper.parameters == 1 and fits:
            return helper.name
    return ""


@dataclass(frozen=True, slots=True)
class _Helper:
    """A macro, or a function that takes an error or nothing; `parameters` counts those without a default.

    `acts` is false for one that only answers, such as `#define FAILED(e) ((e) != cudaSuccess)`, and `works` true for
    one that does more than check.
    """

    name: str
    end: int
    parameters: int
    reads_error: bool
    handles_error: bool
    acts: bool
    works: bool


@dataclass(frozen=True, slots=True)
class _Statements:
    """Names that are called, and those that are called as statements around one call of CUDA's runtime."""

    used: frozenset[str]
    wrappers: Counter[str]


@lru_cache(maxsize=4)
def _helpers(source: Source) -> tuple[_Helper, ...]:
    found: list[_Helper] = []
    for node in descendants(source.root, "preproc_function_def", "function_definition"):
        if node.type == "preproc_function_def":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            parameters = node.child_by_field_name("parameters")
        else:
            declarator, value = node.child_by_field_name("declarator"), node.child_by_field_name("body")
            if declarator is None or declarator.type != "function_declarator":
                continue
            name, parameters = (
                declarator.child_by_field_name("declarator"),
                declarator.child_by_field_name("parameters"),
            )
            if parameters is None or (parameters.named_children and "cudaError_t" not in source.node_text(parameters)):
                continue
        if name is None or value is None:
            continue
        needed = (
            [p for p in parameters.named_children if p.type in ("identifier", "parameter_declaration")]
            if parameters
            else []
        )
        body = source.node_text(value)
        reads, handles = bool(_READS_ERROR.search(body)), bool(_HANDLES_ERROR.search(body))
        acts = _ACTS.search(body) is not None
        if node.type == "preproc_function_def":
            acts = acts or re.search(r"\breturn\b", body) is not None
        works = _WORKS.search(body) is not None
        found.append(_Helper(source.node_text(name), node.end_byte, len(needed), reads, handles, acts, works))
    return tuple(found)


@lru_cache(maxsize=4)
def _statements(source: Source) -> _Statements:
    used: set[str] = set()
    wrappers: Counter[str] = Counter()
    for call in descendants(source.root, "call_expression"):
        arguments, function = call.child_by_field_name("arguments"), call.child_by_field_name("function")
        if arguments is None or function is None or function.type not in ("identifier", "qualified_identifier"):
            continue
        name = source.node_text(function)
        used.add(name)
        given = uncommented(arguments)
        is_statement = call.parent is not None and call.parent.type == "expression_statement"
        if (
            is_statement
            and len(given) == 1
            and given[0].type == "call_expression"
            and not _NOT_WRAPPERS.fullmatch(name)
        ):
            wrappers[name] += _RUNTIME_CALL.fullmatch(called_name(given[0], source)) is not None
    return _Statements(frozenset(used), +wrappers)


def _fresh_name(source: Source, function: Node) -> str:
    """A name for the error that the function does not use."""
    taken = {source.node_text(n) for n in descendants(function, "identifier")}
    return next(name for name in ("error", "launchError", "launchStatus", "cudaLaunchError") if name not in taken)


def _insert(source: Source, statement: Node, lines: list[str]) -> list[TextEdit]:
    """The check on lines of its own after the launch; in braces where the launch is a body without them."""
    indent = source.line_indent(statement.start_byte)
    unit = "\t" if "\t" in indent else _indent_unit(source)
    newline = "\r\n" if b"\r\n" in source.data else "\n"
    end = _end_with_comment(source, statement)
    parent, before = statement.parent, statement.prev_sibling
    while before is not None and before.type == "comment":
        before = before.prev_sibling
    if parent is None or before is None or parent.type not in STATEMENTS:
        return [TextEdit(end, end, _block(lines, newline + indent, unit))]
    outer = source.line_indent(parent.start_byte)
    edits = [TextEdit(before.end_byte, before.end_byte, " {")]
    between = source.text(before.end_byte, statement.start_byte)
    if not between.strip() and "\n" not in between:
        indent = outer + unit
        edits = [TextEdit(before.end_byte, statement.start_byte, " {" + newline + indent)]
    return [*edits, TextEdit(end, end, _block(lines, newline + indent, unit) + newline + outer + "}")]


def _block(lines: list[str], start: str, unit: str) -> str:
    return "".join(start + line.replace("\t", unit) for line in lines)


def _end_with_comment(source: Source, statement: Node) -> int:
    """Where the launch ends, with a comment that follows it on its line."""
    end = statement.end_byte
    rest = source.text(end, _line_end(source, end))
    return (
        end + len(rest.rstrip().encode())
        if re.fullmatch(r"\s*(//(?:.*[^\\\s])?\s*|/\*(?:(?!\*/).)*\*/\s*)", rest)
        else end
    )


def _line_end(source: Source, offset: int) -> int:
    end = source.data.find(b"\n", offset)
    return end if end >= 0 else len(source.data)


def _indent_unit(source: Source) -> str:
    """How far the file indents a block: the most common step from one line to a deeper one; two spaces for none."""
    steps: Counter[int] = Counter()
    depth = 0
    for line in source.text().splitlines():
        if not line.strip():
            continue
        spaces = len(line) - len(line.lstrip(" "))
        if depth < spaces <= depth + 8:
            steps[spaces - depth] += 1
        depth = spaces
    return " " * (steps.most_common(1)[0][0] if steps else 2)


def _include_edits(source: Source, includes: list[str]) -> list[TextEdit]:
    """Each header after the last one that sorts before it, where the file has any; else before the first code."""
    newline = "\r\n" if b"\r\n" in source.data else "\n"
    present = [n for n in source.root.children if n.type == "preproc_include"]
    guard = next((n for n in source.root.children if n.type == "preproc_ifdef"), None)
    if not present and guard is not None:
        present = [n for n in guard.children if n.type == "preproc_include"]
    if not present:
        first = next((n for n in source.root.children if n.type != "comment"), None)
        at = first.start_byte if first is not None else 0
        return [TextEdit(at, at, newline.join([*includes, "", ""]))] if includes else []
    system = [n for n in present if "<" in source.node_text(n)]
    edits: list[TextEdit] = []
    for include in includes:
        before = [n for n in system if source.node_text(n).strip() < include]
        at = (before or present)[-1].end_byte
        edits.append(TextEdit(at, at, include + newline))
    return edits
