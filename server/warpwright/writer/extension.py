"""A formula as a PyTorch extension: a C++ file that registers the operator and checks what it is handed, and a Python
module that loads it and tells torch.compile the shapes of its results.

The kernels stand in a file of their own (`write.file_text`), one launch function for each combination of types; the
operator takes the first whose types are those of the tensors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.formulas.bounds import gapped_strides
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed, shown
from warpwright.formulas.tree import Call, Expr, Name, Num
from warpwright.formulas.types import TYPES, computed
from warpwright.writer.code import Code
from warpwright.writer.decision import host
from warpwright.writer.launch import signature
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, headers_for

SCALARS = {
    "f64": "kDouble", "f32": "kFloat", "f16": "kHalf", "bf16": "kBFloat16", "f8e4m3": "kFloat8_e4m3fn", "f8e5m2":
    "kFloat8_e5m2", "i8": "kChar", "i16": "kShort", "i32": "kInt", "i64": "kLong", "u8": "kByte", "u16": "kUInt16",
    "u32": "kUInt32", "u64": "kUInt64", "bool": "kBool", "c64": "kComplexFloat", "c128": "kComplexDouble",
}  # fmt: skip
"""ATen's names of element types."""
DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2":
    "float8_e5m2", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32":
    "uint32", "u64": "uint64", "bool": "bool", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
"""torch's names of element types."""


_HEADERS = (
    "ATen/core/Tensor.h",
    "ATen/ops/empty.h",
    "c10/cuda/CUDAException.h",
    "c10/cuda/CUDAGuard.h",
    "c10/cuda/CUDAStream.h",
)
"""ATen/ATen.h, which has all operators, would take twice as long to compile."""
_SIZE, _LENGTH = "{tensor}.size({place})", "{tensor}.numel()"
"""How the extent of a tensor is read, and that of a flat one; alike in C++ and Python."""
QUOTES = '"""'


class NoExtensionError(Exception):
    """A formula that no extension can be made of: one sentence."""


def schema(code: Code) -> str:
    """The operator's schema. A size that no tensor has as an extent is an argument.

    >>> from warpwright.formulas.resolve import formula_of
    >>> from warpwright.writer.write import written
    >>> schema(written(formula_of("y[r] = s * sum[c] x[r, c]"), "total"))
    'total(Tensor x, float s) -> Tensor'
    """
    formula = _checked(code)
    parts = []
    for number, each in enumerate(formula.inputs):
        mutable = f"({chr(ord('a') + number)}!)" if each.role == "in-out" else ""
        parts.append(f"Tensor{mutable} {each.name}")
    parts += [f"SymInt {name}" for name in unread_sizes(formula)]
    parts += [f"{scalar_words(kind)[0]} {name}" for name, kind in formula.scalars.items()]
    made = len(_made(formula))
    results = "Tensor" if made == 1 else f"({', '.join(['Tensor'] * made)})"
    return f"{code.name}({', '.join(parts)}) -> {results}"


def binding_text(codes: Sequence[Code], library: str, is_flat: bool = False) -> str:
    """The C++ file that registers `library::name`. All codes are one formula with other types, and their launch
    functions have names of their own. Arrays that are flat are known by their lengths alone: tensors of any shape are
    taken for them. Raises NoExtensionError."""
    first = codes[0]
    formula = _checked(first)
    if any(schema(each).partition("(")[2] != schema(first).partition("(")[2] for each in codes):
        raise NoExtensionError("The formulas of one operator have other arguments, not only other types.")
    name = operator_name(first)
    includes = [*_HEADERS]
    kinds = {t.type for code in codes for t in code.formula.tensors.values()}
    includes += [*headers_for(kinds), "algorithm", "cstdint", "torch/library.h"]
    body = Text()
    _function(body, codes, formula, name, is_flat)
    includes += [f"ATen/ops/{each}.h" for each in ("empty_strided", "zeros") if f"at::{each}(" in str(body)]
    text = Text()
    for header in sorted(includes):
        text(f"#include <{header}>")
    text()
    for code in codes:
        text.add(_declared(code))
    text()
    text("namespace {")
    text()
    needs_sizes = any(len(each.extents) for each in formula.inputs) and len(size_sources(formula)) < sum(
        len(each.extents) for each in formula.inputs
    )
    checks = [_CHECK_FLAT, _CHECK_LENGTH] if is_flat else [_CHECK, _CHECK_SIZE]
    text.add("".join(checks if needs_sizes else checks[:1]).strip("\n").splitlines())
    text()
    text.add(body.lines)
    text()
    text("}  // namespace")
    text()
    with text.block(f"TORCH_LIBRARY_FRAGMENT({library}, m)"):
        text(f'm.def("{_renamed(schema(first), name)}");')
    text()
    with text.block(f"TORCH_LIBRARY_IMPL({library}, CUDA, m)"):
        text(f'm.impl("{name}", &{name}_operator);')
    return f"{text}\n"


