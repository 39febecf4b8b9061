"""Files of PyTorch, exported in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.verify.torch_export import NotExportedError, plan_of

pytest.importorskip("torch")

MODULE = """
import torch
print("a line on the standard output")
class Model(torch.nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.linear = torch.nn.Linear(wide, 100000)
    def forward(self, x):
        return torch.relu(self.linear(x)).sum(1)
def scaled(x, y):
    return x * 2 + y
def get_init_inputs():
    return [200000]
def get_inputs():
    return [torch.rand(64, 200000)]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


def test_a_module_is_exported_without_memory_for_its_parameters(file: Path) -> None:
    made = plan_of(file, "Model")  # its weights alone would take 80 GB
    assert [(each.kind, each.target) for each in made.inputs] == [
        ("parameter", "linear.weight"), ("parameter", "linear.bias"), ("user_input", ""),
    ]  # fmt: skip
    assert "sum[k] x[i, k] * linear_weight[j, k]" in made.formulas[0].text
    assert not made.calls


def test_a_function_takes_examples_and_sizes_of_run_time(file: Path) -> None:
    made = plan_of(file, "scaled", inputs=["f32[3, 4]", "f32[4]"], run_time_sizes=True)
    (part,) = made.formulas
    assert "x[i, j] * 2 + y[j]" in part.text
    assert "[3, 4]" not in part.text


def test_one_tensor_that_is_handed_over_twice_is_two_inputs() -> None:
    import torch
    from warpwright_harness.exported import apart, called, document, exported

    x = torch.zeros(3)
    module = called(lambda a, b: a + 2 * b)
    graph = document(exported(module, apart([x, x]), "f"))
    assert [each["value"] for node in graph["nodes"] for each in node["args"] if isinstance(each, dict)][:1] == ["b"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "inputs", "said"),
    [
        ("missing", [], "Nothing is called missing in model.py."),
        ("scaled", ["f32(3)"], "'f32(3)' is no example input: write a type and extents, as f32[64, 128]."),
        ("scaled", ["f32[3]", "f32[4]"], "torch.export does not take model.py::scaled: "),
        ("MODULE", [], "Nothing is called MODULE in model.py."),
    ],
)
def test_what_is_wrong_is_one_sentence(file: Path, name: str, inputs: list[str], said: str) -> None:
    with pytest.raises(NotExportedError) as error:
        plan_of(file, name, inputs=inputs)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_file_that_does_not_run_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import nowhere_to_be_found\n", encoding="utf-8")
    with pytest.raises(NotExportedError, match=r"^broken.py does not run: No module named 'nowhere_to_be_found'\.$"):
        plan_of(path, "f")
