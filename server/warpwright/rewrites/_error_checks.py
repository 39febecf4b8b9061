"""How a file reads the errors of CUDA: its own macros and functions for that, and what they need."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, enclosing, uncommented
from warpwright.syntax.source import Source

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
_DEVICE = re.compile(r"[^({;]*\b__(?:global|device)__")
_TORCH = re.compile(r"#\s*include\s*[<\"](?:torch/|ATen/|c10/)")
_TORCH_CHECK_HEADER = re.compile(
    r"#\s*include\s*[<\"](?:c10/cuda/CUDAException\.h|ATen/cuda/(?:CUDAContext|Exceptions)\.h)"
)


def is_extension(source: Source) -> bool:
    """Whether a file includes PyTorch."""
    return _TORCH.search(source.code_text()) is not None


def torch_headers(source: Source) -> list[str]:
    """The include that PyTorch's checks need, where the file does not have it."""
    return [] if _TORCH_CHECK_HEADER.search(source.code_text()) else ["#include <c10/cuda/CUDAException.h>"]


def message_headers(source: Source, *headers: str) -> list[str]:
    """The includes of some headers of C's library, such as "cstdio", that the file does not have; by their C names
    where it has such headers and none of C++."""
    text = source.code_text()
    of_c = re.search(r"#\s*include\s*<\w+\.h>", text) and not re.search(r"#\s*include\s*<\w+>", text)
    return [
        f"#include <{names[1] if of_c else names[0]}>"
        for names in ((each, f"{each[1:]}.h") for each in headers)
        if not re.search(rf"#\s*include\s*[<\"](?:{'|'.join(map(re.escape, names))})[>\"]", text)
    ]


def std_prefix(source: Source) -> str:
    """`std::` where the file writes that before the C library's functions."""
    return "std::" if _STD.search(source.code_text()) else ""


def returns_error(source: Source, function: Node, statement: Node) -> bool:
    """Whether `return error;` at a statement is what its function gives its caller."""
    returned = function.child_by_field_name("type")
    plain = (function.child_by_field_name("declarator") or function).type == "function_declarator"
    own = enclosing(statement, "function_definition", "lambda_expression") == function
    return plain and own and returned is not None and source.node_text(returned) == "cudaError_t"


def launch_checker(source: Source, before: int) -> str:
    """A call that takes no error and reads the last one, such as `CHECK_LAUNCH()`; "" for none."""
    for helper in _helpers(source):
        fits = helper.reads_error and helper.handles_error and helper.acts and not helper.works
        if helper.end <= before and not helper.parameters and fits:
            return f"{helper.name}()"
    return 'getLastCudaError("kernel launch failed")' if "getLastCudaError" in _statements(source).used else ""


def wrapper_of(source: Source, place: Node) -> str:
    """What the file wraps around CUDA's calls, as a statement; "" for nothing that fits the place, which is the call to
    wrap, or a statement that one goes behind.

    What it already uses most counts before what it only defines.
    """
    before, helpers = place.start_byte, _helpers(source)
    late = {helper.name for helper in helpers} - {helper.name for helper in helpers if helper.end <= before}
    late |= {helper.name for helper in helpers if not helper.acts or not _fits(source, helper, place)}
    for name, _ in _statements(source).wrappers.most_common():
        if name not in late:
            return name
    for helper in helpers:
        fits = helper.handles_error and helper.acts and not helper.reads_error
        if helper.name not in late and helper.parameters == 1 and fits:
            return helper.name
    return ""


def has_bare_comma(call: Node) -> bool:
    """Whether a macro of one parameter would take a call for several: `f<int, 2>(x)`, `f(dim3{1, 2})`."""
    lists = descendants(call, "template_argument_list", "initializer_list", "lambda_expression")
    return any(child.type == "," for node in lists for inner in (node, *descendants(node)) for child in inner.children)


def _fits(source: Source, helper: _Helper, place: Node) -> bool:
    """Whether a helper, where it is a macro, takes a call as one argument and leaves its function as that returns."""
    if helper.is_narrow and place.type == "call_expression" and has_bare_comma(place):
        return False
    if not helper.returned:
        return True
    function = enclosing(place, "function_definition", "lambda_expression")
    kind = function.child_by_field_name("type") if function is not None else None
    returned = source.node_code(kind) if kind is not None else ""
    plain = function is not None and (function.child_by_field_name("declarator") or place).type == "function_declarator"
    valued = any(value.strip() for value in helper.returned)
    return plain and (returned in ("int", "cudaError_t") if valued else returned == "void")


