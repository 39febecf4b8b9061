"""How a kernel's text uses the index of the thread, and what its launches give."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import WARP, Kernel, Launch
from warpwright.rewrites._code import callees_of, macro_texts, macros_of
from warpwright.rewrites._grids import is_shape
from warpwright.rewrites._launched import flat_block_of, found_launches
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import declared_names
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import (
    declared_name,
    descendants,
    enclosing,
    launch_configuration,
    node_at,
    parameters_of,
    uncommented,
)
from warpwright.syntax.source import Source

NUMBERS = ("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize")
TIES = re.compile(
    r"\b(?:__shfl\w*|__ballot\w*|__any\w*|__all\w*|__match\w*|__reduce\w*|__syncwarp|__activemask|__syncthreads\w*|asm"
    r"|__asm__|volatile|cooperative_groups|cg|wmma|mma_sync|__nanosleep|this_thread_block|tiled_partition|__shared__"
    r"|clock|clock64|__trap|__threadfence\w*)\b"
)
"""What ties a thread to the others of its warp or block, or may not be run more or less often."""
_UNFIT_MACRO = re.compile(
    r"\b(?:threadIdx|blockIdx|blockDim|gridDim|warpSize|return|break|continue|goto|for|while|do|if|atomic\w*)\b"
    r"|(?<![=<>!])=(?!=)|\+\+|--|;|__"
)
_SIDE_EFFECT = re.compile(r"\b(?:atomic\w+|printf|assert|__prof_trigger)\b")


def unfit_call(kernel: Kernel, node: Node) -> str:
    """What a piece of code calls that may depend on the thread, change memory or be seen from outside; empty for
    nothing. Atomics are left to the caller.
    """
    source, functions, macros = kernel.source, callees_of(kernel), macros_of(kernel)
    called = [(called_name(call, source), call) for call in descendants(node, "call_expression")]
    called += [(w, n) for n in descendants(node, "identifier") if (w := source.node_text(n)) in macros]
    for name, call in called:
        line = line_of(source, call)
        if name in macros:
            if any(_UNFIT_MACRO.search(text) for text in macros[name]):
                return f"The macro {name}, used at line {line}, hides what it does."
        elif name in functions:
            if reason := _unfit_function(name, kernel, functions, macros, set()):
                return reason
        elif _SIDE_EFFECT.fullmatch(name):
            if not name.startswith("atomic"):
                return f"{name} at line {line} would run another number of times."
        elif not (known_call(name) or name in kernel.number_types):
            return f"{name or 'What is called'} at line {line} is not in this file, so what it does is not known."
    return ""


def known_call(name: str) -> bool:
    """Whether a name is of a function of CUDA that is known, or of a cast."""
    return bool(KNOWN_FUNCTIONS.fullmatch(name)) or name.endswith("_cast") or builtin_call(name)


def builtin_call(name: str) -> bool:
    """Whether a name is a type's that is written like a call, as in `float(x)`."""
    types = r"u?int(?:8|16|32|64)?(?:_t)?|float|double|bool|char|long|short|unsigned|size_t"
    return re.fullmatch(types, name) is not None


def _unfit_function(
    name: str,
    kernel: Kernel,
    functions: Mapping[str, list[tuple[Source, Node]]],
    macros: Mapping[str, list[str]],
    seen: set[str],
) -> str:
    """As `unfit_call`, of the functions of a name and those that they call; `seen` are names that were looked at."""
    seen.add(name)
    for source, function in functions[name]:
        text = source.node_code(function)
        if any(re.search(rf"\b{number}\b", text) for number in NUMBERS) or TIES.search(text):
            return f"{name} depends on which thread calls it."
        if _SIDE_EFFECT.search(text):
            return f"{name} does more than compute a value."
        for word in sorted({source.node_text(n) for n in descendants(function, "identifier")} & macros.keys()):
            if any(_UNFIT_MACRO.search(value) or TIES.search(value) for value in macros[word]):
                return f"The macro {word}, which {name} uses, hides what it does."
        for parameter in parameters_of(function):
            declared = source.node_text(parameter)
            if re.search(r"[*&\[]", declared) and not re.search(r"\bconst\b", declared):
                return f"{name} may write through its parameter `{declared}`."
        if changed := _changed_outside(source, function, name):
            return f"{name} changes `{changed}`, which stays changed."
        for call in descendants(function, "call_expression"):
            inner = called_name(call, source)
            if inner in functions and inner not in macros:
                if inner not in seen and (reason := _unfit_function(inner, kernel, functions, macros, seen)):
                    return reason
            elif not (inner in macros or known_call(inner) or inner in kernel.number_types):
                return f"{name} calls {inner or 'something'}, which is not followed."
    return ""


