"""Launches in host code: which kernel, with what grid, block, shared bytes and arguments, and is the error read.

Host variables are traced to their definition in the text before the launch; parameters of the host function to its
callers; what comes from outside (argv, a file) is taken as ASSUMED_EXTENT, the same for every use, so that a grid
computed from it and a guard against it agree. A variable that other code writes keeps at most a likely value.

One module, past 400 lines, because the reading of a launch, of names and of expressions call one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.algebra.integers import integer_operation
from warpwright.cuda.declared import declared
from warpwright.cuda.functions import function_name
from warpwright.cuda.launch_api import addressed, configured
from warpwright.cuda.owners import Owner, owners_in
from warpwright.cuda.walks import every_call, nodes_in
from warpwright.facts import ir
from warpwright.facts.allocations import allocation_of, is_kept, is_unfilled, member_allocations
from warpwright.facts.constants import fold
from warpwright.facts.expressions import sole_value
from warpwright.facts.host_loops import MAX_ITERATIONS, loop_steps
from warpwright.facts.host_scopes import (
    Definition,
    HostScope,
    defined_by_macro,
    given_members,
    read_definitions,
    written_names,
)
from warpwright.facts.launch_calls import LaunchUse, expanded, launch_uses, launching_macros, uses_in
from warpwright.facts.launch_checks import LaunchChecks
from warpwright.facts.launch_loops import loop_around
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import MAX_THREADS_PER_BLOCK, Basis, Dim3, HostLoop, Launch, Sweep
from warpwright.facts.preprocessor import Macro
from warpwright.facts.settled import is_settled, may_leave, sole_size
from warpwright.facts.types import CType, builtin_type
from warpwright.facts.unit import Unit, VariableText, template_parameters
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import (
    ancestors,
    descendants,
    enclosing,
    parameters_of,
    uncast,
    uncommented,
)
from warpwright.syntax.source import Source

DEFAULT_BLOCKS: dict[int, Dim3] = {1: (256, 1, 1), 2: (32, 8, 1), 3: (8, 8, 4)}
MAX_TRACE = 24
"""How far a number is followed through definitions and callers."""
LOOKUP_STEPS = 4
"""Of a name that is looked up in host code."""
SITE_STEPS = 64
"""Of a launch that is read, beside those of its expressions."""


@dataclass(frozen=True, slots=True)
class Known:
    """A host number; `assumed` where a part of it is not in the text, `is_default` where it holds unless a number from
    outside replaces it: 160 of `int n = 160; if (argc > 1) n = atoi(argv[1]);`"""

    value: int
    assumed: bool = False
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Triple:
    """A dim3; None for a part that is not known at all."""

    x: Known
    y: Known
    z: Known
    dims: int


HostValue = Known | Triple | None
Members = tuple[tuple[str, HostValue], ...]
"""What the text gives a struct's members once and for all, by their names or their places in a list."""
MemberMemory = tuple[tuple[str, int | None, bool], ...]
"""A struct's pointers by their names, with the bytes allocated for each, and whether nothing has used these before."""
_PLAIN = ("identifier", "init_declarator", "reference_declarator")
"""Declarators of variables that are neither pointers nor arrays."""
_LOOP_OR_FUNCTION = ("for_statement", "function_definition", "lambda_expression")


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """A launch with what only the analysis needs: template arguments, and the scalars passed."""

    kernel: str
    launch: Launch
    template_arguments: tuple[CType | int | None, ...]
    arguments: tuple[Known | None, ...]
    qualifier: tuple[str, ...] = ()  # the namespaces that the launch names
    is_reached: bool = True  # by the conditions around it, as far as the text decides them
    is_certain: bool = False  # its grid, block and shared memory follow from the text
    allocated: tuple[int | None, ...] = ()  # bytes that the host allocates for each argument, where the text says so
    unfilled: frozenset[int] = frozenset()  # the arguments whose memory nothing uses between its allocation and this
    members: tuple[Members, ...] = ()  # of the arguments that are structs
    memory: tuple[MemberMemory, ...] = ()  # what the pointers of those lead to
    objects: tuple[CType | None, ...] = ()  # the types of the arguments that are structs of the text


MAX_BINDINGS = 1
"""Different template arguments of a host function for which its launches are read."""
MAX_KERNELS = 4
"""That one launch names, by a variable that may be any of them."""
MAX_CALLERS = 4
"""Calls of a host function that pass different numbers for which its launches are read."""
MAX_FRAGMENTS = 200
"""Expansions of macros that launch in one unit: macros that use one another may double each time."""
MANY = 64
"""What a part of a run-time number, such as the tiles of a row, is at least."""


