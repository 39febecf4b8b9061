"""`warpwright profile`: what each line of a kernel executed and moved, in one run of it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import click

from warpwright.cli.inputs import Compiled, choose_kernel, compile_options, nvcc_flags
from warpwright.cli.terminal import (
    CannotRun,
    print_or_write,
    progress_line,
    say_error,
    say_note,
    say_warning,
    stop_on_ctrl_c,
)
from warpwright.editor.profile.store import placed, store_profile
from warpwright.editor.profile.view import View, view_of
from warpwright.emulator.profiling import Wanted, emulated_profile
from warpwright.facts.model import Program
from warpwright.facts.profile import Profile
from warpwright.facts.profile_document import profile_json
from warpwright.missing import Missing
from warpwright.problems.guesses import NOT_RECONSTRUCTED
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.encoding import shown_in
from warpwright.syntax.source import SourceError, read_source
from warpwright.toolchain.ncu import exported, find_ncu
from warpwright.toolchain.ncu_profile import profiles_of
from warpwright.toolchain.ncu_tables import NcuError

ORDERS = ("line", "instructions", "sectors", "wavefronts", "divergence")


def parse_sizes(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """Sizes from `n=1000`, given one by one or with commas."""
    sizes: dict[str, int] = {}
    for part in (part.strip() for value in values for part in value.split(",")):
        name, _, size = part.partition("=")
        if not name.strip() or not size.strip().isdecimal() or int(size) < 1:
            raise click.BadParameter(f"'{part}' is not a size; write it as n=1000")
        sizes[name.strip()] = int(size)
    return sizes


@click.command("profile")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option("--kernel", metavar="NAME", help="The kernel; needed where the file has several.")
@click.option(
    "--shape",
    "sizes",
    multiple=True,
    metavar="NAME=SIZE",
    callback=parse_sizes,
    help="A size of the problem, such as n=1000 (repeatable); `warpwright problem` lists them. [default: the "
    "problem's shape for a profile]",
)
@click.option(
    "--backend",
    type=click.Choice(["emulator", "ncu"]),
    default="emulator",
    show_default=True,
    help="ncu runs the kernel on this machine's GPU under Nsight Compute.",
)
@click.option(
    "--from",
    "report",
    metavar="REPORT",
    help="Take the counts from a report of Nsight Compute's (.ncu-rep), or from its source page as CSV.",
)
@click.option(
    "--against",
    metavar="FILE",
    help="An earlier text of the kernel: run it at the same sizes, and show each line before and now.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    show_default=True,
    help="text for people, html for the annotated source in a browser.",
)
@click.option("--sort", "order", type=click.Choice(ORDERS), default="line", show_default=True, help="Of the text.")
@click.option("--output", "target", metavar="PATH", help="Write to this file; without it html goes to FILE's name.")
@compile_options
def command(
    *,
    file: str,
    kernel: str | None,
    sizes: dict[str, int],
    backend: str,
    report: str | None,
    against: str | None,
    output: str,
    order: str,
    target: str | None,
    compiled: Compiled,
) -> int:
    """Show what each line of a kernel executed: instructions, threads, sectors, wavefronts, divergent branches.

    The emulator runs the compiler's PTX on the CPU, and checks the kernel as it runs. The profile is kept: while the
    text stays as it is, hovers and `check --profile` carry its numbers. Exit status: 0 done, 1 the run found faults,
    2 it could not be run, or what it found may come of what was guessed of the launch.
    """
    if report is not None and sizes:
        raise CannotRun("--shape is for a run; a report has its own sizes. Leave one of the two out.")
    if against is not None and report is not None:
        raise CannotRun("--against runs both texts; a report is of one. Leave one of the two out.")
    if against is not None and output == "json":
        raise CannotRun("--against is for text and html; `--format json` gives each profile by itself.")
    program = _program(file, compiled)
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        if report is not None:
            progress("Reading the report", None)
            profiles = from_report(Path(report), program, kernel, is_cancelled)
        else:
            name = choose_kernel(program, kernel).name
            profiles = [_run(program, name, sizes, backend, compiled, progress, is_cancelled)]
        profile = profiles[0]
        earlier = None
        if against is not None:
            other = _program(against, compiled)
            same = kernel or (profile.kernel if other.kernel(profile.kernel) else None)
            name, sizes = choose_kernel(other, same).name, dict(profile.launch.shape)
            earlier = view_of(_run(other, name, sizes, backend, compiled, progress, is_cancelled), other)
    if others := ", ".join(dict.fromkeys(p.function or p.kernel for p in profiles[1:])):
        say_note(f"{report} also has {others}; --kernel names one.")
    for each in profiles:
        _keep(each)
    _print(view_of(profile, program), earlier, output, order, Path(target) if target else None)
    if profile.faults and not profile.own_faults:
        say_error(f"{profile.kernel}: {NOT_RECONSTRUCTED}: say in directives what was guessed")
        return 2
    return int(bool(profile.faults))


def _run(
    program: Program,
    kernel: str,
    sizes: dict[str, int],
    backend: str,
    compiled: Compiled,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Profile:
    """The profile of one run. Raises CannotRun."""
    flags = nvcc_flags(compiled, program.source)
    if backend == "ncu":
        from warpwright.verify.profile import measured_profile

        made = measured_profile(program, kernel, sizes, flags, progress, is_cancelled)
    else:
        assume, folders = compiled.assumptions(program.source), compiled.include_folders(program.source)
        made = emulated_profile(program, Wanted(kernel, sizes, assume, folders, flags=flags), progress, is_cancelled)
    if isinstance(made, Missing):
        raise CannotRun(str(made).strip())
    return placed(made, program) or made


def _program(file: str, compiled: Compiled) -> Program:
    try:
        source = read_source(file)
    except SourceError as error:
        raise CannotRun(str(error)) from None
    for warning in compiled.warnings(source):
        say_warning(warning)
    program = compiled.program(source)
    if not program.defined_kernels:
        raise CannotRun(f"{file}: no kernel (__global__ function) in this file")
    return program


def from_report(report: Path, program: Program, kernel: str | None, is_cancelled: IsCancelled) -> list[Profile]:
    """The profiles in a report or a table, the one with the most instructions first. Raises CannotRun."""
    names = [kernel] if kernel is not None else [each.name for each in program.defined_kernels]
    if kernel is not None and program.kernel(kernel) is None:
        known = ", ".join(each.name for each in program.defined_kernels)
        raise CannotRun(f"{program.source.path}: no kernel '{kernel}'; it has: {known}")
    texts = {program.source.path: program.source.data}
    texts |= {path: source.data for path, source in program.sources.items()}
    try:
        if _is_text(report):
            return profiles_of(report, texts, names, source=report.name)
        ncu = find_ncu()
        if isinstance(ncu, Missing):
            raise CannotRun(f"{report} needs Nsight Compute to be read: {ncu}")
        with exported(ncu, report, is_cancelled) as (table, launches):
            return profiles_of(table, texts, names, launches, report.name)
    except NcuError as error:
        raise CannotRun(str(error)) from None


def _is_text(report: Path) -> bool:
    """Whether a file is a table and no report, which is binary."""
    try:
        with report.open("rb") as file:
            return b"\0" not in file.read(4096) and report.suffix != ".ncu-rep"
    except OSError as error:
        raise CannotRun(f"{report} cannot be read ({error.strerror})") from None


def _keep(profile: Profile) -> None:
    try:
        store_profile(profile)
    except OSError as error:
        say_warning(f"the profile could not be kept ({error.strerror}); set WARPWRIGHT_CACHE_DIR")


def _print(view: View, earlier: View | None, output: str, order: str, target: Path | None) -> None:
    shown = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if shown else None
    if output == "json":
        text = json.dumps(shown_in(profile_json(view.profile)), indent=1)
    elif output == "html":
        from warpwright.editor.profile.html import profile_html

        text = profile_html(view, earlier)
        source = Path(next(iter(view.profile.texts), view.files[0].path))
        target = target or Path(f"{source.stem}.{view.profile.kernel}.html")
    elif earlier is not None:
        from warpwright.cli.profiles_text import profiles_text

        text = profiles_text(earlier, view, width)
    else:
        from warpwright.cli.profile_text import profile_text

        text = profile_text(view, order, width)
    print_or_write(text, target, styled=output == "text")
