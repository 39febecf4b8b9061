"""The task *repair*: what the model is shown of a kernel that is to be changed, and the form of its answer.

Training and serving render by these functions alone. A training example is `repair_prompt(request) +
repair_answer(why, edits)`, ended by the model's end-of-sequence token; the loss belongs on the answer. `blocks` reads
answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from warpwright.assist.blocks import LONGEST_WHY
from warpwright.assist.prompts import GOALS, one_line
from warpwright.toolchain.messages import CompilerMessage

MOST_SENTENCES = 4
LONGEST_SENTENCE = 600
LONGEST_QUOTE = 120
_PLACE = re.compile(r"\bline (\d+)(?: of [\w.-]+\.\w+)?")
_CHANGES = "// Changes: whole lines of the kernel, copied, and what they become"

Edit = tuple[str, str]
"""Whole lines of a kernel, each with its end, and those that stand in their place."""


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """What changes are asked for with: the kernel's text, which begins in `first_line` of its file; sentences of a
    compiler, the emulator, the harness or the rules about it; the goal ("fix", "speed" or "memory") and the user's own
    words, "" for none."""

    kernel: str
    said: tuple[str, ...]
    goal: str = "fix"
    wish: str = ""
    first_line: int = 1


def repair_prompt(request: RepairRequest) -> str:
    """The text after which the model writes its changes.

    >>> kernel = "__global__ void k(float *a) {\\n  a[0] = 1\\n}"
    >>> print(repair_prompt(RepairRequest(kernel, ('line 12 of k.cu: expected a ";"',), first_line=11)), end="")
    // Task: make the kernel be correct
    // Kernel
    __global__ void k(float *a) {
      a[0] = 1
    }
    // Known
    // - `a[0] = 1`: expected a ";"
    // Changes: whole lines of the kernel, copied, and what they become
    """
    wished = f" ({one_line(request.wish)})" if request.wish else ""
    shown = request.kernel.strip().replace("\r\n", "\n")
    said = [quoted(one_line(each), request)[:LONGEST_SENTENCE] for each in request.said[:MOST_SENTENCES]]
    lines = [f"// Task: make the kernel {GOALS[request.goal]}{wished}", "// Kernel", shown, "// Known"]
    lines += [f"// - {each}" for each in said or ("nothing",)]
    return "\n".join([*lines, _CHANGES, ""])


def quoted(sentence: str, request: RepairRequest) -> str:
    """A sentence with the kernel's lines in the place of their numbers: a model cannot count them."""
    lines = request.kernel.splitlines()

    def text_of(place: re.Match[str]) -> str:
        number = int(place[1]) - request.first_line
        return f"`{lines[number].strip()[:LONGEST_QUOTE]}`" if 0 <= number < len(lines) else place[0]

    return _PLACE.sub(text_of, sentence)


def compiler_said(messages: Iterable[CompilerMessage]) -> tuple[str, ...]:
    """What nvcc finds wrong, as a request has it: the first errors with their lines."""
    errors = [each for each in messages if each.severity == "error"]
    return tuple(f"`{each.quoted.strip()}`: {each.text}" for each in errors[:MOST_SENTENCES])


def repair_answer(why: str, edits: Iterable[Edit]) -> str:
    """An answer in the form that `blocks` reads.

    >>> print(repair_answer("A semicolon is missing.", [("  a[0] = 1\\n", "  a[0] = 1;\\n")]), end="")
    @why A semicolon is missing.
    @original
      a[0] = 1
    @updated
      a[0] = 1;
    @end
    """
    blocks = "".join(f"@original\n{original}@updated\n{updated}@end\n" for original, updated in edits)
    return f"@why {one_line(why)[:LONGEST_WHY]}\n{blocks}"


def edits_between(before: str, after: str) -> tuple[Edit, ...]:
    """The fewest lines that make one text of the other, each stretch with as many lines around it as it takes to be
    found by its text; none where that is not possible.

    >>> edits_between("a\\nb\\na\\n", "a\\nb\\nc\\na\\n")
    (('b\\n', 'b\\nc\\n'),)
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    edits: list[Edit] = []
    end = 0
    for tag, first, last, new_first, new_last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        above = below = 0
        while not _is_found(old, first - above, last + below):
            if first - above > end and above <= below:
                above += 1
            elif last + below < len(old):
                below += 1
            elif first - above > end:
                above += 1
            else:
                return ()
        edits.append(("".join(old[first - above : last + below]), "".join(new[new_first - above : new_last + below])))
        end = last + below
    return tuple(edits) if _applied(before, edits) == after else ()


def _is_found(lines: Sequence[str], first: int, last: int) -> bool:
    wanted = list(lines[first:last])
    places = range(len(lines) - len(wanted) + 1)
    is_blank = not "".join(wanted).strip()
    return not is_blank and sum(list(lines[at : at + len(wanted)]) == wanted for at in places) == 1


def _applied(text: str, edits: Iterable[Edit]) -> str:
    for original, updated in edits:
        text = text.replace(original, updated, 1)
    return text


REPAIR_SHOT = (
    repair_prompt(
        RepairRequest(
            "__global__ void scale(float *a, const float *s, int n) {\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  for (int k = 0; k < 8; ++k) {\n"
            "    if (i < n) a[k * n + i] *= s[0];\n"
            "  }\n"
            "}",
            ("loop-invariant-load at `s[0]`: The address stays the same over the loop.",),
            goal="speed",
        )
    )
    + repair_answer(
        "The factor does not change in the loop: it is loaded once.",
        [
            (
                "  for (int k = 0; k < 8; ++k) {\n    if (i < n) a[k * n + i] *= s[0];\n",
                "  const float factor = s[0];\n"
                "  for (int k = 0; k < 8; ++k) {\n"
                "    if (i < n) a[k * n + i] *= factor;\n",
            )
        ],
    )
    + "\n"
)
"""A worked example, for a model that has not learned the form."""
