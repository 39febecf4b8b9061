"""Signatures of what a formula takes and gives, in the habits that C, C++ and PyTorch people have.

Every array and number stands in it with its type and under its name; what is only read is const, if anything is.
Sizes stand there as whole numbers, as `sizes_called` calls them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from warpwright.formulas.model import Formula

from warpwright_upskill.data.requests.given import Array, arrays, names_of, shape_of
from warpwright_upskill.data.requests.vocabulary import C_TYPES, PACKED, TENSOR_TYPES

INTEGERS = (
    "int", "int", "int", "int", "const int", "size_t", "int64_t", "unsigned int", "long long", "unsigned", "long",
    "uint32_t", "int32_t", "std::size_t", "const size_t", "const unsigned int", "std::int64_t", "uint64_t",
    "const int64_t",
)  # fmt: skip
"""What the sizes of a signature are declared as."""
FUNCTIONS = (
    "kernel", "fused_op", "forward", "my_kernel", "run", "compute", "op_kernel", "fwd", "launch", "step", "apply",
    "process", "k_main", "do_op", "fused_fwd", "update", "backward_kernel", "launch_kernel", "gpu_op",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Habit:
    """How one signature is written throughout. `spelled` has the C type of each of ours."""

    const: str
    mark: str
    spelled: Mapping[str, str]
    brackets: str = ""
    packed: bool = False
    template: str = ""


def c_signature(formula: Formula, chance: Random, sizes: Mapping[str, str], called: str = "", words: str = "") -> str:
    """`const float* x, float* out, int rows, int cols`. `called` is what a function of it may be called; of
    the `words` beside it arrays may have the order."""
    given = arrays(formula, words if chance.random() < 0.7 else "")
    if chance.random() < 0.06:
        return _declared(formula, given, chance, sizes)
    habit = _habit(given, "T" in {*names_of(formula), *sizes.values()}, chance)
    pointers = [(each, _pointer(each, habit, sizes)) for each in given]
    comments = chance.choice(("/* [{}] */", "/* {} */", "/* ({}) */")) if chance.random() < 0.06 else ""
    if comments:
        pointers = [
            (each, f"{text} {comments.format(', '.join(shape_of(each, sizes)) or '1')}") for each, text in pointers
        ]
    kind = chance.choice(INTEGERS)
    counted = [f"{kind} {each}" for each in dict.fromkeys(sizes.values())]
    if chance.random() < 0.1:
        counted = []
    qualifier = chance.choice(("", "", "", "", "const "))
    numbers = [_number(name, type_, qualifier, habit, chance) for name, type_ in formula.scalars.items()]
    listed = _ordered(pointers, counted, numbers, sizes, chance)
    return _headed(listed, habit, called, chance)


def _habit(given: Sequence[Array], no_template: bool, chance: Random) -> _Habit:
    restrict = chance.choices(("", "__restrict__", "__restrict", "restrict"), (64, 27, 5, 4))[0]
    mark = (
        chance.choice((f"* {restrict} ", f"*{restrict} ", f" *{restrict} ", f" * {restrict} "))
        if restrict
        else chance.choices(("* ", " *", " * "), (60, 34, 6))[0]
    )
    floats = [each.type for each in given if each.type in ("f16", "bf16", "f32", "f64")]
    main = Counter(floats).most_common(1)[0][0] if floats else ""
    return _Habit(
        const=chance.choices(("before", "after", ""), (78, 8, 14))[0],
        mark=mark,
        spelled={name: chance.choice(among) for name, among in C_TYPES.items()},
        brackets=chance.choice(("[]", "[]", "extents")) if chance.random() < 0.05 and not restrict else "",
        packed=chance.random() < 0.5,
        template="" if no_template or chance.random() > 0.06 else main,
    )


def _pointer(each: Array, habit: _Habit, sizes: Mapping[str, str]) -> str:
    kind = "T" if each.type == habit.template else habit.spelled[each.type]
    if each.fields and habit.packed:
        kind = PACKED.get((each.type, len(each.fields)), kind)
    constant = habit.const if each.role == "in" else ""
    kind = f"const {kind}" if constant == "before" else f"{kind} const" if constant == "after" else kind
    if habit.brackets:
        simple = habit.brackets == "extents" and all(re.fullmatch(r"\w+", text) for text in shape_of(each, sizes))
        behind = "".join(f"[{text}]" for text in shape_of(each, sizes)) if simple and each.extents else "[]"
        return f"{kind} {each.name}{behind}"
    return f"{kind}{habit.mark}{each.name}"


def _number(name: str, type_: str, qualifier: str, habit: _Habit, chance: Random) -> str:
    kind = habit.spelled[type_]
    if type_ == "i64":
        kind = chance.choice(("int64_t", "long long", "long"))
    reference = "&" if qualifier and chance.random() < 0.15 else ""
    return f"{qualifier}{kind}{reference} {name}"


def _ordered(
    pointers: Sequence[tuple[Array, str]],
    counted: Sequence[str],
    numbers: Sequence[str],
    sizes: Mapping[str, str],
    chance: Random,
) -> list[str]:
    """The parameters in one of the orders that people have."""
    read = [text for each, text in pointers if each.role == "in"]
    written = [text for each, text in pointers if each.role != "in"]
    listed = [text for _, text in pointers]
    order = chance.randrange(20)
    if order < 7:
        return [*listed, *counted, *numbers]
    if order < 11:
        return [*listed, *numbers, *counted]
    if order < 13:
        return [*counted, *listed, *numbers]
    if order < 14:
        return [*counted, *numbers, *listed]
    if order < 16:
        return [*written, *read, *counted, *numbers]
    if order < 17:
        return [*read, *numbers, *written, *counted]
    if order < 18:
        return [*read, *counted, *numbers, *written]
    if order < 19:
        mixed = [*listed, *numbers]
        chance.shuffle(mixed)
        return [*mixed, *counted]
    beside: list[str] = []
    left = list(counted)
    for each, text in pointers:
        beside.append(text)
        named = {*(re.sub(r"\W.*", "", part) for part in shape_of(each, sizes))}
        mine = [size for size in left if size.rsplit(" ", 1)[-1] in named]
        beside += mine
        left = [size for size in left if size not in mine]
    return [*beside, *left, *numbers]


def _headed(listed: Sequence[str], habit: _Habit, called: str, chance: Random) -> str:
    """The parameters alone, or those of a function."""
    inside = chance.choices((", ", ",\n    ", ", "), (90, 8, 2))[0].join(listed)
    if not habit.template and chance.random() < 0.7:
        return inside
    name = chance.choice(FUNCTIONS)
    if called and chance.random() < 0.5:
        name = chance.choice((called, f"{called}_kernel", f"launch_{called}", f"{called}_fwd", f"k_{called}"))
    head = chance.choice(
        (
            "__global__ void ", "__global__ void ", "__global__ void ", 'extern "C" __global__ void ', "void ", "void ",
            "static void ", "__global__ void __launch_bounds__(256) ", 'extern "C" void ', "inline void ",
            "__global__ static void ",
        )
    )  # fmt: skip
    if "__global__" not in head and chance.random() < 0.3:
        streams = ("cudaStream_t stream", "cudaStream_t stream = 0", "cudaStream_t s")
        taken = {*re.findall(r"\w+", inside)}
        inside += ", " + chance.choice([each for each in streams if each.split()[1] not in taken])
    behind = chance.choice(("", "", ";", " {", " { }"))
    if not habit.template:
        return f"{head}{name}({inside}){behind}"
    spelled = habit.spelled[habit.template]
    said = chance.choice(
        (f" // T = {spelled}", f" /* T = {spelled} */", f" // T is {spelled}", f" // with T={spelled}")
    )
    return f"template <typename T> {head}{name}({inside}){behind or ';'}{said}"


def _declared(formula: Formula, given: Sequence[Array], chance: Random, sizes: Mapping[str, str]) -> str:
    """Variables: `float *x, *y; int rows, cols;`."""
    groups: dict[str, list[str]] = {}
    for each in given:
        groups.setdefault(each.type, []).append(f"*{each.name}")
    lines = [f"{chance.choice(C_TYPES[type_])} {', '.join(names)};" for type_, names in groups.items()]
    if sizes and chance.random() < 0.8:
        lines.append(
            f"{chance.choice(('int', 'int', 'size_t', 'const int'))} {', '.join(dict.fromkeys(sizes.values()))};"
        )
    lines += [f"{C_TYPES[type_][0]} {name};" for name, type_ in formula.scalars.items()]
    return " ".join(lines)


def torch_signature(
    formula: Formula, chance: Random, sizes: Mapping[str, str], called: str = "", words: str = ""
) -> str:
    """`x: Tensor[B, T] bf16, w: Tensor[T]`, `def f(x, w, eps)` and the like. A result may be left out."""
    given = arrays(formula, words if chance.random() < 0.7 else "")
    plain = all(each.type == "f32" and not each.fields for each in given)
    if plain and chance.random() < 0.25:
        return _schema(formula, given, chance, called)
    reads = any(each.role != "out" for each in given)
    told = [each for each in given if each.role != "out" or not reads or chance.random() < 0.5]
    style = chance.randrange(len(_TENSORS))
    spelling = chance.randrange(3)
    listed = [_tensor(each, style, spelling, sizes) for each in told]
    as_c = style in (3, 4, 5)
    for name, type_ in formula.scalars.items():
        kind = "int" if type_[0] in "iu" else "double" if as_c and type_ == "f64" else "float"
        listed.append(f"{kind} {name}" if as_c else f"{name}: {kind}")
    return ("\n" if style == 4 else ", ").join(listed)


_TENSORS = (
    "{name}: Tensor[{shape}]{kind}",
    "{name} ({shape}){kind!}",
    "{name}: {type}[{shape}]",
    "torch.Tensor {name} [{shape}]{kind}",
    "torch.Tensor {name}  # [{shape}]{kind}",
    "torch::Tensor {name} /* [{shape}]{kind} */",
    "{name}: torch.Tensor [{shape}]{kind}",
)


def _tensor(each: Array, style: int, spelling: int, sizes: Mapping[str, str]) -> str:
    kind = TENSOR_TYPES[each.type][min(spelling, len(TENSOR_TYPES[each.type]) - 1)]
    if each.fields:
        sizes_, extra = shape_of(each, sizes), str(len(each.fields))
        shape = ", ".join([*sizes_, extra])
    else:
        shape = ", ".join(shape_of(each, sizes))
    text = _TENSORS[style].replace("{name}", each.name).replace("{shape}", shape).replace("{type}", kind)
    text = text.replace("{kind!}", f" {kind}")
    return text.replace("{kind}", "" if each.type == "f32" else f" {kind}")


def _schema(formula: Formula, given: Sequence[Array], chance: Random, called: str) -> str:
    """Tensors without types and shapes, which are f32."""
    name = called or chance.choice(FUNCTIONS)
    read = [each for each in given if each.role != "out"]
    whole = {key: type_[0] in "iu" for key, type_ in formula.scalars.items()}
    form = chance.randrange(4)
    if form == 0:
        listed = [f"Tensor{'(a!)' if each.role == 'in-out' else ''} {each.name}" for each in read]
        listed += [f"{'int' if is_whole else 'float'} {key}" for key, is_whole in whole.items()]
        return f"{name}({', '.join(listed)}) -> Tensor"
    if form == 1:
        listed = [f"{each.name}: torch.Tensor" for each in read]
        listed += [f"{key}: {'int' if is_whole else 'float'}" for key, is_whole in whole.items()]
        return f"def {name}({', '.join(listed)}) -> torch.Tensor:"
    if form == 2:
        listed = [f"torch::Tensor {each.name}" for each in given]
        listed += [f"{'int64_t' if is_whole else 'float'} {key}" for key, is_whole in whole.items()]
        return f"void {name}({', '.join(listed)})"
    return f"def {name}({', '.join([*(each.name for each in read), *whole])}):"
