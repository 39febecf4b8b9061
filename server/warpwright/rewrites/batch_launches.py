"""Launch once for all parts of the data, where a host loop launches once for each.

## Before

```cuda
__global__ void scale(float *y, const float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = factor * x[i];
}

void run(float *y, const float *x, float factor, int n) {
  for (int row = 0; row < 12; ++row)
    scale<<<(n + 255) / 256, 256>>>(y + row * n, x + row * n, factor, n);
}
```

## After

```cuda
__global__ void scale(float *y, const float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = factor * x[i];
}

__global__ void scale_batched(float *y, const float *x, float factor, int n) {
  y += (size_t)blockIdx.y * n;
  x += (size_t)blockIdx.y * n;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = factor * x[i];
}

void run(float *y, const float *x, float factor, int n) {
  scale_batched<<<dim3((n + 255) / 256, 12), 256>>>(y, x, factor, n);
}
```

A count that is not known from the text may be 0, or more than the 65,535 rows of a grid. Then the loop stays and goes
on by 65,535, with `dim3((n + 255) / 256, min(rows - row, 65535))` for its grid.

## Assumes

- The loop counts up from 0 and does nothing but launch; its arguments move by the same step each time, or stay.
- The kernel does the same to each element, under a test against a count that the step is no smaller than. So no
  iteration touches what another one writes.
- Pointers that the launch hands over under different names lead to different arrays, or to the same elements of one.

## Cost

A kernel more in the text; the other one stays, for other launches. All iterations come to their end together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.cuda.functions import called_name
from warpwright.facts.launch_loops import MOST_ROWS, STEP_WORD, LaunchLoop, Moved, is_alike, launch_loop
from warpwright.facts.model import Kernel, Launch, Parameter
from warpwright.rewrites._code import (
    NoMatchError,
    body,
    functions_of,
    host_launches,
    is_enclosed,
    macros_naming,
    matched,
    names,
)
from warpwright.rewrites._elementwise import Elements, match_elements, not_by_element, not_the_thread
from warpwright.rewrites._formulas import Formula, constant, formula
from warpwright.rewrites._grids import arguments_of, call_of
from warpwright.rewrites._layout import free_name, indent_unit, line_of
from warpwright.rewrites._locals import changed_names, declared_names
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._repeated_launches import launches_in_loops
from warpwright.rewrites._same_memory import made_of_each_other, own_elements_only
from warpwright.rewrites._thread_numbers import calls_by_number
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, enclosing, launch_configuration, parameters_of, uncommented
from warpwright.syntax.source import Source, Span

NAME = "batch-launches"
title = "Batch the launches of the loop into one"
goals = ("speed",)
relies_on = ()

FILLS = 132 * 2048
"""Threads that an H100 holds at once: launches of so many are not made faster by being made together."""
_OTHER_AXES = re.compile(r"\b(?:blockIdx|gridDim)\b(?!\s*\.\s*x\b)")
_INTEGER = r"(?:int|unsigned|long|short|size_t|u?int\d+_t)\s+"
_STATE = re.compile(r"\b(?:printf|__threadfence\w*|cooperative_groups|this_grid|clock\w*)\b")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    refusal = f"No launch of {kernel.name} stands in a loop of the host."
    for launch, call, _ in launches_in_loops(kernel, at):
        try:
            return _batched(kernel, launch, call)
        except NoMatchError as mismatch:
            refusal = str(mismatch)
    return Declined(NAME, refusal)


def _batched(kernel: Kernel, launch: Launch, call: Node) -> Rewrite:
    source = kernel.source
    loop = matched(launch_loop(source, call))
    pragma = loop.loop.prev_named_sibling
    if pragma is not None and pragma.type == "preproc_call":
        raise NoMatchError(f"The loop has the directive `{source.node_text(pragma).strip()}`.")
    if not is_alike(source, loop):
        raise NoMatchError(f"The launch's grid, block or stream depends on `{loop.variable}`.")
    elements = _require_elements(kernel, launch, loop)
    _require_apart(kernel, elements, loop)
    rows = _known_rows(source, loop)
    if rows is not None and rows < 2:
        raise NoMatchError("Nothing to gain: the loop is run once at most.")
    blocks, threads = launch.grid[0], launch.threads
    if blocks is not None and threads is not None and blocks * threads >= FILLS:
        raise NoMatchError(f"Nothing to gain: {blocks:,} blocks of {threads} threads fill a GPU by themselves.")
    name = free_name(source.code_text(), f"{kernel.name}_batched")
    once = rows is not None and rows <= MOST_ROWS
    edits = (_new_kernel(kernel, loop, name), *(_once(source, loop, name) if once else _in_turns(source, loop, name)))
    times = f"{rows:,} launches" if rows is not None else f"`{source.node_text(loop.count)}` launches"
    return Rewrite(
        rewrite=NAME,
        title=f"Batch the launches of {kernel.name} into one",
        source=source,
        edits=edits,
        explanation=(
            f"The loop makes {times} one after the other, and a launch costs the host some 2 to 5 us (assumed), "
            "whatever it does. The iterations work on different elements, so that one grid can hold them all: "
            "`blockIdx.y` has the loop's index. One launch then also fills multiprocessors that the blocks of one "
            "iteration leave idle. Arrays that are handed over under different names must not overlap."
        ),
        safe=False,
    )


def _require_elements(kernel: Kernel, launch: Launch, loop: LaunchLoop) -> Elements:
    """The kernel does the same to each element of a one-dimensional grid, and nothing else tells its blocks apart."""
    source, block = kernel.source, body(kernel)
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    if block is None or kernel.node is None or kernel.span.end > loop.call.start_byte:
        raise NoMatchError(f"{kernel.name} is defined after its launch.")
    if kernel.node.parent is not None and kernel.node.parent.type == "template_declaration":
        raise NoMatchError(f"{kernel.name} is a template.")
    if len(loop.arguments) != len(kernel.parameters):
        raise NoMatchError(f"What {kernel.name} is handed is not known.")
    if launch.grid[1:] != (1, 1):
        raise NoMatchError(f"The grid of {kernel.name} has more than one dimension.")
    text = source.node_code(block)
    if found := _OTHER_AXES.search(text) or _STATE.search(text):
        raise NoMatchError(f"{kernel.name} uses `{found.group()}`, which may tell launches apart.")
    if any(re.search(rf"\b{re.escape(m)}\b", text) for m in macros_naming(source, _OTHER_AXES)):
        raise NoMatchError(f"A macro in {kernel.name} names the grid.")
    if reason := calls_by_number(kernel, block):
        raise NoMatchError(reason)
    elements = matched(match_elements(kernel))
    for statement in elements.before:
        if statement.type != "declaration":
            raise NoMatchError(f"Line {line_of(source, statement)} does something before the test of the element.")
    if reason := not_the_thread(kernel, elements, [launch]) or not_by_element(kernel, elements):
        raise NoMatchError(reason)
    if kept := _kept_elsewhere(source, block):
        raise NoMatchError(f"{kernel.name} calls {kept}, which changes what is not its own.")
    return elements


def _kept_elsewhere(source: Source, block: Node) -> str:
    """A function that is called, in turn or directly, and changes a variable that it does not declare; "" for none."""
    functions, followed, waiting = functions_of(source), set[str](), [block]
    while waiting:
        for call in descendants(waiting.pop(), "call_expression"):
            name = called_name(call, source)
            for function in functions.get(name, ()) if name not in followed else ():
                waiting.append(function)
                if set(changed_names(source, function)) - declared_names(source, function):
                    return name
            followed.add(name)
    return ""


def _require_apart(kernel: Kernel, elements: Elements, loop: LaunchLoop) -> None:
    """No iteration touches what another one writes."""
    source = kernel.source
    pairs = list(zip(kernel.parameters, loop.arguments, strict=True))
    changed = set(changed_names(source, body(kernel) or elements.guard))
    for parameter, argument in pairs:
        if argument.step is not None and not parameter.is_pointer:
            raise NoMatchError(f"`{parameter.name}` is another number at each iteration.")
        if argument.step is not None and (parameter.name in changed or re.search(r"\*\s*const\b", parameter.type)):
            raise NoMatchError(f"`{parameter.name}` is changed in {kernel.name}, or declared so that it cannot be.")
    written = {p.name for p, _ in pairs if p.is_pointer and not p.is_const}
    bases = {argument.base for parameter, argument in pairs if parameter.name in written}
    for parameter, argument in pairs:
        if not parameter.is_pointer or argument.base not in bases:
            continue
        early = (use for each in elements.before for use in names(each, source, parameter.name))
        line = next((line_of(source, use) for use in early), None)
        if line := line or own_elements_only(source, elements, parameter.name):
            raise NoMatchError(f"`{parameter.name}` is used at line {line} other than as its thread's own element.")
        if argument.step is None:
            raise NoMatchError(f"Each iteration uses the same `{argument.base}`, which {kernel.name} may write.")
        _require_wide_step(kernel, elements, loop, parameter, argument)
    if not bases:
        raise NoMatchError(f"What {kernel.name} writes is not known.")
    for base in bases:
        if len({argument.step for parameter, argument in pairs if parameter.is_pointer and argument.base == base}) > 1:
            raise NoMatchError(f"`{base}` is handed over twice, and moved by different steps.")
    arrays = {argument.base for parameter, argument in pairs if parameter.is_pointer}
    if odd := next((base for base in arrays if not re.fullmatch(r"[A-Za-z_]\w*(?:(?:\.|->)\w+)*", base)), None):
        raise NoMatchError(f"`{odd}` is handed over, which may overlap another array.")
    function = enclosing(loop.loop, "function_definition")
    given = [n for p in parameters_of(function) for n in descendants(p, "identifier")] if function is not None else []
    own = declared_names(source, function) if function is not None else set[str]()
    elsewhere = arrays - own - {source.node_text(n) for n in given}
    line = made_of_each_other(source, function, arrays) if function is not None else None
    if line := line or made_of_each_other(source, source.root, elsewhere):
        raise NoMatchError(f"Line {line} makes arrays of one memory, so that they may overlap.")


def _require_wide_step(
    kernel: Kernel, elements: Elements, loop: LaunchLoop, parameter: Parameter, argument: Moved
) -> None:
    """The array moves by as many elements as an iteration works on, or more."""
    source = kernel.source
    launch = next(each for each in host_launches(kernel) if call_of(each) == loop.call)
    given = arguments_of(kernel, launch)
    inside = formula(source, elements.bound)
    worked = formula(source, elements.bound, given) if inside is not None and inside.symbols <= given.keys() else None
    step = _product(source, argument)
    if worked is None or step is None:
        raise NoMatchError(f"Whether `{parameter.name}` moves past what an iteration writes cannot be told.")

    def behind(values: Values) -> bool | None:
        elements_of, by = worked.value(values), step.value(values)
        return None if elements_of is None or by is None else by >= elements_of

    if not holds(behind, worked.symbols | step.symbols):
        bound = source.node_text(elements.bound)
        raise NoMatchError(
            f"`{parameter.name}` is not known to advance by `{bound}` or more elements in each iteration."
        )


def _product(source: Source, argument: Moved) -> Formula | None:
    """The step of an argument as a formula."""
    total: Formula | None = constant(1)
    for factor in argument.step or ():
        node = _written_as(source, argument, factor)
        known = formula(source, node) if node is not None else None
        if known is None or total is None:
            return None
        total = _times(total, known)
    return total


def _times(one: Formula, other: Formula) -> Formula:
    def value(values: Values) -> int | float | None:
        a, b = one.value(values), other.value(values)
        return None if a is None or b is None else a * b

    return Formula(one.symbols | other.symbols, value)


def _written_as(source: Source, argument: Moved, factor: str) -> Node | None:
    kinds = ("identifier", "number_literal", "field_expression", "parenthesized_expression", "cast_expression")
    return next((n for n in descendants(argument.node, *kinds) if source.node_text(n) == factor), None)


def _known_rows(source: Source, loop: LaunchLoop) -> int | None:
    known = formula(source, loop.count)
    value = known.value({}) if known is not None and not known.symbols else None
    return value if isinstance(value, int) else None


def _new_kernel(kernel: Kernel, loop: LaunchLoop, name: str) -> TextEdit:
    """The kernel once more behind itself, with its pointers moved to the row that is the block's."""
    source, block = kernel.source, body(kernel)
    assert block is not None
    own = {
        source.node_text(argument.node): parameter.name
        for parameter, argument in zip(kernel.parameters, loop.arguments, strict=True)
        if not parameter.is_pointer
    }
    changed = set(changed_names(source, block))
    inner = source.line_indent(kernel.span.start) + indent_unit(source, block)
    lines: list[str] = []
    for parameter, argument in zip(kernel.parameters, loop.arguments, strict=True):
        if argument.step is None:
            continue
        factors = ["(size_t)blockIdx.y"]
        for factor in argument.step:
            inside = _in_kernel(kernel, argument, factor, own)
            if inside is None or set(re.findall(r"\w+", inside)) & changed:
                raise NoMatchError(f"{kernel.name} is not given `{factor}`, by which `{argument.base}` moves.")
            factors.append(inside)
        lines.append(f"\n{inner}{parameter.name} += {' * '.join(factors)};")
    start, end = kernel.span.start, kernel.span.end
    head = source.text(start, kernel.name_span.start) + name + source.text(kernel.name_span.end, block.start_byte)
    rest = source.text(block.start_byte + 1, end)
    indent = source.line_indent(start)
    return TextEdit(end, end, f"\n\n{indent}{head}{{{''.join(lines)}{rest}")


