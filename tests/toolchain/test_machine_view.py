"""What the compiler made of each line, with its marks, of what nvcc makes for two architectures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin, compile_ptx
from warpwright.toolchain.machine_lines import MachineLines, Variant, lines_json, machine_lines, read_lines
from warpwright.toolchain.machine_view import (
    KernelCode,
    MachineAccess,
    MachineView,
    Mark,
    called,
    machine_view,
    view_json,
)
from warpwright.toolchain.opcodes import Family

TEXT = """\
#include <mma.h>
__device__ __noinline__ float far(float x, int n) { for (int i = 0; i < n; i++) x = x / (x + 1.0f); return x; }
__device__ __forceinline__ double mix(double a, float b) {
    return a * b + 0.5;
}
__global__ void k(const float* a, float* b, double* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    reinterpret_cast<float4*>(b)[i + n] = reinterpret_cast<const float4*>(a)[i];
    d[i] = mix(d[i], a[i]);
    b[i] = far(a[i], n);
}
template <typename T> __global__ void scaled(T* x) { x[threadIdx.x] *= T(2.5); }
template __global__ void scaled<float>(float*);
template __global__ void scaled<double>(double*);
__global__ void same(float* x) {
    x[threadIdx.x] = 1;
}
"""


@pytest.fixture(scope="module", params=["sm_75", "sm_120"])
def view(request: pytest.FixtureRequest, path: Path) -> MachineView:
    source = Source(str(path), TEXT.encode())
    compiled = compile_cubin(source, arch=request.param)
    assert compiled.ok, compiled.reason
    found = machine_view(compiled, compile_ptx(source, arch=request.param))
    assert not isinstance(found, Missing)
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machine view") / "k.cu"


@pytest.fixture
def lines(view: MachineView, path: Path) -> MachineLines:
    return machine_lines(view, {str(path)})


def kernel(view: MachineView, name: str) -> KernelCode:
    return next(each for each in view.kernels if each.name == name)


def only(variants: tuple[Variant, ...]) -> Variant:
    (variant,) = variants
    return variant


@pytest.mark.sass
def test_kernels_stand_in_the_order_of_the_text(view: MachineView) -> None:
    assert [each.name for each in view.kernels] == ["k", "scaled<double>", "scaled<float>", "same"]


@pytest.mark.sass
def test_a_vector_access_is_wide(lines: MachineLines, path: Path) -> None:
    code = only(lines.at(str(path), 9)).code
    assert code.accesses == ((MachineAccess("global", "load", 16), 1), (MachineAccess("global", "store", 16), 1))
    assert dict(code.marks)[Mark.WIDE] == 2


@pytest.mark.sass
def test_double_precision_is_at_the_function_and_where_it_was_inlined(lines: MachineLines, path: Path) -> None:
    inside, outside = only(lines.at(str(path), 4)).code, only(lines.at(str(path), 10)).code
    assert {"F2F.F64.F32", "DFMA"} <= set(inside.doubles)
    assert set(inside.doubles) <= set(outside.doubles)
    assert outside.inlined == inside.sass
    assert inside.inlined == 0
    assert (MachineAccess("global", "load", 8), 1) in outside.accesses


@pytest.mark.sass
def test_a_call_names_its_function(lines: MachineLines, path: Path) -> None:
    code = only(lines.at(str(path), 11)).code
    assert code.calls == ("far",)
    assert dict(code.marks)[Mark.CALL] == 1


@pytest.mark.sass
def test_a_branch_that_is_no_branch_is_predicated(lines: MachineLines, path: Path) -> None:
    assert dict(only(lines.at(str(path), 8)).code.marks)[Mark.PREDICATED] == 1


@pytest.mark.sass
def test_instances_of_a_template_on_one_line_are_apart(lines: MachineLines, path: Path) -> None:
    """nvdisasm prints no place where a kernel begins at the line at which the one before ended."""
    variants = {variant.kernels: variant.code for variant in lines.at(str(path), 13)}
    assert set(variants) == {("scaled<float>",), ("scaled<double>",)}
    for names, width in ((("scaled<float>",), 4), (("scaled<double>",), 8)):
        assert variants[names].accesses == (
            (MachineAccess("global", "load", width), 1),
            (MachineAccess("global", "store", width), 1),
        )
    assert dict(variants["scaled<double>",].marks)[Mark.FP64] == 1
    assert Mark.FP64 not in dict(variants["scaled<float>",].marks)


@pytest.mark.sass
def test_every_instruction_of_the_kernel_itself_has_a_line(view: MachineView) -> None:
    for each in view.kernels:
        assert all(step.instruction.places for step in each.sass if not step.instruction.function)
        assert not each.families()[Family.OTHER]


@pytest.mark.sass
def test_what_is_called_lies_behind_the_kernel_and_names_its_function(view: MachineView) -> None:
    code = kernel(view, "k")
    functions = {step.instruction.function for step in code.sass}
    assert any("far" in name for name in functions)
    assert "far" in {called(step) for step in code.sass if Mark.CALL in step.marks}
    assert any("far" in each.function for each in code.ptx)


@pytest.mark.sass
def test_lines_survive_json(lines: MachineLines) -> None:
    assert read_lines(json.loads(json.dumps(lines_json(lines)))) == lines


@pytest.mark.sass
def test_the_whole_view_is_json(view: MachineView) -> None:
    document = json.loads(json.dumps(view_json(view)))
    assert [each["name"] for each in document["kernels"]] == [each.name for each in view.kernels]
    for each, code in zip(document["kernels"], view.kernels, strict=True):
        assert sum(each["families"].values()) == len(each["sass"]) == len(code.sass)


@pytest.mark.sass
def test_a_line_that_became_nothing_has_no_code(lines: MachineLines, path: Path) -> None:
    assert lines.at(str(path), 1) == ()
    assert lines.at("/elsewhere.cu", 9) == ()
