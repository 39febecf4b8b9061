"""A formula as a package of PyTorch: kernels and operators for the forward and the backward, what tells
autograd of them, the Python module that registers fake kernels, what builds it, and its tests.

Example: of `y[r] = sum[c] x[r, c] * w[c]` in f32 and f16 under the name `dot` it has `dot/__init__.py`,
`dot/csrc/dot.cu`, `dot_operator.cpp`, `dot_backward.cu`, `dot_backward_operator.cpp`, `dot_autograd.cpp`, `setup.py`,
`pyproject.toml`, `dot_inline.py` and `tests/test_dot.py`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpwright.formulas.derivative import Derivative, NoDerivativeError, derivative
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.inputs import draws_of
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed, shown
from warpwright.formulas.types import TYPES
from warpwright.writer.autograd import autograd_text, stub_text
from warpwright.writer.code import Code
from warpwright.writer.extension import (
    DTYPES,
    QUOTES,
    add_fake,
    arguments_of,
    binding_text,
    unread_sizes,
)
from warpwright.writer.forms import extension_codes, for_python
from warpwright.writer.inline import inline_text
from warpwright.writer.text import Text
from warpwright.writer.wire_texts import (
    GRADIENTS,
    LOADER,
    NO_GRADIENTS,
    PYPROJECT,
    SETUP,
    STRIDED,
    TESTS,
    TURNED_OFF,
)
from warpwright.writer.write import file_text

_LARGE = ((1237, 853, 7, 3, 2, 2), (61, 37, 19, 13, 11, 7), (13, 11, 7, 5, 3, 2))
_MOST_ELEMENTS = 1 << 25
TEST_EXTENT = 5
"""Of the sizes in the tests, with the number of the size added: no two are the same."""


@dataclass(frozen=True, slots=True)
class Wired:
    """The files of a package by name. `backward` is the formula of its backward, "" where it has none: `no_backward`
    says why."""

    files: dict[str, str]
    backward: str
    no_backward: str


@dataclass(frozen=True, slots=True)
class Forward:
    """What a package is made around: the code of each combination of types, the texts of its kernels by their names
    below csrc, and the lines that say what it computes. Where it `is_flat` arrays are known by their lengths alone: the
    operator is handed them as one dimension, and users hand over any shape. A kernel that `is_given` is a user's."""

    codes: Sequence[Code]
    sources: Mapping[str, str]
    said: Sequence[str]
    is_flat: bool = False
    is_given: bool = False


def wired(text: str, name: str, types: Sequence[str]) -> Wired:
    """Raises FormulaError and NoExtensionError."""
    text = for_python(text)
    codes = extension_codes(text, name, types)
    said = printed(parse(codes[0].formula.text)).splitlines()
    return packaged(Forward(codes, {f"{name}.cu": file_text(*codes)}, said), name, text, types)


def packaged(forward: Forward, name: str, text: str, types: Sequence[str]) -> Wired:
    """The package around a forward that computes the formula `text`, of which its backward is made; "" where no formula
    is known. Raises FormulaError and NoExtensionError."""
    codes = forward.codes
    back: Derivative | None = None
    no_backward = "" if text else "What the kernel computes is not known as a formula."
    try:
        back = derivative(text) if text else None
    except NoDerivativeError as error:
        no_backward = str(error)
    backward = [] if back is None else extension_codes(back.text, f"{name}_backward", types)
    sources = {**forward.sources, f"{name}_operator.cpp": binding_text(codes, name, forward.is_flat)}
    if backward:
        sources |= {
            f"{name}_backward.cu": file_text(*backward),
            f"{name}_backward_operator.cpp": binding_text(backward, name),
        }
    if back is not None:
        sources[f"{name}_autograd.cpp"] = autograd_text(codes[0], name, backward[0], back)
    elif not _written_over(codes[0].formula) and any(TYPES[e.type].is_float for e in codes[0].formula.inputs):
        sources[f"{name}_autograd.cpp"] = stub_text(codes[0], name, no_backward)
    files = {f"{name}/csrc/{file}": text for file, text in sources.items()}
    side = _python_side(name, forward, backward)
    files[f"{name}/__init__.py"] = _module(name, forward, bool(backward), side)
    if inline := inline_text(name, sources, _flags(forward), side, _example(name, codes)):
        files[f"{name}_inline.py"] = inline
    files["setup.py"] = SETUP.format(name=name, flags=_flags(forward), sources=_listed(files))
    files["pyproject.toml"] = PYPROJECT.format(name=name.replace("_", "-"))
    files[f"tests/test_{name}.py"] = _tests(name, codes, bool(backward), types or ["f32"])
    return Wired(files, "" if back is None else back.text, no_backward)


def _module(name: str, forward: Forward, has_backward: bool, side: Sequence[str]) -> str:
    text = Text()
    text(f'"""{name}: an operator of PyTorch with its fake kernel{", backward" if has_backward else ""} and loader."""')
    text()
    text("from pathlib import Path")
    text()
    text("import torch")
    text()
    text()
    text.add(LOADER.format(name=name, flags=_flags(forward)).strip("\n").splitlines())
    text()
    text()
    text.add(side)
    return f"{text}\n"


def _python_side(name: str, forward: Forward, backward: Sequence[Code]) -> list[str]:
    """What torch is told from Python, and what users call."""
    codes = forward.codes
    formula = codes[0].formula
    text = Text()
    add_fake(text, codes, name, forward.is_flat)
    if backward:
        text()
        text()
        add_fake(text, backward, name)
    floats = [each.type for each in formula.inputs if TYPES[each.type].is_float]
    if len(codes) == 1 and set(floats) == {"f32"} and not _written_over(formula):
        text(f'torch.library.register_autocast("{name}::{name}", "cuda", torch.float32)')
    text()
    text(f"_operator = torch.ops.{name}.{name}.default  # to look it up in each call takes as long as other wrappers")
    text()
    text()
    text.add(_function(name, forward))
    return text.lines