def python_text(codes: Sequence[Code], library: str, binary: str) -> str:
    """The Python module that loads the extension from `binary` beside it. Raises NoExtensionError."""
    formula = _checked(codes[0])
    name = operator_name(codes[0])
    arguments = arguments_of(formula)
    text = Text()
    text(f'"""{name}: an operator of the library {library}."""')
    text()
    text("from pathlib import Path")
    text()
    text("import torch")
    text()
    text(f'torch.ops.load_library(str(Path(__file__).parent / "{binary}"))')
    text()
    text()
    add_fake(text, codes, library)
    text()
    text()
    text(f"def {name}({', '.join(arguments)}):")
    text.depth += 1
    lines = printed(parse(formula.text)).splitlines()
    for number, line in enumerate(lines):
        text(f"{'' if number else QUOTES}{line}{QUOTES if number + 1 == len(lines) else ''}")
    text.depth -= 1
    text(f"    return torch.ops.{library}.{name}({', '.join(arguments)})")
    return f"{text}\n"


def add_fake(text: Text, codes: Sequence[Code], library: str, is_flat: bool = False) -> None:
    """The fake kernel, which tells torch.compile the shapes and types of the results, as Python."""
    formula = _checked(codes[0])
    name = operator_name(codes[0])
    text(f'@torch.library.register_fake("{library}::{name}")')
    text(f"def _{name}_shapes({', '.join(arguments_of(formula))}):")
    text.depth += 1
    for each in () if is_flat else formula.inputs:
        rank = len(each.extents)
        text(f'torch._check({each.name}.dim() == {rank}, lambda: "{each.name} must have {_dimensions(rank)}")')
    read = _LENGTH if is_flat else _SIZE
    for size, (tensor, place) in size_sources(formula).items():
        text(f"{size} = {read.format(tensor=tensor, place=place)}")
    for test, said in _tests(formula, read, "{tensor}.stride({place})", _python):
        text(f'torch._check({test}, lambda: "{said}")')
    made = _made(formula)
    for each in made:
        device = f"{formula.inputs[0].name}.device" if formula.inputs else '"cuda"'
        like = _like(formula, each) if is_flat else ""
        extents = f"{like}.shape" if like else _tuple([_python(e) for e in each.extents])
        own = gapped_strides(each.extents, each.strides)
        strides = "" if own is None else f", {_tuple([_python(e) for e in own])}"
        call = "torch.empty" if own is None else "torch.empty_strided"
        text(f"{each.name} = {call}({extents}{strides}, dtype={_dtype(codes, each)}, device={device})")
    if made:
        text(f"return {', '.join(each.name for each in made)}")
    text.depth -= 1


def arguments_of(formula: Formula) -> list[str]:
    """The operator's arguments by name, in order."""
    return [each.name for each in formula.inputs] + unread_sizes(formula) + list(formula.scalars)


_CHECK = """
// Refuses a tensor that the kernels cannot read, by its name.
void check(const at::Tensor& tensor, const char* name, int64_t dims, at::Device device) {
    TORCH_CHECK(tensor.is_cuda(), name, " must be on a GPU; it is on ", tensor.device(), ".");
    TORCH_CHECK(tensor.device() == device, name, " must be on ", device, "; it is on ", tensor.device(), ".");
    TORCH_CHECK(tensor.dim() == dims, name, " must have ", dims, " dimensions; it has ", tensor.dim(), ".");
}
"""
_CHECK_FLAT = """
// Refuses a tensor that the kernels cannot read, by its name.
void check(const at::Tensor& tensor, const char* name, at::Device device) {
    TORCH_CHECK(tensor.is_cuda(), name, " must be on a GPU; it is on ", tensor.device(), ".");
    TORCH_CHECK(tensor.device() == device, name, " must be on ", device, "; it is on ", tensor.device(), ".");
}
"""
_CHECK_LENGTH = """
void check_size(const char* name, int64_t size, int64_t wanted) {
    TORCH_CHECK(size == wanted, name, " must have ", wanted, " elements; it has ", size, ".");
}
"""
_CHECK_SIZE = """
void check_size(const char* name, int64_t place, int64_t size, int64_t wanted) {
    TORCH_CHECK(size == wanted, name, " must have the size ", wanted, " in dimension ", place, "; it has ", size, ".");
}
"""


def _checked(code: Code) -> Formula:
    formula = code.formula
    if any(each.base for each in formula.tensors.values()):
        raise NoExtensionError("A tensor of PyTorch has no fields: give each field an array of its own.")
    if not formula.inputs:
        raise NoExtensionError("The formula reads no tensor, so nothing says on which GPU it runs.")
    return formula