def _in_kernel(kernel: Kernel, argument: Moved, factor: str, own: Mapping[str, str]) -> str | None:
    """A factor of a step in the kernel's words: what it is handed, numbers, macros and constants of the file."""
    if factor in own:
        return own[factor]
    if not re.fullmatch(r"[\w\s.()+*-]*", factor):
        return None
    words = {match.group(): own.get(match.group()) for match in STEP_WORD.finditer(factor)}
    for word, inside in words.items():
        words[word] = inside or (word if _is_constant_of_file(kernel, argument, word) else None)
    if None in words.values():
        return None
    return STEP_WORD.sub(lambda match: words[match.group()] or "", factor)


def _is_constant_of_file(kernel: Kernel, argument: Moved, name: str) -> bool:
    """Whether a name is a macro or a constant that the kernel can name as the host does."""
    source = kernel.source
    node, function = _written_as(source, argument, name), enclosing(argument.node, "function_definition")
    if node is None or node.type != "identifier" or function is None:
        return False
    if name in declared_names(source, function):
        return False
    known = formula(source, node)
    return known is not None and not known.symbols and not _defined_behind(kernel, name)


def _defined_behind(kernel: Kernel, name: str) -> bool:
    """Whether the first definition of a name stands behind the kernel's start."""
    found = re.search(rf"\b{re.escape(name)}\b", kernel.source.code_text())
    return found is None or len(encoded(kernel.source.code_text()[: found.start()])) > kernel.span.start


