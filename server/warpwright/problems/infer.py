"""Find out how to run a kernel: from sample.toml, directives, the host launch, and what the kernel's text shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from warpwright.cuda.paths import launch_paths
from warpwright.cuda.sites import LaunchText, launch_sites
from warpwright.facts.model import Basis, Kernel, Program
from warpwright.missing import Missing
from warpwright.problems.arguments import ArgumentReader
from warpwright.problems.arrays import ArrayReader
from warpwright.problems.blocks import text_block, tiled_grid
from warpwright.problems.branches import decided
from warpwright.problems.compared import compared_numbers, scaling_numbers
from warpwright.problems.directives import read_directives
from warpwright.problems.document import FILE_NAME, read_document
from warpwright.problems.expressions import (
    Expression,
    ExpressionError,
    Name,
    Number,
    evaluate,
    names,
    parse,
    show,
    substitute,
)
from warpwright.problems.guarded import guarded_arrays
from warpwright.problems.guesses import About, Guess, made_up_values
from warpwright.problems.host import Dims, Way
from warpwright.problems.kernel_text import KernelText, kernel_text, live
from warpwright.problems.lacking import ARRAY_EXAMPLE, LackingError
from warpwright.problems.launching import covering_grid, found_block, found_grid
from warpwright.problems.model import Array, Problem, Scalar, grid_symbols
from warpwright.problems.opt_in import opt_in
from warpwright.problems.overrides import Overrides
from warpwright.problems.placed import placed
from warpwright.problems.reach import KernelReach, kernel_reach
from warpwright.problems.renaming import with_names
from warpwright.problems.shapes import CHECKED_WORK, Shape, check_shapes, profile_shape, timed_shapes
from warpwright.problems.work import work_at
from warpwright.syntax.nodes import enclosing

_ADVICE = "Say it in a directive above the kernel, such as `// warpwright: {}`, or in sample.toml beside the file."
_LAUNCH_EXAMPLE = "launch grid((n + 255) / 256) block(256)"
_AXES = frozenset(f"{dim}.{axis}" for dim in ("gridDim", "blockDim") for axis in "xyz")


def find_problem(
    program: Program,
    kernel: Kernel,
    renamed: Mapping[str, str] | None = None,
    like: Kernel | None = None,
    way: Way | None = None,
) -> Problem | Missing:
    """How to run `kernel`, each part with its origin, or what is missing and how to say it.

    Without a `way` it is run as its first launch says, each array in memory of its own; with one as the launch on that
    way, where pointers may lead into one piece of memory.

    What the user says may use names that `renamed` has, for the parameters that it gives for them. Reads sample.toml
    and reference.py beside the kernel's file, or where there is no sample.toml, as for another version of `like` that
    was written elsewhere, beside that one's; and nothing else from disk.
    """
    folder = Path(kernel.source.path).parent
    if like is not None and not (folder / FILE_NAME).exists():
        folder = Path(like.source.path).parent
    try:
        said = with_names(read_document(folder / FILE_NAME, kernel.name), renamed or {})
        directives = with_names(read_directives(kernel), renamed or {})
        return _Finder(live(program), kernel, said, directives, folder, way).problem()
    except (ExpressionError, LackingError) as error:
        example = error.example if isinstance(error, LackingError) else ARRAY_EXAMPLE
        reason = f"How to run {kernel.name} is not known: {str(error).rstrip('.')}."
        return Missing("problem", reason, _ADVICE.format(example))


class _Finder:
    def __init__(
        self, program: Program, kernel: Kernel, said: Overrides, directives: Overrides, folder: Path, way: Way | None
    ) -> None:
        self.program = program
        self.folder = folder
        self.kernel = kernel
        self.said = said
        self.directives = directives
        if kernel.node is None:
            raise LackingError("its definition is not in this file or in what it includes")
        if kernel.node.child_by_field_name("body") is None:
            raise LackingError("it has no body")
        self.notes: list[str] = []
        self.way = way
        self.site: LaunchText | None = _first_site(program, kernel) if way is None else way.path.site
        self.guesses: list[Guess] = []
        self.arguments = ArgumentReader(program, kernel, self.site, said, directives, self.notes, self.guesses, way)
        self.reader = self.arguments.reader
        self.text = self._text()
        self.arguments.text = self.text

    def _text(self) -> KernelText:
        start = self.site.call.start_byte if self.site is not None else None
        found = kernel_text(self.program, self.kernel, start, self.arguments.template_types())
        if found is None:
            raise LackingError("its text is in a part of the file that is not compiled")
        return found

    def problem(self) -> Problem:
        self.arguments.scalars()
        symbols = self._symbols()
        reach = kernel_reach(self.text.unit, self.text.function, self.arguments.whole_numbers())
        grid, block, shared, launch_origin, more = self._launch(symbols, reach)
        said_shared = self.said.dynamic_shared_bytes or self.directives.dynamic_shared_bytes
        symbols += more
        own = self._own_shape(symbols)
        self._settle_floats(symbols)
        reader = ArrayReader(self.arguments, reach, symbols, (grid, block), own, shared)
        arrays = reader.arrays()
        of_launch = shared
        shared = said_shared or reader.dynamic_shared_bytes(of_launch, self.text.site)
        draft = Problem(
            kernel=self.kernel.name,
            arguments=self.arguments.filled(
                arrays if self.way is None else placed(self.arguments, arrays, self.way, symbols)
            ),
            symbols=symbols,
            grid=grid,
            block=block,
            dynamic_shared_bytes=shared,
            own_shape=own,
            check=(),
            time=(),
            launch_origin=launch_origin,
            instance=self.arguments.instance(),
            reference=self._reference(),
            globals=reader.globals(),
            variables=reader.variables(),
            compared=compared_numbers(self.program, self.kernel),
            scales=scaling_numbers(self.program, self.kernel),
            guarded=self._guarded(arrays.values()),
            shared_opt_in=self._shared_opt_in(symbols) if launch_origin == "launch" and shared == of_launch else None,
        )
        self.notes += dict.fromkeys(self.reader.assumed)
        self.guesses += _guesses_of(draft, self.kernel)
        draft = replace(draft, notes=tuple(dict.fromkeys(self.notes)), guesses=tuple(self.guesses))
        if unknown := sorted(draft.unknown_symbols()):
            raise LackingError(f"nothing gives `{unknown[0]}` a value")
        return _with_shapes(self.kernel, draft, self.said, self.directives, reader)

    def _guarded(self, arrays: Iterable[Array]) -> tuple[str, ...]:
        """The arrays of indices whose values the kernel looks at before it uses them."""
        names = frozenset(array.name for array in arrays if array.role == "in" and array.values != "any")
        return guarded_arrays(self.kernel.source, self.kernel.node, names) if self.kernel.node is not None else ()

    # Symbols --------------------------------------------------------------------------------------------------------

    def _symbols(self) -> tuple[str, ...]:
        """The names that whole-number arguments depend on, in the order of the parameters."""
        found: dict[str, None] = {}
        for scalar in self.arguments.scalar_values.values():
            if "float" not in scalar.type:
                found.update(dict.fromkeys(sorted(names(parse(scalar.value)))))
        for overrides in (self.said, self.directives):
            found.update(dict.fromkeys(overrides.shape or {}))
        found.update(dict.fromkeys(self._grid_symbols(found)))
        return tuple(found)

    def _grid_symbols(self, known: Mapping[str, None]) -> tuple[str, ...]:
        """Host variables that the grid depends on, that the kernel is not passed and that have no value in the text.

        They are sizes too, such as an `n = atoi(argv[1])` that only the grid and the allocations use.
        """
        if self.site is None or not self.site.configuration or self.said.grid or self.directives.grid:
            return ()
        try:
            dims = self.reader.resolve_dims(self.site.configuration[0])
        except ExpressionError:
            return ()
        self._set_found_sizes(known)
        self._set_block_sizes(known)
        found = frozenset().union(*(names(self.arguments.renamed_in(d)) for d in dims))
        return tuple(sorted(found - self.reader.defaults.keys() - known.keys() - _AXES))

    def _set_found_sizes(self, known: Mapping[str, None]) -> None:
        """Names of the grid or the block, such as constants of an included file, that this file gives no value and the
        facts' launch does."""
        launch = self.text.site.launch if self.text.site is not None else None
        if self.site is None or launch is None or launch.basis is not Basis.EXACT:
            return
        shapes = (launch.grid, launch.block)
        for written, shape in zip(self.site.configuration, shapes, strict=False):
            try:
                dims = [self.arguments.renamed_in(dim) for dim in self.reader.resolve_dims(written)]
            except ExpressionError:
                continue
            for dim, size in zip(dims, shape, strict=False):
                if isinstance(dim, Name) and size is not None and dim.name not in known:
                    self.reader.defaults.setdefault(dim.name, size)

    def _set_block_sizes(self, known: Mapping[str, None]) -> None:
        """A block's run-time size, such as an `int threads = atoi(argv[2])`, is no size of the data: 256 threads."""
        if self.site is None or len(self.site.configuration) < 2:
            return
        try:
            dims = [self.arguments.renamed_in(d) for d in self.reader.resolve_dims(self.site.configuration[1])]
        except ExpressionError:
            return
        size = (256, 16, 8)[max(0, sum(show(d) != "1" for d in dims) - 1)]
        for name in sorted(frozenset().union(*map(names, dims)) - self.reader.defaults.keys() - known.keys()):
            self.reader.defaults[name] = size
            self._guess_launch(f"the size of the block `{name}` is not known from the text; assuming {size}")

    def _settle_floats(self, symbols: tuple[str, ...]) -> None:
        """Floating-point arguments in the symbols and numbers; 1.5 where nothing says one."""
        for name, scalar in self.arguments.scalar_values.items():
            if "float" not in scalar.type:
                continue
            others = {n: Number(v) for n, v in self.reader.defaults.items() if n not in symbols}
            tree, origin = substitute(parse(scalar.value), others), scalar.origin
            if names(tree) - set(symbols):
                tree, origin = Number(1.5), "inferred"
            if origin == "inferred":
                self.notes.append(f"nothing says what {name} is; {show(tree)} was passed")
            self.arguments.scalar_values[name] = Scalar(name, scalar.type, show(tree), origin)

    def _guess_launch(self, said: str) -> None:
        self.notes.append(said)
        if self.site is not None:
            self.guesses.append(Guess(About.LAUNCH, said, "launch block(256)"))

    # Launch ---------------------------------------------------------------------------------------------------------

    def _launch(
        self, symbols: tuple[str, ...], reach: KernelReach
    ) -> tuple[tuple[str, str, str], tuple[str, str, str], str | None, str, tuple[str, ...]]:
        """Grid, block, dynamic shared bytes (None: as much as is used), origin, and symbols that only the grid has."""
        said = [o for o in (self.said, self.directives) if o.grid or o.block]
        grid = self.said.grid or self.directives.grid
        block = self.said.block or self.directives.block
        shared = self.said.dynamic_shared_bytes or self.directives.dynamic_shared_bytes
        origin = said[0].origin if said else "launch" if self.site is not None else "inferred"
        more: tuple[str, ...] = ()
        if block is None:
            block = self._block(symbols, reach)
        if grid is None:
            grid, more = self._grid(symbols, block, reach)
        if shared is None:
            shared = self._shared(symbols)
        return grid, block, shared, origin, more

    def _configuration(self, place: int, symbols: tuple[str, ...]) -> Dims | None:
        if self.site is None or len(self.site.configuration) <= place:
            return None
        try:
            x, y, z = (
                self.arguments.settled(d, symbols) for d in self.reader.resolve_dims(self.site.configuration[place])
            )
            if not any(self._is_possible((x, y, z), symbols, size) for size in (64, 1009)):
                return None
        except ExpressionError:
            return None
        return x, y, z

    def _is_possible(self, dims: Dims, symbols: tuple[str, ...], size: int) -> bool:
        """Whether it can be computed with all symbols as large, those of the block of the grid's sizes included."""
        values = {**dict.fromkeys(_AXES, 1), **dict.fromkeys(symbols, size)}
        try:
            return all(evaluate(part, values) >= 1 for part in dims)
        except ExpressionError:
            return False

    def _block(self, symbols: tuple[str, ...], reach: KernelReach) -> tuple[str, str, str]:
        dims = self._configuration(1, symbols)
        if dims is not None:
            return _shown(dims)
        launch = self.text.site.launch if self.text.site is not None else None
        found = found_block(launch) or found_block(self.kernel.launches[0] if self.kernel.launches else None)
        if found is None:
            raise LackingError("the block of its launch cannot be followed", _LAUNCH_EXAMPLE)
        (x, y, z), exact = found
        if not exact:
            if launch is None and self.kernel.launches[0].source == "default":
                x, y, z = text_block(self.text.function, reach.arrays, (x, y, z))
            threads = " x ".join(str(part) for part in (x, y, z) if part > 1) or "1"
            why = "no launch of it is found" if self.site is None else "the text does not say the launch's block"
            self._guess_launch(f"{why}; blocks of {threads} threads were taken")
        return str(x), str(y), str(z)

    def _grid(
        self, symbols: tuple[str, ...], block: tuple[str, str, str], reach: KernelReach
    ) -> tuple[tuple[str, str, str], tuple[str, ...]]:
        dims = self._configuration(0, symbols) or found_grid(self.text.site.launch if self.text.site else None)
        if dims is not None:
            return _shown(dims), ()
        b = (parse(block[0]), parse(block[1]), parse(block[2]))
        x, y, z = b
        named: dict[str, Expression] = {f"blockDim.{axis}": size for axis, size in zip("xyz", b, strict=True)}
        for ends in (reach.coverage.threads, reach.coverage.blocks):
            for axis, end in list(ends.items()):
                whole = substitute(end, named)
                if names(whole) <= set(symbols):
                    ends[axis] = whole
                else:
                    del ends[axis]
        if self.site is None:
            for axis, blocks in tiled_grid(self.text.function, reach.arrays, symbols).items():
                if axis not in reach.coverage.threads:
                    reach.coverage.blocks.setdefault(axis, blocks)
        body = self.kernel.source.node_code(self.text.text.node)
        grid, more = covering_grid(reach.coverage, (x, y, z), body)
        why = "no launch of it is found" if self.site is None else "the grid of its launch cannot be followed"
        how = "as many blocks as its guards ask for" if not more else "as many blocks as the symbol `blocks` says"
        self.notes.append(f"{why}; {how} were taken")
        if self.site is not None:
            self.guesses.append(
                Guess(About.GRID, self.notes[-1], f"launch grid({', '.join(_without_ones(_shown(grid)))})")
            )
        return _shown(grid), more

    def _shared(self, symbols: tuple[str, ...]) -> str | None:
        """Bytes; None where the kernel uses dynamic shared memory and no launch says how much.

        A launch of a grid and a block alone gives none, whatever the kernel reaches.
        """
        if self.site is not None and len(self.site.configuration) == 2:
            return "0"
        if self.site is not None and len(self.site.configuration) > 2:
            try:
                return show(self.arguments.settled(self.reader.resolve(self.site.configuration[2]), symbols))
            except ExpressionError:
                return None
        return None if any(array.dynamic for array in self.kernel.shared_arrays) else "0"

    def _shared_opt_in(self, symbols: tuple[str, ...]) -> str | None:
        """The bytes of dynamic shared memory that the host code asks for; "0" for none, None where it is not known."""
        found = opt_in(self.program, self.kernel.name)
        if found is None:
            return "0"
        if (
            found.bytes is None
            or enclosing(found.bytes, "function_definition", "lambda_expression") != self.reader.function
        ):
            return None
        try:
            return show(self.arguments.settled(self.reader.resolve(found.bytes), symbols))
        except ExpressionError:
            return None

    # Shapes ---------------------------------------------------------------------------------------------------------

    def _own_shape(self, symbols: tuple[str, ...]) -> Shape | None:
        for overrides in (self.said, self.directives):
            if overrides.shape is not None:
                if lacking := sorted(set(symbols) - overrides.shape.keys()):
                    raise LackingError(f"the shape in the {overrides.origin} gives `{lacking[0]}` no value")
                return overrides.shape
        values = {s: self.reader.defaults.get(s) for s in symbols}
        if any(not isinstance(v, int) or v < 1 for v in values.values()):
            return None
        return {s: int(v) for s, v in values.items() if v is not None}

    def _reference(self) -> Path | None:
        if self.said.reference is not None:
            path = self.folder / self.said.reference
            if not path.is_file():
                raise LackingError(f"{FILE_NAME} names the reference {self.said.reference}, which does not exist")
            return path
        beside = self.folder / "reference.py"
        return beside if beside.is_file() and len(self.program.defined_kernels) == 1 else None


