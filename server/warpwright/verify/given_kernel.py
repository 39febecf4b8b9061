"""A kernel that a user wrote as code with a launch function: what its problem says of its arguments and its launch, for
each type that its template takes.

Example: of `scale<float><<<(n + 255) / 256, 256>>>(x, y, n)` the code `scale_f32` has the arrays x and y and the size
n, which is x's length.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.facts.model import Kernel as FactsKernel
from warpwright.facts.model import Parameter
from warpwright.formulas.extents import at_sizes, names_in
from warpwright.formulas.model import Formula, Role, Tensor
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Call, Expr, Name, Num, product
from warpwright.formulas.types import TYPES
from warpwright.formulas.variants import in_type
from warpwright.problems import expressions
from warpwright.problems.deduced import template_parameters
from warpwright.problems.expressions import Expression, ExpressionError, evaluate, parse
from warpwright.problems.model import Array, Problem, Scalar
from warpwright.problems.types import ElementType, element_type
from warpwright.syntax.nodes import ancestors
from warpwright.writer.code import Code, Kernel, Launch, Path, Step
from warpwright.writer.forms import operator_word
from warpwright.writer.types import NAMES

KINDS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "bool": "bool", "int8": "i8", "int16":
    "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
"""Formulas' names of the types that a problem has."""
FLOATS = ("f32", "f64", "f16", "bf16")
"""What the template parameter of an element may be."""
MOST_MATCHES = 6
"""Ways to match a kernel's sizes with those of its formula that are tried."""
_QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|restrict)\b|[*&]")


class NotWiredError(Exception):
    """A kernel that no operator can be made of: one sentence."""


@dataclass(frozen=True, slots=True)
class Given:
    """A kernel with its problem. `open_types` are the template parameters that stand for the type of elements."""

    kernel: FactsKernel
    problem: Problem
    own: str
    open_types: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        return () if self.kernel.node is None else tuple(template_parameters(self.kernel.source, self.kernel.node))

    def instance(self, kind: str) -> tuple[str, ...]:
        """The arguments of the template for elements of a type."""
        bound = zip(self.parameters, self.problem.instance, strict=False)
        return tuple(NAMES[kind] if name in self.open_types else value for name, value in bound)

    def is_open(self, name: str) -> bool:
        """Whether the elements of an argument are of the template's type."""
        own = next((each for each in self.kernel.parameters if operator_word(each.name) == name), None)
        return own is not None and _declared(own) in self.open_types

    def element(self, array: Array, kind: str) -> ElementType:
        """The elements of an array, for a type of the template."""
        return _element(NAMES[kind] if self.is_open(array.name) else array.type)

    def held(self, array: Array, kind: str) -> tuple[ElementType, str]:
        """What the kernel's parameter points to, and its name: float4 also where a problem counts floats."""
        own = next((each for each in self.kernel.parameters if operator_word(each.name) == array.name), None)
        if own is None or self.is_open(array.name):
            return self.element(array, kind), _bare(array.type)
        return _element(_declared(own)), _bare(_declared(own))

    def number(self, scalar: Scalar, kind: str) -> str:
        """The type of a number, for a type of the template."""
        if scalar.type not in KINDS:
            raise NotWiredError(f"An operator of PyTorch takes no number of type {scalar.type}.")
        return kind if self.is_open(scalar.name) else KINDS[scalar.type]


def given(kernel: FactsKernel, problem: Problem) -> Given:
    """The kernel, if an operator can launch it. Raises NotWiredError."""
    for each in problem.arguments:
        if not isinstance(each, Array | Scalar):
            what = "points into another array" if hasattr(each, "array") else "is a struct"
            raise NotWiredError(f"{kernel.name} takes {each.name}, which {what}: an operator hands over tensors.")
    if problem.globals:
        raise NotWiredError(f"{kernel.name} reads {problem.globals[0].name}, which host code is to fill before it.")
    if not any(each.role != "out" for each in problem.arrays):
        raise NotWiredError(f"{kernel.name} reads no array, so nothing says on which GPU it runs.")
    arguments = tuple(replace(each, name=operator_word(each.name)) for each in problem.arguments)
    problem = replace(problem, arguments=arguments)
    parameters = () if kernel.node is None else template_parameters(kernel.source, kernel.node)
    bound = dict(zip(parameters, problem.instance, strict=False))
    pointed = {_declared(each) for each in kernel.parameters if each.is_pointer}
    open_types = tuple(n for n, value in bound.items() if n in pointed and _kind(value) in FLOATS)
    owns = [kind for n in open_types if (kind := _kind(bound[n]))] or [_array_kind(a) for a in problem.arrays]
    return Given(kernel, problem, next((each for each in owns if each in FLOATS), "f32"), open_types)


def flat_codes(given: Given, name: str, types: Sequence[str]) -> list[Code]:
    """The kernel in each type, where no formula is known: arrays are known by their lengths."""
    match = {each: operator_word(each) for each in given.problem.symbols}
    return [_code(given, f"{name}_{kind}", _flat(given, kind, match), kind, match) for kind in types]