def _once(source: Source, loop: LaunchLoop, name: str) -> list[TextEdit]:
    """The loop becomes one launch."""
    launched = _launch_text(source, loop, name, source.node_text(loop.count), [a.base for a in loop.arguments])
    return [TextEdit(loop.loop.start_byte, loop.loop.end_byte, f"{launched};")]


def _in_turns(source: Source, loop: LaunchLoop, name: str) -> list[TextEdit]:
    """The loop goes on by as many iterations as a grid can hold."""
    count = source.node_text(loop.count)
    is_plain = is_enclosed(count) or re.fullmatch(r"[\w.]+", count)
    left = f"{count if is_plain else f'({count})'} - {loop.variable}"
    if loop.type != "int":
        raise NoMatchError(f"`{loop.variable}` is not an int, the type that rows are counted with.")
    left = left if _is_int(source, loop) else f"(int)({left})"
    launched = _launch_text(
        source, loop, name, f"min({left}, {MOST_ROWS})", [source.node_text(a.node) for a in loop.arguments]
    )
    return [
        TextEdit(loop.update.start_byte, loop.update.end_byte, f"{loop.variable} += {MOST_ROWS}"),
        TextEdit(loop.call.start_byte, loop.call.end_byte, launched),
    ]


def _is_int(source: Source, loop: LaunchLoop) -> bool:
    """Whether the count is seen to be an int."""
    count = source.node_text(loop.count)
    function = enclosing(loop.loop, "function_definition")
    if not re.fullmatch(r"\w+", count) or function is None:
        return False
    text = source.code_text(function.start_byte, loop.loop.start_byte)
    return re.search(rf"(?<!unsigned )(?<!long )\bint\s+{re.escape(count)}\b", text) is not None


