"""A formula as a package of PyTorch: kernels and operators for the forward and the backward, the Python module that
registers fake kernels and the derivative, what builds it, and its tests.

Example: of `y[r] = sum[c] x[r, c] * w[c]` in f32 and f16 under the name `dot` it has `dot/__init__.py`,
`dot/csrc/dot.cu`, `dot_operator.cpp`, `dot_backward_operator.cpp`, `setup.py`, `pyproject.toml` and
`tests/test_dot.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.formulas.derivative import Derivative, NoDerivativeError, derivative
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
from warpwright.writer.forms import extension_codes
from warpwright.writer.text import Text
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


def wired(text: str, name: str, types: Sequence[str]) -> Wired:
    """Raises FormulaError and NoExtensionError."""
    codes = extension_codes(text, name, types)
    back: Derivative | None = None
    no_backward = ""
    try:
        back = derivative(text)
    except NoDerivativeError as error:
        no_backward = str(error)
    backward = [] if back is None else extension_codes(back.text, f"{name}_backward", types)
    sources = {f"{name}.cu": file_text(*codes), f"{name}_operator.cpp": binding_text(codes, name)}
    if backward:
        sources |= {
            f"{name}_backward.cu": file_text(*backward),
            f"{name}_backward_operator.cpp": binding_text(backward, name),
        }
    files = {f"{name}/csrc/{file}": text for file, text in sources.items()}
    files[f"{name}/__init__.py"] = _module(name, codes, backward, back, no_backward)
    files["setup.py"] = _SETUP.format(name=name, sources=_listed(files))
    files["pyproject.toml"] = _PYPROJECT.format(name=name.replace("_", "-"))
    files[f"tests/test_{name}.py"] = _tests(name, codes, bool(backward), types or ["f32"])
    return Wired(files, "" if back is None else back.text, no_backward)


def _module(
    name: str, codes: Sequence[Code], backward: Sequence[Code], back: Derivative | None, no_backward: str
) -> str:
    formula = codes[0].formula
    text = Text()
    text(f'"""{name}: an operator of PyTorch with its fake kernel{", backward" if backward else ""} and loader."""')
    text()
    text("from pathlib import Path")
    text()
    text("import torch")
    text()
    text()
    text.add(_LOADER.format(name=name).strip("\n").splitlines())
    text()
    text()
    add_fake(text, codes, name)
    text()
    text()
    if backward and back is not None:
        add_fake(text, backward, name)
        text()
        text()
        _autograd(text, name, codes[0], backward[0], back)
    else:
        text(f"# There is no backward: {no_backward}")
        text("# Write one, and register it: torch.library.register_autograd(")
        text(f'#     "{name}::{name}", backward, setup_context=keep)')
        text("# Until then a call that gradients are wanted of raises an error in the backward.")
    if all(each.type == "f32" for each in formula.inputs if TYPES[each.type].is_float) and len(codes) == 1:
        text(f'torch.library.register_autocast("{name}::{name}", "cuda", torch.float32)')
    text()
    text()
    arguments = arguments_of(formula)
    text(f"def {name}({', '.join(arguments)}):")
    lines = printed(parse(formula.text)).splitlines()
    text.depth += 1
    for number, line in enumerate(lines):
        text(f"{'' if number else QUOTES}{line}{QUOTES if number + 1 == len(lines) else ''}")
    made_contiguous = {each.name for each in formula.inputs if each.role == "in" and each.strides is None}
    passed = [f"{each}.contiguous()" if each in made_contiguous else each for each in arguments]
    text(f"return torch.ops.{name}.{name}({', '.join(passed)})")
    text.depth -= 1
    return f"{text}\n"


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
    check = _GRADIENTS if has_backward else ""
    return (_TESTS + check).format(
        name=name,
        names=names,
        tuple_names=f"({names}{',' if len(sizes) == 1 else ''})",
        makers="\n".join(f"        {each}," for each in makers),
        shapes=", ".join(f"({each}{',' if len(sizes) == 1 else ''})" for each in (given, large, empty)),
        given=f"({given}{',' if len(sizes) == 1 else ''})",
        dtypes=", ".join(f"torch.{DTYPES[each]}" for each in types),
    )


def _listed(files: dict[str, str]) -> str:
    return ", ".join(f'"{each}"' for each in files if "/csrc/" in each)


_LOADER = '''
def _load():
    """The library that setup.py built; else it is built here, once, and kept by torch."""
    here = Path(__file__).parent
    built = sorted(here.glob("_C*.so")) + sorted(here.glob("_C*.pyd"))
    if built:
        torch.ops.load_library(str(built[0]))
        return
    from torch.utils.cpp_extension import load

    sources = [str(each) for each in sorted((here / "csrc").iterdir())]
    load(name="{name}_library", sources=sources, is_python_module=False)


_load()
'''
_SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    packages=["{name}"],
    package_data={{"{name}": ["csrc/*"]}},
    ext_modules=[
        CUDAExtension("{name}._C", [{sources}], extra_compile_args={{"cxx": ["-O2"], "nvcc": ["-O3"]}})
    ],
    cmdclass={{"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)}},
)
"""
_PYPROJECT = """\
# pip install --no-build-isolation .   builds it for the torch that is installed.
[build-system]
requires = ["setuptools>=77", "torch>=2.4"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
dependencies = ["torch>=2.4"]
"""
_TESTS = '''\
"""What torch says of {name}: its registration, and its results at small, odd and empty sizes."""

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

import {name} as package

SHAPES = [{shapes}]
TYPES = [{dtypes}]


def arguments({names}, dtype):
    torch.manual_seed(0)
    return (
{makers}
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_strided_argument_changes_nothing(shape, dtype):
    args = arguments(*shape, dtype)
    strided = [e.mT.contiguous().mT if isinstance(e, torch.Tensor) and e.dim() > 1 else e for e in args]
    torch.testing.assert_close(package.{name}(*strided), package.{name}(*args))


@pytest.mark.parametrize("dtype", TYPES)
def test_opcheck(dtype):
    torch.library.opcheck(torch.ops.{name}.{name}.default, arguments(*{given}, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_torch_compile(dtype):
    args = arguments(*{given}, dtype)
    compiled = torch.compile(package.{name}, fullgraph=True)
    torch.testing.assert_close(compiled(*args), package.{name}(*args))
'''
_GRADIENTS = '''

def test_gradients_agree_with_differences():
    """gradcheck in the type of the kernel, so with a step and tolerances for it."""
    args = arguments(*{given}, TYPES[0])
    args = [e.requires_grad_() if isinstance(e, torch.Tensor) and e.is_floating_point() else e for e in args]
    step, tolerance = (1e-6, 1e-4) if TYPES[0] == torch.float64 else (1e-2, 2e-2)
    torch.autograd.gradcheck(package.{name}, args, eps=step, atol=tolerance, rtol=tolerance, nondet_tol=1e-3)
'''
