"""A kernel beside: where files that are not read may launch a kernel, what relies on launches is done to a copy of it.

The old kernel stays as it is, for the others. The new one stands below it under a name of its own, and the launches of
this file, which the rewrite has looked at, go to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tree_sitter import Node

from warpwright.cuda.linkage import declarations_of, is_header
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, host_launches, unseen_launch
from warpwright.rewrites._grids import call_of
from warpwright.rewrites._layout import free_name, line_of, with_comment
from warpwright.rewrites.base import Declined, Reliance, Rewrite, RewriteKind, enumerated
from warpwright.syntax.edits import OverlappingEditsError, TextEdit, apply_edits
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source

_SUFFIX = "_tuned"
_ON_DEVICE = re.compile(r"\b__(?:global|device)__\b")
_TYPES = ("struct_specifier", "class_specifier", "union_specifier")
_DIRECTIVE = re.compile(r"//\s*warpwright:")


def beside(kind: RewriteKind, kernel: Kernel, rewrite: Rewrite) -> Rewrite | Declined:
    """The rewrite as it may be done: as it is where every launch of the kernel is read, where it relies on nothing of
    launches or does not touch the kernel, and where it repairs it; else with a new kernel beside the old one."""
    relied = _relied_on(kind, kernel)
    if not kernel.launched_elsewhere or not relied or "fix" in kind.goals:
        return rewrite
    own = [edit for edit in rewrite.edits if rewrite.source is kernel.source and _is_inside(kernel, edit)]
    try:
        for edit in rewrite.edits:
            if edit not in own:
                _require_host_code(rewrite.source, edit)
        return _beside(kernel, rewrite, own, relied) if own else rewrite
    except (NoMatchError, OverlappingEditsError) as error:
        found = str(error) if isinstance(error, NoMatchError) else f"It cannot be done to a copy of {kernel.name}."
        return Declined(
            rewrite.rewrite,
            f"{kernel.launched_elsewhere}, so launches may be unseen, and the new code relies on {enumerated(relied)}. "
            f"{found}",
        )


def _relied_on(kind: RewriteKind, kernel: Kernel) -> tuple[Reliance, ...]:
    """What of launches decides for this kernel: one without dynamic shared memory has all the room that is left."""
    dynamic = any(array.dynamic for array in kernel.shared_arrays)
    return tuple(each for each in kind.relies_on if each is not Reliance.SHARED or dynamic)


def _beside(kernel: Kernel, rewrite: Rewrite, own: Sequence[TextEdit], relied: Sequence[Reliance]) -> Rewrite:
    source = kernel.source
    if is_header(source):
        raise NoMatchError("In a header there is no copy of it that only some launches use.")
    if reason := unseen_launch(kernel):
        raise NoMatchError(reason)
    calls = list(_calls(kernel))
    names = source.code_text() + "\n".join(kernel.macros)
    if not calls and re.search(rf"\b{kernel.name}{_SUFFIX}\b", names):
        raise NoMatchError(f"{kernel.name}{_SUFFIX} is there already.")
    name = free_name(names, f"{kernel.name}{_SUFFIX}")
    text, head = _copied(kernel, own, name, is_static=bool(calls))
    around = [edit for edit in rewrite.edits if edit not in own]
    declared = [_outermost(each) for each in declarations_of(source, kernel.name)]
    around = [e for e in around if not any(d.start_byte <= e.start and e.end <= d.end_byte for d in declared)]
    for edit in around:
        _require_new(kernel, edit)
    for call in calls:
        around = _launching(source, call, kernel.name, name, around)
    if any(call.start_byte < kernel.span.start for call in calls):
        if not declared or "=" in head:
            raise NoMatchError(f"{kernel.name} is launched above its definition, and not declared plainly before.")
        at = with_comment(source, declared[0])[1]
        around.append(TextEdit(at, at, f"\n{source.line_indent(declared[0].start_byte)}{head};"))
    end = with_comment(source, _outermost(_definition(kernel)))[1]
    indent = source.line_indent(kernel.span.start)
    who = "for the launches in this file" if calls else f"for launches with {enumerated(relied)}"
    lines = [f"// As {kernel.name}, {who}: others may launch {kernel.name} otherwise.", *_directives(kernel)]
    above = "".join(f"{indent}{line}\n" for line in lines)
    follows = re.match(rb"[ \t]*\r?\n[ \t]*(?:\r?\n|})|\s*$", source.data[end : end + 200])
    added = TextEdit(end, end, f"\n\n{above}{indent}{text}" + ("" if follows else "\n"))
    use = "the launches here go to it" if calls else f"launch it with {enumerated(relied)}"
    said = (
        f"{kernel.launched_elsewhere}: other files may launch it otherwise than this relies on "
        f"({enumerated(relied)}), so it stays as it is, and {name} stands beside it; {use}."
    )
    newline = "\r\n" if b"\r\n" in source.data else "\n"
    edits = (replace(e, new_text=e.new_text.replace("\r\n", "\n").replace("\n", newline)) for e in (*around, added))
    return replace(rewrite, edits=tuple(edits), explanation=f"{rewrite.explanation} {said}", beside=name)


def _is_inside(kernel: Kernel, edit: TextEdit) -> bool:
    """Whether an edit changes the kernel's definition; what is put right before or behind it does not."""
    start, end = kernel.span.start, kernel.span.end
    return start < edit.end and edit.start < end and not edit.start == edit.end == start


def _definition(kernel: Kernel) -> Node:
    if kernel.node is None:
        raise NoMatchError(f"{kernel.name} is defined elsewhere.")
    around = kernel.node.parent
    return around if around is not None and around.type == "template_declaration" else kernel.node


