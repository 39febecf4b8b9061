"""docs/accuracy.md from benchmarks/results/accuracy.json."""

from __future__ import annotations

from typing import Any

from miss_classes import CLASSES

AIMS: dict[str, dict[str, float]] = {
    "global": {
        "precision": 0.95,
        "recall": 0.80,
        "recall_static": 0.93,
        "exact": 0.80,
        "exact_positive": 0.70,
        "answered": 0.75,
    },
    "shared": {"precision": 0.97, "recall": 0.90, "exact": 0.90, "exact_positive": 0.80, "answered": 0.90},
    "branch": {"precision": 0.85, "recall": 0.80},
}
COLUMNS = ("precision", "recall", "recall_static", "exact", "exact_positive", "answered")
SETS = {
    "hecbench_dev": "development: its lines are looked at while the analysis is built",
    "hecbench_look": "looked at as well, but collected later",
    "hecbench_blind": "measured only: nobody looks at its lines",
}
TITLES = {"global": "Global memory", "shared": "Shared memory", "branch": "Branches"}

HEAD = """# How far the facts agree with Nsight Compute

Made by `{command}`; do not edit by hand.

Real programs ran once under Nsight Compute, and what it counted is compared, line by line, with what `warpwright facts`
says from the source text alone: no flags, no build, no profile.

- Programs: {sources}.
- Counters: {counters}; how they were made and what they hold: [labels](../benchmarks/labels/README.md).
- Facts: warpwright {warpwright}, tree-sitter {tree_sitter}, Python {python}; {jobs} programs at once on {processors}
  processors ({machine}). Programs without an answer: {failed}.

| set | programs | use | wall clock for the facts |
|---|---|---|---|
{sets}

A line is *positive* where the GPU moved at least 1.5 times the ideal sectors (global memory) or wavefronts (shared
memory) that its lanes needed; a branch, where at least 10 % of the warps diverged.

| figure | meaning |
|---|---|
| precision, recall | of the verdict "positive"; numbers of unknown or data-dependent basis do not count as said |
| recall_static | recall without the lines that are called data-dependent and given no number |
| exact | share of the answered lines whose sectors (wavefronts) per request are within 10 % of the counted ones |
| exact_positive | the same of the positive lines alone |
| answered | share of the lines for which there is a number |

A program with more than 30 lines of a kind weighs as much as one with 30. Only lines of a program's own files count.
The optimiser moves, merges and removes accesses, so that a line can differ from its text: that is part of what a
profiler shows, and counts as a miss.

## Figures

In bold: short of the aim.
"""

MISSES = """## Misses

A line is missed where its verdict differs (*wrong* below), where there is no number for it, or where the number per
request is more than 10 % off. A program decides each line's class from counters and facts: the class is evidence for a
cause, not proof. Lines are counted unweighted. The example is the line of the class that ran most; *said* and *counted*
are sectors (wavefronts) per request and the fewest possible, or the share of the warps that diverge.

| class | what holds |
|---|---|
{classes}
"""


def page(result: dict[str, Any]) -> str:
    """The page's text."""
    names = [name for name in SETS if name in result["sets"]]
    names += [name for name in result["sets"] if name not in SETS]
    sets = {name.removeprefix("hecbench_"): result["sets"][name] for name in names}
    uses = {name.removeprefix("hecbench_"): use for name, use in SETS.items()}
    versions = {name.replace("-", "_"): text for name, text in result["versions"].items()}
    head = HEAD.format(
        **{name: result[name] for name in ("command", "sources", "counters")},
        **result["hardware"],
        **versions,
        failed="; ".join(line for one in sets.values() for line in one["failed"]) or "none",
        sets="\n".join(
            f"| {name} | {one['programs']} | {uses.get(name, '')} | {one['seconds']:.0f} s |"
            for name, one in sets.items()
        ),
    )
    parts = [head, *(_figures(kind, sets) for kind in TITLES)]
    parts.append(MISSES.format(classes="\n".join(f"| {name} | {text} |" for name, text in CLASSES.items())))
    for name, one in sets.items():
        parts.append(f"### {name}\n")
        parts += [_misses(kind, one["misses"][kind]) for kind in TITLES if one["misses"].get(kind)]
    return "\n".join(parts).rstrip() + "\n"


def _figures(kind: str, sets: dict[str, Any]) -> str:
    aims = AIMS[kind]
    columns = [name for name in COLUMNS if kind != "branch" or name in aims]
    aim_cells = [f">= {aims[name]:.2f}" if name in aims else "" for name in columns]
    rows = [
        f"### {TITLES[kind]}\n",
        f"| set | lines, weighted | {' | '.join(columns)} |",
        "|---|---|" + "---|" * len(columns),
        f"| *aim* | | {' | '.join(aim_cells)} |",
    ]
    for name, one in sets.items():
        got = one["figures"][kind]
        cells = [_cell(got[column], aims.get(column)) for column in columns]
        rows.append(f"| {name} | {got['weighted_lines']:.0f} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _cell(value: float | None, aim: float | None) -> str:
    """A figure; bold where it misses its aim."""
    if value is None:
        return "-"
    return f"**{value:.3f}**" if aim is not None and value < aim else f"{value:.3f}"


def _misses(kind: str, classes: list[dict[str, Any]]) -> str:
    shown = any("example" in row for row in classes)
    rows = [
        f"| {TITLES[kind]}: class | lines | wrong |" + (" example | said | counted |" if shown else ""),
        "|---|---|---|" + ("---|---|---|" if shown else ""),
    ]
    for row in classes:
        cells = f"| {row['class']} | {row['lines']} | {row['wrong']} |"
        if shown:
            example = row["example"]
            cells += f" {example['at']} | {_numbers(example['said'])} | {_numbers(example['counted'])} |"
        rows.append(cells)
    return "\n".join(rows) + "\n"


def _numbers(numbers: list[float] | None) -> str:
    """`8.0 of 4.0` for a count and the fewest possible; `-` where nothing was said."""
    return " of ".join(str(number) for number in numbers) if numbers else "-"