class HostReader:
    """Evaluates host expressions. Results are for the place of use: the last definition before it counts."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.scopes: dict[int, HostScope] = {}
        self.tracing: list[tuple[int, str, int]] = []
        self.calls: dict[str, list[tuple[Source, Node]]] | None = None
        self.bindings: dict[str, CType | int] = {}  # of the template of the host function that is read
        self.checks = LaunchChecks(unit)
        self.found: dict[tuple[int, str, int], HostValue] = {}
        self.cycles = 0  # how often a name that is being traced was met
        self.macros: dict[str, Macro] = {}  # those that launch
        self.expanding: list[str] = []
        self.fragments = 0
        self.written: frozenset[str] | None = None
        self.members: dict[str, list[tuple[Source, Node]]] | None = None  # the values of structs' members, by name
        self.disagreed: set[int] = set()  # functions whose callers pass different numbers
        self.allocations: dict[tuple[int, str], Node | None] = {}  # of pointers, by function and name
        self.member_calls: dict[tuple[int, str], Mapping[str, Node]] = {}  # of structs, the same
        self.caller: dict[int, tuple[Source, Node]] = {}  # of a function, the one that is looked at
        self.fixed: dict[tuple[int, str], Known] = {}  # variables of host loops, by function, in a later iteration
        self.bound: dict[int, list[dict[str, CType | int]]] = {}  # what calls bind, by host template
        self.binding: list[int] = []  # the host templates whose calls are being read
        self.cut_short: set[int] = set()  # of them, those that another's reading was in the way of
        self.named: dict[tuple[int, str, int], list[tuple[Node, HostScope]]] = {}  # kernels that variables are
        self.reached: dict[tuple[int, int], bool] = {}  # whether a side of a condition is, by both
        self.whole = True  # every launch was read

    def _outside(self) -> Known:
        """A number that is not in the text."""
        return Known(self.unit.extent, assumed=True)

    def _combined(self, op: str, left: HostValue, right: HostValue) -> HostValue:
        if isinstance(left, Known) and isinstance(right, Known):
            result = integer_operation(op, left.value, right.value)
            if op in ("/", ">>") and left.assumed and result is not None and result < MANY:
                return self._outside()  # a part of a large number is large, not what 4096 elements leave of it
            if result is not None:
                return Known(result, left.assumed or right.assumed, left.is_default or right.is_default)
        return self._outside()

    def _triple(self, parts: list[HostValue]) -> Triple:
        if len(parts) == 1 and isinstance(parts[0], Triple):
            return parts[0]
        known = [p if isinstance(p, Known) else self._outside() for p in parts[:3]]
        dims = max(1, len(known))
        known += [Known(1)] * (3 - len(known))
        return Triple(known[0], known[1], known[2], dims)

    def sites(self) -> Iterator[LaunchSite]:
        self.macros = launching_macros(self.unit)
        for use in launch_uses(self.unit):
            if self.unit.steps.spent:
                self.whole = False
                return
            try:
                scope = self.scope(use.span.source, use.node)
                for bindings in self._host_bindings(scope):
                    self.bindings = bindings
                    yield from self._over_callers(use, scope)
            except RecursionError:  # host code that nests too deeply costs its own launches alone
                self.whole = False
                self.tracing, self.expanding, self.binding = [], [], []
                self.caller, self.fixed, self.found, self.reached = {}, {}, {}, {}
            self.bindings = {}

    def _over_callers(self, use: LaunchUse, scope: HostScope) -> list[LaunchSite]:
        """The launches of a use, one by one for the calls of its host function where these pass different numbers.

        Example: `run(a, 64); run(a, 128);` makes two launches of `k<<<1, threads>>>(a)`.
        """
        together = self._over_iterations(use, scope)
        function = scope.function
        if function is None or function.id not in self.disagreed:
            return together
        out: list[LaunchSite] = []
        known = self.found, self.reached
        for source, call in self._calls_of(function_name(scope.source, function) or "")[:MAX_CALLERS]:
            self.caller[function.id], self.found, self.reached = (source, call), {}, {}
            reached = self._is_reached(call, self.scope(source, call))
            sites = (replace(s, is_reached=s.is_reached and reached) for s in self._over_iterations(use, scope))
            out += (site for site in sites if site not in out)
        del self.caller[function.id]
        self.found, self.reached = known
        return out

    def _over_iterations(self, use: LaunchUse, scope: HostScope) -> list[LaunchSite]:
        """The launches of a use in the first iteration of the loop that it depends on, and those that are different in
        a later one."""
        around = self._around(use, scope)
        sites = self._of_iterations(use, scope)
        return sites if around is None else [replace(s, launch=replace(s.launch, loop=around)) for s in sites]

    def _around(self, use: LaunchUse, scope: HostScope) -> HostLoop | None:
        """The loop around a launch, with its iterations where it is a `for` that nothing else ends."""
        loop = loop_around(use.node)
        if loop is None:
            return None
        condition, update = (loop.child_by_field_name(part) for part in ("condition", "update"))
        steps = None
        if loop.type == "for_statement" and condition is not None and update is not None:
            steps = loop_steps(self._lowered(scope, condition), self._lowered(scope, update))
        span = use.span.source.span(loop)
        body = loop.child_by_field_name("body") or loop
        if steps is None or condition is None or update is None or _may_end_early(use.span.source, body, steps.name):
            return HostLoop(span, None)
        start = self.lookup(steps.name, scope, update.start_byte)
        bound = self.value(steps.bound, scope, condition.start_byte)
        known = [v.value for v in (start, bound) if isinstance(v, Known) and not v.assumed and not v.is_default]
        bound_text = condition.child_by_field_name("right") if len(known) == 2 else None
        if bound_text is None or not is_settled(self.unit, scope, [bound_text]):
            return HostLoop(span, None)
        return HostLoop(span, steps.count(*known))

    def _of_iterations(self, use: LaunchUse, scope: HostScope) -> list[LaunchSite]:
        loop = self._loop(use, scope)
        if loop is None:
            return list(self._sites_of(use, scope, use, True))
        variable, values = loop
        chosen = [values[0], *values[len(values) // 2 :][: len(values) > 1]]
        sites = [self._of_iteration(use, scope, variable, value) for value in chosen]
        if len({tuple(site.launch.block for site in each) for each in sites}) > 1:
            sites = _swept([*sites, self._of_iteration(use, scope, variable, values[-1])], values)
        out: list[LaunchSite] = []
        for each in sites:
            out += (site for site in each if site not in out)
        return out

    def _of_iteration(
        self, use: LaunchUse, scope: HostScope, variable: tuple[int, str], value: Known
    ) -> list[LaunchSite]:
        known = self.found, self.reached
        self.fixed[variable], self.found, self.reached = value, {}, {}
        sites = list(self._sites_of(use, scope, use, True))
        del self.fixed[variable]
        self.found, self.reached = known
        return sites

    def _loop(self, use: LaunchUse, scope: HostScope) -> tuple[tuple[int, str], list[Known]] | None:
        """The variable of a loop around a launch that names it, with its values: 1 to 32 of i in
        `for (int i = 1; i <= 32; i++) k<<<1, 64>>>(i)`."""
        around = enclosing(use.node, *_LOOP_OR_FUNCTION)
        while around is not None and around.type == "for_statement":
            loop, around = around, enclosing(around, *_LOOP_OR_FUNCTION)
            condition, update = (loop.child_by_field_name(part) for part in ("condition", "update"))
            if condition is None or update is None:
                continue
            steps = loop_steps(self._lowered(scope, condition), self._lowered(scope, update))
            if steps is None or not re.search(rf"\b{re.escape(steps.name)}\b", use.span.code):
                continue
            start = self.lookup(steps.name, scope, update.start_byte)
            bound = self.value(steps.bound, scope, condition.start_byte)
            if isinstance(start, Known) and not start.assumed and isinstance(bound, Known):
                values = list(steps.values(start.value, bound.value))
                later = [Known(value, bound.assumed) for value in values[1:]]
                return (scope.function.id if scope.function is not None else 0, steps.name), [start, *later]
        return None

    def _sites_of(self, use: LaunchUse, scope: HostScope, place: LaunchUse, reached: bool) -> Iterator[LaunchSite]:
        """The launches of a use, which stands in `scope`; `place` is what a reader sees of it."""
        self.unit.steps.take(SITE_STEPS)
        reached = reached and self._is_reached(use.node, scope)
        if use.syntax is not None or use.api is not None:
            function = use.api.kernel if use.api is not None else use.node.child_by_field_name("function") or use.node
            for named, where in self._kernels_named(function, scope, use.node.start_byte):
                name = self._through_macro(unqualified(where.source.node_code(named)))
                if use.syntax is not None or name in self.unit.functions:
                    yield self._site(use, scope, place, reached, named, where)
            return
        name = use.macro.name if use.macro is not None else ""
        text = expanded(use) if name not in self.expanding and self.fragments < MAX_FRAGMENTS else None
        if text is None:
            return
        self.fragments += 1
        self.expanding.append(name)
        for inner in uses_in(text, self.macros):
            inside = self.scope(text, inner.node)
            inside.outer = (scope, use.span.start)
            yield from self._sites_of(inner, inside, place, reached)
        self.expanding.pop()

    def _host_bindings(self, scope: HostScope) -> list[dict[str, CType | int]]:
        """What the parameters of a host function's template stand for, for each different call with such arguments.

        Example: `run<float, 256>(a, n)` binds T and N in `template <class T, int N> void run(T* a, int n)`.
        """
        template = enclosing(scope.function, "template_declaration") if scope.function is not None else None
        if scope.function is None or template is None:
            return [{}]
        function = scope.function
        if function.id in self.bound:
            return self.bound[function.id]
        if function.id in self.binding:
            self.cycles += 1
            return [{}]
        if len(self.binding) > MAX_TRACE or not self.unit.steps.take():
            return [{}]
        cycles = self.cycles
        self.binding.append(function.id)
        outer, self.bindings = self.bindings, {}
        out = self.bound[function.id] = self._bound_by_calls(scope, function, template)
        self.bindings = outer
        self.binding.pop()
        if self.cycles != cycles and self.binding:
            self.cut_short.add(function.id)
        if not self.binding:  # what was found on the way without what was being read is looked for again
            self.bound = {known: found for known, found in self.bound.items() if known not in self.cut_short}
            self.cut_short.clear()
        return out

    def _bound_by_calls(self, scope: HostScope, function: Node, template: Node) -> list[dict[str, CType | int]]:
        """What the calls of a host template bind its parameters to, its calls of itself last."""
        parameters = template_parameters(scope.source, template)
        calls = self._calls_of(function_name(scope.source, function) or "")
        out: list[dict[str, CType | int]] = []
        for source, call in sorted(calls, key=lambda place: self.scope(*place) is scope):
            called = call.child_by_field_name("function")
            if called is None or not self.unit.steps.take():
                continue
            self.bindings = self._host_bindings(self.scope(source, call))[0]
            given = list(self._templates(Lowerer(self.unit, source, self.bindings), called, self.scope(source, call)))
            bound = {p.name: value for p, value in zip(parameters, given, strict=False) if value is not None}
            for parameter in parameters[len(given) :]:
                if parameter.default is not None and not parameter.is_type:
                    lowerer = Lowerer(self.unit, scope.source, bound)
                    default = lowerer.expression_of_text(parameter.default, scope.source.span(template))
                    number = fold(default) if default is not None else None
                    if isinstance(number, int):
                        bound[parameter.name] = number
            if bound and bound not in out:
                out.append(bound)
            if len(out) == MAX_BINDINGS:
                break
        return out or [{}]

    def _kernels_named(self, function: Node, scope: HostScope, before: int) -> list[tuple[Node, HostScope]]:
        """The kernels that a launch names, itself or by a variable, each with the function whose text names
        them. Example: `auto k = f<4>; k<<<1, 32>>>();`"""
        name = scope.source.node_code(function)
        if function.type != "identifier" or name in self.unit.functions:
            return [(function, scope)]
        found: list[tuple[Node, HostScope]] = []
        key = (function.id, name, before)
        if key in self.named:
            return self.named[key]
        if key in self.tracing or len(self.tracing) > MAX_TRACE or not self.unit.steps.take():
            return [(function, scope)]
        self.tracing.append(key)
        values = [d.value for d in scope.definitions.get(name, []) if d.start < before and d.value is not None]
        places = [(value, scope, before) for value in values]
        parameter = self._parameter_index(name, scope) if not values else None
        if parameter is not None and scope.function is not None:
            for source, call in self._calls_of(function_name(scope.source, scope.function) or "")[:MAX_KERNELS]:
                items = uncommented(call.child_by_field_name("arguments"))
                if parameter < len(items):
                    places.append((items[parameter], self.scope(source, call), call.start_byte))
        for value, where, at in places:
            for node in _named_functions(value):
                if unqualified(where.source.node_code(node)) in self.unit.functions:
                    found.append((node, where))
                elif node.type == "identifier":
                    found += [f for f in self._kernels_named(node, where, at) if f[0] != node]
        self.tracing.pop()
        self.named[key] = found[-MAX_KERNELS:] or [(function, scope)]
        return self.named[key]

    def _site(
        self, use: LaunchUse, scope: HostScope, place: LaunchUse, reached: bool, function: Node, named: HostScope
    ) -> LaunchSite:
        """`function` is the kernel's name, in the text of `named`."""
        source, call = use.span.source, use.node
        spelled = named.source.node_code(function)
        name = self._through_macro(unqualified(spelled))
        lowerer = Lowerer(self.unit, source, self.bindings)
        grid, block, shared = self._configuration(use, scope, lowerer)
        block_dims, basis = _block_shape(block)
        grid_dims: tuple[int | None, int | None, int | None] = (None, None, None)
        if grid is not None:
            grid_dims = (
                None if grid.x.assumed else grid.x.value,
                None if grid.y.assumed else grid.y.value,
                None if grid.z.assumed else grid.z.value,
            )
        dynamic = shared.value if isinstance(shared, Known) and not shared.assumed else None
        checked = self.checks.launch_is_checked(source, call)
        if use.api is not None:  # it returns the error
            checked = checked or (call.parent is not None and call.parent.type != "expression_statement")
        if place is not use:
            checked = checked or self.checks.launch_is_checked(place.span.source, place.node)
        where = f"{place.span.path}:{place.span.line}"
        launch = Launch(grid_dims, block_dims, dynamic, basis, where, place.span, checked)
        given = uncommented(call.child_by_field_name("arguments"))
        if use.api is not None:
            packed = use.api.packed
            given = list(use.api.arguments) if packed is None else addressed(source, call, packed)
        values: list[Known | None] = []
        for argument in given:
            value = self.value(lowerer.expression(argument), scope, call.start_byte)
            # A default is a likely block; as an argument it would decide what the kernel does and where lanes access
            values.append(value if isinstance(value, Known) and not value.is_default else None)
        qualifier = tuple(part.strip() for part in spelled.partition("<")[0].split("::")[:-1] if part.strip())
        reader = Lowerer(self.unit, named.source, self.bindings)
        templates = tuple(self._templates(reader, function, named))
        allocated = tuple(self._allocated(scope, node, call.start_byte) for node in given)
        parts = [part for triple in (grid, block) if triple is not None for part in (triple.x, triple.y, triple.z)]
        certain = len(parts) == 6 and not any(_is_open(part) for part in (*parts, shared))
        passed = [
            node
            for node, value, size in zip(given, values, allocated, strict=True)
            if value is not None and not value.assumed and size is None
        ]
        certain = certain and use.syntax is not None and reached and not may_leave(self.unit, scope, call)
        certain = certain and is_settled(self.unit, scope, [*uncommented(use.syntax)[:3], *passed])
        unfilled = frozenset(i for i, node in enumerate(given) if self._is_unfilled(scope, node, call))
        members = tuple(self._members(scope, node, call.start_byte) for node in given)
        memory = tuple(self._member_memory(scope, node, call) for node in given)
        objects = tuple(self._object_type(scope, node) for node in given)
        return LaunchSite(
            *(name, launch, templates, tuple(values), qualifier, reached, certain, allocated, unfilled),
            *(members, memory, objects),
        )

    def _members(self, scope: HostScope, argument: Node, before: int) -> Members:
        triple = self.value(self._lowered(scope, argument), scope, before)
        if isinstance(triple, Triple) and is_settled(self.unit, scope, [argument]):
            parts = (("x", triple.x), ("y", triple.y), ("z", triple.z))
            return tuple((axis, part) for axis, part in parts if not _is_open(part))
        name = scope.source.node_code(argument)
        whole = [d for d in scope.definitions.get(name, ()) if d.kind != "declare"]
        if argument.type != "identifier" or len(whole) > 1 or any(d.kind == "written" or d.sides for d in whole):
            return ()
        given: dict[str, Node] = {}
        listed = whole[0].value if whole and whole[0].start < before else None
        if listed is not None and listed.type == "initializer_list":
            given = dict(_listed(listed))
        for spelled, definitions in scope.definitions.items():
            owner, _, member = spelled.partition(".")
            if owner != name or not member:
                continue
            first = definitions[0]
            if len(definitions) > 1 or listed is not None or first.kind != "=" or first.sides or first.start >= before:
                return ()
            if first.value is not None:
                given[member] = first.value
        found: list[tuple[str, HostValue]] = []
        for member, node in given.items():
            value = self.value(self._lowered(scope, node), scope, node.start_byte)
            numbers = (value.x, value.y, value.z) if isinstance(value, Triple) else (value,)
            if not any(_is_open(number) for number in numbers) and is_settled(self.unit, scope, [node]):
                found.append((member, value))
        return tuple(found)

    def _allocation(self, scope: HostScope, argument: Node, before: int) -> Node | None:
        """The one call that gives an argument its memory."""
        argument = uncast(scope.source, argument)
        if argument.type != "identifier" or scope.function is None:
            return None
        key = (scope.function.id, scope.source.node_code(argument))
        if key not in self.allocations:
            self.allocations[key] = allocation_of(self.unit, scope.source, scope.function, key[1])
        call = self.allocations[key]
        return None if call is None or call.start_byte >= before else call

    def _object_type(self, scope: HostScope, argument: Node) -> CType | None:
        """The struct of the text that an argument is: `Op{}`, `Op(a)`, or a variable that is declared once."""
        typed = argument.child_by_field_name("type") if argument.type == "compound_literal_expression" else None
        if argument.type == "call_expression":
            typed = argument.child_by_field_name("function")
        if argument.type == "identifier" and scope.function is not None:
            every = declared(scope.source, scope.function, scope.source.node_code(argument))
            plain = [each for each in every if each.declarator.type in _PLAIN]
            typed = plain[0].type if len(plain) == 1 else None
        text = scope.source.node_code(typed) if typed is not None else ""
        if unqualified(text) not in self.unit.types:
            return None
        kind = Lowerer(self.unit, scope.source, self.bindings).named_type(text)
        return kind if kind.kind == "struct" else None

    def _member_memory(self, scope: HostScope, argument: Node, launch: Node) -> MemberMemory:
        """The pointers of a struct that the function declares, and gives its memory member by member."""
        if argument.type != "identifier" or scope.function is None:
            return ()
        found: list[tuple[str, int | None, bool]] = []
        owner = scope.source.node_code(argument)
        key = scope.function.id, owner
        if key not in self.member_calls:
            self.member_calls[key] = member_allocations(self.unit, scope.source, scope.function, owner)
        for member, call in self.member_calls[key].items():
            if call.start_byte < launch.start_byte:
                unfilled = is_unfilled(scope.source, scope.function, f"{owner}.{member}", call, launch)
                found.append((member, self._bytes_of(scope, call), unfilled))
        return tuple(found)

    def _owner(self, scope: HostScope, argument: Node, before: int) -> Owner | None:
        """The object whose memory an argument is, as in `x.get()`, where it is declared before and only asked for its
        members."""
        if scope.function is None or argument.type not in ("call_expression", "field_expression"):
            return None
        text = "".join(scope.source.node_code(argument).split())
        name, dot, member = text.partition(".")
        for owner in owners_in(scope.source, scope.function):
            if owner.name == name and dot + member in owner.kind.pointers and owner.declaration.end_byte <= before:
                return owner if is_kept(scope.source, scope.function, name) else None
        return None

    def _is_unfilled(self, scope: HostScope, argument: Node, launch: Node) -> bool:
        owner = self._owner(scope, uncast(scope.source, argument), launch.start_byte)
        if owner is not None and scope.function is not None:
            first = is_unfilled(scope.source, scope.function, owner.name, owner.declaration, launch)
            return first and not owner.kind.fills
        call = self._allocation(scope, argument, launch.start_byte)
        name = scope.source.node_code(uncast(scope.source, argument))
        return (
            call is not None
            and scope.function is not None
            and is_unfilled(scope.source, scope.function, name, call, launch)
        )

    def _allocated(self, scope: HostScope, argument: Node, before: int) -> int | None:
        """The bytes that a pointer's one allocation in the function asks for, where these follow from the text; none
        of a null pointer."""
        if uncast(scope.source, argument).type == "null":
            return 0
        owner = self._owner(scope, uncast(scope.source, argument), before)
        if owner is not None:
            return self._bytes_owned(scope, owner)
        call = self._allocation(scope, argument, before)
        return None if call is None else self._bytes_of(scope, call)

    def _bytes_owned(self, scope: HostScope, owner: Owner) -> int | None:
        """The bytes that an object asks for, where the text says so."""
        kind = builtin_type(owner.element)
        if kind is None or kind.size is None or not is_settled(self.unit, scope, owner.factors):
            return None
        total = kind.size
        for factor in owner.factors:
            count = self.value(self._lowered(scope, factor), scope, owner.declaration.end_byte)
            if not isinstance(count, Known) or _is_open(count):
                return None
            total *= count.value
        return total

    def _bytes_of(self, scope: HostScope, call: Node) -> int | None:
        """The bytes that an allocation asks for, where the text says so."""
        bytes_of = uncommented(call.child_by_field_name("arguments"))[1]
        size = self.value(self._lowered(scope, bytes_of), scope, call.start_byte)
        if not isinstance(size, Known) or _is_open(size) or not is_settled(self.unit, scope, [bytes_of]):
            return None
        return size.value

    def _configuration(
        self, use: LaunchUse, scope: HostScope, lowerer: Lowerer
    ) -> tuple[Triple | None, Triple | None, HostValue]:
        """Grid, block and bytes of dynamic shared memory of a launch."""
        call, api = use.node, use.api
        if api is None or api.config is None:
            config = list(api.shape) if api is not None else uncommented(use.syntax)
            grid = self._dims(lowerer, config[0], scope) if config else None
            block = self._dims(lowerer, config[1], scope) if len(config) > 1 else None
            shared = self.value(lowerer.expression(config[2]), scope, call.start_byte) if len(config) > 2 else Known(0)
            return grid, block, shared
        listed = configured(use.span.source, call, api.config)
        parts: list[HostValue] = []
        for part in ("gridDim", "blockDim", "dynamicSmemBytes"):
            name = f"{api.config}.{part}"
            if any(label == name or label.startswith(f"{name}.") for label in scope.definitions):
                parts.append(self.lookup(name, scope, call.start_byte))
            elif part in listed:
                parts.append(self.value(lowerer.expression(listed[part]), scope, call.start_byte))
            else:
                parts.append(Known(0) if part == "dynamicSmemBytes" else None)
        return _as_triple(parts[0]), _as_triple(parts[1]), parts[2]

    def _is_reached(self, node: Node, scope: HostScope) -> bool:
        """Whether the conditions around a place hold: those that the text decides, and comparisons of sizes, which are
        taken to be what a kernel's arguments are taken to be."""
        inner, sides, reached = node, list[tuple[Node, Node]](), True
        for around in ancestors(node):
            if around.type == "function_definition":
                break
            if around.type in ("if_statement", "case_statement"):
                known = self.reached.get((around.id, inner.id))
                if known is not None:
                    reached = known
                    break
                sides.append((around, inner))
            inner = around
        for around, side in reversed(sides):  # each is looked at once: a chain of `else if` has many places
            self.unit.steps.take()
            reached = reached and self._is_side_reached(around, side, scope)
            self.reached[around.id, side.id] = reached
        return reached

    def _is_side_reached(self, around: Node, inner: Node, scope: HostScope) -> bool:
        """The same of one condition: whether an `if` goes to the side that `inner` is, or a `switch` to the case."""
        if around.type == "case_statement":
            return self._is_case(around, inner, scope)
        condition = around.child_by_field_name("condition")
        if condition is None or inner == condition:
            return True
        value = self._truth(condition, scope)
        return value is None or value == (inner == around.child_by_field_name("consequence"))

    def _truth(self, condition: Node, scope: HostScope) -> bool | None:
        inside = condition.child_by_field_name("value")
        expression = self._lowered(scope, inside or condition)
        if not isinstance(expression, ir.Binary) or expression.op not in ("<", "<=", ">", ">=", "==", "!="):
            settled = is_settled(self.unit, scope, [inside or condition])
            known = self.value(expression, scope, condition.start_byte) if settled else None
            return bool(known.value) if isinstance(known, Known) and not _is_open(known) else None
        value = self.value(expression, scope, condition.start_byte)
        if not isinstance(value, Known) or (value.assumed and expression.op in ("==", "!=")):
            return None
        return bool(value.value)

    def _is_case(self, case: Node, inner: Node, scope: HostScope) -> bool:
        label = case.child_by_field_name("value")
        switch = enclosing(case, "switch_statement")
        asked = switch.child_by_field_name("condition") if switch is not None else None
        if label is None or asked is None or inner == label:
            return True
        inside = asked.child_by_field_name("value") or asked
        chosen = self.value(self._lowered(scope, inside), scope, asked.start_byte)
        value = self.value(self._lowered(scope, label), scope, case.start_byte)
        return not (isinstance(chosen, Known) and isinstance(value, Known)) or chosen.assumed or chosen == value

    def _lowered(self, scope: HostScope, node: Node) -> ir.Expr:
        lowerer = Lowerer(self.unit, scope.source, self.bindings)
        if scope.function is not None:
            for each in descendants(node, "sizeof_expression"):
                self._add_sized(lowerer, scope, each)
        return lowerer.expression(node)

    @staticmethod
    def _add_sized(lowerer: Lowerer, scope: HostScope, node: Node) -> None:
        """Tell the reader the types of the function's variables in `sizeof *x`."""
        names = {scope.source.node_code(name) for name in descendants(node, "identifier")}
        for declaration in nodes_in(scope.function, "declaration") if names and scope.function is not None else ():
            base = lowerer.type_of(declaration.child_by_field_name("type"))
            for declarator in declaration.children_by_field_name("declarator"):
                is_set = declarator.type == "init_declarator"
                inner = declarator.child_by_field_name("declarator") if is_set else declarator
                kind, name, _ = lowerer.declared(base, inner)
                if name is not None and name in names and kind.kind in ("pointer", "array"):
                    lowerer.declare(name, kind)

    def _through_macro(self, name: str) -> str:
        macro = self.unit.macros.get(name)
        if macro is not None and macro.parameters is None and re.fullmatch(r"\w+", macro.body):
            return macro.body
        return name

    def _templates(self, lowerer: Lowerer, function: Node, scope: HostScope) -> Iterator[CType | int | None]:
        node = function
        while node.type == "qualified_identifier":
            inner = node.child_by_field_name("name")
            if inner is None:
                return
            node = inner
        arguments = node.child_by_field_name("arguments") if node.type == "template_function" else None
        if arguments is not None:
            self._add_local_types(lowerer, scope, function.start_byte)
        for argument in arguments.named_children if arguments is not None else []:
            if argument.type == "type_descriptor":
                kind = lowerer.type_of(argument)
                text = lowerer.source.node_code(argument)
                if kind.size is None and re.fullmatch(r"\w+", text):
                    spelled = defined_by_macro(self.unit.macros, scope.source, text, function.start_byte)
                    kind = (lowerer.type_of_text(spelled) if spelled is not None else None) or kind
                if kind.size is not None:
                    yield kind
                    continue
                value = self.value(
                    lowerer.name(lowerer.source.node_code(argument), lowerer.span(argument)), scope, function.start_byte
                )
            else:
                value = self.value(lowerer.expression(argument), scope, function.start_byte)
            yield value.value if isinstance(value, Known) and not value.assumed else None

    @staticmethod
    def _add_local_types(lowerer: Lowerer, scope: HostScope, before: int) -> None:
        """Take the names that a host function gives to types before a place into the reader's scope."""
        aliases = nodes_in(scope.function, "alias_declaration", "type_definition") if scope.function is not None else ()
        for alias in aliases:
            if alias.end_byte <= before:
                lowerer.statement(alias)

    def _dims(self, lowerer: Lowerer, node: Node, scope: HostScope) -> Triple | None:
        return _as_triple(self.value(lowerer.expression(node), scope, node.start_byte))

    # -- names --------------------------------------------------------------------------------------------------

    def scope(self, source: Source, node: Node) -> HostScope:
        function = enclosing(node, "function_definition", "lambda_expression")
        while function is not None and function.type == "lambda_expression":
            function = enclosing(function, "function_definition", "lambda_expression")
        key = function.id if function is not None else 0
        if key not in self.scopes:
            self.scopes[key] = HostScope(source, function)
            if function is not None:
                self.scopes[key].definitions = read_definitions(source, function)
        return self.scopes[key]

    def lookup(self, name: str, scope: HostScope, before: int) -> HostValue:
        key = (scope.function.id if scope.function is not None else 0, name)
        if key in self.fixed:
            return self.fixed[key]
        place = (*key, before)
        if place in self.found:
            return self.found[place]
        self.cycles += place in self.tracing
        if place in self.tracing or len(self.tracing) > MAX_TRACE or not self.unit.steps.take(LOOKUP_STEPS):
            return self._outside()
        cycles = self.cycles
        self.tracing.append(place)
        try:
            found = self._lookup(name, scope, before)
        finally:
            self.tracing.pop()
        if self.cycles == cycles:
            self.found[place] = found
        return found

    def _lookup(self, name: str, scope: HostScope, before: int) -> HostValue:
        found = [d for d in scope.definitions.get(name, []) if d.start < before]
        while found:
            last = found.pop()
            elsewhere = [s for s in last.sides if not s.start_byte <= before < s.end_byte]
            taken = [self._is_taken(side, scope) for side in elsewhere]
            if False in taken:
                continue
            value = self._defined_by(last, name, scope)
            open_end = None in taken or (isinstance(value, Known) and self._is_from_outside(value))
            if elsewhere and open_end and (found or value is None):
                value = self._one_of(value, self.lookup(name, scope, last.start))
            if None in taken and isinstance(value, Known):
                value = replace(value, assumed=True)
            return self._with_members(name, value, scope, before)
        if "." in name and any(f"{name}.{axis}" in scope.definitions for axis in "xyz"):
            return self._with_members(name, None, scope, before)
        parameter = self._parameter_index(name, scope)
        if parameter is not None:
            return self._from_callers(scope, parameter)
        if scope.outer is not None:
            return self.lookup(name, *scope.outer)
        variable = self.unit.variables.get(name)
        if variable is not None and variable.value is not None:
            outer = HostScope(variable.source, None)
            listed = variable.value.type in ("argument_list", "initializer_list")
            sole = sole_value(variable.value)
            kind = "construct" if listed and (sole is None or _is_dim3(variable)) else "="
            given = variable.value if kind == "construct" else sole
            first = self._defined(given, kind, outer, variable.declaration.start_byte)
            return first if variable.is_const or name not in self._written() else self._replaced(first)
        text = defined_by_macro(self.unit.macros, scope.source, name, before)
        number = Lowerer(self.unit, scope.source, self.bindings).constant_of_text(text) if text is not None else None
        return Known(number) if number is not None else self._outside()

    def _defined_by(self, definition: Definition, name: str, scope: HostScope) -> HostValue:
        if definition.kind == "written":
            return self._replaced(self.lookup(name, scope, definition.start))
        if definition.kind == "declare":
            return None
        if definition.value is not None and definition.value.type == "initializer_list":
            return self._defined(definition.value, "construct", scope, definition.start)
        return self._defined(definition.value, definition.kind, scope, definition.start)

    def _is_taken(self, side: Node, scope: HostScope) -> bool | None:
        """Whether an `if` goes to this side of it, or a `switch` to this case; None where the text does not decide:
        what `argc == 2` or `strcmp(argv[1], "-n") == 0` is worth is no size that is taken to be large."""
        if side.type == "case_statement":
            return None if self._is_case(side, uncommented(side)[-1], scope) else False
        branch = side.parent
        condition = branch.child_by_field_name("condition") if branch is not None else None
        if branch is None or condition is None:
            return None
        inside = condition.child_by_field_name("value") or condition
        value = self.value(self._lowered(scope, inside), scope, branch.start_byte)
        if not isinstance(value, Known) or value.assumed:
            return None
        return bool(value.value) == (side == branch.child_by_field_name("consequence"))

    def _is_from_outside(self, value: Known) -> bool:
        return value.assumed and value.value == self.unit.extent

    def _one_of(self, value: HostValue, earlier: HostValue) -> HostValue:
        """A variable that was set and perhaps set again: what the text gives is likely, or a default."""
        if value is None:
            return self._replaced(earlier)
        if isinstance(value, Known) and self._is_from_outside(value) and earlier is not None:
            default = self._replaced(earlier)
            return replace(default, is_default=True) if isinstance(default, Known) else default
        return replace(value, assumed=True) if isinstance(value, Known) else value

    def _replaced(self, value: HostValue) -> HostValue:
        """What a number may have become by its use: a default stays likely, a 0 that waits for a value does not."""
        if isinstance(value, Known):
            return replace(value, assumed=True) if value.value > 0 else self._outside()
        if isinstance(value, Triple):
            x, y, z = (replace(part, assumed=True) for part in (value.x, value.y, value.z))
            return Triple(x, y, z, value.dims)
        return value

    def _written(self) -> frozenset[str]:
        """The variables of host code that are assigned somewhere, or whose address is taken."""
        if self.written is None:
            self.written = frozenset(
                source.node_code(name) for source in self.unit.finished for name in written_names(source.closed_root)
            )
        return self.written

    def _defined(self, value: Node | None, kind: str, scope: HostScope, offset: int) -> HostValue:
        if value is None:
            return self._outside()
        lowerer = Lowerer(self.unit, scope.source, self.bindings)
        if kind == "construct":
            return self._triple([self.value(self._argument(lowerer, c), scope, offset) for c in uncommented(value)])
        if kind == "=":
            return self.value(lowerer.expression(value), scope, offset)
        return self._outside()

    @staticmethod
    def _argument(lowerer: Lowerer, node: Node) -> ir.Expr:
        if node.type == "parameter_declaration":  # `dim3 grid(n)` read as a function's parameter type
            return lowerer.name(lowerer.source.node_code(node), lowerer.span(node))
        return lowerer.expression(node)

    def _with_members(self, name: str, base: HostValue, scope: HostScope, before: int) -> HostValue:
        """`grid.x = ...` after the definition."""
        parts = {}
        for axis in "xyz":
            for last in reversed([d for d in scope.definitions.get(f"{name}.{axis}", []) if d.start < before]):
                elsewhere = [s for s in last.sides if not s.start_byte <= before < s.end_byte]
                taken = [self._is_taken(side, scope) for side in elsewhere]
                if False in taken:
                    continue
                value = self._defined(last.value, last.kind, scope, last.start)
                known = value if isinstance(value, Known) else self._outside()
                parts[axis] = replace(known, assumed=True) if None in taken else known
                break
        if not parts:
            return base
        start = base if isinstance(base, Triple) else Triple(Known(1), Known(1), Known(1), 1)
        dims = max(start.dims, 1 + max("xyz".index(a) for a in parts))
        return Triple(parts.get("x", start.x), parts.get("y", start.y), parts.get("z", start.z), dims)

    @staticmethod
    def _parameter_index(name: str, scope: HostScope) -> int | None:
        if scope.function is None:
            return None
        if scope.parameters is None:
            scope.parameters = _parameter_names(scope.source, scope.function)
        return scope.parameters.index(name) if name in scope.parameters else None

    def _from_callers(self, scope: HostScope, parameter: int) -> HostValue:
        """What the callers in this unit pass, or the one that is looked at; where they disagree, the last, marked as
        assumed."""
        name = function_name(scope.source, scope.function) if scope.function is not None else None
        function = scope.function.id if scope.function is not None else 0
        values: list[HostValue] = []
        for source, call in [self.caller[function]] if function in self.caller else self._calls_of(name or "")[:6]:
            items = uncommented(call.child_by_field_name("arguments"))
            if parameter < len(items):
                lowerer = Lowerer(self.unit, source)
                value = self.value(lowerer.expression(items[parameter]), self.scope(source, call), call.start_byte)
                if value is not None:
                    values.append(value)
        if not values:
            supposed = self.unit.supposes and parameter == sole_size(scope)[0]
            return Known(self.unit.extent) if supposed else self._outside()
        first = values[0]
        if all(v == first for v in values):
            return first
        self.disagreed.add(function)
        last = values[-1]
        return replace(last, assumed=True) if isinstance(last, Known) else last

    def _calls_of(self, name: str) -> list[tuple[Source, Node]]:
        if self.calls is None:
            self.calls = {}
            for source in self.unit.sources.values():
                for call in every_call(source):
                    function = call.child_by_field_name("function")
                    if function is not None:
                        text = unqualified(source.node_code(function))
                        self.calls.setdefault(text, []).append((source, call))
        return self.calls.get(name, [])

    # -- expressions --------------------------------------------------------------------------------------------

    def value(self, node: ir.Expr, scope: HostScope, before: int) -> HostValue:
        if not self.unit.steps.take():
            return self._outside()
        match node:
            case ir.Const(value=number):
                return Known(int(number)) if number is not None else None
            case ir.Global(name=name) | ir.Special(name=name, axis=None):  # host code may call its dim3 `blockDim`
                return self.lookup(name, scope, before)
            case ir.Special(name=name, axis=int() as axis):
                whole = self.lookup(name, scope, before)
                return (whole.x, whole.y, whole.z)[axis] if isinstance(whole, Triple) else self._outside()
            case ir.Cast(operand=operand):
                return self.value(operand, scope, before)
            case ir.Binary(op=op, left=left, right=right):
                return self._combined(op, self.value(left, scope, before), self.value(right, scope, before))
            case ir.Unary(op=op, operand=operand):
                value = self.value(operand, scope, before)
                if isinstance(value, Known) and op in "-+~!":
                    number = {"-": -value.value, "+": value.value, "~": ~value.value, "!": int(not value.value)}[op]
                    return replace(value, value=number)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                return self._choice(condition, then, otherwise, scope, before)
            case ir.Construct(arguments=arguments):
                return self._triple([self.value(a, scope, before) for a in arguments])
            case ir.Index(base=ir.Global(name=name), index=index):
                return self._element(name, self.value(index, scope, before), scope, before)
            case ir.Member(base=base, field=name):
                spelled = scope.definitions.get(node.span.text)
                if spelled and spelled[0].start < before and name not in ("x", "y", "z"):
                    return self.lookup(node.span.text, scope, before)
                whole = self.value(base, scope, before) if name in ("x", "y", "z") else None
                if isinstance(whole, Triple):
                    return {"x": whole.x, "y": whole.y, "z": whole.z}[name]
                return self._member(name)
            case ir.Call():
                return self._call(node, scope, before)
        return self._outside()

    def _element(self, name: str, index: HostValue, scope: HostScope, before: int) -> HostValue:
        """An element of a host array: the one that is assigned, or that of its list; the first where the text does not
        say which."""
        number = index.value if isinstance(index, Known) and not index.assumed else None
        if number is not None and f"{name}[{number}]" in scope.definitions:
            return self.lookup(f"{name}[{number}]", scope, before)
        values = [d.value for d in scope.definitions.get(name, []) if d.start < before and d.value is not None]
        variable = self.unit.variables.get(name)
        if not values and variable is not None and variable.value is not None:
            values, scope = [variable.value], HostScope(variable.source, None)
        items = uncommented(values[-1]) if values and values[-1].type == "initializer_list" else []
        if (number or 0) not in range(len(items)):
            return self._outside()
        found = self.value(self._lowered(scope, items[number or 0]), scope, before)
        return found if number is not None or not isinstance(found, Known) else replace(found, assumed=True)

    def _member(self, name: str) -> HostValue:
        """What a member of some struct is likely to be: all values that the unit's text gives to a member so named."""
        if self.members is None:
            self.members = {}
            for source in self.unit.finished:
                for member, value in given_members(source):
                    self.members.setdefault(member, []).append((source, value))
        key = (0, f".{name}", 0)
        if key in self.tracing or len(self.tracing) > MAX_TRACE:
            return self._outside()
        self.tracing.append(key)
        values = [
            self.value(
                Lowerer(self.unit, source, self.bindings).expression(value), self.scope(source, value), value.start_byte
            )
            for source, value in self.members.get(name, [])[:MAX_KERNELS]
        ]
        self.tracing.pop()
        known = {v.value for v in values if isinstance(v, Known) and not self._is_from_outside(v)}
        return self._replaced(Known(known.pop())) if len(known) == 1 else self._outside()

    def _choice(
        self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr, scope: HostScope, before: int
    ) -> HostValue:
        decided = self.value(condition, scope, before)
        if isinstance(decided, Known) and not decided.assumed:
            return self.value(then if decided.value else otherwise, scope, before)
        for side in (otherwise, then):  # argc > 1 ? atoi(argv[1]) : 1024
            value = self.value(side, scope, before)
            if isinstance(value, Known) and not value.assumed:
                return Known(value.value, assumed=True)
        return self._outside()

    def _call(self, node: ir.Call, scope: HostScope, before: int) -> HostValue:
        values = [self.value(a, scope, before) for a in node.arguments]
        if node.name in ("dim3", "make_uint3", "make_int3"):
            return self._triple(values)
        known = [v for v in values if isinstance(v, Known)]
        if node.name in ("min", "max") and len(known) == 2:
            pick = min if node.name == "min" else max
            chosen = pick(known[0].value, known[1].value)
            return Known(chosen, any(k.assumed for k in known), any(k.is_default for k in known))
        if node.name in ("ceil", "ceilf", "floor") and known:
            return known[0]
        texts = self.unit.functions.get(node.name, [])
        if len(texts) == 1 and len(self.tracing) < MAX_TRACE and not texts[0].is_kernel:
            return self._inline(texts[0].node, texts[0].source, values)
        return self._outside()

    def _inline(self, function: Node, source: Source, values: list[HostValue]) -> HostValue:
        """A helper whose body is one return, such as ceil_div."""
        returns = list(nodes_in(function, "return_statement"))
        if len(returns) != 1 or not returns[0].named_children:
            return self._outside()
        expression = Lowerer(self.unit, source).expression(uncommented(returns[0])[0])
        bound = dict(zip(_parameter_names(source, function), values, strict=False))
        return self._substituted(expression, bound)

    def _substituted(self, node: ir.Expr, bound: dict[str, HostValue]) -> HostValue:
        if isinstance(node, ir.Global) and node.name in bound:
            return bound[node.name]
        if isinstance(node, ir.Binary):
            return self._combined(node.op, self._substituted(node.left, bound), self._substituted(node.right, bound))
        if isinstance(node, ir.Cast):
            return self._substituted(node.operand, bound)
        if isinstance(node, ir.Conditional):
            condition = self._substituted(node.condition, bound)
            if isinstance(condition, Known):
                return self._substituted(node.then if condition.value else node.otherwise, bound)
        number = fold(node)
        return Known(number) if number is not None else self._outside()


