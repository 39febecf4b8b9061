"""Kernels as packages of PyTorch: what is written, and what is not shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.progress import never_cancelled
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.verify import wire
from warpwright.verify.given_kernel import NotWiredError, flat_codes, given
from warpwright.verify.wire import Asked, WiredKernel, wired_kernel
from warpwright.writer.given import given_file
from warpwright.writer.wire import Forward, packaged

SCALE = """\
template <typename T>
__global__ void scale(const T* in, const T* w, T* out, int rows, int cols, T a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) out[i] = T(float(a) * float(in[i]) * float(w[i % cols]));
}
void run(const float* in, const float* w, float* out, int rows, int cols) {
    scale<float><<<(rows * cols + 255) / 256, 256>>>(in, w, out, rows, cols, 2.0f);
}
"""
FORMULA = "out[r, c] = a * in[r, c] * w[c]"
ADD = """\
__global__ void add_kernel(const float4* x, float* total, int n, int radius) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) total[i] += x[i].x + radius;
}
void run(const float4* x, float* total, int n) { add_kernel<<<dim3(1, (n + 127) / 128), 128>>>(x, total, n, 3); }
"""


def wired(text: str, path: Path, **asked: object) -> WiredKernel:
    program = analyze(Source(str(path), encoded(text)))
    (kernel,) = program.defined_kernels
    return wired_kernel(program, kernel, Asked("made", **asked), lambda *_: None, never_cancelled)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_gpu_for_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building one takes a minute."""
    monkeypatch.setattr(wire, "package_tests", lambda *_: "not tested")


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "find_torch", lambda: Missing("torch", "There is no torch.", ""))


@pytest.mark.nvcc
@pytest.mark.usefixtures("no_torch")
def test_a_template_is_an_operator_for_each_type_that_computes_its_formula(tmp_path: Path) -> None:
    made = wired(SCALE, tmp_path / "scale.cu", formula=FORMULA, types=("f32", "f16"))
    assert {name: report.status.value for name, report in made.reports.items()} == dict.fromkeys(
        (*made.types, "backward"), "correct"
    )
    files = made.package.files
    assert files["made/csrc/source/scale.cu"] == SCALE
    assert "scale<__half><<<" in files["made/csrc/made.cu"]
    assert "return {in__grad, w_grad, at::Tensor()};" in files["made/csrc/made_autograd.cpp"]
    for name, text in files.items():
        if name.endswith(".py"):
            compile(text, name, "exec")


@pytest.mark.nvcc
@pytest.mark.usefixtures("no_torch")
def test_what_computes_another_formula_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(NotWiredError, match=r"scale does not compute the formula. At R = 1, C = 1"):
        wired(SCALE, tmp_path / "scale.cu", formula=FORMULA, types=("f64",))


def test_the_launch_of_a_kernel_without_a_formula() -> None:
    program = analyze(Source("add.cu", encoded(ADD)))
    (kernel,) = program.defined_kernels
    problem = find_problem(program, kernel)
    assert not isinstance(problem, Missing)
    codes = flat_codes(given(kernel, problem), "add", ["f32"])
    assert given_file(codes, "source/add.cu").partition("CUDA's.\n\n")[2] == (
        'extern "C" cudaError_t add_f32(const float* x, float* total, long long n, cudaStream_t stream) {\n'
        "    if (n < 0 || n > INT_MAX) return cudaErrorInvalidValue;\n"
        "    if (reinterpret_cast<uintptr_t>(x) % 16 != 0) return cudaErrorMisalignedAddress;\n"
        "    const long long blocks = (n + 127) / 128;\n"
        "    if (blocks == 0) return cudaSuccess;\n"
        "    if (blocks > 65535) return cudaErrorInvalidValue;\n"
        "    add_kernel<<<dim3(1, static_cast<unsigned>(blocks)), 128, 0, stream>>>(\n"
        "            reinterpret_cast<const float4*>(x), total, static_cast<int>(n), 3);\n"
        "    return cudaGetLastError();\n"
        "}\n"
    )
    files = packaged(Forward(codes, {}, ["add"], is_flat=True), "add", "", ["f32"]).files
    module, operator = files["add/__init__.py"], files["add/csrc/add_operator.cpp"]
    assert 'raise NotImplementedError("add has no backward: it writes over total.")' in module
    assert "_operator = torch.ops.add.add" in module and "return _operator(x, total)" in module
    assert "const at::Tensor x = x_given.contiguous();" in operator
    assert 'TORCH_CHECK(total.is_contiguous(), "total must be contiguous.");' in operator
    assert "const int64_t n = total.numel();" in operator
    assert "register_autocast" not in module


