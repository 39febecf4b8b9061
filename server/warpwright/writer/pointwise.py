"""A thread for each element of the results; what is reduced is a loop in the thread. Right for every formula and
size."""

from __future__ import annotations

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.extents import at_sizes, is_constant
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.partition import Group
from warpwright.writer.places import coordinates
from warpwright.writer.scatter import meet
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal

THREADS = 256
SHORT = 40
"""Nodes of an expression of which a thread computes several elements at once."""


def pointwise(formula: Formula, group: Group, name: str, each: int = 1) -> tuple[Kernel, Step]:
    """The kernel of a group, and its launch: with indices of 32 bits where all arrays are small enough, else of 64. A
    thread computes `each` elements, a block's threads apart."""
    scope = Scope(formula)
    flat = _is_flat(formula, group)
    count = product([formula.dims[each] for each in group.dims])
    is_short = flat and is_constant(count) and at_sizes(count, {}) <= MOST_INDEX - THREADS * each
    index_type = "int" if is_short else "long long" if flat or not group.dims else "Index"
    scope.index_type = index_type
    own = group.dims[0] if len(group.dims) == 1 else _free_name(scope)
    flatten(scope, group, own)
    body = Text(depth=1 if each == 1 else 2)
    stages_in(body, scope, group, index_type)
    head = Text(depth=body.depth)
    if group.dims:
        block = f"static_cast<{index_type}>(blockIdx.x)"
        block = block if each == 1 else f"({block} * {each} + part)"
        head(f"const {index_type} {own} = {block} * blockDim.x + threadIdx.x;")
        head(f"if ({own} >= {scope.expressions.of(count)}) {'return' if each == 1 else 'break'};")
    if len(group.dims) > 1:
        head.add(coordinates(scope.expressions, group.dims, formula.dims, own, str(body)))
    lines = [*head.lines, *body.lines]
    if each > 1:
        lines = ["#pragma unroll", f"    for (int part = 0; part < {each}; ++part) {{", *lines, "    }"]
    is_indexed = bool(group.dims) and not flat
    template, sizes_as = ("typename Index", "Index") if is_indexed else ("", "long long")
    kernel = scope.kernel(name, THREADS if group.dims else 1, lines, template, sizes_as)
    return kernel, _launches(scope, kernel, group, count, THREADS * each)


def elements_each(group: Group) -> int:
    """How many elements a thread computes at best: of short expressions so many that their loads keep the memory
    busy."""
    if not group.dims or group.is_scatter or any(isinstance(stage.value, Reduce) for stage in group.stages):
        return 1
    nodes = sum(1 for stage in group.stages for _ in walk(stage.value))
    return 8 if nodes <= SHORT else 2


def _launches(scope: Scope, kernel: Kernel, group: Group, count: Expr, block_elements: int) -> Step:
    if not group.dims:
        one = Launch(kernel.name, (Num(1), Num(1), Num(1)), (1, 1, 1))
        return Step((Path((one,)),), Num(1))
    grid = (ceiling(count, block_elements), Num(1), Num(1))
    block = (THREADS, 1, 1)
    if not kernel.is_indexed:
        return Step((Path((Launch(kernel.name, grid, block),)),), count)
    small = tuple(within_int(scope, count, block_elements))
    paths = (
        Path((Launch(kernel.name, grid, block, "int"),), small, reason="Indices of 32 bits reach all elements."),
        Path((Launch(kernel.name, grid, block, "long long"),)),
    )
    return Step(paths, count)


def within_int(scope: Scope, count: Expr, block_elements: int) -> list[Expr]:
    """Conditions under which 32 bits hold all indices: the elements that the threads of all blocks reach, and those
    behind which the last one of each array lies."""
    found: dict[str, Expr] = {str(polynomial(count)): Call("<=", (count, Num(MOST_INDEX - block_elements)))}
    for tensor in scope.touched():
        last = reach(tensor)
        found.setdefault(str(polynomial(last)), Call("<=", (last, Num(MOST_INDEX))))
    return list(found.values())


def reach(tensor: Tensor) -> Expr:
    """Behind how many elements the last one of an array lies."""
    if tensor.strides is None or tensor.strides == _packed(tensor):
        return product(list(tensor.extents))
    total: Expr = Num(0)
    for extent, stride in zip(tensor.extents, tensor.strides, strict=True):
        term = product([extent, stride])
        total = term if total == Num(0) else Call("+", (total, term))
    return total


def _is_flat(formula: Formula, group: Group) -> bool:
    """Whether every array is packed and read and written at the thread's own element alone, so that one index serves
    for all."""
    own = tuple(map(Name, group.dims))
    for stage in group.stages:
        if stage.combine or isinstance(stage.value, Reduce):
            return False
        if len(group.dims) > 1 and any(
            isinstance(node, Name) and node.name in group.dims for node in _outside_loads(stage.value)
        ):
            return False
        for load in (node for node in walk(stage.value) if isinstance(node, Load)):
            if load.index and (load.index != own or not is_packed(formula, load.tensor)):
                return False
        if not is_packed(formula, stage.name):
            return False
    return bool(group.dims)


def _outside_loads(node: Expr) -> list[Expr]:
    if isinstance(node, Load):
        return []
    inner = node.args if isinstance(node, Call) else ()
    return [node, *(each for child in inner for each in _outside_loads(child))]


def is_packed(formula: Formula, name: str) -> bool:
    tensor = formula.tensors.get(name)
    if tensor is None or tensor.strides is None:
        return True
    return not tensor.base and tensor.strides == _packed(tensor)


