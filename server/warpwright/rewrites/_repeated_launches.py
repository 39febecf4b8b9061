"""Host loops that do nothing but make the same launches again and again, or every second time the same.

Example: `for (int t = 0; t < steps; ++t) { step<<<grid, 256>>>(b, a, n); std::swap(a, b); }`. What is launched at one
iteration is launched again two iterations later, so that an even number of them is one graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.launch_loops import loop_around
from warpwright.facts.model import Kernel, Launch
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import (
    NoMatchError,
    functions_of,
    host_launches,
    in_macro,
    macro_texts,
    macros_naming,
    overlaps,
)
from warpwright.rewrites._error_checks import is_extension
from warpwright.rewrites._grids import call_of
from warpwright.rewrites._layout import line_of
from warpwright.syntax.nodes import (
    LOOPS,
    ancestors,
    declared_name,
    descendants,
    enclosing,
    launch_configuration,
    uncommented,
    walk,
)
from warpwright.syntax.source import Source, Span

_CAPTURE = re.compile(
    r"cudaStreamBeginCapture\((\w+), cudaStreamCaptureModeThreadLocal\)(.*?)cudaStreamEndCapture\(\1,", re.DOTALL
)
_READS_ERROR = re.compile(r"(?:(\w+)\s*\(\s*)?cuda(?:GetLastError|PeekAtLastError)\s*\(\s*\)\s*\)?")
_ASKS = re.compile(r"[\w.]+\.(?:data|data_ptr|get|size)(?:<\w+>)?\(\)")
"""Calls that give the same each time: `x.data()`."""
_PURE = re.compile(r"dim3|(?:std::)?(?:min|max|ceil|floor)f?|\w+_cast(?:<.*>)?|(?:\w+::)*raw_pointer_cast", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_DOES_MORE = re.compile(r"Synchronize|<<<|cuda(?:Mem|Device|Stream)|\+\+|--|[-+*|]=")
_RESTLESS = re.compile(r"\+\+|--|[^=!<>]=[^=]|\b(?!(?:dim3|sizeof|min|max|ceilf?|int|float|size_t)\b)[A-Za-z_]\w*\s*\(")
_DECIMAL = re.compile(r"0|[1-9][0-9]*")
_CALL = re.compile(
    r"\b(?!(?:if|for|while|switch|sizeof|return|cudaGetLastError|cudaPeekAtLastError)\b)([A-Za-z_]\w*)\s*\("
)
_DECIDES = re.compile(r"\bif\b|\?|&&|\|\||\bassert\b")
_DEFAULT_STREAM = ("0", "nullptr", "NULL", "cudaStreamLegacy")
_CHANGES = ("assignment_expression", "update_expression", "lambda_expression", "new_expression", "comma_expression")
_CALLS_OR_READS = ("call_expression", "pointer_expression", "subscript_expression")
STREAM_PART = 3
"""Of `<<<grid, block, shared, stream>>>`."""


@dataclass(frozen=True, slots=True)
class RepeatedLaunches:
    """`for (type variable = start; variable < bound; ++variable) { statements }`, or with `<=` where `is_inclusive`.

    `value` is the text of `start` in the head of the loop, `stream` where all `calls` go ("0" for the default).
    """

    loop: Node
    variable: str
    type: str
    value: Node
    start: int
    bound: Node
    is_inclusive: bool
    statements: tuple[Node, ...]
    calls: tuple[Node, ...]
    stream: str


def launches_in_loops(kernel: Kernel, at: Span | None) -> Iterator[tuple[Launch, Node, Node]]:
    """The launches of a kernel that stand in loops of its file's host code, with the call and the loop; with `at` those
    whose loop it touches."""
    for launch in host_launches(kernel):
        call = call_of(launch)
        if call is None or launch.span is None or launch.span.source is not kernel.source or in_macro(call):
            continue
        loop = loop_around(call)
        if loop is not None and (at is None or overlaps(kernel.source.span(loop), at)):
            yield launch, call, loop


def repeated_launches(source: Source, loop: Node) -> RepeatedLaunches:
    """A host loop taken apart. Raises NoMatchError with the reason where it may do anything else."""
    line = line_of(source, loop)
    if loop.type != "for_statement":
        raise NoMatchError(f"The loop at line {line} is not a `for` that counts its iterations.")
    _require_place(source, loop)
    variable, kind, value, bound, inclusive = _counted(source, loop)
    inner = loop.child_by_field_name("body")
    statements = uncommented(inner) if inner is not None and inner.type == "compound_statement" else [inner]
    calls: list[Node] = []
    others: list[Node] = []
    for statement in statements:
        if statement is None:
            continue
        call = _launch_of(statement)
        if call is not None:
            calls.append(call)
        elif not reads_error(source, statement):
            others.append(statement)
    swapped, temporaries = _swapped(source, others)
    if not calls:
        raise NoMatchError(f"The loop at line {line} launches nothing itself.")
    for call in calls:
        _require_same(source, call, variable, temporaries)
    for name in _names(source, bound):
        if name in swapped or name in temporaries or name == variable:
            raise NoMatchError(f"The loop's bound `{source.node_text(bound)}` changes in the loop.")
    return RepeatedLaunches(
        loop, variable, kind, value, int(source.node_text(value)), bound, inclusive,
        tuple(s for s in statements if s is not None), tuple(calls), _stream(source, loop, calls, swapped),
    )  # fmt: skip


def _require_place(source: Source, loop: Node) -> None:
    """The loop stands where lines can be put before it, in a function that is one, on a stream that nobody captures."""
    line = line_of(source, loop)
    function = enclosing(loop, "function_definition", "lambda_expression")
    if in_macro(loop) or function is None or function.type == "lambda_expression":
        raise NoMatchError(f"The loop at line {line} stands in a macro or a lambda.")
    if loop.parent is None or loop.parent.type != "compound_statement":
        raise NoMatchError(f"The loop at line {line} has no braces around it.")
    if any(True for _ in descendants(function, "goto_statement")):
        raise NoMatchError("The function has a `goto`, which may not jump over variables that are declared.")
    if re.search(r"\b__(?:global|device)__\b", source.code_text(function.start_byte, loop.start_byte)):
        raise NoMatchError(f"The loop at line {line} runs on the GPU.")
    directive = loop.prev_named_sibling
    while directive is not None and directive.type == "comment":
        directive = directive.prev_named_sibling
    if directive is not None and directive.type == "preproc_call":
        raise NoMatchError(f"The loop has the directive `{source.node_text(directive).strip()}`.")
    text = source.code_text()
    if is_extension(source):
        raise NoMatchError("In a PyTorch extension the caller's stream may be capturing already.")
    if _captures_more(source):
        raise NoMatchError("The file captures streams itself.")
    if any("BeginCapture" in source.node_code(n) for n in ancestors(loop) if n.type in (*LOOPS, "if_statement")):
        raise NoMatchError(f"The loop at line {line} is captured already.")
    if "__managed__" in text:
        raise NoMatchError("The file has `__managed__` variables, which a kernel may change between launches.")


def _captures_more(source: Source) -> bool:
    """Whether a stream may be captured while a function of the file runs: not where each capture is of a stream of its
    own, for the thread alone, and calls no function of the file."""
    text = source.code_text()
    captures = list(_CAPTURE.finditer(text))
    functions = functions_of(source)
    for each in captures:
        if f"cudaStreamCreateWithFlags(&{each[1]}, cudaStreamNonBlocking)" not in text:
            return True
        if any(word in functions for word in re.findall(r"(\w+)\s*\(", each[2])):
            return True
    return len(captures) < text.count("BeginCapture")


def _counted(source: Source, loop: Node) -> tuple[str, str, Node, Node, bool]:
    """The variable, its type, its first value, the bound, and whether the bound is reached."""
    first, condition, update = (loop.child_by_field_name(f) for f in ("initializer", "condition", "update"))
    reason = f"The loop at line {line_of(source, loop)} does not count up by 1 from a number to a loop-invariant bound."
    if first is None or condition is None or update is None:
        raise NoMatchError(reason)
    if first.type == "declaration":
        declared = first.children_by_field_name("declarator")
        setter = declared[0] if len(declared) == 1 and declared[0].type == "init_declarator" else None
        name, value = (setter.child_by_field_name(f) if setter else None for f in ("declarator", "value"))
        written = first.child_by_field_name("type")
        kind = source.node_text(written) if written is not None else ""
    else:
        is_set = first.type == "assignment_expression" and source.node_text(first.children[1]) == "="
        name, value = (first.child_by_field_name(f) if is_set else None for f in ("left", "right"))
        kind = _declared_type(source, loop, source.node_text(name)) if name is not None else ""
    if name is None or name.type != "identifier" or value is None or not _DECIMAL.fullmatch(source.node_code(value)):
        raise NoMatchError(reason)
    variable = source.node_text(name)
    known = builtin_type(kind)
    if known is None or not known.is_integer or known.kind == "bool":
        raise NoMatchError(f"The type of `{variable}`, which counts the iterations, is not seen.")
    left, relation, bound = (condition.child_by_field_name(f) for f in ("left", "operator", "right"))
    ways = (f"++{variable}", f"{variable}++", f"{variable}+=1")
    if (
        left is None
        or relation is None
        or bound is None
        or relation.type not in ("<", "<=")
        or source.node_text(left) != variable
        or "".join(source.node_code(update).split()) not in ways
        or not _stays(source, bound)
    ):
        raise NoMatchError(reason)
    return variable, kind, value, bound, relation.type == "<="


def _declared_type(source: Source, loop: Node, name: str) -> str:
    """The type with which the function around a loop declares a variable, if it is one declaration without stars."""
    function = enclosing(loop, "function_definition")
    found = [
        declaration
        for declaration in descendants(function, "declaration", "parameter_declaration")
        for declarator in declaration.children_by_field_name("declarator")
        if declared_name(source, declarator) == name
    ] if function is not None else []  # fmt: skip
    kind = found[0].child_by_field_name("type") if len(found) == 1 else None
    return source.node_text(kind) if kind is not None else ""


def _launch_of(statement: Node) -> Node | None:
    inner = uncommented(statement) if statement.type == "expression_statement" else []
    is_launch = len(inner) == 1 and inner[0].type == "call_expression" and launch_configuration(inner[0]) is not None
    return inner[0] if is_launch else None


def reads_error(source: Source, statement: Node) -> bool:
    """`cudaGetLastError();`, alone or in a check of the file that waits for nothing, counts nothing, and calls others
    only where something is wrong."""
    found = _READS_ERROR.fullmatch(source.node_code(statement).rstrip("; \n"))
    if found is None or statement.type != "expression_statement":
        return False
    if found[1] is None:
        return True
    macros, functions = macro_texts(source), functions_of(source)
    left, seen, texts = [found[1]], {found[1]}, list[str]()
    while left:
        name = left.pop()
        own = [*macros.get(name, []), *(source.node_text(function) for function in functions.get(name, []))]
        texts += (_STRING.sub('""', text) for text in own)
        more = {word for text in own for word in re.findall(r"\w+", text)} & (macros.keys() | functions.keys()) - seen
        seen |= more
        left += more
    return bool(texts) and not any(
        _DOES_MORE.search(text) or (set(_CALL.findall(text)) - seen and not _DECIDES.search(text)) for text in texts
    )


def restless_macros(source: Source) -> set[str]:
    """The macros of a file that may be another value each time: `#define NEXT counter++`, `#define SEED rand()`."""
    return set(macros_naming(source, _RESTLESS))


def _swapped(source: Source, others: list[Node]) -> tuple[set[str], set[str]]:
    """The variables that change places at each iteration, and those that help them to. Raises NoMatchError where a
    statement is no part of that, or three change places."""
    swapped: list[str] = []
    temporaries: set[str] = set()
    left = list(others)
    while left:
        pair, used, temporary = _exchange(source, left)
        if pair is None:
            line, shown = line_of(source, left[0]), " ".join(source.plain_text(left[0]).split())
            raise NoMatchError(f"Line {line} of the loop does more than launch: `{shown[:60]}`.")
        swapped += pair
        temporaries |= {temporary} - {""}
        left = left[used:]
    if len(set(swapped)) < len(swapped) or temporaries & set(swapped):
        raise NoMatchError("More than two variables change places, so that not every second iteration is the same.")
    return set(swapped), temporaries


def _exchange(source: Source, statements: list[Node]) -> tuple[tuple[str, str] | None, int, str]:
    """Two names that change places in the first statement or in the first three; how many statements that takes, and
    what held one of them meanwhile."""
    text = "".join(source.node_code(statements[0]).split())
    is_own = "swap" in functions_of(source) or "swap" in macro_texts(source)
    if called := re.fullmatch(r"(?:std::)?swap\((\w+),(\w+)\);", text):
        return ((called[1], called[2]) if not is_own else None), 1, ""
    three = [_set(source, statement) for statement in statements[:3]]
    if len(three) == 3 and all(three):
        (temporary, first), (target, second), (last, held) = three  # type: ignore[misc]
        if (target, last, held) == (first, second, temporary) and len({first, second, temporary}) == 3:
            return (first, second), 3, temporary
    return None, 0, ""


def _set(source: Source, statement: Node) -> tuple[str, str] | None:
    """The names in `a = b;` and `T *a = b;`."""
    if statement.type == "declaration":
        declared = statement.children_by_field_name("declarator")
        if len(declared) != 1 or declared[0].type != "init_declarator":
            return None
        value = declared[0].child_by_field_name("value")
        target = declared[0].child_by_field_name("declarator")
        if target is None or any(True for _ in descendants(target, "reference_declarator", "array_declarator")):
            return None
        name = declared_name(source, target)
    else:
        inner = uncommented(statement) if statement.type == "expression_statement" else []
        is_set = len(inner) == 1 and inner[0].type == "assignment_expression"
        left, value = (inner[0].child_by_field_name(f) if is_set else None for f in ("left", "right"))
        if left is None or left.type != "identifier" or source.node_text(inner[0].children[1]) != "=":
            return None
        name = source.node_text(left)
    return (name, source.node_text(value)) if value is not None and value.type == "identifier" else None


def _require_same(source: Source, call: Node, variable: str, temporaries: set[str]) -> None:
    """Every part of a launch is the same at each iteration, but for variables that change places."""
    function = call.child_by_field_name("function")
    name = source.node_text(function) if function is not None else ""
    for part in (*uncommented(launch_configuration(call)), *uncommented(call.child_by_field_name("arguments"))):
        text = " ".join(source.plain_text(part).split())
        used = set(_names(source, part))
        if variable in used:
            raise NoMatchError(f"`{text}`, with which {name} is launched, depends on `{variable}`.")
        if used & temporaries or not _stays(source, part):
            raise NoMatchError(f"`{text}`, with which {name} is launched, may be another at each iteration.")


def _stays(source: Source, node: Node) -> bool:
    """Whether an expression gives the same as long as its variables do: it changes nothing, calls nothing that may,
    and reads no memory that a kernel may write."""
    restless = restless_macros(source)
    for each in walk(node):
        if each.type in _CHANGES or (each.type == "identifier" and source.node_text(each) in restless):
            return False
        if each.type == "call_expression" and not is_pure(source, each):
            return False
        if each.type == "pointer_expression" and each.children[0].type == "*":
            return False
        if each.type == "subscript_expression" and not (
            each.parent is not None and each.parent.type == "pointer_expression" and each.parent.children[0].type == "&"
        ):
            return False
        if each.type == "field_expression" and "->" in source.node_text(each).replace("this->", ""):
            return False
    return True


def is_pure(source: Source, call: Node) -> bool:
    function = call.child_by_field_name("function")
    written = source.node_code(function) if function is not None else ""
    name = called_name(call, source)
    if (_ASKS.fullmatch(source.node_code(call)) and name not in functions_of(source)) or _PURE.fullmatch(written):
        return True
    if texts := macro_texts(source).get(name):
        return not any(re.search(r"[^=!<>]=[^=]|\+\+|--|\w\s*\(", text) for text in texts)
    defined = functions_of(source).get(name, [])
    return bool(defined) and all(
        [s.type for s in uncommented(each.child_by_field_name("body"))] == ["return_statement"]
        and not any(True for _ in descendants(each, *_CHANGES, *_CALLS_OR_READS))
        for each in defined
    )


def _stream(source: Source, loop: Node, calls: list[Node], swapped: set[str]) -> str:
    """The stream of all launches, as text; the default stream is "0"."""
    parts = [uncommented(launch_configuration(call)) for call in calls]
    texts = {source.node_text(p[STREAM_PART]) if len(p) > STREAM_PART else "0" for p in parts}
    found = {"0" if text in _DEFAULT_STREAM else text for text in texts}
    if len(found) > 1:
        several = " and ".join(f"`{each}`" for each in sorted(found))
        raise NoMatchError(f"The launches go to several streams: {several}.")
    (stream,) = found
    function = enclosing(loop, "function_definition")
    made = rf"\bcudaStreamCreate\w*\s*\(\s*&\s*{re.escape(stream)}\b"
    own = function is not None and re.search(made, source.code_text(function.start_byte, loop.start_byte)) is not None
    is_set = rf"\b{re.escape(stream)}\s*=[^=]"
    if stream in swapped or (own and function is not None and re.search(is_set, source.node_code(function))):
        raise NoMatchError(f"`{stream}`, to which the launches go, is set to another.")
    if stream != "0" and not own:
        raise NoMatchError(f"`{stream}` is not made in this function, so whoever made it may be capturing it.")
    return stream


def _names(source: Source, node: Node) -> Iterator[str]:
    yield from (source.node_text(n) for n in descendants(node, "identifier"))
