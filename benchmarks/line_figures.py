"""Facts against counters, line by line: what was counted, what was said, and the figures that compare them.

For each source line that moved data on the GPU, the true ratio is (sectors moved / fewest sectors) for global memory
and (wavefronts / fewest wavefronts) for shared memory, summed over the line's machine instructions. The facts are asked
for the same ratio from the source text alone. A line is *positive* where the ratio is at least 1.5.

  precision, recall   of "ratio >= 1.5"; a number whose basis is unknown or data-dependent does not count as said
  data_dependent      share of the positive lines that are called data-dependent and given no number
  recall_static       recall without those lines
  answered            share of the lines for which there is a number
  exact               share of the answered lines whose sectors (wavefronts) per request are within 10 % of the count
  exact_positive      the same of the positive lines alone
  branch              precision and recall of "at least 10 % of the warps diverge" for lines with a branch instruction;
                      left out are lines whose text (with the line after) holds no branch, loop, ?:, && or ||

A program with more than 30 lines of a kind weighs as much as one with 30. Headers of the toolkit are left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

CODE = {".cu", ".cuh", ".h", ".hpp", ".inl"}
LINES_OF_ONE_PROGRAM = 30
POSITIVE = 1.5
DIVERGING = 0.1
CLOSE = 0.1
BRANCHES = re.compile(r"\b(if|else|for|while|do|switch|case|return|break|continue|goto|min|max|assert)\b|\?|&&|\|\|")
NOT_SAID = ("unknown", "data-dependent")
COUNTED = {"global": ("sec", "ideal"), "shared": ("wf", "wfi")}
SAID = {
    "global": ("sectors_per_request", "ideal_sectors_per_request"),
    "shared": ("wavefronts_per_request", "ideal_wavefronts_per_request"),
}


@dataclass(frozen=True, order=True)
class Line:
    """A line of a program's own file, and `global`, `shared` or `branch`: what of it is compared."""

    kind: str
    file: str
    line: int


@dataclass
class Counts:
    """What the GPU did for one line: transactions moved, fewest possible, requests, and the instructions behind it."""

    moved: float = 0.0
    fewest: float = 0.0
    requests: float = 0.0
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)

    def add(self, moved: float, fewest: float, row: Mapping[str, Any], function: str) -> None:
        self.moved += moved
        self.fewest += fewest
        self.requests += row["inst"]
        self.rows.append(row)
        self.functions.add(function)

    @property
    def ratio(self) -> float:
        return self.moved / self.fewest

    @property
    def per_request(self) -> float:
        return self.moved / self.requests


@dataclass
class Answers:
    """What the facts say of one line: sums over its accesses that have a number, and every access or branch there."""

    got: float = 0.0
    fewest: float = 0.0
    numbers: int = 0
    facts: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        return self.got / self.fewest if self.fewest else None

    @property
    def per_request(self) -> float | None:
        return self.got / self.numbers if self.fewest else None

    @property
    def bases(self) -> set[str]:
        return {fact["basis"] for fact in self.facts if "basis" in fact}


def sources_of(folder: Path) -> dict[str, Path]:
    """The program's own files by name."""
    return {path.name: path for path in folder.rglob("*") if path.suffix in CODE}


def counted_lines(program: Mapping[str, Any], sources: Mapping[str, Path]) -> dict[Line, Counts]:
    """What was counted, by line. A branch line's `moved` are the warps that diverged, of `requests` that came there."""
    counts: dict[Line, Counts] = {}
    text: dict[str, list[str]] = {}
    for block in program["blocks"]:
        name = PurePath(block["file"]).name
        if name not in sources:
            continue
        for row in block["rows"]:
            for kind, (moved, fewest) in COUNTED.items():
                if row.get(fewest):
                    line = Line(kind, name, row["line"])
                    counts.setdefault(line, Counts()).add(row[moved], row[fewest], row, block["fn"])
            if row["op"].startswith("BRA"):
                if name not in text:
                    text[name] = sources[name].read_text(errors="replace").splitlines()
                if BRANCHES.search(" ".join(text[name][max(0, row["line"] - 1) : row["line"] + 1])):
                    line = Line("branch", name, row["line"])
                    counts.setdefault(line, Counts()).add(row.get("div", 0.0), 0.0, row, block["fn"])
    return {line: count for line, count in counts.items() if count.requests}


