"""Whether an answer repairs a broken kernel, and what one without a model would answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from warpwright.assist.blocks import read_blocks
from warpwright.assist.repair_task import repair_answer
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source

from warpwright_upskill.data.repairs import written_of
from warpwright_upskill.data.symptoms import verdicts
from warpwright_upskill.examples import Example


@dataclass(frozen=True, slots=True)
class RepairJudgement:
    """`status` is "unreadable", or what became of the repaired kernel: "correct", "wrong", "does-not-compile",
    "not-run". `reason` is one sentence where it is not correct."""

    status: str
    reason: str = ""

    @property
    def is_right(self) -> bool:
        return self.status == "correct"


def judge_repair(example: Example, answer: str) -> RepairJudgement:
    """Whether an answer's blocks make a kernel that compiles and computes the formula of an example of `repairs`."""
    kernels = analyze(Source("kernel.cu", example.source.encode())).defined_kernels
    proposal = read_blocks(answer, kernels[0]) if kernels else "there is no kernel in the text"
    if isinstance(proposal, str):
        return RepairJudgement("unreadable", proposal)
    text = kernels[0].source.edited(list(proposal.edits)).text()
    (verdict,) = verdicts([(written_of(example), text)])
    return RepairJudgement(verdict.status, " ".join(verdict.said))


def copied(example: Example, known: Sequence[Example]) -> str:
    """The answer of one who copies: of the known repair whose message is most like this one's, what it changed, made
    in the line of this kernel that is most like its own; "" where there is none."""
    if not known:
        return ""
    nearest = max(known, key=lambda each: _likeness(each.message, example.message))
    lines = [line for line in example.source.splitlines(keepends=True) if line.strip()]
    original, updated = nearest.edits[0]
    line = max(lines, key=lambda each: _likeness(each, original))
    return repair_answer(nearest.reasoning_steps[0], [(line, _alike(line, original, updated))])


def _likeness(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one[:400], other[:400], autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() > 0.1 else 0.0


def _alike(line: str, original: str, updated: str) -> str:
    """The line with the letters changed that make one text of the other.

    >>> _alike("  int n = 2", "int m = 1", "int m = 1;")
    '  int n = 2;'
    """
    opcodes = SequenceMatcher(None, original, updated, autojunk=False).get_opcodes()
    for _, first, last, new_first, new_last in (code for code in opcodes if code[0] != "equal"):
        if original[first:last] and original[first:last] in line:
            return line.replace(original[first:last], updated[new_first:new_last], 1)
        if first == last:
            end = len(line.rstrip("\n"))
            return line[:end] + updated[new_first:new_last] + line[end:]
    return updated
