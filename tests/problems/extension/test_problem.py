from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.missing import Missing
from warpwright.problems.extension.model import ExtensionProblem
from warpwright.problems.extension.problem import find_extension_problem
from warpwright.syntax.source import Source

PARAMETERS = "torch::Tensor x, torch::Tensor index, double eps, int64_t k, std::vector<int64_t> dims, bool on"


def text(directives: str = "", parameters: str = PARAMETERS) -> str:
    return (
        f"{directives}\ntorch::Tensor forward({parameters}) {{ return x; }}\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }\n'
    )


DIRECTIVES = """// warpwright: tensor x[n, m] half
// warpwright: tensor index[n] int64 index(m)
// warpwright: scalar eps = 1e-5
// warpwright: scalar k = n / 2
// warpwright: scalar dims = 1, 0
// warpwright: scalar on = true
// warpwright: shape n=4096 m=100"""


def problem(tmp_path: Path, source: str, document: str = "") -> ExtensionProblem | Missing:
    if document:
        (tmp_path / "sample.toml").write_text(document, encoding="utf-8")
    return find_extension_problem(Source(str(tmp_path / "a.cu"), source.encode()))


def test_comments_above_the_function_say_everything(tmp_path: Path) -> None:
    found = problem(tmp_path, text(DIRECTIVES))
    assert isinstance(found, ExtensionProblem)
    assert found.symbols == ("n", "m")
    call = {argument["name"]: argument for argument in found.call({"n": 8, "m": 3})}
    assert (call["x"]["scalar"], call["x"]["sizes"], call["index"]["limit"]) == ("float16", [8, 3], 3)
    assert [call[name]["value"] for name in ("eps", "k", "dims", "on")] == [1e-5, 4, [1, 0], True]
    assert found.bytes({"n": 8, "m": 3}) == 8 * 3 * 2 + 8 * 8
    assert {"n": 4096, "m": 100} in found.check


def test_a_document_goes_before_comments(tmp_path: Path) -> None:
    document = """
    [extension.forward]
    time = [{ n = 64, m = 7 }]
    [extension.forward.arguments]
    x = { type = "float64", shape = ["n", "m", 2] }
    eps = 0.5
    """
    found = problem(tmp_path, text(DIRECTIVES), document)
    assert isinstance(found, ExtensionProblem)
    assert found.time == ({"n": 64, "m": 7},)
    assert found.tensors[0].scalar == "float64"
    assert found.call({"n": 1, "m": 1})[0]["sizes"] == [1, 1, 2]
    assert found.call({"n": 1, "m": 1})[2]["value"] == 0.5


def test_what_is_missing_is_said_with_the_lines_to_add(tmp_path: Path) -> None:
    found = problem(tmp_path, text(parameters="torch::Tensor x, const at::Tensor& y"))
    assert isinstance(found, Missing)
    assert "nothing says which shape x and y have" in found.reason
    assert "`// warpwright: tensor x[n] float` and `// warpwright: tensor y[n] float`" in found.advice


@pytest.mark.parametrize(
    ("directives", "said"),
    [
        ("// warpwright: tensor x[n +] float", "a.cu:1"),
        ("// warpwright: tensor x[n] struct", "which no tensor holds"),
        ("// warpwright: tensor z[n] float", "no parameter `z`"),
        ("// warpwright: tensor x[n] float\n// warpwright: scalar x = 1", ""),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, directives: str, said: str) -> None:
    found = problem(tmp_path, text(directives, "torch::Tensor x"))
    assert isinstance(found, Missing) == bool(said)
    assert said in str(found)


def test_optional_tensors_are_left_out_and_defaults_taken(tmp_path: Path) -> None:
    source = (
        "// warpwright: tensor x[n]\nat::Tensor f(at::Tensor x, std::optional<at::Tensor> bias, double eps) {}\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, py::arg("x"), py::arg("bias") = py::none(), '
        'py::arg("eps") = 1e-5); }'
    )
    found = problem(tmp_path, source)
    assert isinstance(found, ExtensionProblem)
    assert [argument.get("value") for argument in found.call({"n": 4})] == [None, None, 1e-5]
    assert found.notes == ("bias was left out: nothing says what it is",)


def test_a_broken_document_is_named(tmp_path: Path) -> None:
    found = problem(tmp_path, text(DIRECTIVES), "[extension.forward]\nshapes = 1\n")
    assert isinstance(found, Missing)
    assert "unknown key `shapes`" in found.reason
