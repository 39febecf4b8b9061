"""Comments in words sent through the language server as an editor does: how many are answered with ghost text, and of
these how many compile and are right.

    python benchmarks/ghost_words.py [--requests 1000] [--plain] [--write]
    python benchmarks/ghost_words.py --prompts benchmarks/ghost/requests.toml ...

Requests are made by the wordings program of the corpus for compositions that are kept from training (its split
"held-out"), with a signature where it makes one in C; with `--plain` of all compositions without clauses, in the words
of their operator alone. With `--prompts` they are requests that were written by hand, in the form of `model/prompts`;
one without a signature is asked for by a key. A model answers where one is configured (`WARPWRIGHT_MODEL`,
`WARPWRIGHT_ADAPTER`): what it reads is a draft and has a line of its own in the table.

Shown: an answer came. Compiled: nvcc takes the document with it. Right: the formula that the answer says the words were
read as computes what is asked for: of prompts by the judge of `warpwright model eval`; of the corpus, by algebra or on
random inputs, what the composition's own formula computes, whatever the names are that the request leaves open, and
with leading dimensions taken as one. `--write` records the result in benchmarks/results/ghost_words.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

from edit_latency import figures
from hardware import processor
from hover_latency import PROCESSORS, Client, answer
from warpwright.formulas.equality import same
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_votes import agree
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.writer.names import renamed

RESULT = Path(__file__).resolve().parent / "results" / "ghost_words.json"
MOST_ORDERS = 200
_PARAMETERS = re.compile(r"\w\s*\(([^(){}]*)\)|^([^(){}]*[*&][^(){}]*)$", re.DOTALL)
_READ_AS = re.compile(r"// (draft, )?read as: (.*?)(?:  # .*)?$", re.MULTILINE)
_HEADERS = {"half": "cuda_fp16.h", "bfloat16": "cuda_bf16.h", "fp8": "cuda_fp8.h", "omplex": "cuComplex.h"}
"""What a file includes whose signature has such a type."""
_VERDICTS = ("shown", "compiled", "right")
Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A comment, a signature in C or "", and the formula or the prompt that tells what is right."""

    comment: str
    given: str
    expected: Any

    @property
    def text(self) -> str:
        lines = "".join(f"// {line.strip()}\n" for line in self.comment.splitlines() if line.strip())
        headers = "".join(f"#include <{header}>\n" for type, header in _HEADERS.items() if type in self.given)
        return f"{headers}{lines}__global__ void kernel({self.given}) {{" if self.given else lines


def of_corpus(count: int, seed: str, is_plain: bool) -> Iterator[Request]:
    from warpwright_upskill.data.requests import compose, wording
    from warpwright_upskill.data.splits import side_of
    from warpwright_upskill.examples import HELD_OUT

    made, number = 0, 0
    while made < count:
        name, number = f"{seed}/{number}", number + 1
        parts = compose.composed(name)
        chance = Random(f"{name}/words")
        if is_plain:
            if parts.before or parts.after or parts.in_place or parts.adds or ":" in parts.text:
                continue
            yield Request(wording.phrase_alone(parts, chance), "", parts.formula)
        elif side_of(parts) == HELD_OUT:
            words = wording.worded(parts, chance)
            yield Request(words.comment, given_in_c(words.given), parts.formula)
        else:
            continue
        made += 1


def of_prompts(paths: list[Path]) -> Iterator[Request]:
    from warpwright_upskill.prompts import read_prompts

    for path in paths:
        for prompt in read_prompts(path):
            yield Request(prompt.comment, given_in_c(prompt.given), prompt)


def given_in_c(given: str) -> str:
    """The parameters of a signature in C, "" of another text.

    >>> given_in_c("void f(const float* x, int n);"), given_in_c("x: Tensor[R, C]")
    ('const float* x, int n', '')
    """
    found = _PARAMETERS.search(given.strip())
    inside = (found[1] or found[2] or "") if found else ""
    return " ".join(inside.split()).rstrip(";") if "*" in inside and ":" not in inside else ""


def asked_for(request: Request) -> str:
    return request.expected.text if isinstance(request.expected, Formula) else request.expected.id


def is_right(request: Request, text: str, worker: Any) -> bool:
    """Whether the formula of an answer computes what is asked for."""
    if isinstance(request.expected, Formula):
        return agrees(formula_of(text), request.expected, f"{request.comment} {request.given}")
    from warpwright_upskill.evaluation.judge import judge

    return judge(worker, request.expected, text).right


