"""Whether kernels keep to the limits that words ask for beside the formula."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.assist.asked_limits import AskedLimits, named_sizes
from warpwright.editor.job_request import JobError
from warpwright.formulas.model import Formula
from warpwright.progress import IsCancelled
from warpwright.verify.formulas import Written
from warpwright.verify.limits import Limit, Wanted, held_by, limits_of


@dataclass(frozen=True, slots=True)
class Limited:
    """What `words` ask for, and the architecture for which it is asked."""

    words: str
    asked: AskedLimits
    arch: str

    def sizes(self, formula: Formula) -> dict[str, int]:
        """Those that the words say, by the formula's names."""
        found = named_sizes(self.asked.sizes, self.words, formula)
        return {name: size for name, size in found.items() if name in formula.sizes}

    def judged(self, made: Written, is_cancelled: IsCancelled) -> list[Limit]:
        """Each limit, with whether it holds. Raises JobError where it hangs on a size that the words do not say."""
        if self.asked.most_bytes is None and not self.asked.tensor_cores:
            return []
        sizes = self.sizes(made.formula)
        if missing := [each for each in made.formula.sizes if each not in sizes]:
            raise JobError(
                f"Whether the limits hold depends on {', '.join(missing)}: say them, as in {missing[0]} = 1024."
            )
        wanted = Wanted(sizes, held_by(made, sizes), self.asked.most_bytes, self.asked.tensor_cores)
        return limits_of([(made, sizes)], wanted, self.arch, is_cancelled)