@dataclass(frozen=True, slots=True)
class _Helper:
    """A macro, or a function that takes an error or nothing; `parameters` counts those without a default.

    `acts` is false for one that only answers, such as `#define FAILED(e) ((e) != cudaSuccess)`, and `works` true for
    one that does more than check. Of a macro, `returned` is what follows each `return`, and `is_narrow` says that it
    takes no commas.
    """

    name: str
    end: int
    parameters: int
    reads_error: bool
    handles_error: bool
    acts: bool
    works: bool
    returned: tuple[str, ...] = ()
    is_narrow: bool = False


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
            if parameters is None or (parameters.named_children and "cudaError_t" not in source.node_code(parameters)):
                continue
        if name is None or value is None:
            continue
        needed = (
            [p for p in parameters.named_children if p.type in ("identifier", "parameter_declaration")]
            if parameters
            else []
        )
        body = source.node_code(value)
        reads, handles = bool(_READS_ERROR.search(body)), bool(_HANDLES_ERROR.search(body))
        is_macro = node.type == "preproc_function_def"
        returned = tuple(re.findall(r"\breturn\b([^;]*)", body)) if is_macro else ()
        acts = bool(returned) or _ACTS.search(body) is not None
        works = _WORKS.search(body) is not None
        narrow = is_macro and "__VA_ARGS__" not in body
        called = source.node_text(name)
        found.append(_Helper(called, node.end_byte, len(needed), reads, handles, acts, works, returned, narrow))
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


CHECK_LAUNCH = "CHECK_LAUNCH"


def launch_macro(std: str) -> str:
    """The macro that ends a program where a launch failed, for a file that has none and several launches to check."""
    lines = [
        f"#define {CHECK_LAUNCH}()",
        "  do {",
        "    cudaError_t error = cudaGetLastError();",
        "    if (error != cudaSuccess) {",
        f'      {std}fprintf(stderr, "%s:%d: %s\\n", __FILE__, __LINE__, cudaGetErrorString(error));',
        f"      {std}exit(EXIT_FAILURE);",
        "    }",
    ]
    width = max(map(len, lines)) + 1
    return "\n".join([*(line.ljust(width) + "\\" for line in lines), "  } while (0)"])


def fresh_name(source: Source, function: Node) -> str:
    """A name for the error that the function does not use."""
    taken = {source.node_text(n) for n in descendants(function, "identifier")}
    return next(name for name in ("error", "launchError", "launchStatus", "cudaLaunchError") if name not in taken)


def leading_includes(source: Source) -> list[Node]:
    """The includes before the first function of the host, which may use them: of the file, or of its include guard."""
    guard = next((n for n in source.root.children if n.type == "preproc_ifdef"), source.root)
    functions = descendants(source.root, "function_definition")
    function = next((f for f in functions if not _DEVICE.match(source.node_code(f))), None)
    end = function.start_byte if function is not None else len(source.data)
    for around in (source.root, guard):
        if found := [n for n in around.children if n.type == "preproc_include" and n.end_byte <= end]:
            return found
    return []


def _first_code(source: Source) -> int:
    """Where the file's first code starts, or that of its include guard."""
    first = next((n for n in source.root.children if n.type != "comment"), None)
    if first is None:
        return 0
    name = first.child_by_field_name("name") if first.type == "preproc_ifdef" else None
    inside = [n for n in first.named_children if n != name and n.type != "comment"]
    if len(inside) > 1 and inside[0].type == "preproc_def" and inside[0].child_by_field_name("value") is None:
        return inside[1].start_byte
    return first.start_byte


def include_edits(source: Source, includes: list[str], macro: str = "") -> list[TextEdit]:
    """Each header after the last one that sorts before it, where the file has any; else before the first code. A macro
    comes after all of them. One place has one edit."""
    newline = "\r\n" if b"\r\n" in source.data else "\n"
    macro = macro.replace("\n", newline)
    if not includes and not macro:
        return []
    present = leading_includes(source)
    if not present:
        at = _first_code(source)
        lines = [*includes, ""] if includes else []
        return [TextEdit(at, at, newline.join([*lines, *([macro, ""] if macro else []), ""]))]
    system = [n for n in present if "<" in source.node_code(n)]
    added: dict[int, str] = {}
    for include in includes:
        before = [n for n in system if source.node_text(n).strip() < include]
        at = (before or present)[-1].end_byte
        added[at] = added.get(at, "") + include + newline
    if macro:
        at = present[-1].end_byte
        is_apart = source.data[at : at + len(newline)] in (b"", encoded(newline))
        added[at] = added.get(at, "") + newline + macro + newline + ("" if is_apart else newline)
    return [TextEdit(at, at, text) for at, text in sorted(added.items())]
