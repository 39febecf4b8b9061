"""What a candidate's host code does otherwise: verification runs kernels, and reads how host code launches them.

Host functions are compared statement by statement, without comments and spacing. What is read, and what no result
depends on, is left out: the grid, the block and the shared memory of each kernel's first launch, and of others that are
the same; variables that lead to nothing else; what is asked for launches of much shared memory; launch errors that are
looked at; and what is printed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.facts.launch_calls import LaunchUse, uses_in
from warpwright.facts.model import Program
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, uncommented, walk
from warpwright.syntax.source import Source
from warpwright.verify.error_checks import checked_call, error_checks

SHOWN_CHARACTERS = 80
_SHAPE = 3
"""Parts of `<<<grid, block, shared, stream>>>` that are read."""
_ERRORS = ("cudaGetLastError", "cudaPeekAtLastError", "C10_CUDA_KERNEL_LAUNCH_CHECK")
_WITH_ERRORS = (*_ERRORS, "cudaGetErrorString", "cudaGetErrorName", "cudaDeviceSynchronize", "cudaStreamSynchronize")
"""What may be called where errors are looked at, and changes no result."""
_OPT_IN = re.compile(r"MaxDynamicSharedMemorySize|MAX_DYNAMIC_SHARED_SIZE_BYTES")
_PRINTS = re.compile(r"(std::)?(f?printf|f?puts|perror)")
_STREAMS = re.compile(r"(std::)?(cout|cerr|clog)\b")
_ACTS = re.compile(r"(::)?(cuda|cu[A-Z]|hip|thrust::|cub::|(std::)?(mem|malloc|calloc|free|f?scanf|f?read|rand))")
_BODIES = ("body", "consequence", "alternative")
_CONTROL = (
    "if_statement", "for_statement", "while_statement", "do_statement", "switch_statement", "for_range_loop",
    "try_statement",
)  # fmt: skip
_DEFINITIONS = (
    "function_definition", "declaration", "preproc_def", "preproc_function_def", "type_definition", "alias_declaration",
)  # fmt: skip
_AROUND = (
    "preproc_if", "preproc_el", "namespace", "declaration_list", "linkage", "template_d", "struct_specifier",
    "class_specifier", "field_declaration_list",
)  # fmt: skip
"""What has functions in it, or around it."""
_NESTED = ("else_clause", "catch_clause", "preproc_else", "preproc_elif")


@dataclass(frozen=True, slots=True)
class _Step:
    """A statement, or the head of one that has others in it. `text` is what is compared, `shown` what is said; the end
    of a body shows nothing.

    `defines` are the variables to which it gives values, where it does nothing else; `uses` are those that it names,
    but for what is read of a launch. `launch` is the kernel that it launches, and `passed` the arguments.
    """

    text: str
    shown: str
    line: int
    defines: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    launch: str = ""
    passed: str = ""
    file: str = ""

    def told(self, text: str, *, is_gone: bool = False) -> HostDifference:
        return HostDifference(text, self.file, self.line, is_gone)


@dataclass(frozen=True, slots=True)
class HostDifference:
    """One statement of host code that the candidate has otherwise, in words, at its place: in the original, where it is
    gone, else in the candidate."""

    text: str
    file: str
    line: int
    is_gone: bool = False


def host_differences(
    old: Program, new: Program, replaced: Collection[tuple[str, int]] = (), by: Collection[tuple[str, int]] = ()
) -> tuple[HostDifference, ...]:
    """Where host code differs beyond what is read of it. The lines `replaced` of the original, and `by` of the
    candidate, each with its file, are compared by other means."""
    if all(_same_text(old, new, path) for path in {*old.sources, *new.sources}):
        return ()
    before, after = _host_code(old), _host_code(new)
    return tuple(
        difference
        for name in dict.fromkeys([*before, *after])
        for difference in _differences(before.get(name, []), after.get(name, []))
        if (difference.file, difference.line) not in (replaced if difference.is_gone else by)
    )


def _same_text(old: Program, new: Program, path: str) -> bool:
    if path == old.source.path:
        return old.source.data == new.source.data
    mine, theirs = old.sources.get(path), new.sources.get(path)
    return path == new.source.path or (mine is not None and theirs is not None and mine.data == theirs.data)


def _differences(before: list[_Step], after: list[_Step]) -> Iterator[HostDifference]:
    matcher = difflib.SequenceMatcher(None, [s.text for s in before], [s.text for s in after], autojunk=False)
    changed = [(before[a:b], after[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    gone = [step for removed, _ in changed for step in removed if step.shown]
    came = [step for _, added in changed for step in added if step.shown]
    for step in list(came):
        same = next((each for each in gone if each.text == step.text), None)
        if same is not None:
            gone.remove(same)
            came.remove(step)
            yield step.told(f"`{step.shown}` stands elsewhere")
    for removed, added in changed:
        left, right = [s for s in removed if s in gone], [s for s in added if s in came]
        if len(left) == len(right):
            pairs = zip(left, right, strict=True)
            yield from (_replaced(mine, theirs) for mine, theirs in pairs if not _has_more_passed(mine, theirs))
        else:
            yield from (step.told(f"`{step.shown}` is gone", is_gone=True) for step in left)
            yield from (step.told(f"`{step.shown}` is new") for step in right)


def _has_more_passed(mine: _Step, theirs: _Step) -> bool:
    """Whether a launch hands over more behind the same arguments, which are read or else the kernels are not compared:
    `(out, n)` and `(out, n, rows)`."""
    return (
        bool(mine.launch) and mine.launch == theirs.launch and theirs.passed.startswith(mine.passed[:-1].rstrip() + ",")
    )


def _replaced(mine: _Step, theirs: _Step) -> HostDifference:
    if mine.launch and mine.launch == theirs.launch and mine.passed != theirs.passed:
        return theirs.told(f"{mine.launch} is passed `{theirs.passed}`, and `{mine.passed}` by the original")
    return theirs.told(f"`{theirs.shown}` was `{mine.shown}`")


def differs_in_checks_alone(old: Program, new: Program) -> bool:
    """Whether the host code of both, launches and shapes too, is the same but for what looks at errors or prints."""
    (before, before_outside), (after, after_outside) = (_steps(side, shapes=True) for side in (old, new))
    said = [[step.text for step in side] for side in (before_outside, after_outside)]
    return said[0] == said[1] and _texts(before) == _texts(after)


def _texts(functions: dict[str, list[_Step]]) -> dict[str, list[str]]:
    return {name: [step.text for step in steps] for name, steps in functions.items()}


def _host_code(program: Program) -> dict[str, list[_Step]]:
    """The steps of each host function by its name (of several of one name all), and by "" macros and variables outside
    of functions that they use."""
    functions, outside = _steps(program, shapes=False)
    read = {name: _beyond_launches(steps) for name, steps in functions.items()}
    used = frozenset().union(*(step.uses for steps in read.values() for step in steps))
    while further := frozenset().union(*(s.uses for s in outside if s.defines & used)) - used:
        used |= further
    return {**read, "": [step for step in outside if step.defines & used]}


def _steps(program: Program, *, shapes: bool) -> tuple[dict[str, list[_Step]], list[_Step]]:
    """The steps of each host function by its name, and what stands outside of functions; but for functions and macros
    that look at errors alone. With `shapes` a launch's text has its grid and its block."""
    outside: list[_Step] = []
    functions: dict[str, list[_Step]] = {}
    checks, wrappers = _error_checks(program), error_checks(program.sources.values())
    launched: dict[str, str] = {}
    for source in program.sources.values():
        reader = _Reader(source, uses_in(source, {}), launched, checks, wrappers)
        if shapes:
            reader.shapes.clear()
        for node in _outermost(source.root):
            if node.type != "function_definition":
                name = node.child_by_field_name("name") if node.type == "preproc_function_def" else None
                if name is None or source.node_text(name) not in wrappers:
                    outside.append(reader.step(node))
            elif function_name(source, node) in wrappers:
                continue
            elif (body := node.child_by_field_name("body")) is not None:
                functions.setdefault(function_name(source, node) or "?", []).extend(reader.steps(body))
    return functions, outside


