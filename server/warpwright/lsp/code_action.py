"""textDocument/codeAction"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.actions import (
    APPLY_FIX,
    FIX_ALL,
    GOALS,
    Action,
    CommentCommand,
    Cured,
    KernelCommand,
    QuickFix,
    RuleCommand,
    Suppression,
    actions,
    safely_fixable,
)
from warpwright.lsp.convert import position, to_edits
from warpwright.lsp.edits import edit_of_files
from warpwright.lsp.guard import guarded
from warpwright.rules.base import Finding

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server

FIX_ALL_KIND = "source.fixAll.warpwright"
_OPTIONS = types.CodeActionOptions(
    code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite, FIX_ALL_KIND],
    resolve_provider=True,
)


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, _OPTIONS)(code_action)


@guarded(lambda: None)
async def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """What can be done at a range of the newest text. The edit of a fix is made when it is resolved, or by
    a command."""
    document = ls.documents.get(params.text_document.uri)
    if document is None:
        return None
    analysis = await ls.documents.analysed(document)
    if analysis.source.data != document.text.data:
        return None
    start, end = (document.text.offset(position(p), ls.encoding) for p in (params.range.start, params.range.end))
    offered = await ls.documents.in_thread(lambda: actions(analysis, start, end))
    made = [_code_action(ls, document, action, params) for action in offered]
    if params.context.only is not None and safely_fixable(analysis):  # a source action is for who asks for it
        data = {"uri": document.uri, "version": document.version, "fix_all": True}
        made.append(_made_later(ls, types.CodeAction("Fix all that is verified", FIX_ALL_KIND), data))
    is_wanted = _filter(params.context.only)
    knows_disabled = _knows_disabled(ls)
    return [a for a in made if is_wanted(a) and (knows_disabled or a.disabled is None)] or None


def _code_action(ls: Server, document: Document, action: Action, params: types.CodeActionParams) -> types.CodeAction:
    shown = params.context.diagnostics
    match action:
        case QuickFix():
            data = {"uri": document.uri, "version": document.version, "target": action.target.to_json()}
            made = types.CodeAction(
                title=action.title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=_diagnostics(document, action.finding, shown),
                is_preferred=action.preferred,
                disabled=types.CodeActionDisabled(reason=action.declined) if action.declined else None,
            )
            return _made_later(ls, made, data)
        case Cured() | Suppression():
            own = action.edits if isinstance(action, Cured) else (action.edit,)
            edits = to_edits(document.text, own, ls.encoding)
            return types.CodeAction(
                title=action.title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=_diagnostics(document, action.finding, shown),
                is_preferred=True if isinstance(action, Cured) else None,
                edit=edit_of_files(ls, [(document.uri, document.version, edits)]),
            )
        case RuleCommand():
            about: dict[str, object] = {"rule": action.finding.rule}
            if action.command == FIX_ALL:
                about |= {"uri": document.uri, "preview": True}
            return types.CodeAction(
                title=action.title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=_diagnostics(document, action.finding, shown),
                command=types.Command(title=action.title, command=action.command, arguments=[about]),
            )
        case CommentCommand():
            return _comment_command(document, action, params)
        case KernelCommand():
            argument: dict[str, object] = {"uri": document.uri, "kernel": action.kernel}
            if action.command in GOALS:
                argument["preview"] = True
            if action.of_selection:
                ends = (("start", params.range.start), ("end", params.range.end))
                argument["range"] = {side: {"line": at.line, "character": at.character} for side, at in ends}
            return types.CodeAction(
                title=action.title,
                kind=types.CodeActionKind.RefactorRewrite,
                command=types.Command(title=action.title, command=action.command, arguments=[argument]),
            )


def _comment_command(document: Document, action: CommentCommand, params: types.CodeActionParams) -> types.CodeAction:
    at = params.range.start
    argument = {"uri": document.uri, "position": {"line": at.line, "character": at.character}, "preview": True}
    return types.CodeAction(
        title=action.title,
        kind=types.CodeActionKind.RefactorRewrite,
        command=types.Command(title=action.title, command=action.command, arguments=[argument]),
    )


def _made_later(ls: Server, action: types.CodeAction, data: dict[str, object]) -> types.CodeAction:
    """An action whose edit is made once it is chosen: where the client does not ask for it then, by a command."""
    if ls.resolves_actions:
        action.data = data
    elif action.disabled is None:
        action.command = types.Command(action.title, APPLY_FIX, arguments=[{**data, "title": action.title}])
    return action


def _diagnostics(
    document: Document, finding: Finding, shown: Iterable[types.Diagnostic]
) -> list[types.Diagnostic] | None:
    """Those of the diagnostics that the client shows which are this finding."""
    line = document.text.position(finding.span.start, "utf-8").line
    return [d for d in shown if d.code == finding.rule and d.range.start.line == line] or None


def _filter(only: Iterable[str] | None) -> Callable[[types.CodeAction], bool]:
    """A kind asked for covers its sub-kinds: `refactor` covers `refactor.rewrite`."""
    kinds = None if only is None else [str(getattr(kind, "value", kind)) for kind in only]

    def is_wanted(action: types.CodeAction) -> bool:
        kind = str(getattr(action.kind, "value", action.kind))
        return kinds is None or any(k in ("", kind) or kind.startswith(f"{k}.") for k in kinds)

    return is_wanted


def _knows_disabled(ls: Server) -> bool:
    text_document = ls.client_capabilities.text_document
    return bool(text_document and text_document.code_action and text_document.code_action.disabled_support)
