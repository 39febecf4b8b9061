"""How a function of an extension is called: its signature, and what the user says of shapes and values.

No shape is guessed: a tensor's dimensions say what its function means by it, and a wrong guess would prove nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from warpwright.cuda.extension.entries import find_entries
from warpwright.cuda.extension.model import Entry, Parameter
from warpwright.missing import Missing
from warpwright.problems.document import FILE_NAME
from warpwright.problems.expressions import ExpressionError, names, parse
from warpwright.problems.extension.model import Argument, ExtensionProblem, PlainArgument, TensorArgument
from warpwright.problems.extension.said import NONE, Said, SaidTensor, read_directives, read_document
from warpwright.problems.shapes import Shape, check_shapes, timed_shapes
from warpwright.syntax.source import Source

_LITERAL = re.compile(r"(?:-?\s*(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlLuU]*|true|false|True|False)")


class _LackingError(Exception):
    """Nothing says a part of the call; `line` is a directive that would."""

    def __init__(self, message: str, line: str) -> None:
        super().__init__(message)
        self.line = line


def find_extension_problem(source: Source, name: str | None = None) -> ExtensionProblem | Missing:
    """How to call the function `name` (None: the only one that is described, else the first) of a torch extension."""
    entries = find_entries(source)
    if not entries:
        return Missing("problem", "No function is bound to Python in the file.", "Bind one with m.def.")
    if name is not None:
        entries = tuple(e for e in entries if e.name == name)
        if not entries:
            return Missing("problem", f"The extension binds no function {name}.", "")
    found = [_problem_of(source, entry) for entry in entries]
    return next((problem for problem in found if isinstance(problem, ExtensionProblem)), found[0])


def _problem_of(source: Source, entry: Entry) -> ExtensionProblem | Missing:
    try:
        folder = Path(source.path).parent
        return _made(
            entry, read_document(folder / FILE_NAME, entry.name), read_directives(source, entry.function), folder
        )
    except ExpressionError as error:
        return Missing("problem", f"How to call {entry.called} is not known: {error}.", "")
    except _LackingError as error:
        advice = f"Add the comment `// warpwright: {error.line}` above the C++ function, or the same to {FILE_NAME}."
        return Missing("problem", f"How to call {entry.called} is not known: {error}.", advice)


def _made(entry: Entry, document: Said, directives: Said, folder: Path) -> ExtensionProblem:
    tensors = {**directives.tensors, **document.tensors}
    plain = {**directives.plain, **document.plain}
    known = {p.name for p in entry.parameters}
    if unknown := sorted((tensors.keys() | plain.keys()) - known):
        raise ExpressionError(f"it has no parameter `{unknown[0]}`; its parameters are {', '.join(known) or 'none'}")
    if not entry.parameters and entry.function is None:
        raise ExpressionError(
            "its C++ definition is not in the file, so its parameters cannot be read; bind a function of the file"
        )
    _require_shapes(entry, tensors)
    notes: list[str] = []
    arguments = tuple(_argument(p, tensors, plain, notes) for p in entry.parameters)
    symbols = _symbols(arguments)
    own = document.shape or directives.shape
    if own is not None and (lacking := sorted(set(symbols) - own.keys())):
        raise _LackingError(f"its own sizes give `{lacking[0]}` no value", f"shape {_assigned(symbols)}")
    draft = ExtensionProblem(entry, arguments, symbols, own, (), (), _reference(document, folder), tuple(notes))
    check = tuple(document.check or directives.check) or check_shapes(symbols, own, draft.bytes)
    time = tuple(document.time or directives.time) or timed_shapes(symbols, own, draft.bytes)
    for shape in (*check, *time):
        if lacking := sorted(set(symbols) - shape.keys()):
            raise ExpressionError(f"a size to try gives `{lacking[0]}` no value")
    return replace(draft, check=_one(check, symbols), time=_one(time, symbols))


def _require_shapes(entry: Entry, tensors: dict[str, SaidTensor]) -> None:
    """Say all that is missing at once: one line to add for each tensor."""
    lacking = [p for p in entry.parameters if p.kind == "tensor" and not p.optional and p.name not in tensors]
    if not lacking:
        return
    lines = "` and `// warpwright: ".join(f"tensor {p.name}[n] float" for p in lacking)
    which = " and ".join(p.name for p in lacking)
    raise _LackingError(f"nothing says which shape {which} {'have' if len(lacking) > 1 else 'has'}", lines)


def _argument(
    parameter: Parameter, tensors: dict[str, SaidTensor], plain: dict[str, tuple[str, ...]], notes: list[str]
) -> Argument:
    name, keyword = parameter.name, parameter.keyword_only
    if name in tensors:
        said = tensors[name]
        if parameter.kind != "tensor":
            raise ExpressionError(f"`{name}` is {parameter.type or 'no tensor'} and cannot be given a shape")
        return TensorArgument(name, said.scalar, said.shape, said.values, keyword)
    if name in plain:
        if plain[name] == (NONE,):
            return PlainArgument(name, "none", (), keyword)
        if parameter.kind not in ("int", "float", "bool", "ints"):
            raise ExpressionError(f"`{name}` is a {parameter.type}, to which no number can be passed")
        if parameter.kind != "ints" and len(plain[name]) != 1:
            raise ExpressionError(f"`{name}` is one number, and {len(plain[name])} are given")
        return PlainArgument(name, parameter.kind, plain[name], keyword)
    if parameter.default is not None and _LITERAL.fullmatch(parameter.default) and parameter.kind != "ints":
        text = {"true": "1", "false": "0"}.get(parameter.default.lower(), parameter.default)
        return PlainArgument(name, parameter.kind or "float", (text,), keyword)
    if parameter.optional:
        notes.append(f"{name} was left out: nothing says what it is")
        return PlainArgument(name, "none", (), keyword)
    if parameter.kind == "":
        raise ExpressionError(f"`{name}` is a {parameter.type}, which cannot be made here")
    example = {"int": "1", "float": "1.5", "bool": "true", "ints": "1, 2"}[parameter.kind]
    raise _LackingError(f"nothing says what {name} is", f"scalar {name} = {example}")


def _symbols(arguments: tuple[Argument, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for argument in arguments:
        texts = list(argument.shape) if isinstance(argument, TensorArgument) else list(argument.texts)
        if isinstance(argument, TensorArgument) and argument.values != "any":
            texts.append(argument.values.removeprefix("index(").removesuffix(")"))
        for text in texts:
            found.update(dict.fromkeys(sorted(names(parse(text)))))
    return tuple(found)


def _one(shapes: tuple[Shape, ...], symbols: tuple[str, ...]) -> tuple[Shape, ...]:
    """Each size once, with the symbols that the call has."""
    kept: list[Shape] = []
    for shape in shapes:
        plain = {symbol: shape[symbol] for symbol in symbols}
        if plain not in kept:
            kept.append(plain)
    return tuple(kept)


def _assigned(symbols: tuple[str, ...]) -> str:
    return " ".join(f"{symbol}=4096" for symbol in symbols)


def _reference(document: Said, folder: Path) -> Path | None:
    if document.reference is None:
        return None
    path = folder / document.reference
    if not path.is_file():
        raise ExpressionError(f"{FILE_NAME} names the reference {document.reference}, which does not exist")
    return path
