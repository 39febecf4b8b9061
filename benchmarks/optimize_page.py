"""docs/optimize.md from benchmarks/results/optimize_cuda.json, and the figures that are printed with a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any

AIMS = (1.2, 2.0)
"""Speedups whose shares of all kernels are told."""

WHO = ("fixed", "model", "chance")
"""Who orders the candidates."""

SAME = 1.03
"""Speedups whose quotient is no larger are the same one."""

HEAD = """# What `warpwright optimize` finds

Made by `python tools/generate.py` from `benchmarks/results/optimize_cuda.json`; do not edit by hand.

`{command}` searched for faster versions of the kernels of
[csrc_samples](../csrc_samples) on an {gpu} ({torch}, nvcc {nvcc}), with the rewrites in their fixed order and no
language model. Times are those of the first size that is timed, the program's own launch where it is known, with the
second-level cache cold; a kernel without a version that is faster counts as 1.00x.

{figures}

- own, best: microseconds of the kernel as it is and of the version that was offered, with the speedup's 95 % interval.
- bound: the share of what the hardware allows that each of them reaches, from the bytes of the arrays and the
  operations that torch counts ([how](verification.md)); "-" where it is not known, or where a launch that is faster
  than that shows that only a part of the arrays is touched.
- eager, compiled: microseconds of the sample's reference in PyTorch, and of that under `torch.compile`; "-" where it
  does not run.

| kernel | own | best | speedup | bound | eager | compiled | rewrites |
|---|---:|---:|---:|---:|---:|---:|---|
"""


PLANS = """
## Who orders the candidates

`{command}`
replayed an earlier run of these searches with few verifications: in the fixed order (what gained most on the other
samples first), in the order of the model's plan ({model}), and in {seeds} orders by chance. Of {kernels} kernels to
which more than one rewrite applies, the geometric mean of the best speedup that was found, and on how many kernels the
model's plan found a better or a worse one than the fixed order:

{table}

A plan took {seconds:.1f} s ({cpu}, load {load:g}), a candidate in the searches above {each:.1f} s ({gpu}).
{verdict}{left_out}
"""


PROGRAMS = """
## Kernels of real programs

