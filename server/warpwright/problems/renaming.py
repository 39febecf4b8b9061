"""A kernel whose parameters have other names than another's and mean the same: they match by place and type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from warpwright.facts.model import Kernel
from warpwright.problems.expressions import Name, parse, show, substitute
from warpwright.problems.host import symbol_name
from warpwright.problems.model import Argument, Array, Part, Pointer, Problem, Struct
from warpwright.problems.overrides import Overrides
from warpwright.problems.shapes import Shape

Names = Mapping[str, str]
"""From a name to the one that stands for it."""
Dims = tuple[str, str, str]


def renamed_parameters(original: Kernel, candidate: Kernel) -> dict[str, str]:
    """The original's names of parameters that the candidate calls otherwise, and the candidate's names of them.

    Empty where a name of the original stands at another place: then it is the order that is another.
    """
    old, new = ([p.name for p in kernel.parameters] for kernel in (original, candidate))
    names = {a: b for a, b in zip(old, new, strict=False) if a != b}
    return {} if len(old) != len(new) or set(names.values()) & set(old) else names


def with_names(said: Overrides, names: Names) -> Overrides:
    """What is said of parameters under old names, said under the new ones."""
    if not names:
        return said
    arrays = {
        _member(name, names): replace(
            array, extent=_optional(array.extent, names), values=array.values and _values(array.values, names)
        )
        for name, array in said.arrays.items()
    }
    return replace(
        said,
        arrays=arrays,
        scalars={_member(name, names): _text(value, names) for name, value in said.scalars.items()},
        grid=said.grid and _dims(said.grid, names),
        block=said.block and _dims(said.block, names),
        dynamic_shared_bytes=_optional(said.dynamic_shared_bytes, names),
        shape=said.shape and _shape(said.shape, names),
        check=[_shape(shape, names) for shape in said.check],
        time=[_shape(shape, names) for shape in said.time],
        profile=said.profile and _shape(said.profile, names),
    )


def in_names_of(original: Problem, candidate: Problem) -> Problem:
    """The candidate's problem in the original's names, with what was guessed of that, where its arguments match by
    place and type; else as it is."""
    if [_type(a) for a in original.arguments] != [_type(b) for b in candidate.arguments]:
        return candidate
    pairs = [
        (b.name, a.name)
        for mine, theirs in ((original.arguments, candidate.arguments), (original.parts, candidate.parts))
        for a, b in zip(mine, theirs, strict=True)
    ]
    names = {new: old for new, old in pairs if new != old}
    symbols = {symbol_name(new): symbol_name(old) for new, old in names.items()}
    is_another_order = names.keys() & set(names.values())
    is_taken = set(symbols.values()) & (set(candidate.symbols) - symbols.keys())
    if not names or is_another_order or is_taken:
        return candidate
    return replace(
        candidate,
        arguments=tuple(_argument(each, names, symbols) for each in candidate.arguments),
        globals=tuple(_array(each, {}, symbols) for each in candidate.globals),
        symbols=tuple(symbols.get(symbol, symbol) for symbol in candidate.symbols),
        grid=_dims(candidate.grid, symbols),
        block=_dims(candidate.block, symbols),
        dynamic_shared_bytes=_text(candidate.dynamic_shared_bytes, symbols),
        shared_opt_in=_optional(candidate.shared_opt_in, symbols),
        own_shape=candidate.own_shape and _shape(candidate.own_shape, symbols),
        check=tuple(_shape(shape, symbols) for shape in candidate.check),
        time=tuple(_shape(shape, symbols) for shape in candidate.time),
        profile=candidate.profile and _shape(candidate.profile, symbols),
        guesses=original.guesses,
    )


def _type(argument: Argument) -> tuple[object, ...]:
    if isinstance(argument, Struct):
        return argument.bytes, *((offset, *_type(member)) for offset, member in argument.members)
    return type(argument).__name__, argument.type


def _argument(argument: Argument, names: Names, symbols: Names) -> Argument:
    if isinstance(argument, Struct):
        members = tuple((offset, _part(member, names, symbols)) for offset, member in argument.members)
        return replace(argument, name=names.get(argument.name, argument.name), members=members)
    return _part(argument, names, symbols)


def _part(argument: Part, names: Names, symbols: Names) -> Part:
    if isinstance(argument, Array):
        return _array(argument, names, symbols)
    name = names.get(argument.name, argument.name)
    if isinstance(argument, Pointer):
        array = names.get(argument.array, argument.array)
        return replace(argument, name=name, array=array, offset=_text(argument.offset, symbols))
    return replace(argument, name=name, value=_text(argument.value, symbols))


def _array(array: Array, names: Names, symbols: Names) -> Array:
    name, extent = names.get(array.name, array.name), _text(array.extent, symbols)
    values, offset = _values(array.values, symbols), _text(array.offset, symbols)
    return replace(array, name=name, extent=extent, values=values, offset=offset)


def _member(name: str, names: Names) -> str:
    """`p.data` with the new name of `p`."""
    base, dot, member = name.partition(".")
    return f"{names.get(base, base)}{dot}{member}"


def _values(values: str, names: Names) -> str:
    """`any`, or `index(E)` with the expression's names replaced."""
    inside = values.removeprefix("index(").removesuffix(")")
    return f"index({_text(inside, names)})" if values.startswith("index(") else values


def _shape(shape: Shape, names: Names) -> Shape:
    return {names.get(symbol, symbol): size for symbol, size in shape.items()}


def _dims(texts: Dims, names: Names) -> Dims:
    return _text(texts[0], names), _text(texts[1], names), _text(texts[2], names)


def _optional(expression: str | None, names: Names) -> str | None:
    return None if expression is None else _text(expression, names)


def _text(expression: str, names: Names) -> str:
    return show(substitute(parse(expression), {old: Name(new) for old, new in names.items()}))
