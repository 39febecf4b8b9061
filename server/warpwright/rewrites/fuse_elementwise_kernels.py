"""Do the work of two element-wise launches in one, so that what the first writes is not read again.

## Before

```cuda
__global__ void square(float *squares, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = in[i];
    squares[i] = x * x;
  }
}

__global__ void add(float *out, const float *squares, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = squares[i] + b[i];
  }
}

void run(float *out, float *squares, const float *in, const float *b, int n) {
  square<<<(n + 255) / 256, 256>>>(squares, in, n);
  add<<<(n + 255) / 256, 256>>>(out, squares, b, n);
}
```

## After

```cuda
__global__ void square(float *squares, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = in[i];
    squares[i] = x * x;
  }
}

__global__ void add(float *out, const float *squares, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = squares[i] + b[i];
  }
}

__global__ void square_add(float *squares, const float *in, int n, float *out, const float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    {
      float x = in[i];
      squares[i] = x * x;
    }
    {
      out[i] = squares[i] + b[i];
    }
  }
}

void run(float *out, float *squares, const float *in, const float *b, int n) {
  square_add<<<(n + 255) / 256, 256>>>(squares, in, n, out, b);
}
```

The array between the two is still written; the compiler keeps its value in a register for what follows.

## Assumes

- Both kernels do the same to each element, whose number is the thread's, behind a test against one count; every array
  that one of them writes is used at that element alone by both.
- The launches stand next to each other, with the same grid, block and stream, and hand over the count as the same text.
- Pointers that the launches hand over under different names lead to different arrays, or to the same elements of one.

## Cost

A kernel more in the text; the two that it is made of stay, for other launches. The new one needs the registers of both.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.analyze import analyze
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import AccessKind, Kernel, Launch, Space
from warpwright.rewrites._code import called_name, host_launches, in_macro, macros_naming, overlaps
from warpwright.rewrites._elementwise import match_elements, not_by_element, not_the_thread
from warpwright.rewrites._fusion import Part, handed, is_pointer, kernel_text, kind_of, written_by
from warpwright.rewrites._grids import call_of
from warpwright.rewrites._layout import free_name, line_of, without_lines
from warpwright.rewrites._same_memory import made_of_each_other, own_elements_only
from warpwright.rewrites._threads import builtin_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import (
    descendants,
    enclosing,
    launch_configuration,
    uncommented,
)
from warpwright.syntax.source import Source, Span

NAME = "fuse-elementwise-kernels"
title = "Fuse two element-wise kernels"
goals = ("speed",)
relies_on = (Reliance.APART,)


class _RefusedError(Exception):
    """The message is the reason for the user."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    """Of this kernel's launch with the one behind it."""
    refusal = f"No launch of {kernel.name} is followed by another with the same grid and block."
    for launch in host_launches(kernel):
        call = call_of(launch)
        if call is None or launch.span is None or launch.span.source is not kernel.source:
            continue
        follower = _following(kernel.source, call)
        if follower is None or (at is not None and not overlaps(launch.span, at)):
            continue
        try:
            return _fused(kernel, launch, call, follower)
        except _RefusedError as refused:
            refusal = str(refused)
    return Declined(NAME, refusal)


def _following(source: Source, call: Node) -> Node | None:
    """The launch in the next statement, of the same grid, block, shared memory and stream."""
    statement = call.parent
    after = statement.next_named_sibling if statement is not None else None
    while after is not None and after.type == "comment":
        after = after.next_named_sibling
    if statement is None or after is None or {statement.type, after.type} != {"expression_statement"}:
        return None
    inner = uncommented(after)[0] if len(uncommented(after)) == 1 else None
    one, other = launch_configuration(call), launch_configuration(inner) if inner is not None else None
    if one is None or other is None or _squeezed(source, one) != _squeezed(source, other):
        return None
    return inner if inner is not None and not in_macro(inner) else None


def _squeezed(source: Source, node: Node) -> str:
    return "".join(source.node_code(node).split())


