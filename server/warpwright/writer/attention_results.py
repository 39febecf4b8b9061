"""What a row of attention has gathered, as lines of C++ that store it."""

from __future__ import annotations

from warpwright.formulas.model import Stage
from warpwright.formulas.tree import Expr, Name, Num, product
from warpwright.formulas.types import TYPES
from warpwright.writer.attention_parts import F32, Attention
from warpwright.writer.chain import LARGEST, OWN, SOME, SUM, WIDTH
from warpwright.writer.contraction_parts import CUDA_TYPES, filled
from warpwright.writer.expressions import PRODUCT as PRODUCT_LEVEL
from warpwright.writer.own_names import with_own_names
from warpwright.writer.scope import Scope
from warpwright.writer.sums import factors, loads_in, names_in, product_of

_PAIRS = {"bf16": "__nv_bfloat162", "f16": "__half2", "f32": "float2"}
_TO_PAIR = {"bf16": "__floats2bfloat162_rn", "f16": "__floats2half2_rn", "f32": "make_float2"}
_RESULT = (
    "result(sums[down][along][2 * half], along * 8 + lane % 4 * 2)",
    "result(sums[down][along][2 * half + 1], along * 8 + lane % 4 * 2 + 1)",
)
_LAMBDA = "auto result = [&](float sum, int column) { return $value; };\n"
_TEST = "    if (along * 8 + lane % 4 * 2 >= $extent) break;\n"
_STORE = """\
$result$element* const $to = $place + static_cast<long long>($row) * $stride;
#pragma unroll
for (int along = 0; along < kWidth / 8; ++along) {
$test    *reinterpret_cast<$pair*>($to + along * 8 + lane % 4 * 2) =
        $to_pair($both);
}
"""


def gathered(made: Attention, scope: Scope, most: str, some: str) -> str:
    """Lines before the results: the largest score and its weight, where they are needed. `some` tells whether the
    row sees keys."""
    scope.locals[SOME] = (some, TYPES["bool"])
    used = {load.tensor for each in made.chain.results for load in loads_in(each.value)}
    largest, total = made.own("largest"), made.own("total")
    lines: list[str] = []
    if used & {LARGEST, OWN}:
        lines.append("// The largest score was found among numbers; the total tells whether there were others.")
        lines.append(f"const float {largest} = isnan({total}) && {most} < INFINITY ? NAN : {most};")
    if OWN in used:
        lines.append("// Where all scores are -inf, exp(-inf + inf) is no number.")
        weight = made.own("largest_weight")
        lines.append(f"const float {weight} = {largest} == -INFINITY && {some} ? NAN : 1.0f;")
    return "".join(f"{each}\n" for each in lines)


def row_results(made: Attention, scope: Scope, is_first: str) -> str:
    """Lines that store the results that a row has one of."""
    text = ""
    for each in made.chain.results:
        if WIDTH not in each.dims:
            tensor = made.formula.tensors[each.name]
            scope.stored[tensor.array] = None
            value = scope.expressions.stored(each.value, TYPES[tensor.type])
            text += f"if ({is_first}) {scope.element(tensor, each.own_index)} = {value};\n"
    return text


def shares(made: Attention, scope: Scope) -> tuple[str, list[tuple[Stage, str]]]:
    """Lines with what is the same for all elements of a row, and each result that has the values' dimension as an
    expression of C++."""
    scope.renamed[WIDTH] = made.own("column")
    lines = ""
    found: list[tuple[Stage, str]] = []
    for each in made.chain.results:
        if WIDTH not in each.dims:
            continue
        above, below = factors(each.value)
        whole = [[e for e in side if not _is_of_element(e)] for side in (above, below)]
        rest = product_of(*([e for e in side if _is_of_element(e)] for side in (above, below)))
        share = product_of(*whole)
        text = scope.expressions.of(rest, PRODUCT_LEVEL, wanted=F32)
        if share != Num(1.0):
            name = made.own(f"{each.name}_share" if found else "share")
            lines += f"const float {name} = {scope.expressions.of(share, wanted=F32)};\n"
            text = f"{text} * {name}"
        found.append((each, text))
    return lines, found


def tile_results(made: Attention, scope: Scope, most: str) -> str:
    """Lines that store what a row of a tile has gathered."""
    keys = scope.expressions.of(made.formula.dims[made.chain.key])
    some = f"{keys} > 0"
    edges = made.chain.edges
    if edges.are_ranges and (edges.since or edges.until):
        until = f"{made.own('key_until')}({made.chain.row})" if edges.until else keys
        since = f"{made.own('key_since')}({made.chain.row})" if edges.since else "0"
        some = f"{until} > {since}"
    text = gathered(made, scope, with_own_names(most, made.taken), some)
    text += row_results(made, scope, with_own_names("lane % 4 == 0", made.taken))
    lines, found = shares(made, scope)
    text += lines
    for number, (stage, value) in enumerate(found, 3):
        text += _tile_store(made, scope, number, stage, value)
    return text


def _tile_store(made: Attention, scope: Scope, number: int, stage: Stage, value: str) -> str:
    rows = made.rows[number]
    tensor = rows.tensor
    place = made.place(scope, number)
    scope.stored[tensor.array] = None
    stride = scope.expressions.of(rows.stride, PRODUCT_LEVEL + 1)
    sum_name, column = made.own("sum"), made.own("column")
    own = "sums[down][along][2 * half]", "sums[down][along][2 * half + 1]"
    is_direct = value.startswith(f"{sum_name} * ") and column not in value and value.count(sum_name) == 1
    inner = value.removeprefix(sum_name)
    both = f"{own[0]}{inner}, {own[1]}{inner}" if is_direct or value == sum_name else f"{_RESULT[0]}, {_RESULT[1]}"
    extent = scope.expressions.of(made.chain.width)
    is_whole = isinstance(made.chain.width, Num) and int(made.chain.width.value) % 16 == 0
    return filled(
        with_own_names(_STORE, made.taken),
        result="" if is_direct or value == sum_name else filled(with_own_names(_LAMBDA, made.taken), value=value),
        element=CUDA_TYPES[tensor.type], to=made.own(f"{stage.name}_to"), place=place, row=made.chain.row,
        stride=stride, test="" if is_whole else filled(with_own_names(_TEST, made.taken), extent=extent),
        pair=_PAIRS[tensor.type], to_pair=_TO_PAIR[tensor.type], both=with_own_names(both, made.taken),
    )  # fmt: skip


def row_store(made: Attention, scope: Scope, number: int, stage: Stage, value: str) -> str:
    tensor, stride = made.rows[number].tensor, made.rows[number].stride
    row = scope.expressions.of(product([Name(made.chain.row), stride]))
    scope.stored[tensor.array] = None
    place = made.place(scope, number).removeprefix(tensor.array).removeprefix(" + ")
    at = f"{place} + {row}" if place else row
    return (
        f"{tensor.array}[{at} + {made.own('column')}] = {scope.expressions.written(TYPES[tensor.type], value, F32)};\n"
    )


def _is_of_element(node: Expr) -> bool:
    return WIDTH in names_in(node) or any(load.tensor == SUM for load in loads_in(node))