def _is_open(value: HostValue) -> bool:
    """Whether a number may be another one than the text gives."""
    return not isinstance(value, Known) or value.assumed or value.is_default


def _may_end_early(source: Source, body: Node, variable: str) -> bool:
    """Whether a loop's body may leave it, skip what is behind, or set its variable."""
    jumps = ("break_statement", "return_statement", "goto_statement", "continue_statement", "throw_statement")
    if any(True for _ in descendants(body, *jumps)):
        return True
    return any(source.node_code(name) == variable for name in written_names(body))


def _listed(values: Node) -> Iterator[tuple[str, Node]]:
    """The values of a list by their places: `{{a, b}, c}` has a at 0.0, b at 0.1 and c at 1."""
    for at, item in enumerate(uncommented(values)):
        if item.type == "initializer_list":
            yield from ((f"{at}.{place}", inner) for place, inner in _listed(item))
        else:
            yield str(at), item


def _as_triple(value: HostValue) -> Triple | None:
    return Triple(value, Known(1), Known(1), 1) if isinstance(value, Known) else value


def _parameter_names(source: Source, function: Node) -> list[str]:
    """The names of a function's parameters, empty for one without a name."""
    names: list[str] = []
    for node in parameters_of(function):
        identifier = next(descendants(node.child_by_field_name("declarator") or node, "identifier"), None)
        names.append(source.node_code(identifier) if identifier is not None else "")
    return names