def said_lines(facts: Mapping[str, Any]) -> dict[Line, Answers]:
    """What `warpwright facts --format json` says, by line. A branch's `got` is its largest share of diverging warps."""
    said: dict[Line, Answers] = defaultdict(Answers)
    for kernel in facts["kernels"]:
        for access in kernel["accesses"]:
            if access["space"] not in SAID:
                continue
            answer = said[Line(access["space"], PurePath(access["file"]).name, access["line"])]
            answer.facts.append({"kernel": kernel["name"]} | access)
            got, fewest = (access.get(name) for name in SAID[access["space"]])
            if access["basis"] not in NOT_SAID and got and fewest:
                answer.got += got
                answer.fewest += fewest
                answer.numbers += 1
        for branch in kernel["branches"]:
            answer = said[Line("branch", PurePath(branch["file"]).name, branch["line"])]
            answer.facts.append({"kernel": kernel["name"]} | branch)
            answer.got = max(answer.got, branch.get("warps_diverging") or 0.0)
    return dict(said)


def close(said: float, counted: float) -> bool:
    """Whether a number per request is within 10 % of the counted one."""
    return abs(said - counted) <= CLOSE * counted


def is_positive(line: Line, count: Counts, answer: Answers) -> tuple[bool, bool]:
    """Whether the line is positive (diverges, for a branch) on the GPU, and in the facts."""
    if line.kind == "branch":
        return count.per_request >= DIVERGING, answer.got >= DIVERGING
    return count.ratio >= POSITIVE, (answer.ratio or 0.0) >= POSITIVE


Tally = dict[str, dict[str, float]]


def tally(counted: Mapping[Line, Counts], said: Mapping[Line, Answers]) -> Tally:
    """Weighted counts of one program, by kind: lines, answered, exact, true and false positives, and so on."""
    weights = {kind: min(1.0, LINES_OF_ONE_PROGRAM / n) for kind, n in Counter(line.kind for line in counted).items()}
    counts: Tally = {kind: defaultdict(float) for kind in weights}
    for line, count in counted.items():
        tallied, weight, answer = counts[line.kind], weights[line.kind], said.get(line, Answers())
        positive, flagged = is_positive(line, count, answer)
        tallied["lines"] += weight
        tallied["tp"] += weight * (positive and flagged)
        tallied["fp"] += weight * (flagged and not positive)
        tallied["fn"] += weight * (positive and not flagged)
        if line.kind == "branch":
            continue
        if answer.per_request is not None:
            exact = close(answer.per_request, count.per_request)
            tallied["answered"] += weight
            tallied["exact"] += weight * exact
            tallied["answered_positive"] += weight * positive
            tallied["exact_positive"] += weight * (exact and positive)
        else:
            tallied["fn_data"] += weight * (positive and "data-dependent" in answer.bases)
    return counts


def figures(tallies: Iterable[Tally]) -> dict[str, dict[str, float | None]]:
    """The figures of a set of programs from their tallies; None where there is nothing to divide by.

    >>> figures([{"branch": {"lines": 4.0, "tp": 1.0, "fp": 1.0, "fn": 0.0}}])["branch"]
    {'weighted_lines': 4.0, 'precision': 0.5, 'recall': 1.0}
    """
    total: Tally = {kind: defaultdict(float) for kind in (*COUNTED, "branch")}
    for one in tallies:
        for kind, counts in one.items():
            for name, value in counts.items():
                total[kind][name] += value
    return {kind: _figures(kind, counts) for kind, counts in total.items()}


def _figures(kind: str, n: Mapping[str, float]) -> dict[str, float | None]:
    row: dict[str, float | None] = {
        "weighted_lines": round(n["lines"], 4),
        "precision": _share(n["tp"], n["tp"] + n["fp"]),
        "recall": _share(n["tp"], n["tp"] + n["fn"]),
    }
    if kind != "branch":
        row |= {
            "data_dependent": _share(n["fn_data"], n["tp"] + n["fn"]),
            "recall_static": _share(n["tp"], n["tp"] + n["fn"] - n["fn_data"]),
            "exact_positive": _share(n["exact_positive"], n["answered_positive"]),
            "exact": _share(n["exact"], n["answered"]),
            "answered": _share(n["answered"], n["lines"]),
        }
    return row


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None