def operator_name(code: Code) -> str:
    """The operator's name: that of the code without a type behind it, as in softmax_bf16."""
    return re.sub(rf"_({'|'.join(TYPES)})$", "", code.name)


def _renamed(text: str, name: str) -> str:
    return f"{name}({text.partition('(')[2]}"


def _made(formula: Formula) -> list[Tensor]:
    return [each for each in formula.tensors.values() if each.role == "out"]


def size_sources(formula: Formula) -> dict[str, tuple[str, int]]:
    """Of each size the tensor and the dimension that it is read from."""
    found: dict[str, tuple[str, int]] = {}
    for each in formula.inputs:
        for place, extent in enumerate(each.extents):
            if isinstance(extent, Name):
                found.setdefault(extent.name, (each.name, place))
    return {name: found[name] for name in formula.sizes if name in found}


def unread_sizes(formula: Formula) -> list[str]:
    """Sizes that no tensor tells."""
    return [name for name in formula.sizes if name not in size_sources(formula)]


def scalar_words(kind: str) -> tuple[str, str]:
    """The type of a number in a schema and in C++. Raises NoExtensionError."""
    if TYPES[kind].kind == "complex":
        raise NoExtensionError("An operator takes no complex number: hand over its parts.")
    return {"bool": ("bool", "bool"), "integer": ("int", "int64_t")}.get(TYPES[kind].kind, ("float", "double"))


def _tests(formula: Formula, size: str, stride: str, spelled: object) -> list[tuple[str, str]]:
    """What must be true of the sizes and strides of the inputs, and a sentence for where it is not."""
    assert callable(spelled)
    sources = size_sources(formula)
    found: list[tuple[str, str]] = []
    for each in formula.inputs:
        for place, extent in enumerate(each.extents):
            if isinstance(extent, Name) and sources.get(extent.name) == (each.name, place):
                continue
            test = f"{size.format(tensor=each.name, place=place)} == {spelled(extent)}"
            where = f" in dimension {place}" if size == _SIZE else ""
            found.append((test, f"{each.name} must have {shown(extent)} elements{where}"))
        for place, own in enumerate(gapped_strides(each.extents, each.strides) or ()):
            test = f"{stride.format(tensor=each.name, place=place)} == {spelled(own)}"
            found.append((test, f"{each.name} must have the stride {shown(own)} in dimension {place}"))
    return found


def _python(node: Expr) -> str:
    match node:
        case Num(value=value):
            return str(value)
        case Name(name=name):
            return name
        case Call(name="min" | "max" as name, args=(left, right)):
            return f"torch.sym_{name}({_python(left)}, {_python(right)})"
        case Call(name=sign, args=(left, right)):
            return f"({_python(left)} {sign} {_python(right)})"
    raise NoExtensionError(f"{shown(node)} is no expression over sizes.")


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _dimensions(rank: int) -> str:
    return "1 dimension" if rank == 1 else f"{rank} dimensions"


def _dtype(codes: Sequence[Code], made: Tensor) -> str:
    """The type of a result in Python: that of an input where it changes with it, else by name."""
    for each in codes[0].formula.inputs:
        if all(c.formula.tensors[made.name].type == c.formula.tensors[each.name].type for c in codes):
            return f"{each.name}.dtype"
    kinds = {c.formula.tensors[made.name].type for c in codes}
    if len(kinds) > 1:
        raise NoExtensionError(f"The type of {made.name} is that of no input: give it one.")
    return f"torch.{DTYPES[made.type]}"


def _declared(code: Code) -> list[str]:
    lines = listed(signature(code), f'extern "C" cudaError_t {code.name}(', ");")
    if code.temporaries:
        sizes = [f"long long {name}" for name in code.formula.sizes]
        lines += listed(sizes, f'extern "C" size_t {code.name}_workspace(', ");")
    return lines


