"""Is a launch's error read behind it, in its function or behind the calls that lead there?"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.facts.unit import Unit
from warpwright.syntax.nodes import descendants, enclosing
from warpwright.syntax.source import Source

_READS_ERROR = {"cudaGetLastError", "cudaPeekAtLastError", "hipGetLastError"}
_CALLED = re.compile(r"(?:^|[.:>])\s*(\w+)\s*(?:<.*>)?$", re.DOTALL)
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
            reads = (c for c in descendants(scope, "call_expression") if _reads_launch_error(self.unit, source, c))
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
                for call in descendants(source.closed_root, "call_expression"):
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
