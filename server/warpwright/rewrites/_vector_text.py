"""The text of a kernel that moves its elements several at a time."""

from __future__ import annotations

import re

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import as_factor, body, is_macro_of_several, names
from warpwright.rewrites._element_arrays import ElementArray
from warpwright.rewrites._elementwise import Elements, without_const
from warpwright.rewrites._indent import blank_lines_end, end_with_comment, indented
from warpwright.rewrites._layout import free_name, indent_unit, reindented
from warpwright.rewrites._loops import pragmas_before
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.source import Source

_ALONE = ("subscript_argument_list", "parenthesized_expression", "init_declarator")
"""What a sum may stand in without parentheses."""
_SUMMANDS = ("identifier", "field_expression", "parenthesized_expression", "binary_expression", "call_expression")
"""What can be added to without parentheses: an index is a sum of products."""


def vector_edits(kernel: Kernel, elements: Elements, arrays: list[ElementArray], factor: int) -> list[TextEdit]:
    """The work on whole vectors before the guard, and the guard as the loop over what is left."""
    source, index, block, guard = kernel.source, elements.index, body(kernel), elements.guard
    if guard.type == "for_statement":
        return _strided_edits(kernel, elements, arrays, factor)
    unit, indent = indent_unit(source, block) if block is not None else "  ", source.line_indent(guard.start_byte)
    vectors = free_name(source.code_text(), "vectors")
    new = _text(
        _vector_lines(kernel, elements, arrays, factor, vectors, unit, f"if ({index} < {vectors})", index), indent
    )
    step = f"{index} += blockDim.x * gridDim.x"
    loop = f"for ({index} += {factor} * {vectors}; {index} < {source.node_text(elements.bound)}; {step})"
    edits = without_const(source, elements.declaration)
    if elements.early:
        after, end = end_with_comment(source, guard.end_byte), end_with_comment(source, elements.end)
        edits.append(TextEdit(after, blank_lines_end(source, after), f"\n{new}{indent}{loop} {{"))
        edits += indented(source, [n for n in block.named_children if n.start_byte >= after] if block else (), unit)
        edits.append(TextEdit(end, end, f"\n{indent}}}"))
    else:
        clause = guard.child_by_field_name("condition")
        end = clause.end_byte if clause is not None else guard.start_byte
        edits.append(TextEdit(guard.start_byte, end, f"{new.removeprefix(indent)}{indent}{loop}"))
    return edits


def _strided_edits(kernel: Kernel, elements: Elements, arrays: list[ElementArray], factor: int) -> list[TextEdit]:
    """A loop over whole vectors before the loop over elements, which starts behind them."""
    source, loop, block, index = kernel.source, elements.guard, body(kernel), elements.index
    unit, indent = indent_unit(source, block) if block is not None else "  ", source.line_indent(loop.start_byte)
    vectors, update = free_name(source.code_text(), "vectors"), loop.child_by_field_name("update")
    moved, initializer = f"{factor} * {vectors}", loop.child_by_field_name("initializer")
    ahead = source.node_text(update) if update is not None else ""
    if initializer is not None:
        declared = source.text(initializer.start_byte, elements.initial.end_byte)
        number = index
        alone = elements.initial.type in _SUMMANDS
        start = elements.initial.start_byte
        edits = [TextEdit(start, start, f"{moved} + " if alone else f"{moved} + (")]
        edits += [] if alone else [TextEdit(elements.initial.end_byte, elements.initial.end_byte, ")")]
    else:
        number = free_name(source.code_text(), "vector")
        declared = f"auto {number} = {index}"
        ahead = re.sub(rf"\b{re.escape(index)}\b", number, ahead)
        place = next(child.start_byte for child in loop.children if child.type == ";")
        edits = [TextEdit(place, place, f"{index} += {moved}")]
    header = f"for ({declared}; {number} < {vectors}; {ahead})"
    lines = _vector_lines(kernel, elements, arrays, factor, vectors, unit, header, number)
    first = next(iter(pragmas_before(source, loop)), loop)
    at = source.line_starts[source.position(first.start_byte)[0] - 1]
    return [TextEdit(at, at, _text(lines, indent)), *edits]


def _text(lines: list[str], indent: str) -> str:
    return "".join(line + "\n" if line.startswith("#") or not line else f"{indent}{line}\n" for line in lines)


