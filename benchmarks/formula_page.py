"""docs/formulas-speed.md from the results of formula_speed.py, formula_products.py, kernelbench.py and
formula_batch.py, and the figures that are printed with a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

NEAR = 1.03
"""A time that is no more than so much longer than torch.compile's counts as one like it."""

HEAD = """# How fast written formulas are

Made by `python tools/generate.py` from `formula_*.json` and `kernelbench_*.json` in `benchmarks/results`; do not edit
by hand. Each part says the version that it measured.

Times are medians of CUDA events on an {device} (driver {driver}, {torch}, nvcc {nvcc}). Before each
call the L2 cache is emptied by reading: lines left dirty would be written back at the kernel's expense. `written` is
what `warpwright formula` prints, one launch function for all sizes; `for the size` the same where the size was known
when it was written. Results were compared with torch in double precision, at this size and at up to nine small and odd
ones.
"""

MEMORY = """
## What memory bounds

Version {version}, `{command}`. The bound is a copy of the same bytes, timed alike. torch.compile's figure is the best
of several processes, as it varies between them; "-" where it was not timed.

| figure | value |
|---|---|
| right at every size tried | {right} of {rows} |
| a thread for each element right at every size tried | {plain} of {rows} |
| share of the bound, median | {of_copy:.0%} |
| over torch.compile, geometric mean | {over_compile} |
| within 3 % of torch.compile or faster | {near} of {compared} |
| with the size known: share of the bound, over torch.compile | {sized_of_copy:.0%}, {sized_over} |
| sizes at which a thread for each element is faster by 5 % and 0.5 us | {slower} of {sizes} |

| formula, type, size | written, us | for the size | torch eager | torch.compile | copy | of the copy | over compile |
|---|--:|--:|--:|--:|--:|--:|--:|
"""

PRODUCTS = """
## Products and attention

Version {version}, `{command}`, beside cuBLAS (f32 without TF32) and torch's flash backend, or what takes such masks
there. A size is rows x columns x depth, with the batch before it; of attention heads x rows x keys. `written` without
a schedule in its name is what the rules choose.

| kernel | size | us | TFLOP/s | library, us | library over written |
|---|---|--:|--:|--:|--:|
"""

KERNELBENCH = """
## KernelBench

Version {version}, `{command}`, f32 without TF32, at the tasks' own sizes; what stays a call of a library is torch's
own. fast_1 is the share of all tasks that are right and no slower.

| level | tasks | through | right | formulas alone | with a formula | fast_1, eager | fast_1, torch.compile |
|---|--:|--:|--:|--:|--:|--:|--:|
"""


@dataclass(frozen=True)
class Figures:
    """Of one kind of written code over all cases that are right."""

    right: int
    of_copy: float
    over_compile: float
    near: int
    compared: int


