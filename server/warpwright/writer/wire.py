"""A formula as a package of PyTorch: kernels and operators for the forward and the backward, the Python module that
registers fake kernels and the derivative, what builds it, and its tests.

Example: of `y[r] = sum[c] x[r, c] * w[c]` in f32 and f16 under the name `dot` it has `dot/__init__.py`,
`dot/csrc/dot.cu`, `dot_operator.cpp`, `dot_backward_operator.cpp`, `setup.py`, `pyproject.toml` and
`tests/test_dot.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpwright.formulas.derivative import Derivative, NoDerivativeError, derivative
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed, shown
from warpwright.formulas.types import TYPES
from warpwright.writer.code import Code
from warpwright.writer.extension import (
    DTYPES,
    QUOTES,
    add_fake,
    arguments_of,
    binding_text,
    size_sources,
    unread_sizes,
)
from warpwright.writer.forms import extension_codes, for_python
from warpwright.writer.text import Text
from warpwright.writer.wire_texts import (
    GRADIENTS,
    LOADER,
    NO_GRADIENTS,
    PYPROJECT,
    SETUP,
    STRIDED,
    STUB,
    TESTS,
    TURNED_OFF,
)
from warpwright.writer.write import file_text

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
    sources = {**forward.sources, f"{name}_operator.cpp": binding_text(codes, name)}
    if backward:
        sources |= {
            f"{name}_backward.cu": file_text(*backward),
            f"{name}_backward_operator.cpp": binding_text(backward, name),
        }
    files = {f"{name}/csrc/{file}": text for file, text in sources.items()}
    files[f"{name}/__init__.py"] = _module(name, forward, backward, back, no_backward)
    files["setup.py"] = SETUP.format(name=name, flags=_flags(forward), sources=_listed(files))
    files["pyproject.toml"] = PYPROJECT.format(name=name.replace("_", "-"))
    files[f"tests/test_{name}.py"] = _tests(name, codes, bool(backward), types or ["f32"])
    return Wired(files, "" if back is None else back.text, no_backward)


def _module(name: str, forward: Forward, backward: Sequence[Code], back: Derivative | None, no_backward: str) -> str:
    codes = forward.codes
    formula = codes[0].formula
    text = Text()
    text(f'"""{name}: an operator of PyTorch with its fake kernel{", backward" if backward else ""} and loader."""')
    text()
    text("from pathlib import Path")
    text()
    text("import torch")
    text()
    text()
    text.add(LOADER.format(name=name, flags=_flags(forward)).strip("\n").splitlines())
    text()
    text()
    add_fake(text, codes, name)
    if backward and back is not None:
        text()
        text()
        add_fake(text, backward, name)
        text()
        text()
        _autograd(text, name, codes[0], backward[0], back)
    elif not _written_over(formula):
        text()
        text()
        said = json.dumps(f"{name} has no backward. {no_backward}")
        text.add(STUB.format(name=name, said=said).strip("\n").splitlines())
    floats = [each.type for each in formula.inputs if TYPES[each.type].is_float]
    if len(codes) == 1 and set(floats) == {"f32"} and not _written_over(formula):
        text(f'torch.library.register_autocast("{name}::{name}", "cuda", torch.float32)')
    text()
    text()
    text.add(_function(name, forward))
    return f"{text}\n"


def _function(name: str, forward: Forward) -> list[str]:
    """What users call: it hands arguments to the operator as that takes them."""
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
    taken = {each.name: each for each in formula.inputs}
    passed = [_taken(taken[each], forward.is_flat) if each in taken else each for each in arguments]
    call = f"torch.ops.{name}.{name}({', '.join(passed)})"
    if not forward.is_flat:
        text(f"return {call}")
        return text.lines
    made = [each for each in formula.tensors.values() if each.role == "out"]
    if made:
        text(f"{', '.join(each.name for each in made)} = {call}")
        text(f"return {', '.join(_shaped(each, formula) for each in made)}")
    else:
        text(call)
    return text.lines


def _taken(tensor: Tensor, is_flat: bool) -> str:
    """A tensor as the operator takes it."""
    packed = f"{tensor.name}.contiguous()" if tensor.role == "in" and tensor.strides is None else tensor.name
    return f"{packed}.view(-1)" if is_flat else packed


def _shaped(made: Tensor, formula: Formula) -> str:
    """A result in the shape of the first argument that has as many elements."""
    like = next((each.name for each in formula.inputs if each.extents == made.extents), "")
    return f"{made.name}.view({like}.shape)" if like else made.name


def _written_over(formula: Formula) -> list[str]:
    """The arguments that are changed: an operator that does so has no autograd in torch."""
    return [each.name for each in formula.inputs if each.role == "in-out"]


def _autograd(text: Text, name: str, forward: Code, backward: Code, back: Derivative) -> None:
    """What the forward keeps, and the backward: one call of the other operator."""
    formula, other = forward.formula, backward.formula
    inputs = [each.name for each in formula.inputs]
    gradients = set(back.given.values())
    kept = [each.name for each in other.inputs if each.name not in gradients]
    kept += [each.name for each in formula.inputs if each.name not in kept and _tells(forward, backward, each.name)]
    numbers = [each for each in arguments_of(formula) if each not in inputs]
    text("def _keep(ctx, inputs, output):")
    text.depth += 1
    text(f"{', '.join(arguments_of(formula))}{',' if len(arguments_of(formula)) == 1 else ''} = inputs")
    text(f"ctx.save_for_backward({', '.join(kept)})")
    for each in numbers:
        text(f"ctx.{each} = {each}")
    text.depth -= 1
    text()
    text()
    results = [each.name for each in formula.tensors.values() if each.role == "out"]
    text(f"def _backward(ctx, {', '.join(back.given.get(each, f'_{each}_grad') for each in results)}):")
    text.depth += 1
    if kept:
        text(f"{', '.join(kept)}{',' if len(kept) == 1 else ''} = ctx.saved_tensors")
    passed = []
    sources = size_sources(formula)
    for each in arguments_of(other):
        if each in gradients:
            passed.append(f"{each}.contiguous()")
        elif each in unread_sizes(other) and each in sources:
            passed.append(f"{sources[each][0]}.size({sources[each][1]})")
        else:
            passed.append(f"ctx.{each}" if each in numbers else each)
    made = [each.name for each in other.tensors.values() if each.role == "out"]
    text(f"{', '.join(made)} = torch.ops.{name}.{name}_backward({', '.join(passed)})")
    text(f"return {', '.join(back.made.get(each, 'None') for each in arguments_of(formula))}")
    text.depth -= 1
    text()
    text()
    text(f'torch.library.register_autograd("{name}::{name}", _backward, setup_context=_keep)')


def _tells(forward: Code, backward: Code, tensor: str) -> bool:
    """Whether a size that the backward is handed is one of this tensor's."""
    sources = size_sources(forward.formula)
    return any(sources.get(size, ("", 0))[0] == tensor for size in unread_sizes(backward.formula))


