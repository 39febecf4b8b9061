"""The command `warpwright`. Commands are loaded when they are asked for, so that a quick one stays quick."""

from __future__ import annotations

import contextlib
import difflib
import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from warpwright import __version__
from warpwright.cli.log import log_to_stderr
from warpwright.cli.terminal import COULD_NOT_RUN
from warpwright.progress import CancelledError
from warpwright.search_path import use_absolute_folders

# In the order in which `--help` shows them; each is a module of this package with a `command`.
COMMANDS = (
    "check", "fix", "facts", "explain", "profile", "trace", "sass", "optimize", "verify", "history", "problem",
    "formula", "wire", "torch-check", "generate", "model", "trust", "doctor", "serve",
)  # fmt: skip

INTERRUPTED = 130  # 128 + SIGINT
CLOSED_PIPE = 141  # 128 + SIGPIPE


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"warpwright.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="warpwright")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Static performance analysis and verified fixes for CUDA kernels.

    \b
    warpwright check src/              what is wrong, with its numbers
    warpwright fix a.cu --write        apply the verified fixes
    warpwright profile a.cu            what each line of a kernel executed and moved, in one run of it
    warpwright trace train.py          what a PyTorch program waits for, by line, and what would help
    warpwright optimize a.cu           search for a faster kernel; compile, run and time what is proposed
    warpwright formula "y[i] = 2 * x[i]"  write what a formula says as CUDA, and check it
    warpwright doctor                  what was found on this machine, and what to do about what was not
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    elif os.environ.get("FORCE_COLOR"):
        ctx.color = True


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Whatever goes wrong is one sentence on stderr, never a traceback."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the process was started with it closed
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # a diff has the bytes of the file that it is to change
    log_to_stderr()
    use_absolute_folders()
    try:
        status = cli.main(None if arguments is None else list(arguments), prog_name="warpwright", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except SystemExit as ended:
        # click ends the process itself in two cases: a closed pipe (`warpwright check . | head`), and shell completion.
        return CLOSED_PIPE if ended.code == 1 else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt, CancelledError):
        click.echo("Stopped.", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away before the last flush. What is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _internal(error)
        with contextlib.suppress(OSError):  # what is buffered would fail once more at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo("error: no space is left where the output goes. Make room, or write it elsewhere.", err=True)
        return COULD_NOT_RUN
    except Exception as error:
        return _internal(error)


def _internal(error: Exception) -> int:
    """A fault of ours, in a sentence."""
    if os.environ.get("WARPWRIGHT_DEBUG"):
        traceback.print_exception(error)
    click.echo(
        f"warpwright: internal error: {type(error).__name__}: {error}. Please report it with the command and, if "
        "you can, the file; WARPWRIGHT_DEBUG=1 shows where it happened.",
        err=True,
    )
    return COULD_NOT_RUN


def main() -> None:
    sys.exit(run())
