"""A loop that counts up or down by 1, whoever declares what it counts with, and how its indices move along."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, bare, is_macro_of_several, names, squeezed
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import changed_names, declared_names, locals_of
from warpwright.rewrites._loops import loop_start
from warpwright.rewrites._threads import TIES, builtin_call
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import BREAKABLE, declared_name, descendants, enclosing, uncommented
from warpwright.syntax.source import Source

_DEEPEST = 6
"""Variables and macros that an index may go through."""

_PLAIN = frozenset(
    {
        "identifier",
        "number_literal",
        "field_expression",
        "field_identifier",
        "binary_expression",
        "parenthesized_expression",
        "cast_expression",
        "type_descriptor",
        "primitive_type",
        "type_identifier",
        "sized_type_specifier",
    }
)
"""What a bound may be made of that costs nothing to compute once more."""


@dataclass(frozen=True, slots=True)
class CountedWalk:
    """`for (name = start; name < end; name++)`; `count` is the text of how many iterations it has, `known` their number
    where the text says it; `down` where it counts down."""

    node: Node
    name: str
    start: Node
    body: Node
    count: str
    known: int | None
    down: bool


def counted_walk(kernel: Kernel, node: Node) -> CountedWalk:
    """The parts of a `for`; refuses a loop that counts otherwise, ends early, or ties threads together."""
    source, line = kernel.source, line_of(kernel.source, node)
    condition, update, body = (node.child_by_field_name(f) for f in ("condition", "update", "body"))
    name, _, start = loop_start(kernel, locals_of(kernel).types, node.child_by_field_name("initializer"))
    if node.type != "for_statement" or start is None or condition is None or update is None or body is None:
        raise NoMatchError(f"The loop at line {line} does not start one integer at a value.")
    n, step = re.escape(name), squeezed(source.node_code(update))
    up = re.fullmatch(rf"{n}\+\+|\+\+{n}|{n}\+=1[uU]?|{n}={n}\+1[uU]?", step)
    down = re.fullmatch(rf"{n}--|--{n}|{n}-=1|{n}={n}-1", step)
    if not up and not down:
        raise NoMatchError(f"The loop at line {line} does not count {name} by 1.")
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    sign = source.node_text(operator) if condition.type == "binary_expression" and operator is not None else ""
    if left is None or right is None or source.node_text(left) != name or sign not in ("<", "<=", ">", ">="):
        raise NoMatchError(f"The loop at line {line} does not run while {name} is less than a bound.")
    if (sign[0] == "<") != bool(up):
        raise NoMatchError(f"The loop at line {line} does not count {name} towards its bound.")
    _require_steady(kernel, node, body, name, (start, right))
    for jump in descendants(body, "break_statement", "return_statement"):
        around = enclosing(jump, *BREAKABLE)
        if jump.type == "return_statement" or around == node:
            raise NoMatchError(f"The loop ends early at line {line_of(source, jump)}.")
    if tied := TIES.search(source.node_code(body)):
        raise NoMatchError(f"The loop at line {line} uses `{tied.group()}`, which ties its threads together.")
    low, high = (start, right) if up else (right, start)
    bottom, top = _operand(source, low), _operand(source, high)
    more = 1 if sign in ("<=", ">=") else 0
    ends = [number_at(source, end, source.node_code(end)) for end in (low, high)]
    known = ends[1] - ends[0] + more if ends[0] is not None and ends[1] is not None else None
    one_less = re.fullmatch(r"(\w+)-1", squeezed(source.node_code(high))) if more else None
    if one_less and not is_macro_of_several(source, next(descendants(high, "identifier", "number_literal"))):
        top, more = one_less[1], 0
    count = top if ends[0] == 0 else f"({top} - {bottom})"
    return CountedWalk(node, name, start, body, f"({count} + 1)" if more else count, known, down=bool(down))


def _require_steady(kernel: Kernel, loop: Node, body: Node, name: str, ends: tuple[Node, Node]) -> None:
    """What the loop counts with and to stays as it is while it runs, and its names mean one thing."""
    source, line = kernel.source, line_of(kernel.source, loop)
    changed = set(changed_names(source, body))
    own = declared_names(source, body)
    if name in changed or name in own:
        raise NoMatchError(f"The loop at line {line} changes {name} in its body.")
    for end in ends:
        text = source.node_text(end)
        used = {source.node_text(use) for use in descendants(end, "identifier")}
        if not _is_plain(source, end) or name in used or used & (changed | own):
            raise NoMatchError(f"The bound {text} at line {line} may change while the loop runs.")


def _is_plain(source: Source, node: Node) -> bool:
    """Whether an expression is made of variables, numbers and casts alone, none of them behind a pointer."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.type == "call_expression":
            name = called_name(part, source)
            if name != "static_cast" and not builtin_call(name):
                return False
            waiting += uncommented(part.child_by_field_name("arguments"))
            continue
        if part.type not in _PLAIN:
            return False
        waiting += part.named_children
    return "->" not in source.node_code(node)


def _operand(source: Source, node: Node) -> str:
    text = source.node_text(node)
    return text if re.fullmatch(r"[\w.]+", text) and not is_macro_of_several(source, node) else f"({text})"


