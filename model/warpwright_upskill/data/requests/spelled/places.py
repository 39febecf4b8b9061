"""Formulas that read at other places: neighbours, windows, contractions, pairs and running totals."""

from __future__ import annotations

from collections.abc import Callable

from warpwright_upskill.data.requests.spelled.frame import Frame, at, dims_of, epilogue
from warpwright_upskill.data.requests.spelled.grammar import LITERALS, number, value

_OUTSIDE = ("zero", "zero", "clamp", "clamp", "wrap", "reflect")


def neighbours(frame: Frame) -> None:
    dims = dims_of(frame, (48, 40, 12))
    along = dims[-2:] if len(dims) >= 2 and frame.often(0.7) else dims[-1:]
    mode = frame.chance.choice(_OUTSIDE)
    valid = len(dims) == 1 and frame.often(0.2)
    name = frame.array(dims, len(dims)).split("[")[0]

    def moved(dim: str, step: int) -> str:
        index = [f"{each} {'+' if step > 0 else '-'} {abs(step)}" if each == dim and step else each for each in dims]
        return at(name, index, "" if valid or not step else mode)

    here, far = moved(dims[0], 0), frame.chance.choice((1, 1, 1, 2))
    pairs = [(moved(dim, far), here) if valid else (moved(dim, far), moved(dim, -far)) for dim in along]
    if frame.often(0.1):
        i = dims[-1]
        before = at(name, (*dims[:-1], f"{i} - 1"))
        first = frame.chance.choice((here, "0", number(frame.names)))
        both = frame.chance.choice((f"{here} - {before}", value(frame.names, [here, before]), f"{here} * {before}"))
        frame.put(dims, f"({both}) if {i} > 0 else {first}")
        return
    if frame.often(0.3) and not valid:
        pairs = [(here, moved(dim, -far)) for dim in along]
    ring = " + ".join(each for pair in dict.fromkeys(pairs) for each in dict.fromkeys(pair) if each != here)
    differences = [f"({one} - {other})" for one, other in pairs]
    squares = " + ".join(f"{each} ** 2" for each in differences)
    count = len(ring.split(f" + {name}"))
    ways: list[Callable[[], str]] = [
        lambda: f"{number(frame.names)} * {here} + {number(frame.names)} * ({ring})",
        lambda: f"{here} + {number(frame.names)} * ({ring} - {count} * {here})",
        lambda: squares if len(pairs) == 1 else f"sqrt({squares})",
        lambda: f"{frame.chance.choice(LITERALS)} * {differences[-1]}",
        lambda: f"{differences[0]} / {number(frame.names)}",
        lambda: " + ".join(f"abs{each}" for each in differences),
        lambda: f"max({pairs[-1][0]}, {pairs[-1][1]})",
        lambda: f"min({pairs[-1][0]}, max({pairs[-1][1]}, {here}))",
        lambda: f"({ring} + {here}) / {count + 1}",
        lambda: f"{frame.array(dims[-1:], 1)} * {pairs[-1][1]} + {frame.array(dims[-1:], 1)} * {here}",
        lambda: f"{here} - {number(frame.names)} * {frame.array(dims, 1)} * {differences[-1]}",
        lambda: value(frame.names, [here, pairs[-1][0], frame.array(dims, 1)]),
    ]
    found = frame.chance.choice(ways)()
    if frame.often(0.2):
        found = value(frame.names, [f"({found})", *frame.leaves(dims, 1)])
    frame.put(dims, found)


def window(frame: Frame) -> None:
    dims = frame.names.dims[: frame.chance.choices((1, 2, 3), (55, 30, 15))[0]]
    i, before, k = dims[-1], dims[:-1], frame.names.dims[3]
    width = frame.chance.choice((3, 3, 5, 7, 4))
    step, mode = frame.chance.choice((1, 1, 1, 2)), frame.chance.choice(_OUTSIDE)
    form = frame.chance.randrange(4)
    x = frame.array(dims, len(dims)).split("[")[0]
    if form == 0:  # valid, of a width that the array of weights tells
        over, place, outside = k, f"{i} + {k}", ""
    elif form == 1:
        over, place, outside = f"{k} < {width}", f"{f'{step} * ' if step > 1 else ''}{i} + {k} - {width // 2}", mode
    elif form == 2:
        over, place, outside = f"{k} < {width}", f"{i} - {k}", mode
    else:
        over, place, outside = (
            f"{k} < {width}",
            f"{f'{step} * ' if step > 1 else ''}{i} + {k}",
            "" if step == 1 else "zero",
        )
    element = at(x, (*before, place), outside)
    if form == 0 or frame.often(0.6):
        w = frame.array((*before[-1:], k) if before and frame.often(0.3) else (k,), 2)
        inner = value(frame.names, [w, element]) if frame.often(0.3) else f"{w} * {element}"
        total = f"sum[{over}] ({inner})"
    else:
        body = value(frame.names, [element], frame.chance.choice((0, 0, 1)))
        total = f"{frame.chance.choice(('max', 'min', 'mean', 'sum'))}[{over}] ({body})"
    frame.put(dims, epilogue(frame, total, dims) if frame.often(0.3) else total)


