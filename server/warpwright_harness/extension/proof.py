"""Did kernels of the file itself do the work? Asked of one call, as CUPTI sees it, after everything else.

Fails closed: a candidate in whose call no kernel of its own ran is not what was asked for, whatever it computes, and
neither is one that leaves most of the time to kernels of libraries where the original does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warpwright_harness.extension.batch import profile_call
from warpwright_harness.extension.judge import CandidateError, Case, Judge
from warpwright_harness.extension.side import SideError

LEAST_SHARE = 0.5
"""Of the time of a call's kernels, what the file's own must have, or as much as the original's have."""
_NOT_KERNELS = ("Memcpy", "Memset")


@dataclass(frozen=True)
class Ran:
    """What one call ran on the GPU: microseconds of the file's own kernels, and of others by name."""

    own_us: float
    others: tuple[tuple[str, float], ...]

    @property
    def share(self) -> float:
        """Of the file's own kernels; 0 where none ran."""
        total = self.own_us + sum(took for _, took in self.others)
        return self.own_us / total if total else 0.0


def prove(judge: Judge, case: Case) -> None:
    """Raises CandidateError, with what ran instead. Emits a note where the profiler sees nothing."""
    try:
        original = _ran(judge, case, "baseline")
        candidate = _ran(judge, case, "candidate")
    except SideError as error:
        raise CandidateError(f"which kernels ran could not be seen: {error}") from None
    if not original.own_us and not original.others:
        raise CandidateError("which kernels ran cannot be seen on this machine: the profiler sees none", unsafe=False)
    if not original.own_us:
        return
    if not candidate.own_us:
        raise CandidateError(f"no kernel of its file runs; {_instead(candidate)}", unsafe=False)
    if candidate.share < min(LEAST_SHARE, 0.9 * original.share):
        raise CandidateError(
            f"kernels of its file take {candidate.share:.0%} of the GPU's time, the original's {original.share:.0%}; "
            f"{_instead(candidate)}",
            unsafe=False,
        )


def _instead(ran: Ran) -> str:
    if not ran.others:
        return "nothing runs on the GPU"
    name, took = max(ran.others, key=lambda one: one[1])
    return f"{name[:80]} runs {took:.0f} us"


def _ran(judge: Judge, case: Case, side: str) -> Ran:
    seen = profile_call(judge.side(side), case.parameters, judge.draw(case, "normal"), judge.order, judge.device)
    return sorted_out(seen, judge.request[side]["kernels"])


def sorted_out(seen: Sequence[Any], kernels: Sequence[str]) -> Ran:
    """What was seen as (name, microseconds), by whether the name is one of the file's kernels'.

    >>> ran = sorted_out([("void scale<float>(float*, int)", 3.0), ("Memset (Device)", 1.0), ("gemm", 1.0)], ["scale"])
    >>> ran.own_us, ran.others, ran.share
    (3.0, (('gemm', 1.0),), 0.75)
    """
    own = 0.0
    others = []
    for name, took in seen:
        if str(name).startswith(_NOT_KERNELS):
            continue
        if base_name(str(name)) in kernels:
            own += float(took)
        else:
            others.append((str(name), float(took)))
    return Ran(own, tuple(others))


def base_name(name: str) -> str:
    """A kernel's own name without what it returns, its namespaces, template arguments and parameters.

    >>> base_name("void (anonymous namespace)::ours::sum<float, 4>(float const*, int)"), base_name("scale(float*)")
    ('sum', 'scale')
    """
    plain = name.replace("(anonymous namespace)::", "").partition("(")[0]
    depth, kept = 0, []
    for letter in plain:
        depth += (letter == "<") - (letter == ">")
        if not depth and letter != ">":
            kept.append(letter)
    return re.split(r"::|\s", "".join(kept).strip())[-1]
