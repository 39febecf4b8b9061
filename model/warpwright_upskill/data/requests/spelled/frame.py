"""A formula as it grows: arrays, leaves and conditions over dimensions, and what is done with a total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from warpwright_upskill.data.requests.spelled.grammar import number, value
from warpwright_upskill.data.requests.spelled.names import INDICES, LENGTHS, MASKS, Names


@dataclass
class Frame:
    """A formula as it grows: `results` and `stages` are equations, `types` those of what is not of floating point."""

    names: Names
    results: list[str] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    floats: list[str] = field(default_factory=list)

    @property
    def chance(self) -> Random:
        return self.names.chance

    def often(self, share: float) -> bool:
        return self.names.chance.random() < share

    def array(self, dims: Sequence[str], full: int = 1) -> str:
        """An element of a new array over these dimensions."""
        pool = self.names.theme.arrays if len(dims) >= full else self.names.theme.vectors
        name = self.names.of(pool)
        self.floats.append(name)
        return at(name, dims)

    def index(self, dims: Sequence[str]) -> str:
        name = self.names.of(INDICES)
        self.types[name] = "i64" if self.often(0.2) else "i32"
        return at(name, dims)

    def leaf(self, dims: Sequence[str], full: int) -> str:
        """A new array over the dimensions: as it is, transposed, or its first dimension gathered."""
        roll = self.chance.random()
        if len(dims) >= 2 and roll < 0.06:
            return self.array((*dims[:-2], dims[-1], dims[-2]), full)
        if roll > 0.94:
            return self.array((self.index(dims[:1]), *dims[1:]), full)
        return self.array(dims, full)

    def leaves(self, dims: Sequence[str], count: int) -> list[str]:
        """Elements of arrays of which the first has all dimensions and others some, and numbers."""
        found = [self.leaf(dims, len(dims))]
        for _ in range(count - 1):
            roll = self.chance.random()
            if roll < 0.5 or not dims:
                found.append(self.leaf(dims, len(dims)))
            elif roll < 0.85 and len(dims) > 1:
                kept = self.chance.choice((dims[-1:], dims[-1:], dims[:1], dims[1:], dims[:-1], dims[1:2]))
                found.append(self.array(kept, len(dims)))
            elif roll < 0.9:
                found.append(found[0])
            else:
                found.append(number(self.names))
        return found

    def value(self, dims: Sequence[str], counts: Sequence[int] = (30, 40, 20, 10)) -> str:
        count = self.chance.choices(range(1, len(counts) + 1), counts)[0]
        more = self.chance.choices((0, 1, 2), (20, 55, 25) if count == 1 else (65, 28, 7))[0]
        return value(self.names, self.leaves(dims, count), more)

    def result(self) -> str:
        return self.names.of(self.names.theme.results)

    def condition(self, dims: Sequence[str]) -> str:
        """What may be asked of a place: a mask, a comparison of places, a length, a flag."""
        ways = ["mask", "mask", "flag"]
        if len(dims) >= 2:
            ways += ["causal", "causal", "length", "length", "same", "band"]
        match self.chance.choice(ways):
            case "mask":
                kept = dims if self.often(0.5) else dims[-1:]
                name = self.names.of(MASKS)
                if self.often(0.6):
                    return at(name, kept)
                self.types[name] = self.chance.choice(("u8", "i32"))
                return f"{at(name, kept)} {self.chance.choice(('!= 0', '!= 0', '== 0', '> 0'))}"
            case "causal":
                return f"{dims[-1]} {self.chance.choice(('<=', '<=', '<', '>', '>='))} {dims[-2]}"
            case "length":
                name = self.names.of(LENGTHS)
                self.types[name] = "i64" if self.often(0.2) else "i32"
                return f"{dims[-1]} < {at(name, dims[:1])}"
            case "same":
                return f"{dims[-1]} {self.chance.choice(('==', '!='))} {dims[-2]}"
            case "band":
                width = self.chance.choice(("1", "2", "4", "8"))
                return f"{dims[-2]} - {dims[-1]} < {width} and {dims[-1]} <= {dims[-2]}"
        name = self.names.of(INDICES)
        self.types[name] = "i32"
        return f"{at(name, dims[:1])} {self.chance.choice(('>= 0', '== 1', '!= 0', '< 3'))}"

    def put(self, dims: Sequence[str], value: str, sign: str = "=") -> str:
        """A new result with this value; its element."""
        name = at(self.result(), dims)
        self.results.append(f"{name} {sign} {value}")
        return name


def at(name: str, dims: Sequence[str], outside: str = "") -> str:
    """
    >>> at("x", ("i", "j + 1"), "zero")
    'x[i, j + 1; zero]'
    """
    return f"{name}[{', '.join(dims)}{f'; {outside}' if outside else ''}]" if dims else name


def dims_of(frame: Frame, weights: Sequence[int]) -> tuple[str, ...]:
    rank = frame.chance.choices(range(1, len(weights) + 1), weights)[0]
    return frame.names.dims[:rank]


def kept_of(frame: Frame, dims: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What of the dimensions is kept, and one or two that are reduced, mostly the last."""
    if len(dims) == 1:
        return (), dims
    count = 2 if frame.often(0.2) else 1
    if frame.often(0.65):
        return dims[:-count], dims[-count:]
    over = tuple(sorted(frame.chance.sample(dims, count), key=dims.index))
    return tuple(each for each in dims if each not in over), over


def epilogue(frame: Frame, total: str, kept: Sequence[str]) -> str:
    """Something done with a total: another array, a number, a function."""
    count = frame.chance.choices((0, 1, 2), (35, 50, 15))[0]
    others = []
    for _ in range(count):
        others.append(
            frame.array(kept[-1:] if frame.often(0.5) else kept, 2)
            if kept and frame.often(0.6)
            else number(frame.names)
        )
    return value(frame.names, [f"({total})", *others], frame.chance.choices((0, 1), (60, 40))[0])