def _first_site(program: Program, kernel: Kernel) -> LaunchText | None:
    """The first launch that the conditions around it do not keep from being reached; else the first."""
    sources = list(program.sources.values())
    sites = list(launch_sites(sources, kernel.name))
    reached = (
        site for site in sites if any(decided(program, path) is not None for path in launch_paths(sources, site))
    )
    return next(reached, sites[0]) if len(sites) > 1 else next(iter(sites), None)


def _guesses_of(problem: Problem, kernel: Kernel) -> Iterator[Guess]:
    """What is guessed of the launch as a whole, of scalars and of the values of arrays."""
    if problem.launch_origin == "inferred":
        yield Guess(
            About.LAUNCH, "the launch and the sizes were taken from the kernel's text", _launch_directive(problem)
        )
    for scalar in problem.scalars:
        is_size = problem.launch_origin != "launch" and scalar.value in problem.symbols
        if scalar.origin == "inferred" and problem.launch_origin != "inferred" and not is_size:
            text = f"nothing says what {scalar.name} is; {scalar.value} was passed"
            yield Guess(About.SCALAR, text, f"scalar {scalar.name} = {scalar.value}", scalar.name)
    yield from made_up_values(kernel, [each.name for each in problem.globals])


def _launch_directive(problem: Problem) -> str:
    """The directive that says a problem's own grid and block."""
    grid, block = (", ".join(_without_ones(dims)) for dims in (problem.grid, problem.block))
    return f"launch grid({grid}) block({block})"


