"""From a graph to a plan: parts that are run in order, each a formula or a call that stays torch's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpwright.formulas.aten import pointwise, products, reductions, views, windows  # noqa: F401 - they enter operators
from warpwright.formulas.aten.graph import Graph, Node, Ref, Shape, Type
from warpwright.formulas.aten.indices import ONE
from warpwright.formulas.aten.operators import OPERATORS
from warpwright.formulas.aten.parts import parted
from warpwright.formulas.aten.regroup import regrouped
from warpwright.formulas.aten.texts import Array, text_of
from warpwright.formulas.aten.values import Builder, NoFormulaError, Value, number, weight
from warpwright.formulas.functions import FUNCTIONS, KEYWORDS, REDUCTIONS
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Expr, Load, Name, walk
from warpwright.formulas.types import type_named

MOST_WEIGHT = 40
"""Functions and operators of an expression that is still computed where it is read."""
CHEAP = 1
"""Functions and operators that are computed again for each reader."""


@dataclass(frozen=True, slots=True)
class FormulaPart:
    """`reads` and `writes` say which array of the plan each array of the formula is, and with which extents."""

    name: str
    text: str
    reads: tuple[Array, ...]
    writes: tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class CallPart:
    """A call that stays torch's: `args` and `kwargs` are as in the graph, with the names of the plan's arrays. `said`
    is one sentence that says why."""

    name: str
    operator: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    writes: tuple[str, ...]
    said: str


@dataclass(frozen=True, slots=True)
class Handed:
    """An array as an argument of a call: read with some extents, its dimensions then brought into an order, and given
    the extents `shape`."""

    array: str
    extents: tuple[Expr, ...]
    order: tuple[int, ...]
    shape: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """An array that is handed over. `kind` and `target` as in the graph."""

    name: str
    kind: str
    target: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Result:
    """What comes back: the array of the plan with these extents, or a new value of a buffer."""

    kind: str
    target: str
    array: str
    extents: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    parts: tuple[FormulaPart | CallPart, ...]
    inputs: tuple[Given, ...]
    results: tuple[Result, ...]

    @property
    def formulas(self) -> tuple[FormulaPart, ...]:
        return tuple(each for each in self.parts if isinstance(each, FormulaPart))

    @property
    def calls(self) -> tuple[CallPart, ...]:
        return tuple(each for each in self.parts if isinstance(each, CallPart))


def document(made: Plan) -> dict[str, Any]:
    """The plan as JSON: extents are expressions, an argument that is an array has its name, the
    extents under which it is read, the order in which its dimensions are then brought, and its extents at last."""

    def written(extents: Sequence[Expr]) -> list[str]:
        return [shown(each) for each in extents]

    def argument(each: Any) -> Any:
        match each:
            case Handed():
                shape = {"value": each.array, "extents": written(each.extents), "shape": written(each.shape)}
                return shape | {"order": list(each.order)}
            case list() | tuple():
                return [argument(one) for one in each]
            case complex(real=real, imag=imaginary):
                return {"complex": [real, imaginary]}
            case bool() | int() | float() | str() | None:
                return each
        return {"size": shown(each)}

    def array(each: Array) -> dict[str, Any]:
        return {"name": each.name, "array": each.array, "extents": written(each.extents), "type": each.type}

    def part(each: FormulaPart | CallPart) -> dict[str, Any]:
        if isinstance(each, FormulaPart):
            reads, writes = ([array(one) for one in of] for of in (each.reads, each.writes))
            return {"name": each.name, "formula": each.text, "reads": reads, "writes": writes}
        kwargs = {key: argument(value) for key, value in each.kwargs.items()}
        called = {"operator": each.operator, "args": argument(each.args), "kwargs": kwargs}
        return {"name": each.name, **called, "writes": list(each.writes), "said": each.said}

    return {
        "parts": [part(each) for each in made.parts],
        "inputs": [
            {"name": e.name, "kind": e.kind, "target": e.target, "extents": written(e.shape.extents)}
            for e in made.inputs
        ],
        "results": [
            {"kind": e.kind, "target": e.target, "array": e.array, "extents": written(e.extents)} for e in made.results
        ],
    }


def plan(graph: Graph, *, keeps_convolutions: bool = True, keeps_products: bool = False) -> Plan:
    """The plan of a graph. Convolutions stay torch's where `keeps_convolutions`, but for those of each channel by
    itself; matrix products and attention where `keeps_products`."""
    builder = Builder(keeps_convolutions=keeps_convolutions, keeps_products=keeps_products)
    return _Planner(graph, builder).plan()


@dataclass
class _Planner:
    graph: Graph
    builder: Builder
    values: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, CallPart] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def plan(self) -> Plan:
        b = self.builder
        given = self._inputs()
        readers = Counter(name for each in self.graph.nodes for name in _refs([*each.args, *each.kwargs.values()]))
        readers.update(each.value for each in self.graph.outputs if each.value)
        items: dict[tuple[str, int], None] = {}
        for each in self.graph.nodes:
            if each.operator == "getitem":
                items[each.args[0].name, int(each.args[1])] = None
        for node in self.graph.nodes:
            b.own = b.fresh(usable(shortened(node.name)))
            b.used = frozenset(n for name, n in items if name == node.name and self._read(node.name, n, readers))
            if node.operator == "getitem":
                self.values[node.name] = self.values[node.args[0].name][int(node.args[1])]
            else:
                self.values[node.name] = self._made(node)
            found = self.values[node.name]
            if isinstance(found, Value):
                self.values[node.name] = self._kept(found, readers[node.name])
            self._note()
        results = self._results()
        return Plan(self._parts(results), given, results)

    def _read(self, name: str, item: int, readers: Counter[str]) -> bool:
        return any(
            each.operator == "getitem" and each.args[0].name == name and each.args[1] == item and readers[each.name]
            for each in self.graph.nodes
        )

    def _note(self) -> None:
        """New stages come after the calls that were before them."""
        known = set(self.order)
        self.order += [name for name in (*self.builder.stages, *self.calls) if name not in known]

    def _inputs(self) -> tuple[Given, ...]:
        given: list[Given] = []
        for each in self.graph.inputs:
            if each.shape is None or (each.number is not None and each.shape.extents == ()):
                value = each.number
                kind = each.shape.type if each.shape else ""
                if isinstance(value, bool | int | float):
                    self.values[each.name] = number(value, kind)
                elif not isinstance(value, type(None)) and not isinstance(value, str):
                    self.values[each.name] = value
                continue
            name = self.builder.fresh(usable(each.target.replace(".", "_") if each.target else each.name))
            shape = Shape(each.shape.extents, each.shape.type, each.shape.strides)
            self.values[each.name] = self.builder.array(name, shape)
            given.append(Given(name, each.kind, each.target, shape))
        return tuple(given)

    def _made(self, node: Node) -> Any:
        b = self.builder
        name = node.operator.removeprefix("aten.")
        b.operator = name
        b.results = tuple(each or Shape((), "i64") for each in node.results)
        args = [self._argument(each) for each in node.args]
        kwargs = {key: self._argument(each) for key, each in node.kwargs.items()}
        function = OPERATORS.get(name)
        stages = dict(b.stages)
        try:
            if function is None:
                raise NoFormulaError("it has no formula")
            if any(isinstance(each, complex) for each in (*args, *kwargs.values())):
                raise NoFormulaError("it takes a complex number")
            return function(b, b.results[0], *args, **kwargs)
        except NoFormulaError as error:
            reason = str(error)
        except TypeError as error:
            if "argument" not in str(error):
                raise
            reason = "it is called in a way that has no formula"
        b.together = ""
        for each in b.stages.keys() - stages.keys():
            del b.stages[each]
            del b.arrays[each]
        return self._call(node, args, kwargs, reason)

    def _call(self, node: Node, args: Sequence[Any], kwargs: Mapping[str, Any], reason: str) -> Any:
        b = self.builder
        own = b.own
        b.own = b.fresh(f"{own}_in")
        handed = [self._handed(each) for each in args]
        named = {key: self._handed(each) for key, each in kwargs.items()}
        b.own = own
        self._note()
        short = node.operator.removeprefix("aten.").split(".")[0]
        said = f"{short} stays torch's: {reason}."
        if not node.has_many:
            name = b.fresh(b.own)
            self.calls[name] = CallPart(name, node.operator, tuple(handed), named, (name,), said)
            return b.array(name, Shape(b.results[0].extents, b.results[0].type))
        names: list[str] = []
        found: list[Value] = []
        for each in b.results:
            names.append(b.fresh(f"{b.own}_{len(names)}"))
            found.append(b.array(names[-1], Shape(each.extents, each.type)))
        self.calls[names[0]] = CallPart(b.own, node.operator, tuple(handed), named, tuple(names), said)
        return found

    def _handed(self, each: Any) -> Any:
        """An argument of a call: an array of the plan, with its dimensions in another order at most."""
        if isinstance(each, Value):
            return self._moved(each) or self._moved(self.builder.named(each))
        if isinstance(each, list | tuple):
            return [self._handed(one) for one in each]
        return each

    def _moved(self, value: Value) -> Handed | None:
        index = [i for i in self._index(value) if isinstance(i, Name)]
        found = value.at(self._index(value))
        if not isinstance(found, Load) or found.outside is not None or set(found.index) != set(index):
            return None
        base, extents = self.builder.under(found.tensor)
        kept = tuple(each for each in extents if each != ONE)
        order = tuple(found.index.index(each) for each in index)
        if [kept[n] for n in order] != [each for each in value.extents if each != ONE]:
            return None
        return Handed(base, kept, order, value.extents)

    def _index(self, value: Value) -> tuple[Expr, ...]:
        return self.builder.dims(value.extents)

    def _argument(self, each: Any) -> Any:
        if isinstance(each, Ref):
            return self.values[each.name]
        if isinstance(each, list):
            return [self._argument(one) for one in each]
        return each.name if isinstance(each, Type) else each

    def _kept(self, value: Value, readers: int) -> Value:
        if value.name:
            return value
        size = weight(value.at(self._index(value)))
        return self.builder.named(value) if size > MOST_WEIGHT or (readers > 1 and size > CHEAP) else value

    def _results(self) -> tuple[Result, ...]:
        found: list[Result] = []
        b = self.builder
        for number_, each in enumerate(self.graph.outputs):
            if each.value is None:
                continue
            value = self.values[each.value]
            if each.kind == "user_output":
                b.own = b.fresh("out" if len(self.graph.outputs) == 1 else f"out{number_}")
            else:
                b.own = b.fresh(usable(each.target.replace(".", "_")) + "_new")
            kept = b.named(value, b.own)
            found.append(Result(each.kind, each.target, kept.name, value.extents))
            self._note()
        return tuple(found)

    def _parts(self, results: Sequence[Result]) -> tuple[FormulaPart | CallPart, ...]:
        b = self.builder
        made: list[FormulaPart | CallPart] = []
        outside = {each.array for each in results}
        outside |= {ref for call in self.calls.values() for ref in _refs([*call.args, *call.kwargs.values()])}
        for item in parted([b.stages.get(each) or self.calls[each] for each in self._alive(outside)], b):
            if isinstance(item, CallPart):
                made.append(item)
                continue
            text, reads, writes = text_of(*regrouped(item, b), outside)
            made.append(FormulaPart(writes[-1].array, text, reads, writes))
        return tuple(made)

    def _alive(self, wanted: set[str]) -> list[str]:
        """The stages that something reads, and all calls, in order."""
        b = self.builder
        alive = set(wanted) | set(self.calls)
        for name in reversed(self.order):
            stage = b.stages.get(name)
            if stage is not None and name in alive:
                loads = (n.tensor for part in (stage.value, *stage.index) for n in walk(part) if isinstance(n, Load))
                alive |= {b.aliases[each][0] if each in b.aliases else each for each in loads}
        return [name for name in self.order if name in alive]


def shortened(name: str) -> str:
    """A node's name without what says how torch carries it out.

    >>> shortened("_native_batch_norm_legit_functional_1"), shortened("max_pool2d_with_indices")
    ('batch_norm_1', 'max_pool2d')
    """
    for each in _NEEDLESS:
        name = name.replace(each, "")
    return name.lstrip("_").replace("scaled_dot_product_attention", "attention").replace("addmm", "mm")


_NEEDLESS = ("native_", "_legit", "_functional", "_no_training", "_with_indices", "linalg_vector_", "_default")


def usable(name: str) -> str:
    """A name for an array that has no other meaning in a formula.

    >>> usable("sum"), usable("bias")
    ('sum_out', 'bias')
    """
    name = "".join(each if each.isalnum() and each.isascii() else "_" for each in name).strip("_") or "value"
    reserved = name in FUNCTIONS or name in REDUCTIONS or name in KEYWORDS or type_named(name) is not None
    return f"{name}_out" if reserved or name[0].isdigit() else name


def _refs(args: Sequence[Any]) -> list[str]:
    """The names of the values among arguments."""
    found: list[str] = []
    for each in args:
        if isinstance(each, Ref | Handed):
            found.append(each.name if isinstance(each, Ref) else each.array)
        elif isinstance(each, list | tuple):
            found += _refs(each)
    return found