def formula_codes(given: Given, name: str, types: Sequence[str], text: str) -> Iterator[list[Code]]:
    """The kernel in each type as what computes a formula: one list for each way to match its sizes with the formula's,
    the likeliest first. Raises FormulaError and NotWiredError."""
    formulas = {kind: formula_in(given, text, kind) for kind in types}
    first = formulas[types[0]]
    missing = [each.name for each in given.problem.arrays if each.name not in first.tensors]
    more = [each for each in first.tensors if each not in {a.name for a in given.problem.arrays}]
    if missing or more:
        which = f"no array {missing[0]}" if missing else f"an array {more[0]} that the kernel has not"
        raise NotWiredError(f"The formula has {which}: give arrays the names of {given.kernel.name}'s parameters.")
    for number in first.scalars:
        if number not in {each.name for each in given.problem.scalars}:
            raise NotWiredError(f"The formula has a number {number} that {given.kernel.name} is not handed.")
    for match in itertools.islice(_matches(given.problem, first), MOST_MATCHES):
        yield [_code(given, f"{name}_{kind}", formula, kind, match) for kind, formula in formulas.items()]


def formula_in(given: Given, text: str, kind: str) -> Formula:
    """The formula for elements of a type: arrays, and numbers that the kernel takes in it. Raises FormulaError."""
    formula = formula_of(in_type(text, kind))
    rounded = [f"{name}: {kind}\n" for name in formula.scalars if given.is_open(name) and f"{name}: {kind}" not in text]
    return formula_of("".join(rounded) + formula.text)


def _flat(given: Given, kind: str, match: Mapping[str, str]) -> Formula:
    """What is known of the kernel's arrays, in the form of a formula that says nothing of what is computed."""
    problem = given.problem
    tensors: dict[str, Tensor] = {}
    for each in problem.arrays:
        element = given.element(each, kind)
        length = product([Num(element.components), _expr(parse(each.extent), problem, match)])
        role: Role = "in" if each.role == "in" else "out" if each.role == "out" else "in-out"
        tensors[each.name] = Tensor(each.name, KINDS[element.scalar], (length,), role)
    scalars = {
        each.name: given.number(each, kind) for each in problem.scalars if TYPES[given.number(each, kind)].is_float
    }
    sizes = tuple(match[name] for name in problem.symbols if name not in scalars)
    return Formula("", tensors, scalars, {}, sizes, ())


def _code(given: Given, name: str, formula: Formula, kind: str, match: Mapping[str, str]) -> Code:
    problem = given.problem
    passed: dict[str, tuple[Expr, str]] = {}
    casts: dict[str, str] = {}
    aligned: dict[str, int] = {}
    zeroed: set[str] = set()
    for each in problem.arrays:
        element = given.element(each, kind)
        own = formula.tensors[each.name]
        if KINDS[element.scalar] != own.type:
            raise NotWiredError(f"{each.name} is of {own.type} in the formula and of {element.scalar} in the kernel.")
        if own.role == "out" and each.role == "in-out":
            zeroed.add(each.name)  # what it adds up it is to find at 0; whether it does is tried
        elif own.role != each.role:
            said = {"in": "read", "out": "written", "in-out": "read and written"}
            raise NotWiredError(
                f"{each.name} is {said[own.role]} in the formula and {said[each.role]} by {given.kernel.name}."
            )
        held, held_name = given.held(each, kind)
        if held.components > 1:
            casts[each.name] = f"{'const ' if own.role == 'in' else ''}{held_name}*"
            aligned[each.name] = held.bytes
    for number in problem.scalars:
        own_kind = given.number(number, kind)
        if number.name in formula.scalars:
            passed[number.name] = (Name(number.name), own_kind)
            continue
        if number.origin == "inferred" and TYPES[own_kind].is_float:
            raise NotWiredError(f"The formula has no number {number.name}, and no launch says what it is.")
        passed[number.name] = (_expr(parse(number.value), problem, match), own_kind)
    x, y, z = (_expr(parse(each), problem, match) for each in problem.grid)
    name_in_cpp = _qualified(given.kernel)
    launch = Launch(
        name_in_cpp, (x, y, z), _block(given), shared_bytes=_shared(given, kind, match),
        template=given.instance(kind),
    )  # fmt: skip
    kernel = Kernel(name_in_cpp, "", tuple(e.name for e in problem.arguments), passed=passed, casts=casts)
    count = product([x, y, z])
    scalars = {n: passed[n][1] if n in passed else own for n, own in formula.scalars.items()}
    formula = replace(formula, scalars=scalars)
    return Code(name, formula, (kernel,), (Step((Path((launch,), aligned=aligned),), count),), zeroed=frozenset(zeroed))


def _block(given: Given) -> tuple[int, int, int]:
    try:
        x, y, z = (int(evaluate(each, {})) for each in given.problem.block)
    except ExpressionError:
        raise NotWiredError(
            f"The block of {given.kernel.name}'s launch depends on sizes; say one above the kernel, as in "
            "`// warpwright: launch block(256)`."
        ) from None
    return x, y, z


