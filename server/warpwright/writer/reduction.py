"""Reductions of much to little: blocks share what is reduced, and a second launch brings their results together. The
result does not hang on the order in which blocks end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Num, Reduce, product
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.model import Columns
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.places import coordinates, packed, unique
from warpwright.writer.pointwise import combined, store
from warpwright.writer.reduction_parts import Parts
from warpwright.writer.reduction_rounds import LEAST, THREADS, Round, parts_of, use_of
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal


@dataclass(frozen=True)
class Reduced:
    """Kernels, the paths of a step and the arrays between its launches."""

    kernels: tuple[Kernel, ...]
    paths: tuple[Path, ...]
    temporaries: tuple[Tensor, ...]


def reduced(formula: Formula, found: Round, kept: frozenset[str], name: str, schedule: Columns) -> Reduced:
    """The two kernels of a round, and the paths that launch them where enough is reduced."""
    results = product([formula.dims[each] for each in found.dims])
    partials: list[Tensor] = []
    for stage in found.reductions:
        for suffix, kind in parts_of(formula, stage):
            extents = (Num(schedule.split), *(formula.dims[each] for each in found.dims))
            partials.append(Tensor(f"{stage.name}_{suffix}", kind, extents, "out"))
    wide = replace(formula, tensors={**formula.tensors, **{each.name: each for each in partials}})
    writer = Parts(wide, found, schedule, results)
    first = writer.write(f"{name}_partial")
    last = _finish(wide, found, kept, f"{name}_final", schedule, results)
    paths = _paths(writer, first, last, schedule)
    return Reduced((first, last), tuple(paths), tuple(partials))


def _finish(
    formula: Formula, found: Round, kept: frozenset[str], name: str, schedule: Columns, results: Expr
) -> Kernel:
    """The second kernel: kLanes threads for each result."""
    scope = Scope(formula)
    scope.index_type = "Index"
    body = Text(depth=1)
    part = scope.free("part")
    result = found.dims[0] if len(found.dims) == 1 else scope.free("result")
    count = scope.expressions.of(results, PRODUCT + 1)
    if found.dims:
        body("// kLanes threads share a result. All stay for the shuffles; those beyond the last result repeat it.")
        body("const int lane = threadIdx.x % kLanes;")
        body(f"const Index wanted = (static_cast<Index>(blockIdx.x) * {THREADS} + threadIdx.x) / kLanes;")
        body(f"const bool is_result = wanted < {count};")
        body(f"const Index {result} = is_result ? wanted : {count} - 1;")
    else:
        body("const int lane = threadIdx.x;")
    after = Text(depth=1)
    for stage in found.reductions:
        node = stage.value
        assert isinstance(node, Reduce)
        is_place = node.op.startswith("arg")
        of_body = scope.expressions.type_of(node.body)
        kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
        parts = [f"{stage.name}_{suffix}" for suffix, _ in parts_of(formula, stage)]
        for each in parts:
            scope.used[each] = None
        own = stage.name if stage.temporary and stage.name not in kept else scope.free(f"{stage.name}_{node.op}")
        at = f"static_cast<Index>({part}) * {count} + {result}" if found.dims else part
        helper = f"row_{node.op}"
        scope.expressions.helpers.add(helper)
        if is_place:
            after(f"{NAMES[of_body.name]} {own}_best = {literal(identity(node.op, of_body), of_body)};")
            after(f"long long {own} = LLONG_MAX;  // of equal values the lowest place wins")
            scope.expressions.helpers.add(f"better_{node.op}")
            with after.block(f"for (int {part} = lane; {part} < kParts; {part} += kLanes)"):
                after(f"better_{node.op}({own}_best, {own}, {parts[0]}[{at}], {parts[1]}[{at}]);")
            after(f"{helper}<kLanes{use_of(found, stage)}>({own}_best, {own});")
            kind = TYPES["i64"]
        else:
            after(f"{NAMES[kind.name]} {own} = {scope.expressions.nothing(node, kind)};")
            with after.block(f"for (int {part} = lane; {part} < kParts; {part} += kLanes)"):
                after.add(combined(scope, node, own, f"{parts[0]}[{at}]", kind, kind))
            after(f"{own} = {helper}<kLanes{use_of(found, stage)}>({own});")
        scope.locals[stage.name] = (own, kind)
    stores: list[tuple[Stage, str]] = [
        (each, scope.locals[each.name][0]) for each in found.reductions if not each.temporary or each.name in kept
    ]
    for stage in found.after:
        kind = computed(TYPES[stage.type])
        own = stage.name if stage.temporary and stage.name not in kept else scope.free(f"{stage.name}_value")
        after(f"const {NAMES[kind.name]} {own} = {scope.expressions.held(stage.value, TYPES[stage.type])};")
        scope.locals[stage.name] = (own, kind)
        if not stage.temporary or stage.name in kept:
            stores.append((stage, own))
    with after.block("if (lane == 0 && is_result)" if found.dims else "if (lane == 0)"):
        for stage, value in stores:
            store(after, scope, stage, value)
    body.add(coordinates(scope.expressions, found.dims, formula.dims, result, str(after)))
    lines = [f"    constexpr int kParts = {schedule.split};", *body.lines, *after.lines]
    if any("Index" in each for each in (*scope.parameters("Index")[0], *lines)):
        return scope.kernel(name, THREADS, lines, "typename Index, int kLanes")
    return scope.kernel(name, THREADS, lines, "int kLanes", "long long")


def _paths(writer: Parts, first: Kernel, last: Kernel, schedule: Columns) -> list[Path]:
    formula, found = writer.formula, writer.round
    results, split = writer.results, schedule.split
    paths: list[Path] = []
    arrays = writer.scope.touched()
    margin = split * max(THREADS, 32 * schedule.warps) * 16
    reach = [Call("<=", (product(list(t.extents)), Num(MOST_INDEX - margin))) for t in arrays if t.strides is None]
    narrow = ["int"] if all(t.strides is None for t in arrays) else []
    enough: list[Expr] = [Call(">=", (writer.total, Num(LEAST if found.inner else 64)))]
    if not found.inner:
        enough.append(Call(">=", (product([writer.total, results]), Num(65536))))
    for vector in dict.fromkeys((schedule.vector, 1)):
        fits = packed(writer.moved, [writer.length], formula.sizes, vector)
        if fits is None:
            continue
        conditions, aligned = fits
        if found.inner:
            grid: tuple[Expr, Expr, Expr] = (results, Num(split), Num(1))
            block, lanes = THREADS, 32 if found.dims else THREADS
        else:
            grid = (ceiling(results, 32 * vector), Num(split), Num(1))
            block, lanes = 32 * schedule.warps, 1
        blocks_at_end = ceiling(product([results, Num(lanes)]), THREADS) if found.dims else Num(1)
        end = (blocks_at_end, Num(1), Num(1))
        for index in (*narrow, "long long"):
            at_end = (index,) if last.is_indexed else ()
            launches = (
                Launch(first.name, grid, (block, 1, 1), index, template=(index, str(vector))),
                Launch(last.name, end, (THREADS, 1, 1), index, template=(*at_end, str(lanes))),
            )
            both = (*enough, *conditions, *(reach if index == "int" else ()))
            blocks = Call("<=", (product([results, Num(lanes)]), Num(MOST_INDEX)))
            known = unique((*both, blocks))
            paths.append(
                Path(
                    launches, known, aligned, "Several blocks share each reduction; a second kernel ends it.", schedule
                )
            )
    return paths