`{command}`
searched the {kernels} kernels of {programs} programs of {sources} in the same way ({gpu}).
Nobody wrote these for this project, and most were tuned by hand. {runnable} of them can be run as they are launched;
rewrites made {candidates} candidates for {tried}: {verdicts}.
{gain}
"""


UNREAD = """
Of all programs there, every second one by name was read while rewrites were widened; the others (`--every 2/2`) were
not. {pitfalls} of their kernels can be run and have a pitfall; in one run there was time for the first {kernels} by
name. Rewrites made candidates for {tried}: {verdicts}.
1.2x or more on {first} ({first_share:.0%}), 2x or more on {second} ({second_share:.0%}), geometric mean {mean:.2f}x:
{listed}.
"""


def page(
    result: Mapping[str, Any], plans: Mapping[str, Any], programs: Mapping[str, Any], unread: Mapping[str, Any]
) -> str:
    """The page as Markdown; `plans` is what benchmarks/plans.py wrote, `programs` and `unread` what
    optimize_programs.py did for the labelled programs and for those that nobody read."""
    hardware, versions = result["hardware"], result["versions"]
    head = HEAD.format(
        command=result["command"],
        gpu=hardware["name"],
        torch=f"torch {hardware['torch']}",
        nvcc=versions["nvcc"],
        figures="\n".join(f"- {line}" for line in figures(result)),
    )
    rows = ("| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |\n" for row in result["kernels"])
    return head + "".join(rows) + _programs(programs) + _unread(unread) + _plans(plans, result)


def _programs(programs: Mapping[str, Any]) -> str:
    rows = programs["kernels"]
    candidates = [candidate for row in rows for candidate in row["candidates"]]
    pitfalls = sum(bool(row["pitfalls"]) and row["problem"] == "" for row in rows)
    gains = [(row["kernel"], _gain(row)) for row in rows if _gain(row) >= AIMS[0]]
    listed = ", ".join(f"{gain:.2f}x on {kernel}" for kernel, gain in gains)
    return PROGRAMS.format(
        command=programs["command"],
        kernels=len(rows),
        programs=len({row["kernel"].split()[0] for row in rows}),
        sources=programs["sources"],
        gpu=programs["hardware"]["name"],
        runnable=programs["summary"]["with_a_problem"],
        tried=sum(bool(row["candidates"]) for row in rows),
        candidates=len(candidates),
        verdicts=_verdicts(rows),
        gain=f"{AIMS[0]}x or more: {listed or 'none'}.\nOf the {pitfalls} that can be run and in which a rule finds a "
        f"pitfall, {programs['summary']['at_least_1.2x']} gain that much.",
    )


def _unread(unread: Mapping[str, Any]) -> str:
    rows = unread["kernels"]
    gains = sorted(((_gain(row), row["kernel"]) for row in rows), reverse=True)
    first, second = (sum(gain >= aim for gain, _ in gains) for aim in AIMS)
    return UNREAD.format(
        pitfalls=len(rows) + len(unread["left_out"]),
        kernels=len(rows),
        tried=sum(bool(row["candidates"]) for row in rows),
        verdicts=_verdicts(rows),
        first=first,
        first_share=first / len(rows),
        second=second,
        second_share=second / len(rows),
        mean=geometric_mean(gain for gain, _ in gains),
        listed=", ".join(f"{gain:.2f}x on {kernel}" for gain, kernel in gains if gain >= AIMS[0]),
    )


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    statuses = Counter(str(candidate["status"]) for row in rows for candidate in row["candidates"])
    return ", ".join(f"{count} {status}" for status, count in statuses.most_common())


def _gain(row: Mapping[str, Any]) -> float:
    best = row["candidates"][row["best"]] if row["best"] is not None else None
    return float(best["speedups"][0]) if best and best["status"] == "faster" else 1.0


def _plans(plans: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    rows, budgets = plans["kernels"], plans["budgets"]
    means = {
        name: [geometric_mean(column) for column in zip(*(row[name] for row in rows), strict=True)] for name in WHO
    }
    pairs = list(zip(budgets, means["model"], budgets[1:], means["fixed"][1:], strict=False))[:2]
    against = ", ".join(f"{later:.3f}x with {n} against {planned:.3f}x with {k}" for k, planned, n, later in pairs)
    ahead = all(later >= planned for _, planned, _, later in pairs)
    verdict = f"With one verification more in its place the fixed order finds {against}: it " + (
        "is the default, and `--plan model` asks the model." if ahead else "is behind the model's plan."
    )
    tried = sum(len(row["candidates"]) for row in result["kernels"])
    return PLANS.format(
        command=plans["command"],
        model=plans["model"] + (f" with the adapter {plans['adapter']}" if plans["adapter"] else ""),
        seeds=plans["seeds"],
        kernels=len(rows),
        table="\n".join(plan_table(plans)),
        seconds=median(row["seconds"] for row in rows),
        cpu=plans["hardware"]["cpu"],
        load=plans["hardware"]["load"],
        each=sum(row["seconds"] for row in result["kernels"]) / tried,
        gpu=result["hardware"]["name"],
        verdict=verdict,
        left_out=f" Not asked about: {len(plans['left_out'])} kernels." if plans["left_out"] else "",
    )


def plan_table(plans: Mapping[str, Any]) -> list[str]:
    """Geometric means by budget of verifications, and on how many kernels the model's plan found something better or
    worse than the fixed order: lines of Markdown."""
    rows = plans["kernels"]
    lines = ["| verifications | fixed order | model's plan | chance | model better | model worse |", "|---:" * 6 + "|"]
    for place, budget in enumerate(plans["budgets"]):
        means = [geometric_mean(row[name][place] for row in rows) for name in WHO]
        ratios = [row["model"][place] / row["fixed"][place] for row in rows]
        better, worse = sum(r > SAME for r in ratios), sum(1 / r > SAME for r in ratios)
        lines.append(f"| {budget} | {' | '.join(f'{mean:.3f}x' for mean in means)} | {better} | {worse} |")
    most = f"{geometric_mean(row['all'] for row in rows):.3f}x"
    return [*lines, f"| all | {most} | {most} | {most} | 0 | 0 |"]


def figures(result: Mapping[str, Any]) -> list[str]:
    """A sentence for each figure over all kernels."""
    rows = result["kernels"]
    if not rows:
        return ["No kernel was searched."]
    gains = [gain(row) for row in rows]
    said = [
        f"{len(rows)} kernels: geometric mean {geometric_mean(gains):.2f}x, median {median(gains):.2f}x; "
        + ", ".join(f"{least:g}x or more on {_share(sum(g >= least for g in gains), len(rows))}" for least in AIMS)
        + "."
    ]
    statuses = Counter(candidate["status"] for row in rows for candidate in row["candidates"])
    told = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    said.append(f"{statuses.total()} candidates: {told}.")
    for key, name in (("eager_us", "eager PyTorch"), ("compile_us", "`torch.compile`")):
        raced = [(took, row["peers"][key]) for row in rows if row["peers"].get(key) and (took := best_us(row))]
        ahead = sum(took <= other for took, other in raced)
        before = sum(row["own_us"] <= row["peers"][key] for row in rows if row["peers"].get(key) and row["own_us"])
        said.append(
            f"As fast as {name} or faster: {before} of {len(raced)} before, {ahead} after"
            + (
                f"; geometric mean of its time over ours {geometric_mean(b / a for a, b in raced):.2f}."
                if raced
                else "."
            )
        )
    shares = [
        (row["own_share"], share) for row in rows if row["own_share"] and (share := best_share(row)) and share <= 1
    ]
    if shares:
        before, after = (median(column) for column in zip(*shares, strict=True))
        said.append(f"Share of the hardware's bound, median of {len(shares)}: {before:.0%} before, {after:.0%} after.")
    if result["left_out"]:
        said.append(f"Not searched for lack of time: {', '.join(result['left_out'])}.")
    return said


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of one kernel."""
    best = _best(row)
    speedup = "not timed" if best else "1.00x"
    if best and best["ci95"]:
        low, high = best["ci95"][0]
        speedup = f"{gain(row):.2f}x ({low:.2f}-{high:.2f})"
    return (
        row["kernel"],
        _us(row["own_us"]),
        _us(best_us(row)) if best else "-",
        speedup,
        f"{_percent(row['own_share'])} → {_percent(best_share(row))}" if best else _percent(row["own_share"]),
        _us(row["peers"].get("eager_us")),
        _us(row["peers"].get("compile_us")),
        " + ".join(best["rewrites"]) if best else row["reason"],
    )


def gain(row: Mapping[str, Any]) -> float:
    """The best version's measured speedup at the first size; 1 where none is offered or nothing was timed."""
    best = _best(row)
    return float(best["speedups"][0]) if best and best["speedups"] else 1.0


def best_us(row: Mapping[str, Any]) -> float | None:
    """What the offered version takes at the first size, or the kernel itself where none is offered."""
    best = _best(row)
    taken: float | None = best["candidate_us"][0] if best and best["candidate_us"] else row["own_us"]
    return taken


def best_share(row: Mapping[str, Any]) -> float | None:
    """The share of the bound that it reaches."""
    best = _best(row)
    share: float | None = best["shares"][0] if best and best["shares"] else row["own_share"]
    return share


def _best(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    best: Mapping[str, Any] | None = row["candidates"][row["best"]] if row["best"] is not None else None
    return best


def _share(count: int, of: int) -> str:
    return f"{count} ({count / of:.0%})"


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _percent(value: float | None) -> str:
    return "-" if value is None or value > 1 else f"{value:.0%}"
