"""The kernels of a chain, and when each is launched."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, product, rebuilt, walk
from warpwright.formulas.types import TYPES
from warpwright.schedules.attention import FusedAttention, fused_for
from warpwright.writer.attention import Fused, Side, fused_attention
from warpwright.writer.attention_parts import F32, Attention, Rows, rows_of
from warpwright.writer.attention_results import gathered, row_results, row_store, shares, tile_results
from warpwright.writer.attention_rows import WARPS, ByRows, attention_rows
from warpwright.writer.chain import DEPTH, LARGEST, OWN, PRODUCT, SOME, SUM, TOTAL, WIDTH, Chain
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.contraction_parts import CUDA_TYPES
from warpwright.writer.expressions import PRODUCT as PRODUCT_LEVEL
from warpwright.writer.places import coordinate
from warpwright.writer.scope import Scope
from warpwright.writer.sums import factors, loads_in, names_in
from warpwright.writer.types import literal, read

_HEADS = (64, 128)
"""Of heads whose size is known when the kernel is launched: what they are padded to."""


def attention(formula: Formula, chain: Chain) -> Attention | str:
    """A chain, whose stages the formula has alone, as what is written of it; or why no kernel is made for it."""
    types = {formula.type_of(each.tensor).name for each in (chain.queries, chain.keys, chain.values)}
    if len(types) != 1 or not types <= {"f16", "bf16"}:
        return "Tensor cores multiply f16 and bf16."
    sizes = (chain.depth, chain.width)
    if any(isinstance(each, Num) and (each.value % 8 or not 0 < each.value <= 256) for each in sizes):
        return (
            f"Heads of {' and '.join(map(shown, dict.fromkeys(sizes)))}: copies are of 8 elements, and of 256 at most."
        )
    arrays = tensors_of(formula)
    fakes = [Stage(each, chain.rows, Num(0.0), "f32", True) for each in (LARGEST, TOTAL, OWN)]
    fakes += [Stage(SOME, chain.rows, Num(0.0), "bool", True)]
    fakes += [Stage(SUM, (*chain.rows, WIDTH), Num(0.0), "f32", True)]
    fakes += [Stage(PRODUCT, (*chain.rows, chain.key), Num(0.0), "f32", True)]
    whole = replace(
        formula,
        tensors={**arrays, **formula.tensors},
        stages=(*formula.stages, *fakes),
        dims={**formula.dims, WIDTH: chain.width, DEPTH: chain.depth},
    )
    found: list[Rows] = []
    outs = [Load(each.name, each.own_index) for each in chain.results if WIDTH in each.dims]
    asked = [(chain.queries, chain.row, DEPTH), (chain.keys, chain.key, DEPTH), (chain.values, chain.key, WIDTH)]
    for load, row, inner in (*asked, *((each, chain.row, WIDTH) for each in outs)):
        rows = rows_of(whole, load, row, inner)
        if isinstance(rows, str):
            return rows
        found.append(rows)
    made = Attention(whole, chain, types.pop(), found)
    if any(whole.type_of(each.name).name not in ("f32", made.type) for each in chain.results if WIDTH in each.dims):
        return f"What {made.type} gives is stored as {made.type} or f32."
    values = [chain.score, *(each.value for each in chain.results)]
    if any(made.scope("int").expressions.type_of(each).name not in ("f32", "f16", "bf16") for each in values):
        return "The scores, or what is done with the sums, are not computed in f32."
    return made


def attention_code(
    made: Attention, name: str, schedule: FusedAttention | None = None
) -> tuple[tuple[Kernel, ...], Step] | str:
    """The kernels and their launch, or why that schedule cannot be."""
    fused = _fused(made, f"{name}_kernel", schedule)
    if isinstance(fused, str):
        return fused
    kernel, paths = fused
    general, path = _by_rows(made, f"{name}_rows")
    count = product([made.formula.dims[each] for each in made.chain.rows])
    return (kernel, general), Step((*paths, path), count)


def _fused(made: Attention, name: str, schedule: FusedAttention | None) -> tuple[Kernel, list[Path]] | str:
    """The kernel of tiles, and when it is right."""
    chain = made.chain
    is_fixed = isinstance(chain.depth, Num) and isinstance(chain.width, Num)
    sizes = [int(each.value) for each in (chain.depth, chain.width) if isinstance(each, Num)]
    heads = (max(sizes),) if is_fixed else _HEADS
    chosen = schedule or fused_for(heads[0])
    if reason := next((chosen.refusal(each) for each in heads if chosen.refusal(each)), ""):
        return reason
    scope = made.scope("int" if made.is_narrow() else "long long")
    scale = _positive_scale(chain.score)
    of_base = math.log2(math.e) if chain.base == "exp" else 1.0
    labels = made.labels()
    sides: list[Side] = []
    for number, (label, extent) in enumerate(zip(labels, (chain.depth, chain.depth, chain.width), strict=True)):
        least = PRODUCT_LEVEL + 1 if number == 0 else 0
        stride = scope.expressions.of(made.rows[number].stride, least)
        padded = str(-(-int(extent.value) // 16) * 16) if isinstance(extent, Num) else "kHead"
        sides.append(Side(label, made.place(scope, number), stride, scope.expressions.of(extent), padded))
    since, until = made.ends(scope, in_tile=True)
    rows, keys = (scope.expressions.of(made.formula.dims[each]) for each in (chain.row, chain.key))
    score = rebuilt(chain.score, _multiplied)
    scope.expressions.fast = frozenset(_caps(score))
    kept = "" if scale is not None else scope.expressions.of(score, wanted=F32)
    scope.expressions.fast = frozenset()
    most = "most[down][half]" + (f" * {literal(scale, F32)}" if scale not in (None, 1.0) else "")
    results = tile_results(made, scope, most)
    batch = tuple(made.batch_lines(scope, made.own("head")))
    texts, parameters = scope.parameters("int")
    fused = Fused(
        name, made.said(), made.type, tuple(texts), sides[0], sides[1], sides[2], chain.row, rows, chain.key, keys,
        batch, kept,
        literal((scale or 1.0) * of_base, F32), since, until,
        "long long" if made.has_wide_ends else "int", any(each.slope for each in chain.edges.until), results,
        not is_fixed, made.taken,
    )  # fmt: skip
    text = fused_attention(fused, chosen, heads[0])
    own = {"copy16", "load_matrices", "load_matrices_turned", "exp2_of", f"packed_{made.type}", f"mma_{made.type}"}
    types = {"f32", *scope.expressions.types, *(scope.type_named(each).name for each in scope.arrays())}
    kernel = Kernel(
        name, text, parameters, size_type="int", helpers=frozenset(own | scope.expressions.helpers),
        types=frozenset(types),
    )  # fmt: skip
    return kernel, [_path(made, scope, kernel, chosen, each, is_fixed) for each in heads]


def _path(made: Attention, scope: Scope, kernel: Kernel, schedule: FusedAttention, head: int, is_fixed: bool) -> Path:
    chain, dims = made.chain, made.formula.dims
    heads = product([dims[each] for each in chain.rows[:-1]])
    blocks = product([ceiling(dims[chain.row], schedule.rows), heads])
    small = [*(Name(each) for each in made.formula.sizes if each in scope.used), dims[chain.row], dims[chain.key]]
    small += [blocks, *(each.stride for each in made.rows), *_counts(made)]
    # A packed array is counted from its batch, of 64 bits, on.
    strides = [(tensor.strides or ()) for tensor in (each.tensor for each in made.rows) if not made.is_packed(tensor)]
    small += [each for some in strides for each in some]
    limit = Num(MOST_INDEX - 4096)
    every = {str(polynomial(each) or each): each for each in small if names_in(each)}
    conditions: list[Expr] = []
    template: tuple[str, ...] = ()
    if not is_fixed:
        template = (str(head),)
        for extent in dict.fromkeys((chain.depth, chain.width)):
            conditions.append(Call("<=", (extent, Num(head))))
            conditions.append(Call("==", (Call("%", (extent, Num(8))), Num(0))))
    eights = dict.fromkeys(each for rows in made.rows for each in rows.eights)
    conditions += [Call("==", (Call("%", (each, Num(8))), Num(0))) for each in eights]
    conditions += [Call("<=", (each, limit)) for each in every.values()]
    aligned = {rows.tensor.array: 16 for rows in made.rows}
    launch = Launch(
        kernel.name, (blocks, Num(1), Num(1)), (schedule.threads, 1, 1), "", schedule.shared(head), template
    )
    reason = f"Tiles of {schedule.rows} x {schedule.keys} scores stay in registers, their softmax is online."
    return Path((launch,), tuple(dict.fromkeys(conditions)), aligned, reason, schedule)


def _counts(made: Attention) -> list[Expr]:
    """The sizes of arrays whose elements are counted in 32 bits."""
    results = [each for each in made.chain.results if WIDTH not in each.dims]
    values = [made.chain.score, *(each.value for each in made.chain.results)]
    names = {load.tensor for value in values for load in loads_in(value) if not load.tensor.startswith("@")}
    names |= {each.name for each in results}
    return [product([*made.formula.tensors[each].extents]) for each in sorted(names)]


def _by_rows(made: Attention, name: str) -> tuple[Kernel, Path]:
    """The kernel of rows, which is always right."""
    chain, dims, scope = made.chain, made.formula.dims, made.scope("long long")
    labels = made.labels()
    lines = []
    nth = made.own("nth")
    for each in chain.rows:
        lines.append(f"const long long {each} = {coordinate(scope.expressions, chain.rows, dims, nth, each)};")
    elements = []
    depth_at, column = made.own("depth_at"), made.own("column")
    for number, (label, inner) in enumerate(zip(labels, (depth_at, depth_at, column), strict=True)):
        stride = scope.expressions.of(made.rows[number].stride, PRODUCT_LEVEL + 1)
        place = made.place(scope, number)
        kind = CUDA_TYPES[made.type]
        if number == 0:
            lines.append(f"const {kind}* const {label}_row = {place} + {chain.row} * {stride};")
            elements.append(read(TYPES[made.type], f"{label}_row[{inner}]"))
        else:
            lines.append(f"const {kind}* const {label}_head = {place};")
            elements.append(read(TYPES[made.type], f"{label}_head[{chain.key} * {stride} + {inner}]"))
    since, until = made.ends(scope, in_tile=False)
    keys = scope.expressions.of(dims[chain.key])
    some = f"{made.own('until')} > {made.own('since')}"
    first = f"{made.own('lane')} == 0 && {made.own('first_column')} == 0"
    before = gathered(made, scope, made.own("most"), some)
    of_row = row_results(made, scope, first)
    shared, found = shares(made, scope)
    results = "".join(row_store(made, scope, at, each, value) for at, (each, value) in enumerate(found, 3))
    score = scope.expressions.of(chain.score, wanted=F32)
    count = product([dims[each] for each in chain.rows])
    described = ByRows(
        name, made.said(), (), scope.expressions.of(count), tuple(lines), chain.key, elements[0], elements[1],
        elements[2],
        scope.expressions.of(chain.depth), scope.expressions.of(chain.width), score, chain.base, since or "0",
        until or keys, before, of_row + shared, results, made.taken,
    )  # fmt: skip
    texts, parameters = scope.parameters("long long")
    text = attention_rows(replace(described, parameters=tuple(texts)))
    types = {"f32", *scope.expressions.types, *(scope.type_named(each).name for each in scope.arrays())}
    kernel = Kernel(name, text, parameters, helpers=frozenset(scope.expressions.helpers), types=frozenset(types))
    launch = Launch(name, (ceiling(count, WARPS), Num(1), Num(1)), (32 * WARPS, 1, 1))
    return kernel, Path((launch,))


def _multiplied(node: Expr) -> Expr:
    """A quotient by a literal as a product, which differs in the last place and is far cheaper."""
    match node:
        case Call(name="/", args=(above, Num(value=value))) if value and not isinstance(above, Num):
            return Call("*", (above, Num(1.0 / value)))
    return node


def _caps(score: Expr) -> Iterator[Expr]:
    """Where a score is kept small by a tanh that a number up to 100 multiplies: 2^-22 of that is far below what the
    rounding of its exponential to 16 bits changes."""
    for each in walk(score):
        match each:
            case Call(name="*", args=(Num(value=most), Call(name="tanh") as cap)) if abs(most) <= 100:
                yield cap
            case Call(name="*", args=(Call(name="tanh") as cap, Num(value=most))) if abs(most) <= 100:
                yield cap


def _positive_scale(score: Expr) -> float | None:
    """The positive number by which a score is its product; None for another score."""
    above, below = factors(score)
    numbers = [each for each in above if not (isinstance(each, Load) and each.tensor == PRODUCT)]
    scale = 1.0
    for each, power in [*((e, 1) for e in numbers), *((e, -1) for e in below)]:
        if not isinstance(each, Num) or not 0 < each.value < math.inf:
            return None
        scale *= each.value**power
    return scale if len(numbers) == len(above) - 1 else None
