"""A thread for each element of the results; what is reduced is a loop in the thread. Right for every formula and
size."""

from __future__ import annotations

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.scatter import meet
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, literal, written

THREADS = 256


def pointwise(formula: Formula, group: Group, name: str) -> tuple[Kernel, Step]:
    """The kernel of a group, and its launch: with indices of 32 bits where all arrays are small enough, else of 64."""
    scope = Scope(formula)
    body = Text(depth=1)
    flat = _is_flat(formula, group)
    index_type = "long long" if flat or not group.dims else "Index"
    count = product([formula.dims[each] for each in group.dims])
    if group.dims:
        scope.expressions.of(count)
        begin = f"static_cast<{index_type}>(blockIdx.x) * blockDim.x + threadIdx.x"
        _begin(body, scope, group, flat, begin, count)
    _stages(body, scope, group, flat, index_type)
    types = {scope.type_named(each).name for each in scope.used if each in scope.tensors}
    texts, parameters = scope.parameters(index_type)
    is_indexed = bool(group.dims) and not flat
    head = ["template <typename Index>"] if is_indexed else []
    head += listed(texts, f"__global__ void __launch_bounds__({THREADS if group.dims else 1}) {name}(", ") {")
    text = "\n".join([*head, str(body), "}"])
    helpers = frozenset(scope.expressions.helpers)
    kernel = Kernel(
        name, text, parameters, is_indexed, "long long", helpers, frozenset(types | scope.expressions.types)
    )
    return kernel, _launches(scope, kernel, group, count)


def _launches(scope: Scope, kernel: Kernel, group: Group, count: Expr) -> Step:
    if not group.dims:
        one = Launch(kernel.name, (Num(1), Num(1), Num(1)), (1, 1, 1))
        return Step((Path((one,)),), Num(1))
    grid = (ceiling(count, THREADS), Num(1), Num(1))
    block = (THREADS, 1, 1)
    if not kernel.is_indexed:
        return Step((Path((Launch(kernel.name, grid, block),)),), count)
    small = tuple(Call("<=", (each, Num(MOST_INDEX))) for each in _counts(scope, count))
    paths = (
        Path((Launch(kernel.name, grid, block, "int"),), small, reason="Indices of 32 bits reach all elements."),
        Path((Launch(kernel.name, grid, block, "long long"),)),
    )
    return Step(paths, count)


def _counts(scope: Scope, count: Expr) -> list[Expr]:
    """How many threads there are, and behind how many elements the last one of each array lies."""
    found: dict[str, Expr] = {str(polynomial(count)): Call("+", (count, Num(THREADS - 1)))}
    for name in scope.used:
        tensor = scope.tensors.get(name)
        if tensor is None:
            continue
        last = reach(tensor)
        found.setdefault(str(polynomial(last)), last)
    return [each for each in found.values() if not isinstance(each, Num)]


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


def _begin(body: Text, scope: Scope, group: Group, flat: bool, begin: str, count: Expr) -> None:
    index_type = "long long" if flat else "Index"
    scope.index_type = index_type
    single = len(group.dims) == 1
    name = group.dims[0] if single else _free_name(scope, group)
    limit = scope.expressions.of(count)
    body(f"const {index_type} {name} = {begin};")
    body(f"if ({name} >= {limit}) return;")
    if single or flat:
        if flat and not single:
            _flatten(scope, group, name)
        return
    rest = name
    for place in range(len(group.dims) - 1, -1, -1):
        dim = group.dims[place]
        extent = scope.expressions.of(scope.formula.dims[dim], PRODUCT + 1)
        outer = [scope.formula.dims[each] for each in group.dims[place + 1 :]]
        inner = scope.expressions.of(product(outer), PRODUCT + 1)
        whole = rest if inner == "1" else f"{rest} / {inner}"
        body(f"const Index {dim} = {whole}{f' % {extent}' if place else ''};")


def _free_name(scope: Scope, group: Group) -> str:
    taken = {*scope.tensors, *scope.formula.scalars, *scope.formula.dims, *scope.formula.sizes}
    return next(each for each in ("i", "at", "element", "thread") if each not in taken)


def _flatten(scope: Scope, group: Group, name: str) -> None:
    """Loads at the thread's own element are at the one index."""
    own = tuple(map(Name, group.dims))
    for tensor in scope.tensors.values():
        if len(tensor.extents) == len(own):
            scope.flat[tensor.name] = (own, name)


def _stages(body: Text, scope: Scope, group: Group, flat: bool, index_type: str) -> None:
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
    text = written(kind, value, computed(kind)) if value else scope.expressions.stored(stage.value, kind)
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
        body(f"{NAMES[accumulate.name]} {name} = {literal(identity(node.op, accumulate), accumulate)};")
    depth = body.depth
    for each in node.ranges:
        lower = "0" if each.lower is None else expressions.of(each.lower)
        upper: Expr = scope.formula.dims[each.name] if each.upper is None else each.upper
        sign = "<=" if each.closed else "<"
        body(f"for ({index_type} {each.name} = {lower}; {each.name} {sign} {expressions.of(upper)}; ++{each.name}) {{")
        body.depth += 1
    value = expressions.of(node.body, wanted=of_body if is_place else accumulate)
    for line in combined(scope, node, name, value, of_body, accumulate):
        body(line)
    while body.depth > depth:
        body.depth -= 1
        body("}")
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
    nan = f" || (value != value && {name}_best == {name}_best)" if of_body.is_float else ""
    return [
        f"const {NAMES[of_body.name]} value = {value};",
        f"if (value {sign} {name}_best{nan}) {{",
        f"    {name}_best = value;",
        f"    {name} = {scope.expressions.of(place)};",
        "}",
    ]
