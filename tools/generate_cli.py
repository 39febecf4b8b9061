"""Write docs/cli.md from the commands' own help: `python tools/generate_cli.py [--check]`.

`--check` writes nothing and fails where the page is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from warpwright.cli.main import cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """\
# Commands

Generated from the commands' own help. `--format json` is for machines; its form, the exit statuses and the names of
rules are contracts. In a terminal output is coloured; `NO_COLOR=1` and `FORCE_COLOR=1` decide otherwise.
`WARPWRIGHT_DEBUG=1` shows where an internal error happened.

A shell completes commands, options, files and the names of rules with one line in its start-up file:

| shell | file | line |
|---|---|---|
| Bash 4.4 or newer | `~/.bashrc` | `eval "$(_WARPWRIGHT_COMPLETE=bash_source warpwright)"` |
| Zsh | `~/.zshrc` | `eval "$(_WARPWRIGHT_COMPLETE=zsh_source warpwright)"` |
| Fish | `~/.config/fish/completions/warpwright.fish` | `_WARPWRIGHT_COMPLETE=fish_source warpwright \| source` |
"""


def page() -> str:
    return "\n".join([HEAD, *_sections(cli, None, "warpwright")])


def _sections(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name, max_content_width=100, terminal_width=100)
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            assert found is not None
            yield from _sections(found, context, sub)
    else:
        yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"


def main(arguments: list[str]) -> int:
    text = page()
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE.name} is stale: run `python tools/generate_cli.py`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
