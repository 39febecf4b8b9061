"""What `warpwright generate` is asked for beside the formula: sizes, an architecture, limits; in options or words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import click
from click.core import ParameterSource

from warpwright.assist.asked_limits import AskedLimits, asked_limits, bytes_said, named_sizes
from warpwright.cli.formula import sizes_named
from warpwright.cli.terminal import CannotRun
from warpwright.formulas.model import Formula
from warpwright.progress import IsCancelled
from warpwright.verify.limits import Limit, Sized, Wanted, limits_of


@dataclass(frozen=True, slots=True)
class Beside:
    """What is asked for beside the formula, in `words` and options."""

    words: str
    arch: str
    shapes: tuple[str, ...]
    limits: AskedLimits

    @property
    def has_limits(self) -> bool:
        return self.limits != AskedLimits()

    @property
    def is_limited(self) -> bool:
        """Whether there are limits that hang on sizes."""
        return self.limits.most_bytes is not None or self.limits.tensor_cores

    def sizes(self, formula: Formula) -> dict[str, int]:
        """The sizes of a formula. Raises CannotRun where it has not one of those that are named, or where a limit on
        memory needs others."""
        said = named_sizes(self.limits.sizes, self.words, formula)
        options = [*(f"{name}={number}" for name, number in said.items()), *self.shapes]
        found = sizes_named(tuple(options), formula.sizes, "--shape")
        missing = [each for each in formula.sizes if each not in found]
        if missing and self.is_limited:
            said_as = " ".join(f"--shape {each}=1024" for each in missing)
            raise CannotRun(
                f"Whether the limits hold depends on {', '.join(missing)}: add {said_as}, with your numbers."
            )
        return found

    def judged(
        self, parts: Sequence[Sized], held: Mapping[str, int], is_cancelled: IsCancelled, sizes: Mapping[str, int]
    ) -> tuple[Limit, ...]:
        """Whether kernels keep to the limits. `held` is what is in memory at some `sizes` when most is."""
        wanted = Wanted(sizes, held, self.limits.most_bytes, self.limits.tensor_cores)
        return tuple(limits_of(parts, wanted, self.arch, is_cancelled))


def beside(description: str, arch: str, shapes: tuple[str, ...], max_memory: str | None) -> tuple[str, Beside]:
    """The description without what it says of limits, and these; an option comes before words."""
    left, limits = asked_limits(description)
    if max_memory is not None:
        most = bytes_said(max_memory)
        if most is None:
            raise CannotRun(f"--max-memory takes bytes, as in 24GB or 512MiB, not {max_memory!r}")
        limits = replace(limits, most_bytes=most)
    is_given = click.get_current_context().get_parameter_source("arch") is ParameterSource.COMMANDLINE
    if limits.arch and is_given and limits.arch != arch:
        raise CannotRun(f"The words ask for {limits.arch}, --arch for {arch}.")
    return left, Beside(left, limits.arch or arch, shapes, limits)
