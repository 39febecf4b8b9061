"""What a formula is built like: maps, reductions, normalisations, gathers, scatters, and what `places` has.

A frame fixes dimensions and where they are reduced; what stands in it comes from the grammar of expressions. Gathers,
masks, epilogues, stages, second results and updates in place may stand in most of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from warpwright_upskill.data.requests.spelled.frame import Frame, at, dims_of, epilogue, kept_of
from warpwright_upskill.data.requests.spelled.grammar import SMALL, number, value
from warpwright_upskill.data.requests.spelled.names import LENGTHS, Names
from warpwright_upskill.data.requests.spelled.places import contraction, neighbours, pairs, scan, window

OPS = ("sum", "mean", "max", "min", "prod", "argmax", "argmin", "logsumexp", "var")
_OP_WEIGHTS = (50, 12, 10, 8, 3, 5, 4, 3, 2)


def _map(frame: Frame) -> None:
    dims = dims_of(frame, (45, 34, 13, 8))
    found = frame.value(dims, (12, 36, 28, 16, 8))
    if frame.often(0.12):
        otherwise = frame.chance.choice(
            ("0", "0", "-inf" if frame.often(0.3) else "1", number(frame.names), frame.leaf(dims, len(dims)))
        )
        found = f"({found}) if {frame.condition(dims)} else {otherwise}"
    if frame.often(0.07):
        target = at(frame.names.of(frame.names.theme.results), dims)
        frame.results.append(f"{target} {frame.chance.choice(('+=', '+=', '*=', 'max='))} {found}")
    elif frame.often(0.08) and frame.floats:
        first = frame.floats[0]
        if at(first, dims) in found:
            frame.results.append(f"{at(first + chr(39), dims)} = {found}")
            return
        frame.put(dims, found)
    else:
        frame.put(dims, found)


def _operation(frame: Frame) -> str:
    return frame.chance.choices(OPS, _OP_WEIGHTS)[0]


def _ranges(frame: Frame, kept: Sequence[str], over: Sequence[str], op: str) -> str:
    """The dimensions that are reduced: mostly whole, now and then up to another dimension or to a length."""
    last = over[-1]
    said = ", ".join(over)
    if op.startswith("arg") or op in ("mean", "var", "logsumexp") or not kept or len(over) > 1:
        return said
    roll = frame.chance.random()
    if roll < 0.07:
        return f"{last} {frame.chance.choice(('<=', '<', '>=', '>'))} {kept[-1]}"
    if roll < 0.13 and op not in ("max", "min"):
        name = frame.names.of(LENGTHS)
        frame.types[name] = "i32"
        return f"{last} < {at(name, kept[:1])}"
    return said


def _reduced(frame: Frame, kept: Sequence[str], over: Sequence[str], dims: Sequence[str]) -> str:
    op = _operation(frame)
    body = frame.value(dims, (28, 48, 24))
    if op == "sum" and frame.often(0.12):
        body = f"({body}) if {frame.condition(dims)} else 0"
    if op == "max" and frame.often(0.12):
        body = f"({body}) if {frame.condition(dims)} else -inf"
    return f"{op}[{_ranges(frame, kept, over, op)}] ({body})"


def _reduce(frame: Frame) -> None:
    dims = dims_of(frame, (16, 54, 22, 8))
    kept, over = kept_of(frame, dims)
    if frame.often(0.05):
        sign, limit = frame.chance.choice((">", "<", ">=", "==")), frame.chance.choice(("0", number(frame.names)))
        leaf = frame.value(dims, (50, 50))
        if frame.often(0.5):
            frame.put(kept, f"{frame.chance.choice(('any', 'all'))}[{', '.join(over)}] (({leaf}) {sign} {limit})")
        else:
            frame.put(kept, f"sum[{', '.join(over)}] (1 if ({leaf}) {sign} {limit} else 0)")
        return
    total = _reduced(frame, kept, over, dims)
    if total.startswith("arg"):
        frame.put(kept, total)
        return
    if frame.often(0.15) and not total.startswith(("max", "min", "prod")):
        total = f"({total}) / ({' * '.join(each.upper() for each in over)})"
        frame.put(kept, total)
        return
    if frame.often(0.18):
        frame.stages.append(f"{at(frame.names.of(frame.names.theme.stages), kept)} = {total}")
        total = frame.stages[-1].split(" = ")[0]
        frame.put(
            kept, value(frame.names, [total, *frame.leaves(kept, 1)] if kept else [total, number(frame.names)], 1)
        )
        return
    frame.put(kept, epilogue(frame, total, kept) if frame.often(0.45) else total)


def _other_names(frame: Frame, over: Sequence[str]) -> dict[str, str]:
    """What dimensions of the result are called where they are reduced: by other letters, as a second index is."""
    spare = [each for each in frame.names.dims[3:] if each not in over]
    return (
        dict(zip(over, spare, strict=False))
        if len(spare) >= len(over) and frame.often(0.75)
        else dict(zip(over, over, strict=True))
    )


def _renamed(text: str, names: dict[str, str]) -> str:
    """
    >>> _renamed("x[i, j] - m[i]", {"j": "k"})
    'x[i, k] - m[i]'
    """
    return re.sub(r"\b[a-z]\b", lambda found: names.get(found[0], found[0]), text)


def _normalise(frame: Frame) -> None:
    dims = dims_of(frame, (15, 55, 22, 8))
    kept, over = kept_of(frame, dims)
    x = frame.leaf(dims, len(dims)) if frame.often(0.65) else value(frame.names, frame.leaves(dims, 2))
    inner = _other_names(frame, over)
    listed = ", ".join(inner.values())
    eps = frame.chance.choice(SMALL) if frame.often(0.5) else frame.names.of("eps epsilon tiny")
    shape = value(frame.names, [x], 1)
    op = frame.chance.choice(("sum", "mean", "max", "min", "sum", "mean"))
    inside = frame.chance.choice((f"({x})", f"({x})", f"({x}) ** 2", f"abs({x})", f"({shape})"))
    first, form = f"{op}[{listed}] {_renamed(inside, inner)}", frame.chance.randrange(6)
    if frame.often(0.6):
        stage = at(frame.names.of(frame.names.theme.stages), kept)
        frame.stages.append(f"{stage} = {first}")
        first = stage
    total = f"({first})"
    size = total if "** 2" in inside or inside.startswith("abs") else f"abs({total})"
    found = (
        f"({x}) - {total}",
        f"({x}) / ({size} + {eps})",
        f"({x}) / sqrt({total} ** 2 + {eps})",
        f"({x}) / ({total} + {eps})" if "** 2" in inside or "abs" in inside else f"({x}) * {total}",
        f"exp(({x}) - {total})" if op == "max" and inside == f"({x})" else f"({shape}) - {total}",
        f"({x}) * rsqrt({total} + {eps})" if "** 2" in inside else f"({x}) / (1 + {size})",
    )[form]
    if frame.often(0.3):
        second = f"{frame.chance.choice(('sum', 'mean', 'max'))}[{listed}] ({_renamed(found, inner)}) ** 2"
        if frame.often(0.6):
            stage = at(frame.names.of(frame.names.theme.stages), kept)
            frame.stages.append(f"{stage} = {second}")
            second = stage
        found = frame.chance.choice((f"({found}) / sqrt(({second}) + {eps})", f"({found}) / (({second}) + {eps})"))
    if frame.often(0.4):
        found = value(frame.names, [f"({found})", frame.array(frame.chance.choice((dims[-1:], dims[:1])), 2)])
    frame.put(dims, found)


def _scatter(frame: Frame) -> None:
    dims = dims_of(frame, (55, 35, 10))
    element = frame.index(dims[:1])
    body = "1" if frame.often(0.12) else frame.value(dims, (45, 40, 15))
    into = frame.names.of("h acc total out grad_w sums agg")
    place = (element, *dims[1:])
    roll = frame.chance.random()
    if roll < 0.55:
        sign = frame.chance.choices(("+=", "max=", "min="), (80, 14, 6))[0] if body != "1" else "+="
        if body == "1":
            frame.types[into] = frame.chance.choice(("i32", "u32", "f32"))
        frame.results.append(f"{at(into, place)} {sign} {body}")
    elif len(dims) == 1 or frame.often(0.5):
        frame.results.append(f"{at(into, place)} = sum[{dims[0]}] ({body})")
    else:
        frame.results.append(f"{at(into, (element,))} = sum[{', '.join(dims)}] ({body})")


def _gather(frame: Frame) -> None:
    dims = dims_of(frame, (45, 45, 10))
    index = frame.index(dims[:1])
    leaf = frame.array((index, *dims[1:]), 1)
    others = [frame.leaf(dims, len(dims)) for _ in range(frame.chance.choice((0, 1, 1, 2)))]
    if len(dims) == 2 and frame.often(0.4):
        op = frame.chance.choice(("sum", "sum", "max", "mean"))
        body = value(frame.names, [leaf, *others], 1 if not others else 0)
        frame.put(dims[:1], f"{op}[{dims[1]}] ({body})")
        return
    if frame.often(0.15):
        leaf = f"({leaf} if {index} >= 0 else 0)"
    frame.put(dims, value(frame.names, [leaf, *others], 0 if others else frame.chance.choice((0, 1))))


def _twice(frame: Frame) -> None:
    """Two results of the same arrays, of which the second may read the first."""
    dims = dims_of(frame, (50, 38, 12))
    leaves = frame.leaves(dims, frame.chance.choice((1, 2, 2, 3)))
    first = frame.put(dims, value(frame.names, leaves, 0 if len(leaves) > 1 else 1))
    if len(dims) > 1 and frame.often(0.35):
        body = value(frame.names, [first], frame.chance.choice((0, 1)))
        frame.put(dims[:-1], f"{frame.chance.choice(('sum', 'max', 'mean'))}[{dims[-1]}] ({body})")
        return
    again = [
        first if frame.often(0.4) else frame.chance.choice(leaves),
        *leaves[1:2],
        *frame.leaves(dims, 1)[: frame.chance.choice((0, 1))],
    ]
    frame.put(dims, value(frame.names, again, 0 if len(again) > 1 else 1))


def _staged(frame: Frame) -> None:
    """A stage of its own, read at two places or reduced behind."""
    dims = dims_of(frame, (40, 45, 15))
    stage = at(frame.names.of(frame.names.theme.stages), dims)
    frame.stages.append(f"{stage} = {frame.value(dims, (20, 50, 30))}")
    if frame.often(0.4):
        kept, over = kept_of(frame, dims)
        body = value(frame.names, [stage, *frame.leaves(dims, 1)])
        total = f"{frame.chance.choice(('sum', 'sum', 'max', 'mean'))}[{', '.join(over)}] ({body})"
        frame.put(kept, total)
        return
    frame.put(
        dims,
        value(
            frame.names, [stage, stage, *frame.leaves(dims, 1)] if frame.often(0.4) else [stage, *frame.leaves(dims, 2)]
        ),
    )


FRAMES: dict[str, tuple[Callable[[Frame], None], int]] = {
    "map": (_map, 24), "reduce": (_reduce, 18), "normalise": (_normalise, 9), "neighbours": (neighbours, 9),
    "window": (window, 6), "contraction": (contraction, 10), "pairs": (pairs, 4), "scan": (scan, 5),
    "scatter": (_scatter, 4), "gather": (_gather, 5), "twice": (_twice, 5), "staged": (_staged, 6),
}  # fmt: skip
"""What each frame is, and how often it is taken."""


def drawn(chance: Random) -> tuple[str, Frame]:
    """A frame of any kind and its name."""
    among = tuple(FRAMES)
    kind = chance.choices(among, [FRAMES[each][1] for each in among])[0]
    frame = Frame(Names(chance))
    FRAMES[kind][0](frame)
    return kind, frame
