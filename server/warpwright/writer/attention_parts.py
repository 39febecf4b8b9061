"""A chain of two contractions in the names of a kernel: arrays by rows, ends of keys, expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Polynomial, expression, polynomial
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce, product, rebuilt
from warpwright.formulas.types import TYPES, ElementType
from warpwright.schedules.access import offset, steps
from warpwright.writer.chain import DEPTH, LARGEST, OWN, PRODUCT, SUM, TOTAL, WIDTH, Chain
from warpwright.writer.edges import Edge, opaque
from warpwright.writer.own_names import own_name
from warpwright.writer.places import coordinate
from warpwright.writer.scope import Scope
from warpwright.writer.sums import names_in, with_names

F32 = TYPES["f32"]


@dataclass(frozen=True)
class Rows:
    """Where an array's rows lie: its index with 0 for the row and the element, and the distance of two rows. `eights`
    is what must be divisible by 8 for its rows to be whole 16-byte words."""

    tensor: Tensor
    index: tuple[Expr, ...]
    stride: Expr
    eights: tuple[Expr, ...]


def rows_of(formula: Formula, load: Load, row: str, inner: str) -> Rows | str:
    """The rows of an array, or why its elements do not lie side by side in them."""
    tensor = formula.tensors[load.tensor]
    names: dict[str, Expr] = {}
    found = offset(tensor, [opaque(each, (row, inner), names) for each in load.index])
    refused = f"{load.tensor} is not read by rows."
    if found is None or {key: f for key, f in found.items() if inner in key} != {(inner,): 1}:
        return refused
    strides: Polynomial = {}
    rest: Polynomial = {}
    for key, factor in found.items():
        if row in key:
            strides[tuple(each for each in key if each != row)] = factor
        elif inner not in key:
            rest[key] = factor
    if not strides or any(name in formula.dims or name.startswith("@") for key in strides for name in key):
        return refused
    eights = [each for each in (strides, *steps(rest, formula.sizes)) if any(f % 8 for f in each.values())]
    nothing: dict[str, Expr] = {row: Num(0), inner: Num(0)}
    index = tuple(Num(0) if each in (Name(row), Name(inner)) else with_names(each, nothing) for each in load.index)
    return Rows(tensor, index, expression(strides), tuple(expression(each) for each in eights))


@dataclass
class Attention:
    """A chain being written."""

    formula: Formula
    chain: Chain
    type: str
    rows: list[Rows]
    """Of queries, keys, values, then of each result that has the values' dimension."""
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        formula = self.formula
        self.taken = {
            *formula.dims,
            *formula.sizes,
            *formula.scalars,
            *(each.array for each in formula.tensors.values()),
        }
        self.taken |= {"kHead"}

    def own(self, name: str) -> str:
        return own_name(name, self.taken)

    def scope(self, index_type: str) -> Scope:
        scope = Scope(self.formula)
        scope.index_type = index_type
        local = {LARGEST: "largest", TOTAL: "total", SUM: "sum", OWN: "largest_weight", PRODUCT: "score"}
        for name, text in local.items():
            scope.locals[name] = (self.own(text), F32)
        named = scope.type_named

        def type_named(name: str) -> ElementType:
            return TYPES["i32"] if index_type == "int" and name in (self.chain.row, self.chain.key) else named(name)

        scope.expressions.type_named = type_named
        return scope

    def place(self, scope: Scope, number: int) -> str:
        """Where the rows of an array begin."""
        rows = self.rows[number]
        tensor, total = rows.tensor, Num(0) if rows.tensor.offset == 0 else Num(rows.tensor.offset)
        terms: Expr = Num(0)
        for at, each in enumerate(rows.index):
            if not self.is_packed(tensor):
                assert tensor.strides is not None
                term = Num(0) if each == Num(0) else product([each, tensor.strides[at]])
                terms = term if terms == Num(0) else terms if term == Num(0) else Call("+", (terms, term))
                continue
            terms = terms if terms == Num(0) else product([terms, tensor.extents[at]])
            terms = each if terms == Num(0) else terms if each == Num(0) else Call("+", (terms, each))
        scope.used[tensor.array] = None
        whole = total if terms == Num(0) else terms if total == Num(0) else Call("+", (terms, total))
        return tensor.array if whole == Num(0) else f"{tensor.array} + {scope.expressions.of(whole)}"

    def is_packed(self, tensor: Tensor) -> bool:
        """Whether its elements lie in the order of its indices."""
        if tensor.strides is None:
            return True
        packed = [product(tensor.extents[at + 1 :]) for at in range(len(tensor.extents))]
        return all(polynomial(a) == polynomial(b) for a, b in zip(packed, tensor.strides, strict=True))

    def said(self) -> str:
        """What is computed, as a comment."""
        chain = self.chain
        inner = "d" if chain.width_name in (*chain.rows, chain.key) else chain.width_name
        sums: Expr = Reduce("sum", (Range(inner),), Call("*", (chain.queries, chain.keys)))

        def change(each: Expr) -> Expr:
            match each:
                case Load(tensor=name) if name == PRODUCT:
                    return sums
                case Name(name=name) if name in (WIDTH, DEPTH):
                    return Name(inner)
            return each

        score = rebuilt(rebuilt(chain.score, change), change)
        results = ", ".join(
            f"{each.name}[{', '.join(inner if d == WIDTH else d for d in each.dims)}]" for each in chain.results
        )
        values = shown(rebuilt(chain.values, change))
        ends = [f"{shown(at_row(each, chain.row))} <= {chain.key}" for each in chain.edges.since]
        ends += [f"{chain.key} < {shown(at_row(each, chain.row))}" for each in chain.edges.until]
        where = f"\n    where {' and '.join(ends)}" if ends else ""
        return f"{results}: the softmax over {chain.key} of\n    {shown(score)}{where},\ntimes {values}."

    def is_narrow(self) -> bool:
        """Whether numbers of rows and keys, as values, stay within 32 bits: they are not multiplied."""
        own = (self.chain.row, self.chain.key)

        def is_safe(node: Expr) -> bool:
            match node:
                case Load():
                    return True
                case Call(name="+" | "-" | "neg" | "abs" | "<" | "<=" | ">" | ">=" | "==" | "!=", args=args):
                    return all(map(is_safe, args))
                case Call(args=args):
                    kinds = [self._plain.expressions.type_of(each).kind for each in args]
                    moving = [set(own) & names_in(each) for each in args]
                    whole = self._plain.expressions.type_of(node).kind == "integer"
                    alone = [not (m and k == "integer" and whole) for m, k in zip(moving, kinds, strict=True)]
                    return all(alone) and node.name not in ("uniform", "normal") and all(map(is_safe, args))
            return True

        return all(is_safe(each) for each in (self.chain.score, *(each.value for each in self.chain.results)))

    @property
    def _plain(self) -> Scope:
        return self.scope("long long")

    def labels(self) -> tuple[str, str, str]:
        """What queries, keys and values are called in a kernel."""
        names = [rows.tensor.array for rows in self.rows[:3]]
        if len(set(names)) < 3 or any(each.startswith(f"{name}_") for each in self.taken for name in names):
            names = [self.own(each) for each in ("queries", "keys", "values")]
        return names[0], names[1], names[2]

    @property
    def has_wide_ends(self) -> bool:
        """Whether the ends are reckoned in 64 bits: they are sums of more than the row and a literal."""
        edges = (*self.chain.edges.since, *self.chain.edges.until)
        return not all(isinstance(each.rest, Num) and each.slope in (0, 1) for each in edges)

    def ends(self, scope: Scope, *, in_tile: bool) -> tuple[str, str]:
        """The first key that a row sees and that behind the last one, "" where these are all keys'; of type int in a
        tile, else of 64 bits."""
        is_wide = self.has_wide_ends or not in_tile
        keys = scope.expressions.of(self.formula.dims[self.chain.key])
        keys = f"static_cast<long long>({keys})" if is_wide and in_tile else keys

        def ended(edges: Sequence[Edge], text: str, name: str) -> str:
            for each in edges:
                value = scope.expressions.of(at_row(each, self.chain.row))
                text = f"{name}({text}, {value if each.slope or not is_wide else f'static_cast<long long>({value})'})"
            return text if edges else ""

        since = ended(self.chain.edges.since, "0LL" if is_wide else "0", "max")
        until = ended(self.chain.edges.until, keys, "min")
        if is_wide and in_tile:
            return since and f"static_cast<int>(min({keys}, {since}))", until and f"static_cast<int>(max(0LL, {until}))"
        return since, until

    def batch_lines(self, scope: Scope, number: str) -> list[str]:
        """The dimensions besides the row, of the number that counts them."""
        batch = self.chain.rows[:-1]
        values = [coordinate(scope.expressions, batch, self.formula.dims, number, each) for each in batch]
        return [f"const long long {name} = {value};" for name, value in zip(batch, values, strict=True)]


def at_row(edge: Edge, row: str) -> Expr:
    if edge.slope == 0:
        return edge.rest
    own = product([Num(edge.slope), Name(row)])
    match edge.rest:
        case Num(value=0):
            return own
        case Num(value=value) if value < 0:
            return Call("-", (own, Num(-value)))
        case Call(name="neg", args=(inner,)):
            return Call("-", (own, inner))
    return Call("+", (own, edge.rest))
