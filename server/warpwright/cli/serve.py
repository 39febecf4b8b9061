"""`warpwright serve`: the language server, for editors."""

from __future__ import annotations

import click


@click.command("serve")
@click.option("--stdio", is_flag=True, help="Talk over standard input and output (the default).")
@click.option("--tcp", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Listen on 127.0.0.1:PORT instead.")
def command(*, stdio: bool, port: int | None) -> int:
    """Run the language server. An editor starts this; docs/editors.md shows how."""
    if stdio and port is not None:
        raise click.UsageError("--stdio and --tcp exclude each other")
    from warpwright.lsp.server import serve_stdio, serve_tcp

    return serve_stdio() if port is None else serve_tcp(port)
