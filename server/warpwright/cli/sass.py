"""`warpwright sass`: the machine code, or the PTX, that each source line became."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from warpwright.cli.inputs import Compiled, compile_options, nvcc_flags, read_program
from warpwright.cli.terminal import CannotRun, print_or_write, progress_line, stop_on_ctrl_c
from warpwright.editor.machine.listing import Listing, listing
from warpwright.facts.model import Program
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.encoding import shown_in
from warpwright.syntax.names import unqualified
from warpwright.toolchain.compile import compile_cubin, compile_ptx
from warpwright.toolchain.machine_code import DisassemblyError
from warpwright.toolchain.machine_view import KernelCode, MachineView, machine_view, view_json


@click.command("sass")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option(
    "--kernel", metavar="NAME", help="Only this kernel, or one instance of it, such as 'sum<float>'. [default: all]"
)
@click.option("--line", type=click.IntRange(min=1), metavar="N", help="Only what this line of FILE became.")
@click.option("--ptx", is_flag=True, help="Show the PTX in place of the machine code.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "html", "markdown"]),
    default="text",
    show_default=True,
    help="text for people, html for source and machine code side by side in a browser.",
)
@click.option("--output", "target", metavar="PATH", help="Write to this file; without it html goes to FILE's name.")
@compile_options
def command(
    *,
    file: str,
    kernel: str | None,
    line: int | None,
    ptx: bool,
    output: str,
    target: str | None,
    compiled: Compiled,
) -> int:
    """Show the machine code (SASS) that each line of a kernel became, and what in it is worth a look.

    nvcc compiles the file as compile_commands.json says, nvdisasm disassembles it; no GPU is needed. Marked are spilled
    registers and arrays in local memory, double precision, tensor cores, accesses of 16 bytes and more, calls and
    predicates; a summary counts instructions by family and accesses by width. Exit status: 0 done, 2 it could not be
    done.
    """
    program = read_program(file, compiled)
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        view = _compiled(program, compiled, progress, is_cancelled)
    view = replace(view, kernels=tuple(_chosen(program, view, kernel)))
    listings = [listing(each, view, program.sources.values()) for each in view.kernels]
    if line is not None:
        listings = [each for each in listings if _has(each, program.source.path, line)]
        if not listings:
            raise CannotRun(f"{file}: the compiler generated no instruction for line {line}")
    _print(view, listings, output, ptx, line, target, Path(file))
    return 0


def _compiled(program: Program, compiled: Compiled, progress: Progress, is_cancelled: IsCancelled) -> MachineView:
    arch, flags = compiled.assumptions(program.source).arch, nvcc_flags(compiled, program.source)
    progress(f"Compiling for {arch}", None)
    cubin = compile_cubin(program.source, arch=arch, flags=flags, is_cancelled=is_cancelled)
    if not cubin.ok:
        raise CannotRun(f"{program.source.path}: {cubin.reason}")
    ptx = compile_ptx(program.source, arch=arch, flags=flags, is_cancelled=is_cancelled)
    progress("Disassembling", None)
    try:
        view = machine_view(cubin, ptx, is_cancelled)
    except DisassemblyError as error:
        raise CannotRun(str(error)) from None
    if isinstance(view, Missing):
        raise CannotRun(str(view))
    return view


def _chosen(program: Program, view: MachineView, name: str | None) -> Sequence[KernelCode]:
    """The compiled kernels that a name means; all without one. Raises CannotRun where there are none."""
    path = program.source.path
    if not view.kernels:
        raise CannotRun(f"{path}: nvcc made no kernel of it; a template has to be launched or instantiated")
    if name is None:
        return view.kernels
    plain = "".join(name.split())
    found = [each for each in view.kernels if "".join(each.name.split()) == plain]
    found = found or [each for each in view.kernels if unqualified(each.name) == name]
    if not found and any(kernel.name == name for kernel in program.defined_kernels):
        raise CannotRun(f"{path}: nvcc made no instance of {name}; launch it or instantiate it in this file")
    if not found:
        raise CannotRun(f"{path}: no kernel '{name}'; it has: {', '.join(each.name for each in view.kernels)}")
    return found


def _has(listed: Listing, path: str, line: int) -> bool:
    place = (str(Path(path).absolute()), line)
    shown: Iterable[tuple[tuple[str, int], ...]] = (
        *(step.instruction.places for step in listed.kernel.sass),
        *(each.places for each in listed.kernel.ptx),
    )
    return any(place in listed.places(places) for places in shown)


def _print(
    view: MachineView,
    listings: Sequence[Listing],
    output: str,
    ptx: bool,
    line: int | None,
    target: str | None,
    file: Path,
) -> None:
    path = Path(target) if target else None
    if output == "json":
        text = json.dumps(shown_in(view_json(view)), indent=1)
    elif output == "html":
        from warpwright.editor.machine.html import machine_html

        text = machine_html(listings)
        path = path or Path(f"{file.stem}.sass.html")
    elif output == "markdown":
        from warpwright.editor.machine.markdown import machine_markdown

        text = machine_markdown(listings, ptx=ptx)
    else:
        from warpwright.cli.sass_text import sass_text

        text = "\n\n".join(sass_text(each, ptx=ptx, line=line) for each in listings)
    print_or_write(text, path, styled=output == "text")
