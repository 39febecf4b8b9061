"""The work on one row, written for several rows at once: loops that all rows run alike are run once, and what they
compute for a row is done for each of the rows in turn within an iteration."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, macros_naming, with_names
from warpwright.rewrites._indent import opens_line
from warpwright.rewrites._layout import free_name, line_of, reindented, with_comment
from warpwright.rewrites._loops import header_of
from warpwright.rewrites._row_loop import targets
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import declared_name, descendants, uncommented

ROWS = 4
"""Rows at once: more take registers from the warps."""
_BESIDE = ("comment", "preproc_call")
_JUMPS = ("break_statement", "continue_statement", "return_statement", "goto_statement", "switch_statement")


@dataclass(frozen=True, slots=True)
class Rows:
    """`statements` are the work on the row `name`, of the type `kind`, which is less than `bound`; no bound is given
    where there always are as many rows as are done at once. `may_store`: the rows' stores may be in any order."""

    statements: tuple[Node, ...]
    name: str
    kind: str
    bound: str
    may_store: bool


@dataclass
class _Text:
    lines: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)


def shared_loops(kernel: Kernel, rows: Rows) -> list[Node]:
    """The loops of the work that do not depend on the row: those that are run once for several."""
    depends = _per_row(kernel, rows) | {rows.name}
    return [s for s in rows.statements if _is_shared(kernel, s, depends)]


def depends_on_row(kernel: Kernel, rows: Rows, node: Node) -> bool:
    """Whether an expression of the work names the row or what is computed from it."""
    return _uses(kernel, node, _per_row(kernel, rows) | {rows.name})


def jammed(kernel: Kernel, rows: Rows, unit: str) -> list[str]:
    """The lines that do the work for `ROWS` rows, from the first one on, which `rows.name` is. Refuses work whose order
    may not change."""
    per_row = _per_row(kernel, rows)
    depends = per_row | {rows.name}
    loops = shared_loops(kernel, rows)
    if not loops:
        raise NoMatchError(f"Nothing to gain: no loop is the same for each {rows.name}.")
    last = max(place for place, s in enumerate(rows.statements) if s in loops)
    head, tail = rows.statements[: last + 1], rows.statements[last + 1 :]
    _require_movable(kernel, rows, head, tail)
    per_row &= _declared(kernel, head)
    counter, row = free_name(kernel.span.code, "r"), free_name(kernel.span.code, f"{rows.name}_r")
    new = {name: f"{name}[{counter}]" for name in per_row} | {rows.name: row}
    writer = _Writer(kernel, rows, unit, counter, row, new, depends)
    text = _Text()
    for statement in head:
        if statement.type == "declaration":
            writer.declare(text, statement, per_row)
        elif statement in loops:
            writer.loop(text, statement)
        else:
            text.pending.append(writer.piece(statement))
    writer.flush(text, last=False)
    text.pending = [writer.piece(statement) for statement in tail]
    writer.flush(text, last=True)
    return text.lines


