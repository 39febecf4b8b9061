"""`warpwright trust`: the folders that the user allowed."""

from __future__ import annotations

import json
from pathlib import Path

import click

from warpwright.cli.terminal import CannotRun
from warpwright.syntax.encoding import shown_in
from warpwright.trust import TrustError, revoke, trust, trust_file, trusted_folders


@click.command("trust")
@click.argument("folder", required=False, type=click.Path(), metavar="[FOLDER]")
@click.option("--revoke", "is_revoked", is_flag=True, help="Take FOLDER back.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(folder: str | None, *, is_revoked: bool, output: str) -> int:
    """Allow a folder, with all that is in it, or list those that are allowed.

    Opening a folder runs nothing of it, whether it is allowed or not. In one that is allowed, source text is compiled
    also where this system cannot keep a compiler from other files, and includes are read from folders that the project
    names outside of itself. docs/security.md says more. Exit status: 0 done, 2 it could not be done.
    """
    if folder is None and is_revoked:
        raise click.UsageError("--revoke needs the FOLDER to take back")
    try:
        if folder is not None and is_revoked:
            revoke(Path(folder))
        elif folder is not None:
            trust(Path(folder))
    except TrustError as error:
        raise CannotRun(str(error)) from None
    except OSError as error:
        raise CannotRun(f"{trust_file()} cannot be written ({error.strerror}).") from None
    kept = [str(each) for each in trusted_folders()]
    if output == "json":
        click.echo(json.dumps(shown_in(kept), indent=2))
    else:
        click.echo("\n".join(kept) or "No folder is allowed.")
    return 0