def _function(name: str, forward: Forward) -> list[str]:
    """What users call."""
    formula = forward.codes[0].formula
    arguments = arguments_of(formula)
    text = Text()
    text(f"def {name}({', '.join(arguments)}):")
    text.depth += 1
    for number, line in enumerate(forward.said):
        text(f"{'' if number else QUOTES}{line}{QUOTES if number + 1 == len(forward.said) else ''}")
    if over := _written_over(formula):
        tensors = ", ".join(each.name for each in formula.inputs)
        text(f"if torch.is_grad_enabled() and any(each.requires_grad for each in ({tensors},)):")
        text(f'    raise NotImplementedError("{name} has no backward: it writes over {" and ".join(over)}.")')
    text(f"return _operator({', '.join(arguments)})")
    return text.lines


def _written_over(formula: Formula) -> list[str]:
    """The arguments that are changed: an operator that does so has no autograd in torch."""
    return [each.name for each in formula.inputs if each.role == "in-out"]


def _example(name: str, codes: Sequence[Code]) -> list[str]:
    """One call at small sizes."""
    sizes, makers = _sizes(codes[0].formula), _makers(codes, f"torch.{_first_type(codes)}")
    given = [f"{', '.join(sizes)} = {', '.join(map(str, sizes.values()))}"] if sizes else []
    return [*given, f"print({name}(", *(f"    {each}," for each in makers), "))"]


def _first_type(codes: Sequence[Code]) -> str:
    return next((DTYPES[e.type] for e in codes[0].formula.inputs if TYPES[e.type].is_float), "float32")


def _sizes(formula: Formula) -> dict[str, int]:
    """Small ones that differ."""
    return {size: TEST_EXTENT + number for number, size in enumerate(formula.sizes)}


def _makers(codes: Sequence[Code], dtype: str) -> list[str]:
    """The arguments of a call as Python: `dtype` is the type of what changes with it."""
    formula = codes[0].formula
    drawn = draws_of(formula, _sizes(formula))
    makers = []
    for each in formula.inputs:
        extents = ", ".join(shown(extent) for extent in each.extents)
        shape = f"({extents}{',' if len(each.extents) == 1 else ''})"
        kind = each.type
        if TYPES[kind].is_float:
            changes = len({code.formula.tensors[each.name].type for code in codes}) > 1
            made = f'torch.randn({shape}, device="cuda")'
            if (draw := drawn.get(each.name)) and draw.kind in ("between", "apart") and draw.low > 0:
                made = f'({draw.low} + {draw.high - draw.low} * torch.rand({shape}, device="cuda"))'
            makers.append(f"{made}.to({dtype if changes else f'torch.{DTYPES[kind]}'})")
        else:
            makers.append(f'torch.zeros({shape}, device="cuda", dtype=torch.{DTYPES[kind]})')
    makers += unread_sizes(formula)
    return makers + ["1" if TYPES[kind].kind == "integer" else "0.5" for kind in formula.scalars.values()]


def _tests(name: str, codes: Sequence[Code], has_backward: bool, types: Sequence[str]) -> str:
    formula = codes[0].formula
    sizes, makers = _sizes(formula), _makers(codes, "dtype")
    names = ", ".join(sizes)
    given = ", ".join(str(size) for size in sizes.values())
    large = ", ".join(str(each) for each in _large(formula))
    none = dict.fromkeys(sizes, 0)
    has_empty = all(at_sizes(extent, none) >= 0 for each in formula.tensors.values() for extent in each.extents)
    empty = ", ".join("0" if has_empty else "1" for _ in sizes)
    is_smooth = any(TYPES[each.type].is_float for each in formula.inputs)
    check = GRADIENTS if has_backward else NO_GRADIENTS if is_smooth else ""
    layouts = any(len(each.extents) > 1 and each.strides is None for each in formula.inputs)
    strided = STRIDED.format(name=name) if layouts and not _written_over(formula) else ""
    adds = any(code.zeroed for code in codes) or bool(_written_over(formula))
    return (TESTS + check).format(
        strided=strided,
        tolerance=", rtol=1e-2, atol=1e-2" if adds else "",
        name=name,
        names=names,
        tuple_names=f"({names}{',' if len(sizes) == 1 else ''})",
        makers="\n".join(f"        {each}," for each in makers),
        shapes=", ".join(f"({each}{',' if len(sizes) == 1 else ''})" for each in (given, large, empty)),
        given=f"({given}{',' if len(sizes) == 1 else ''})",
        dtypes=", ".join(f"torch.{DTYPES[each]}" for each in types),
    )


def _large(formula: Formula) -> tuple[int, ...]:
    """Sizes of which tests take the largest that give no tensor many elements."""
    for sizes in _LARGE:
        given = dict(zip(formula.sizes, sizes, strict=False))
        extents = [[at_sizes(each, given) for each in tensor.extents] for tensor in formula.tensors.values()]
        if max(map(math.prod, extents), default=0) <= _MOST_ELEMENTS:
            return tuple(given.values())
    return tuple(given.values())


def _flags(forward: Forward) -> str:
    """nvcc's options. What somebody else wrote may use the operators and conversions of half types, which torch's
    builder turns off."""
    own = [f"-U__CUDA_NO_{each}__" for each in TURNED_OFF] if forward.is_given else []
    return json.dumps(["-O3", *own])


def _listed(files: dict[str, str]) -> str:
    return ", ".join(f'"{each}"' for each in files if re.fullmatch(r"\w+/csrc/\w+\.(cu|cpp)", each))
