"""What the kernels of a formula have in common: names, places in memory, parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Bounds
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Call, Expr, Load, Name, Num
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.writer.code import Kernel
from warpwright.writer.expressions import BIT_OR, PRODUCT, Expressions
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, literal, read


@dataclass
class Scope:
    """One kernel being written. `locals` are stages whose value stands in a variable: the name of the variable and its
    type. `used` collects the parameters that the text names."""

    formula: Formula
    locals: dict[str, tuple[str, ElementType]] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)
    index_type: str = "long long"
    renamed: dict[str, str] = field(default_factory=dict)
    places: dict[Load, tuple[str, ElementType]] = field(default_factory=dict)
    """Loads whose value stands in a variable."""
    stored: dict[str, None] = field(default_factory=dict)
    """Arrays that the kernel writes."""
    flat: dict[str, tuple[tuple[Expr, ...], str]] = field(default_factory=dict)
    """Packed arrays of which an element, named by these indices, lies at one variable."""
    tensors: Mapping[str, Tensor] = field(init=False)
    expressions: Expressions = field(init=False)

    def __post_init__(self) -> None:
        self.tensors = tensors_of(self.formula)
        self.expressions = Expressions(self.type_named, self.place, self.named, Bounds(self.formula.dims))

    def type_named(self, name: str) -> ElementType:
        if name in self.formula.scalars:
            return TYPES[self.formula.scalars[name]]
        if name in self.tensors:
            return TYPES[self.tensors[name].type]
        stage = next((each for each in self.formula.stages if each.name == name), None)
        return TYPES[stage.type] if stage is not None else TYPES["i64"]

    def free(self, name: str, *others: str) -> str:
        """A name for a variable that nothing of the formula has: the first of these, or one like the last."""
        taken = self.taken()
        free = next((each for each in (name, *others) if each not in taken), (name, *others)[-1]).replace(".", "_")
        while free in taken:
            free += "_"
        return free

    def taken(self) -> set[str]:
        """The names of arrays, structs too, of numbers, sizes, dimensions and variables."""
        formula = self.formula
        arrays = {each.array for each in self.tensors.values()}
        variables = (name for name, _ in self.locals.values())
        return {*arrays, *formula.scalars, *formula.dims, *formula.sizes, *variables}

    def named(self, name: str) -> str:
        """A dimension, an extent or a scalar in C++."""
        if name in self.formula.scalars or name in self.formula.sizes:
            self.used[name] = None
        return self.renamed.get(name, name)

    def place(self, load: Load) -> tuple[str, ElementType]:
        """The C++ of a load: a variable, or memory with what is read outside of the extents."""
        if load in self.places:
            return self.places[load]
        if load.tensor in self.locals and all(isinstance(each, Name) for each in load.index):
            return self.locals[load.tensor]
        tensor = self.tensors[load.tensor]
        kind = TYPES[tensor.type]
        index: list[Expr] = []
        conditions: list[str] = []
        for each, extent in zip(load.index, tensor.extents, strict=True):
            inner, condition = self._inside(each, extent, load)
            index.append(inner)
            conditions += condition
        value = read(kind, self.element(tensor, index))
        if not conditions:
            return value, computed(kind)
        assert isinstance(load.outside, Num)
        other = literal(load.outside.value, computed(kind))
        return f"({' && '.join(conditions)} ? {value} : {other})", computed(kind)

    def _inside(self, index: Expr, extent: Expr, load: Load) -> tuple[Expr, list[str]]:
        bounds = self.expressions.bounds
        low, high = bounds.at_least(index, {}), bounds.less(index, extent)
        if load.outside is None or (low and high):
            return index, []
        if isinstance(load.outside, Num):
            tests = [] if low else [_not_negative(index)]
            tests += [] if high else [Call("<", (index, extent))]
            return index, [self.expressions.of(each, BIT_OR) for each in tests]
        name = {"clamp": "clamped", "wrap": "wrapped", "reflect": "mirrored"}[load.outside]
        self.expressions.helpers.add(name)
        text = f"{name}<{self.index_type}>({self.expressions.of(index)}, {self.expressions.of(extent)})"
        return Name(text), []

    def read_pack(self, body: Text, load: Load, at: str, packs: dict[str, str], element: str) -> bool:
        """From here on a load is an element of the pack at a place of memory, which is read once: `packs` has their
        names. Whether it is the first load there."""
        tensor = self.tensors[load.tensor]
        kind, is_first = TYPES[tensor.type], at not in packs
        if is_first:
            packs[at] = self.free(f"{tensor.array}_pack")
            while list(packs.values()).count(packs[at]) > 1:
                packs[at] += "_"
            self.used[tensor.array] = None
            self.expressions.helpers.add("load_pack")
            body(f"const Pack<{NAMES[tensor.type]}, kVector> {packs[at]} = load_pack<kVector>({at});")
        self.places[load] = (read(kind, f"{packs[at]}.at[{element}]"), computed(kind))
        return is_first

    def behind(self, array: str, at: Expr, more: str) -> str:
        """Where memory lies `at` and some more elements behind the beginning of an array."""
        return f"{array} + {more}" if at == Num(0) else f"{array} + {self.expressions.of(at, PRODUCT)} + {more}"

    def element(self, tensor: Tensor, index: Iterable[Expr]) -> str:
        """`x[r * C + c]`."""
        self.used[tensor.array] = None
        return f"{tensor.array.replace('.', '_')}[{self.offset(tensor, list(index))}]"

    def own_element(self, tensor: Tensor, stage: Stage) -> str:
        """Where the result of a stage goes."""
        return self.element(tensor, stage.own_index)

    def offset(self, tensor: Tensor, index: list[Expr]) -> str:
        """How many elements behind the array's start an element lies."""
        flat = self.flat.get(tensor.name)
        if flat is not None and tuple(index) == flat[0]:
            return flat[1]
        if not index:
            return str(tensor.offset)
        if tensor.strides is None:
            total: Expr = index[0]
            for each, extent in zip(index[1:], tensor.extents[1:], strict=True):
                row = Call("*", (total, extent))
                total = row if each == Num(0) else Call("+", (row, each))
        else:
            total = Num(0)
            for each, stride in zip(index, tensor.strides, strict=True):
                term = each if stride == Num(1) else Call("*", (each, stride))
                total = term if total == Num(0) else Call("+", (total, term))
        if tensor.offset:
            total = Call("+", (total, Num(tensor.offset)))
        return self.expressions.of(total)

    def parameters(self, sizes_as: str) -> tuple[list[str], tuple[str, ...]]:
        """The parameters of the kernel as C++ and as names: arrays, then sizes, then numbers."""
        texts: list[str] = []
        names: list[str] = []
        for name in self.arrays():
            texts.append(
                f"{'' if name in self.stored else 'const '}{NAMES[self._array_type(name)]}* __restrict__ {name}"
            )
            names.append(name)
        for name in (each for each in self.formula.sizes if each in self.used):
            texts.append(f"{sizes_as} {name}")
            names.append(name)
        for name in (each for each in self.formula.scalars if each in self.used):
            texts.append(f"{NAMES[computed(TYPES[self.formula.scalars[name]]).name]} {name}")
            names.append(name)
        return texts, tuple(names)

    def kernel(
        self,
        name: str,
        bounds: object,
        body: Iterable[str],
        template: str = "",
        sizes_as: str = "Index",
        said: str = "",
    ) -> Kernel:
        """The kernel with that body, once it is written: only then is known what it reads and writes."""
        texts, parameters = self.parameters(sizes_as)
        lines = [*([said] if said else []), *([f"template <{template}>"] if template else [])]
        lines += listed(texts, f"__global__ void __launch_bounds__({bounds}) {name}(", ") {")
        text = "\n".join([*lines, *body, "}"])
        helpers = frozenset(self.expressions.helpers | ({"Pack"} if "Pack<" in text else set()))
        types = frozenset(self.expressions.types | {each.type for each in self.touched()})
        size_type = "long long" if sizes_as == "Index" else sizes_as
        return Kernel(name, text, parameters, sizes_as == "Index", size_type, helpers, types)

    def arrays(self) -> list[str]:
        """Arrays that the kernel reads or writes in the order of the launch function, those that it writes last."""
        arrays = dict.fromkeys(each.array for each in self.tensors.values())
        return sorted((name for name in arrays if name in self.used), key=lambda name: name in self.stored)

    def touched(self) -> list[Tensor]:
        """What the kernel reads or writes, in the order in which it names it; of a struct all fields, which share one
        array."""
        fields: dict[str, list[Tensor]] = {}
        for each in self.tensors.values():
            fields.setdefault(each.array, []).append(each)
        return [each for name in self.used for each in fields.get(name, ())]

    def _array_type(self, name: str) -> str:
        return next(each.type for each in self.tensors.values() if each.array == name)


def _not_negative(index: Expr) -> Expr:
    """`i >= 1` for i - 1."""
    match index:
        case Call(name="-", args=(left, right)):
            return Call(">=", (left, right))
    return Call(">=", (index, Num(0)))
