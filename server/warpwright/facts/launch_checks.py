"""Is a launch's error read after it, in its function or after the calls that lead there?"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.functions import called_name, function_name
from warpwright.cuda.walks import every_call, nodes_in
from warpwright.facts.unit import Unit
from warpwright.syntax.nodes import LOOPS, descendants, enclosing, launch_configuration, parent_of
from warpwright.syntax.source import Source

_READS_ERROR = {"cudaGetLastError", "cudaPeekAtLastError", "hipGetLastError"}
_CALLED = re.compile(r"(?:^|[.:>])\s*(\w+)\s*(?:<.*>)?$", re.DOTALL)
_WAITS = {
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaThreadSynchronize",
    "cudaMemcpy",
    "cudaMemcpyFromSymbol",
}
_SCOPES = ("function_definition", "lambda_expression")
_BRANCHES = ("if_statement", "switch_statement")
_COUNTED = ("for_statement", "for_range_loop")
_ENDS = ("return_statement", "goto_statement", "throw_statement", "co_return_statement")
_LEAVES = (*_ENDS, "continue_statement")
_TELLS_NOTHING = {
    "cudaMemset",
    "cudaMemsetAsync",
    "cudaMemcpyAsync",
    "cudaMemcpyToSymbol",
    "cudaMemcpyToSymbolAsync",
    "cudaSetDevice",
    "swap",
}
"""Calls after which the host knows no more of what a kernel did, and which read no error of a launch."""
_TIMERS = {"now", "duration", "duration_cast", "count", "cudaEventRecord", "cudaEventElapsedTime"}
_WAITS_ALONE = {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaThreadSynchronize"}
_READS_MEMORY = ("subscript_expression", "pointer_expression", "field_expression")
_TO_DEVICE = re.compile(r"\bcudaMemcpy(?:HostToDevice|DeviceToDevice)\b")
_CHECKER = re.compile(r"check|err|assert|verify|safe", re.IGNORECASE)


@dataclass(slots=True)
class LaunchChecks:
    """Where the functions of a unit read launch errors, and who calls them; each function is looked through once."""

    unit: Unit
    last: dict[int, int] = field(default_factory=lambda: {})  # function -> where the last such call starts
    covered: dict[str, bool] = field(default_factory=lambda: {})  # function -> whether each call of it is read behind
    calls: dict[str, list[tuple[Source, Node]]] | None = None  # of host functions, by the name that is called

    def launch_is_checked(self, source: Source, call: Node) -> bool:
        """True where the launch's own error is read behind it in the same function, directly or by a helper, or so
        behind each call of the function that the unit has.

        A checked cudaDeviceSynchronize does not count: a launch with a bad configuration never reaches the device, and
        only cudaGetLastError and cudaPeekAtLastError tell of it (CUDA C++ Programming Guide, "Error Checking").
        """
        if self._is_read_behind(source, call):
            return True
        # A launch written as the argument of a macro: CUDA_CHECK(k<<<...>>>(...))
        outer = enclosing(call, "call_expression", "lambda_expression", "compound_statement")
        return outer is not None and outer.type == "call_expression"

    def _is_read_behind(self, source: Source, call: Node) -> bool:
        function = enclosing(call, "function_definition")
        scope = function if function is not None else source.root
        if scope.id not in self.last:
            calls = (
                nodes_in(scope, "call_expression") if function is not None else descendants(scope, "call_expression")
            )
            reads = (c for c in calls if _reads_launch_error(self.unit, source, c))
            self.last[scope.id] = max((c.start_byte for c in reads), default=-1)
        if self.last[scope.id] >= call.end_byte:
            return True
        name = function_name(source, function) if function is not None else None
        return name is not None and self._is_read_by_callers(name)

    def _is_read_by_callers(self, name: str) -> bool:
        if name not in self.covered:
            self.covered[name] = False  # while it is looked for: a function that calls itself
            calls = self._calls_of(name)
            self.covered[name] = bool(calls) and all(self._is_read_behind(*each) for each in calls)
        return self.covered[name]

    def _calls_of(self, name: str) -> list[tuple[Source, Node]]:
        if self.calls is None:
            self.calls = {}
            for source in self.unit.sources.values():
                for call in every_call(source):
                    function = call.child_by_field_name("function")
                    named = _CALLED.search(source.node_code(function)) if function is not None else None
                    if named is not None:
                        self.calls.setdefault(named[1], []).append((source, call))
        return self.calls.get(name, [])


def _reads_launch_error(unit: Unit, source: Source, call: Node) -> bool:
    function = call.child_by_field_name("function")
    name = source.node_code(function).rsplit("::", 1)[-1] if function is not None else ""
    if name in _READS_ERROR:
        return call.parent is None or call.parent.type != "expression_statement"  # dropped, it checks nothing
    if name == "C10_CUDA_KERNEL_LAUNCH_CHECK":
        return True
    macro = unit.macros.get(name)
    if macro is not None and any(word in macro.body for word in _READS_ERROR):
        return True
    for text in unit.functions.get(name, []):
        if any(word in text.source.node_code(text.node) for word in _READS_ERROR):
            return True
    if name in unit.functions or not _CHECKER.search(name):
        return False
    arguments = call.child_by_field_name("arguments")
    inside = source.node_code(arguments) if arguments is not None else ""
    return not re.search(r"\b(cuda|cu)[A-Z]\w*\s*\(", inside)


@lru_cache(maxsize=8)
def ends_of_branches(_source: Source, function: Node) -> dict[int, Node]:
    """The `switch`, or the `if` with its `else`, that launches in several of its branches, by the start of each launch
    of which every way leads to its end: one check there reads the error of whichever launch was made."""
    calls = [call for call in nodes_in(function, "call_expression") if launch_configuration(call) is not None]
    starts = [call.start_byte for call in calls]
    found = {call.start_byte: ends for call in calls if (ends := _branches(call, starts)) is not None}
    many = Counter(ends.start_byte for ends in found.values())
    return {start: ends for start, ends in found.items() if many[ends.start_byte] > 1}


def _branches(call: Node, starts: list[int]) -> Node | None:
    """The outermost `switch` or `if` that a launch leads to the end of, with more launches than any within it."""
    found, most = None, 1
    node = enclosing(call, "expression_statement") if enclosing(call, *_BRANCHES, *_SCOPES) is not None else None
    is_broken = False  # a `break` ends the case: what stands in later ones is not run
    while node is not None and (parent := node.parent) is not None:
        if parent.type in ("compound_statement", "case_statement"):
            around = parent.parent
            if around is None or around.type in _SCOPES:
                break
            after = [] if node.type == "case_statement" and is_broken else _after(node)
            ends = next((place for place, each in enumerate(after) if each.type == "break_statement"), len(after))
            if any(_leaves(each) for each in after[: ends + 1]):
                break
            is_broken = is_broken or ends < len(after)
        elif parent.type in _BRANCHES:
            launches = bisect_left(starts, parent.end_byte) - bisect_left(starts, parent.start_byte)
            if launches > most and parent.parent is not None and parent.parent.type != "else_clause":
                found, most = parent, launches
        elif parent.type != "else_clause":
            break
        node = parent
    return found


@lru_cache(maxsize=8)
def check_places(source: Source, function: Node) -> dict[int, Node]:
    """The statement behind which one check reads the error of a launch, by the start of each launch of a function: its
    own, what it is a branch of, or the outermost loop around these in which the host learns nothing of what was
    launched. An error stays until it is read, and what may be timed is left alone."""
    branches = ends_of_branches(source, function)
    found: dict[int, Node] = {}
    for call in nodes_in(function, "call_expression"):
        if launch_configuration(call) is not None:
            own = branches.get(call.start_byte) or enclosing(call, "expression_statement") or call
            found[call.start_byte] = _loop_around(source, own) or own
    return found


def _loop_around(source: Source, statement: Node) -> Node | None:
    found, node = None, statement
    while (body := node.parent) is not None:
        loop = body.parent if body.type == "compound_statement" else body
        if loop is None or loop.type not in LOOPS:
            break
        others = [each for each in body.named_children if each != node] if body is not loop else []
        if not all(_only_launches(each) for each in others) and (
            loop.type not in _COUNTED or not _tells_nothing(source, others)
        ):
            break
        found = node = loop
    return found


def _only_launches(statement: Node) -> bool:
    call = statement.named_child(0) if statement.type == "expression_statement" else None
    is_launch = call is not None and call.type == "call_expression" and launch_configuration(call) is not None
    return is_launch or statement.type == "comment"


def _tells_nothing(source: Source, statements: list[Node]) -> bool:
    """Whether statements of a loop lead nowhere else and let the host know nothing of what a kernel did, but its time.
    After a wait, memory that the host reads may be the kernel's."""
    others = [each for each in statements if not _only_launches(each)]
    if any(each.type not in ("expression_statement", "declaration", "if_statement") for each in others):
        return False
    if any(True for each in others for _ in descendants(each, *_LEAVES, "break_statement")):
        return False
    harmless = _TELLS_NOTHING | _TIMERS | _WAITS_ALONE
    calls = [call for each in others for call in descendants(each, "call_expression")]
    if any(called_name(call, source) not in harmless and not _copies_to_device(source, call) for call in calls):
        return False
    waits = any(called_name(call, source) in _WAITS_ALONE for call in calls)
    computes = [each for each in others if not any(True for _ in descendants(each, "call_expression"))]
    return not waits or not any(True for each in computes for _ in descendants(each, *_READS_MEMORY))


