"""The page of a rule or a rewrite, from its docstring: nothing has to be at hand but the server itself."""

from __future__ import annotations

from warpwright.rewrites.base import RewriteKind
from warpwright.rewrites.registry import all_rewrites
from warpwright.rules.base import Rule
from warpwright.rules.registry import all_rules


def explained(name: str) -> Rule | RewriteKind | None:
    """What has that name, also with underscores or capitals; None where nothing has."""
    wanted = name.strip().replace("_", "-").lower()
    every: tuple[Rule | RewriteKind, ...] = (*all_rules(), *all_rewrites())
    return next((each for each in every if each.name == wanted), None)


def explanation(of: Rule | RewriteKind) -> str:
    """The page as Markdown."""
    if isinstance(of, Rule):
        kind = f"rule of the group {of.group}, severity {of.severity.value}"
    else:
        kind = f"rewrite for {', '.join(of.goals)}; of launches it relies on {of.needs}"
    return f"# {of.name}\n\n*{kind}*\n\n{of.doc.strip()}\n"