def agrees(found: Formula, expected: Formula, words: str) -> bool:
    """Whether both compute the same for some names of what the words leave unnamed.

    >>> agrees(formula_of("y[r] = sum[c] x[r, c]"), formula_of("s[b, t] = mean[k] 2 * a[b, t, k]"), "")
    False
    >>> agrees(formula_of("y[r] = sum[c] x[r, c]"), formula_of("s[b, t] = sum[k] a[b, t, k]"), "")
    True
    """
    for each in (expected, *_of_lower_rank(expected)):
        ours, theirs = _names(found), _names(each)
        if len(ours) != len(theirs):
            continue
        said = {name for name in theirs if re.search(rf"\b{re.escape(name)}\b", words)}
        for number, order in enumerate(permutations(theirs)):
            if number >= MOST_ORDERS:
                break
            if any(other in said and other != mine for mine, other in zip(ours, order, strict=True)):
                continue
            mine = renamed(found, dict(zip(ours, order, strict=True)), {})
            if same(mine, each) or agree(mine, each):
                return True
    return False


def _names(formula: Formula) -> list[str]:
    """Results first, so that those of both formulas meet in the first orders."""
    arrays = sorted({each.array: each.role == "in" for each in formula.tensors.values()}.items(), key=lambda e: e[1])
    return [*(name for name, _ in arrays), *formula.scalars]


def _of_lower_rank(formula: Formula) -> Iterator[Formula]:
    """The formula with its first two dimensions as one, as often as they stand side by side only."""
    text = printed_in_one_line(parse(formula.text))
    for _ in range(3):
        dims = formula.outputs[0].dims
        if len(dims) < 2:
            return
        text = re.sub(rf"\b{dims[0]}, {dims[1]}\b", dims[1], text)
        text = re.sub(rf"\b{dims[0].upper()}, {dims[1].upper()}\b", dims[1].upper(), text)
        if re.search(rf"\b(?:{dims[0]}|{dims[0].upper()})\b", text):
            return
        try:
            formula = formula_of(text)
        except FormulaError:
            return
        yield formula


def asked(client: Client, path: Path, text: str) -> tuple[float, str]:
    """The seconds to the answer, and the text that is shown, "" where nothing is."""
    uri = client.open(path, text)
    lines = text.split("\n")
    position = {"line": len(lines) - 1, "character": len(lines[-1])}
    kind = 2 if text.endswith("{") or "// kernel" in text else 1
    request = {"textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": kind}}
    seconds, found = answer(client, "textDocument/inlineCompletion", request)
    client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    return seconds, found["items"][0]["insertText"] if found else ""


def measured(requests: Iterator[Request], worker: Any) -> Json:
    client = Client({"inlineCompletion": {}})
    times: list[float] = []
    missed: list[float] = []
    number_asked = 0
    counts = {kind: dict.fromkeys(_VERDICTS, 0) for kind in ("certain", "draft")}
    wrong: list[Json] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, request in enumerate(requests):
            number_asked += 1
            seconds, shown = asked(client, Path(folder) / f"{number}.cu", request.text)
            read_as = _READ_AS.search(shown)
            if not shown or read_as is None:
                missed.append(seconds)
                continue
            times.append(seconds)
            kind = counts["draft" if read_as[1] else "certain"]
            kind["shown"] += 1
            kind["compiled"] += compile_cubin(Source("shown.cu", encoded(request.text + shown)), arch="sm_90").ok
            right = is_right(request, read_as[2], worker)
            kind["right"] += right
            if not right:
                wrong.append(
                    {
                        "comment": request.comment,
                        "given": request.given,
                        "read_as": read_as[2],
                        "asked": asked_for(request),
                    }
                )
            print(
                f"{'right' if right else 'WRONG'} {seconds:5.1f} s  {request.comment[:90]}", file=sys.stderr, flush=True
            )
    client.end()
    return {
        "asked": number_asked,
        **counts,
        "shown_after": figures(times) if times else None,
        "nothing_after": figures(missed) if missed else None,
        "wrong": wrong,
    }


def table(result: Json) -> str:
    """The counts as lines."""
    lines = [f"{result['asked']} asked", f"{'':8}{''.join(f'{each:>10}' for each in _VERDICTS)}"]
    lines += [f"{kind:8}{''.join(f'{result[kind][each]:10}' for each in _VERDICTS)}" for kind in ("certain", "draft")]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", default="ghost")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--prompts", type=Path, nargs="+", default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    worker = None
    if options.prompts:
        from warpwright_upskill.evaluation.references import prepare
        from warpwright_upskill.evaluation.worker import Worker

        worker = Worker(prepare)
        requests = of_prompts(options.prompts)
    else:
        requests = of_corpus(options.requests, options.seed, options.plain)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    result = {
        "what": "comments in words, sent through the language server: shown, compiled, right",
        "command": f"python benchmarks/ghost_words.py {' '.join(sys.argv[1:])}",
        **measured(requests, worker),
        "hardware": processor(),
        "versions": {"python": platform.python_version(), "warpwright": version("warpwright")},
    }
    print(json.dumps(result, indent=2))
    print(table(result))
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
