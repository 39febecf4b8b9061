"""Find out how to run a kernel: from sample.toml, directives, the host launch, and what the kernel's text shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tree_sitter import Node

from warpwright.facts.model import Kernel, Parameter, Program
from warpwright.missing import Missing
from warpwright.problems import bounds
from warpwright.problems.directives import read_directives
from warpwright.problems.document import FILE_NAME, read_document
from warpwright.problems.expressions import (
    Expression,
    ExpressionError,
    Name,
    Number,
    names,
    parse,
    show,
    substitute,
)
from warpwright.problems.host import Dims, HostExpressions
from warpwright.problems.model import Array, Problem, Scalar
from warpwright.problems.overrides import ArrayOverride, Overrides, merged
from warpwright.problems.shapes import Shape, check_shapes, timed_shapes
from warpwright.problems.sites import (
    alias_target,
    base_variable,
    device_identifiers,
    elements,
    host_template_value,
    indexed_by,
    launch_site,
    template_parameters,
)
from warpwright.problems.types import ElementType, element_type
from warpwright.syntax.nodes import descendants, enclosing

_ADVICE = "Say it in a directive above the kernel, such as `// warpwright: {}`, or in sample.toml beside the file."
_ARRAY_EXAMPLE = "array a[n] in"
_LAUNCH_EXAMPLE = "launch grid((n + 255) / 256) block(256)"
_ALLOCATORS = {"cudaMalloc", "cudaMallocManaged", "cudaMallocAsync", "cudaMallocHost", "cudaHostAlloc", "hipMalloc"}
_FILL = "1.5"


class _LackingError(Exception):
    """A part of the problem that nothing says; the message is one sentence, `example` a directive that would say it."""

    def __init__(self, message: str, example: str = _ARRAY_EXAMPLE) -> None:
        super().__init__(message)
        self.example = example


def find_problem(program: Program, kernel: Kernel) -> Problem | Missing:
    """How to run `kernel`, each part with its origin, or what is missing and how to say it.

    Reads sample.toml and reference.py beside the kernel's file and nothing else from disk.
    """
    folder = Path(kernel.source.path).parent
    try:
        said = read_document(folder / FILE_NAME, kernel.name)
        directives = read_directives(kernel)
        return _Finder(program, kernel, said, directives).problem()
    except (ExpressionError, _LackingError) as error:
        example = error.example if isinstance(error, _LackingError) else _ARRAY_EXAMPLE
        reason = f"How to run {kernel.name} is not known: {str(error).rstrip('.')}."
        return Missing("problem", reason, _ADVICE.format(example))


class _Finder:
    def __init__(self, program: Program, kernel: Kernel, said: Overrides, directives: Overrides) -> None:
        self.program = program
        self.kernel = kernel
        self.said = said
        self.directives = directives
        if kernel.node is None:
            raise _LackingError("its definition is not in this file or in what it includes")
        body = kernel.node.child_by_field_name("body")
        if body is None:
            raise _LackingError("it has no body")
        self.body = body
        self.site = launch_site(program, kernel)
        self.reader = self._reader()
        self.renamed: dict[str, Expression] = {}
        self.notes: list[str] = []

    def problem(self) -> Problem:
        passed = self._passed()
        scalars = {p.name: self._scalar(p, passed.get(p.name)) for p in self.kernel.parameters if not p.is_pointer}
        symbols = self._symbols(scalars)
        symbols += self._grid_symbols(symbols)
        grid, block, shared, launch_origin = self._launch(symbols)
        arrays = self._arrays(passed, scalars, symbols)
        own = self._own_shape(symbols)
        arguments = tuple(arrays[p.name] if p.is_pointer else scalars[p.name] for p in self.kernel.parameters)
        draft = Problem(
            kernel=self.kernel.name,
            arguments=arguments,
            symbols=symbols,
            grid=grid,
            block=block,
            dynamic_shared_bytes=shared,
            own_shape=own,
            check=(),
            time=(),
            launch_origin=launch_origin,
            instance=tuple(self._aliased(self._host_template_value(a)) for a in self.site.instance)
            if self.site
            else (),
            reference=self._reference(),
            notes=tuple(self.notes),
        )
        if unknown := sorted(draft.unknown_symbols()):
            raise _LackingError(f"nothing gives `{unknown[0]}` a value")
        return _with_shapes(draft, self.said, self.directives)

    # Host side ------------------------------------------------------------------------------------------------------

    def _reader(self) -> HostExpressions:
        sources = self.program.sources.values()
        if self.site is None:
            return HostExpressions(sources, self.kernel.source, None)
        device = device_identifiers(self.program)
        passed = {self.site.source.node_text(a) for a in self.site.arguments if a.type == "identifier"}
        function = enclosing(self.site.call, "function_definition", "lambda_expression")
        return HostExpressions(sources, self.site.source, function, frozenset(passed - device))

    def _passed(self) -> dict[str, Node]:
        if self.site is None:
            return {}
        if len(self.site.arguments) > len(self.kernel.parameters):
            raise _LackingError(
                f"its launch passes {len(self.site.arguments)} arguments and it takes {len(self.kernel.parameters)}"
            )
        return {p.name: a for p, a in zip(self.kernel.parameters, self.site.arguments, strict=False)}

    def _launch(self, symbols: tuple[str, ...]) -> tuple[tuple[str, str, str], tuple[str, str, str], str, str]:
        said = [o for o in (self.said, self.directives) if o.grid or o.block]
        grid = self.said.grid or self.directives.grid
        block = self.said.block or self.directives.block
        shared = self.said.dynamic_shared_bytes or self.directives.dynamic_shared_bytes
        origin = said[0].origin if said else "launch"
        if grid is None or block is None:
            found = self._launch_in_text(symbols)
            if found is None:
                raise _LackingError("no launch of it is in sight, so its grid and block are not known", _LAUNCH_EXAMPLE)
            grid, block, shared = grid or found[0], block or found[1], shared or found[2]
        return grid, block, shared or "0", origin

    def _launch_in_text(
        self, symbols: tuple[str, ...]
    ) -> tuple[tuple[str, str, str], tuple[str, str, str], str] | None:
        if self.site is None or len(self.site.configuration) < 2:
            return None
        try:
            grid = self._dims(self.reader.resolve_dims(self.site.configuration[0]), symbols)
            block = self._dims(self.reader.resolve_dims(self.site.configuration[1]), symbols)
            more = self.site.configuration[2:3]
            shared = self._settled(self.reader.resolve(more[0]), symbols) if more else Number(0)
        except ExpressionError as error:
            reason = f"the grid and block of its launch cannot be followed ({error})"
            raise _LackingError(reason, _LAUNCH_EXAMPLE) from None
        return grid, block, show(shared)

    def _dims(self, dims: Dims, symbols: tuple[str, ...]) -> tuple[str, str, str]:
        x, y, z = (show(self._settled(d, symbols)) for d in dims)
        return x, y, z

    def _settled(self, expression: Expression, symbols: tuple[str, ...]) -> Expression:
        """In the problem's symbols: host variables by their parameter's name, all others by the value they have.

        Raises ExpressionError for a host variable that has none.
        """
        renamed = substitute(expression, self.renamed)
        others = {n: Number(v) for n, v in self.reader.defaults.items() if n not in symbols}
        settled = substitute(renamed, others)
        known = {*symbols, *(f"{dim}.{axis}" for dim in ("gridDim", "blockDim") for axis in "xyz")}
        if unknown := sorted(names(settled) - known):
            raise ExpressionError(f"`{unknown[0]}` has no value in sight")
        return settled

    # Arguments ------------------------------------------------------------------------------------------------------

    def _scalar(self, parameter: Parameter, passed: Node | None) -> Scalar:
        kind = self._type(parameter, passed)
        if kind is None or kind.components > 1:
            raise _LackingError(f"`{parameter.name}` is declared as `{parameter.type}`, which cannot be filled in")
        for overrides in (self.said, self.directives):
            if parameter.name in overrides.scalars:
                return Scalar(parameter.name, kind.scalar, overrides.scalars[parameter.name], overrides.origin)
        try:
            expression = self.reader.resolve(passed) if passed is not None else None
        except ExpressionError:
            expression = None
        if isinstance(expression, Name) and not kind.is_float and expression.name not in self.renamed:
            self.renamed[expression.name] = Name(parameter.name)
            if expression.name in self.reader.defaults:
                self.reader.defaults.setdefault(parameter.name, self.reader.defaults[expression.name])
        if expression is None:
            value = Number(float(_FILL)) if kind.is_float else Name(parameter.name)
            return Scalar(parameter.name, kind.scalar, show(value), "inferred")
        return Scalar(parameter.name, kind.scalar, show(substitute(expression, self.renamed)), "launch")

    def _symbols(self, scalars: dict[str, Scalar]) -> tuple[str, ...]:
        """The names that whole-number arguments depend on, in the order of the parameters.

        `scalars` is rewritten in them; a floating-point argument whose value nothing says gets 1.5.
        """
        found: dict[str, None] = {}
        trees = {name: substitute(parse(scalar.value), self.renamed) for name, scalar in scalars.items()}
        for name, scalar in scalars.items():
            if "float" not in scalar.type:
                found.update(dict.fromkeys(sorted(names(trees[name]))))
        for overrides in (self.said, self.directives):
            found.update(dict.fromkeys(overrides.shape or {}))
        others = {n: Number(v) for n, v in self.reader.defaults.items() if n not in found}
        for name, scalar in scalars.items():
            tree, origin = trees[name], scalar.origin
            if "float" in scalar.type and names(tree := substitute(tree, others)) - found.keys():
                tree, origin = Number(float(_FILL)), "inferred"
            if "float" in scalar.type and origin == "inferred":
                self.notes.append(f"nothing says what {name} is; {show(tree)} was passed")
            scalars[name] = Scalar(scalar.name, scalar.type, show(tree), origin)
        return tuple(found)

    def _grid_symbols(self, symbols: tuple[str, ...]) -> tuple[str, ...]:
        """Host variables that the grid depends on, that the kernel is not passed and that have no value in the text.

        They are sizes too, such as an `n = atoi(argv[1])` that only the grid and the allocations use.
        """
        if self.site is None or not self.site.configuration or self.said.grid or self.directives.grid:
            return ()
        try:
            dims = self.reader.resolve_dims(self.site.configuration[0])
        except ExpressionError:
            return ()
        found = frozenset().union(*(names(substitute(d, self.renamed)) for d in dims))
        return tuple(sorted(found - self.reader.defaults.keys() - set(symbols)))

    def _arrays(
        self, passed: dict[str, Node], scalars: dict[str, Scalar], symbols: tuple[str, ...]
    ) -> dict[str, Array]:
        said = merged(self.said, self.directives)
        arrays: dict[str, Array] = {}
        for parameter in self.kernel.parameters:
            if parameter.is_pointer:
                override = said.get(parameter.name, ArrayOverride())
                arrays[parameter.name] = self._array(parameter, passed.get(parameter.name), override, scalars, symbols)
        for name, array in arrays.items():
            override = said.get(name, ArrayOverride())
            element = element_type(array.type)
            if override.values is None and array.role != "out" and element is not None and not element.is_float:
                indexed = indexed_by(self.body, self.kernel.source, name, arrays.keys())
                if indexed:
                    limit = min((arrays[other].extent for other in indexed), key=len)
                    arrays[name] = Array(name, array.type, array.extent, array.role, array.origin, f"index({limit})")
        return arrays

    def _array(
        self,
        parameter: Parameter,
        passed: Node | None,
        override: ArrayOverride,
        scalars: dict[str, Scalar],
        symbols: tuple[str, ...],
    ) -> Array:
        name = parameter.name
        kind = element_type(override.type) if override.type else self._type(parameter, passed)
        if kind is None:
            raise _LackingError(f"`{name}` is declared as `{parameter.type}`, which cannot be filled in")
        type_name = override.type or self._type_name(parameter, passed)
        role = override.role or bounds.role(self.body, self.kernel.source, name, parameter.is_const)
        values = override.values or "any"
        if override.extent is not None:
            origin = self.said.origin if name in self.said.arrays else self.directives.origin
            return Array(name, type_name, override.extent, role, origin, values)
        try:
            allocated = self._allocated(passed, kind, symbols) if passed is not None else None
        except ExpressionError:
            allocated = None
        if allocated is not None:
            return Array(name, type_name, show(allocated), role, "launch", values)
        reach = bounds.extent(self.body, self.kernel.source, name, self._kernel_constant(scalars, symbols))
        if reach is None:
            raise _LackingError(f"nothing says how many elements `{name}` has")
        return Array(name, type_name, show(substitute(reach, {})), role, "inferred", values)

    def _kernel_constant(self, scalars: dict[str, Scalar], symbols: tuple[str, ...]) -> Callable[[str], Expression]:
        instance = self._template_values()

        def constant(name: str) -> Expression:
            if name in scalars:
                return parse(scalars[name].value)
            if name in instance:
                return self._settled(self.reader.resolve_text(self._host_template_value(instance[name])), symbols)
            return self._settled(self.reader.constant(name), symbols)

        return constant

    def _type(self, parameter: Parameter, passed: Node | None) -> ElementType | None:
        return element_type(self._type_name(parameter, passed))

    def _type_name(self, parameter: Parameter, passed: Node | None) -> str:
        """The parameter's type; a template's type parameter by the launch's argument, or by what is passed."""
        declared_here = re.sub(rf"\b{re.escape(parameter.name)}\b[^*&]*$", "", parameter.type)  # `float x[]` is `float`
        plain = re.sub(r"\b(const|volatile|__restrict__|__restrict)\b|[*&]", " ", declared_here)
        plain = self._aliased(" ".join(plain.split()))
        if element_type(plain) is not None:
            return plain
        instance = self._template_values()
        if plain in instance:
            return self._aliased(self._host_template_value(instance[plain]))
        if self.site is not None and passed is not None:
            declared = self.reader.declared_type(base_variable(self.site.source, passed))
            if declared is not None:
                inner = re.search(r"<\s*([\w: ]+?)\s*[,>]", declared)
                return self._aliased(inner[1] if inner else declared)
        return plain

    def _aliased(self, name: str) -> str:
        """The type behind a typedef, a `using` or a macro of that name; the name itself where there is none."""
        for _ in range(4):
            if element_type(name) is not None:
                return name
            target = alias_target(self.program, name)
            if target is None:
                return name
            name = target
        return name

    def _host_template_value(self, argument: str) -> str:
        """A launch's template argument; where it is the host function's own parameter, what that is called with."""
        function = self.reader.function
        if self.site is None or function is None:
            return argument
        return host_template_value(self.program, self.site.source, function, argument) or argument

    def _template_values(self) -> dict[str, str]:
        """The kernel's template parameters with the launch's explicit arguments."""
        if self.kernel.node is None or self.site is None:
            return {}
        listed = template_parameters(self.kernel.source, self.kernel.node)
        return dict(zip(listed, self.site.instance, strict=False))

    def _allocated(self, passed: Node, kind: ElementType, symbols: tuple[str, ...]) -> Expression | None:
        """Elements in the allocation behind a pointer argument: cudaMalloc's bytes, or a container's count."""
        site = self.site
        if site is None:
            return None
        variable = base_variable(site.source, passed)
        if not variable:
            return None
        for source in self.program.sources.values():
            for call in descendants(source.root, "call_expression"):
                function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
                if function is None or arguments is None or source.node_text(function) not in _ALLOCATORS:
                    continue
                if len(arguments.named_children) < 2 or base_variable(source, arguments.named_children[0]) != variable:
                    continue
                reader = HostExpressions(
                    self.program.sources.values(), source, enclosing(call, "function_definition"), self.reader.symbolic
                )
                size = reader.resolve(arguments.named_children[1])
                for name, value in reader.defaults.items():
                    self.reader.defaults.setdefault(name, value)
                return self._settled(elements(size, kind.bytes), symbols)
        if self.reader.function is not None:
            for declarator, made in self.reader.declarations(self.reader.function):
                if site.source.node_text(declarator) == variable and made is not None:
                    return self._settled(self.reader.container_count(made), symbols)
        return None

    def _own_shape(self, symbols: tuple[str, ...]) -> Shape | None:
        for overrides in (self.said, self.directives):
            if overrides.shape is not None:
                if lacking := sorted(set(symbols) - overrides.shape.keys()):
                    raise _LackingError(f"the shape in the {overrides.origin} gives `{lacking[0]}` no value")
                return overrides.shape
        values = {s: self.reader.defaults.get(s) for s in symbols}
        if any(not isinstance(v, int) or v < 1 for v in values.values()):
            return None
        return {s: int(v) for s, v in values.items() if v is not None}

    def _reference(self) -> Path | None:
        folder = Path(self.kernel.source.path).parent
        if self.said.reference is not None:
            path = folder / self.said.reference
            if not path.is_file():
                raise _LackingError(f"{FILE_NAME} names the reference {self.said.reference}, which is not there")
            return path
        beside = folder / "reference.py"
        return beside if beside.is_file() and len(self.program.defined_kernels) == 1 else None


def _with_shapes(draft: Problem, said: Overrides, directives: Overrides) -> Problem:
    check = tuple(said.check or directives.check) or check_shapes(draft.symbols, draft.own_shape, draft.bytes)
    time = tuple(said.time or directives.time) or timed_shapes(draft.symbols, draft.own_shape, draft.bytes)
    for shape in (*check, *time):
        if lacking := sorted(set(draft.symbols) - shape.keys()):
            raise _LackingError(f"a shape to try gives `{lacking[0]}` no value")
    return replace(draft, check=check, time=time)
