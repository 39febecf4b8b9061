"""Why a place of host code, or what a candidate makes of it, cannot be judged by what it launches and by what it leaves
in the function's variables: it may do something else, or leave something else behind.

The candidate's text is not trusted. What it may write beyond the original's is little: calls that make a graph, numbers
that are tried, and variables of its own that nothing behind the place has a use for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.rewrites._code import functions_of, macro_texts
from warpwright.rewrites._locals import declared_names
from warpwright.rewrites._repeated_launches import is_pure, reads_error, restless_macros
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, enclosing, launch_configuration, walk
from warpwright.syntax.source import Source

GRAPH_CALLS = (
    "cudaStreamCreateWithFlags", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate",
    "cudaGraphLaunch", "cudaGraphExecDestroy", "cudaGraphDestroy", "cudaStreamDestroy", "cudaGetLastError",
)  # fmt: skip
"""All that a candidate may call beyond what the original calls in the same place."""
MOST_VALUE = 4096
"""Of a number in the text that is tried: more iterations show nothing else."""
_LEAVES = ("return_statement", "goto_statement", "lambda_expression", "new_expression", "delete_expression",
           "throw_statement", "gnu_asm_expression", "co_return_statement", "try_statement")  # fmt: skip
_STATEMENTS = (*LOOPS, "declaration", "expression_statement", "if_statement", "compound_statement")
_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier", "structured_binding_declarator")
_REACHES = ("subscript_expression", "cast_expression", "array_declarator")
_LITERALS = ("number_literal", "char_literal", "user_defined_literal")
_MAKES_LARGE = ("*", "<<", "&", "|", "^", "*=", "<<=", "&=", "|=", "^=")
_CONTINUED = re.compile(r"(?:\\|\?\?/)[ \t]*\r?\n")
_DIRECTIVE = re.compile(r"#|%:|\?\?=|\b_Pragma\b")


def unruly(old: Source, mine: list[Node], new: Source, theirs: list[Node]) -> str:
    """Why one of both may not be run by itself, or not judged by that; "" where both may."""
    known = {old.node_text(n) for node in mine for n in descendants(node, "identifier")}
    strange = {new.node_text(n) for node in theirs for n in descendants(node, "identifier")} - known
    if foreign := {name for name in strange - declared_names(new, *theirs) if not name.startswith("cuda")}:
        return f"the candidate uses `{min(foreign)}`, which the original does not"
    called = {called_name(call, old) for node in mine for call in descendants(node, "call_expression")}
    for source, nodes in ((old, mine), (new, theirs)):
        for node in nodes:
            if (found := next(descendants(node, *_LEAVES), None)) is not None:
                return f"line {source.position(found.start_byte)[0]} may leave the place, or do more than call"
            code = _without_comments(source, node)
            if re.search(r"\bstatic\b|\bthread_local\b|\basm\b", code) or _DIRECTIVE.search(code):
                return f"line {source.position(node.start_byte)[0]} has static variables, assembly or directives"
            for call in descendants(node, "call_expression"):
                name = called_name(call, source)
                if name not in called and name not in GRAPH_CALLS:
                    return f"the candidate calls `{name}`, which the original does not"
    return _effects(old, mine) or _left_behind(old, mine, new, theirs) or _beyond(old, mine, new, theirs)


def _without_comments(source: Source, node: Node) -> str:
    parts, at = [], node.start_byte
    for comment in descendants(node, "comment"):
        parts.append(source.text(at, comment.start_byte))
        at = comment.end_byte
    return " ".join([*parts, source.text(at, node.end_byte)])


def _effects(source: Source, nodes: list[Node]) -> str:
    """What the original does there that is neither launched nor left in a variable."""
    words: set[str] = set()
    for word in (n for node in nodes for n in descendants(node, "identifier")):
        statement = enclosing(word, "expression_statement")
        if statement is None or not reads_error(source, statement):
            words.add(source.node_text(word))
    for node in nodes:
        for call in descendants(node, "call_expression"):
            name = called_name(call, source)
            is_own = name in functions_of(source) or name in macro_texts(source)
            statement = enclosing(call, "expression_statement")
            if (
                launch_configuration(call) is not None
                or (not is_own and (name == "swap" or name.startswith("cuda")))
                or is_pure(source, call)
                or (statement is not None and reads_error(source, statement))
            ):
                continue
            return f"`{name}`, which the original calls there, may do more than launch"
    if restless := words & restless_macros(source):
        return f"the macro `{min(restless)}` may be another value each time"
    texts = macro_texts(source)
    for _ in range(len(texts)):
        more = {word for name in words & texts.keys() for text in texts[name] for word in re.findall(r"\w+", text)}
        if more <= words:
            break
        words |= more
    if shared := words & set(_variables_of_file(source)):
        return f"`{min(shared)}` is a variable of the file, with a value that is not known"
    return ""


def _variables_of_file(source: Source) -> Iterator[str]:
    """Names of what is declared outside of functions and may hold another value when the place is reached."""
    for declaration in descendants(source.root, "declaration"):
        if enclosing(declaration, "function_definition") is None:
            qualifiers = [source.node_text(c) for c in declaration.children if c.type == "type_qualifier"]
            is_function = any(True for _ in descendants(declaration, "function_declarator"))
            if not is_function and not {"const", "constexpr"} & set(qualifiers):
                yield from declared_names(source, declaration)


def _left_behind(old: Source, mine: list[Node], new: Source, theirs: list[Node]) -> str:
    """What the code behind the place would take for something else."""
    block, other = mine[0].parent, theirs[0].parent
    assert block is not None and other is not None  # both are blocks
    if len(_CONTINUED.findall(new.node_text(other))) > len(_CONTINUED.findall(old.node_text(block))):
        return "the candidate continues a line with a backslash, after which code may be hidden"
    behind = set(re.findall(r"\w+", old.code_text(mine[-1].end_byte, block.end_byte)))
    for source, nodes in ((old, mine), (new, theirs)):
        for node in nodes:
            line = source.position(node.start_byte)[0]
            if node.type not in _STATEMENTS:
                return f"line {line} is not a statement that calls, loops or declares a variable"
            if node.type != "declaration":
                continue
            if any(True for _ in descendants(node, *_TYPES)):
                return f"line {line} declares a type, or several names at once"
            names = {source.node_text(n) for n in descendants(node, "identifier") if _is_declared(n)}
            if used := names & behind:
                return f"`{min(used)}`, which line {line} declares, is used after the changed code"
    return ""


def _is_declared(name: Node) -> bool:
    """Whether it is no part of a value."""
    around = [name, *ancestors(name)]
    return not any(
        child.type == "init_declarator" and child.child_by_field_name("value") == inner
        for inner, child in pairwise(around)
    )


def _beyond(old: Source, mine: list[Node], new: Source, theirs: list[Node]) -> str:
    """What the candidate writes there that the original does not, and that no graph needs: memory behind an address,
    and numbers that are not tried."""
    known = {(n.type, old.node_text(n)) for node in mine for n in walk(node)}
    for node in (n for each in theirs for n in walk(each) if (n.type, new.node_text(n)) not in known):
        text, line = new.node_text(node), new.position(node.start_byte)[0]
        is_address = node.type == "pointer_expression" and text.startswith("&")
        is_given = is_address and node.parent is not None and node.parent.type == "argument_list"
        if (
            node.type in _REACHES
            or (node.type == "pointer_expression" and not is_given)
            or (node.type == "field_expression" and "->" in text)
            or (node.type == "template_function" and "_cast" in text)
        ):
            return f"line {line} of the candidate reaches into memory: `{text[:40]}`"
        if node.type in _LITERALS and not (text.isdigit() and int(text) <= MOST_VALUE):
            return f"the candidate has the number `{text}`, which is not tried"
        operator = node.child_by_field_name("operator")
        is_formula = node.type in ("binary_expression", "assignment_expression")
        if is_formula and operator is not None and operator.type in _MAKES_LARGE:
            return f"the candidate computes `{' '.join(text.split())[:40]}`, a number that may not be tried"
    return ""
