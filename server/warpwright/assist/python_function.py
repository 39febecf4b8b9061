"""A function of a Python file beside, named in a comment (`model.py:step`), as one expression of torch or NumPy.

The file is parsed and never run. What a function computes in several lines becomes one expression, where each line
gives a name a value and the last one returns; anything else makes none.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from warpwright.files import read_file
from warpwright.syntax.encoding import decoded

MOST_BYTES = 1 << 20
MOST_CHARACTERS = 400
_FILE, _NAME = r"(?:[\w-]+/)*[\w-]+\.py", r"[A-Za-z_]\w*"
_NAMED = re.compile(
    rf"""
      \s*(?:(?:cuda\s+)?kernel\s*:\s*)?
      (?:(?:the\s+)?same\s+as|like|as|port\s+of|port|what)?\s*`?
      (?:(?P<file>{_FILE})::?(?P<name>{_NAME})|(?P<name2>{_NAME})(?:\(\))?`?\s+(?:in|from|of)\s+`?(?P<file2>{_FILE}))
      `?(?:\s+(?:does|computes))?\s*\.?\s*
    """,
    re.IGNORECASE | re.VERBOSE,
)


def meant_words(words: str, path: str) -> str:
    """The words of a comment in the file `path`, or the expression of the function that is all that they name.

    >>> meant_words("row sums of x", "a.cu")
    'row sums of x'
    """
    named = _NAMED.fullmatch(words)
    if named is None:
        return words
    file, name = named["file"] or named["file2"], named["name"] or named["name2"]
    try:
        text = decoded(read_file(Path(path).parent / file, MOST_BYTES))
    except OSError:
        return words
    return expression_of(text, name) or words


def expression_of(text: str, name: str) -> str:
    """What a function of a module returns, "" where that is no single expression.

    >>> expression_of("def f(x, w, b):\\n    h = x @ w + b\\n    return F.gelu(h)", "f")
    'F.gelu(x @ w + b)'
    >>> expression_of("def f(x):\\n    if x: return 1", "f")
    ''
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name]
    if len(functions) != 1 or functions[0].decorator_list:
        return ""
    known: dict[str, ast.expr] = {}
    for statement in functions[0].body:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                known[target] = _Known(known).visit(value)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                known[target] = _Known(known).visit(value)
            case ast.Return(value=ast.expr() as value):
                found = ast.unparse(_Known(known).visit(value))
                return found if len(found) <= MOST_CHARACTERS else ""
            case _:
                return ""
        if len(ast.unparse(known[target])) > MOST_CHARACTERS:
            return ""
    return ""


class _Known(ast.NodeTransformer):
    """Puts in what names stand for."""

    def __init__(self, known: dict[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.known.get(node.id, node)