@dataclass(frozen=True)
class _Writer:
    kernel: Kernel
    rows: Rows
    unit: str
    counter: str
    row: str
    new: dict[str, str]
    depends: set[str]

    def piece(self, statement: Node) -> str:
        """The statement with its new names, and with the comments and directives that belong to it."""
        source = self.kernel.source
        text = reindented(with_names(source, statement, self.new), source.line_indent(statement.start_byte), "")
        return "\n".join([*self.leading(statement), text + self.trailing(statement)])

    def leading(self, statement: Node) -> list[str]:
        """The comments and directives on lines of their own right before a statement; those before the first statement
        of the work stay where they are."""
        source, found = self.kernel.source, list[str]()
        before = statement.prev_named_sibling if statement != self.rows.statements[0] else None
        while before is not None and before.type in _BESIDE and opens_line(source, before):
            found.insert(0, source.node_text(before).rstrip())
            before = before.prev_named_sibling
        return found

    def trailing(self, statement: Node) -> str:
        """The comment behind a statement on its last line; that behind the last of the work stays where it is."""
        start, end = with_comment(self.kernel.source, statement)
        kept = start == end or statement == self.rows.statements[-1]
        return "" if kept else self.kernel.source.text(statement.end_byte, end)

    def declare(self, text: _Text, declaration: Node, per_row: set[str]) -> None:
        """What is the same for all rows as it stands, the others as arrays, with their values for each row."""
        source = self.kernel.source
        declarators = declaration.children_by_field_name("declarator")
        names = [declared_name(source, d) for d in declarators]
        if not set(names) & per_row:
            self.flush(text, last=False)
            text.lines += self.piece(declaration).split("\n")
            return
        prefix = source.text(declaration.start_byte, declarators[0].start_byte).strip()
        text.lines += self.leading(declaration)
        for name, declarator in zip(names, declarators, strict=True):
            inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            value = declarator.child_by_field_name("value")
            pointer = inner is not None and inner.type == "pointer_declarator"
            plain = inner is not None and (inner.type == "identifier" or source.node_text(inner).strip("* ") == name)
            if name not in per_row or not plain or (value is not None and value.type == "initializer_list"):
                raise NoMatchError(f"Line {line_of(source, declaration)} declares more than one kind of variable.")
            kept = prefix if pointer else re.sub(r"\bconst(?:expr)?\s+|\s+const\b", "", prefix)
            text.lines.append(f"{kept} {'*' if pointer else ''}{name}[{ROWS}];")
            if declarator == declarators[-1]:
                text.lines[-1] += self.trailing(declaration)
            if value is not None:
                text.pending.append(f"{self.new[name]} = {with_names(source, value, self.new)};")

    def loop(self, text: _Text, loop: Node) -> None:
        """A loop that is the same for all rows, around what each of them does in an iteration."""
        source, inside = self.kernel.source, loop.child_by_field_name("body")
        if inside is None:
            return
        self.flush(text, last=False)
        inner, dependent = _Text(), False
        statements = uncommented(inside) if inside.type == "compound_statement" else [inside]
        for statement in (s for s in statements if s.type != "preproc_call"):
            once = statement.type == "declaration" and not _uses(self.kernel, statement, self.depends)
            if _is_shared(self.kernel, statement, self.depends) and not dependent:
                self.loop(inner, statement)
            elif once and not dependent:
                self.flush(inner, last=False)
                inner.lines += self.piece(statement).split("\n")
            else:
                dependent = dependent or statement.type == "declaration"
                inner.pending.append(self.piece(statement))
        self.flush(inner, last=False)
        header = header_of(source, loop)
        until = loop.start_byte + len(encoded(header))
        beside = [c for c in loop.named_children if c.type == "comment" and c.start_byte >= until]
        if inside.type == "compound_statement":
            last = statements[-1].end_byte if statements else inside.end_byte
            beside += [c for c in inside.named_children[:1] if c.type == "comment" and not opens_line(source, c)]
            after = [c for c in inside.named_children if c.start_byte >= last and opens_line(source, c)]
            inner.lines += [source.node_text(c).rstrip() for c in after]
        comments = "".join(f" {source.node_text(c)}" for c in beside)
        text.lines += [*self.leading(loop), f"{header} {{{comments}"]
        text.lines += [*(self.unit + line for line in inner.lines), f"}}{self.trailing(loop)}"]

    def flush(self, text: _Text, last: bool) -> None:
        """Put what each row does into a loop over the rows."""
        if not text.pending:
            return
        rows, unit = self.rows, self.unit
        named = any(re.search(rf"\b{re.escape(self.row)}\b", piece) for piece in text.pending)
        at = f"{rows.name} + {self.counter}"
        guarded = last and bool(rows.bound)
        body = [line for piece in text.pending for line in piece.split("\n")]
        if guarded:
            body = [f"if ({self.row} < {rows.bound}) {{", *(unit + line for line in body), "}"]
        elif rows.bound:
            at = f"{at} < {rows.bound} ? {at} : {rows.bound} - 1"
        lines = [f"const {rows.kind} {self.row} = {at};"] if named or guarded else []
        lines += body
        head = f"for (int {self.counter} = 0; {self.counter} < {ROWS}; {self.counter}++)"
        text.lines += ["#pragma unroll", f"{head} {{", *(unit + line for line in lines), "}"]
        text.pending = []