def _copies_to_device(source: Source, call: Node) -> bool:
    arguments = call.child_by_field_name("arguments")
    text = source.node_code(arguments) if arguments is not None else ""
    return called_name(call, source) == "cudaMemcpy" and _TO_DEVICE.search(text) is not None


def is_covered_later(source: Source, function: Node, call: Node) -> bool:
    """Whether a check after a later launch of the function would also read this one's error, before the host waits for
    either.

    It does where every path from this launch comes by: the later launch's block is the same or surrounds it, or one
    check follows both.
    """
    places = check_places(source, function)
    place = places.get(call.start_byte, call)
    if call.start_byte != max((start for start, each in places.items() if each == place), default=call.start_byte):
        return True
    later = _surrounding(source, function)
    first = bisect_left(later, (place.end_byte, 0))
    if first == len(later) or later[first][1] > place.start_byte:
        return False
    waits = waits_of(source, function)
    if bisect_left(waits, place.end_byte) != bisect_left(waits, later[first][0]):
        return False
    while (block := place.parent) is not None and block.start_byte > later[first][1]:
        if any(True for each in _after(place) for _ in descendants(each, *_ENDS)):
            return False
        place = block
    return True


@lru_cache(maxsize=8)
def waits_of(source: Source, function: Node) -> list[int]:
    """Where a function waits for what it launched, by the start of each call."""
    return [
        call.start_byte
        for call in nodes_in(function, "call_expression")
        if called_name(call, source) in _WAITS and not _copies_to_device(source, call)
    ]


