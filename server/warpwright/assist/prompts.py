"""What the model is shown and the form of what it answers. Training examples are rendered by the same functions.

The default model is a base model without a chat template: a prompt is text whose most likely continuation is the
answer. The untuned model needs worked examples for that; a tuned one (an adapter is loaded) has learned the form and
gets none, which saves a second of reading.

A training example is `plan_prompt(question) + plan_answer(...)` or `generate_prompt(task) + generate_answer(...)`,
ended by the model's end-of-sequence token; the loss belongs on the answer alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

KERNEL_CHARACTERS = 3000  # about 1,000 tokens: a prompt with its answer stays well inside 4,096
ANALYSIS_CHARACTERS = 240
REASON_CHARACTERS = 120
MAX_STEPS = 4


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """A kernel to be planned for. `findings` are sentences with numbers; `rewrites` are (name, what it does)."""

    goal: str  # "speed" | "memory" | "fix"
    kernel: str
    findings: tuple[str, ...]
    rewrites: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PlanShot:
    """A worked example: a question with its answer."""

    question: PlanQuestion
    answer: str


@dataclass(frozen=True, slots=True)
class GenerateShot:
    task: str
    answer: str


GOALS = {"speed": "run faster", "memory": "use less memory", "fix": "be correct"}


def plan_prompt(question: PlanQuestion, shots: Sequence[PlanShot] = ()) -> str:
    """The text after which the model writes a plan.

    >>> question = PlanQuestion("speed", "__global__ void k() {}", ("bank-conflict at `t[x][y]`: 32 wavefronts",),
    ...                         (("pad-shared-array", "Pad the shared array"),))
    >>> print(plan_prompt(question), end="")
    # Kernel
    __global__ void k() {}
    # Findings
    - bank-conflict at `t[x][y]`: 32 wavefronts
    # Rewrites
    - pad-shared-array: Pad the shared array
    # Plan to make the kernel run faster
    """
    return "".join(_question_text(shot.question) + shot.answer + "\n\n" for shot in shots) + _question_text(question)


def nearest_shots(question: PlanQuestion, shots: Sequence[PlanShot], count: int = 1) -> tuple[PlanShot, ...]:
    """The worked examples that answer with a rewrite of the question's, the nearest one last.

    An untuned model follows the last example most, and more than two only cost it time to read.
    """
    offered = {name for name, _ in question.rewrites}

    def nearness(shot: PlanShot) -> tuple[bool, bool]:
        return any(f'"{name}"' in shot.answer for name in offered), shot.question.goal == question.goal

    return tuple(sorted(shots, key=nearness)[-count:])


def _question_text(question: PlanQuestion) -> str:
    lines = ["# Kernel", shortened(question.kernel)]
    lines += ["# Findings", *(f"- {one_line(finding)}" for finding in question.findings or ("none",))]
    lines += ["# Rewrites", *(f"- {name}: {one_line(title)}" for name, title in question.rewrites)]
    lines += [f"# Plan to make the kernel {GOALS[question.goal]}", ""]
    return "\n".join(lines)


def plan_answer(analysis: str, optimizations: Iterable[str], estimated_speedup: float) -> str:
    """A plan in the exact form that `plan_grammar` admits; the analysis is cut to its limit.

    >>> plan_answer("Column reads hit one bank.", ["pad-shared-array"], 1.9)
    '{"analysis": "Column reads hit one bank.", "optimizations": ["pad-shared-array"], "estimated_speedup": 1.9}'
    """
    names = ", ".join(json.dumps(name) for name in optimizations)
    words = json.dumps(_plain(analysis)[:ANALYSIS_CHARACTERS])
    return f'{{"analysis": {words}, "optimizations": [{names}], "estimated_speedup": {estimated_speedup:.1f}}}'


def plan_grammar(names: Sequence[str]) -> str:
    """GBNF that admits a plan naming only `names`, and ends: every part has a longest form.

    The analysis may hold printable ASCII without quotes and backslashes, so that the JSON needs no escapes.
    """
    choices = " | ".join(f'"\\"{name}\\""' for name in names)
    more = f' (", " name){{0,{len(names) - 1}}}' if len(names) > 1 else ""
    return "\n".join(
        (
            r'root ::= "{\"analysis\": \"" text "\", \"optimizations\": [" names "], " speedup "}"',
            f"text ::= [A-Za-z] character{{10,{ANALYSIS_CHARACTERS - 1}}}",
            r"character ::= [ !#-\[\]-~]",
            f"names ::= name{more}",
            f"name ::= {choices}",
            r'speedup ::= "\"estimated_speedup\": " [1-9] [0-9]? "." [0-9]',
        )
    )


def generate_prompt(task: str, shots: Sequence[GenerateShot] = ()) -> str:
    """The text after which the model writes its steps, as comments, and then one kernel.

    >>> print(generate_prompt("add two vectors"), end="")
    // Task: add two vectors
    """
    return "".join(f"// Task: {shot.task}\n{shot.answer}\n\n" for shot in shots) + f"// Task: {one_line(task)}\n"


def generate_answer(steps: Iterable[str], kernel: str) -> str:
    """Reasoning steps as one comment line each, then the kernel.

    >>> print(generate_answer(["one thread per element"], "__global__ void f() {}"))
    // Step: one thread per element
    __global__ void f() {}
    """
    said = [f"// Step: {_plain(step)[:REASON_CHARACTERS]}" for step in list(steps)[:MAX_STEPS]]
    return "\n".join([*said, kernel.strip()])


GENERATE_GRAMMAR = "\n".join(
    (
        f"root ::= step{{0,{MAX_STEPS}}} kernel",
        f'step ::= "// Step: " [ -~]{{1,{REASON_CHARACTERS}}} "\\n"',
        r'kernel ::= "__global__ " [ -~\n\t]*',
    )
)
"""GBNF of a generation's answer: a few steps, then a kernel in printable ASCII. What C++ it is, it does not say."""


