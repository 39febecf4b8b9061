"""`warpwright explain`: the page of a rule or a rewrite, in the terminal."""

from __future__ import annotations

import difflib
import sys

import click

from warpwright.cli.terminal import CannotRun
from warpwright.editor.explain import explained, explanation
from warpwright.rewrites.base import RewriteKind
from warpwright.rewrites.registry import all_rewrites
from warpwright.rules.base import Rule
from warpwright.rules.registry import all_rules


def _names(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """For a shell."""
    every: list[Rule | RewriteKind] = [*all_rules(), *all_rewrites()]
    return [each.name for each in every if each.name.startswith(begun)]


@click.command("explain")
@click.argument("name", required=False, shell_complete=_names, metavar="[RULE]")
def command(name: str | None) -> int:
    """Explain a rule or a rewrite: why it matters, an example, what to do instead, its limits.

    Without a name, list them all.
    """
    every: list[Rule | RewriteKind] = [*all_rules(), *all_rewrites()]
    if name is None:
        _list(all_rules(), all_rewrites())
        return 0
    page = explained(name)
    if page is None:
        near = difflib.get_close_matches(name, [one.name for one in every], n=3, cutoff=0.4)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`warpwright explain` lists them."
        raise CannotRun(f"there is no rule or rewrite '{name}'. {hint}")
    _show(page)
    return 0


def _list(rules: tuple[Rule, ...], rewrites: tuple[RewriteKind, ...]) -> None:
    width = max(len(name) for name in (*(rule.name for rule in rules), *(rewrite.name for rewrite in rewrites)))
    click.secho("Rules", bold=True)
    for rule in sorted(rules, key=lambda r: (r.group, r.name)):
        click.echo(f"  {click.style(f'{rule.name:<{width}}', fg='yellow')}  {rule.summary}")
    click.secho("\nRewrites", bold=True)
    for rewrite in rewrites:
        click.echo(f"  {click.style(f'{rewrite.name:<{width}}', fg='green')}  {rewrite.summary}")
    click.echo("\n`warpwright explain NAME` tells more.")


def _show(page: Rule | RewriteKind) -> None:
    text = explanation(page)
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text, code_theme="ansi_dark"))
