"""The rewrites that there are, found by folder, and how they are proposed.

A rewrite is a module of this folder; `base`, `registry` and modules whose name starts with an underscore are not.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from dataclasses import replace
from functools import cache

from warpwright import rewrites
from warpwright.facts.aliasing import Overlap, changes, known_overlaps
from warpwright.facts.model import Kernel
from warpwright.rewrites._beside import beside
from warpwright.rewrites._code import NoMatchError
from warpwright.rewrites._comments import with_comments
from warpwright.rewrites.base import Declined, Reliance, Rewrite, RewriteKind
from warpwright.syntax.edits import without_repeats
from warpwright.syntax.source import Span

log = logging.getLogger(__name__)

_NOT_REWRITES = frozenset({"base", "registry"})


@cache
def all_rewrites() -> tuple[RewriteKind, ...]:
    """Every rewrite, sorted by name. Imported once, on first use.

    >>> [kind.name for kind in all_rewrites() if "launch" in kind.name]
    ['add-launch-bounds', 'batch-launches', 'check-launch']
    """
    return tuple(sorted(map(_loaded, _modules()), key=lambda kind: kind.name))


def find_rewrite(name: str) -> RewriteKind | None:
    """The rewrite of that name, or None. The others are not imported for it."""
    module = name.replace("-", "_")
    return _loaded(module) if module in _modules() and "_" not in name else None


def goal_of(name: str) -> str:
    """What a rewrite is for first of all: "speed", "memory" or "fix".

    >>> goal_of("pad-shared-array")
    'speed'
    """
    kind = find_rewrite(name)
    return kind.goals[0] if kind is not None else "fix"


def applicable(kernel: Kernel, goal: str) -> list[Rewrite]:
    """What can be done to a kernel for a goal ("speed", "memory" or "fix"): each rewrite at its best place.

    Raises ValueError for any other goal.
    """
    return proposals(kernel, goal)[0]


def proposals(kernel: Kernel, goal: str) -> tuple[list[Rewrite], list[Declined]]:
    """The rewrites for a goal that apply, each at its best place, and those that do not, with their reasons.

    Raises ValueError for a goal that there is not.
    """
    if goal not in ("speed", "memory", "fix"):
        raise ValueError(f"no such goal: {goal}; use speed, memory or fix")
    made = [_proposal(kind, kernel, None) for kind in all_rewrites() if goal in kind.goals]
    return [p for p in made if isinstance(p, Rewrite)], [p for p in made if isinstance(p, Declined)]


def propose(name: str, kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    """One rewrite at one place (None: the best place in the kernel), or the reason against it."""
    kind = find_rewrite(name)
    if kind is None:
        return Declined(name, f"There is no rewrite of the name {name}.")
    return _proposal(kind, kernel, at)


@cache
def _modules() -> frozenset[str]:
    found = (info.name for info in pkgutil.iter_modules(rewrites.__path__))
    return frozenset(name for name in found if not name.startswith("_") and name not in _NOT_REWRITES)


@cache
def _loaded(name: str) -> RewriteKind:
    module = importlib.import_module(f"{rewrites.__name__}.{name}")
    return RewriteKind(
        name.replace("_", "-"), module.title, module.__doc__ or "", module.goals, module.relies_on, module.propose
    )


def in_place(kind: RewriteKind, kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    """The rewrite as if every launch of the kernel were read, with each comment kept. One that needs arrays apart is
    declined where a launch hands over, or may, one that is written under two names."""
    try:
        made = kind.propose(kernel, at)
    except NoMatchError as mismatch:
        return Declined(kind.name, str(mismatch))
    if Reliance.APART in kind.relies_on and isinstance(made, Rewrite) and (found := _written_overlap(kernel)):
        alias = "alias" if found.is_certain else "may alias"
        reason = f"At {found.place} {found.one} and {found.other} {alias}, and the new code needs them not to."
        return Declined(kind.name, reason)
    return with_comments(replace(made, edits=tuple(without_repeats(made.edits)))) if isinstance(made, Rewrite) else made


def _written_overlap(kernel: Kernel) -> Overlap | None:
    """The first two pointers that lead to the same elements, or may, where the kernel may write these."""
    readable = {p.name for p in kernel.parameters if p.is_const}
    written = {access.array for access in kernel.accesses if changes(access)}
    all_seen = kernel.incomplete is None and written <= {p.name for p in kernel.parameters}
    for found in known_overlaps(kernel):
        pair = {found.one, found.other}
        if not pair <= readable and (pair & written or not all_seen):
            return found
    return None


def _proposal(kind: RewriteKind, kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    try:
        made = in_place(kind, kernel, at)
        if isinstance(made, Rewrite):
            made = beside(kind, kernel, made)
        if isinstance(made, Rewrite):
            made.apply()
        return made
    except Exception:
        log.exception("rewrite %s failed on kernel %s of %s", kind.name, kernel.name, kernel.source.path)
        return Declined(kind.name, f"The rewrite {kind.name} failed on this kernel; the log has the details.")