def _packed(tensor: Tensor) -> tuple[Expr, ...]:
    return tuple(product(list(tensor.extents[place + 1 :])) for place in range(len(tensor.extents)))


def _free_name(scope: Scope) -> str:
    return scope.free("i", "at", "element", "thread")


def flatten(scope: Scope, group: Group, name: str) -> None:
    """In packed arrays of as many elements, the thread's own one is at the number of the thread."""
    own = tuple(map(Name, group.dims))
    extents = [polynomial(scope.formula.dims[each]) for each in group.dims]
    for tensor in scope.tensors.values():
        if own and is_packed(scope.formula, tensor.name) and [polynomial(each) for each in tensor.extents] == extents:
            scope.flat[tensor.name] = (own, name)


def stages_in(body: Text, scope: Scope, group: Group, index_type: str) -> None:
    """Values first, then what is stored: new values of arrays are written when all old ones were read."""
    stores: list[tuple[Stage, str]] = []
    writes_over = any(each.primed for each in group.stages)
    for stage in group.stages:
        kind = TYPES[stage.type]
        if stage.combine:
            meet(body, scope, stage)
            continue
        if isinstance(stage.value, Reduce):
            inner = stage.temporary and stage.name not in group.kept
            name = stage.name if inner else scope.free(f"{stage.name}_{stage.value.op}")
            value = reduced(body, scope, stage.value, name, computed(kind), index_type)
            stores.append((stage, value))
            scope.locals[stage.name] = (value, computed(kind))
            continue
        read_here = any(
            isinstance(node, Load) and node.tensor == stage.name and other is not stage
            for other in group.stages
            for node in walk(other.value)
        )
        if stage.temporary or (read_here and not stage.primed) or (writes_over and len(group.stages) > 1):
            inner = stage.temporary and stage.name not in group.kept
            name = stage.name if inner else scope.free(f"{stage.name}_value")
            value = scope.expressions.held(stage.value, kind)
            body(f"const {NAMES[computed(kind).name]} {name} = {value};")
            if not stage.primed:
                scope.locals[stage.name] = (name, computed(kind))
            stores.append((stage, name))
        else:
            stores.append((stage, ""))
    for stage, value in stores:
        if stage.temporary and stage.name not in group.kept:
            continue
        store(body, scope, stage, value)


def store(body: Text, scope: Scope, stage: Stage, value: str) -> None:
    """Writes the value of a stage, or the variable `value` that holds it, to memory."""
    kind = TYPES[stage.type]
    tensor = scope.tensors[stage.name]
    scope.stored[tensor.array] = None
    text = (
        scope.expressions.written(kind, value, computed(kind)) if value else scope.expressions.stored(stage.value, kind)
    )
    body(f"{scope.own_element(tensor, stage)} = {text};")


def reduced(body: Text, scope: Scope, node: Reduce, name: str, kind: ElementType, index_type: str) -> str:
    """Loops over the ranges; the name of the variable that holds the result."""
    expressions = scope.expressions
    of_body = expressions.type_of(node.body)
    accumulate = TYPES[node.accumulate] if node.accumulate else kind
    is_place = node.op in ("argmax", "argmin")
    if is_place:
        best = f"{name}_best"
        body(f"{NAMES[of_body.name]} {best} = {literal(identity(node.op, of_body), of_body)};")
        body(f"long long {name} = 0;")
    else:
        body(f"{NAMES[accumulate.name]} {name} = {expressions.nothing(node, accumulate)};")
    depth = body.depth
    for each in node.ranges:
        lower = "0" if each.lower is None else expressions.of(each.lower)
        upper: Expr = scope.formula.dims[each.name] if each.upper is None else each.upper
        sign = "<=" if each.closed else "<"
        body(f"for ({index_type} {each.name} = {lower}; {each.name} {sign} {expressions.of(upper)}; ++{each.name}) {{")
        body.depth += 1
    value = expressions.of(node.body, wanted=of_body if is_place else accumulate)
    body.add(combined(scope, node, name, value, of_body, accumulate))
    body.end(depth)
    return name


def combined(scope: Scope, node: Reduce, name: str, value: str, of_body: ElementType, kind: ElementType) -> list[str]:
    match node.op:
        case "sum":
            return [f"{name} += {value};"]
        case "prod":
            return [f"{name} *= {value};"]
        case "any":
            return [f"{name} = {name} || ({value});"]
        case "all":
            return [f"{name} = {name} && ({value});"]
        case "max" | "min" if kind.kind == "integer":
            return [f"{name} = {node.op}({name}, static_cast<{NAMES[kind.name]}>({value}));"]
        case "max" | "min":
            scope.expressions.helpers.add(f"{node.op}_of")
            own = value if computed(of_body) == kind else f"static_cast<{NAMES[kind.name]}>({value})"
            return [f"{name} = {node.op}_of({name}, {own});"]
    place: Expr = Name(node.ranges[0].name)
    for each in node.ranges[1:]:
        place = Call("+", (Call("*", (place, scope.formula.dims[each.name])), Name(each.name)))
    sign = ">" if node.op == "argmax" else "<"
    wins = f"value {sign} {name}_best"
    if of_body.is_float:  # a NaN wins, but not over another one
        wins = f"!(value {'<=' if sign == '>' else '>='} {name}_best) && {name}_best == {name}_best"
    return [
        f"const {NAMES[of_body.name]} value = {value};",
        f"if ({wins}) {{",
        f"    {name}_best = value;",
        f"    {name} = {scope.expressions.of(place)};",
        "}",
    ]
