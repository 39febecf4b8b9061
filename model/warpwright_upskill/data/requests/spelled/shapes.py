"""How sizes are called in a request, and what it says of arrays: shapes, types, what lies outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, rebuilt, walk

from warpwright_upskill.data.requests.phrases import chosen, filled, lines
from warpwright_upskill.data.requests.spelled.sketch import Sketch

TYPE_WORDS = {
    "f32": "<float|fp32|float32>",
    "f16": "<half|fp16|float16|half precision>",
    "bf16": "<bf16|bfloat16>",
    "f64": "<double|fp64|float64|double precision>",
    "i32": "<int32|int|32-bit ints>",
    "i64": "<int64|long long|64-bit ints>",
    "i8": "<int8|int8_t|signed char>",
    "u8": "<uint8|uint8_t|unsigned char>",
    "u32": "<uint32|unsigned int>",
}
_OUTSIDE = {
    "zero": """
        {x} <is|counts as> 0 outside
        out-of-range {x} <counts as|is> <0|zero>
        zero padding
        zero-padded
        {x} beyond the ends is 0
        anything outside the array is zero
        treat <missing|out-of-bounds> neighbours as 0
        zeros outside
        (zero outside the array)
    """,
    "clamp": """
        clamp <the indices|indices> at the <edges|borders>
        outside take the nearest element of {x}
        replicate the border
        edge values repeat
        indices are clamped to the valid range
        the border element is repeated outside
        replicate padding
    """,
    "wrap": """
        periodic
        <indices|index> wrap around
        periodic boundary
        {x} is periodic
        wrap-around at both ends
        indices taken modulo the size
        circular
    """,
    "reflect": """
        mirrored at the <ends|borders> without repeating the edge element
        reflect padding
        reflect at the boundary (edge not repeated), so index -1 is 1
        outside {x} is mirrored about its first and last element
    """,
}


_SPARE = ("V", "S", "Q", "num_entries", "n_src", "n_dst", "n_other")
"""What sizes are called that no dimension tells, as those of tables."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """`dims` is how far each dimension goes, `arrays` the shape of each array, `symbols` what each size is called."""

    dims: dict[str, str]
    arrays: dict[str, tuple[str, ...]]
    symbols: dict[str, str]


def sizes_of(sketch: Sketch) -> Sizes:
    formula = sketch.formula
    taken = {*formula.tensors, *formula.scalars, *sketch.sizes.values(), *(each.upper() for each in formula.dims)}
    spare = (each for each in _SPARE if each not in taken)
    symbols = {}
    for name in formula.sizes:
        symbols[name] = sketch.sizes[name.lower()] if len(name) == 1 else next(spare)
    dims = {name: _said(extent, symbols) for name, extent in formula.dims.items()}
    arrays = {each.name: tuple(_said(extent, symbols) for extent in each.extents) for each in formula.tensors.values()}
    return Sizes(dims, arrays, symbols)


def _said(extent: Expr, symbols: Mapping[str, str]) -> str:
    return shown(rebuilt(extent, lambda each: Name(symbols[each.name]) if isinstance(each, Name) else each))


def shape_words(sizes: Sizes, chance: Random) -> str:
    """`A is M x K, w has K entries`: the shapes of arrays in prose, with habits that stay; "" where there are none."""
    style = chance.randrange(6)
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, shape in sizes.arrays.items():
        if shape:
            groups.setdefault(shape, []).append(name)
    said = []
    for shape, names in groups.items():
        who = (
            names[0]
            if len(names) == 1
            else f"{', '.join(names[:-1])} and {names[-1]}"
            if style % 2
            else ", ".join(names)
        )
        are = "is" if len(names) == 1 else "are"
        have = "has" if len(names) == 1 else "have"
        safe = [f"({each})" if " " in each else each for each in shape]
        if len(shape) == 1:
            said.append(
                (
                    f"{who} {have} {shape[0]} <entries|elements>",
                    f"{who}: [{shape[0]}]",
                    f"{who} {are} length {shape[0]}",
                    f"{who} of <size|length> {shape[0]}",
                    f"{who} [{shape[0]}]",
                    f"{who} {have} {shape[0]} <values|entries>",
                )[style]
            )
        else:
            listed, crossed = ", ".join(shape), " x ".join(safe)
            said.append(
                (
                    f"{who} {are} {crossed}",
                    f"{who}: [{listed}]",
                    f"{who} {have} shape ({listed})",
                    f"{who} of shape {crossed}",
                    f"{who} [{listed}]",
                    f"{who} {are} {' by '.join(safe) if len(shape) == 2 else crossed}",
                )[style]
            )
    return chosen(", ".join(said), chance)


def type_words(sketch: Sketch, told: frozenset[str], chance: Random) -> list[str]:
    """What is said of the types that are not known otherwise: `told` are the names whose types a signature says."""
    formula = sketch.formula
    groups: dict[str, list[str]] = {}
    for each in sketch.written.declarations:
        if each.name not in told:
            groups.setdefault(each.type, []).append(each.name)
    floats = {
        tensor.type
        for tensor in formula.tensors.values()
        if tensor.type.startswith(("f", "b")) and tensor.type != "bool"
    }
    said = []
    for type_, names in groups.items():
        word = TYPE_WORDS[type_]
        everything = floats == {type_} and not told and set(formula.scalars.values()) <= {type_, "f32"}
        if everything and type_ in ("f16", "bf16", "f64") and chance.random() < 0.5:
            doubles = all(kind == type_ for kind in formula.scalars.values()) or type_ != "f64"
            if doubles:
                said.append(
                    f"<all arrays {word}|everything in {word}|{word} tensors|data type {word}>"
                    if len(formula.tensors) > 1
                    else f"in {word}"
                )
                continue
        who = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        have = "is" if len(names) == 1 else "are"
        said.append(
            f"<{who} {have} {word}|{who} in {word}|{who}: {word}>" if "<" not in who else f"{who} {have} {word}"
        )
    return [chosen(each, chance) for each in said]


def outside_words(sketch: Sketch, chance: Random) -> list[str]:
    """What is read beyond the ends of arrays."""
    loads = [node for each in sketch.written.equations for node in walk(each.value) if isinstance(node, Load)]
    loads = [each for each in loads if each.outside is not None]
    if chance.random() < 0.4 and (said := _first_outside(loads, chance)):
        return [said]
    modes: dict[str, list[str]] = {}
    for node in loads:
        mode = node.outside if isinstance(node.outside, str) else "zero"
        names = modes.setdefault(mode, [])
        names += [node.tensor] if node.tensor not in names else []
    return [
        filled(chosen(chance.choice(lines(_OUTSIDE[mode])), chance), {"x": " and ".join(names)})
        for mode, names in modes.items()
    ]


def _first_outside(loads: Sequence[Load], chance: Random) -> str:
    """`x[-1] = 0`, where one element before the first is all that is read outside; "" where it is not."""
    if len({*loads}) != 1 or len(loads[0].index) != 1:
        return ""
    match loads[0]:
        case Load(tensor=name, index=(Call(name="-", args=(Name(), Num(value=1))),), outside=outside):
            beyond = {"clamp": f"{name}[0]", "reflect": f"{name}[1]"}.get(str(outside), "0")
            if outside == "wrap":
                return chance.choice((f"{name}[-1] is the last element", f"before {name}[0] comes the last element"))
            return chance.choice(
                ("{0}[-1] = {1}", "{0}[-1] is {1}", "taking {0}[-1] as {1}", "({0}[-1] := {1})")
            ).format(name, beyond)
    return ""


def longer_words(sketch: Sketch, sizes: Sizes, chance: Random) -> list[str]:
    """That an array is longer than what it is read for: `x has N + K - 1 entries`."""
    said = []
    for tensor in sketch.formula.tensors.values():
        shape = sizes.arrays[tensor.name]
        if all(isinstance(each, Name) for each in tensor.extents):
            continue
        if len(shape) > 1:
            crossed = " x ".join(f"({each})" if " " in each else each for each in shape)
            ways = [f"{tensor.name} is {crossed}", f"{tensor.name} has shape ({', '.join(shape)})"]
        elif shape[0].isdigit():
            ways = [f"{tensor.name} has {shape[0]} elements"]
        else:
            ways = [f"{tensor.name} has {shape[0]} {each}" for each in ("entries", "elements")]
            ways += [f"{tensor.name} has length {shape[0]}", f"{tensor.name} is padded to {shape[0]} already"]
        said.append(chance.choice(ways))
    return said
