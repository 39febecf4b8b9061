"""`warpwright wire`: a kernel as a package of PyTorch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from warpwright.cli.inputs import Compiled, choose_kernel, compile_options, nvcc_flags, read_program
from warpwright.cli.report_text import report_text
from warpwright.cli.terminal import CannotRun, print_or_write, progress_line, say_note, stop_on_ctrl_c
from warpwright.editor.formula_comment import formula_of_kernel
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.resolve import formula_of
from warpwright.syntax.encoding import shown_in
from warpwright.verify.given_kernel import FLOATS, NotWiredError
from warpwright.verify.wire import Asked, package_name, wired_kernel

_NAME = re.compile(r"[A-Za-z_]\w*")


@click.command("wire")
@click.argument("target", metavar="FILE[:KERNEL]")
@click.option(
    "--formula",
    "formula",
    metavar="TEXT",
    help="What the kernel computes, in the names of its parameters. [default: what the comment above it says]",
)
@click.option("--name", metavar="NAME", help="The name of the package. [default: the kernel's]")
@click.option(
    "--types",
    metavar="f32,bf16",
    default="",
    help="The element types of a template. [default: all of f32, f64, f16 and bf16 that compile and are right]",
)
@click.option(
    "--output", "target_folder", type=click.Path(path_type=Path), help="The folder to write to. [default: ./NAME]"
)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@compile_options
def command(
    *,
    target: str,
    formula: str | None,
    name: str | None,
    types: str,
    target_folder: Path | None,
    output: str,
    compiled: Compiled,
) -> int:
    """Write a package of PyTorch around KERNEL of FILE: its operator, what builds it, and its tests.

    The operator has a schema, checks of what it is handed, a device guard and the current stream, one kernel for each
    type of elements, a fake kernel for torch.compile, and a backward: of the formula's derivative where the kernel's
    formula is known, else a stub that raises an error. Where nvcc is, the kernel is compiled for each type and, where
    there is a formula, compared with it in the emulator; where torch is, the operator is compiled. Exit status: 0
    written, 2 could not run.
    """
    file, _, kernel_name = (target, "", "") if Path(target).is_file() else target.rpartition(":")
    program = read_program(file or target, compiled)
    kernel = choose_kernel(program, kernel_name or None)
    called = name or package_name(kernel.name)
    if not _NAME.fullmatch(called) or package_name(called) != called:
        raise CannotRun(f"{called!r} cannot be the name of a package")
    kinds = tuple(each for each in types.split(",") if each)
    if unknown := [each for each in kinds if each not in FLOATS]:
        raise CannotRun(f"{unknown[0]!r} is not an element type: --types takes some of {', '.join(FLOATS)}")
    above = formula_of_kernel(kernel)
    text = formula if formula is not None else "" if above is None else above.text
    flags = nvcc_flags(compiled, program.source)
    asked = Asked(called, text, kinds, compiled.arch or "sm_90", flags)
    try:
        if text:
            formula_of(text)
        with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
            made = wired_kernel(program, kernel, asked, progress, is_cancelled)
    except NotWiredError as error:
        raise CannotRun(str(error)) from None
    except FormulaError as error:
        raise CannotRun(f"The formula cannot be read. {error}") from None
    if output == "json":
        click.echo(json.dumps(shown_in(made.to_json()), indent=2))
        return 0
    folder = target_folder or Path(called)
    for each, written in made.package.files.items():
        try:
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotRun(f"{(folder / each).parent} cannot be made ({error.strerror})") from None
        print_or_write(written, folder / each, styled=False)
    for report in made.reports.values():
        click.echo(report_text(report.to_json(), whole=False), err=True)
    for note in made.notes:
        say_note(note)
    return 0