def _without_ones(dims: tuple[str, str, str]) -> tuple[str, ...]:
    return dims if dims[2] != "1" else dims[:2] if dims[1] != "1" else dims[:1]


def _shown(dims: tuple[Expression, Expression, Expression]) -> tuple[str, str, str]:
    return show(dims[0]), show(dims[1]), show(dims[2])


def _with_shapes(
    kernel: Kernel, draft: Problem, said: Overrides, directives: Overrides, reader: ArrayReader
) -> Problem:
    check = tuple(said.check or directives.check) or check_shapes(draft.symbols, draft.own_shape, draft.bytes)
    work = partial(work_at, kernel, draft)
    time = tuple(said.time or directives.time) or _timed(draft, reader, work)
    if not (said.check or directives.check):
        check = tuple(shape for shape in check if work(shape) <= CHECKED_WORK or shape == draft.own_shape) or check
        held = tuple(shape for shape in check if reader.holds(shape) or shape == draft.own_shape)
        # One element shows nothing: then all are tried, and the run itself says where the original is not sound.
        check = held if any(reader.holds(shape) and max(shape.values(), default=2) > 1 for shape in held) else check
    for shape in (*check, *time):
        if lacking := sorted(set(draft.symbols) - shape.keys()):
            raise LackingError(f"a test shape gives `{lacking[0]}` no value")
    return replace(draft, check=check, time=time, profile=_profile(draft, said, directives, reader))


def _timed(draft: Problem, reader: ArrayReader, work: Callable[[Shape], int]) -> tuple[Shape, ...]:
    """Sizes at which the arrays hold what the kernel reaches; any where they do so at none."""

    def bytes_held(shape: Shape) -> int:
        return draft.bytes(shape) if reader.holds(shape) else 0

    held = timed_shapes(draft.symbols, draft.own_shape, bytes_held, grid_symbols(draft), work)
    if held[0] == draft.own_shape or bytes_held(held[0]):
        return held
    return timed_shapes(draft.symbols, draft.own_shape, draft.bytes, grid_symbols(draft), work)


def _profile(draft: Problem, said: Overrides, directives: Overrides, reader: ArrayReader) -> Shape | None:
    own = said.profile or directives.profile
    return own or profile_shape(draft.symbols, draft.own_shape, grid_symbols(draft), draft.size, reader.holds)