def _function(text: Text, codes: Sequence[Code], formula: Formula, name: str, is_flat: bool) -> None:
    made = _made(formula)
    result = {0: "void", 1: "at::Tensor"}.get(len(made), f"std::tuple<{', '.join(['at::Tensor'] * len(made))}>")
    parameters = [f"const at::Tensor& {_given(each)}" for each in formula.inputs]
    parameters += [f"int64_t {each}" for each in unread_sizes(formula)]
    parameters += [f"{scalar_words(kind)[1]} {each}" for each, kind in formula.scalars.items()]
    for promise in formula.promises:
        text(f"// {promise}")
    text.add(listed(parameters, f"{result} {name}_operator(", ") {"))
    text.depth += 1
    first = formula.inputs[0].name
    for each in formula.inputs:
        if _given(each) != each.name:
            text(f"const at::Tensor {each.name} = {_given(each)}.contiguous();")
    for each in formula.inputs:
        text(f'check({each.name}, "{each.name}", {"" if is_flat else f"{len(each.extents)}, "}{first}.device());')
    read = _LENGTH if is_flat else _SIZE
    for size, (tensor, place) in size_sources(formula).items():
        text(f"const int64_t {size} = {read.format(tensor=tensor, place=place)};")
    for each in formula.inputs:
        for place, extent in enumerate(each.extents):
            if size_sources(formula).get(extent.name if isinstance(extent, Name) else "") != (each.name, place):
                own = read.format(tensor=each.name, place=place)
                text(f'check_size("{each.name}", {"" if is_flat else f"{place}, "}{own}, {host(extent)});')
        _layout(text, each)
    text(f"const c10::cuda::CUDAGuard guard({first}.device());")
    text("const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();")
    for number, code in enumerate(codes):
        tests = [
            f"{each.name}.scalar_type() == at::{SCALARS[code.formula.tensors[each.name].type]}"
            for each in formula.inputs
        ]
        head = f"{'} else ' if number else ''}if ("
        for line in listed([f"{each} &&" for each in tests[:-1]] + tests[-1:], head, ") {", 108):
            text(line.replace("&&,", "&&"))
        text.depth += 1
        _call(text, code, made, is_flat)
        text.depth -= 1
    text("}")
    kinds = " or ".join(
        ", ".join(f"{each.name}: {DTYPES[code.formula.tensors[each.name].type]}" for each in formula.inputs)
        for code in codes
    )
    said = [f'"{name} takes {kinds}; it is given "']
    for each in formula.inputs:
        said += [f"{each.name}.scalar_type()", '", "']
    text.add(listed(["false", *said[:-1], '"."'], "TORCH_CHECK(", ");", 104))
    text.depth -= 1
    text("}")


def _layout(text: Text, tensor: Tensor) -> None:
    if _given(tensor) != tensor.name:
        return
    strides = gapped_strides(tensor.extents, tensor.strides)
    if strides is None:
        text(f'TORCH_CHECK({tensor.name}.is_contiguous(), "{tensor.name} must be contiguous.");')
        return
    tests = [f"{tensor.name}.stride({place}) == {host(each)}" for place, each in enumerate(strides)]
    wanted = ", ".join(map(shown, strides))
    text(f'TORCH_CHECK({" && ".join(tests)}, "{tensor.name} must have the strides {wanted}.");')


def _given(tensor: Tensor) -> str:
    """The name under which the operator is handed a tensor: another one where it takes any strides, and packs it."""
    is_packed = tensor.role == "in" and gapped_strides(tensor.extents, tensor.strides) is None
    return f"{tensor.name}_given" if is_packed else tensor.name


def _like(formula: Formula, made: Tensor) -> str:
    """The first input of as many elements as a flat result, which gets its shape."""
    return next((each.name for each in formula.inputs if each.extents == made.extents), "")


def _call(text: Text, code: Code, made: Sequence[Tensor], is_flat: bool) -> None:
    formula = code.formula
    first = formula.inputs[0].name
    for each in made:
        kind = SCALARS[formula.tensors[each.name].type]
        like = _like(formula, each) if is_flat else ""
        extents = f"{like}.sizes()" if like else f"{{{', '.join(map(host, each.extents))}}}"
        own = gapped_strides(each.extents, each.strides)
        strides = "" if own is None else f", {{{', '.join(map(host, own))}}}"
        made_by = "zeros" if each.name in code.zeroed else "empty"
        call = f"at::{made_by}" if own is None else "at::empty_strided"
        text(f"at::Tensor {each.name} = {call}({extents}{strides}, {first}.options().dtype(at::{kind}));")
    arguments = []
    for each in formula.tensors.values():
        kind = NAMES[each.type]
        if each.role == "in":
            arguments.append(f"static_cast<const {kind}*>({each.name}.const_data_ptr())")
        else:
            arguments.append(f"static_cast<{kind}*>({each.name}.mutable_data_ptr())")
    arguments += formula.sizes
    arguments += [f"static_cast<{NAMES[computed(TYPES[kind]).name]}>({n})" for n, kind in formula.scalars.items()]
    if code.temporaries:
        sizes = ", ".join(formula.sizes)
        text("const at::Tensor workspace = at::empty(")
        text(f"        {{static_cast<int64_t>({code.name}_workspace({sizes}))}}, {first}.options().dtype(at::kByte));")
        arguments.append("workspace.mutable_data_ptr()")
    hidden = code.name in {*formula.tensors, *formula.sizes, *formula.scalars}
    text.add(listed([*arguments, "stream"], f"C10_CUDA_CHECK({'::' if hidden else ''}{code.name}(", "));", 104))
    names = [each.name for each in made]
    returned = "" if not names else f" {names[0]}" if len(names) == 1 else f" {{{', '.join(names)}}}"
    text(f"return{returned};")
