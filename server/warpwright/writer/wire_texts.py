"""The files of a package of PyTorch, but for what follows from its formula."""

from __future__ import annotations

TURNED_OFF = ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS", "BFLOAT16_CONVERSIONS")
LOADER = '''
def _load():
    """The library that setup.py built; else it is built here, once, and kept by torch."""
    here = Path(__file__).parent
    built = sorted(here.glob("_C*.so")) + sorted(here.glob("_C*.pyd"))
    if built:
        torch.ops.load_library(str(built[0]))
        return
    from torch.utils.cpp_extension import load

    sources = [str(each) for each in sorted((here / "csrc").iterdir()) if each.suffix in (".cu", ".cpp")]
    load(name="{name}_library", sources=sources, extra_cuda_cflags={flags}, is_python_module=False)


_load()
'''
SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    packages=["{name}"],
    package_data={{"{name}": ["csrc/**/*"]}},
    ext_modules=[
        CUDAExtension("{name}._C", [{sources}], extra_compile_args={{"cxx": ["-O2"], "nvcc": {flags}}})
    ],
    cmdclass={{"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)}},
)
"""
PYPROJECT = """\
# pip install --no-build-isolation .   builds it for the torch that is installed.
[build-system]
requires = ["setuptools>=77", "torch>=2.7"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
dependencies = ["torch>=2.7"]
"""
TESTS = '''\
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


def ran(call, args):
    """What a call returns, and its tensors as it leaves them."""
    args = [each.clone() if isinstance(each, torch.Tensor) else each for each in args]
    result = call(*args)
    results = result if isinstance(result, tuple) else (result,)
    return [each for each in (*results, *args) if isinstance(each, torch.Tensor)]


{strided}@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_it_gives_the_same_twice(shape, dtype):
    args = arguments(*shape, dtype)
    torch.testing.assert_close(ran(package.{name}, args), ran(package.{name}, args), equal_nan=True{tolerance})


@pytest.mark.parametrize("dtype", TYPES)
def test_opcheck(dtype):
    torch.library.opcheck(torch.ops.{name}.{name}.default, arguments(*{given}, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_torch_compile(dtype):
    args = arguments(*{given}, dtype)
    compiled = torch.compile(package.{name}, fullgraph=True)
    torch.testing.assert_close(ran(compiled, args), ran(package.{name}, args), equal_nan=True{tolerance})
'''
STRIDED = """\
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_strided_argument_changes_nothing(shape, dtype):
    args = arguments(*shape, dtype)
    strided = [e.mT.contiguous().mT if isinstance(e, torch.Tensor) and e.dim() > 1 else e for e in args]
    torch.testing.assert_close(package.{name}(*strided), package.{name}(*args), equal_nan=True)


"""
NO_GRADIENTS = """

def test_gradients_are_refused():
    args = arguments(*{given}, TYPES[0])
    for each in args:
        if isinstance(each, torch.Tensor) and each.is_floating_point():
            each.requires_grad_()
    with pytest.raises(NotImplementedError):
        result = package.{name}(*args)
        sum(each.sum() for each in (result if isinstance(result, tuple) else (result,))).backward()
"""
GRADIENTS = '''

def test_gradients_agree_with_differences():
    """gradcheck in the type of the kernel, so with a step and tolerances for it."""
    args = arguments(*{given}, TYPES[0])
    args = [e.requires_grad_() if isinstance(e, torch.Tensor) and e.is_floating_point() else e for e in args]
    step, tolerance = (1e-6, 1e-4) if TYPES[0] == torch.float64 else (1e-2, 2e-2)

    def finite(*args):
        results = package.{name}(*args)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(each.where(each.isfinite(), 0) for each in results if each.is_floating_point())

    torch.autograd.gradcheck(finite, args, eps=step, atol=tolerance, rtol=tolerance, nondet_tol=1e-3)
'''