def test_a_vector_parameter_is_cast_to_where_a_problem_counts_numbers() -> None:
    path = Path(__file__).parents[2] / "csrc_samples/compute/nbody_forces/kernel.cu"
    program = analyze(Source(str(path), path.read_bytes()))
    (kernel,) = program.defined_kernels
    problem = find_problem(program, kernel)
    assert not isinstance(problem, Missing)
    text = given_file(flat_codes(given(kernel, problem), "nbody", ["f32"]), "kernel.cu")
    assert "if (reinterpret_cast<uintptr_t>(bodies) % 16 != 0) return cudaErrorMisalignedAddress;" in text
    assert "reinterpret_cast<const float4*>(bodies)" in text


@pytest.mark.nvcc
@pytest.mark.usefixtures("no_torch")
def test_what_a_kernel_adds_up_is_a_result_that_begins_at_zero(tmp_path: Path) -> None:
    text = (
        "namespace mine {\n__global__ void total(const float* x, float* out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) atomicAdd(out, x[i]);\n}\n}\n"
    )
    made = wired(text, tmp_path / "total.cu", formula="out = sum[i] x[i]")
    assert made.reports["f32"].status.value == "correct"
    assert "at::Tensor out = at::zeros(" in made.package.files["made/csrc/made_operator.cpp"]
    assert "mine::total<<<" in made.package.files["made/csrc/made.cu"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("struct P { float* x; int n; };\n__global__ void k(P p) { p.x[threadIdx.x] = p.n; }", "k takes p, which is a"),
        ("__global__ void k(float* x) { x[threadIdx.x] = 1; }", "k reads no array, so nothing says on which GPU"),
        (
            "__global__ void k(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x]; }\n"
            "void run(float* x, float* y, int n) { k<<<1, n>>>(x, y, n); }",
            "The block of k's launch depends on sizes",
        ),
    ],
    ids=["struct", "no input", "block"],
)
def test_a_kernel_that_no_operator_can_launch_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(NotWiredError, match=reason):
        wired(text, tmp_path / "k.cu")


def test_a_formula_of_other_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotWiredError, match="The formula has no array w: give arrays the names of scale's parameters"):
        wired(SCALE, tmp_path / "scale.cu", formula="out[i] = a * in[i]")


@pytest.mark.slow
@pytest.mark.nvcc
def test_the_operator_compiles_and_torch_takes_its_python_side(tmp_path: Path) -> None:
    """With the arithmetic in torch's own operators in place of the kernel, as there is no GPU."""
    pytest.importorskip("torch")
    made = wired(SCALE, tmp_path / "scale.cu", types=("f32",))
    assert not [note for note in made.notes if "operator" in note]
    module = made.package.files["made/__init__.py"].replace("\n_load()\n", "\n")
    (tmp_path / "made.py").write_text(module, encoding="utf-8")
    (tmp_path / "check.py").write_text(CHECK, encoding="utf-8")
    ran = subprocess.run([sys.executable, "check.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["(3,", "5)"]


CHECK = """
import torch

torch.library.define("made::made", "(Tensor in_, Tensor w, SymInt rows, float a) -> Tensor")
torch.library.impl("made::made", "CPU")(lambda x, w, rows, a: (a * x.reshape(-1) * w.repeat(rows)).view(x.shape))
import made

x, w = torch.randn(3, 5), torch.randn(5)
torch.library.opcheck(torch.ops.made.made.default, (x, w, 3, 2.0))
y = made.made(x, w, 3, 2.0)
torch.testing.assert_close(y, 2 * x * w)
print(tuple(y.shape))
"""
