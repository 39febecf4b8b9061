"""The size of a tensor is kept in 32 bits.

## Why is this bad?

`numel()` and `size()` are 64 bits wide. A tensor of 2^31 elements is 4 GiB in half, which is common: an `int` wraps
to a negative number, the grid is wrong, and the kernel does nothing or writes elsewhere. Nothing reports it.

## Example

```cuda
#include <torch/extension.h>

int elements(torch::Tensor x) {
  int n = x.numel();
  return n;
}
```

## Use instead

```cuda
#include <torch/extension.h>
#include <limits>

int elements(torch::Tensor x) {
  TORCH_CHECK(x.numel() <= std::numeric_limits<int>::max(), "x has too many elements");
  int n = x.numel();
  return n;
}
```

## Limits

- Of `numel()`, and of products of sizes, also where they are handed to an int of a kernel, or stored in one of a
  struct; one `size(d)` is taken to fit. Any mention of INT_MAX or `numeric_limits` in the function counts as a check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from warpwright.cuda.extension.unit import MOST_SOURCES, Function, Unit, uses_torch
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, include, line_before
from warpwright.rules.host._statements import statement_of
from warpwright.syntax.nodes import descendants, node_at, uncommented
from warpwright.syntax.source import Source, Span

severity = Severity.INFORMATION

_INT = r"(?:const\s+)?(?:unsigned\s+int|unsigned|int|int32_t|uint32_t)"
_SIZE = r"\w+\s*\.\s*size\(\s*-?\w+\s*\)"
_WIDE = rf"(?:\w+\s*\.\s*numel\(\)|{_SIZE}\s*\*\s*{_SIZE})"
_NARROWED = re.compile(
    rf"\b{_INT}\s+(?P<name>\w+)\s*=\s*(?P<a>{_WIDE})(?!\s*[?<>=%!&|])|static_cast<\s*{_INT}\s*>\s*\(\s*(?P<b>{_WIDE})|"
    rf"\(\s*{_INT}\s*\)\s*(?P<c>{_WIDE})"
)
_STORED = re.compile(rf"\b\w+\s*(?:\.|->)\s*(?P<member>\w+)\s*=\s*(?P<size>{_WIDE})(?!\s*[?<>=%!&|])")
_CHECKED = re.compile(r"INT_MAX|INT32_MAX|numeric_limits|canUse32BitIndexMath|2147483647")


def check_unit(unit: Unit) -> Iterator[Finding]:
    if not uses_torch(unit.source):
        return
    for function in unit.here:
        if _CHECKED.search(function.code):
            continue
        found = [(span, match["a"] or match["b"] or match["c"]) for span, match in function.found(_NARROWED)]
        for span, match in function.found(_STORED):
            if _is_narrow(unit, match["member"]):
                found.append((span, match["size"]))
        for span, text in (*found, *_handed(unit, function)):
            size = " ".join(text.split())
            if re.search(rf"(?:CHECK|ASSERT)\w*\([^;]*?{re.escape(size)}\s*<", function.code):
                continue
            yield Finding(
                span=span,
                message=(
                    f"`{size}` is kept in 32 bits and wraps from 2^31 elements on\n"
                    "Keep it as int64_t, or check it against std::numeric_limits<int>::max()."
                ),
                evidence={"size": size, "function": function.name},
                kernel=function.name,
                cure=_cure(function, span, size),
            )


def _is_narrow(unit: Unit, member: str) -> bool:
    """Whether a member is 32 bits wide wherever a struct of the package has one of the name."""
    kinds = {kind for source in {*unit.extension, unit.source} for name, kind in _members(source) if name == member}
    return bool(kinds) and all(re.fullmatch(_INT, kind) for kind in kinds)


@lru_cache(maxsize=MOST_SOURCES)
def _members(source: Source) -> tuple[tuple[str, str], ...]:
    """(name, type) of the members of a file's structs."""
    found = []
    for node in descendants(source.root, "field_declaration"):
        kind, name = node.child_by_field_name("type"), node.child_by_field_name("declarator")
        if kind is not None and name is not None and name.type == "field_identifier":
            found.append((source.plain_text(name), source.plain_text(kind)))
    return tuple(found)


def _handed(unit: Unit, function: Function) -> Iterator[tuple[Span, str]]:
    """What is handed as it is to a parameter of 32 bits."""
    for call in function.calls:
        called = unit.called(call, function.source)
        for at, given in enumerate(uncommented(call.child_by_field_name("arguments")) if called is not None else ()):
            text = function.source.node_code(given)
            kind = called.parameters[at][1] if called is not None and at < len(called.parameters) else ""
            if re.fullmatch(_WIDE, text) and re.fullmatch(rf"{_INT}(?:\s+const)?", kind):
                yield function.source.span(given), text


def _cure(function: Function, span: Span, size: str) -> Cure | None:
    """A check. To keep the size wide would only narrow it later, where the kernel takes an int."""
    node = node_at(span.source.root, span.start, span.end)
    statement = statement_of(node) if node is not None else None
    if statement is None:
        return None
    text = f'TORCH_CHECK({size} <= std::numeric_limits<int>::max(), "{size} needs more than 32 bits");'
    put = line_before(function.source, statement, text)
    return cure("Check that the size fits", include(span.source, "limits"), put) if put is not None else None