def _shared(given: Given, kind: str, match: Mapping[str, str]) -> Expr | int:
    """The dynamic shared memory, as much more as elements of the type are larger than the launch's own."""
    bytes_ = _expr(parse(given.problem.dynamic_shared_bytes), given.problem, match)
    times = max(1, TYPES[kind].bits // TYPES[given.own].bits) if given.open_types else 1
    whole = product([Num(times), bytes_])
    return at_sizes(whole, {}) if not names_in([whole]) else whole


def _matches(problem: Problem, formula: Formula) -> Iterator[dict[str, str]]:
    """Which of the formula's sizes each symbol of the problem may be: those under which arrays are as long as the
    formula says before others, then those with like names."""
    symbols = [each for each in problem.symbols if each not in formula.scalars]
    if len(symbols) > len(formula.sizes):
        raise NotWiredError(f"The formula has fewer sizes than the kernel, which has {', '.join(symbols)}.")
    found: list[tuple[tuple[int, int], dict[str, str]]] = []
    numbers = random.Random(0)
    values = {each: numbers.randrange(1000, 9000) for each in formula.sizes}
    for chosen in itertools.permutations(formula.sizes, len(symbols)):
        match = dict(zip(symbols, chosen, strict=True))
        own = {symbol: values[size] for symbol, size in match.items()}
        apart = 0
        for each in problem.arrays:
            try:
                length = problem_length(problem, each, own)
            except ExpressionError:
                continue
            apart += length != at_sizes(product([*formula.tensors[each.name].extents]), values)
        alike = sum(size.lower() == symbol.lower() for symbol, size in match.items())
        begins = sum(size[:1].lower() == symbol[:1].lower() for symbol, size in match.items())
        found.append(((apart, -2 * alike - begins), match))
    yield from (match for _, match in sorted(found, key=lambda each: each[0]))


def problem_length(problem: Problem, array: Array, values: Mapping[str, int]) -> int:
    """The elements of an array at some sizes, as the problem has them. Raises ExpressionError."""
    axes = {f"gridDim.{a}": evaluate(t, dict(values)) for a, t in zip("xyz", problem.grid, strict=True)}
    axes |= {f"blockDim.{a}": evaluate(t, dict(values)) for a, t in zip("xyz", problem.block, strict=True)}
    return int(evaluate(array.extent, {**values, **axes}))


_SIGNS = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%"}


def _expr(node: Expression, problem: Problem, match: Mapping[str, str]) -> Expr:
    """An expression of a problem over the sizes of a formula. Sizes are never below 0, so `/` rounds down."""
    match node:
        case expressions.Number(value) if value == int(value) and isinstance(value, int):
            return Num(value)
        case expressions.Number(value):
            return Num(float(value))
        case expressions.Name(name) if name.startswith(("gridDim.", "blockDim.")):
            dims = problem.grid if name.startswith("grid") else problem.block
            return _expr(parse(dims["xyz".index(name[-1])]), problem, match)
        case expressions.Name(name):
            return Name(match.get(name, name))
        case expressions.Unary("-", operand):
            return Call("neg", (_expr(operand, problem, match),))
        case expressions.Binary(sign, left, right) if sign in _SIGNS:
            return Call(_SIGNS[sign], (_expr(left, problem, match), _expr(right, problem, match)))
        case expressions.Call("min" | "max" as name, (left, right)):
            return Call(name, (_expr(left, problem, match), _expr(right, problem, match)))
        case expressions.Call("ceil", (expressions.Binary("/", left, expressions.Number(each)),)) if each == int(each):
            over = Call("+", (_expr(left, problem, match), Num(int(each) - 1)))
            return Call("//", (over, Num(int(each))))
    raise NotWiredError(f"`{expressions.show(node)}` in the launch is not a sum or product of sizes.")


def _qualified(kernel: FactsKernel) -> str:
    """The kernel's name behind its namespaces."""
    around = ancestors(kernel.node) if kernel.node is not None else ()
    spaces = [each.child_by_field_name("name") for each in around if each.type == "namespace_definition"]
    names = [kernel.source.node_code(each) for each in reversed(spaces) if each is not None]
    return "::".join([*names, kernel.name])


def _element(text: str) -> ElementType:
    found = element_type(text)
    if found is None or found.scalar not in KINDS:
        raise NotWiredError(f"A tensor of PyTorch has no elements of {_bare(text)}.")
    return found


def _kind(text: str) -> str:
    """Formulas' name of a type in C++; "" of one that has none."""
    found = element_type(text)
    return KINDS.get(found.scalar, "") if found is not None and found.components == 1 else ""


def _array_kind(array: Array) -> str:
    found = element_type(array.type)
    return KINDS.get(found.scalar, "") if found is not None else ""


def _declared(parameter: Parameter) -> str:
    """The type of a parameter, or of what it points to."""
    return _bare(parameter.type.removesuffix(parameter.name))


def _bare(declared: str) -> str:
    """The type behind its qualifiers.

    >>> _bare("const T *__restrict__"), _bare("unsigned int*")
    ('T', 'unsigned int')
    """
    return " ".join(_QUALIFIERS.sub(" ", declared).split())
