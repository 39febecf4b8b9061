"""`warpwright trace`: what a PyTorch program waits for, line by line, and what would make it faster."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import click

from warpwright.cli.terminal import CannotRun, NumberRange, print_or_write, progress_line, say_note, stop_on_ctrl_c
from warpwright.missing import Missing
from warpwright.syntax.encoding import encoded, shown_in
from warpwright.timeline.kept import keep
from warpwright.timeline.model import TraceError
from warpwright.timeline.program import Toolkit, record_program
from warpwright.timeline.record import Recording, record
from warpwright.timeline.report import read_trace, report_json, report_of
from warpwright.toolchain.driver import has_driver
from warpwright.toolchain.find import find_toolchain, wheel_directories


@click.command("trace", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("script", type=click.Path(), metavar="[SCRIPT]", required=False)
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--import",
    "imported",
    metavar="FILE",
    help="Read an existing trace: torch.profiler's (export_chrome_trace, .json or .json.gz), or Nsight Systems' "
    "(.sqlite, or .nsys-rep where nsys is installed).",
)
@click.option(
    "--seconds",
    type=NumberRange(0.1, 600),
    default=20.0,
    show_default=True,
    help="Record for so long; a script that goes on is ended.",
)
@click.option(
    "--skip",
    type=NumberRange(0, 3600),
    default=0.0,
    show_default=True,
    help="Let the script run for so many seconds before recording begins.",
)
@click.option(
    "--python", metavar="PATH", help="The Python that has torch. [default: WARPWRIGHT_GPU_PYTHON, or this one]"
)
@click.option(
    "--allow-write",
    "writes",
    multiple=True,
    metavar="FOLDER",
    help="The script may write there (repeatable). [default: its temporary folder alone]",
)
@click.option("--unconfined", is_flag=True, help="The script may write anywhere and use the network.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    show_default=True,
    help="html has a picture of the timeline.",
)
@click.option("--output", "target", metavar="PATH", help="Write to this file; without it html goes to trace.html.")
def command(
    *,
    script: str | None,
    arguments: tuple[str, ...],
    imported: str | None,
    seconds: float,
    skip: float,
    python: str | None,
    writes: tuple[str, ...],
    unconfined: bool,
    output: str,
    target: str | None,
) -> int:
    """Show what a PyTorch or CUDA program waits for: launches, waits, copies, data loading, the host or the GPU.

    SCRIPT is a Python script, which is run with ARGS under torch.profiler; or a program, or a .cu file that nvcc makes
    one of, which are run under CUPTI or Nsight Systems (a program that is built with -g has lines). It runs in a
    process of its own: confined, and ended after --seconds; what it prints goes to stderr. Each moment of the wall time
    counts for one cause, so that the shares sum to all of it; the lines that launch, wait and copy are named, and what
    would help, with the gain expected of it. Options come before SCRIPT. Exit status: 0 done, 2 it could not be run or
    read.
    """
    if (script is None) == (imported is None):
        raise CannotRun("name a script to run, or a trace to read with --import: one of the two")
    if script is not None and (behind := _own_options(Path(script), arguments)):
        say_note(f"{behind} after {script} is an argument of the script: for trace, write it before")
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        try:
            if imported is not None:
                progress("Reading the trace", None)
                trace = read_trace(Path(imported))
            else:
                progress("Running the script", None)
                wanted = Recording(
                    Path(script or ""),
                    arguments,
                    python=python or os.environ.get("WARPWRIGHT_GPU_PYTHON") or sys.executable,
                    seconds=seconds,
                    skip=skip,
                    confined=not unconfined,
                    writes=tuple(Path(each) for each in writes),
                )
                is_script = wanted.script.suffix == ".py" or not wanted.script.is_file()
                if not is_script and not has_driver():
                    raise CannotRun(
                        f"{wanted.script} is not a Python script, and there is no NVIDIA driver here, without which a "
                        "CUDA program does nothing: trace it on a machine with a GPU, or record it there with nsys "
                        "and read that with --import"
                    )
                trace = (
                    record(wanted, is_cancelled) if is_script else record_program(wanted, cuda_toolkit(), is_cancelled)
                )
        except TraceError as error:
            raise CannotRun(str(error)) from None
        progress("Reading what was recorded", None)
        report = report_of(trace, Path.cwd())
        keep(report)
    file = Path(target) if target else None
    if output == "html":
        from warpwright.editor.timeline.page import trace_html

        print_or_write(trace_html(report), file or Path("trace.html"), styled=False)
    elif output == "markdown":
        from warpwright.editor.timeline.page import trace_markdown

        print_or_write(trace_markdown(report), file, styled=False)
    elif output == "json":
        print_or_write(json.dumps(shown_in(report_json(report)), indent=1), file, styled=False)
    else:
        from warpwright.cli.trace_text import trace_text

        shown = sys.stdout.isatty() or "COLUMNS" in os.environ
        print_or_write(trace_text(report, shutil.get_terminal_size().columns if shown else 100), file, styled=True)
    return 0


def _own_options(script: Path, arguments: tuple[str, ...]) -> str:
    """The options of this command among a script's arguments, those that its text names left out."""
    own = {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
    given = dict.fromkeys(name for each in arguments if (name := each.partition("=")[0]) in own)
    try:
        text = script.read_bytes() if given else b""
    except OSError:
        return ""
    return " and ".join(each for each in given if encoded(each.lstrip("-")) not in text)


def cuda_toolkit() -> Toolkit:
    """The compiler that is used, and where CUPTI may be: in its toolkit, in the usual folder, among NVIDIA's wheels."""
    found = find_toolchain()
    beside = () if isinstance(found, Missing) else tuple(each.parent for each in found.include_dirs)
    wheels = [each for folder in sys.path if folder for each in Path(folder).glob("nvidia/cuda_cupti")]
    homes = (*beside, Path("/usr/local/cuda"), *wheel_directories(), *wheels)
    return Toolkit(None if isinstance(found, Missing) else found.nvcc, homes)