def _per_row(kernel: Kernel, rows: Rows) -> set[str]:
    """The variables of the work that each row has its own value of."""
    source = kernel.source
    declarators = {
        declared_name(source, declarator): declarator
        for statement in rows.statements
        if statement.type == "declaration"
        for declarator in statement.children_by_field_name("declarator")
    }
    found = declarators.keys() & _changed(kernel, rows.statements)
    grown = True
    while grown:
        more = {
            name
            for name, declarator in declarators.items()
            if name not in found and _uses(kernel, declarator, found | {rows.name})
        }
        found |= more
        grown = bool(more)
    return set(found)


def _changed(kernel: Kernel, statements: tuple[Node, ...]) -> set[str]:
    source = kernel.source
    return {source.node_text(t) for s in statements for t in targets(s, source) if t.type == "identifier"}


def _uses(kernel: Kernel, node: Node, names: set[str]) -> bool:
    return any(kernel.source.node_text(n) in names for n in descendants(node, "identifier"))


def _is_shared(kernel: Kernel, statement: Node, depends: set[str]) -> bool:
    inside = statement.child_by_field_name("body")
    return (
        statement.type == "for_statement"
        and inside is not None
        and not any(_uses(kernel, part, depends) for part in statement.named_children if part != inside)
    )


def _require_movable(kernel: Kernel, rows: Rows, head: tuple[Node, ...], tail: tuple[Node, ...]) -> None:
    source = kernel.source
    hidden = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(_per_row(kernel, rows) | {rows.name})))})\b")
    for macro in macros_naming(source, hidden):
        if any(re.search(rf"\b{re.escape(macro)}\b", source.node_code(s)) for s in rows.statements):
            raise NoMatchError(f"The macro {macro} names what each row has its own value of.")
    for statement in rows.statements:
        if statement.type == "preproc_call":
            raise NoMatchError(f"A directive stands at line {line_of(source, statement)}, in the work on a row.")
        for jump in descendants(statement, *_JUMPS):
            raise NoMatchError(f"The work on a row may end early at line {line_of(source, jump)}.")
        for declared in descendants(statement, "reference_declarator", "array_declarator", "storage_class_specifier"):
            raise NoMatchError(f"Line {line_of(source, declared)} declares more than numbers and pointers.")
    first = [d for s in rows.statements if s.type == "declaration" for d in _declarators(s)]
    every = [d for s in rows.statements for each in descendants(s, "declaration") for d in _declarators(each)]
    names, own = [declared_name(source, d) for d in first], {declared_name(source, d) for d in every}
    later = {declared_name(source, d) for d in every if d not in first}
    if len(names) != len(set(names)) or later & set(names) or rows.name in own:
        raise NoMatchError("One name stands for several variables in the work on a row.")
    outer = _changed(kernel, rows.statements) - own
    if rows.name in outer:
        raise NoMatchError(f"`{rows.name}` changes in the work on a row.")
    for statement in head:
        if _uses(kernel, statement, outer):
            raise NoMatchError(f"Line {line_of(source, statement)} uses what the work on other rows changes.")
    for statement in (*head, *(() if rows.may_store else tail)):
        for target in targets(statement, source):
            if target.type != "identifier":
                raise NoMatchError(f"Line {line_of(source, target)} stores what the work on other rows may load.")


def _declarators(declaration: Node) -> list[Node]:
    return declaration.children_by_field_name("declarator")


def _declared(kernel: Kernel, statements: tuple[Node, ...]) -> set[str]:
    """The variables that are declared by the statements themselves."""
    return {declared_name(kernel.source, d) for s in statements if s.type == "declaration" for d in _declarators(s)}
