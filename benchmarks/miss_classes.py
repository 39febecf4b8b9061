"""Why a line's facts differ from its counters: a class for each miss, derived from the counters and the facts alone.

A line is missed where its verdict differs (ratio >= 1.5, or diverging), where there is no number for it, or where the
number per request is more than 10 % off. It belongs to the first class below whose description holds; a class is
evidence for a cause, not proof of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from line_figures import CLOSE, Answers, Counts, Line, close, is_positive

NEAR = 3

CLASSES: dict[str, str] = {
    "kernel not seen": "The facts hold no kernel of the name that was profiled.",
    "another line": f"No fact on this line, but one of its kind within {NEAR} lines: a statement over several "
    "lines, or an instruction that the compiler moved.",
    "no fact": "No fact on this line or near it: the compiler made the access or the branch, or a helper's, macro's or "
    "template's text was not followed.",
    "data-dependent": "The facts say that the index, or the condition, depends on data that is read at run time.",
    "unknown": "The facts say that they do not know a value in the address.",
    "atomic": "An atomic: the compiler or the hardware combines the lanes' requests, or they are tried again.",
    "block shape": "The kernel was profiled with a block shape that the facts did not look at.",
    "wider": "The compiler merged accesses into wider ones, or split them.",
    "predicate": "The ratio agrees, the count per request does not, and a predicate guards an instruction: the "
    "compiler made it of an `if`, so that requests with no lane on count (the counters of `dev` do not tell).",
    "requests": "The ratio agrees, the count per request does not: predicates, or a loop's requests weigh differently.",
    "lanes": "Another share of the lanes is active: their number depends on data or on sizes that the text "
    "does not give.",
    "alignment": "Within one transaction of the count: a run-time size or base decides where a row begins.",
    "assumed value": "The facts assume a run-time size, and another one was used.",
    "other count": "None of the above.",
    "said uniform": "The facts say that no warp diverges here, or under 10 %.",
    "said diverging": "The facts say that at least 10 % diverge; the compiler made a predicate or a select of it, or "
    "the values did not split so many.",
}


@dataclass(frozen=True)
class Miss:
    """One missed line. `wrong` is true where the verdict differs, not only the number."""

    program: str
    line: Line
    cause: str
    wrong: bool
    said: tuple[float, ...]
    counted: tuple[float, ...]
    executed: float


def misses(
    program: Mapping[str, Any], facts: Mapping[str, Any], counted: Mapping[Line, Counts], said: Mapping[Line, Answers]
) -> list[Miss]:
    """The missed lines of one program with their classes."""
    kernels = {kernel["name"] for kernel in facts["kernels"]}
    shapes = {(k["name"], tuple(launch["block"])) for k in facts["kernels"] for launch in k["launches"]}
    profiled: dict[str, set[tuple[int, ...]]] = {}
    for launch in program["launches"]:
        block = tuple(int(n) for n in re.findall(r"\d+", launch["block"]))
        profiled.setdefault(base_name(launch["kernel"]), set()).add(block)
    found = []
    for line, count in counted.items():
        answer = said.get(line, Answers())
        positive, flagged = is_positive(line, count, answer)
        number = answer.per_request
        if positive == flagged and (line.kind == "branch" or (number is not None and close(number, count.per_request))):
            continue
        functions = {base_name(function) for function in count.functions}
        if not answer.facts:
            near = any(Line(line.kind, line.file, line.line + step) in said for step in range(-NEAR, NEAR + 1))
            cause = "another line" if near else "no fact" if functions & kernels else "kernel not seen"
        elif line.kind == "branch":
            cause = _branch_cause(flagged, answer)
        else:
            looked_at = {(name, shape) for name in functions for shape in profiled.get(name, ())}
            cause = _count_cause(count, answer, shape_known=not looked_at or bool(looked_at & shapes))
        found.append(
            Miss(program["prog"], line, cause, positive != flagged, *_numbers(line, count, answer), count.requests)
        )
    return found


def _numbers(line: Line, count: Counts, answer: Answers) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What was said, and what was counted: per request, and the fewest possible; or the share that diverges."""
    if line.kind == "branch":
        shares = [fact["warps_diverging"] for fact in answer.facts if fact["warps_diverging"] is not None]
        return tuple(shares and [max(shares)]), (count.per_request,)
    said = (answer.got / answer.numbers, answer.fewest / answer.numbers) if answer.numbers else ()
    return said, (count.per_request, count.fewest / count.requests)


def base_name(function: str) -> str:
    """A kernel's name without its type, template arguments, namespace and parameters.

    >>> base_name("void ns::scan<(int)256, float>(T1 *, int)"), base_name("scan(float *)")
    ('scan', 'scan')
    """
    return re.split(r"[<(]", function.removeprefix("void "), maxsplit=1)[0].split("::")[-1].split(" ")[-1]


def _branch_cause(flagged: bool, answer: Answers) -> str:
    if flagged:
        return "said diverging"
    how = {fact["divergence"] for fact in answer.facts}
    return "data-dependent" if "data-dependent" in how else "unknown" if "unknown" in how else "said uniform"


def _count_cause(count: Counts, answer: Answers, shape_known: bool) -> str:
    """The class of a line that has facts, by comparing its number with the counted one."""
    said, ratio = answer.per_request, answer.ratio
    if said is None or ratio is None:
        return "data-dependent" if "data-dependent" in answer.bases else "unknown"
    if any(row["op"].startswith(("ATOM", "RED")) for row in count.rows):
        return "atomic"
    if not shape_known:
        return "block shape"
    if {int(row["size"]) // 8 for row in count.rows} - {fact["bytes"] for fact in answer.facts}:
        return "wider"
    if close(ratio, count.ratio):
        return "predicate" if any(row.get("pred") for row in count.rows) else "requests"
    lanes = sum(row["thr"] * row["inst"] for row in count.rows) / count.requests
    lanes_said = sum(fact["active_lanes"] for fact in answer.facts) / len(answer.facts)
    if abs(lanes_said - lanes) > 1.0 + CLOSE * lanes:  # the counters round a row's lanes down
        return "lanes"
    if abs(said - count.per_request) <= 1.0:
        return "alignment"
    return "assumed value" if "assumed" in answer.bases else "other count"


def summary(found: Iterable[Miss], show_lines: bool) -> dict[str, list[dict[str, Any]]]:
    """By kind, the classes with the number of their lines, most first, and for each the line that executed most."""
    groups: dict[tuple[str, str], list[Miss]] = {}
    for miss in found:
        groups.setdefault((miss.line.kind, miss.cause), []).append(miss)
    result: dict[str, list[dict[str, Any]]] = {}
    for (kind, cause), group in sorted(groups.items(), key=lambda entry: -len(entry[1])):
        row: dict[str, Any] = {"class": cause, "lines": len(group), "wrong": sum(miss.wrong for miss in group)}
        if show_lines:
            most = max(group, key=lambda miss: (miss.wrong, miss.executed))
            row["example"] = {
                "at": f"{most.program}/{most.line.file}:{most.line.line}",
                "said": [round(number, 2) for number in most.said],
                "counted": [round(number, 2) for number in most.counted],
            }
        result.setdefault(kind, []).append(row)
    return result