def _fused(kernel: Kernel, launch: Launch, call: Node, follower: Node) -> Rewrite:
    source = kernel.source
    other = analyze(source).kernel(called_name(follower, source))
    if other is None or other.name == kernel.name or other.source.data != source.data:
        raise _RefusedError(f"The launch behind that of {kernel.name} is of no other kernel of this file.")
    line = line_of(source, follower)
    behind = next((o for o in host_launches(other) if o.span is not None and o.span.line == line), None)
    if behind is None:
        raise _RefusedError(f"How {other.name} is launched at line {line} is not known from the text.")
    first, second = _part(kernel, launch, call), _part(other, behind, follower)
    if _bound(first) != _bound(second):
        raise _RefusedError(f"{kernel.name} and {other.name} test their element against different counts.")
    if _index_types(first) != _index_types(second):
        raise _RefusedError(f"{kernel.name} and {other.name} count their elements with different types.")
    _require_own_elements(first, second)
    _require_no_other_state(first, second)
    name = free_name(source.code_text(), f"{kernel.name}_{other.name}")
    renamed = _shared_names(first, second)
    parameters, arguments = handed(first, second, renamed)
    text = kernel_text(first, second, renamed, name, parameters)
    if not text:
        raise _RefusedError(f"The body of {kernel.name} is not in this file.")
    place = kernel.span if kernel.span.start > other.span.start else other.span
    configuration = launch_configuration(call)
    launched = f"{name}{source.node_text(configuration) if configuration else ''}({', '.join(arguments)})"
    last = second.call.parent
    assert last is not None
    edits = (
        TextEdit(place.end, place.end, f"\n\n{text}"),
        TextEdit(call.start_byte, call.end_byte, launched),
        without_lines(source, last),
    )
    again = " and ".join(sorted(_loaded_again(first, second)))
    return Rewrite(
        rewrite=NAME,
        title=f"Fuse {kernel.name} and {other.name}",
        source=source,
        edits=edits,
        explanation=(
            f"{other.name} loads {again} after {kernel.name} has loaded or stored the same elements. In one kernel "
            "they are "
            "still in a register, or in the L1 cache, and one launch takes the place of two. The new kernel writes "
            "all that "
            "the two wrote. Arrays that are handed over under different names must not overlap."
        ),
        safe=False,
    )


def _part(kernel: Kernel, launch: Launch, call: Node) -> Part:
    elements = match_elements(kernel)
    if isinstance(elements, str):
        raise _RefusedError(elements)
    source = kernel.source
    for statement in elements.before:
        if statement != elements.declaration:
            raise _RefusedError(f"Line {line_of(source, statement)} prepares something before the test of the element.")
    head = source.code_text(kernel.span.start, elements.declaration.start_byte)
    if found := re.search(r"template\s*<|__launch_bounds__|\bstatic\b|\bnamespace\b|extern", head):
        raise _RefusedError(f"{kernel.name} is declared with `{found.group().rstrip(' <')}`.")
    if kernel.node is None or (kernel.node.parent is not None and kernel.node.parent.type != "translation_unit"):
        raise _RefusedError(f"{kernel.name} is defined inside of something else.")
    if kernel.shared_arrays or launch.dynamic_shared_bytes != 0:
        raise _RefusedError(f"{kernel.name} uses shared memory.")
    if reason := not_the_thread(kernel, elements, [launch]) or not_by_element(kernel, elements):
        raise _RefusedError(reason)
    given = uncommented(call.child_by_field_name("arguments"))
    if len(given) != len(kernel.parameters):
        raise _RefusedError(f"What {kernel.name} is handed is not known.")
    if any(True for argument in given for _ in descendants(argument, "update_expression", "assignment_expression")):
        raise _RefusedError(f"What {kernel.name} is handed is changed on the way.")
    for argument in given:
        for inner in descendants(argument, "call_expression"):
            name = called_name(inner, source)
            member = (function := inner.child_by_field_name("function")) and function.type == "field_expression"
            if not (member or KNOWN_FUNCTIONS.fullmatch(name) or name.endswith("_cast") or builtin_call(name)):
                raise _RefusedError(f"{kernel.name} is handed what {name} returns, which may differ from call to call.")
    texts = {p.name: source.node_text(a) for p, a in zip(kernel.parameters, given, strict=True)}
    return Part(kernel, elements, launch, call, texts)


def _bound(part: Part) -> str:
    """The count that elements are tested against, in the words of the host."""
    source, bound = part.kernel.source, part.elements.bound
    text = source.node_text(bound)
    return re.sub(r"[A-Za-z_]\w*", lambda word: part.given.get(word.group(), word.group()), text)


def _index_types(part: Part) -> tuple[str, ...]:
    """The types of the index and of what it is tested against, which decide how far it counts."""
    source, kernel = part.kernel.source, part.kernel
    kind = part.elements.declaration.child_by_field_name("type")
    named = [source.node_text(n) for n in (part.elements.bound, *descendants(part.elements.bound, "identifier"))]
    of_bound = sorted({kind_of(kernel, name) for name in named if name in part.given})
    return (source.node_text(kind) if kind is not None else "", *of_bound)


