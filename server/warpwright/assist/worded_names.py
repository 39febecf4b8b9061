"""The names and types of what words name: those that they say, those of a signature, else the usual ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from warpwright.assist.signature import Parameter, plain_name
from warpwright.assist.wording import Said
from warpwright.formulas.model import Formula

DIMS = (("i",), ("r", "c"), ("b", "r", "c"), ("n", "c", "h", "w"))
_WEIGHTS = {
    "scale": ("gamma", "weight", "w", "scale", "g"),
    "shift": ("beta", "bias", "b", "shift"),
    "bias": ("bias", "b"),
    "residual": ("residual", "res", "r"),
}
"""What a signature may call what words do not name; the first is the name without one."""
_RESULTS = ("out", "output", "y", "dst", "result", "res", "c", "o")


_SAY_NOTHING = """
a all an and are as at be by can compute computes cuda each elementwise every fast for from fused gpu in into is it its
kernel like make me my need of on one over please should that the then this to want we where which with write would you
your
"""
_MOST_WORDS = 3


def function_name_of(comment: str, formula: Formula) -> str:
    """A function's name from the first words of a comment that say something, without the formula's own names; ""
    where there are fewer than two.

    >>> from warpwright.formulas.resolve import formula_of
    >>> mean = formula_of("y[r] = mean[c] x[r, c]")
    >>> function_name_of("The running mean of each row of x[r][c], in fp32", mean), function_name_of("y of x", mean)
    ('running_mean_row', '')
    """
    unwanted = {*_SAY_NOTHING.split(), *(each.lower() for each in (*formula.tensors, *formula.sizes, *formula.scalars))}
    words = [each.lower() for each in re.findall(r"(?<![\w.])[A-Za-z][a-z]+\b(?!\s*[\[(])", comment)]
    telling = [each for each in dict.fromkeys(words) if each not in unwanted]
    return "_".join(telling[:_MOST_WORDS]) if len(telling) > 1 else ""


class UnfitError(Exception):
    """What is said makes no formula."""


class Names:
    """The names of arrays: those that words say, those of a signature, else the usual ones."""

    def __init__(self, said: Said, signature: Sequence[Parameter]) -> None:
        self.said = said
        self.signature = {each.name: each for each in signature if each.pointer}
        self.numbers = {each.name: each for each in signature if not each.pointer and each.type[:1] not in ("i", "u")}
        self.taken = {each.name for each in signature} | {each.name for each in said.operands}
        if said.result is not None:
            self.taken.add(said.result.name)
        self.read: list[str] = []
        self.ranks: dict[str, int] = {}
        self.shapes: dict[str, tuple[str, ...]] = {}
        outputs = [name for name, each in self.signature.items() if not each.constant]
        if len(outputs) == len(self.signature) > 1:
            outputs = [name for name in outputs if plain_name(name) in _RESULTS][:1] or outputs[-1:]
        self.outputs = outputs
        self.unnamed = [name for name in self.signature if name not in outputs or said.in_place]

    def operand(self, said: str, default: str, number: int) -> str:
        if said:
            if self.signature and said not in self.signature:
                raise UnfitError
            found = said
        elif self.signature:
            weights = {name for names in _WEIGHTS.values() for name in names} if default == "x" else set()
            order = [n for n in self.unnamed if n not in weights] or self.unnamed
            free = [each for each in order if each not in self.read]
            if not free:
                raise UnfitError
            found = free[0]
        else:
            found = default if default not in self.taken else self.free(default)
        self.read.append(found)
        self.taken.add(found)
        return found

    def weight(self, said: str, role: str) -> str:
        among = [said] if said else list(_WEIGHTS[role])
        if self.signature:
            fit = [n for n in self.signature if plain_name(n) in map(plain_name, among) and n not in self.read]
            if len(fit) != 1 and not said:
                fit = [n for n in fit if plain_name(n) == among[0]]
            if len(fit) != 1:
                raise UnfitError
            found = fit[0]
        else:
            found = said or next((n for n in among if n not in self.taken), "") or self.free(among[0])
        if found in self.read:
            raise UnfitError
        self.read.append(found)
        self.taken.add(found)
        return found

    def number(self, said: str) -> str:
        if self.numbers and said not in self.numbers:
            raise UnfitError
        return said

    def eps(self, said: str) -> str:
        if said and said[0].isdigit():
            return said
        if self.numbers:
            return next((each for each in self.numbers if each in (said or "eps", "epsilon")), "1e-5")
        return said or ("1e-5" if self.signature else "eps")

    def free(self, name: str) -> str:
        found = name
        while found in self.taken:
            found += "_"
        self.taken.add(found)
        return found

    def dims(self, rank: int, shape: tuple[str, ...]) -> tuple[str, ...]:
        own = tuple(each.lower() for each in shape)
        if len({*own}) == rank and all(len(each) == 1 and each.isalpha() for each in own) and not {*own} & self.taken:
            return own
        if len(shape) == rank and any(each.isdigit() for each in shape):
            self.shapes["x"] = shape
        usual = DIMS[rank - 1]
        return tuple(self.free(each) if each in self.taken else each for each in usual)

    def result(self, default: str, arrays: Iterable[str], is_new: bool) -> str:
        """The array that is written, primed where `arrays` are read of which it is one; `is_new`: the operation itself
        says that it is the last of them."""
        primed = "'" if self.said.in_place else ""
        if self.said.in_place:
            name = self.said.result.name if self.said.result else self.read[0]
            if name not in arrays or is_new:
                raise UnfitError
            return f"{name}{primed}"
        if is_new:
            name = list(arrays)[-1]
            if self.said.result is not None and self.said.result.name != name:
                raise UnfitError
            return name
        if self.said.result is not None:
            name = self.said.result.name
        elif self.signature:
            free = [each for each in self.outputs if each not in self.read]
            if len(free) != 1:
                raise UnfitError
            name = free[0]
        else:
            name = default if default not in {*self.read} else self.free(default)
        if name in arrays:
            return f"{name}'"
        return name

    def check(self) -> None:
        if self.shapes and len(self.said.operands) != 1:
            raise UnfitError

    def declarations(self, more: str) -> str:
        """Types of inputs, and sizes that are numbers."""
        found = []
        for name in self.read:
            kind = self.signature[name].type if name in self.signature else self.said.type
            shape = ""
            if self.shapes and name == self.read[0]:
                dims = DIMS[len(self.shapes["x"]) - 1]
                sizes = [
                    each if each.isdigit() else dim.upper() for each, dim in zip(self.shapes["x"], dims, strict=True)
                ]
                shape = f"[{', '.join(sizes)}]"
            if (kind and kind != "f32") or shape:
                found.append(f"{name}: {kind or 'f32'}{shape}")
        return "".join(f"{each}, " for each in [*found, *([more] if more else [])])