def _launch_text(source: Source, loop: LaunchLoop, name: str, rows: str, arguments: list[str]) -> str:
    call, shape = loop.call, launch_configuration(loop.call)
    function, parts = call.child_by_field_name("function"), uncommented(shape)
    assert function is not None and shape is not None and parts
    grid = source.node_text(parts[0])
    blocks = f"{grid}.x" if _is_dim3(source, loop, grid) else grid
    rest = source.text(parts[0].end_byte, shape.end_byte)
    opening = source.text(shape.start_byte, parts[0].start_byte)
    qualifier = "".join(source.node_text(function).rpartition("::")[:2])
    return f"{qualifier}{name}{opening}dim3({blocks}, {rows}){rest}({', '.join(arguments)})"


def _is_dim3(source: Source, loop: LaunchLoop, grid: str) -> bool:
    """Whether a grid's text is of type dim3: a variable or a parameter that is declared so."""
    if re.match(r"dim3\b", grid):
        raise NoMatchError("The launch's grid is written as a dim3 already.")
    function = enclosing(loop.loop, "function_definition")
    text = source.code_text(function.start_byte, loop.loop.start_byte) if function is not None else ""
    if re.search(rf"\bdim3\b[\s&*]*(?:\w+[^;]*,\s*)?{re.escape(grid)}\b", text) is not None:
        return True
    known = rf"\b{_INTEGER}(?:\w+[^;]*,\s*)?{re.escape(grid)}\b|#\s*define\s+{re.escape(grid)}\b"
    is_number = re.fullmatch(r"\d+|.*\.[xyz]", grid) or re.search(known, source.code_text(0, loop.loop.start_byte))
    if not is_number and re.fullmatch(r"[\w:]+(?:(?:\.|->)\w+)*(?:\(.*\))?", grid):
        raise NoMatchError(f"Whether `{grid}` is a number or a dim3 is not seen.")
    return False
