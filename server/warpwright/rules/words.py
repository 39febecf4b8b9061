"""What the rules' messages share: numbers, and the launches that they hold for."""

from __future__ import annotations

from pathlib import PurePath

from warpwright.facts.document import dims_text
from warpwright.facts.model import Access, Basis, Dim3, Kernel, Launch
from warpwright.rules.base import Related

MOST_CODE = 40


def number(value: float) -> str:
    """A count for people: whole where it is, else one decimal.

    >>> number(32.0), number(4.583)
    ('32', '4.6')
    """
    return str(round(value)) if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def plural(count: float, noun: str) -> str:
    """
    >>> plural(1, "wavefront"), plural(32, "sector")
    ('1 wavefront', '32 sectors')
    """
    return f"{number(count)} {noun}" + ("" if number(count) == "1" else "s")


def code(text: str) -> str:
    """A piece of source in a headline, cut where it is long.

    >>> code("a[i]"), code("values[(size_t)blockIdx.x * blockDim.x + threadIdx.x]")
    ('`a[i]`', '`values[(size_t)blockIdx.x * blockDim...`')
    """
    words = " ".join(text.split())
    return f"`{words if len(words) <= MOST_CODE else words[: MOST_CODE - 3] + '...'}`"


def per_request(access: Access, unit: str) -> str:
    """What an access costs, against the fewest possible: `32 sectors/request (ideal 4)`."""
    got, ideal = access.transactions or (0.0, 0.0)
    return f"{plural(got, unit)}/request (ideal {number(ideal)})"


def because(launch: Launch | None, basis: Basis, why: str = "") -> str:
    """The line below a headline: the reason, and what the count holds for; with the line end before it."""
    said = f"{why}{holds_for(launch, basis, why)}".removeprefix("; ")
    return f"\n{said[:1].upper()}{said[1:]}." if said else ""


def holds_for(launch: Launch | None, basis: Basis, why: str = "") -> str:
    """What a count holds for: the block, and where `why` does not say so that run-time values were assumed; of one that
    a run gave, that it did."""
    if launch is None:
        return ""
    assumed = basis is Basis.ASSUMED and launch.basis is Basis.EXACT and "run-time" not in why
    ran = f", {basis.value}" if basis in (Basis.EMULATED, Basis.MEASURED) and basis is not launch.basis else ""
    return f"; {block_of(launch)}" + (", run-time values assumed" if assumed else ran)


def block_of(launch: Launch) -> str:
    """Which block shape a number holds for, and where that shape comes from."""
    text = f"block {dims_text(launch.block)}{_swept(launch)}"
    if launch.basis in (Basis.EMULATED, Basis.MEASURED):
        return f"{text} from {launch.source}"
    if launch.span is not None:
        place = f"{PurePath(launch.span.path).name}:{launch.span.line}"
        return f"{text} from {place}" if launch.basis is Basis.EXACT else f"{text} assumed, not known at {place}"
    return f"{text} assumed, no launch found" if launch.source == "default" else f"{text} from {launch.source}"


def _swept(launch: Launch) -> str:
    """` (of 6 swept, 32 to 1024)`."""
    sweep = launch.sweep
    if sweep is None:
        return ""
    if sweep.last is None:
        return f" (swept from {dims_text(sweep.first)})"
    return f" (of {sweep.count} swept, {dims_text(sweep.first)} to {dims_text(sweep.last)})"


def launch_of(kernel: Kernel, index: int) -> Launch | None:
    return kernel.launches[index] if 0 <= index < len(kernel.launches) else None


def launch_related(launch: Launch | None) -> tuple[Related, ...]:
    """The launch that fixes the block's shape, as a place to jump to."""
    if launch is None or launch.span is None:
        return ()
    known = f" with block {dims_text(launch.block)}{_swept(launch)}" if launch.basis is not Basis.ASSUMED else ""
    return (Related(launch.span, f"launched here{known}"),)


def launch_evidence(launch: Launch | None) -> dict[str, object]:
    if launch is None:
        return {}
    return {"block": list(launch.block), "grid": list(launch.grid), "block_source": launch.source}


def place_of(block: Dim3) -> str:
    """A block's index in its grid.

    >>> place_of((3, 0, 0)), place_of((3, 1, 0))
    ('3', '(3, 1, 0)')
    """
    x, y, z = block
    return f"{x:,}" if (y, z) == (0, 0) else f"({dims_text(block)})".replace(" x ", ", ")