def _vector_lines(
    kernel: Kernel,
    elements: Elements,
    arrays: list[ElementArray],
    factor: int,
    vectors: str,
    unit: str,
    header: str,
    index: str,
) -> list[str]:
    """The branch or loop that works on whole vectors, `index` the number of one, without the indent of the guard."""
    source = kernel.source
    text = source.code_text()
    counter, aligned = free_name(kernel.span.code, "k"), free_name(text, "aligned")
    values = {array.name: free_name(text, f"{array.name}_values") for array in arrays}
    own = {a.type: free_name(text, f"{a.type.replace(' ', '_')}_vector") for a in arrays if not a.is_named}
    vector = {a.name: a.vector(factor) if a.is_named else own[a.type] for a in arrays}
    bound = source.node_text(elements.bound)
    alone = elements.bound.type in ("identifier", "field_expression") and not is_macro_of_several(
        source, elements.bound
    )
    bound = bound if alone else f"({bound})"
    lines = [
        *(f"struct alignas({factor} * sizeof({of})) {name} {{ {of} values[{factor}]; }};" for of, name in own.items()),
        f"const bool {aligned} = {_is_aligned(arrays, factor)};",
        f"const auto {vectors} = {aligned} ? {bound} / {factor} : 0;",
        f"{header} {{",
    ]
    lines += [f"{unit}alignas({_bytes(a, factor)}) {a.type} {values[a.name]}[{factor}];" for a in arrays]
    lines += [
        f"{unit}*reinterpret_cast<{vector[a.name]} *>({values[a.name]}) = "
        f"reinterpret_cast<const {vector[a.name]} *>({a.name})[{index}];"
        for a in arrays
        if a.is_loaded
    ]
    lines += ["#pragma unroll", f"{unit}for (int {counter} = 0; {counter} < {factor}; ++{counter}) {{"]
    work = reindented(
        _work(source, elements, arrays, values, counter, factor, index), source.line_indent(elements.start), 2 * unit
    )
    lines += [*(2 * unit + work).split("\n"), f"{unit}}}"]
    lines += [
        f"{unit}reinterpret_cast<{vector[a.name]} *>({a.name})[{index}] = "
        f"*reinterpret_cast<const {vector[a.name]} *>({values[a.name]});"
        for a in arrays
        if a.is_stored
    ]
    return [*lines, "}"]


def _bytes(array: ElementArray, factor: int) -> str:
    return str(array.size * factor) if array.is_named else f"{factor} * sizeof({array.type})"


def _is_aligned(arrays: list[ElementArray], factor: int) -> str:
    """The test that every array starts at a whole vector: one for all where their elements' sizes are known."""
    if all(array.is_named for array in arrays):
        addresses = " | ".join(f"reinterpret_cast<size_t>({array.name})" for array in arrays)
        whole = f"({addresses})" if len(arrays) > 1 else addresses
        return f"{whole} % {max(array.size for array in arrays) * factor} == 0"
    sizes = {array.name: as_factor(_bytes(array, factor)) for array in arrays}
    return " && ".join(f"reinterpret_cast<size_t>({name}) % {size} == 0" for name, size in sizes.items())


def _work(
    source: Source,
    elements: Elements,
    arrays: list[ElementArray],
    values: dict[str, str],
    counter: str,
    factor: int,
    index: str,
) -> str:
    """The work's text for one element of the vectors: `a[i]` as `a_values[k]`, any other i as `4 * i + k`."""
    taken = [(use, f"{values[array.name]}[{counter}]") for array in arrays for use in array.uses]
    edits = [TextEdit(use.start_byte, use.end_byte, text) for use, text in taken]
    number = f"{factor} * {index} + {counter}"
    for statement in elements.work:
        for use in names(statement, source, elements.index):
            if not any(element.start_byte <= use.start_byte < element.end_byte for element, _ in taken):
                alone = use.parent is not None and use.parent.type in _ALONE
                edits.append(TextEdit(use.start_byte, use.end_byte, number if alone else f"({number})"))
    start, end = elements.start, end_with_comment(source, elements.end)
    shifted = [TextEdit(edit.start - start, edit.end - start, edit.new_text) for edit in edits]
    return decoded(apply_edits(source.data[start:end], shifted))
