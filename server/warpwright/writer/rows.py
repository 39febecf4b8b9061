"""Rows: lanes share a row, keep it in registers or in shared memory or read it anew for each pass, and meet in
reductions over it."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.formulas.bounds import Polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Load, Reduce, product, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import along
from warpwright.schedules.model import Rows
from warpwright.schedules.shape import RowShape
from warpwright.writer.code import Kernel
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.places import coordinates
from warpwright.writer.row_reductions import accumulate, declare, meet, online, online_pair, place_type
from warpwright.writer.row_text import VECTOR, RowText
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, read
from warpwright.writer.types import written as as_stored


@dataclass(frozen=True)
class WrittenRows:
    """A kernel of rows; which arrays it moves by packs: their types and where their rows begin; how many bytes of
    shared memory an element of a row takes; and where rows begin that need not be whole packs."""

    kernel: Kernel
    moved: tuple[tuple[str, str, Polynomial], ...]
    shared_bytes: int = 0
    base: Polynomial | None = None


def rows_kernel(formula: Formula, shape: RowShape, schedule: Rows, name: str) -> WrittenRows:
    """The kernel, a template over lanes and packs."""
    rows = RowText(formula, shape, schedule.keep, schedule.stream)
    _passes(rows, schedule.online)
    kernel = _kernel(rows, name)
    moved = [(each.array, each.type, each.base) for each in rows.packs]
    held = sum(TYPES[each.type].bits // 8 for each, _ in rows.held)
    return WrittenRows(kernel, (*moved, *rows.moved), held, rows.base)


def _passes(rows: RowText, is_online: bool) -> None:
    phases = rows.shape.phases
    last = max((phases[s.name] for s in rows.shape.stages if rows.in_loop(s)), default=0)
    if rows.keep != "reload":
        rows.keep_row()
    phase = 0
    while phase <= last:
        _row_values(rows, phase)
        phase = _pass(rows, phase, is_online)
    for each in range(last + 1, max([*phases.values(), last + 1]) + 1):
        _row_values(rows, each)
    _store_row_values(rows)


def _row_values(rows: RowText, phase: int) -> None:
    """Values of the row that are known before this pass."""
    for stage in rows.shape.stages:
        if rows.shape.phases[stage.name] != phase or rows.in_loop(stage):
            continue
        kind = computed(TYPES[stage.type])
        name = stage.name if stage.temporary else rows.scope.free(f"{stage.name}_value")
        value = rows.scope.expressions.held(stage.value, TYPES[stage.type])
        rows.body(f"const {NAMES[kind.name]} {name} = {value};")
        if not stage.primed:
            rows.scope.locals[stage.name] = (name, kind)
        rows.results[stage.name] = name


def _pass(rows: RowText, phase: int, is_online: bool) -> int:
    """One pass over the row; the number of the next."""
    stages = [each for each in rows.shape.stages if rows.in_loop(each) and rows.shape.phases[each.name] == phase]
    if not stages:
        return phase + 1
    pair = online_pair(rows, stages, phase) if is_online else None
    if pair is not None:
        online(rows, *pair)
        return phase + 2
    body, scope = rows.body, rows.scope
    reductions = [each for each in stages if isinstance(each.value, Reduce)]
    for stage in reductions:
        declare(rows, stage)
    for stage in stages:
        is_map = not isinstance(stage.value, Reduce)
        if is_map and rows.in_registers and _is_read_later(rows, stage, phase):
            name = stage.name if stage.temporary else scope.free(f"{stage.name}_kept")
            rows.declare_kept(name, stage.type)
            rows.results[stage.name] = name
    with rows.packs_loop():
        _work(rows, phase, stages)
    with rows.singles():
        _work(rows, phase, stages)
    for stage in reductions:
        meet(rows, stage)
    body()
    return phase + 1


def _work(rows: RowText, phase: int, stages: list[Stage]) -> None:
    """Of a pass, what is done with one pack or with a single element."""
    for each in rows.packs:
        if phase in each.phases and not rows.is_kept(each):
            rows.load(each)
    outputs = _output_packs(rows, [each for each in stages if not isinstance(each.value, Reduce)])
    _elements(rows, stages)
    for stage, name in outputs:
        _store_pack(rows, stage, name)


def _is_read_later(rows: RowText, stage: Stage, phase: int) -> bool:
    return not stage.primed and any(
        rows.shape.phases[other.name] > phase
        and any(isinstance(n, Load) and n.tensor == stage.name for n in walk(other.value))
        for other in rows.shape.stages
    )


def _output_packs(rows: RowText, maps: list[Stage]) -> list[tuple[Stage, str]]:
    """The packs that a pass stores."""
    outputs: list[tuple[Stage, str]] = []
    for stage in maps:
        name = rows.results.get(stage.name, "")
        if stage.temporary and name not in rows.kept:
            continue
        if not name:
            name = rows.scope.free(f"{stage.name}_{'new' if stage.primed else 'pack'}")
            rows.results[stage.name] = name
        if name not in rows.kept and not rows.is_single:
            rows.body(f"Pack<{NAMES[stage.type]}, {VECTOR}> {name};")
        if not stage.temporary:
            outputs.append((stage, name))
    return outputs


def _elements(rows: RowText, stages: list[Stage]) -> None:
    body, scope = rows.body, rows.scope
    inner = Text(depth=body.depth + 1)
    for stage in stages:
        if isinstance(stage.value, Reduce):
            accumulate(rows, inner, stage)
            continue
        kind = TYPES[stage.type]
        load = Load(stage.name, stage.own_index)
        name = rows.results.get(stage.name, "")
        if name:
            declared = f"const {NAMES[stage.type]} " if rows.is_single and name not in rows.kept else ""
            inner(f"{declared}{rows.ref(name)} = {scope.expressions.stored(stage.value, kind)};")
            if not stage.primed:
                scope.places[load] = (read(kind, rows.ref(name)), computed(kind))
        else:
            exact = stage.value if computed(kind) == kind else Call(kind.name, (stage.value,))
            text = scope.expressions.of(exact, wanted=computed(kind))
            inner(f"const {NAMES[computed(kind).name]} {stage.name} = {text};")
            scope.places[load] = (stage.name, computed(kind))
    rows.elements(inner)


def _store_pack(rows: RowText, stage: Stage, name: str) -> None:
    tensor = rows.scope.tensors[stage.name]
    load = Load(stage.name, stage.own_index)
    base = along(tensor, load, rows.shape.cols, rows.formula.dims)
    pack = f"{name}[{rows.pack_index}]" if name in rows.kept else name
    assert base is not None
    pointer = rows.pointer(tensor.array, tensor.type, base, [load], True)
    helper = "stream_pack" if rows.stream else "store_global"
    rows.moved.append((tensor.array, tensor.type, base))
    if rows.is_single:
        rows.body(f"{pointer}[{rows.single}] = {rows.ref(name)};")
        return
    rows.scope.expressions.helpers.add(helper)
    rows.body(f"{helper}({pointer} + {rows.first}, {pack});")


def _store_row_values(rows: RowText) -> None:
    stored = [each for each in rows.shape.stages if not each.temporary and not rows.shape.is_full(each)]
    if not stored:
        return
    lines = []
    for stage in stored:
        tensor = rows.scope.tensors[stage.name]
        rows.scope.stored[tensor.array] = None
        kind = TYPES[stage.type]
        is_place = isinstance(stage.value, Reduce) and stage.value.op.startswith("arg")
        value = as_stored(kind, rows.results[stage.name], place_type(rows) if is_place else computed(kind))
        lines.append(f"{rows.scope.own_element(tensor, stage)} = {value};")
    read = {load.tensor for each in rows.shape.stages for load in rows.formula.loads(each.value)}
    if any(each.primed and each.name in read for each in stored):
        rows.body("__syncthreads();  // all lanes have read the old value")
    guard = f"{rows.lane} == 0 && is_row" if rows.in_registers else f"{rows.lane} == 0"
    if len(lines) == 1:
        rows.body(f"if ({guard}) {lines[0]}")
    else:
        with rows.body.block(f"if ({guard})"):
            for line in lines:
                rows.body(line)


# Around it


def _kernel(rows: RowText, name: str) -> Kernel:
    lines = _body(rows)
    whole = ", bool kWhole" if rows.base is not None else ""
    if rows.in_registers:
        why = [
            "// kLanes threads share a row, of which each keeps up to kPerLane packs of kVector elements in registers.",
            *(["// Where not kWhole, a row may begin and end anywhere."] if rows.base is not None else []),
            "// To ask for one block per multiprocessor leaves the compiler the registers that keep it from spilling.",
        ]
        template, bounds = f"int kLanes, int kRows, int kPerLane, int {VECTOR}{whole}", "kLanes * kRows, 1"
    else:
        said = "shared memory keeps it" if rows.keep == "shared" else "each pass reads it anew"
        why = [f"// A block for each row: {said}."]
        template, bounds = f"int kLanes, int {VECTOR}{whole}", "kLanes"
    return rows.scope.kernel(name, bounds, lines, template, rows.index, "\n".join(why))


def _body(rows: RowText) -> list[str]:
    """Which row, where it lies, and the passes over it."""
    body = "\n".join(rows.body.lines).rstrip("\n ")
    count = rows.scope.expressions.of(product([rows.formula.dims[each] for each in rows.shape.rows]), PRODUCT)
    head = Text(depth=1)
    if rows.in_registers:
        head("// Threads beyond the last row have no columns; they stay, as shuffles need all lanes of a warp.")
        head(f"const int {rows.lane} = threadIdx.x % kLanes;")
        own = rows.scope.free("wanted")
        head(f"const long long {own} = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x / kLanes;")
        head(f"const bool is_row = {own} < {count};")
        head(f"const long long {rows.row} = is_row ? {own} : {count} - 1;")
        head(f"const int {rows.columns} = is_row ? {rows.scope.expressions.of(rows.length_expr, PRODUCT + 1)} : 0;")
    else:
        head(f"const int {rows.lane} = threadIdx.x;")
        if rows.keep == "shared":
            head(f"const long long {rows.row} = blockIdx.x;")
    inside = Text(depth=1)
    _row_coordinates(rows, inside, body)
    for pointer, (text, stored, kind) in rows.pointers.items():
        inside(f"{'' if stored else 'const '}{NAMES[kind]}* const {pointer} = {text};")
    inside.add((*rows.beginning(), *rows.shared_rows()))
    lines = [*inside.lines, *([""] if inside.lines else []), *body.split("\n")]
    if rows.keep == "reload":
        loop = f"for (long long {rows.row} = blockIdx.x; {rows.row} < {count}; {rows.row} += gridDim.x) {{"
        if sum(rows.met.values()) == 1:
            lines.append("    __syncthreads();  // the next row's reduction writes where this one's is read")
        lines = [f"    {loop}", *(f"    {each}" if each and each[0] != "#" else each for each in lines), "    }"]
    return [*head.lines, *lines]


def _row_coordinates(rows: RowText, head: Text, text: str) -> None:
    named = " ".join([text, *(each for each, _, _ in rows.pointers.values())])
    head.add(coordinates(rows.scope.expressions, rows.shape.rows, rows.formula.dims, rows.row, named, "long long"))
