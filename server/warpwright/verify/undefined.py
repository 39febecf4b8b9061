"""What a GPU computes and CUDA does not define: found by the emulator beside a run on a GPU.

Shuffles from lanes that have left, loads through the read-only cache of what the kernel writes, atomics of a block on
what other blocks change too: a GPU gives some value, which may be right today. The emulator tells them, at a few sizes,
where a candidate has more of what may hide them than the original.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.verify.emulation import UnableError
from warpwright.verify.report import PASSED, Status
from warpwright.verify.run import Observed

_MAY_HIDE = re.compile(
    rb"\b(?:__shfl\w*|__(?:ballot|any|all)_sync|__match_\w+|__reduce_\w+|__activemask|__syncwarp|atomic\w+_block"
    rb"|__threadfence_block|thread_scope_block|__ld(?:g|c[agsv]|lu)|__restrict(?:__)?|asm)\b"
)


def may_hide(original: Source, candidate: Source) -> bool:
    """Whether a candidate uses something that CUDA leaves undefined where it is used wrongly, and the original not, or
    not as often.

    >>> plain, cached = (Source("a.cu", text) for text in (b"y = x[i]; // __ldg", b"y = __ldg(x + i);"))
    >>> may_hide(plain, cached), may_hide(cached, plain)
    (True, False)
    """
    had, has = (Counter(_MAY_HIDE.findall(side.code)) for side in (original, candidate))
    return bool(has - had)


def look_for_undefined(seen: Observed, emulated: Callable[[], Observed | Missing]) -> None:
    """Where `seen` lets the candidate pass: unsafe it is where the emulator finds it so. A note says where it cannot be
    emulated."""
    if seen.status not in PASSED:
        return
    try:
        found = emulated()
    except UnableError as error:
        found = Missing("emulator", str(error), "")
    if isinstance(found, Missing):
        seen.notes.append(f"what CUDA leaves undefined was not looked for: {found.reason.rstrip('.')}")
    elif found.status is Status.UNSAFE:
        seen.status, seen.failure = Status.UNSAFE, found.failure
        seen.reason = f"{found.reason.rstrip('.')}, as the emulator finds."