def written_out(kernel: Kernel, walk: CountedWalk, index: Node) -> tuple[Source, Node]:
    """An index with the values of what each iteration declares and the macros of the file in their places, and the
    text that it stands in: `i * n + j` for `at` after `int at = IDX(i, j);`."""
    source, once = kernel.source, locals_of(kernel).types
    changed = set(changed_names(source, walk.body))
    steady = {
        name: value
        for declared in descendants(walk.body, "init_declarator")
        if (value := declared.child_by_field_name("value")) is not None
        if (name := declared_name(source, declared)) in once and name not in changed
    }
    macros = _index_macros(source)
    here, node = source, index
    for _ in range(_DEEPEST):
        text = _replaced(here, node, {name: source.node_text(value) for name, value in steady.items()}, macros)
        if text == here.node_text(node):
            break
        text = re.sub(r"\(\(([^()]*)\)\)", r"(\1)", re.sub(r"(?<!\w)\((\w+)\)(?!\s*[\w(])", r"\1", text))
        here = Source("index", encoded(f"int at = {text};"))
        declared = next(descendants(here.root, "init_declarator"), None)
        value = declared.child_by_field_name("value") if declared is not None else None
        if value is None or here.root.has_error:
            return source, index
        node = bare(value)
    return here, bare(node)


def _index_macros(source: Source) -> dict[str, tuple[list[str], str]]:
    """The function-like macros of a file that are defined once: their parameters and what they stand for."""
    found: dict[str, list[tuple[list[str], str]]] = {}
    for macro in descendants(source.root, "preproc_function_def"):
        name, value = macro.child_by_field_name("name"), macro.child_by_field_name("value")
        parameters = macro.child_by_field_name("parameters")
        if name is not None and value is not None and parameters is not None:
            listed = [source.node_text(n) for n in uncommented(parameters)]
            text = source.node_code(value).replace("\\\n", " ").strip()
            found.setdefault(source.node_text(name), []).append((listed, text))
    return {name: macros[0] for name, macros in found.items() if len(macros) == 1 and "#" not in macros[0][1]}


def _replaced(source: Source, node: Node, new: dict[str, str], macros: dict[str, tuple[list[str], str]]) -> str:
    """An expression's text with variables and calls of macros written out once."""
    if node.type == "identifier":
        name = source.node_text(node)
        return f"({new[name]})" if name in new else name
    if node.type == "call_expression" and called_name(node, source) in macros:
        parameters, text = macros[called_name(node, source)]
        given = [source.node_text(n) for n in uncommented(node.child_by_field_name("arguments"))]
        if len(given) == len(parameters):
            values = dict(zip(parameters, given, strict=True))
            return "(" + re.sub(r"[A-Za-z_]\w*", lambda word: values.get(word.group(), word.group()), text) + ")"
    out, at = "", node.start_byte
    for child in node.named_children:
        out += source.text(at, child.start_byte) + _replaced(source, child, new, macros)
        at = child.end_byte
    return out + source.text(at, node.end_byte)


def moves_along(kernel: Kernel, walk: CountedWalk, source: Source, index: Node) -> bool:
    """Whether an index, which stands in the text `source`, is a sum in which the loop's variable stands once by itself,
    and nothing else of which changes while the loop runs: `i * n + j`."""
    own = set(changed_names(kernel.source, walk.body)) | declared_names(kernel.source, walk.body) | {walk.name}
    found, waiting = 0, [index]
    while waiting:
        part = waiting.pop()
        operator = part.child_by_field_name("operator")
        if part.type == "parenthesized_expression" and len(uncommented(part)) == 1:
            waiting.append(uncommented(part)[0])
        elif part.type == "binary_expression" and operator is not None and source.node_text(operator) == "+":
            waiting += part.named_children
        elif part.type == "binary_expression" and operator is not None and source.node_text(operator) == "-":
            waiting += [n for n in (part.child_by_field_name("left"),) if n is not None]
            taken = part.child_by_field_name("right")
            if taken is None or not _is_steady(source, taken, own):
                return False
        elif part.type == "identifier" and source.node_text(part) == walk.name:
            found += 1
        elif not _is_steady(source, part, own):
            return False
    return found == 1


def _is_steady(source: Source, node: Node, own: set[str]) -> bool:
    return _is_plain(source, node) and not any(source.node_text(use) in own for use in descendants(node, "identifier"))


def at_counter(source: Source, node: Node, walk: CountedWalk, value: str) -> str:
    """An index with another value for the loop's variable: `i * n` for `i * n + j` at 0."""
    if value == "0" and node.type == "binary_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is not None and right is not None and operator is not None and source.node_text(operator) == "+":
            if source.node_text(right) == walk.name:
                return source.node_text(left)
            if source.node_text(left) == walk.name:
                return source.node_text(right)
    out, at = "", node.start_byte
    for use in names(node, source, walk.name):
        alone = use == node or (use.parent is not None and use.parent.type == "parenthesized_expression")
        wrapped = value if alone or re.fullmatch(r"[\w.]+", value) else f"({value})"
        out += source.text(at, use.start_byte) + wrapped
        at = use.end_byte
    return out + source.text(at, node.end_byte)
