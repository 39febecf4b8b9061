"""A formula as a package of PyTorch: what torch says of its Python side, with the formulas as CPU kernels."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from warpwright.writer.wire import wired

SOFTMAX = (
    "y[r, c] = exp(x[r, c] - m[r]) / s[r] * w[c] * scale where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])"
)


def test_the_files_of_a_package() -> None:
    made = wired(SOFTMAX, "softmax", ["f32", "bf16"])
    assert sorted(made.files) == [
        "pyproject.toml", "setup.py", "softmax/__init__.py", "softmax/csrc/softmax.cu",
        "softmax/csrc/softmax_autograd.cpp", "softmax/csrc/softmax_backward.cu",
        "softmax/csrc/softmax_backward_operator.cpp",
        "softmax/csrc/softmax_operator.cpp", "softmax_inline.py", "tests/test_softmax.py",
    ]  # fmt: skip
    for file, text in made.files.items():
        if file.endswith(".py"):
            compile(text, file, "exec")
    assert "at::kBFloat16" in made.files["softmax/csrc/softmax_backward_operator.cpp"]
    assert "TYPES = [torch.float32, torch.bfloat16]" in made.files["tests/test_softmax.py"]


@pytest.mark.parametrize("text", [SOFTMAX, "y[i] = sum[k] h[k] * x[i + k]", "n: i32 y[i] = x[i] * n"])
def test_autograd_calls_operators_by_the_types_that_they_have(text: str) -> None:
    """torch refuses to load kernels of one operator whose types differ; a size may be symbolic above the kernels."""
    made = wired(text, "made", ["f32"]).files
    called = re.findall(r"\.typed<(.*?)>\(\);", made["made/csrc/made_autograd.cpp"], re.DOTALL)
    for each, name in zip(called, ("made", "made_backward"), strict=True):
        operator = made[f"made/csrc/{name}_operator.cpp"]
        found = re.search(rf"^([^\n]*\S) {name}_operator\((.*?)\) {{", operator, re.DOTALL | re.MULTILINE)
        assert found is not None
        result, taken = found.groups()
        types = ", ".join(part.strip().rpartition(" ")[0] for part in taken.split(","))
        wanted = re.sub(r"\s+", " ", each.replace("c10::SymInt", "int64_t")).replace("( ", "(")
        assert wanted == f"{result}({types})"


def test_autograd_keeps_arguments_by_the_names_that_they_have() -> None:
    made = wired("y[r] = sum[k] values[r, k] * x[columns[r, k]]", "sparse", ["f32"]).files
    assert "ctx->save_for_backward({x, columns, values_});" in made["sparse/csrc/sparse_autograd.cpp"]
    counted = wired("ids: i32 n[r] = sum[k] ids[r, k]", "counted", ["f32"]).files
    assert "counted/csrc/counted_autograd.cpp" not in counted


def test_a_formula_without_a_derivative_has_a_stub_that_says_so() -> None:
    made = wired("y[r] = prod[c] x[r, c]", "product", [])
    assert made.no_backward == "The derivative of prod is not written."
    autograd = made.files["product/csrc/product_autograd.cpp"]
    assert 'false, "product has no backward. The derivative of prod is not written.");' in autograd
    assert "gradcheck" not in made.files["tests/test_product.py"]


@pytest.mark.slow
def test_opcheck_and_gradcheck_take_what_autograd_is_told(tmp_path: Path) -> None:
    """With the formulas as CPU kernels, in one process for all of them."""
    pytest.importorskip("torch")
    pytest.importorskip("numpy")
    formulas = {
        "softmax": SOFTMAX,
        "rowsum": "y[r] = sum[c] x[r, c]",
        "look_up": "y[t, c] = table[ids[t], c]",
        "both": "u[i] = sin(x[i]), v[i] = u[i] * z[i]",
        "product": "y[r] = prod[c] x[r, c]",
    }
    headers: dict[str, None] = {}
    sources: list[str] = []
    for name, text in formulas.items():
        made = wired(text, name, ["f64"])
        module = made.files[f"{name}/__init__.py"]
        (tmp_path / f"{name}.py").write_text(module.replace("\n_load()\n", "\n"), encoding="utf-8")
        (tmp_path / f"{name}.formula").write_text(text, encoding="utf-8")
        (tmp_path / f"{name}_backward.formula").write_text(made.backward, encoding="utf-8")
        lines = made.files[f"{name}/csrc/{name}_autograd.cpp"].splitlines()
        headers |= dict.fromkeys(line for line in lines if line.startswith("#include"))
        sources += [f"namespace of_{name} {{", *(line for line in lines if line not in headers), "}"]
    (tmp_path / "autograd.cpp").write_text("\n".join([*headers, *sources]), encoding="utf-8")
    (tmp_path / "check.py").write_text(CHECK, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "check.py", *formulas], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == list(formulas)


CHECK = """
import importlib
import sys
from pathlib import Path
import torch
from torch.utils.cpp_extension import load
from warpwright.formulas.numpy_reference import evaluate
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.variants import in_type
from warpwright.writer.extension import arguments_of, schema
from warpwright.writer.write import written

def register(library, name):
    formula = formula_of(in_type(Path(name + ".formula").read_text(), "f64"))
    torch.library.define(f"{library}::{name}", schema(written(formula, name)).removeprefix(name))
    def kernel(*args):
        given = dict(zip(arguments_of(formula), args))
        arrays = {each.name: given[each.name].numpy() for each in formula.inputs}
        rest = {key: value for key, value in given.items() if key not in arrays}
        made = evaluate(formula, arrays, rest, {key: rest[key] for key in formula.sizes if key in rest})
        results = [torch.from_numpy(made[e.name]) for e in formula.tensors.values() if e.role == "out"]
        return results[0] if len(results) == 1 else tuple(results)
    torch.library.impl(f"{library}::{name}", "CPU")(kernel)

def double(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

ARGUMENTS = {
    "softmax": (double(3, 5), double(5), 2.0), "product": (double(3, 5),), "rowsum": (double(3, 5),),
    "look_up": (double(4, 3), torch.tensor([0, 2, 2], dtype=torch.int32)), "both": (double(4), double(4)),
}
load("autograd", ["autograd.cpp"], extra_cflags=["-O0"], build_directory=".", is_python_module=False)
for name in sys.argv[1:]:
    register(name, name)
    has_backward = Path(name + "_backward.formula").stat().st_size
    if has_backward:
        register(name, name + "_backward")
    module = importlib.import_module(name)
    args = ARGUMENTS[name]
    plain = tuple(each.detach() if isinstance(each, torch.Tensor) else each for each in args)
    torch.library.opcheck(getattr(getattr(torch.ops, name), name).default, args if has_backward else plain)
    call = getattr(module, name)
    assert not torch.compile(call, fullgraph=True, backend="eager")(*plain)[0].requires_grad
    if has_backward:
        torch.autograd.gradcheck(call, args)
    else:
        try:
            call(*args).sum().backward()
        except NotImplementedError as error:
            assert "has no backward. The derivative of prod" in str(error)
    print(name)
"""
