r"""Read the errors of CUDA's calls that nobody looks at, in the way that the file already does it.

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
  const int n = 10000;
  float *out;
  cudaMalloc(&out, n * sizeof(float));
  fill<<<(n + 255) / 256, 256>>>(out, 1.0f, n);
  cudaDeviceSynchronize();
  cudaFree(out);
}
```

## After

```cuda
#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(...)                                                                \
  do {                                                                                 \
    if (cudaError_t status_ = (__VA_ARGS__)) {                                         \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
      exit(EXIT_FAILURE);                                                              \
    }                                                                                  \
  } while (0)

__global__ void fill(float *out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = value;
}

int main() {
  const int n = 10000;
  float *out;
  CUDA_CHECK(cudaMalloc(&out, n * sizeof(float)));
  fill<<<(n + 255) / 256, 256>>>(out, 1.0f, n);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(out));
}
```

The first of these that fits is used:

- a macro or function that the file wraps around CUDA calls, such as `CHECK(...)`, `gpuErrchk(...)` or
  `checkCudaErrors(...)`;
- `C10_CUDA_CHECK(...)` in an extension of PyTorch;
- `return error;` in a function that returns `cudaError_t`;
- a macro of its own, as above, after the file's includes; in a header none, as it would reach each file that includes
  it.

## Assumes

- The call is a statement of its own in host code. Calls whose error is an answer, such as `cudaStreamQuery`, those that
  are cast to void, calls in destructors and calls that clean up after an error are left as they are.

## Cost

A comparison for each call. A program that went on after an error ends there now, with the reason. The launches'
own errors are *check-launch*'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.functions import called_name, function_name
from warpwright.cuda.linkage import is_header
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import in_macro, overlaps
from warpwright.rewrites._error_checks import (
    fresh_name,
    has_bare_comma,
    include_edits,
    is_extension,
    leading_includes,
    message_headers,
    returns_error,
    std_prefix,
    torch_headers,
    wrapper_of,
)
from warpwright.rewrites._layout import free_name
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants, enclosing, function_declarator, uncommented
from warpwright.syntax.source import Source, Span

NAME = "check-api-calls"
title = "Check the CUDA API calls"
goals = ("fix",)
relies_on = ()

_CALL = re.compile(
    r"cuda(?:Malloc|Memcpy|Memset|Free|Host(?:Alloc|Register|Unregister|Get)|MemGetInfo|MemPrefetchAsync|MemAdvise"
    r"|DeviceSynchronize|DeviceReset|DeviceSetLimit|DeviceSetCacheConfig|DeviceGetAttribute|ThreadSynchronize"
    r"|Stream(?:Create|Destroy|Synchronize|WaitEvent|BeginCapture|EndCapture|AddCallback)"
    r"|Event(?:Create|Destroy|Record|Synchronize|ElapsedTime)|(?:Set|Get)Device$|GetDeviceCount|GetDeviceProperties"
    r"|Func[GS]et|GetSymbol|LaunchKernel|LaunchCooperativeKernel|LaunchHostFunc|Graph|BindTexture|UnbindTexture"
    r"|(?:Create|Destroy)(?:Texture|Surface)Object|OccupancyMax)\w*"
)
"""Functions of CUDA's runtime that give a cudaError_t, and whose error is no answer to a question."""
_CLEANS = re.compile(r"cudaFree\w*|cuda\w*Destroy\w*|cudaDeviceReset")
"""What a function that returns an error does on its way out."""
_ERROR = re.compile(r"cudaSuccess|err\b|error|status", re.IGNORECASE)


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    source = kernel.source
    calls = [call for call in _unchecked(source) if at is None or overlaps(source.span(call), at)]
    if not calls:
        return Declined(
            NAME,
            f"Every call of CUDA's runtime in the file of {kernel.name} is checked, or is not a statement of its own.",
        )
    edits, manners, calls = _edits(source, calls)
    if not calls:
        return Declined(
            NAME, f"{kernel.name} is in a header without a macro for checks; a new one would reach other files."
        )
    names = list(dict.fromkeys(called_name(call, source) for call in calls))
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return Rewrite(
        rewrite=NAME,
        title=f"Check {len(calls)} CUDA API call{'s' if len(calls) > 1 else ''}",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"{listed} say by what they return whether they worked, and an error of an earlier kernel shows up there, "
            "too. "
            f"It is read {' or '.join(manners)}; without that, the program goes on with memory that it does not have."
        ),
    )


