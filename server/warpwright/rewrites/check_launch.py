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

int main() {
  float *out;
  cudaMalloc(&out, 1000 * sizeof(float));
  fill<<<4, 256>>>(out, 1.0f, 1000);
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

int main() {
  float *out;
  cudaMalloc(&out, 1000 * sizeof(float));
  fill<<<4, 256>>>(out, 1.0f, 1000);
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
- a message and `exit`, as above, in a program: a file with `main`, or one whose launching functions get no pointers;
  by a macro `CHECK_LAUNCH()`, which is added, where the file has several launches to check;
- a message alone, with `cudaPeekAtLastError()`, which leaves the error for the caller.

## Assumes

- The launch is a statement of its own in host code. Of launches in the branches of one `switch` or `if`, or in a loop
  in which the host learns nothing of what they did, the error is read once, after it: it stays until it is read.

## Cost

Some nanoseconds of host time: neither call waits for the kernel. `cudaGetLastError()` also clears the error that it
reads, so a check further down no longer sees it.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from pathlib import PurePath

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.facts.launch_checks import check_places, is_covered_later, is_waited_for, waits_of
from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._code import STATEMENTS, host_launches, in_macro, overlaps
from warpwright.rewrites._error_checks import (
    CHECK_LAUNCH,
    fresh_name,
    include_edits,
    is_extension,
    launch_checker,
    launch_macro,
    message_headers,
    returns_error,
    std_prefix,
    torch_headers,
    wrapper_of,
)
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, enclosing, launch_configuration, node_at
from warpwright.syntax.source import Source, Span

NAME = "check-launch"
title = "Check the launch"
goals = ("fix",)
relies_on = ()

_DEVICE = re.compile(r"__global__|__device__")
_READS_ERROR = re.compile(r"\bcuda(?:GetLastError|PeekAtLastError)\b")
_MAIN = re.compile(r"^\s*(?:int|auto|void)\s+main\s*\(", re.MULTILINE)


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
    if "<<<" not in span.code:
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
    head = source.code_text(function.start_byte, statement.start_byte)
    if _DEVICE.search(head.split("{", 1)[0]):
        return Declined(NAME, f"The launch at {launch.source} is in device code, where errors are read in another way.")
    call = next((each for each in descendants(statement, "call_expression") if launch_configuration(each)), node)
    statement = check_places(source, function).get(call.start_byte, statement)
    label = kernel.name if len(_read_here(source, function, statement)) == 1 else function_name(source, function)
    lines, includes, macro, manner = _style(label or kernel.name, source, function, statement)
    return Rewrite(
        rewrite=NAME,
        title=f"Check the launch of {kernel.name}",
        source=source,
        edits=tuple(include_edits(source, includes, macro) + _insert(source, statement, lines)),
        explanation=(
            f"A launch that fails says nothing by itself. The check reads its error {manner}, without waiting for "
            "the kernel."
        ),
    )


def _read_here(source: Source, function: Node, statement: Node) -> set[str]:
    """The kernels whose errors a check behind a statement reads: those launched since the function last waited."""
    waits = [start for start in waits_of(source, function) if start < statement.start_byte]
    return {
        _launched(source, call)
        for call in descendants(function, "call_expression")
        if max(waits, default=0) < call.start_byte < statement.end_byte
    } - {""}


def _launched(source: Source, call: Node) -> str:
    """The kernel that a call launches; "" for another call."""
    name = call.child_by_field_name("function")
    return source.node_code(name).split("<")[0] if name is not None and launch_configuration(call) is not None else ""


def _style(label: str, source: Source, function: Node, statement: Node) -> tuple[list[str], list[str], str, str]:
    """The check, the headers and the macro that it needs, and how it is said; its message begins with `label`."""
    launch_check = launch_checker(source, statement.start_byte)
    if launch_check:
        return [f"{launch_check};"], [], "", f"with this file's {launch_check.split('(')[0]}"
    wrapper = wrapper_of(source, statement)
    if wrapper:
        return [f"{wrapper}(cudaGetLastError());"], [], "", f"with this file's {wrapper}"
    if is_extension(source):
        return ["C10_CUDA_KERNEL_LAUNCH_CHECK();"], torch_headers(source), "", "as PyTorch's own kernels do"
    error = fresh_name(source, function)
    if returns_error(source, function, statement):
        return (
            [f"if (cudaError_t {error} = cudaGetLastError())", f"\treturn {error};"],
            [],
            "",
            "and returns it to the caller",
        )
    std = std_prefix(source)
    message = f'\t{std}fprintf(stderr, "{label}: %s\\n", cudaGetErrorString({error}));'
    if not _is_of_program(source):
        lines = [f"if (cudaError_t {error} = cudaPeekAtLastError())", message]
        return lines, message_headers(source, "cstdio"), "", "and prints it; the caller can still read it"
    headers = message_headers(source, "cstdio", "cstdlib")
    if _has_several(source) and CHECK_LAUNCH not in source.code_text():
        return [f"{CHECK_LAUNCH}();"], headers, launch_macro(std), "with a macro, and ends the program with a message"
    return (
        [f"if (cudaError_t {error} = cudaGetLastError()) {{", message, f"\t{std}exit(EXIT_FAILURE);", "}"],
        headers,
        "",
        "and ends the program with a message",
    )


@lru_cache(maxsize=4)
def _has_several(source: Source) -> bool:
    """Whether a program's file, which no other includes, has several launches to check that end it where they fail."""
    if PurePath(source.path).suffix not in (".cu", ".cpp", ".cc", ".cxx"):
        return False
    found = 0
    for function in _launching(source):
        text = source.code_text(function.start_byte, function.end_byte)
        read = max((each.end() for each in _READS_ERROR.finditer(text)), default=0)
        after = function.start_byte + len(encoded(text[:read]))
        for call in descendants(function, "call_expression"):
            if launch_configuration(call) is None or call.start_byte < after or in_macro(call):
                continue
            found += not is_covered_later(source, function, call) and not is_waited_for(source, call)
    return found > 1


@lru_cache(maxsize=4)
def _is_of_program(source: Source) -> bool:
    """Whether a file's functions may end the process: it has `main`, or none of those that launch gets anything from a
    caller that it would have to give back. A file has one manner."""
    if _MAIN.search(source.code_text()) is not None:
        return True
    texts = (source.code_text(each.start_byte, each.end_byte) for each in _launching(source))
    return not any(re.search(r"[*&\[]", text.partition("{")[0].partition("(")[2]) for text in texts)


def _launching(source: Source) -> list[Node]:
    """The host functions that launch a kernel."""
    found = [each for each in descendants(source.root, "function_definition") if "<<<" in source.node_code(each)]
    return [each for each in found if not _DEVICE.search(source.node_code(each).partition("{")[0])]


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
    """Where the launch ends, with a comment and blanks that follow it on its line."""
    end = statement.end_byte
    rest = source.text(end, _line_end(source, end))
    is_all = re.fullmatch(r"\s*(//(?:.*[^\\\s])?\s*|/\*(?:(?!\*/).)*\*/\s*)?", rest.removesuffix("\r"))
    return end + len(encoded(rest.removesuffix("\r"))) if is_all else end


def _line_end(source: Source, offset: int) -> int:
    end = source.data.find(b"\n", offset)
    return end if end >= 0 else len(source.data)


def _indent_unit(source: Source) -> str:
    """How far the file indents a block: the most common step from one line to a deeper one; two spaces for none."""
    steps: Counter[int] = Counter()
    depth = 0
    for line in source.code_text().splitlines():
        if not line.strip():
            continue
        spaces = len(line) - len(line.lstrip(" "))
        if depth < spaces <= depth + 8:
            steps[spaces - depth] += 1
        depth = spaces
    return " " * (steps.most_common(1)[0][0] if steps else 2)
