"""`warpwright formula`: a formula as CUDA, checked against the formula itself."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import click

from warpwright.cli.inputs import arch_option
from warpwright.cli.report_text import report_text
from warpwright.cli.terminal import CannotRun, NumberRange, print_or_write, progress_line, say_note, stop_on_ctrl_c
from warpwright.files import read_start
from warpwright.formulas.derivative import NoDerivativeError, derivative
from warpwright.formulas.lexer import MOST_CHARACTERS, FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.progress import IsCancelled, Progress
from warpwright.schedules.model import Schedule
from warpwright.schedules.text import read_schedule
from warpwright.syntax.encoding import decoded, shown_in
from warpwright.verify.formulas import Asked, FormulaNotWrittenError, Written, written_and_checked
from warpwright.verify.report import PASSED
from warpwright.verify.schedule_search import Found
from warpwright.verify.torch_export import NotExportedError, plan_of
from warpwright.writer.extension import NoExtensionError
from warpwright.writer.forms import extension_codes, extension_files
from warpwright.writer.header import header_text
from warpwright.writer.names import function_name, is_reserved
from warpwright.writer.wire import wired
from warpwright.writer.write import file_text

MOST_SHOWN = 12
"""Schedules of a search."""
_MOST_DIGITS = 19
"""Of a size."""
NOT_BUILT = "The package itself was not built: `pip install --no-build-isolation .` in it does, and pytest tests it"
_NAME = re.compile(r"[A-Za-z_]\w*")


@click.command("formula")
@click.argument("text", metavar="[FORMULA]", required=False)
@click.option(
    "--torch",
    "exported",
    metavar="FILE::NAME",
    help="Write what a function or a module of PyTorch computes, in place of FORMULA. The file is run.",
)
@click.option(
    "--input",
    "inputs",
    metavar="f32[64,128]",
    multiple=True,
    help="An example of an argument for --torch, where the file has no get_inputs.",
)
@click.option("--name", metavar="NAME", help="The name of the function. [default: the first output's]")
@click.option(
    "--size", "sizes", metavar="N=1000", multiple=True, help="A size to check at, beside those that are always tried."
)
@click.option(
    "--schedule",
    "wanted",
    metavar="rows:lanes=128",
    help="How the work is laid on blocks and threads, in place of what the rules say; --search lists what fits.",
)
@click.option(
    "--search",
    "seconds",
    type=NumberRange(0.1, 3600),
    metavar="SECONDS",
    help="Try schedules at the sizes that --size gives: in the order of the cost model, and timed where a GPU is, for "
    "about so long. The best is written.",
)
@click.option("--plain", "is_plain", is_flag=True, help="A thread for each element and nothing more.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["cuda", "header", "extension", "package"]),
    default="cuda",
    show_default=True,
    help="A file of CUDA, a single header, a PyTorch extension (three files in the folder that --output names), or a "
    "package of PyTorch in that folder: operators with their backward, what builds it, and tests.",
)
@click.option(
    "--types", metavar="f32,bf16", default="", help="The element types of an extension or a package, in place of f32."
)
@click.option("--explain", "is_explained", is_flag=True, help="Say how the work is laid on blocks and threads.")
@click.option("--no-check", "is_unchecked", is_flag=True, help="Write only; nothing is compiled or run.")
@click.option("--output", "target", type=click.Path(path_type=Path), help="Write the kernel to this file.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@arch_option
def command(
    *,
    text: str | None,
    exported: str | None,
    inputs: tuple[str, ...],
    name: str | None,
    sizes: tuple[str, ...],
    wanted: str | None,
    seconds: float | None,
    is_plain: bool,
    form: str,
    types: str,
    is_explained: bool,
    is_unchecked: bool,
    target: Path | None,
    output: str,
    arch: str,
) -> int:
    """Write FORMULA as CUDA: kernels, and a function that launches them.

    FORMULA is text as in "y[r] = sum[c] x[r, c] * w[c]", a file that holds one, or - for standard input;
    docs/formulas.md tells the language. The kernels are compiled and run in the emulator beside the formula's own
    evaluation in double precision, at small, odd and empty sizes. With --torch a function or module is exported, in
    a process of its own that runs its file, and each of its parts that has a formula is written; what has none is
    named and stays torch's. Exit status: 0 written and correct, 1 not correct, 2 could not run.
    """
    if (text is None) == (exported is None):
        raise click.UsageError("give a FORMULA, or --torch FILE::NAME")
    if form in ("extension", "package") and target is None:
        files = "three files" if form == "extension" else "several files"
        raise click.UsageError(f"--as {form} writes {files}: name a folder with --output")
    if types and form not in ("extension", "package"):
        raise click.UsageError("--types goes with --as extension and --as package")
    if form == "package" and exported is not None:
        raise click.UsageError("--as package takes one formula: leave out --torch")
    if inputs and exported is None:
        raise click.UsageError("--input goes with --torch")
    if output == "json" and (form != "cuda" or target is not None):
        raise click.UsageError("--format json prints all there is: leave out --as and --output")
    if name is not None and (not _NAME.fullmatch(name) or is_reserved(name)):
        raise CannotRun(f"{name!r} cannot be the name of a function in CUDA")
    if sum((wanted is not None, seconds is not None, is_plain)) > 1:
        raise click.UsageError("give one of --schedule, --search and --plain")
    schedule = None if wanted is None else _schedule(wanted)
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        texts, notes = ({}, []) if exported is None else _exported(exported, inputs, progress)
        if text is not None:
            texts[""] = _read(text)
        made: list[Written] = []
        for own, said in texts.items():
            formula = _formula(said)
            function = name or own or function_name(formula.outputs[0].name)
            given = sizes_named(sizes, formula.sizes)
            asked = Asked(function, arch, given, is_plain, schedule, seconds, not is_unchecked)
            made.append(_written(formula, asked, progress, is_cancelled))
            if form == "package" and (backward := _backward(formula)):
                given = {size: number for size, number in given.items() if size in backward.sizes}
                asked = Asked(f"{function}_backward", arch, given, is_checked=not is_unchecked)
                made.append(_written(backward, asked, progress, is_cancelled))
    if output == "json":
        parts = [each.to_json() for each in made]
        click.echo(
            json.dumps(shown_in(parts[0] if exported is None else {"formulas": parts, "notes": notes}), indent=2)
        )
    else:
        _write(made, form, types, target)
        for each in made:
            _say(each, is_explained=is_explained, is_one_of_many=exported is not None)
        for note in notes:
            say_note(note)
    return 0 if all(each.report is None or each.report.status in PASSED for each in made) else 1


def _written(formula: Formula, asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> Written:
    try:
        made = written_and_checked(formula, asked, progress, is_cancelled)
    except FormulaNotWrittenError as error:
        raise CannotRun(str(error)) from None
    if is_cancelled():
        raise KeyboardInterrupt
    return made


def _backward(formula: Formula) -> Formula | None:
    """The formula of the backward, where there is one."""
    try:
        return formula_of(derivative(formula.text).text)
    except NoDerivativeError:
        return None


def _schedule(wanted: str) -> Schedule:
    try:
        return read_schedule(wanted)
    except ValueError as error:
        raise CannotRun(str(error)) from None


def _formula(said: str) -> Formula:
    try:
        return formula_of(said)
    except FormulaError as error:
        raise CannotRun(f"{error.reason}\n{_pointed(error)}") from None


def _exported(exported: str, inputs: tuple[str, ...], progress: Progress) -> tuple[dict[str, str], list[str]]:
    """The formulas of a function or module by name, and what stays torch's."""
    file, separator, name = exported.rpartition("::")
    if not separator or not Path(file).is_file():
        raise CannotRun(f"--torch takes a file and a name in it, as in model.py::Net, not {exported!r}")
    progress(f"Exporting {name}", None)
    try:
        plan = plan_of(Path(file), name, inputs=inputs)
    except NotExportedError as error:
        raise CannotRun(str(error)) from None
    if not plan.formulas:
        raise CannotRun(f"{name} has no part that is a formula. {' '.join(each.said for each in plan.calls)}")
    return {function_name(each.name): each.text for each in plan.formulas}, [each.said for each in plan.calls]


