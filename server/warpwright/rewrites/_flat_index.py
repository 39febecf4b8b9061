"""A flat index that a kernel takes apart by divisions: into column, row and what is left.

Example: `i % width`, `i / width % height`, `i / (width * height)`, through variables that keep a quotient or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from tree_sitter import Node

from warpwright.algebra.sums import as_number, symbols
from warpwright.algebra.trials import Values
from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._code import NoMatchError
from warpwright.rewrites._formulas import Formula, same
from warpwright.rewrites._grids import arguments_of
from warpwright.rewrites._indices import Indices, Polynomial, combined
from warpwright.syntax.nodes import uncommented


@dataclass(frozen=True, slots=True)
class Part:
    """`i / divisor % modulus`, the largest expression that is that; `modulus` is None for the quotient alone."""

    node: Node
    divisor: Polynomial
    modulus: Polynomial | None


def parts_of(indices: Indices, index: str, node: Node) -> Iterator[Part]:
    found = _part(indices, index, node) if node.type in ("binary_expression", "parenthesized_expression") else None
    if found is not None and (found.modulus is not None or found.divisor != {(): 1}):
        yield found
        return
    for child in node.named_children:
        yield from parts_of(indices, index, child)


def _part(indices: Indices, index: str, node: Node, depth: int = 8) -> Part | None:
    """What an expression is of the flat index, through variables that keep a quotient; None where it is nothing of the
    kind."""
    source = indices.kernel.source
    if node.type == "parenthesized_expression" and len(uncommented(node)) == 1:
        inner = _part(indices, index, uncommented(node)[0], depth)
        return Part(node, inner.divisor, inner.modulus) if inner is not None else None
    if node.type == "identifier":
        name = source.node_text(node)
        value = indices.variables.values.get(name)
        if name == index:
            return Part(node, {(): 1}, None)
        inner = _part(indices, index, value, depth - 1) if value is not None and depth else None
        return Part(node, inner.divisor, inner.modulus) if inner is not None else None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if node.type != "binary_expression" or left is None or right is None or operator is None:
        return None
    taken, by = _part(indices, index, left, depth), indices.read(right)
    if taken is None or taken.modulus is not None or not by or operator.type not in ("/", "%"):
        return None
    if operator.type == "%":
        return Part(node, taken.divisor, by)
    product = combined("*", taken.divisor, by)
    return Part(node, product, None) if product is not None else None


def axes_of(index: str, parts: list[Part]) -> tuple[Polynomial, Polynomial | None]:
    """The length of a row, and the rows of a plane where the index is taken apart into more than row and column."""
    rows = [part.modulus for part in parts if part.modulus is not None and part.divisor == {(): 1}]
    row = rows[0] if rows else None
    planes = [part.modulus for part in parts if part.modulus is not None and part.divisor == row]
    if row is None or (not planes and not any(part.divisor == row for part in parts)):
        raise NoMatchError(f"Nothing to gain: no row and column are taken from `{index}` by divisions.")
    plane = planes[0] if planes else None
    if as_number(row) is not None and (plane is None or as_number(plane) is not None):
        raise NoMatchError(
            f"Nothing to gain: `{index}` is divided by constants, which the compiler turns into multiplications."
        )
    return row, plane


def require_handed(indices: Indices, value: Polynomial) -> None:
    """A divisor is made of what the launch hands over, or of constants of the file."""
    variables = indices.variables
    for name in symbols(value):
        outside = name not in variables.types and (name in indices.macros or name in indices.constants)
        if not outside and not (name in variables.parameters and variables.is_fixed(name)):
            raise NoMatchError(f"What the index is divided by depends on `{name}`, which a launch does not hand over.")


def planes_of(kernel: Kernel, indices: Indices, bound: Node, launches: list[Launch], whole: Polynomial) -> Polynomial:
    """How many planes there are: what is left of the bound, or parameters whose product with a plane it is at every
    launch."""
    total = indices.read(bound)
    found = quotient(total, whole)
    if found is not None:
        require_handed(indices, found)
        return found
    variables = indices.variables
    numbers = [p.name for p in kernel.parameters if not p.is_pointer and variables.is_fixed(p.name)]
    pairs: list[tuple[str, ...]] = [(), *((n,) for n in numbers), *combinations(numbers, 2)]
    for names_of in pairs:
        candidate: Polynomial = {tuple(sorted(names_of)): 1}
        product = combined("*", whole, candidate)
        if product is not None and total is not None and all(
            _agree(arguments_of(kernel, launch), total, product) for launch in launches
        ):  # fmt: skip
            return candidate
    text = kernel.source.node_text(bound)
    raise NoMatchError(f"How many rows and planes make {text} is not seen from the text.")


def _agree(given: Mapping[str, Formula], one: Polynomial, other: Polynomial) -> bool:
    """Whether two sums are the same number for what a launch hands over."""
    formulas = [formula_of(given, value) for value in (one, other)]
    return formulas[0] is not None and formulas[1] is not None and same(formulas[0], formulas[1])


def formula_of(given: Mapping[str, Formula], value: Polynomial) -> Formula | None:
    parts = [(number, [given.get(name) for name in product]) for product, number in value.items()]
    if any(factor is None for _, factors in parts for factor in factors):
        return None
    known = [(number, [factor for factor in factors if factor is not None]) for number, factors in parts]

    def evaluate(values: Values) -> int | float | None:
        total: int | float = 0
        for number, factors in known:
            product: int | float = number
            for factor in factors:
                one = factor.value(values)
                if one is None:
                    return None
                product *= one
            total += product
        return total

    return Formula(frozenset().union(*(f.symbols for _, factors in known for f in factors)), evaluate)


def quotient(value: Polynomial | None, by: Polynomial) -> Polynomial | None:
    """The product that makes one product of another; None where there is none."""
    if value is None or len(value) != 1 or len(by) != 1:
        return None
    (names_of, number), (less, divisor) = next(iter(value.items())), next(iter(by.items()))
    rest = list(names_of)
    for name in less:
        if name not in rest:
            return None
        rest.remove(name)
    return {tuple(rest): number // divisor} if number % divisor == 0 else None


def as_text(value: Polynomial, new: Mapping[str, str] | None = None) -> str:
    """A sum of products as text, its names under others."""
    products = []
    for product, number in sorted(value.items(), key=lambda item: (-len(item[0]), item[0])):
        factors = [(new or {}).get(name, name) for name in product]
        factors = [str(number), *factors] if number != 1 or not factors else factors
        products.append(" * ".join(factors))
    return " + ".join(products) or "0"