def wrong(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Where a case is wrong, a thread for each element left out."""
    return [each for each in row["wrong"] if each["schedule"] != "plain"]


def figures(rows: Sequence[Mapping[str, Any]], label: str = "general") -> Figures:
    """`label` is "general", or "default" where the size was known."""
    done = [each for each in rows if "us" in each["ours"].get(label, {}) and not wrong(each)]
    shares = [each["copy_us"] / each["ours"][label]["us"] for each in done]
    against = [each["compile_us"] / each["ours"][label]["us"] for each in done if each.get("compile_us")]
    return Figures(
        len(done),
        median(shares) if shares else 0.0,
        geometric_mean(against) if against else 0.0,
        sum(each > 1 / NEAR for each in against),
        len(against),
    )


def slower_than_plain(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The sizes at which what is written is slower than a thread for each element by more than noise."""
    return [
        f"{row['case']} at {', '.join(f'{name} = {size}' for name, size in each['sizes'].items())}: "
        f"{each['general']:.1f} us, plain {each['plain']:.1f}"
        for row in rows
        for each in row.get("sizes", ())
        if each["general"] > 1.05 * each["plain"] + 0.5
    ]


def page(
    speed: Mapping[str, Any],
    products: Mapping[str, Any],
    kernelbench: Sequence[Mapping[str, Any]],
    batches: Mapping[str, Mapping[str, Any]],
) -> str:
    """The whole page. Parts whose results are not there are left out."""
    general, sized = figures(speed["rows"]), figures(speed["rows"], "default")
    rows = speed["rows"]
    told = MEMORY.format(
        command=speed["command"],
        version=speed["version"],
        right=general.right,
        plain=sum(each["wrong"] == wrong(each) for each in rows),
        rows=len(rows),
        of_copy=general.of_copy,
        over_compile=_times(general.over_compile),
        near=general.near,
        compared=general.compared,
        slower=len(slower_than_plain(rows)),
        sizes=sum(len(each.get("sizes", ())) for each in rows),
        sized_of_copy=sized.of_copy,
        sized_over=_times(sized.over_compile),
    )
    parts = [HEAD.format(**_of(speed)), told, _lines(map(_memory_row, rows))]
    if products:
        timed = [each for each in products["rows"] if "us" in each]
        parts += [
            PRODUCTS.format(command=products["command"], version=products["version"]),
            _lines(map(_product_row, timed)),
        ]
    if kernelbench:
        rows = [_level_row(level, each) for run in kernelbench for level, each in run["shares"].items()]
        parts += [
            KERNELBENCH.format(command=kernelbench[0]["command"], version=kernelbench[0]["version"]),
            _lines(rows),
        ]
    if batches:
        parts.append(_batches(batches))
    return "".join(parts)


def _of(run: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(run[key]) for key in ("device", "driver", "torch", "nvcc")} | {"torch": f"torch {run['torch']}"}


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{each}\n" for each in rows)


def _memory_row(row: Mapping[str, Any]) -> str:
    times = {label: each.get("us") for label, each in row["ours"].items()}
    written, compiled = times.get("general"), row.get("compile_us")
    cells = [_us(each) for each in (written, times.get("default"), row.get("eager_us"), compiled, row["copy_us"])]
    cells.append(f"{row['copy_us'] / written:.0%}" if written else "-")
    cells.append(f"{compiled / written:.2f}" if written and compiled else "-")
    name = f"**{row['case']}: wrong**" if wrong(row) else row["case"]
    return f"| {name} | {' | '.join(cells)} |"


def _times(value: float) -> str:
    return f"{value:.2f}x" if value else "-"


def _us(value: float | None) -> str:
    return "-" if not value else f"{value:.1f}"


def _product_row(row: Mapping[str, Any]) -> str:
    is_attention = row["kernel"].startswith("attention")
    size = row["size"] if is_attention or row["size"][0] > 1 else row["size"][1:]
    shape = "x".join(map(str, size))
    work = row.get("operations") or 2 * math.prod(row["size"])
    rate = "-" if is_attention and "operations" not in row else f"{work / row['us'] / 1e6:.1f}"
    name = row["kernel"] if row["right"] else f"**{row['kernel']}: wrong**"
    library = row["library_us"]
    over = f"{library / row['us']:.2f}" if library else "-"
    return f"| {name} | {shape} | {row['us']:.1f} | {rate} | {_us(library)} | {over} |"


def _level_row(level: str, each: Mapping[str, Any]) -> str:
    names = ("through", "correct", "all_formulas", "some_formula", "fast_1_eager", "fast_1_compile")
    cells = ["-" if each[name] is None else f"{each[name]:.0%}" for name in names]
    return f"| {level} | {each['tasks']:.0f} | {' | '.join(cells)} |"


def _batches(batches: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        "\n## Right without a GPU\n",
        "Kernels in the emulator beside the formula in double precision, at small, odd, empty and larger sizes, "
        "with NaN, infinities and ties.\n",
        "| what | command | formulas | runs | correct | seconds | machine |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for name, each in batches.items():
        correct = each["statuses"].get("correct", 0)
        lines.append(
            f"| {name} | `{each['command']}` | {each['formulas']} | {each['runs']} | {correct} | {each['seconds']} | "
            f"{each['machine']} |"
        )
    return "\n".join(lines) + "\n"