def _write(made: list[Written], form: str, types: str, target: Path | None) -> None:
    """The kernels alone on stdout, so that they can be redirected to a file, or into the files that are asked for."""
    if form in ("extension", "package"):
        assert target is not None
        files = _files(made, form, [kind for kind in types.split(",") if kind])
        for file, text in files.items():
            folder = (target / file).parent
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CannotRun(f"{folder} cannot be made ({error.strerror})") from None
            print_or_write(text, target / file, styled=False)
    elif form == "header":
        print_or_write("\n".join(header_text(each.code) for each in made), target, styled=False)
    else:
        print_or_write(file_text(*(each.code for each in made)), target, styled=False)


def _files(made: list[Written], form: str, types: list[str]) -> dict[str, str]:
    try:
        if form == "package":
            package = wired(made[0].formula.text, made[0].code.name, types)
            if package.no_backward:
                say_note(f"There is no backward: {package.no_backward}")
            say_note(NOT_BUILT)
            return package.files
        files: dict[str, str] = {}
        for each in made:
            codes = extension_codes(each.formula.text, each.code.name, types)
            files |= extension_files(codes, each.code.name)
        return files
    except (NoExtensionError, FormulaError) as error:
        raise CannotRun(str(error)) from None


def _say(made: Written, *, is_explained: bool, is_one_of_many: bool) -> None:
    if is_one_of_many:
        click.echo(made.formula.text, err=True)
    if is_explained:
        click.echo(made.explanation, err=True)
    if made.search is not None:
        click.echo(_search_table(made.search), err=True)
    if made.report is not None:
        click.echo(report_text(made.report.to_json(), whole=False), err=True)
    for each in made.formula.promises:
        say_note(f"The caller sees to it that {each}")


