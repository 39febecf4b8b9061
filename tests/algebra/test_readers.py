"""Whoever reads an integer expression, as text, as a syntax tree or as a formula, computes what C does: beside an
evaluation of the same expression that knows none of them. Saying nothing is allowed, another number is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod, trunc

from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.findings import program
from tree_sitter import Node
from warpwright.algebra.integers import integer_operation
from warpwright.algebra.sums import as_number, plus, product_of, scaled
from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Kernel
from warpwright.problems.expressions import ExpressionError, evaluate, parse
from warpwright.problems.ranges import normal
from warpwright.rewrites._formulas import formula
from warpwright.rewrites._indices import indices_of
from warpwright.rewrites._thread_indices import Indices
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

PRECEDENCE = {
    "|": 1, "^": 2, "&": 3, "==": 4, "!=": 4, "<": 5, "<=": 5, ">": 5, ">=": 5, "<<": 6, ">>": 6, "+": 7, "-": 7,
    "*": 8, "/": 8, "%": 8,
}  # fmt: skip
SIZES = ("n", "m", "threadIdx.x")
VALUES = [dict(zip(SIZES, each, strict=True)) for each in product((1, 2, 7, 33), (1, 3, 64), (0, 5, 31))]


class UndefinedError(Exception):
    """A division by zero, a shift that is none, or a number that does not fit in an int."""


@dataclass(frozen=True)
class Tree:
    """A number or a name, or an operator with its sides."""

    word: str
    sides: tuple[Tree, ...] = ()

    def text(self, rank: int = 0) -> str:
        """As C is written, with no parentheses but those that it needs."""
        if not self.sides:
            return self.word
        if len(self.sides) == 1:
            return f"{self.word}({self.sides[0].text()})"
        own = PRECEDENCE[self.word]
        inner = f"{self.sides[0].text(own)} {self.word} {self.sides[1].text(own + 1)}"
        return f"({inner})" if own < rank else inner

    def value(self, values: Mapping[str, int]) -> int:
        """What C computes. Raises UndefinedError where it does not say what."""
        if not self.sides:
            return values[self.word] if self.word in values else int(self.word)
        numbers = [side.value(values) for side in self.sides]
        result = -numbers[0] if len(numbers) == 1 else _computed(self.word, *numbers)
        if not -(2**31) <= result < 2**31:
            raise UndefinedError
        return result

    def is_natural(self, values: Mapping[str, int]) -> bool:
        """Whether no part of it is negative: quotients of sizes are."""
        return self.value(values) >= 0 and all(side.is_natural(values) for side in self.sides)


def _computed(word: str, a: int, b: int) -> int:
    if word in ("/", "%"):
        if b == 0:
            raise UndefinedError
        quotient = trunc(Fraction(a, b))
        return quotient if word == "/" else a - b * quotient
    if word in ("<<", ">>"):
        if not 0 <= b < 32 or a < 0:
            raise UndefinedError
        return a * 2**b if word == "<<" else a // 2**b
    result: int = eval(f"a {word} b", {"a": a, "b": b})
    return int(result)


def trees(names: tuple[str, ...], operators: tuple[str, ...] = tuple(PRECEDENCE)) -> st.SearchStrategy[Tree]:
    leaves = st.sampled_from([*names, "0", "1", "2", "3", "7", "32", "255", "1000"]).map(Tree)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda op, a, b: Tree(op, (a, b)), st.sampled_from(operators), inner, inner),
            st.builds(lambda a: Tree("-", (a,)), inner),
        ),
        max_leaves=8,
    )


def agrees(found: int | float | None, tree: Tree, values: Mapping[str, int]) -> None:
    try:
        true = tree.value(values)
    except UndefinedError:
        return
    assert found is None or found == true, (tree.text(), values, found, true)


def kernel_with(text: str) -> tuple[Kernel, Node]:
    """A kernel that uses an expression as an index, and the expression."""
    kernel = program(f"__global__ void k(float* x, int n, int m) {{ x[{text}] = 1.0f; }}\n").kernels[0]
    subscript = next(descendants(kernel.source.root, "subscript_argument_list"))
    return kernel, subscript.named_children[0]


@given(st.sampled_from(list(PRECEDENCE)), st.integers(-50, 50), st.integers(-50, 50))
def test_an_operation(op: str, a: int, b: int) -> None:
    agrees(integer_operation(op, a, b), Tree(op, (Tree(str(a)), Tree(str(b)))), {})


@examples(200)
@given(trees(()))
def test_a_number_of_the_text(tree: Tree) -> None:
    source = Source("a.cu", b"int x;\n")
    agrees(number_at(source, source.root, tree.text()), tree, {})


@examples(200)
@given(trees(("n", "m")))
def test_a_symbolic_expression(tree: Tree) -> None:
    for values in VALUES:
        try:
            found = evaluate(tree.text(), values)
        except ExpressionError:
            continue
        agrees(found, tree, values)


@examples(200)
@given(trees(("n", "m"), ("+", "-", "*", "/", "%", "<<")))
def test_its_normal_form(tree: Tree) -> None:
    try:
        written = normal(parse(tree.text()))
    except ExpressionError:
        return
    for values in VALUES:
        try:
            found = evaluate(written, values) if tree.is_natural(values) else None
        except (ExpressionError, UndefinedError):
            continue
        agrees(found, tree, values)


@examples(100)
@given(trees(SIZES))
def test_an_index_as_a_sum_and_of_one_thread(tree: Tree) -> None:
    kernel, node = kernel_with(tree.text())
    found = indices_of(kernel, None).read(node)
    block = kernel.node.child_by_field_name("body") if kernel.node is not None else None
    assert block is not None
    for values in VALUES:
        if found is not None:
            agrees(_evaluated(found, values), tree, values)
        of_one = Indices(block, kernel.source).value(node, (values["threadIdx.x"], 0, 0), (32, 1, 1))
        if of_one is not None:
            agrees(of_one, tree, values)


@examples(100)
@given(trees(("n", "m")))
def test_a_formula_of_the_host(tree: Tree) -> None:
    source = Source("a.cu", f"int f(int n, int m) {{ return {tree.text()}; }}\n".encode())
    returned = next(descendants(source.root, "return_statement"))
    found = formula(source, returned.named_children[0])
    for values in VALUES if found is not None else ():
        agrees(found.value(values) if found is not None else None, tree, values)


@examples(50)
@given(trees(("n",)), st.sampled_from([1, 7, 1000]))
def test_a_grid(tree: Tree, n: int) -> None:
    text = f"__global__ void k() {{}}\nvoid run() {{ int n = {n}; k<<<{tree.text()}, 32>>>(); }}\n"
    launch = program(text).kernels[0].launches[0]
    if launch.grid is not None:
        agrees(launch.grid[0], tree, {"n": n})


SUMS = st.dictionaries(st.sampled_from([(), ("n",), ("m",), ("m", "n"), ("n", "n")]), st.integers(-9, 9).filter(bool))


@given(SUMS, SUMS, st.integers(-5, 5))
def test_sums_of_products(one: dict[tuple[str, ...], int], other: dict[tuple[str, ...], int], by: int) -> None:
    for values in VALUES:
        a, b = _evaluated(one, values), _evaluated(other, values)
        assert _evaluated(plus(one, other, by), values) == a + by * b
        assert _evaluated(product_of(one, other), values) == a * b
        assert _evaluated(scaled(one, by), values) == a * by
    for made in (plus(one, other, by), product_of(one, other), scaled(one, by)):
        assert all(made.values()), "no coefficient is 0"
    assert as_number(plus(one, one, -1)) == 0


def _evaluated(value: Mapping[tuple[str, ...], int], values: Mapping[str, int]) -> int:
    return sum(count * prod(values[factor] for factor in factors) for factors, count in value.items())
