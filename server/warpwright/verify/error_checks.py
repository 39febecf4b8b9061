"""Macros and functions that look at the error of a call and do nothing else: `CHECK(cudaMalloc(&p, n))` is
`cudaMalloc(&p, n)`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.syntax.nodes import descendants, parameters_of
from warpwright.syntax.source import Source

_HARMLESS = frozenset((
    "cudaError_t", "cudaSuccess", "cudaGetErrorString", "cudaGetErrorName", "cudaGetLastError", "cudaPeekAtLastError",
    "fprintf", "printf", "puts", "fputs", "stderr", "stdout", "exit", "abort", "EXIT_FAILURE", "__FILE__", "__LINE__",
    "__func__", "__FUNCTION__", "do", "while", "if", "else", "return", "const", "char", "int", "bool", "auto", "std",
    "cerr", "cout", "endl", "throw", "runtime_error", "string", "to_string", "static_cast", "void",
))  # fmt: skip
"""Words of a check: what asks for an error, prints it and ends the program."""
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_BEGINS = r"\s*(?:do\b)?[\s({{]*(?:(?:const\s+)?(?:cudaError_t|auto)\s*&?\s*\w+\s*=\s*|(?!while)\w+\s*\(\s*)?\(*\s*{}\b"
"""A macro makes the call before anything else: not under a condition that may not hold."""
_LOCAL = re.compile(r"\b(?:cudaError_t|auto)\s*&?\s*(\w+)\s*=")


def error_checks(sources: Iterable[Source]) -> frozenset[str]:
    """The names of those whose first parameter is the call, or what it returned; and of macros that take nothing and
    look at the last error."""
    texts = {name: (words, taken) for source in sources for name, words, taken in _candidates(source)}
    found: set[str] = set()
    while more := {
        name for name, (words, taken) in texts.items() if name not in found and words <= _HARMLESS | found | taken
    }:
        found |= more
    return frozenset(found)


def _candidates(source: Source) -> Iterable[tuple[str, frozenset[str], frozenset[str]]]:
    """Name, words and the names of its own."""
    for node in descendants(source.root, "preproc_function_def"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        parameters = node.child_by_field_name("parameters")
        if name is None or value is None or parameters is None:
            continue
        taken = [source.node_text(each) for each in descendants(parameters, "identifier")]
        text = source.node_code(value)
        call = re.escape(taken[0]) if taken else "(?:__VA_ARGS__|cudaGetLastError|cudaPeekAtLastError)"
        if re.match(_BEGINS.format(call), text.replace("\\\n", " ")):
            yield source.node_text(name), *_words(text, (*taken, "__VA_ARGS__"))
    for node in descendants(source.root, "function_definition"):
        body, parameters_found = node.child_by_field_name("body"), parameters_of(node)
        if body is not None and parameters_found and source.node_code(parameters_found[0]).startswith("cudaError_t"):
            taken = [source.node_text(name) for each in parameters_found for name in descendants(each, "identifier")]
            yield function_name(source, node) or "", *_words(source.node_code(body), taken)


def _words(text: str, taken: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    code = _STRING.sub('""', text)
    return frozenset(_WORD.findall(code)), frozenset({*taken, *_LOCAL.findall(code)})


def checked_call(source: Source, node: Node, checks: frozenset[str]) -> Node | None:
    """The call in a statement that does nothing but hand it to a check; None for another statement."""
    if node.type != "expression_statement" or not node.named_children:
        return None
    call = node.named_children[0]
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if call.type != "call_expression" or function is None or arguments is None:
        return None
    if source.node_text(function) not in checks or not arguments.named_children:
        return None
    return arguments.named_children[0]
