"""Let only examples through that may be trained on.

    python -m warpwright_upskill.admission given.jsonl --out kept.jsonl

Lines that are no example, words that hold control tokens or parts of prompts, and formulas that do not agree with their
kernels are left out. KEPT.rejected.jsonl says why.
"""

from __future__ import annotations

import json
from pathlib import Path

import click
from warpwright.assist.formula_task import read_formula
from warpwright.formulas.model import Formula
from warpwright.writer.write import file_text, plain

from warpwright_upskill.console import StageError, fail, progress_bar, stage
from warpwright_upskill.data.evaluated import is_finite
from warpwright_upskill.data.poison import poison
from warpwright_upskill.examples import (
    EVALUATED,
    FORMULA,
    Example,
    Provenance,
    Rejected,
    read_example,
    write_json_lines,
)

KERNEL_NAME = "kernel_of_formula"
"""What the launch function of an example's formula is called."""


def refusal(example: Example) -> str:
    """What an example's text shows against it, in one sentence; "" where it shows nothing."""
    if reason := poison(example):
        return reason
    return _formula_refusal(example) if example.task == FORMULA else ""


def _formula_refusal(example: Example) -> str:
    if not example.problem.strip():
        return "It has no words."
    formula = read_formula(example.formula)
    if not isinstance(formula, Formula):
        return f"Its formula cannot be read: {formula}"
    if example.metrics.level == EVALUATED:
        if example.cuda_kernel:
            return "It has a kernel and says that it was evaluated alone."
        return "" if is_finite(formula) else "Its formula has values that are not finite."
    if file_text(plain(formula, KERNEL_NAME)) != example.cuda_kernel:
        return "Its kernel is not what is written for its formula: they do not agree."
    return ""


def admitted(path: Path) -> tuple[list[Example], list[Rejected]]:
    """The examples of a file that may be trained on, and what was left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}).") from None
    kept, rejected = [], []
    with progress_bar("examples", len(lines)) as progress:
        for number, line in enumerate(lines, 1):
            progress("read", number / len(lines))
            try:
                example = read_example(line, f"line {number}")
            except StageError as error:
                rejected.append(Rejected("", Provenance("", ""), str(error)))
                continue
            reason = refusal(example)
            if reason:
                rejected.append(Rejected(example.task, example.provenance, reason))
            else:
                kept.append(example)
    return kept, rejected


@click.command()
@click.argument("given", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON lines to write.")
def main(given: Path, out: Path) -> None:
    """Copy the examples of GIVEN that may be trained on to OUT."""
    kept, rejected = admitted(given)
    write_json_lines(out, kept)
    write_json_lines(out.with_suffix(".rejected.jsonl"), rejected)
    click.echo(json.dumps({"kept": len(kept), "rejected": len(rejected)}))
    if not kept:
        fail(f"No example passed; {out.with_suffix('.rejected.jsonl')} says why.")


if __name__ == "__main__":
    stage(main)