def _tests(name: str, codes: Sequence[Code], has_backward: bool, types: Sequence[str]) -> str:
    formula = codes[0].formula
    sizes = {size: TEST_EXTENT + number for number, size in enumerate(formula.sizes)}
    makers = []
    for each in formula.inputs:
        extents = ", ".join(shown(extent) for extent in each.extents)
        shape = f"({extents}{',' if len(each.extents) == 1 else ''})"
        kind = each.type
        if TYPES[kind].is_float:
            cast = "dtype" if len(codes) > 1 and len({c.formula.tensors[each.name].type for c in codes}) > 1 else ""
            makers.append(f'torch.randn({shape}, device="cuda").to({cast or f"torch.{DTYPES[kind]}"})')
        else:
            makers.append(f'torch.zeros({shape}, device="cuda", dtype=torch.{DTYPES[kind]})')
    makers += unread_sizes(formula)
    makers += ["1" if TYPES[kind].kind == "integer" else "0.5" for kind in formula.scalars.values()]
    names = ", ".join(sizes)
    given = ", ".join(str(size) for size in sizes.values())
    large = ", ".join(str(each) for each in (1237, 853, 61, 37, 19)[: len(sizes)])
    empty = ", ".join("0" for _ in sizes)
    is_smooth = any(TYPES[each.type].is_float for each in formula.inputs)
    check = GRADIENTS if has_backward else NO_GRADIENTS if is_smooth else ""
    layouts = any(len(each.extents) > 1 and each.strides is None for each in formula.inputs)
    strided = STRIDED.format(name=name) if layouts and not _written_over(formula) else ""
    return (TESTS + check).format(
        strided=strided,
        name=name,
        names=names,
        tuple_names=f"({names}{',' if len(sizes) == 1 else ''})",
        makers="\n".join(f"        {each}," for each in makers),
        shapes=", ".join(f"({each}{',' if len(sizes) == 1 else ''})" for each in (given, large, empty)),
        given=f"({given}{',' if len(sizes) == 1 else ''})",
        dtypes=", ".join(f"torch.{DTYPES[each]}" for each in types),
    )


def _flags(forward: Forward) -> str:
    """nvcc's options. What somebody else wrote may use the operators and conversions of half types, which torch's
    builder turns off."""
    own = [f"-U__CUDA_NO_{each}__" for each in TURNED_OFF] if forward.is_given else []
    return json.dumps(["-O3", *own])


def _listed(files: dict[str, str]) -> str:
    return ", ".join(f'"{each}"' for each in files if re.fullmatch(r"\w+/csrc/\w+\.(cu|cpp)", each))
