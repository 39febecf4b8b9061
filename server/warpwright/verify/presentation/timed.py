"""How fast both are: each shape with its interval, warm and cold, the bound, and the peers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean, median

from warpwright.verify.presentation.blocks import (
    Cell,
    Json,
    Section,
    Table,
    Tone,
    cells,
    microseconds,
    shape_names,
    shape_text,
)

_WIDTH = 19
_PEERS = {"eager_us": "eager torch", "compile_us": "torch.compile"}
_LEAST_EFFECT = 1.02
"""For reports that do not say beyond which ratio a difference counts."""


def timed_section(report: Json) -> Section | None:
    """Both sides at each shape; nothing where a kernel was verified by itself."""
    speed = report["speed"]
    if not speed or report.get("goal") == "reference":
        return None
    blocks: list[Cell | Table] = [_ratios(speed)]
    if line := over_all([each["speedup"] for each in speed]):
        blocks.append(Cell(line))
    if bound := [each for each in speed if each.get("launch_bound")]:
        floor = microseconds(max(each["floor_us"] for each in bound))
        at = ", ".join(shape_text(each["shape"]) for each in bound)
        blocks.append(Cell(f"Launch-bound, below 20 times the {floor} of an empty launch: {at}.", "warn"))
    if any(each.get("host") for each in speed):
        return Section("Timed by the host's clock: the loop with all that it launches", tuple(blocks))
    return Section("Timed, with the second-level cache cold", tuple(blocks))


def limits_section(report: Json) -> Section | None:
    """The candidate's times beside what the hardware needs and what torch takes."""
    speed, alone = report["speed"], report.get("goal") == "reference"
    if not speed or any(each.get("host") for each in speed):
        return None
    title = f"The {'kernel' if alone else 'candidate'}, the hardware and torch"
    return Section(title, (_limits(speed, alone=alone), *_words(speed)))


def over_all(ratios: Sequence[float]) -> str:
    """Median, geometric mean and count of several ratios; "" of one.

    >>> over_all([2.0, 0.5, 4.0])
    'Over all 3: median 2.00x, geometric mean 1.59x.'
    """
    if len(ratios) < 2:
        return ""
    return f"Over all {len(ratios)}: median {median(ratios):.2f}x, geometric mean {geometric_mean(ratios):.2f}x."


def _ratios(speed: Sequence[Json]) -> Table:
    scale = _scale(speed)
    name = shape_names([each["shape"] for each in speed])
    head = (name, "original", "candidate", "speed-up", "95% CI", _scale_words(scale))
    return Table(head, tuple(_ratio_row(each, scale) for each in speed), frozenset({0, 5}))


def _ratio_row(each: Json, scale: tuple[float, float]) -> tuple[Cell, ...]:
    low, high = each["ci95"]
    effect = each.get("least_effect", _LEAST_EFFECT)
    tone: Tone = "good" if low > effect else "bad" if high < 1 / effect else ""
    return (
        Cell(shape_text(each["shape"])),
        Cell(microseconds(each["baseline_us"])),
        Cell(microseconds(each["candidate_us"])),
        Cell(f"{each['speedup']:.2f}x", tone),
        Cell(f"{low:.2f}-{high:.2f}"),
        Cell(whisker(each["speedup"], low, high, scale), tone, drawn=True),
    )


def _scale(speed: Sequence[Json]) -> tuple[float, float]:
    """From where to where the ratios are drawn: all intervals and 1, on a scale of powers."""
    low = min(1.0, *(each["ci95"][0] for each in speed))
    high = max(1.0, *(each["ci95"][1] for each in speed))
    return max(low / 1.05, 1e-3), high * 1.05


def _scale_words(scale: tuple[float, float]) -> str:
    left, right = f"{scale[0]:.2f}x", f"{scale[1]:.2f}x"
    return left + right.rjust(_WIDTH - len(left))


def whisker(value: float, low: float, high: float, scale: tuple[float, float]) -> str:
    """A ratio with its interval among `scale`, by powers; `|` stands at 1.

    >>> whisker(2.0, 1.5, 2.4, (0.5, 4.0))
    '      |   --o--    '
    """

    def at(ratio: float) -> int:
        share = math.log(max(ratio, 1e-6) / scale[0]) / math.log(scale[1] / scale[0])
        return min(_WIDTH - 1, max(0, round(share * (_WIDTH - 1))))

    drawn = [" "] * _WIDTH
    drawn[at(1.0)] = "|"
    drawn[at(low) : at(high) + 1] = "-" * (at(high) + 1 - at(low))
    drawn[at(value)] = "o"
    return "".join(drawn)


def _limits(speed: Sequence[Json], *, alone: bool) -> Table:
    """A column that no shape has is left out, and of a kernel that is verified by itself its ratio to itself."""
    columns: list[tuple[str, list[str]]] = [
        (shape_names([each["shape"] for each in speed]), [shape_text(each["shape"]) for each in speed]),
        ("cold", [microseconds(each["candidate_us"]) for each in speed]),
        ("warm", [microseconds((each.get("warm") or {}).get("candidate_us")) for each in speed]),
        ("warm speed-up", ["-" if alone else _times((each.get("warm") or {}).get("speedup")) for each in speed]),
        ("bound", [microseconds((each.get("bound") or {}).get("us")) for each in speed]),
        ("reached", [_share(each.get("fraction_of_bound")) for each in speed]),
        *((name, [microseconds(_peers(each).get(key)) for each in speed]) for key, name in _PEERS.items()),
        ("over the best other", [f"{_best_other(each)[1]:.2f}x ({_best_other(each)[0]})" for each in speed]),
    ]
    kept = [(name, texts) for name, texts in columns if any(text != "-" for text in texts)]
    rows = tuple(cells(*row) for row in zip(*(texts for _, texts in kept), strict=True))
    return Table(tuple(name for name, _ in kept), rows, frozenset({0}))


def _peers(each: Json) -> Mapping[str, float | None]:
    return each.get("peers") or {}


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _best_other(each: Json) -> tuple[str, float]:
    """Who is fastest beside the candidate, and how many times as fast as that the candidate is."""
    if best := each.get("best_baseline"):
        return best["name"], best["speedup"]
    times = {"the original": each["baseline_us"]}
    times |= {name: took for key, name in _PEERS.items() if (took := _peers(each).get(key)) is not None}
    name = min(times, key=lambda name: times[name])
    return name, times[name] / each["candidate_us"]


def _words(speed: Sequence[Json]) -> Iterator[Cell]:
    if bounded := next((each for each in speed if each.get("bound")), None):
        yield Cell(f"The bound at {shape_text(bounded['shape'])}: {bounded['bound']['what']}.", "dim")
    for peer in _PEERS.values():
        slower = [each for each in speed if _best_other(each)[0] == peer and _best_other(each)[1] < 1]
        if at := ", ".join(shape_text(each["shape"]) for each in slower):
            yield Cell(f"Faster is {peer} at {at}.", "warn")
