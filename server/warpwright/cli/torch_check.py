"""`warpwright torch-check`: does PyTorch run this kernel, in which calls, and what does it gain."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import click

from warpwright.cli.terminal import CannotRun, NumberRange, progress_line, stop_on_ctrl_c
from warpwright.editor.torch_check_page import torch_check_html
from warpwright.syntax.encoding import shown_in
from warpwright.verify.torch_check import CHECK_SECONDS, CHECKS, Asked, NotCheckedError, TorchCheck, torch_check
from warpwright.verify.torch_check_words import HEAD, explained, headline, markdown, row, sight, step_words


@click.command("torch-check")
@click.argument("target", metavar="MODULE:OPERATOR")
@click.option("--input", "inputs", metavar="f32[64,128]", multiple=True, help="An argument: a tensor, or a number.")
@click.option(
    "--arguments",
    metavar="NAME",
    default="get_inputs",
    show_default=True,
    help="The function of the module that gives the arguments, where there is no --input.",
)
@click.option(
    "--kernel",
    "kernels",
    metavar="NAME",
    multiple=True,
    help="A kernel or operator; one of those named must run. [default: each in the plain call that is not torch's own]",
)
@click.option("--backward", metavar="NAME", multiple=True, help="One that must run in the backward.")
@click.option("--reference", metavar="NAME", default="", help="What computes the same in torch, in the module.")
@click.option(
    "--step",
    metavar="NAME",
    default="",
    help="A function of the module that makes one training step with the operator that it is handed: timed with the "
    "operator and with --reference.",
)
@click.option(
    "--only",
    metavar="CHECK",
    multiple=True,
    type=click.Choice(("eager", *CHECKS)),
    help="Make this check only, behind the plain call (eager).",
)
@click.option("--skip", metavar="CHECK", multiple=True, type=click.Choice(CHECKS), help="Leave this check out.")
@click.option(
    "--timeout",
    type=NumberRange(1, 3600),
    default=CHECK_SECONDS,
    show_default=True,
    help="Timeout of each check, in seconds.",
)
@click.option(
    "--format", "output", type=click.Choice(["text", "json", "markdown", "html"]), default="text", show_default=True
)
def command(
    *,
    target: str,
    inputs: tuple[str, ...],
    arguments: str,
    kernels: tuple[str, ...],
    backward: tuple[str, ...],
    reference: str,
    step: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    timeout: float,
    output: str,
) -> int:
    """Call an operator of PyTorch in every way in which a program may, and say in which its kernel did not run.

    MODULE is a name that can be imported or a file, which is run, OPERATOR a function or module in it, as in
    ops.py:scale or mine.ops:scale. It runs in a process of its own that can write nowhere else and reach no network;
    a call that crashes or hangs is one line of the table. Without a GPU launches cannot be seen: then it is said
    whether torch dispatched the operator. Exit status: 0 the kernel ran wherever there was a result, 1 a silent
    fallback, a wrong result, a graph break, a crash or a hang, 2 could not run.
    """
    module, separator, operator = target.rpartition(":")
    if not separator or not module.rstrip(":") or not operator:
        raise click.UsageError("name a module and an operator in it, as in ops.py:scale")
    if step and not reference:
        raise click.UsageError("--step needs --reference, beside which it is timed")
    wanted = tuple(each for each in CHECKS if (not only or each in only) and each not in skip)
    asked = Asked(module.rstrip(":"), operator, inputs, arguments, kernels, backward, reference, step, wanted, timeout)
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        try:
            report = torch_check(asked, progress, is_cancelled)
        except NotCheckedError as error:
            raise CannotRun(str(error)) from None
    if output == "json":
        click.echo(json.dumps(shown_in(report.to_json()), indent=2))
    else:
        click.echo(_FORMS[output](report))
    return 1 if report.faults else 0


def _text(report: TorchCheck) -> str:
    rows = [HEAD, *(row(each) for each in report.found)]
    widths = [max(len(each[place]) for each in rows) for place in range(4)]
    lines = [click.style(headline(report), bold=True, fg="red" if report.faults else "green"), sight(report), ""]
    for number, each in enumerate(rows):
        left = [text.ljust(width) for text, width in zip(each[:2], widths[:2], strict=True)]
        right = [text.rjust(width) for text, width in zip(each[2:4], widths[2:], strict=True)]
        line = "  ".join([*left, *right, each[4]]).rstrip()
        is_fault = number and report.found[number - 1].is_fault
        lines.append(click.style(line, bold=number == 0, fg="red" if is_fault else None))
    lines += ["", *(explained(each) for each in report.faults)] if report.faults else []
    lines += ["", step_words(report.step)] if report.step is not None else []
    return "\n".join(lines)


_FORMS: Mapping[str, Callable[[TorchCheck], str]] = {"text": _text, "markdown": markdown, "html": torch_check_html}
