"""What the harness does with written formulas on a GPU, with the emulator in the GPU's place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="not installed: numpy")
torch = pytest.importorskip("torch", reason="not installed: torch")

from warpwright.emulator.formula_memory import STORED  # noqa: E402
from warpwright.emulator.formulas import compiled, run_code  # noqa: E402
from warpwright.formulas.resolve import formula_of  # noqa: E402
from warpwright.missing import Missing  # noqa: E402
from warpwright.progress import never_cancelled  # noqa: E402
from warpwright.verify import formula_gpu  # noqa: E402
from warpwright.verify.formula_gpu import Checked, Item, cases_for, checked_on  # noqa: E402
from warpwright.verify.harness import Gpu  # noqa: E402
from warpwright.writer.code import Code  # noqa: E402
from warpwright.writer.write import file_text, written  # noqa: E402
from warpwright_harness import formula_checks  # noqa: E402

Launched = Callable[..., int]


class NoLibrary:
    """What is loaded where nothing is."""

    ok = True
    library = Path("/none")
    reason = ""


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Checked]]:
    """The cases of some codes, with `launched` in the place of the launch functions."""

    def run(codes: Mapping[str, Code], formulas: Mapping[str, str], launched: Launched) -> list[Checked]:
        def answered(request: Mapping[str, Any], _is_cancelled: object) -> list[dict[str, Any]]:
            events: list[dict[str, Any]] = []
            formula_checks.check_formulas(json.loads(json.dumps(request)), events.append, lambda: None)
            return [*events, {"event": "done"}]

        monkeypatch.setattr(formula_checks, "DEVICE", "cpu")
        monkeypatch.setattr(formula_checks, "Library", lambda _path: None)
        monkeypatch.setattr(formula_checks, "_launched", launched)
        monkeypatch.setattr(formula_gpu, "run_request", answered)
        monkeypatch.setattr(formula_gpu, "compile_host", lambda *_args, **_more: NoLibrary)
        items = []
        for name, code in codes.items():
            formula = formula_of(formulas[name])
            small = [each for each in cases_for(formula, code, {}, 9) if max(each.sizes.values(), default=0) < 200]
            items.append(Item(formula, code, tuple(small)))
        found = list(checked_on(Gpu("none", "sm_90", {}), items, never_cancelled))
        assert not any(isinstance(each, Missing) for each in found)
        return [each for each in found if isinstance(each, Checked)]

    return run


def emulated(codes: Mapping[str, Code]) -> Launched:
    made = compiled(file_text(*codes.values()))
    assert not isinstance(made, Missing)

    def launched(
        _library: object, formula: Mapping[str, Any], case: Mapping[str, Any], memories: list[Any], numbers: Any
    ) -> int:
        code = codes[formula["name"]]
        places = {each["name"]: memory for each, memory in zip(case["arrays"], memories, strict=True)}
        kinds = {each["name"]: STORED[each["type"]] for each in case["arrays"]}
        held = {name: each.bytes().numpy().view(kinds[name]) for name, each in places.items()}
        own = dict(zip(formula["document"]["scalars"], code.formula.scalars, strict=True))
        scalars = {own[name]: value for name, value in numbers.items()}
        ran = run_code(code, made, held, scalars, dict(zip(code.formula.sizes, case["lengths"], strict=True)))
        assert not isinstance(ran, Missing)
        for name, each in places.items():
            each.bytes().copy_(torch.from_numpy(ran.arrays[name].view(np.uint8)))
        return 0

    return launched


FORMULAS = {
    "softmax": "p[r, c] = exp(x[r, c] - m[r]) / s[r] where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])",
    "half_scalars": "x: f16 y: f16 y[i] = alpha * x[i] + beta",
    "eight": "x: f8e4m3 y: f8e5m2 y[i] = 2 * x[i]",
    "pitched": "x: f32[R, C](ld, 1) y[r, c] = x[r, c] + 1",
    "column": "x: bf16[R, C] column y: bf16 y[r, c] = relu(x[r, c])",
    "structs": "p: f32[N]{x, y} q: f64[N]{a, b} q.a[i] = p.x[i] + p.y[i] q.b[i] = p.x[i] * p.y[i]",
    "histogram": "h: i32[10] h[bins[i]] = sum[i] 1",
    "in_place": "w'[i] = w[i] - lr * g[i]",
    "without_sign": "x: u16 y: u32 z: u32 z[i] = x[i] * y[i] + 7",
    "some_above": "y[r] = any[c] x[r, c] > 2",
    "pairs": "x: c64 y[i] = exp(x[i]) * x[i]",
    "place": "y[r] = argmax[c] x[r, c]",
    "segments": "y[r] = sum[first[r] <= e < first[r + 1]] values[e]",
    "total": "y = sum[i] x[i] ** 2",
}


@pytest.mark.nvcc
def test_formulas_of_all_layouts_and_types_are_right_at_every_case(check: Callable[..., list[Checked]]) -> None:
    codes = {name: written(formula_of(text), name) for name, text in FORMULAS.items()}
    found = check(codes, FORMULAS, emulated(codes))
    assert not [(each.place, each.case, each.wrong) for each in found if each.wrong]
    assert {each.place for each in found} == set(range(len(FORMULAS)))
    assert {each.case.style for each in found} == {"normal", "ties", "nan", "inf"}


def doubled(spoil: Callable[[list[Any]], None]) -> Launched:
    """y = 2 x, and what `spoil` does to the arrays x and y."""

    def launched(
        _library: object, _formula: Mapping[str, Any], case: Mapping[str, Any], memories: list[Any], _numbers: Any
    ) -> int:
        (count,) = case["lengths"]
        source, target = (each.tensor((count,), (1,), 0) for each in memories)
        target.copy_(2 * source)
        if count > 20:
            spoil(memories)
        return 0

    return launched


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda arrays: None, ""),
        (lambda arrays: arrays[1].tensor((1,), (1,), 9).mul_(1.001), "y[9] is"),
        (lambda arrays: arrays[1].tensor((1,), (1,), -1).fill_(0.0), "writes beside the array y"),
        (lambda arrays: arrays[0].tensor((1,), (1,), 3).fill_(0.0), "the input x was changed"),
        (
            lambda arrays: arrays[1].tensor((1,), (1,), 5).view(torch.uint8).fill_(arrays[1].fill),
            "1 of 33 elements of y are not written",
        ),
    ],
    ids=["right", "wrong", "guard", "input", "unwritten"],
)
def test_what_a_kernel_does_wrong_is_said(
    check: Callable[..., list[Checked]], spoil: Callable[[list[Any]], None], reason: str
) -> None:
    formulas = {"y": "y[i] = 2 * x[i]"}
    found = check({"y": written(formula_of(formulas["y"]), "y")}, formulas, doubled(spoil))
    wrong = [each.wrong for each in found if each.wrong]
    assert len(wrong) == (1 if reason else 0)
    assert not reason or reason in wrong[0]
    assert found[-1].wrong == (wrong[0] if wrong else "")