@lru_cache(maxsize=8)
def _surrounding(source: Source, function: Node) -> list[tuple[int, int]]:
    """Where each launch of a function starts, and where the first block starts that it, or a later one before the host
    waits, stands in."""
    waits = waits_of(source, function)
    found: list[tuple[int, int]] = []
    outermost, following = function.end_byte, function.end_byte
    for start, place in sorted(check_places(source, function).items(), reverse=True):
        block = parent_of(place)
        if bisect_left(waits, start) != bisect_left(waits, following):
            outermost = function.end_byte
        if block is not None:
            outermost = min(outermost, block.start_byte)
        found.append((start, outermost))
        following = start
    return found[::-1]


def _leaves(statement: Node) -> bool:
    """Whether the end of the `switch` or `if` around a statement may be missed. A `break` leads there from a case."""
    if any(True for _ in descendants(statement, *_LEAVES)):
        return True
    left = (enclosing(each, "switch_statement", *LOOPS) for each in descendants(statement, "break_statement"))
    return any(around is None or around.type != "switch_statement" for around in left)


def is_waited_for(source: Source, call: Node) -> bool:
    """Whether the next statements wait for the kernel and look at the error of that, with nothing but plain statements
    between."""
    node = enclosing(call, "expression_statement")
    while node is not None and node.parent is not None and node.type not in _SCOPES:
        left: Node | None = None
        for each in _after(node):
            if each.type == "break_statement":
                left = enclosing(each, "switch_statement", *LOOPS)
                break
            if each.type not in ("if_statement", "expression_statement", "declaration", "comment"):
                return False
            looked_at = each.child_by_field_name("condition") if each.type == "if_statement" else each
            calls = descendants(looked_at, "call_expression") if looked_at is not None else ()
            if any(_waits(source, inner) for inner in calls):
                return True
            if each.type == "if_statement":
                return False
        node = left or node.parent
    return False


def _after(node: Node) -> list[Node]:
    found = []
    following = node.next_named_sibling
    while following is not None:
        found.append(following)
        following = following.next_named_sibling
    return found


def _waits(source: Source, call: Node) -> bool:
    function = call.child_by_field_name("function")
    name = source.node_code(function).removeprefix("::") if function is not None else ""
    return name in _WAITS and call.parent is not None and call.parent.type != "expression_statement"
