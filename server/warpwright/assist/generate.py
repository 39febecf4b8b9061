"""A kernel from a sentence: the model writes, the syntax tree decides whether it is shown.

A draft is a draft: that it compiles is for the compiler to say, that it is right for the harness.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.assist.engine import CompletionRequest, Engine
from warpwright.assist.prompts import GENERATE_GRAMMAR, GENERATE_SHOTS, generate_prompt
from warpwright.assist.screen import balanced_end, refusal
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, walk
from warpwright.syntax.source import Source

BUDGET_SECONDS = 60.0
MAX_TOKENS = 512
LONGEST_REQUEST = 400  # characters of a description; beyond it is a document, not a request
_TEMPERATURES = (0.0, 0.3, 0.6)  # the likeliest answer first, then two that differ


@dataclass(frozen=True, slots=True)
class Draft:
    """A kernel that the model wrote. `raw` is all that it wrote, `code` the kernel in it ("" where there is none).

    `shown` is whether a user may see it, `reason` one sentence why not. `assumptions` is what its reader has to know.
    """

    code: str
    raw: str
    shown: bool
    reason: str
    assumptions: tuple[str, ...]


def drafts(
    engine: Engine,
    description: str,
    is_cancelled: IsCancelled = never_cancelled,
    *,
    budget_seconds: float = BUDGET_SECONDS,
) -> Iterator[Draft]:
    """The model's attempts at a kernel, each different, until the budget is spent. Raises EngineError."""
    prompt = generate_prompt(description[:LONGEST_REQUEST], () if engine.is_taught else GENERATE_SHOTS)
    deadline = time.monotonic() + budget_seconds
    for seed, temperature in enumerate(_TEMPERATURES):
        seconds = deadline - time.monotonic()
        if seconds <= 0 or is_cancelled():
            return
        completion = engine.complete(
            CompletionRequest(
                prompt, MAX_TOKENS, temperature, seed, stop=("// Task:",), grammar=GENERATE_GRAMMAR, seconds=seconds
            ),
            is_cancelled,
            is_enough=_has_whole_kernel,
        )
        if completion.stop == "cancelled":
            return
        yield read_draft(completion.text)


def read_draft(raw: str) -> Draft:
    """What is to be had of a model's text: the function from `__global__` to the brace that ends it.

    >>> read_draft("// Step: one\\n__global__ void f() {}\\nmore").code
    '__global__ void f() {}'
    >>> read_draft("I cannot").reason
    'The model wrote no kernel.'
    """
    start = raw.find("__global__")
    if start < 0:
        return Draft("", raw, False, "The model wrote no kernel.", ())
    end = balanced_end(raw[start:])
    if end is None:
        return Draft("", raw, False, "The model's kernel has no end.", ())
    code = raw[start : start + end]
    refused = refusal(code)
    if refused:
        return Draft(code, raw, False, f"The model's kernel is not shown: {refused}.", ())
    return Draft(code, raw, True, "", assumptions_of(code))


def _has_whole_kernel(text: str) -> bool:
    start = text.find("__global__")
    return start >= 0 and balanced_end(text[start:]) is not None


def assumptions_of(code: str) -> tuple[str, ...]:
    """What a caller of a kernel has to provide, as far as its text shows.

    >>> assumptions_of("__global__ void f(const float *a, float *b, int n) { int i = threadIdx.x; b[i] = a[i]; }")
    ('a holds float and is only read; b holds float and is written.', 'Launch with a grid and a block of 1 dimension.')
    """
    source = Source("generated.cu", encoded(code))
    said: list[str] = []
    for parameter in descendants(source.root, "parameter_declaration"):
        declared = parameter.child_by_field_name("type")
        declarator = parameter.child_by_field_name("declarator")
        if declared is None or declarator is None or declarator.type != "pointer_declarator":
            continue
        name = next((n for n in walk(declarator) if n.type == "identifier"), None)
        if name is not None:
            read_only = any(child.type == "type_qualifier" and child.text == b"const" for child in parameter.children)
            role = "only read" if read_only else "written"
            said.append(f"{source.node_text(name)} holds {source.node_text(declared)} and is {role}")
    axes = [axis for axis in "xyz" if re.search(rf"\b(threadIdx|blockIdx)\s*\.\s*{axis}\b", code)]
    dimensions = "xyz".index(axes[-1]) + 1 if axes else 0
    result = ["; ".join(said) + "."] if said else []
    if dimensions:
        plural = "s" if dimensions > 1 else ""
        result.append(f"Launch with a grid and a block of {dimensions} dimension{plural}.")
    if re.search(r"\bextern\s+__shared__\b", code):
        result.append("Give the launch the bytes of its dynamic shared memory.")
    return tuple(result)