def _block_shape(block: Triple | None) -> tuple[Dim3, Basis]:
    """A launch's block: what the text gives, or is likely to, such as a default that an argument may replace."""
    if block is None:
        return DEFAULT_BLOCKS[1], Basis.ASSUMED
    axes = block.x, block.y, block.z
    shape = block.x.value, block.y.value, block.z.value
    if not any(axis.assumed for axis in axes):
        return shape, Basis.EXACT
    if min(shape) > 0 and shape[0] * shape[1] * shape[2] <= MAX_THREADS_PER_BLOCK:
        return shape, Basis.ASSUMED
    return DEFAULT_BLOCKS[_dims_in_use(block)], Basis.ASSUMED


def _named_functions(value: Node) -> Iterator[Node]:
    """The functions that a value may be: `f`, `&f<4>`, `c ? f : g`."""
    if value.type in ("identifier", "template_function", "qualified_identifier"):
        yield value
    elif value.type in ("pointer_expression", "parenthesized_expression", "conditional_expression", "cast_expression"):
        condition = value.child_by_field_name("condition")
        for child in value.named_children:
            if child != condition:
                yield from _named_functions(child)


def _is_dim3(variable: VariableText) -> bool:
    kind = variable.declaration.child_by_field_name("type")
    return kind is not None and variable.source.node_code(kind) == "dim3"


def _dims_in_use(block: Triple | None) -> int:
    """How many axes of a block may be longer than 1: `block(n, 1, 1)` is one-dimensional."""
    if block is None:
        return 1
    axes = (block.x, block.y, block.z)[: block.dims]
    return max((i + 1 for i, part in enumerate(axes) if part.assumed or part.value != 1), default=1)


def _swept(sites: list[list[LaunchSite]], values: Sequence[Known]) -> list[list[LaunchSite]]:
    """The launches of some iterations, whose blocks differ, each with what is swept."""
    count = 0 if values[-1].assumed or len(values) == MAX_ITERATIONS else len(values)
    sweeps = [
        Sweep(first.launch.block, last.launch.block if count else None, count)
        for first, last in zip(sites[0], sites[-1], strict=False)
    ]
    return [
        [replace(site, launch=replace(site.launch, sweep=sweep)) for site, sweep in zip(each, sweeps, strict=False)]
        for each in sites
    ]
