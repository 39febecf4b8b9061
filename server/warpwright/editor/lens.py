"""What stands above a kernel in an editor: what it takes, what its last run counted or its text shows, and commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpwright.editor.actions import OPTIMIZE, PROFILE, SHOW_RESULTS, SHOW_SASS, VERIFY
from warpwright.editor.analysis import Analysis
from warpwright.editor.resources_view import resource_words
from warpwright.facts.model import Kernel, Space
from warpwright.rules.words import number
from warpwright.syntax.source import Span

if TYPE_CHECKING:
    from warpwright.editor.profile.view import Counts
    from warpwright.facts.profile import Profile

_NOTABLE = 1.05
_DIVERGENT = 0.2
"""Share of the branches from which it is said how many diverge."""


@dataclass(frozen=True, slots=True)
class Lens:
    """A piece of text above `span` that runs a command on a kernel when it is clicked; "" is no command."""

    span: Span
    title: str
    command: str
    kernel: str


def lenses(analysis: Analysis) -> Iterator[Lens]:
    """Of each kernel that the document defines: what can be done with it, and behind it what is known of it.

    They come from left to right. The commands are first and stay where they are when more becomes known, so that none
    moves away under the mouse.
    """
    profiles = {profile.kernel: profile for profile in reversed(analysis.profiles)}
    findings = Counter(finding.kernel for finding in analysis.findings)
    for kernel in analysis.kernels_here():
        span, name = kernel.name_span, kernel.name
        profile = profiles.get(name)
        count = findings[name]
        yield Lens(span, "Optimize", OPTIMIZE, name)
        yield Lens(span, "Verify", VERIFY, name)
        yield Lens(span, "Profile (emulated)", PROFILE, name)
        yield Lens(span, "Show SASS", SHOW_SASS, name)
        seen = f"{count} finding{'s' if count != 1 else ''}" if count else ""
        if profile is not None:
            yield Lens(span, profile_words(profile), SHOW_RESULTS, name)
        else:
            seen = ", ".join(filter(None, (seen, text_words(kernel))))
        for said in filter(None, (seen, resource_words(analysis, kernel))):
            yield Lens(span, said, "", name)


def profile_words(profile: Profile) -> str:
    """`wavefronts 16.2x ideal, 2 faults (emulated)`; the instructions where nothing is wasted. It stands
    among others on one line, and so has of sectors and wavefronts what is wasted most."""
    from warpwright.editor.profile.view import counts_of, faults_words
    from warpwright.facts.profile import InstructionSet

    counts = counts_of(profile.lines)
    kind = next((line.instruction_set for line in profile.lines), InstructionSet.PTX)
    parts = list(_wasted(counts)) or [f"{counts.instructions:,} {kind.value.upper()} instructions"]
    if faults := faults_words(profile):
        parts.append(faults)
    return f"{', '.join(parts)} ({profile.basis.value})"


def _wasted(counts: Counts) -> Iterator[str]:
    from warpwright.editor.profile.view import excess

    pairs = (("sectors", counts.global_sectors), ("wavefronts", counts.shared_wavefronts))
    ratio, name = max((excess(pair) or 0.0, name) for name, pair in pairs)
    if ratio >= _NOTABLE:
        yield f"{name} {ratio:.1f}x ideal"
    if counts.branches and counts.divergent_branches >= _DIVERGENT * counts.branches:
        yield f"{counts.divergent_branches / counts.branches:.0%} of branches divergent"


def text_words(kernel: Kernel) -> str:
    """The worst access as the text shows it; "" where none is known to move more than it must."""
    worst = max(kernel.accesses, key=lambda access: access.excess or 0.0, default=None)
    if worst is None or (worst.excess or 0.0) < _NOTABLE:
        return ""
    unit = "wavefronts" if worst.space is Space.SHARED else "sectors"
    return f"up to {number(round(worst.excess or 0.0, 1))}x excess {unit} (static)"
