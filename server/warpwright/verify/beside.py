"""A kernel that a candidate writes beside the old one, read as an edit of the old one in its place.

The candidate keeps `stats` for whoever else launches it, defines `stats_tuned` below, and launches that. What has to
hold is what would have to if `stats` itself had been edited: so the new kernel is read under the old one's name, with
the old text left out, and everything after compares it as any other edit. Lines stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.cuda.linkage import declarations_of
from warpwright.facts.model import Kernel, Program
from warpwright.rewrites._code import macro_texts
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import decoded
from warpwright.syntax.names import renamed, unqualified
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled
from warpwright.verify.host_code import host_differences


@dataclass(frozen=True, slots=True)
class Beside:
    """The candidate's new kernel `name`, and the candidate's facts with it as `old`."""

    old: str
    name: str
    program: Program

    def compiled(self, candidate: Compiled) -> Compiled:
        """What was compiled of the candidate: the new kernel's instances under the old name, not the old's."""
        kept = (each for name, each in candidate.kernels.items() if unqualified(name) != self.old)
        own = (replace(each, name=renamed(each.name, self.name, self.old)) for each in kept)
        return replace(candidate, kernels={each.name: each for each in own})


def beside(old: Program, new: Program, analysed: Callable[[Source], Program]) -> Beside | None:
    """The kernel that stands for one of the original's: all of that one's launches go to it, and the host code is the
    same otherwise; or nobody launches either, and it stands right below. None where there is no such kernel."""
    known = {kernel.name for kernel in old.defined_kernels}
    added = [kernel for kernel in new.defined_kernels if kernel.name not in known]
    if len(added) != 1 or added[0].source is not new.source:
        return None
    (mine,) = added
    replaced = [k for k in old.defined_kernels if _stands_for(mine, k, new)]
    if len(replaced) != 1 or (edits := _in_place(new.source, replaced[0].name, mine.name)) is None:
        return None
    source = new.source.edited(edits)
    program = analysed(source)
    if program.kernel(replaced[0].name) is None or host_differences(old, program):
        return None
    return Beside(replaced[0].name, mine.name, program)


def _stands_for(mine: Kernel, old: Kernel, new: Program) -> bool:
    kept = new.kernel(old.name)
    if kept is None or kept.source is not mine.source or kept.span.text != old.span.text or _is_launched(kept):
        return False
    if _is_launched(old) or _is_launched(mine):
        return _is_launched(old) and _is_launched(mine)
    before = [k for k in new.defined_kernels if k.source is mine.source and k.span.end <= mine.span.start]
    return bool(before) and max(before, key=lambda k: k.span.end).name == old.name


def _is_launched(kernel: Kernel) -> bool:
    return any(launch.span is not None for launch in kernel.launches)


def _in_place(source: Source, old: str, new: str) -> list[TextEdit] | None:
    """Edits by which the old kernel's text becomes blanks and the new one gets its name; None where the old one is
    named elsewhere, or a macro names one of the two."""
    gone = [_outermost(each) for each in (*_definitions(source, old), *declarations_of(source, old))]
    edits = [TextEdit(each.start_byte, each.end_byte, _blank(source, each)) for each in gone]
    for use in descendants(source.root, "identifier", "type_identifier"):
        name = source.node_text(use)
        if name == old and not any(e.start_byte <= use.start_byte < e.end_byte for e in gone):
            return None
        if name == new:
            edits.append(TextEdit(use.start_byte, use.end_byte, old))
    word = re.compile(rf"\b(?:{re.escape(old)}|{re.escape(new)})\b")
    return None if any(word.search(text) for texts in macro_texts(source).values() for text in texts) else edits


def _definitions(source: Source, name: str) -> Iterator[Node]:
    for each in descendants(source.root, "function_definition"):
        declarator = each.child_by_field_name("declarator")
        named = declarator.child_by_field_name("declarator") if declarator is not None else None
        if named is not None and source.node_text(named) == name:
            yield each


def _outermost(node: Node) -> Node:
    around = node
    for each in ancestors(node):
        if each.type not in ("template_declaration", "linkage_specification"):
            break
        around = each
    return around


def _blank(source: Source, node: Node) -> str:
    return decoded(re.sub(rb"[^\r\n]", b" ", source.data[node.start_byte : node.end_byte]))
