"""Formulas without end, as people would write them: families, expressions, layouts, types and names.

The same seed gives the same formulas everywhere. Each resolves, and no two of `samples` are the same. The module is
long, as it is a list: a function for each family, which knows nothing of the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from warpwright.formulas.functions import REDUCTIONS
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed
from warpwright.formulas.sampler_words import (
    BIASES,
    CUBE,
    IMAGES,
    INDICES,
    MATRIX,
    NUMBERS,
    OUTPUTS,
    UNARY,
    VECTOR,
    WEIGHTS,
    Draw,
)  # fmt: skip

FLOATS = ("f32", "f32", "f32", "bf16", "f16", "f64")
WHOLE_TYPES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
OUTSIDE = ("zero", "clamp", "wrap", "reflect", "-inf", "1")
ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "sigmoid", "gelu_tanh", "softplus")


@dataclass(frozen=True)
class Sample:
    """A formula and the family that it is of."""

    family: str
    text: str


def samples(seed: str) -> Iterator[Sample]:
    """Formulas without end, each another one, of all families in turn.

    >>> first = next(samples("a seed"))
    >>> first.family, first == next(samples("a seed"))
    ('map', True)
    """
    seen: set[str] = set()
    names = list(FAMILIES)
    for number in count():
        family = names[number % len(names)]
        for trial in count():
            found = sample(family, f"{seed}/{number}/{trial}")
            if found.text not in seen:
                seen.add(found.text)
                yield found
                break


def sample(family: str, seed: str) -> Sample:
    """One formula of a family."""
    lines = FAMILIES[family](Draw(random.Random(seed)))
    return Sample(family, printed(parse("\n".join(lines))))


Lines = list[str]


def at(name: str, dims: Sequence[str], outside: str = "") -> str:
    """An element: `x[r, c; zero]`."""
    return f"{name}[{', '.join(dims)}{f'; {outside}' if outside else ''}]" if dims else name


def typed(draw: Draw, names: Sequence[str], kinds: Sequence[str] = FLOATS) -> Lines:
    """Declarations that give arrays one type; none for f32."""
    kind = draw.one(kinds)
    return [f"{name}: {kind}" for name in names] if kind != "f32" else []


def laid_out(draw: Draw, name: str, dims: Sequence[str], kind: str) -> str:
    """A declaration with extents and a layout."""
    extents = ", ".join(each.upper() for each in dims)
    if len(dims) == 2 and draw.often(0.5):
        return f"{name}: {kind}[{extents}]({draw.name(('ld', 'stride', 'pitch'))}, 1)"
    layout = "channels_last" if len(dims) == 4 else "column" if len(dims) > 1 else "row"
    return f"{name}: {kind}[{extents}] {layout}"


def some_dims(draw: Draw) -> tuple[str, ...]:
    return draw.dims(draw.chance.choice((VECTOR, VECTOR, MATRIX, MATRIX, CUBE, IMAGES)))


def _map(draw: Draw) -> Lines:
    dims = some_dims(draw)
    names, out = draw.inputs(draw.chance.randint(1, 3)), draw.name(OUTPUTS)
    kind = draw.one(FLOATS)
    lines = [
        laid_out(draw, name, dims, kind) if draw.often(0.15) else f"{name}: {kind}"
        for name in names
        if kind != "f32" or draw.often(0.2)
    ]
    lines = [each for each in lines if "[" in each or not each.endswith("f32")]
    value = draw.real([at(each, dims) for each in names])
    if draw.often(0.15):
        return [*lines, f"{at(names[0] + chr(39), dims)} = {value}"]
    lines.append(f"{at(out, dims)} = {value}")
    if draw.often(0.15):
        other = draw.name(OUTPUTS)
        lines.append(f"{at(other, dims)} = {draw.real([at(each, dims) for each in (*names, out)], 1)}")
    return lines


def _broadcast(draw: Draw) -> Lines:
    dims = draw.dims(draw.chance.choice((MATRIX, CUBE, IMAGES)))
    (name,), out = draw.inputs(1), draw.name(OUTPUTS)
    weight, bias = draw.name(WEIGHTS), draw.name(BIASES)
    part = draw.chance.choice((dims[-1:], dims[:1], dims[1:]))
    leaves = [at(name, dims), at(weight, part)] + ([at(bias, part)] if draw.often(0.5) else [])
    used = [name, weight, bias][: len(leaves)]
    return [*typed(draw, used), f"{at(out, dims)} = {draw.real(leaves)}"]


def _reduced(draw: Draw, op: str, over: str, leaves: Sequence[str], kind: str = "f32") -> str:
    """A reduction of an expression over `leaves`."""
    if op in ("any", "all"):
        return f"{op}[{over}] ({draw.condition(leaves[0]) if len(leaves) == 1 else draw.comparison(*leaves)})"
    total = op in ("sum", "mean", "var", "std", "logsumexp", "prod")
    accumulate = ":f64" if total and kind != "f64" and draw.often(0.15) else ""
    return f"{op}{accumulate}[{over}] ({draw.real(leaves, draw.chance.randint(0, 2))})"


def _epilogue(draw: Draw, value: str) -> str:
    return draw.one(UNARY).format(a=f"({value})")


def _reduction(draw: Draw, keep: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Lines:
    dims = draw.dims(draw.chance.choice((MATRIX, MATRIX, CUBE)))
    kept = keep(dims)
    over = ", ".join(each for each in dims if each not in kept)
    names, out, op = draw.inputs(draw.chance.randint(1, 2)), draw.name(OUTPUTS), draw.one(REDUCTIONS)
    lines = typed(draw, names)
    kind = lines[0].split(": ")[1] if lines else "f32"
    value = _reduced(draw, op, over, [at(each, dims) for each in names], kind)
    if op not in ("any", "all", "argmax", "argmin") and draw.often(0.3):
        value = _epilogue(draw, value)
    return [*lines, f"{at(out, kept)} = {value}"]


def _rows(draw: Draw) -> Lines:
    return _reduction(draw, lambda dims: dims[:-1])


def _columns(draw: Draw) -> Lines:
    return _reduction(draw, lambda dims: dims[1:])


def _global(draw: Draw) -> Lines:
    return _reduction(draw, lambda dims: ())


def _normalise(draw: Draw) -> Lines:
    dims = draw.dims(draw.chance.choice((MATRIX, CUBE)))
    (name,), out = draw.inputs(1), draw.name(OUTPUTS)
    first, second = draw.name(("m", "mu", "avg", "peak", "lo")), draw.name(("s", "total", "v", "spread", "hi"))
    kept, over = (dims[:-1], dims[-1]) if draw.often(0.8) else (dims[1:], dims[0])
    x = at(name, dims) if draw.often(0.6) else draw.real([at(name, dims)], 1)
    one, two, weight = at(first, kept), at(second, kept), at(draw.name(WEIGHTS), (over,))
    eps = draw.one(("eps", "1e-05", "1e-06"))
    style = draw.chance.randrange(5)
    if style == 0:
        value, stages = f"exp({x} - {one}) / {two}", [f"max[{over}] {x}", f"sum[{over}] exp({x} - {one})"]
    elif style == 1:
        value, stages = f"({x} - {one}) * rsqrt({two} + {eps})", [f"mean[{over}] {x}", f"var[{over}] {x}"]
        value += f" * {weight}" if draw.often(0.6) else ""
    elif style == 2:
        value, stages = f"{x} * rsqrt({one} + {eps}) * {weight}", [f"mean[{over}] ({x}) ** 2"]
    elif style == 3:
        value, stages = f"({x} - {one}) / ({two} - {one} + {eps})", [f"min[{over}] {x}", f"max[{over}] {x}"]
    else:
        value, stages = f"({x} - {one}) / ({two} + {eps})", [f"mean[{over}] {x}", f"std[{over}] {x}"]
    if draw.often(0.25):
        value = f"{draw.one(ACTIVATIONS)}({value})"
    said = ", ".join(f"{left} = {right}" for left, right in zip((one, two), stages, strict=False))
    return [*typed(draw, [name]), f"{at(out, dims)} = {value}", f"where {said}"]


def _contraction(draw: Draw) -> Lines:
    i, j, *more = draw.dims((("i", "j"), ("m", "n"), ("row", "col"), ("n", "o"), ("i", "j", "b"), ("m", "n", "g")))
    k = draw.dim(("k", "l", "d", "kk"))
    left, right, out = draw.name(("A", "X", "q", "lhs", "x")), draw.name(("B", "W", "rhs", "wt", "y")), draw.name(
        ("C", "out", "scores", "P")
    )  # fmt: skip
    order = draw.chance.randrange(4)
    one = at(left, (*more, *((i, k) if order % 2 == 0 else (k, i))))
    other = at(right, (*more, *((k, j) if order < 2 else (j, k))))
    into = at(out, (*more, i, j))
    if draw.often(0.15):  # in whole numbers, scaled
        accumulate, kind = "sum:i32", draw.one(("i8", "i8", "u8", "i16"))
        lines = [f"{left}: {kind}", f"{right}: {kind}"]
        return [*lines, f"{into} = {draw.name(NUMBERS)} * {accumulate}[{k}] {one} * {other}"]
    kinds = ("f32", "bf16", "f16", "f64", "f8e4m3", "f8e5m2", "c64")
    lines = typed(draw, [left, right], kinds)
    kind = lines[0].split(": ")[1] if lines else "f32"
    inner = f"{draw.one(ACTIVATIONS)}({one})" if kind != "c64" and draw.often(0.15) else one
    value = f"sum[{k}] {inner} * {other}"
    if draw.often(0.4):
        value = f"({value}) + {at(draw.name(BIASES), (j,))}"
    if kind != "c64" and draw.often(0.4):
        value = f"{draw.one(ACTIVATIONS)}({value})"
    elif draw.often(0.3):
        value = f"{draw.name(NUMBERS)} * ({value})"
    if kind.startswith("f8"):
        lines.append(f"{out}: bf16")
    return [*lines, f"{into} = {value}"]


def _scan(draw: Draw) -> Lines:
    before, i = draw.chance.choice(((), ("r",), ("b",), ("row",))), draw.name(("i", "t", "n"))
    draw.taken |= {*before, *(each.upper() for each in before), i.upper()}
    j = draw.dim(("j", "s", "k"))
    names, out = draw.inputs(1), draw.name(OUTPUTS)
    op = draw.one(("sum", "sum", "prod", "max", "min", "mean", "logsumexp", "any", "all"))
    over = draw.one((f"{j} <= {i}", f"{j} < {i}", f"{j} >= {i}", f"{i} - 7 <= {j} <= {i}", f"{j} > {i}"))
    value = _reduced(draw, op, over, [at(names[0], (*before, j))])
    return [*typed(draw, names), f"{at(out, (*before, i))} = {value}"]


def _segments(draw: Draw) -> Lines:
    r, e = draw.dims((("r", "e"), ("row", "p"), ("v", "e"), ("s", "i")))
    first, values, out = draw.name(("first", "row_ptr", "indptr", "offsets")), draw.name(
        ("values", "val", "data")
    ), draw.name(OUTPUTS)  # fmt: skip
    op = draw.one(("sum", "sum", "max", "min", "mean", "prod"))
    leaves = [at(values, (e,))]
    if draw.often(0.5):
        leaves.append(f"{draw.name(('x', 'vec', 'features'))}[{draw.name(('col', 'column_of', 'target'))}[{e}]]")
    value = f"{op}[{first}[{r}] <= {e} < {first}[{r} + 1]] ({draw.real(leaves, draw.chance.randint(0, 1))})"
    return [*typed(draw, [values]), *typed(draw, [first], ("f32", "i32", "i64")), f"{at(out, (r,))} = {value}"]


def _stencil(draw: Draw) -> Lines:
    dims = draw.dims(draw.chance.choice((VECTOR, MATRIX, MATRIX, CUBE)))
    (name,), out, mode = draw.inputs(1), draw.name(OUTPUTS), draw.one(OUTSIDE)
    reach, terms = draw.chance.choice((1, 1, 2)), [f"{draw.number()} * {at(name, dims)}"]
    for place, dim in enumerate(dims):
        for step in [*range(-reach, 0), *range(1, reach + 1)]:
            index = [*dims[:place], f"{dim} {'+' if step > 0 else '-'} {abs(step)}", *dims[place + 1 :]]
            terms.append(at(name, index, mode))
    value = f"{terms[0]} + {draw.number()} * ({' + '.join(terms[1:])})"
    return [*typed(draw, [name]), f"{at(out, dims)} = {draw.real([f'({value})'], draw.chance.randint(0, 1))}"]


def _window(draw: Draw) -> Lines:
    n, c, h, w = draw.dims(IMAGES)
    r, s = draw.dim(("r", "u", "dy")), draw.dim(("s", "dx", "v"))
    (name,), out, weight = draw.inputs(1), draw.name(OUTPUTS), draw.name(WEIGHTS)
    size, step, mode = draw.chance.choice((2, 3, 3, 5)), draw.chance.choice((1, 1, 2)), draw.one(OUTSIDE)
    rows = f"{step} * {h} + {r} - {size // 2}" if step > 1 else f"{h} + {r} - {size // 2}"
    columns = f"{step} * {w} + {s} - {size // 2}" if step > 1 else f"{w} + {s} - {size // 2}"
    over = f"{r} < {size}, {s} < {size}"
    lines = typed(draw, [name])
    if step > 1:
        kind = lines[0].split(": ")[1] if lines else "f32"
        o = "" if draw.often(0.5) else draw.dim(("o", "f"))
        lines = [f"{name}: {kind}[{n.upper()}, {c.upper()}, 2 * {h.upper()}, 2 * {w.upper()}]"]
    else:
        o = "" if draw.often(0.6) else draw.dim(("o", "f"))
    element = at(name, (n, c, rows, columns), mode)
    if not o:
        op = draw.one(("max", "mean", "sum", "min"))
        inner = f"{weight}[{c}, {r}, {s}] * {element}" if op == "sum" else element
        return [*lines, f"{at(out, (n, c, h, w))} = {op}[{over}] {inner}"]
    value = f"sum[{c}, {over}] {weight}[{o}, {c}, {r}, {s}] * {element}"
    value = f"{draw.one(ACTIVATIONS)}({value})" if draw.often(0.3) else value
    return [*lines, f"{at(out, (n, o, h, w))} = {value}"]


def _gather(draw: Draw) -> Lines:
    dims = draw.dims(draw.chance.choice((VECTOR, MATRIX, CUBE)))
    table, index, out = draw.name(("table", "src", "embedding", "lut")), draw.name(INDICES), draw.name(OUTPUTS)
    lines = [*typed(draw, [table]), *typed(draw, [index], ("f32", "f32", "i64", "u8", "u16"))]
    leaf = at(table, (f"{index}[{dims[0]}]", *dims[1:]), draw.one(("", "", "zero", "clamp", "wrap")))
    leaves = [leaf] if draw.often(0.6) else [leaf, at(draw.name(WEIGHTS), dims[-1:])]
    return [*lines, f"{at(out, dims)} = {draw.real(leaves)}"]


def _scatter(draw: Draw) -> Lines:
    dims = draw.dims(draw.chance.choice((VECTOR, VECTOR, MATRIX)))
    (name,), index, out = draw.inputs(1), draw.name(INDICES), draw.name(("hist", "bins", "acc", "y_sum", "counts"))
    lines = typed(draw, [name], ("f32", "f32", "f64"))
    into = at(out, (f"{index}[{dims[0]}]", *dims[1:]))
    value = draw.real([at(name, dims)], draw.chance.randint(0, 2))
    if draw.often(0.2):
        return [f"{out}: {draw.one(('i32', 'u32', 'i64'))}", f"{into} += 1"]
    if draw.often(0.5):
        return [*lines, f"{into} {draw.one(('+=', '+=', 'max=', 'min=', '*='))} {value}"]
    return [*lines, f"{into} = {draw.one(('sum', 'sum', 'max', 'min', 'prod'))}[{dims[0]}] ({value})"]


def _layout(draw: Draw) -> Lines:
    style = draw.chance.randrange(7)
    dims = draw.dims(draw.chance.choice((MATRIX, CUBE, IMAGES)) if style < 3 else MATRIX)
    (name,), out, kind = draw.inputs(1), draw.name(OUTPUTS), draw.one((*FLOATS, *WHOLE_TYPES, "bool", "c64", "c128"))
    if style < 3:
        order = list(dims)
        while tuple(order) == dims:
            draw.chance.shuffle(order)
        lines = [f"{name}: {kind}"] if kind != "f32" else []
        if style == 2:
            lines = [laid_out(draw, name, order, kind)]
        return [*lines, f"{at(out, dims)} = {at(name, order)}"]
    a, b = dims
    big, small, size = a.upper(), b.upper(), draw.one(("32", "64", "128", "16"))
    if style == 3:
        c = draw.dim()
        lines = [f"{name}: {kind}[{big}, {small} * {size}]", f"{out}: {kind}[{small}, {big}, {size}]"]
        return [*lines, f"{at(out, (b, a, c))} = {name}[{a}, {b} * {size} + {c}]"]
    if style == 4:
        lines = [f"{name}: {kind}[{small}, {size}]", f"{out}: {kind}[{small} * {size}]"]
        return [*lines, f"{at(out, (a,))} = {name}[{a} // {size}, {a} % {size}]"]
    if style == 5:
        return [f"{name}: {kind}[{big}, {small}]", f"{at(out, (a, b))} = {name}[{a}, {small} - 1 - {b}]"]
    shift, mode = draw.chance.randint(1, 9), draw.one(("zero", "clamp", "wrap", "reflect"))
    lines = [f"{name}: {kind}[{big}, {small}]", f"{out}: {kind}[{big}, {small} + {2 * shift}]"]
    return [*lines, f"{at(out, (a, b))} = {name}[{a}, {b} - {shift}; {mode if kind != 'bool' else 'clamp'}]"]


def _structs(draw: Draw) -> Lines:
    i = draw.dims(VECTOR)
    fields = draw.chance.choice((("x", "y"), ("x", "y", "z"), ("r", "g", "b"), ("re", "im"), ("x", "y", "z", "w")))
    name, out = draw.name(("points", "particles", "body", "verts", "pix")), draw.name(OUTPUTS)
    lines = [f"{name}: {draw.one(FLOATS)}[{i[0].upper()}]{{{', '.join(fields)}}}"]
    own = [f"{name}.{each}" for each in fields]
    if draw.often(0.5):
        return [*lines, f"{at(out, i)} = {draw.real([at(each, i) for each in own], 2)}"]
    changed = draw.chance.choice(own)
    return [*lines, f"{at(changed + chr(39), i)} = {draw.real([at(each, i) for each in own], 1)}"]


def _mask(draw: Draw) -> Lines:
    i, j = draw.dims((("i", "j"), ("q", "k"), ("row", "col"), ("t", "s")))
    (name,), out = draw.inputs(1), draw.name(OUTPUTS)
    given = at(draw.name(("keep", "mask", "valid")), (i, j))
    test = draw.one((f"{j} <= {i}", f"{i} < {j}", f"abs({i} - {j}) <= {draw.one(('1', '8', 'width'))}", given,
                     f"{j} < {draw.name(('length', 'lens'))}[{i}]", f"{i} // 16 == {j} // 16"))  # fmt: skip
    other = draw.one(("0", "-inf", "-1e30", draw.number()))
    lines = [] if "len" not in test else [f"{test.split('< ')[1].split('[')[0]}: i32"]
    value = draw.real([at(name, (i, j))], draw.chance.randint(0, 2))
    return [*lines, *typed(draw, [name]), f"{at(out, (i, j))} = ({value}) if {test} else {other}"]


def _attention(draw: Draw) -> Lines:
    before = draw.chance.choice(((), ("b",), ("b", "h")))
    draw.taken |= {*before, *(each.upper() for each in before)}
    i, j, d = draw.dims((("i", "j", "d"), ("m", "n", "e"), ("t", "u", "d")))
    q, k, v = draw.name(("q", "query", "Q")), draw.name(("k", "key", "K")), draw.name(("v", "val", "V"))
    out, scale = draw.name(("o", "out", "ctx")), draw.one(("scale", "0.125", "0.08838834764831845"))
    s, m, e = (draw.name((each, f"{each}_")) for each in ("s", "mx", "p"))
    score = f"{scale} * sum[{d}] {at(q, (*before, i, d))} * {at(k, (*before, j, d))}"
    if draw.often(0.3):
        score = f"{draw.one(('softcap', '30'))} * tanh({score})"
    test = draw.one(("", "", f"{j} <= {i}", f"abs({i} - {j}) <= window", at(draw.name(("mask", "allow")), (i, j))))
    score = f"({score}) if {test} else -1e30" if test else score
    row, cell = (*before, i), (*before, i, j)
    value = f"(sum[{j}] {at(e, cell)} * {at(v, (*before, j, d))}) / sum[{j}] {at(e, cell)}"
    stages = [f"{at(s, cell)} = {score}", f"{at(m, row)} = max[{j}] {at(s, cell)}",
              f"{at(e, cell)} = exp({at(s, cell)} - {at(m, row)})"]  # fmt: skip
    return [*typed(draw, [q, k, v]), f"{at(out, (*row, d))} = {value}", f"where {', '.join(stages)}"]


def _random(draw: Draw) -> Lines:
    dims = draw.dims(draw.chance.choice((VECTOR, MATRIX)))
    (name,), out, seed = draw.inputs(1), draw.name(OUTPUTS), draw.name(("seed", "rng_seed", "key"))
    place = dims[0] if len(dims) == 1 else f"{dims[0]} * {dims[1].upper()} + {dims[1]}"
    x, lines = draw.real([at(name, dims)], draw.chance.randint(0, 1)), typed(draw, [name])
    value = draw.one((
        f"({x}) / (1 - p_drop) if uniform({seed}, {place}) >= p_drop else 0",
        f"({x}) + {draw.number()} * normal({seed}, {place})",
        f"({x}) * (1 + {draw.number()} * normal({seed}, {place}))",
        f"floor(({x}) + uniform({seed}, {place}))",
        f"({x}) if uniform({seed}, {place}) < {draw.one(('0.9', '0.5', 'rate0'))} else {draw.number()}",
    ))  # fmt: skip
    return [*lines, f"{at(out, dims)} = {value}"]


def _optimiser(draw: Draw) -> Lines:
    i = draw.dims(VECTOR)
    w, g = draw.name(("w", "param", "weight")), draw.name(("g", "grad", "dw"))
    m, v = draw.name(("m", "momentum", "exp_avg")), draw.name(("v", "second", "exp_avg_sq"))
    lr, decay = draw.name(("lr", "step_size", "eta")), draw.name(("b1", "beta1", "mu"))
    second = draw.name(("b2", "beta2", "rho"))
    pw, pg, pm, pv = (at(each, i) for each in (w, g, m, v))
    nm, nv = at(f"{m}'", i), at(f"{v}'", i)
    step = f"{pg} + {draw.name(('wd', 'decay'))} * {pw}" if draw.often(0.4) else pg
    first = f"{nm} = {decay} * {pm} + {draw.one((f'(1 - {decay}) * ', ''))}({step})"
    eps = draw.one(("eps", "1e-08", "1e-06"))
    new = f"{at(w + chr(39), i)} = {pw} - {lr} * "
    lines = typed(draw, [w, g], ("f32", "f32", "bf16", "f64"))
    style = draw.chance.randrange(4)
    if style == 0:
        return [*lines, new + f"({step})"]
    if style == 1:
        return [*lines, first, new + draw.one((nm, f"({pg} + {decay} * {nm})", f"sign({nm})", f"tanh({nm})"))]
    squares = f"{nv} = {second} * {pv} + (1 - {second}) * ({step}) ** 2"
    if style == 2:
        return [*lines, squares, new + f"{pg} / (sqrt({nv}) + {eps})"]
    return [*lines, first, squares, new + f"({nm} / c1) / (sqrt({nv} / c2) + {eps})"]


def _quantise(draw: Draw) -> Lines:
    r, c = draw.dims(MATRIX)
    (name,), q, scale = draw.inputs(1), draw.name(("q", "packed", "codes")), draw.name(("scale", "step0", "inv"))
    x, kind = at(name, (r, c)), draw.one(("i8", "u8", "i16", "u16", "f8e4m3", "f8e5m2"))
    low, high = {"i8": (-127, 127), "u8": (0, 255), "i16": (-32767, 32767), "u16": (0, 65535),
                 "f8e4m3": (-448, 448), "f8e5m2": (-57344, 57344)}[kind]  # fmt: skip
    by = draw.chance.choice(((), (r,), (c,)))
    s, style = at(scale, by), draw.chance.randrange(3)
    inner = draw.real([x], draw.chance.randint(0, 1))
    if style == 0:
        value = f"({at(q, (r, c))} {draw.one(('', '- zero_point'))}) * {s}"
        return [f"{q}: {kind}", f"{at(name, (r, c))} = {draw.one(('', 'relu'))}({value})"]
    rounding = f"round(({inner}) / {s})" if kind[0] != "f" else f"({inner}) / {s}"
    lines = [f"{q}: {kind}", f"{at(q, (r, c))} = clamp({rounding}, {low}, {high})"]
    if style == 2 and by == (r,):
        lines.append(f"{s} = max(max[{c}] abs({inner}), 1e-08) / {high}")
    return [*typed(draw, [name], ("f32", "bf16", "f16")), *lines]


def _integers(draw: Draw) -> Lines:
    dims = draw.dims(draw.chance.choice((VECTOR, MATRIX)))
    names, out, kind = draw.inputs(draw.chance.randint(1, 2)), draw.name(OUTPUTS), draw.one(WHOLE_TYPES)
    lines = [f"{each}: {kind}" for each in names]
    value = draw.whole([at(each, dims) for each in names], draw.chance.randint(1, 3))
    value = value if len(names) < 2 or at(names[1], dims) in value else f"{value} ^ {at(names[1], dims)}"
    if draw.often(0.25):
        op = draw.one(("sum", "max", "min", "prod", "sum:i32" if kind[0] == "i" else "sum:u64"))
        return [*lines, f"{at(out, dims[:-1])} = {op}[{dims[-1]}] ({value})"]
    if draw.often(0.3):
        cast = draw.one(("f32", "i32", "u8", "f16", "i64", "bool"))
        return [*lines, f"{at(out, dims)} = {cast}({value})"]
    return [*lines, f"{at(out, dims)} = {value}"]


def _complex(draw: Draw) -> Lines:
    dims = draw.dims(draw.chance.choice((VECTOR, MATRIX)))
    one, other = draw.inputs(2)
    out, kind = draw.name(OUTPUTS), draw.one(("c64", "c64", "c128"))
    z, w = at(one, dims), at(other, dims)
    both = [f"{one}: {kind}", f"{other}: {kind}"]
    value = draw.one((f"{z} * {w}", f"{z} * conj({w})", f"{z} / ({w} + 2)", f"exp({z}) + {w}", f"sqrt({z}) - {w}",
                      f"{z} * {z} + {w}", f"{z} if abs({z}) < 2 else {w}", f"sin({z}) * cos({w})",
                      f"tanh({z} + {w})"))  # fmt: skip
    style = draw.chance.choice((0, 0, 1, 2, 3))
    if style == 0:
        return [*both, f"{at(out, dims)} = {draw.one(('abs', 'real', 'imag', 'conj'))}({value})"]
    if style == 1:
        part = draw.one((f"complex(cos({w}), sin({w}))", f"complex({w}, 1)", f"complex({w}, -{w})"))
        return [both[0], f"{at(out, dims)} = {z} * {part}"]
    if style == 2:
        return [*both, f"{at(out, dims[:-1])} = {draw.one(('sum', 'mean', 'prod'))}[{dims[-1]}] ({value})"]
    return [*both, f"{at(out, dims)} = {draw.number()} * ({value})"]


def _loss(draw: Draw) -> Lines:
    n, c = draw.dims((("n", "c"), ("r", "v"), ("b", "k"), ("t", "v")))
    x, label, out = draw.name(("logits", "x", "scores")), draw.name(("label", "target", "y_true")), draw.name(
        ("loss", "cost", "nll")
    )  # fmt: skip
    cell, lines = at(x, (n, c)), typed(draw, [x])
    right, total = f"{x}[{n}, {label}[{n}]]", f"(logsumexp[{c}] {cell})"
    smooth = draw.one(("eps", "0.1", "smoothing"))
    value = draw.one((
        f"{total} - {right}",
        f"{total} - (1 - {smooth}) * {right} - {smooth} * mean[{c}] {cell}",
        f"({total} - {right}) * {at(draw.name(WEIGHTS), (f'{label}[{n}]',))}",
        f"sum[{c}] (0 if {c} == {label}[{n}] else max(0, {draw.number()} + {cell} - {right}))",
        f"-log(sigmoid({right}) + {draw.number()})",
        f"({total} - {right}) ** 2",
    ))  # fmt: skip
    if draw.often(0.4):
        return [*lines, f"{out} = {draw.one(('mean', 'sum'))}[{n}] ({value})"]
    return [*lines, f"{at(out, (n,))} = {value}"]


FAMILIES: dict[str, Callable[[Draw], Lines]] = {
    "map": _map, "broadcast": _broadcast, "row reduction": _rows, "column reduction": _columns, "global reduction":
    _global, "normalisation": _normalise, "contraction": _contraction, "scan": _scan, "segments": _segments, "stencil":
    _stencil, "window": _window, "gather": _gather, "scatter": _scatter, "layout": _layout, "structs": _structs, "mask":
    _mask, "attention": _attention, "random": _random, "optimiser": _optimiser, "quantisation": _quantise, "integers":
    _integers, "complex": _complex, "loss": _loss,
}  # fmt: skip
"""By name, in the order in which they are drawn."""