def contraction(frame: Frame) -> None:
    letters = frame.names.dims
    kept, over = (
        letters[: frame.chance.choices((1, 2, 3), (25, 55, 20))[0]],
        letters[3 : 3 + frame.chance.choice((1, 1, 1, 2))],
    )
    count = frame.chance.choices((2, 3), (75, 25))[0]
    parts: list[list[str]] = [[] for _ in range(count)]
    for each in over:
        for place in frame.chance.sample(range(count), 2 if count == 2 or frame.often(0.8) else 3):
            parts[place].append(each)
    for each in kept:
        for place in frame.chance.sample(range(count), 1 if frame.often(0.8) else 2):
            parts[place].append(each)
    elements = []
    for dims in (each for each in parts if each):
        order = sorted(dims, key=letters.index)
        if frame.often(0.35):
            frame.chance.shuffle(order)
        elements.append(frame.array(order[:4], 1))
    told = {each for dims in parts for each in dims[:4]}
    kept = tuple(each for each in kept if each in told)
    if frame.often(0.2):
        elements[0] = f"({value(frame.names, [elements[0]], 1)})"
    product = " * ".join(elements)
    if frame.often(0.18):
        product = f"({value(frame.names, elements)})"
    total = f"sum[{', '.join(over)}] {product}"
    into = tuple(reversed(kept)) if frame.often(0.1) else kept
    frame.put(into, epilogue(frame, total, into) if frame.often(0.4) else total)


def pairs(frame: Frame) -> None:
    i, j, _, d = frame.names.dims[:4]
    same = frame.often(0.5)
    one = frame.array((i, d), 1)
    other = at(one.split("[")[0], (j, d)) if same else frame.array((j, d), 1)
    body = frame.chance.choice(
        (
            f"({one} - {other}) ** 2",
            f"abs({one} - {other})",
            f"({value(frame.names, [one, other])})",
            f"{one} * {other}",
        )
    )
    op = frame.chance.choice(("sum", "sum", "sum", "max", "mean"))
    over = f"{d} < 3" if frame.often(0.35) else d
    score = f"{op}[{over}] {body}"
    if frame.often(0.5):
        frame.put((i, j), epilogue(frame, score, (j,)) if frame.often(0.6) else score)
        return
    stage = at(frame.names.of("d2 dist s w r"), (i, j))
    frame.stages.append(f"{stage} = {score}")
    weight = frame.array((j,), 1)
    choice = frame.chance.randrange(3)
    inner = value(frame.names, [stage, weight] if choice else [stage], 1)
    frame.put((i,), f"{frame.chance.choice(('sum', 'sum', 'max', 'min', 'mean'))}[{j}] ({inner})")


def scan(frame: Frame) -> None:
    dims = dims_of(frame, (60, 30, 10))
    i, j = dims[-1], frame.names.dims[3]
    op = frame.chance.choice(("sum", "sum", "sum", "mean", "max", "min", "prod"))
    width = frame.chance.choice((2, 3, 4, 7, 15))
    ranges = [f"{j} <= {i}", f"{j} <= {i}", f"{i} - {width} <= {j} <= {i}"]
    if op in ("sum", "prod"):
        ranges += [f"{j} < {i}", f"{j} >= {i}", f"{j} > {i}"]
    body = frame.value((*dims[:-1], j), (50, 40, 10))
    total = f"{op}[{frame.chance.choice(ranges)}] ({body})"
    frame.put(dims, value(frame.names, [f"({total})", *frame.leaves(dims, 1)]) if frame.often(0.3) else total)