def one_line(text: str) -> str:
    """White space collapsed, so that no text of the user's can look like a heading of ours."""
    return " ".join(text.split())


def _plain(text: str) -> str:
    """One line of printable ASCII without quotes and backslashes: what the plan's grammar admits."""
    text = one_line(text).replace('"', "'").replace("\\", "/")
    return "".join(c if " " <= c <= "~" else "?" for c in text)


def shortened(kernel: str, limit: int = KERNEL_CHARACTERS) -> str:
    """The kernel, or its first whole lines and a note of how many follow.

    >>> shortened("a\\nb\\nc\\n", 4)
    'a\\nb\\n// 1 more lines'
    """
    kernel = kernel.strip()
    if len(kernel) <= limit:
        return kernel
    kept = kernel[:limit].rpartition("\n")[0] or kernel[:limit]
    return f"{kept}\n// {kernel.count(chr(10)) - kept.count(chr(10))} more lines"


# The worked analyses hold no numbers: an untuned model copies them, and a kernel's own numbers are in its findings.
PLAN_SHOTS = (
    PlanShot(
        PlanQuestion(
            "speed",
            "__global__ void negate(const float *in, float *out, int rows, int columns) {\n"
            "  int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  int column = blockIdx.y * blockDim.y + threadIdx.y;\n"
            "  if (row < rows && column < columns) out[row * columns + column] = -in[row * columns + column];\n"
            "}",
            (
                "uncoalesced-access at `in[row * columns + column]`: uncoalesced load, 32 sectors/request (ideal 4): "
                "consecutive lanes are 512 elements (2048 bytes) apart.",
            ),
            (("swap-thread-axes", "Swap the roles of threadIdx.x and threadIdx.y"),),
        ),
        plan_answer(
            "Consecutive lanes read different rows of in, so a load of one warp touches a sector for each of them. "
            "With the axes swapped a warp reads along a row.",
            ["swap-thread-axes"],
            4.0,
        ),
    ),
    PlanShot(
        PlanQuestion(
            "speed",
            "__global__ void block_max(const int *in, int *out) {\n"
            "  __shared__ int part[512];\n"
            "  part[threadIdx.x] = in[blockIdx.x * 512 + threadIdx.x];\n"
            "  __syncthreads();\n"
            "  for (int s = 1; s < 512; s *= 2) {\n"
            "    if (threadIdx.x % (2 * s) == 0) part[threadIdx.x] = max(part[threadIdx.x], part[threadIdx.x + s]);\n"
            "    __syncthreads();\n"
            "  }\n"
            "  if (threadIdx.x == 0) out[blockIdx.x] = part[0];\n"
            "}",
            (
                "divergent-branch at `threadIdx.x % (2 * s) == 0`: Warps split in 70% of their visits to this branch "
                "and 5.2 of 32 lanes are on inside.",
            ),
            (
                ("sequential-reduction-addressing", "Address the reduction sequentially"),
                ("pad-shared-array", "Pad the rows of part by 1 element"),
            ),
        ),
        plan_answer(
            "The test on threadIdx.x leaves most lanes of every warp idle. "
            "With sequential addressing the first lanes do the work and whole warps are on or off.",
            ["sequential-reduction-addressing"],
            1.8,
        ),
    ),
    PlanShot(
        PlanQuestion(
            "fix",
            "__global__ void fill(float *out, float value, int n) {\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (i < n) out[i] = value;\n"
            "}",
            ("unchecked-launch at `fill<<<n / 256, 256>>>`: Launch errors of `fill` are not checked.",),
            (("check-launch", "Check the launch of fill"),),
        ),
        plan_answer(
            "If the launch of fill fails, out keeps what it held and nothing says so. "
            "Read cudaGetLastError() after the launch.",
            ["check-launch"],
            1.0,
        ),
    ),
    PlanShot(
        PlanQuestion(
            "speed",
            "__global__ void columns(const float *in, float *out) {\n"
            "  __shared__ float rows[16][32];\n"
            "  rows[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];\n"
            "  __syncthreads();\n"
            "  out[threadIdx.y * 32 + threadIdx.x] = rows[threadIdx.x / 2][threadIdx.y];\n"
            "}",
            (
                "bank-conflict at `rows[threadIdx.x / 2][threadIdx.y]`: 16 wavefronts/request (ideal 1): "
                "neighbouring rows are 32 elements (128 bytes) apart: all on one bank.",
            ),
            (
                ("pad-shared-array", "Pad the rows of rows by 1 element"),
                ("swap-thread-axes", "Swap the roles of threadIdx.x and threadIdx.y"),
            ),
        ),
        plan_answer(
            "The lanes read a column of rows, and all of it lies on one bank. "
            "With padded rows each row starts in another bank.",
            ["pad-shared-array"],
            1.5,
        ),
    ),
)

GENERATE_SHOTS = (
    GenerateShot(
        "scale a vector of floats by a constant",
        generate_answer(
            ("one thread per element", "the last block is guarded by the length"),
            "__global__ void scale(float *x, float a, int n) {\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (i < n) {\n"
            "    x[i] = a * x[i];\n"
            "  }\n"
            "}",
        ),
    ),
    GenerateShot(
        "copy a matrix of floats",
        generate_answer(
            ("a 2-D grid, x over the columns so that a warp reads one row", "rows and columns are guarded"),
            "__global__ void copy_matrix(const float *in, float *out, int rows, int columns) {\n"
            "  int column = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  int row = blockIdx.y * blockDim.y + threadIdx.y;\n"
            "  if (row < rows && column < columns) {\n"
            "    out[row * columns + column] = in[row * columns + column];\n"
            "  }\n"
            "}",
        ),
    ),
    GenerateShot(
        "elementwise maximum of two vectors of floats",
        generate_answer(
            ("one thread per element", "fmaxf of the two inputs"),
            "__global__ void maximum(const float *a, const float *b, float *c, int n) {\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (i < n) {\n"
            "    c[i] = fmaxf(a[i], b[i]);\n"
            "  }\n"
            "}",
        ),
    ),
)
