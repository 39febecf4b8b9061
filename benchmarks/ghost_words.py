"""Comments in words sent through the language server as an editor does: how many are answered with ghost text, and of
these how many compile and are right.

    python benchmarks/ghost_words.py [--prompts FILE.toml ...] [--every 6] [--first 2] [--write]
    python benchmarks/ghost_words.py --requests 1000 [--plain] [--write]

Requests are the prompts that people wrote by hand and that no model is taught with (`model/prompts`, all of them
without `--prompts`), and of such a file the comments under `[[nothing]]`, for which nothing is right. One without a
signature is asked for by a key. With `--requests` they are made by the wordings
program of the corpus, for compositions that are kept from training (its split "held-out"), with a signature where it
makes one in C; with `--plain` of all compositions without clauses, in the words of their operator alone. A model
answers where one is configured (`WARPWRIGHT_MODEL`, `WARPWRIGHT_ADAPTER`, or the installed one).

The table has a line for what rules read, which is shown without a mark; for formulas that a model read and for CUDA
text that it wrote, which are marked as drafts; and for prompts for each file, all together. Shown: an answer came.
Compiled: nvcc takes the document with it. Right: the formula that the answer says the words were read as computes what
is asked for: of prompts by the judge of `warpwright model eval`; of the corpus, by algebra or on random inputs, what
the composition's own formula computes, whatever the names are that the request leaves open, and with leading dimensions
taken as one. Of CUDA text nobody can say it. `--write` records the result in benchmarks/results: ghost_words.json, of
files of your own ghost_words_FILE.json, of the corpus ghost_words_corpus.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import tempfile
import tomllib
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
from warpwright.assist.endpoint import Endpoint
from warpwright.assist.opening import named_model
from warpwright.assist.weights import find_adapter
from warpwright.formulas.equality import same
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_votes import agree
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of
from warpwright.missing import Missing
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.writer.names import renamed

RESULTS = Path(__file__).resolve().parent / "results"
PROMPTS = Path(__file__).resolve().parents[1] / "model" / "prompts"
MOST_ORDERS = 200
_PARAMETERS = re.compile(r"\w\s*\(([^(){}]*)\)|^([^(){}]*[*&][^(){}]*)$", re.DOTALL)
_READ_AS = re.compile(r"// (draft, )?read as: (.*?)(?:  # .*)?$", re.MULTILINE)
_WRITTEN = "// draft: "
CERTAIN, READ, TEXT = "certain", "draft", "draft in CUDA text"
_HEADERS = {"half": "cuda_fp16.h", "bfloat16": "cuda_bf16.h", "fp8": "cuda_fp8.h", "omplex": "cuComplex.h"}
"""What a file includes whose signature has such a type."""
_VERDICTS = ("shown", "compiled", "right")
Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A comment, a signature in C or "", the formula or the prompt that tells what is right, None where nothing is, and
    the file of prompts that it is from."""

    comment: str
    given: str
    expected: Any
    file: str = ""

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
            if words.given and not given_in_c(words.given):
                continue  # a file of CUDA holds no such signature
            yield Request(words.comment, given_in_c(words.given), parts.formula)
        else:
            continue
        made += 1


def of_prompts(paths: list[Path], every: int, first: int) -> Iterator[Request]:
    from warpwright_upskill.prompts import read_prompts

    prompts = [(path, prompt) for path in paths for prompt in read_prompts(path)]
    for path, prompt in prompts[first::every]:
        yield Request(prompt.comment, given_in_c(prompt.given), prompt, path.stem)
    for path in paths:
        for table in tomllib.loads(path.read_text(encoding="utf-8")).get("nothing", []):
            yield Request(table["comment"], given_in_c(table.get("given", "")), None, f"{path.stem}: nothing")


def given_in_c(given: str) -> str:
    """The parameters of a signature in C, "" of another text.

    >>> given_in_c("void f(const float* x, int n);"), given_in_c("x: Tensor[R, C]")
    ('const float* x, int n', '')
    """
    found = _PARAMETERS.search(given.strip())
    inside = (found[1] or found[2] or "") if found else ""
    return " ".join(inside.split()).rstrip(";") if "*" in inside and ":" not in inside else ""


def asked_for(request: Request) -> str:
    if request.expected is None:
        return "nothing"
    return request.expected.text if isinstance(request.expected, Formula) else request.expected.id


def is_right(request: Request, text: str, worker: Any) -> bool:
    """Whether the formula of an answer computes what is asked for."""
    if request.expected is None:
        return False
    if isinstance(request.expected, Formula):
        return agrees(formula_of(text), request.expected, f"{request.comment} {request.given}")
    from warpwright_upskill.evaluation.judge import judge

    verdict = judge(worker, request.expected, text)
    if verdict.kind == "reference":
        raise SystemExit(verdict.reason)
    return verdict.right


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


