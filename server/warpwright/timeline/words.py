"""Times, places and deeds in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpwright.timeline.lines import LineCost
    from warpwright.timeline.model import Place


def milliseconds(time: float) -> str:
    """
    >>> milliseconds(1_234_567), milliseconds(2_500), milliseconds(3_200_000_000)
    ('1.23 ms', '2.5 us', '3.20 s')
    """
    if time >= 1e9:
        return f"{time / 1e9:.2f} s"
    return f"{time / 1e6:.2f} ms" if time >= 1e5 else f"{time / 1e3:.1f} us"


def shown(place: Place) -> str:
    """A place with its file as short as it can be said from here."""
    try:
        file = Path(place.file).relative_to(Path.cwd())
    except (ValueError, OSError):
        file = Path(place.file)
    return f"{file}:{place.line}" + ("" if place.exact else f" ({place.function})")


def does(cost: LineCost) -> str:
    """What a line made the GPU and the host do, in words."""
    said = [f"{cost.launches} launches"] if cost.launches else []
    said += [f"{count} x {what}" for what, count in sorted(cost.waits.items(), key=lambda item: -item[1])]
    if cost.pageable:
        said.append(f"{cost.pageable} pageable copies, {cost.pageable_bytes / 1e6:.1f} MB")
    return ", ".join(said)