def _outermost(node: Node) -> Node:
    """A definition or declaration with the `template <...>` or the `extern "C"` that is its own."""
    around = node.parent
    while around is not None and around.type in ("template_declaration", "linkage_specification"):
        node, around = around, around.parent
    return node


def _copied(kernel: Kernel, own: Sequence[TextEdit], name: str, *, is_static: bool) -> tuple[str, str]:
    """The text of the new kernel, and of its head up to the body. It is static where this file launches it: no other
    file then has, or needs, the name."""
    source, node = kernel.source, kernel.node
    start, end = kernel.span.start, kernel.span.end
    body = node.child_by_field_name("body") if node is not None else None
    if node is None or body is None:
        raise NoMatchError(f"{kernel.name} is defined elsewhere.")
    if any(edit.start < start or edit.end > end for edit in own):
        raise NoMatchError(f"It changes more than {kernel.name} there.")
    specifiers = [child for child in node.children if child.type == "storage_class_specifier"]
    dropped = [s for s in specifiers if source.node_text(s) == "extern"]
    kept = [s for s in specifiers if source.node_text(s) == "static"]
    edits = [TextEdit(s.start_byte, s.end_byte, "") for s in dropped]
    if is_static and not kept and not _is_unnamed(node):
        edits.append(TextEdit(node.start_byte, node.start_byte, "static "))
    edits += [TextEdit(kernel.name_span.start, kernel.name_span.end, name), *own]
    before_body = [edit for edit in edits if edit.end <= body.start_byte]
    text, head = (
        Source(source.path, apply_edits(source.data[:until], made)).text(start)
        for until, made in ((end, edits), (body.start_byte, before_body))
    )
    return text, head.rstrip()


def _is_unnamed(node: Node) -> bool:
    around = (each for each in ancestors(node) if each.type == "namespace_definition")
    return any(each.child_by_field_name("name") is None for each in around)


def _calls(kernel: Kernel) -> Iterator[Node]:
    """The launches that go to the new kernel. Raises NoMatchError for one that cannot be edited with it."""
    seen: set[int] = set()
    for launch in host_launches(kernel):
        call = call_of(launch)
        if launch.span is None or launch.span.source is not kernel.source or call is None:
            raise NoMatchError(f"The launch at {launch.source} is in a macro or in another file than the kernel.")
        if kernel.span.start <= call.start_byte < kernel.span.end:
            raise NoMatchError(f"{kernel.name} launches itself.")
        if call.start_byte not in seen:
            seen.add(call.start_byte)
            yield call


def _launching(source: Source, call: Node, old: str, new: str, edits: Sequence[TextEdit]) -> list[TextEdit]:
    """The edits with those by which a launch goes to the new kernel. One that replaces the launch names it itself."""
    function = call.child_by_field_name("function")
    named = [n for n in descendants(function, "identifier") if source.node_text(n) == old] if function else []
    if not named:
        raise NoMatchError(f"The launch at line {line_of(source, call)} does not name {old}.")
    at = named[-1]
    covering = [e for e in edits if e.start < e.end and e.start < at.end_byte and at.start_byte < e.end]
    if not covering:
        return [*edits, TextEdit(at.start_byte, at.end_byte, new)]
    launch = re.compile(rf"\b{re.escape(old)}\b(?=\s*(?:<(?!<)[^;{{}}]*>\s*)?<<<)")
    renamed = [replace(e, new_text=launch.sub(new, e.new_text)) if e in covering else e for e in edits]
    if not any(re.search(rf"\b{re.escape(new)}\b", e.new_text) for e in renamed):
        raise NoMatchError(f"The launch at line {line_of(source, call)} is replaced by something else.")
    return renamed


def _require_host_code(source: Source, edit: TextEdit) -> None:
    """What both kernels use may not be edited: functions of the device and types. New text beside them may stand."""
    inner = source.root.descendant_for_byte_range(edit.start, edit.end)
    for node in (inner, *ancestors(inner)) if inner is not None else ():
        start, end = node.start_byte, node.end_byte
        if not (start < edit.end and edit.start < end) or edit.start == edit.end == start:
            continue
        if node.type in _TYPES:
            raise NoMatchError(f"It changes a type at line {line_of(source, node)}, which other files may use too.")
        body = node.child_by_field_name("body")
        if node.type == "function_definition" and _ON_DEVICE.search(
            source.code_text(start, body.start_byte if body is not None else end)
        ):
            raise NoMatchError(f"It changes a __global__ or __device__ function at line {line_of(source, node)}, too.")


def _require_new(kernel: Kernel, edit: TextEdit) -> None:
    """What stands outside of functions, such as a macro, may be used by the old kernel: it is added to alone."""
    inner = kernel.source.root.descendant_for_byte_range(edit.start, edit.end)
    within = inner is not None and any(n.type == "function_definition" for n in (inner, *ancestors(inner)))
    if not within and edit.start != edit.end:
        line = kernel.source.position(edit.start)[0]
        raise NoMatchError(f"It changes line {line}, which {kernel.name} as it is may use too.")


def _directives(kernel: Kernel) -> list[str]:
    """The comments above the kernel that tell warpwright of it."""
    found: list[str] = []
    before = _outermost(_definition(kernel)).prev_named_sibling
    while before is not None and before.type == "comment":
        text = kernel.source.node_text(before).strip()
        if _DIRECTIVE.match(text):
            found.insert(0, text)
        before = before.prev_named_sibling
    return found