def _beyond_launches(steps: list[_Step]) -> list[_Step]:
    """Those that do more than give values to variables which lead to launches' shapes and nothing else."""
    leading = frozenset().union(*(step.defines for step in steps))
    while True:
        others = [step for step in steps if not step.defines or step.defines - leading]
        if not (lost := leading & frozenset().union(*(step.uses | step.defines for step in others))):
            return others
        leading -= lost


def _outermost(root: Node) -> Iterator[Node]:
    """Host functions, variables and macros outside of functions and types."""
    for child in root.named_children:
        if child.type in _DEFINITIONS:
            if not any(part.type in ("__global__", "__device__", "__constant__") for part in child.children):
                yield child
        elif child.type.startswith(_AROUND):
            yield from _outermost(child)


def _error_checks(program: Program) -> frozenset[str]:
    """What reads a launch's error: functions of the library, and the program's macros around them."""
    found = set(_ERRORS)
    for source in program.sources.values():
        for node in descendants(source.root, "preproc_function_def", "preproc_def"):
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None and any(each in source.node_text(value) for each in _ERRORS):
                found.add(source.node_text(name))
    return frozenset(found)


class _Reader:
    """Reads one file's host code. `launched` has the shape of each kernel's first launch as text, and is added to."""

    def __init__(
        self,
        source: Source,
        uses: Iterable[LaunchUse],
        launched: dict[str, str],
        checks: frozenset[str],
        wrappers: frozenset[str],
    ) -> None:
        self.source = source
        self.checks = checks
        self.wrappers = wrappers
        self.shapes: list[tuple[Node, Node]] = []  # the first and the last of parts that stand together
        self.launches: dict[int, tuple[str, str, str]] = {}  # by call: kernel, arguments, its shape if it is another
        for use in uses:
            named = use.api.kernel if use.api is not None else use.node.child_by_field_name("function")
            arguments = use.node.child_by_field_name("arguments")
            kernel = unqualified(source.node_text(named)) if named is not None else ""
            shape = list(use.api.shape) if use.api is not None else uncommented(use.syntax)[:_SHAPE]
            self.shapes += [(shape[0], shape[-1])] if use.api is None and shape else [(part, part) for part in shape]
            written = ", ".join(source.span(part).one_line for part in shape)
            other = "" if launched.setdefault(kernel, written) == written else written
            passed = source.span(arguments).one_line if use.syntax is not None and arguments is not None else ""
            self.launches[use.node.id] = kernel, passed, other

    def steps(self, node: Node) -> list[_Step]:
        """A statement and those in it, in their order."""
        if node.type == "compound_statement":
            return [step for child in uncommented(node) for step in self.steps(child)]
        if self._is_idle(node):
            return []
        bodies = _bodies(node)
        if not bodies:
            return [self.step(node)]
        inside = [step for body in bodies for step in self.steps(body)]
        head = self.step(node, bodies)
        defines = frozenset().union(*(step.defines for step in inside))
        if not all(step.defines for step in inside) or self._acts(node):
            defines = frozenset()
        return [replace(head, defines=defines), *inside, _Step(f"end of {head.text}", "", head.line, defines)]

    def step(self, node: Node, without: Sequence[Node] = ()) -> _Step:
        """One statement; the head of one without the statements in it."""
        checked = checked_call(self.source, node, self.wrappers)
        leaves = [
            leaf
            for leaf in walk(checked or node)
            if leaf.child_count == 0
            and leaf.type != "comment"
            and not any(
                first.start_byte <= leaf.start_byte and leaf.end_byte <= last.end_byte
                for first, last in (*self.shapes, *((part, part) for part in without))
            )
        ]
        launches = [self.launches[each.id] for each in walk(node) if each.id in self.launches]
        others = [other for *_, other in launches]
        end = without[0].start_byte if without else node.end_byte
        shown = " ".join(self.source.text(node.start_byte, end).split()).rstrip(";{ ")
        return _Step(
            " ".join([*(self.source.node_text(leaf) for leaf in leaves), *others, *([";"] if checked else [])]),
            shown if len(shown) <= SHOWN_CHARACTERS else shown[: SHOWN_CHARACTERS - 3] + "...",
            self.source.position(node.start_byte)[0],
            frozenset() if without or self._acts(node) else self._defined(node),
            frozenset(self._words(leaves)),
            *(launches[0][:2] if launches else ("", "")),
            self.source.path,
        )

    def _words(self, leaves: Iterable[Node]) -> Iterator[str]:
        for leaf in leaves:
            if leaf.type in ("identifier", "type_identifier"):
                yield self.source.node_text(leaf)
            elif leaf.type == "preproc_arg":
                yield from re.findall(r"[A-Za-z_]\w*", self.source.node_code(leaf))

    def _defined(self, node: Node) -> frozenset[str]:
        """The variables that a declaration, an assignment or a `#define` gives values; none of another statement."""
        targets: Sequence[Node | None] = ()
        if node.type in ("preproc_def", "preproc_function_def", "alias_declaration"):
            targets = [node.child_by_field_name("name")]
        elif node.type in ("declaration", "type_definition"):
            targets = node.children_by_field_name("declarator")
        else:
            inner = uncommented(node)[0] if node.type == "expression_statement" and uncommented(node) else node
            kinds = {"assignment_expression": "left", "update_expression": "argument"}
            target = inner.child_by_field_name(kinds[inner.type]) if inner.type in kinds else None
            if target is not None and target.type in ("identifier", "field_expression"):
                targets = [target] if "->" not in self.source.node_code(target) else ()
        named = ("identifier", "type_identifier")
        names = (next(descendants(target, *named), None) for target in targets if target is not None)
        return frozenset(self.source.node_text(name) for name in names if name is not None)

    def _acts(self, node: Node, but: Collection[str] = ()) -> bool:
        """Whether it may do more than compute: it launches, calls what copies or allocates (`but` for some functions),
        or hands out an address."""
        for each in walk(node):
            if each.id in self.launches or each.type in ("lambda_expression", "new_expression"):
                return True
            if each.type == "pointer_expression" and self.source.node_code(each).startswith("&"):
                return True
            function = each.child_by_field_name("function") if each.type == "call_expression" else None
            name = self.source.node_code(function) if function is not None else ""
            if _ACTS.match(name) and name not in but:
                return True
        return False

    def _is_idle(self, node: Node) -> bool:
        """Whether no result depends on it: it looks at launch errors, asks for shared memory, or prints."""
        text = self.source.node_text(node)
        inner = uncommented(node)[0] if node.type == "expression_statement" and uncommented(node) else node
        called = inner.child_by_field_name("function") if inner.type == "call_expression" else None
        name = self.source.node_text(called) if called is not None else ""
        if any(each.id in self.launches for each in walk(node)):
            return False
        condition = node.child_by_field_name("condition") if node.type == "if_statement" else None
        asked = self.source.node_text(condition) if condition is not None else text if called is not None else ""
        looks = any(re.search(rf"\b{check}\b", asked) for check in self.checks) and not self._acts(
            node, but=_WITH_ERRORS
        )
        if looks or (called is not None and _OPT_IN.search(text)):
            return True
        prints = bool(_PRINTS.fullmatch(name)) or bool(_STREAMS.match(text))
        return prints and not self._acts(node)


def _bodies(node: Node) -> list[Node]:
    """The statements in a statement."""
    if node.type in (*_NESTED, "case_statement", "preproc_if", "preproc_ifdef"):
        return [c for c in uncommented(node) if c.type.endswith("_statement") or c.type in ("declaration", *_NESTED)]
    if node.type not in _CONTROL:
        return []
    children = enumerate(node.children)
    return [c for at, c in children if node.field_name_for_child(at) in _BODIES or c.type in _NESTED]
