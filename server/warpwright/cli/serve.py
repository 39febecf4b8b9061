"""`warpwright serve`: the language server, for editors."""

from __future__ import annotations

import os
import sys

import click


@click.command("serve")
@click.option("--stdio", is_flag=True, help="Talk over standard input and output (the default).")
@click.option("--tcp", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Listen on 127.0.0.1:PORT instead.")
def command(*, stdio: bool, port: int | None) -> int:
    """Run the language server. An editor starts this; docs/editors.md shows how."""
    if stdio and port is not None:
        raise click.UsageError("--stdio and --tcp exclude each other")
    # The server takes this process over, so that an editor's signals reach it and nothing of the command line is in it.
    options = ["--stdio"] if port is None else ["--tcp", str(port)]
    # `-P`: editors start it in the folder of a project, from which nothing may be imported.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "warpwright.lsp", *options])