def _require_own_elements(first: Part, second: Part) -> None:
    """An array that either kernel writes is used at the thread's own element alone, by both."""
    written = {text for part in (first, second) for text in written_by(part)}
    if not any(text in written for part in (first, second) for text in part.given.values()):
        raise _RefusedError(f"What {first.kernel.name} and {second.kernel.name} write is not known.")
    arrays = {t for part in (first, second) for n, t in part.given.items() if is_pointer(part.kernel, n)}
    if not _loaded_again(first, second):
        raise _RefusedError(f"Nothing to gain: {second.kernel.name} loads no array that {first.kernel.name} uses.")
    if odd := next((text for text in arrays if not re.fullmatch(r"[A-Za-z_]\w*(?:(?:\.|->)\w+)*", text)), None):
        raise _RefusedError(f"`{odd}` is handed over, which may overlap another array.")
    for part in (first, second):
        for name, text in part.given.items():
            if text in written and is_pointer(part.kernel, name):
                _require_own_element(part, name)
        pointers = [t for n, t in part.given.items() if is_pointer(part.kernel, n)]
        if len(set(pointers)) < len(pointers):
            raise _RefusedError(f"{part.kernel.name} is handed one array twice.")


def _loaded_again(first: Part, second: Part) -> set[str]:
    """The arrays that the second kernel loads and the first uses, in the words of the host."""
    loaded = {a.array for a in second.kernel.accesses if a.kind is AccessKind.LOAD and a.space is Space.GLOBAL}
    return {text for name, text in second.given.items() if name in loaded and text in first.given.values()}


def _require_no_other_state(first: Part, second: Part) -> None:
    """Nothing but the arrays leads from one kernel to the other, and no two of them are made one on the way."""
    source = first.kernel.source
    for part in (first, second):
        if found := re.search(r"\bvolatile\b|\bprintf\b|\basm\b|__threadfence\w*", part.kernel.span.code):
            raise _RefusedError(f"{part.kernel.name} uses `{found.group()}`.")
        if part.kernel.span.end > first.call.start_byte:
            raise _RefusedError(f"{part.kernel.name} is defined behind its launch.")
    for declaration in descendants(source.root, "declaration"):
        text = source.node_code(declaration)
        outside = enclosing(declaration, "function_definition") is None
        if outside and re.match(r"(?:static\s+|extern\s+)*(?:__device__|__managed__)", text) and "const" not in text:
            line = line_of(source, declaration)
            raise _RefusedError(f"Line {line} declares device memory that one kernel may leave to the other.")
    function = enclosing(first.call, "function_definition")
    arrays = {t for part in (first, second) for n, t in part.given.items() if is_pointer(part.kernel, n)}
    if function is not None and (made_at := made_of_each_other(source, function, arrays)):
        raise _RefusedError(f"Line {made_at} makes arrays of one memory, so that they may overlap.")


def _require_own_element(part: Part, name: str) -> None:
    if used_at := own_elements_only(part.kernel.source, part.elements, name):
        index = part.elements.index
        raise _RefusedError(f"`{name}` is used at line {used_at} other than as `{name}[{index}]`, and written.")


def _shared_names(first: Part, second: Part) -> dict[str, str]:
    """Names for the second kernel's index and parameters in the new kernel: the first's where the launches hand over
    the same, else its own, or another where the first has that for something else."""
    renamed = {second.elements.index: first.elements.index}
    names_first = {text: name for name, text in first.given.items()}
    everything = first.kernel.span.code + second.kernel.span.code
    taken = {*first.given, first.elements.index}
    for parameter in second.kernel.parameters:
        text = second.given[parameter.name]
        same = names_first.get(text)
        if same is not None and kind_of(first.kernel, same) == kind_of(second.kernel, parameter.name):
            renamed[parameter.name] = same
        elif same is not None and parameter.is_pointer:
            raise _RefusedError(f"`{text}` is a pointer of another type in {second.kernel.name}.")
        elif parameter.name in taken or _is_local(first, parameter.name):
            renamed[parameter.name] = free_name(everything, f"{second.kernel.name}_{parameter.name}")
    for old, new in renamed.items():
        if old != new and _is_local(second, new):
            raise _RefusedError(f"{second.kernel.name} has a variable `{new}` of its own.")
        if old != new and macros_naming(second.kernel.source, re.compile(rf"\b{re.escape(old)}\b")):
            raise _RefusedError(f"A macro names `{old}`.")
    return renamed


def _is_local(part: Part, name: str) -> bool:
    """Whether the work on an element declares that name."""
    source = part.kernel.source
    declared = (d for s in part.elements.work for d in descendants(s, "declaration", "for_range_loop"))
    found = (n for d in declared for c in d.children_by_field_name("declarator") for n in descendants(c, "identifier"))
    return any(source.node_text(n) == name for n in found)