def whole_warps(kernel: Kernel) -> list[Launch] | str:
    """The launches of a kernel if all are in this file with one-dimensional blocks of whole warps, or the reason why
    not."""
    launches = found_launches(kernel)
    for launch in launches if not isinstance(launches, str) else ():
        if launch.span is None or launch.span.source is not kernel.source:
            return f"{kernel.name} is launched at {launch.source}, in another file than the kernel's."
        threads = flat_block_of(launch)
        if isinstance(threads, str):
            return threads
        if threads % WARP:
            return f"The block at {launch.source} has {threads} threads, which is not a multiple of {WARP}."
    return launches


def grid_times(source: Source, launch: Launch, factor: int) -> TextEdit | str:
    """The edit that gives a launch `factor` times as many blocks in x, or the reason why it cannot be written."""
    node = node_at(source.root, launch.span.start, launch.span.end) if launch.span is not None else None
    configuration = launch_configuration(node) if node is not None else None
    if configuration is None or not uncommented(configuration):
        return f"The launch at {launch.source} is in a macro."
    grid = uncommented(configuration)[0]
    text = source.node_text(grid)
    arguments: Node | None = None
    if grid.type == "call_expression" and called_name(grid, source) == "dim3":
        arguments = grid.child_by_field_name("arguments")
    elif grid.type == "initializer_list":
        arguments = grid
    elif grid.type == "compound_literal_expression":
        arguments = grid.child_by_field_name("value")
    if arguments is not None:
        if not uncommented(arguments):
            return f"The grid of the launch at {launch.source} is not written as a number of blocks."
        grid = uncommented(arguments)[0]
    elif is_shape(source, grid):
        rest = "" if launch.grid[1:] == (1, 1) else f", {text}.y, {text}.z"
        new = f"dim3({text}.x * {factor}{rest})" if rest else f"{text}.x * {factor}"
        return TextEdit(grid.start_byte, grid.end_byte, new)
    return TextEdit(grid.start_byte, grid.end_byte, times(source, grid, factor))


def times(source: Source, node: Node, factor: int) -> str:
    """An expression with a factor, in parentheses where it needs them.

    `n / 256` becomes `n / 256 * 32`, `n + 1` becomes `(n + 1) * 32`, and so does a macro, which may stand for that.
    """
    text = source.node_text(node)
    operator = node.child_by_field_name("operator")
    product = (
        node.type == "binary_expression" and operator is not None and source.node_text(operator) in ("*", "/", "%")
    )
    plain = product or node.type in (
        "identifier", "number_literal", "call_expression", "parenthesized_expression", "field_expression",
        "qualified_identifier", "subscript_expression",
    )  # fmt: skip
    macros = macro_texts(source)
    named = called_name(node, source) if node.type == "call_expression" else text
    plain = plain and not any(re.search(r"\W", value) for value in macros.get(named, ()))
    return f"{text} * {factor}" if plain else f"({text}) * {factor}"


def _changed_outside(source: Source, function: Node, name: str) -> str:
    """What a function changes beside its own variables, such as a member of its object; empty for nothing."""
    for static in descendants(function, "storage_class_specifier"):
        if static.parent is not None and static.parent.type == "declaration" and source.node_text(static) == "static":
            return source.node_text(static.parent)
    kind = enclosing(function, "struct_specifier", "class_specifier")
    own_kind = kind.child_by_field_name("name") if kind is not None else None
    if own_kind is not None and source.node_text(own_kind) == name:  # a constructor sets an object that is new
        return ""
    parameters = {declared_name(source, p.child_by_field_name("declarator")) for p in parameters_of(function)}
    own = parameters | declared_names(source, function)
    for change in descendants(function, "assignment_expression", "update_expression"):
        target = change.child_by_field_name("left") or change.child_by_field_name("argument")
        first = next(descendants(target, "identifier"), None) if target is not None else None
        if target is not None and (first is None or source.node_text(first) not in own):
            return source.node_text(target)
    return ""