def _unchecked(source: Source) -> Iterator[Node]:
    """Calls of CUDA's runtime that are statements of host code, in text order."""
    for statement in descendants(source.root, "expression_statement"):
        call = uncommented(statement)[0] if len(uncommented(statement)) == 1 else None
        if call is None or call.type != "call_expression" or not _CALL.fullmatch(called_name(call, source)):
            continue
        function = enclosing(statement, "function_definition")
        if function is None or in_macro(statement) or statement.has_error:
            continue
        body = function.child_by_field_name("body")
        head = source.code_text(function.start_byte, body.start_byte if body is not None else function.end_byte)
        declarator = function_declarator(function)
        name = function_name(source, function) or ""
        destroys = "~" in name or (declarator is not None and "~" in source.node_code(declarator))
        if re.search(r"__global__|__device__|\bnoexcept\b|\bcudaError_t\s+\w+\s*[,)]", head) or destroys:
            continue
        cleans = _CLEANS.fullmatch(called_name(call, source)) and returns_error(source, function, statement)
        if not cleans and not _before_else(statement) and not _after_error(source, statement):
            yield call


def _after_error(source: Source, statement: Node) -> bool:
    """Whether it runs only after another error was seen, which is the one that matters."""
    tests = (n.child_by_field_name("condition") for n in ancestors(statement) if n.type == "if_statement")
    return any(test is not None and _ERROR.search(source.node_code(test)) for test in tests)


def _before_else(statement: Node) -> bool:
    """Whether the statement stands without braces before an `else`, where a macro of several statements would end "
    "it."""
    parent = statement.parent
    return (
        parent is not None and parent.type == "if_statement" and parent.child_by_field_name("alternative") is not None
    )


def _edits(source: Source, calls: list[Node]) -> tuple[list[TextEdit], list[str], list[Node]]:
    """The edits, how errors are read, in words, and the calls that are edited: in a header no macro is defined, as it
    would be one of all files that include it."""
    edits: list[TextEdit] = []
    manners: dict[str, None] = {}
    headers: list[str] = []
    own = ""
    checked: list[Node] = []
    for call in calls:
        statement = call.parent
        function = enclosing(call, "function_definition")
        wrapper = wrapper_of(source, call)
        if wrapper:
            manners[f"with this file's {wrapper}"] = None
        elif is_extension(source) and not has_bare_comma(call):
            wrapper, headers = "C10_CUDA_CHECK", torch_headers(source)
            manners["as PyTorch's own code does"] = None
        elif statement is not None and function is not None and returns_error(source, function, statement):
            edits.append(_returned(source, call, fresh_name(source, function)))
            manners["and returned to the caller"] = None
            checked.append(call)
            continue
        if not wrapper and is_header(source):
            continue
        if not wrapper:
            wrapper = own = own or free_name(source.code_text(), "CUDA_CHECK")
            manners[f"by {own}, which ends the program with a message"] = None
        checked.append(call)
        edits.append(TextEdit(call.start_byte, call.start_byte, f"{wrapper}("))
        edits.append(TextEdit(call.end_byte, call.end_byte, ")"))
    if own:
        edits += _macro(source, own)
    return [*edits, *include_edits(source, headers)], list(manners), checked


def _returned(source: Source, call: Node, error: str) -> TextEdit:
    indent = source.line_indent(call.start_byte)
    unit = "\t" if "\t" in indent else indent[: len(indent) // 2] if len(indent) in (4, 8) else "  "
    text = f"if (cudaError_t {error} = {source.node_text(call)})\n{indent}{unit}return {error}"
    return TextEdit(call.start_byte, call.end_byte, text)


def _macro(source: Source, name: str) -> list[TextEdit]:
    """The file's new macro, with the headers that it needs, after the includes."""
    std = std_prefix(source)
    status = free_name(source.code_text(), "status_")
    lines = [
        f"#define {name}(...)",
        "  do {",
        f"    if (cudaError_t {status} = (__VA_ARGS__)) {{",
        f'      {std}fprintf(stderr, "%s:%d: %s\\n", __FILE__, __LINE__, cudaGetErrorString({status}));',
        f"      {std}exit(EXIT_FAILURE);",
        "    }",
    ]
    width = max(map(len, lines))
    text = "".join(f"{line:<{width}} \\\n" for line in lines) + "  } while (0)\n"
    present = leading_includes(source)
    headers = message_headers(source, "cstdio", "cstdlib")
    if present:
        at = present[-1].end_byte
        return [*include_edits(source, headers), TextEdit(at, at, f"\n{text}")]
    first = next((n for n in source.root.children if n.type != "comment"), source.root)
    written = "".join(f"{header}\n" for header in headers)
    return [TextEdit(first.start_byte, first.start_byte, f"{written}\n{text}\n".lstrip("\n"))]
