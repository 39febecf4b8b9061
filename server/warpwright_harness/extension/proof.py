"""Did kernels of the file itself do the work? Asked of one call, as CUPTI sees it, after everything else.

Fails closed: a candidate in whose call no kernel of its own ran is not what was asked for, whatever it computes, and
neither is one that leaves most of the time to kernels of libraries where the original does not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from warpwright_harness.extension.batch import call_once
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
        both = (partial(_ran, judge, case, side) for side in ("baseline", "candidate"))
        original, candidate = judge.meanwhile(case, "", *both)
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
    values = judge.draw(case, "normal")
    answer = call_once(
        judge.side(side), case.parameters, values, judge.order, ask="profile", place=judge.device, guarded=True
    )
    try:
        seen = [(str(name), float(took)) for name, took in answer["ran"]]
    except (KeyError, TypeError, ValueError):
        raise SideError("its process answered what cannot be") from None
    return sorted_out(seen, [demangled(symbol) for symbol in judge.request[side]["kernels"]])


def sorted_out(seen: Sequence[tuple[str, float]], kernels: Sequence[str]) -> Ran:
    """What was seen as (name, microseconds), by whether the name is one of the file's kernels', demangled.

    >>> ran = sorted_out([("scale(float*)", 3.0), ("Memset (Device)", 1.0), ("gemm", 1.0)], ["scale(float*)"])
    >>> ran.own_us, ran.others, ran.share
    (3.0, (('gemm', 1.0),), 0.75)
    """
    own = 0.0
    others = []
    for name, took in seen:
        if name.startswith(_NOT_KERNELS):
            continue
        if name in kernels:
            own += took
        else:
            others.append((name, took))
    return Ran(own, tuple(others))


def demangled(symbol: str) -> str:
    """A kernel's name as profilers show it; the symbol itself where it is none of C++.

    By the C++ runtime that torch brings, which is what names the kernels of a profile too.

    >>> demangled("_Z5scalePfi"), demangled("plain")
    ('scale(float*, int)', 'plain')
    """
    function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    function.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = function(symbol.encode(), None, None, ctypes.byref(status))
    if status.value or not found:
        return symbol
    name = ctypes.string_at(found).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return name