def _search_table(found: Found) -> str:
    """The schedules from the best to the worst."""
    where = f"measured on {found.gpu}" if found.gpu else "not timed, as there is no GPU: in the order of the cost model"
    sizes = ", ".join(f"{name} = {number}" for name, number in found.sizes.items())
    lines = [f"Schedules at {sizes or 'its sizes'}, {where}", f"{'predicted':>12}{'measured':>12}"]
    for each in found.candidates[:MOST_SHOWN]:
        figures = (each.predicted_us, each.measured_us)
        lines.append("".join(f"{'-' if us is None else f'{us:.1f} us':>12}" for us in figures) + f"  {each.schedule}")
        lines[-1] += f": {each.reason}" if each.reason else ""
    left = len(found.candidates) - MOST_SHOWN
    return "\n".join([*lines, *([f"and {left} more"] if left > 0 else [])])


def _read(text: str) -> str:
    if text == "-":
        return sys.stdin.read(MOST_CHARACTERS + 1)
    if "=" not in text:
        path = Path(text)
        if not path.is_file():
            raise CannotRun(f"{text!r} is neither a formula, which has an =, nor a file")
        try:
            return decoded(read_start(path, MOST_CHARACTERS + 1))
        except OSError as error:
            raise CannotRun(f"{path} cannot be read ({error.strerror})") from None
    return text


def _pointed(error: FormulaError) -> str:
    line, column = error.position
    return f"{error.text.splitlines()[line - 1] if error.text else ''}\n{' ' * (column - 1)}^"


def sizes_named(given: tuple[str, ...], known: tuple[str, ...], option: str = "--size") -> dict[str, int]:
    """The numbers that an option gives to sizes of a formula."""
    found: dict[str, int] = {}
    for each in given:
        name, _, number = each.partition("=")
        if not number.isdecimal() or len(number) > _MOST_DIGITS or int(number) >= 1 << 63:
            raise CannotRun(
                f"{option} takes a name and a number, as in {known[0] if known else 'N'}=1000, not {each!r}"
            )
        if name not in known:
            raise CannotRun(f"The formula has no size {name!r}: it has {', '.join(known) or 'none'}.")
        if found.get(name, int(number)) != int(number):
            raise CannotRun(f"{option} names {name} twice, as {found[name]} and as {number}.")
        found[name] = int(number)
    return found
