"""torch-check: a kernel that does not run is found in the check that provokes it, with its line; a sound one passes."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import run_command
from warpwright.verify.torch_check import CHECKS

torch = pytest.importorskip("torch")

from warpwright_harness.pytest_plugin import assert_runs  # noqa: E402
from warpwright_harness.torch_check import cause, checks, subject, target, variants  # noqa: E402
from warpwright_harness.torch_check.seen import Seen  # noqa: E402

OPERATORS = str(Path(__file__).with_name("torch_ops.py"))
QUICK = ("repeated", "inference mode", "backward", "gradcheck", "float16", "autocast bfloat16", "odd sizes", "empty",
         "non-contiguous", "unaligned", "export", "vmap")  # fmt: skip
REQUEST: dict[str, Any] = {"module": OPERATORS, "folder": "."}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    return target._imported(OPERATORS, ".")


def answers(names: dict[str, Any], operator: str, *wanted: str) -> dict[str, subject.Answer]:
    torch.manual_seed(0)
    own = subject.Subject(names[operator], names["get_inputs"](), "cpu", reference=names["plain"])
    plain = list(subject.settled(own, ("checked::scale",)))
    assert plain[0].status == "ran", plain
    return {each.name: each.run(own) for each in checks.CHECKS if each.name in wanted}


def test_both_sides_know_the_same_checks() -> None:
    assert tuple(each.name for each in checks.CHECKS) == CHECKS


def test_a_sound_operator_passes(names: dict[str, Any]) -> None:
    found = answers(names, "scale", *QUICK)
    assert {name: each.status for name, each in found.items()} == dict.fromkeys(QUICK, "ran")


@pytest.mark.parametrize(
    ("operator", "check", "status", "cause"),
    [
        ("halves", "float16", "fallback", "if x.dtype != torch.float32:"),
        ("swallows", "odd sizes", "fallback", "ValueError: a multiple of 4 is wanted, which is caught"),
        ("trains", "backward", "fallback", "if x.requires_grad"),
        ("compiles", "torch.compile", "fallback", "torch.compiler.is_compiling()"),
        ("detached", "backward", "wrong", ""),
        ("off_by_one", "bfloat16", "wrong", ""),
    ],
)
def test_a_silent_fallback_is_found_with_its_line(
    names: dict[str, Any], operator: str, check: str, status: str, cause: str
) -> None:
    answer = answers(names, operator, check)[check]
    assert answer.status == status, answer
    assert cause in answer.cause


@pytest.mark.parametrize(
    ("operator", "cause", "cure"),
    [("trains", "if x.requires_grad", "register_autograd"), ("joins", "distributed.is_initialized()", "")],
)
def test_a_wrapper_is_not_blamed_for_what_gradients_cause(
    names: dict[str, Any], operator: str, cause: str, cure: str
) -> None:
    try:
        answer = answers(names, operator, "DDP")["DDP"]
    finally:
        torch.distributed.destroy_process_group()
    assert (answer.status, answer.said) == ("fallback", "aten::mul ran instead")
    assert cause in answer.cause
    assert cure in answer.cure
    assert bool(cure) == bool(answer.cure)


def test_a_crash_is_one_line_and_the_other_checks_go_on(tmp_path: Path) -> None:
    ran = run_command(
        "torch-check", f"{OPERATORS}:crashes", "--only", "float16", "--only", "odd sizes", "--format", "json",
        cwd=tmp_path,
    )  # fmt: skip
    assert ran.status == 1, ran.stderr
    assert {each["check"]: each["status"] for each in ran.json["found"]} == {
        "eager": "ran", "float16": "crashed", "odd sizes": "fallback",
    }  # fmt: skip
    assert ran.json["kernels"] == ["checked::scale"]
    assert "SIGSEGV" in next(each["said"] for each in ran.json["found"] if each["check"] == "float16")


@pytest.mark.slow
def test_what_hangs_is_stopped_and_what_joins_a_group_is_found(tmp_path: Path) -> None:
    ran = run_command("torch-check", f"{OPERATORS}:hangs", "--only", "float16", "--timeout", "20", cwd=tmp_path)
    assert ran.status == 1
    assert "did not end in 20 seconds" in ran.stdout
    ran = run_command("torch-check", f"{OPERATORS}:joins", "--only", "DDP", "--only", "FSDP", cwd=tmp_path)
    assert ran.stdout.count("SILENT FALLBACK") == 2, ran.stdout


@pytest.mark.parametrize(
    ("operator", "text", "said"),
    [
        ("missing", "", "Nothing that can be called has the name missing"),
        ("f", "import absent_module", "there is no module absent_module"),
        ("f", "def f(x): return x", "define get_inputs()"),
    ],
)
def test_bad_input_is_one_sentence(operator: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"{text}\n", encoding="utf-8")
    request = {"module": str(tmp_path / "mine.py"), "operator": operator, "folder": "."}
    with pytest.raises(target.NoTargetError) as error:
        target.subject_of(request)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_collects_garbage_is_no_part_of_a_path() -> None:
    def heard(_phase: str, _about: dict[str, int]) -> None:
        heard_of.append(1)

    heard_of: list[int] = []
    before = gc.get_threshold()
    gc.callbacks.append(heard)
    gc.set_threshold(1)
    try:
        path = cause.path_of(lambda: [[] for _ in range(1000)])
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(heard)
    assert len({line for _, line in path.lines}) == 1


def test_a_kernel_is_asserted_to_run(names: dict[str, Any]) -> None:
    args = names["get_inputs"]()
    assert assert_runs("checked::scale", lambda: names["scale"](*args)).shape == (16, 32)
    with pytest.raises(AssertionError, match="checked::scale did not run; what ran: aten::mul"):
        assert_runs("checked::scale", lambda: names["plain"](*args))
    with pytest.raises(AssertionError, match="other::scale did not run; what ran: checked::scale"):
        assert_runs("other::scale", lambda: names["scale"](*args))
    with pytest.raises(RuntimeError, match="the call ends torch's profiler"):
        assert_runs("checked::scale", lambda: assert_runs("checked::scale", lambda: names["scale"](*args)))


def test_a_profile_function_stays_in_its_place() -> None:
    events: list[str] = []

    def saw(_frame: object, event: str, _function: object) -> None:
        events.append(event)

    sys.setprofile(saw)
    try:
        assert_runs("aten::add", lambda: torch.ones(3) + 1)
        assert sys.getprofile() is saw
    finally:
        sys.setprofile(None)


def test_arguments_in_other_sizes_agree_with_each_other() -> None:
    x, w, rows = variants.odd((torch.randn(16, 32), torch.randn(32), 16))
    assert (x.shape, w.shape, rows) == ((1237, 853), (853,), 1237)
    strided = variants.non_contiguous((x,))[0]
    assert not strided.is_contiguous()
    assert torch.equal(strided, x)
    assert variants.unaligned((x,))[0].data_ptr() % 16


@pytest.mark.parametrize(("gpu", "status"), [(0, "ran"), (1, "wrong")])
def test_a_kernel_runs_where_its_arguments_are(gpu: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs that reach each other give the right result from the wrong one."""
    name = "void scale_kernel<float>(float const*)"
    seen = Seen({}, {name: 1}, {}, {name: 2.0}, {}, 9.0, {}, frozenset({name}), {name: frozenset({0})})
    monkeypatch.setattr(subject, "watch", lambda *_, **__: (None, seen))
    asked = subject.Subject(lambda: None, (), "cuda", kernels=("scale_kernel",))
    assert subject.run(asked, (), gpu=gpu).status == status
