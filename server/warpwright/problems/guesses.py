"""What a problem takes for granted because the text does not say it, and which faults of a run may come of that.

A fault of a kernel that its user runs every day is evidence against the set-up first: it is the kernel's own only where
nothing that it may depend on was guessed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from warpwright.facts.model import Basis, Divergence, Kernel
from warpwright.facts.profile import Fault, FaultKind
from warpwright.facts.types import builtin_type
from warpwright.syntax.nodes import descendants


class About(StrEnum):
    """What was guessed."""

    LAUNCH = "launch"
    GRID = "grid"
    SHARED = "shared"
    EXTENT = "extent"
    ROLE = "role"
    SCALAR = "scalar"
    VALUES = "values"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class Guess:
    """`text` says what was taken, `directive` what to write above the kernel where it is wrong; "" where none does.
    `name` is the array or the argument that it is about, `lines` are the accesses that depend on it, None for all.
    """

    about: About
    text: str
    directive: str = ""
    name: str = ""
    lines: frozenset[tuple[str, int]] | None = None

    def __str__(self) -> str:
        return f"{self.text} (`// warpwright: {self.directive}` says it)" if self.directive else self.text


_NAME = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")
_ADDRESSES = frozenset({FaultKind.OUT_OF_BOUNDS, FaultKind.MISALIGNED, FaultKind.GLOBAL_RACE})
_CONDITIONS = frozenset({
    FaultKind.ASSERTION, FaultKind.TRAP, FaultKind.DEADLOCK, FaultKind.BARRIER_NOT_REACHED, FaultKind.STEP_LIMIT,
    FaultKind.OUTSIDE_MASK,
})  # fmt: skip
_EVERY_LAUNCH = _ADDRESSES | _CONDITIONS | {FaultKind.UNINITIALISED_READ}
_DEPEND: Mapping[About, frozenset[FaultKind]] = {
    About.LAUNCH: _EVERY_LAUNCH,
    About.GRID: _ADDRESSES | _CONDITIONS,
    About.SHARED: frozenset({FaultKind.OUT_OF_BOUNDS}),
    About.EXTENT: frozenset({FaultKind.OUT_OF_BOUNDS}),
    About.ROLE: frozenset({FaultKind.UNINITIALISED_READ}),
    About.SCALAR: _EVERY_LAUNCH,
    About.VALUES: _ADDRESSES | _CONDITIONS,
    About.SIZE: _EVERY_LAUNCH,
}
"""A race in shared memory, or of lanes of a warp, is one whatever the launch, the sizes and the values are."""


def behind(guesses: Collection[Guess], fault: Fault, arrays: Collection[str]) -> tuple[Guess, ...]:
    """The guesses that a fault may come of; none where it is the kernel's own. `arrays` are those that the kernel is
    handed, by their names. A fault without a line may be at any."""
    return tuple(guess for guess in guesses if _may_come_of(guess, fault, arrays))


def _may_come_of(guess: Guess, fault: Fault, arrays: Collection[str]) -> bool:
    if fault.kind not in _DEPEND[guess.about]:
        return False
    match guess.about:
        case About.EXTENT:  # an access outside of one array may lie in another, or in none
            return fault.array is None or fault.array in arrays
        case About.SHARED:
            return fault.array not in arrays
        case About.ROLE:
            return fault.array == guess.name
        case About.VALUES if fault.kind in _ADDRESSES:
            return guess.lines is None or not fault.line or (fault.file, fault.line) in guess.lines
    return True


def made_up_values(kernel: Kernel, variables: Collection[str] = ()) -> tuple[Guess, ...]:
    """That the values of arrays are made up, where addresses or conditions depend on them. `variables` are those of
    file scope that host code is to fill before the launch."""
    lines = frozenset(
        (access.span.path, access.span.line)
        for access in kernel.accesses
        if access.basis in (Basis.DATA_DEPENDENT, Basis.UNKNOWN)
    )
    by_data = _arrays_decide(kernel, variables)
    if not lines and not by_data and kernel.incomplete is None:
        return ()
    text = "the values of arrays, on which it depends, were made up"
    everywhere = kernel.incomplete is not None
    return (Guess(About.VALUES, text, "array NAME[EXTENT] in index(LIMIT)", lines=None if everywhere else lines),)


def _arrays_decide(kernel: Kernel, variables: Collection[str]) -> bool:
    """Whether what the kernel is handed may decide a condition: one that data decide, or what its names are set to,
    names a parameter that is no number or one of the variables, or calls a function of the text.

    Example: not `while (atomicAdd(&arrived, 0) < gridDim.x)`, where `arrived` is a variable of the device.
    """
    conditions = [branch for branch in kernel.branches if branch.divergence is Divergence.DATA_DEPENDENT]
    if not conditions or kernel.node is None:
        return bool(conditions)
    given = {parameter.name for parameter in kernel.parameters if builtin_type(parameter.type) is None}
    given |= {*variables, *(callee.name for callee in kernel.callees)}
    meanings = {name: [body] for name, body in kernel.macros.items()}
    for node in descendants(kernel.node, "init_declarator", "assignment_expression"):
        left, right = node.children[0], node.children[-1]
        for name in _names(kernel.source.node_code(left))[:1]:
            meanings.setdefault(name, []).append(kernel.source.node_code(right))
    waiting = [branch.condition for branch in conditions]
    seen: set[str] = set()
    while waiting:
        names = set(_names(waiting.pop())) - seen
        seen |= names
        waiting += (meaning for name in names for meaning in meanings.get(name, ()))
    return not given.isdisjoint(seen)


def _names(text: str) -> list[str]:
    return _NAME.findall(text)


def other_sizes(shape: Mapping[str, int], own: Mapping[str, int] | None) -> tuple[Guess, ...]:
    """That a run was at other sizes than the program's, or at some where the text does not say the program's."""
    if not shape or shape == own:
        return ()
    tried = ", ".join(f"{name} = {size:,}" for name, size in shape.items())
    if own is None:
        sizes = " ".join(f"{name}={size}" for name, size in shape.items())
        return (Guess(About.SIZE, f"the text does not say the program's sizes; {tried} was tried", f"shape {sizes}"),)
    said = ", ".join(f"{name} = {size:,}" for name, size in own.items())
    return (Guess(About.SIZE, f"{tried} was tried; the program has {said}"),)


NOT_RECONSTRUCTED = "could not reconstruct this launch"


def not_reconstructed(said: str, guessed: Iterable[object]) -> str:
    """What happened in a launch that may not be the user's, and what was guessed of it.

    >>> not_reconstructed("it reads past x", [Guess(About.EXTENT, "x has n elements")])
    'could not reconstruct this launch: it reads past x; guessed: x has n elements'
    """
    return f"{NOT_RECONSTRUCTED}: {said}; guessed: {'; '.join(map(str, guessed))}"