def measured(requests: Iterator[Request], worker: Any, limit: float) -> Json:
    client = Client({"inlineCompletion": {}})
    client.patience_seconds = limit + 60
    client.tell("workspace/didChangeConfiguration", {"settings": {"warpwright": {"ghostTextSeconds": limit}}})
    times: list[float] = []
    missed: list[float] = []
    number_asked = 0
    counts = {kind: dict.fromkeys(_VERDICTS, 0) for kind in (CERTAIN, READ, TEXT)}
    files: dict[str, dict[str, int]] = {}
    wrong: list[Json] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, request in enumerate(requests):
            number_asked += 1
            of_file = files.setdefault(request.file, {"asked": 0, **dict.fromkeys(_VERDICTS, 0)})
            of_file["asked"] += 1
            seconds, shown = asked(client, Path(folder) / f"{number}.cu", request.text)
            read_as = _READ_AS.search(shown)
            if read_as is None and not shown.lstrip().startswith(_WRITTEN):
                missed.append(seconds)
                continue
            times.append(seconds)
            kind = counts[TEXT if read_as is None else READ if read_as[1] else CERTAIN]
            compiles = compile_cubin(Source("shown.cu", encoded(request.text + shown)), arch="sm_90").ok
            right = read_as is not None and is_right(request, read_as[2], worker)
            for each in (kind, of_file):
                each["shown"] += 1
                each["compiled"] += compiles
                each["right"] += right
            if not right and read_as is not None:
                wrong.append(
                    {
                        "comment": request.comment,
                        "given": request.given,
                        "read_as": read_as[2],
                        "is_draft": bool(read_as[1]),
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
        "files": {name: each for name, each in files.items() if name},
        "shown_after": figures(times) if times else None,
        "nothing_after": figures(missed) if missed else None,
        "wrong": wrong,
    }


def table(result: Json) -> str:
    """The counts as lines; what is right of CUDA text is not known."""
    columns = ("asked", *_VERDICTS)
    rows = [(kind, {**result[kind], "right": "?"} if kind == TEXT else result[kind]) for kind in (CERTAIN, READ, TEXT)]
    rows += list(result["files"].items())
    both = {each: result[CERTAIN][each] + result[READ][each] + result[TEXT][each] for each in _VERDICTS}
    rows.append(("all", {"asked": result["asked"], **both}))
    lines = [f"{'':24}{''.join(f'{each:>10}' for each in columns)}"]
    lines += [f"{name:24}{''.join(f'{row.get(each, str()):>10}' for each in columns)}" for name, row in rows]
    return "\n".join(lines)


def record_of(requests: int, prompts: list[Path]) -> str:
    """The name of the file that holds a result.

    >>> record_of(0, [Path("benchmarks/ghost/comments.toml")]), record_of(1000, [])
    ('ghost_words_comments.json', 'ghost_words_corpus.json')
    """
    if requests:
        return "ghost_words_corpus.json"
    others = [each.stem for each in prompts if each.resolve().parent != PROMPTS]
    return "_".join(["ghost_words", *others]) + ".json"


def said_of_model() -> Json:
    """What may be asked beside the rules: its name and its adapter's, or what is missing."""
    found = named_model(None)
    if isinstance(found, Missing):
        return {"missing": found.reason}
    adapter = None if isinstance(found, Endpoint) else find_adapter(found)
    return {"name": found.name, "adapter": adapter and adapter.name}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--seed", default="ghost")
    parser.add_argument("--seconds", type=float, default=20, help="the setting ghostTextSeconds")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="of the prompts, so many apart")
    parser.add_argument("--first", type=int, default=0, help="how many prompts stand before the first one asked for")
    parser.add_argument("--prompts", type=Path, nargs="+", default=sorted(PROMPTS.glob("*.toml")))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    worker = None
    if not options.requests:
        from warpwright_upskill.evaluation.references import prepare
        from warpwright_upskill.evaluation.worker import Worker

        worker = Worker(prepare)
        requests = of_prompts(options.prompts, options.every, options.first)
    else:
        requests = of_corpus(options.requests, options.seed, options.plain)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    result = {
        "what": "comments in words, sent through the language server: shown, compiled, right",
        "command": " ".join(["python benchmarks/ghost_words.py", *sys.argv[1:]]),
        "model": said_of_model(),
        **measured(requests, worker, options.seconds),
        "hardware": processor(),
        "versions": {"python": platform.python_version(), "warpwright": version("warpwright")},
    }
    print(json.dumps(result, indent=2))
    print(table(result))
    if options.write:
        (RESULTS / record_of(options.requests, options.prompts)).write_text(
            json.dumps(result, indent=2) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
