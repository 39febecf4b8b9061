from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.cuda.extension.entries import find_entries, is_extension
from warpwright.cuda.extension.model import Entry
from warpwright.cuda.extension.schema import SchemaError, read_schema
from warpwright.syntax.source import Source

FUNCTIONS = """
#include <torch/extension.h>
namespace ours {
std::tuple<at::Tensor, at::Tensor> both(const torch::Tensor& x, std::optional<at::Tensor> weight, int64_t k,
                                        std::vector<int64_t> dims) { return {x, x}; }
}
torch::Tensor forward(torch::Tensor x, double a, bool flag) { return x; }
void add_(at::Tensor &x, c10::string_view mode) {}
"""


def entries(text: str) -> dict[str, Entry]:
    return {entry.called: entry for entry in find_entries(Source("a.cu", text.encode()))}


def kinds(entry: Entry) -> list[tuple[str, str, bool, str | None]]:
    return [(p.name, p.kind, p.optional, p.default) for p in entry.parameters]


def test_functions_of_a_pybind_module() -> None:
    found = entries(
        FUNCTIONS
        + """PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
          m.doc() = "m.def(\\"not_me\\", &forward)";  // m.def("nor_me", &forward);
          m.def("forward", &forward, "says so", py::arg("input"), py::arg("a") = 2.0, py::arg("flag") = false);
          m.def("both", ours::both).def("add_", &add_);
          m.def("doubled", [](torch::Tensor x) { return x * 2; });
        }"""
    )
    assert list(found) == ["forward", "both", "add_", "doubled"]
    expected = [("input", "tensor", False, None), ("a", "float", False, "2.0"), ("flag", "bool", False, "false")]
    assert kinds(found["forward"]) == expected
    assert found["forward"].line == 7
    assert [kind for _, kind, _, _ in kinds(found["both"])] == ["tensor", "tensor", "int", "ints"]
    assert found["both"].parameters[1].optional
    assert found["add_"].parameters[1].kind == ""
    assert kinds(found["doubled"]) == [("x", "tensor", False, None)]


def test_operators_of_a_library() -> None:
    found = entries(
        FUNCTIONS
        + """TORCH_LIBRARY(ours, m) {
          m.def("scale(Tensor x, *, float a=1.5) -> Tensor");
          m.def("plain", &forward);
          m.def("add_(Tensor(a!) x) -> ()", TORCH_FN(add_));
        }
        TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &forward); }"""
    )
    assert list(found) == ["torch.ops.ours.scale", "torch.ops.ours.plain", "torch.ops.ours.add_"]
    scale = found["torch.ops.ours.scale"]
    assert kinds(scale) == [("x", "tensor", False, None), ("a", "float", False, "1.5")]
    assert scale.parameters[1].keyword_only
    assert scale.function is not None
    assert found["torch.ops.ours.add_"].parameters[0].written
    assert len(found["torch.ops.ours.plain"].parameters) == 3


@pytest.mark.parametrize(
    "text", ["__global__ void k(float* x) {}", "// PYBIND11_MODULE(a, m) {}", "int PYBIND11_MODULE;"]
)
def test_what_is_no_extension(text: str) -> None:
    assert not is_extension(Source("a.cu", text.encode()))


@given(st.text(alphabet="aT(xn)[],*?!=->:_ 1.5\n", max_size=60))
def test_any_text_is_a_schema_or_said_to_be_none(text: str) -> None:
    try:
        name, parameters = read_schema(text)
    except SchemaError as error:
        assert str(error)
    else:
        assert name
        assert parameters is None or all(p.name for p in parameters)


@given(st.text(alphabet='PYBIND11_MODULE(m){.def"f",&;}\n', max_size=80))
def test_half_written_modules_are_read(text: str) -> None:
    find_entries(Source("a.cu", ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {" + text).encode()))
