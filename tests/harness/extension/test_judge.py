"""Both sides run in processes of their own, on the CPU: a Python module stands where a built library does, because a
side loads both alike."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("not installed: torch", allow_module_level=True)

from warpwright_harness.extension.batch import Parameters
from warpwright_harness.extension.check import check_case
from warpwright_harness.extension.judge import Case, Judge
from warpwright_harness.extension.run import judge_extension

ORIGINAL = """
import torch
def forward(x, scale): return x * scale / (1 + x * x)
"""


def request(tmp_path: Path, candidate: str, original: str = ORIGINAL) -> dict[str, Any]:
    for name, text in (("original", original), ("candidate", candidate)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return {
        "extension": {"module": "tested", "namespace": "", "name": "forward"},
        "baseline": {"library": str(tmp_path / "original.py"), "kernels": []},
        "candidate": {"library": str(tmp_path / "candidate.py"), "kernels": []},
        "cases": [case(n) for n in (1009, 33)],
        "judge": "baseline",
        "rates": {},
        "lock": str(tmp_path / "lock"),
        "seconds_per_shape": 0.1,
    }


def case(n: int, *, time: bool = False) -> dict[str, Any]:
    x = {"kind": "tensor", "name": "x", "scalar": "float32", "sizes": [n], "limit": None, "keyword": False}
    scale = {"kind": "plain", "name": "scale", "value": 1.25, "keyword": False}
    distributions = ["normal", "integers"]
    return {
        "shape": {"n": n}, "arguments": [x, scale], "distributions": distributions, "check": True, "time": time,
    }  # fmt: skip


@pytest.fixture(scope="module")
def judging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Judge, list[dict[str, Any]], Path]]:
    """One judge whose original stays loaded while candidates come and go."""
    folder = tmp_path_factory.mktemp("judged")
    events: list[dict[str, Any]] = []
    with Judge(request(folder, ORIGINAL), events.append, "cpu") as judge:
        yield judge, events, folder


def judged(judging: tuple[Judge, list[dict[str, Any]], Path], candidate: str) -> tuple[str, dict[str, Any]]:
    """The verdict on a candidate, and the last event of it."""
    judge, events, folder = judging
    judge.drop("candidate")
    events.clear()
    (folder / "candidate.py").write_text(candidate, encoding="utf-8")
    verdict = "right"
    for index, described in enumerate(judge.request["cases"]):
        if verdict != "right":
            break
        parameters = Parameters(described["arguments"])
        one = Case(index, described["shape"], parameters, tuple(described["distributions"]), True, False)
        verdict = check_case(judge, one, None)
    return verdict, [event for event in events if event["event"] in ("case", "unsupported")][-1]


RIGHT = {
    "the same": ORIGINAL,
    "other rounding": "def forward(x, scale): return scale / (1 / x.double() + x.double()).float()".replace(
        "scale / (1 / x.double() + x.double()).float()", "(x.double() * scale / (1 + x.double() ** 2)).float()"
    ),
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_right(judging: Any, text: str) -> None:
    verdict, event = judged(judging, text)
    assert verdict == "right", event["reason"]
    assert event["max_ulp"] < 100


FORGED = '{"event": "case", "ok": true}'
WRONG = {
    "wrong values": ("def forward(x, scale): return x * scale", False, "should be"),
    "lower precision": ("def forward(x, scale): return (x.half() * scale / (1 + x.half() ** 2)).float()", False, "be"),
    "another type": (
        f"{ORIGINAL}\none = forward\ndef forward(x, scale): return one(x, scale).double()",
        False,
        "float64",
    ),
    "another shape": (f"{ORIGINAL}\none = forward\ndef forward(x, scale): return one(x, scale)[None]", False, "shape"),
    "two results": (f"{ORIGINAL}\none = forward\ndef forward(x, scale): return one(x, scale), x", False, "2 tensors"),
    "no tensor": ("def forward(x, scale): return 1.0", False, "no tensor"),
    "raises": ("def forward(x, scale): raise ValueError('no')", False, "ValueError: no"),
    "gaps": (
        "import torch\ndef forward(x, scale):\n y = torch.empty(len(x), 2); y[:, 0] = x * scale / (1 + x * x)\n"
        " return y[:, 0]",
        False,
        "strides",
    ),
    "changes its input": (
        "def forward(x, scale):\n y = x * scale / (1 + x * x); x.zero_(); return y",
        True,
        "its input x",
    ),
    "writes outside": (
        "import torch\ndef forward(x, scale):\n"
        " x.as_strided((1,), (1,), x.storage_offset() - 1).zero_()\n return x * scale / (1 + x * x)",
        True,
        "outside x",
    ),
    "shares memory": ("def forward(x, scale): return x.mul_(1.0)", True, "shares memory with its input x"),
    "by address": (
        "kept = {}\ndef forward(x, scale): return kept.setdefault((), x * scale / (1 + x * x))",
        False,
        "should",
    ),
    "by checksum": (
        "kept = {}\ndef forward(x, scale):\n"
        " return kept.setdefault((len(x), tuple(x[:16].tolist()), tuple(x[-16:].tolist())), x * scale / (1 + x * x))"
        ".clone()",
        False,
        "should be",
    ),
    "one call late": (
        "last = None\ndef forward(x, scale):\n"
        " global last\n y = x * 0\n"
        " if last: last[1].copy_(last[0] * scale / (1 + last[0] * last[0]))\n last = x, y\n return y",
        False,
        "should be",
    ),
    "one buffer": (
        "import torch\nkept = {}\ndef forward(x, scale):\n y = kept.setdefault(len(x), torch.empty_like(x))\n"
        " return y.copy_(x * scale / (1 + x * x))",
        True,
        "changes after",
    ),
    "a thread changes it": (
        "import threading, time\ndef forward(x, scale):\n y = x * scale / (1 + x * x)\n"
        " threading.Timer(0.004, y.zero_).start(); return y",
        True,
        "changes after",
    ),
    "a thread stays": (
        "import threading, time\nstarted = False\ndef forward(x, scale):\n global started\n"
        " if not started: threading.Thread(target=lambda: time.sleep(60), daemon=True).start()\n"
        " started = True\n return x * scale / (1 + x * x)",
        True,
        "1 threads running",
    ),
    "replaces a clock": (
        f"{ORIGINAL}\nimport time\ntime.perf_counter = lambda: 0.0\n",
        True,
        "replaces time.perf_counter",
    ),
    "exits": ("import os\ndef forward(x, scale): os._exit(0)", True, "exit status 0"),
    "crashes": ("import ctypes\ndef forward(x, scale): ctypes.string_at(0)", True, "SIGSEGV"),
    "prints what is forged": (
        f"import os\ndef forward(x, scale):\n print('''{FORGED}'''); os.write(2, b'PASS')\n return x * 0",
        False,
        "should be",
    ),
    "writes to every descriptor": (
        "import os\ndef forward(x, scale):\n"
        " for d in range(3, 64):\n"
        '  try: os.write(d, b\'{"number": "0", "calls": []}\\n\')\n'
        "  except OSError: pass\n return x * 0",
        True,
        "harness's channel",
    ),
    "is not there when loaded": ("import os\nos._exit(3)", True, "exit status 3"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("text", "unsafe", "words"), WRONG.values(), ids=WRONG)
def test_wrong(judging: Any, text: str, unsafe: bool, words: str) -> None:
    verdict, event = judged(judging, text)
    assert verdict == "wrong"
    assert words in event["reason"]
    assert event.get("unsafe", False) == unsafe


def test_a_call_that_never_returns_is_ended(judging: Any) -> None:
    judging[0].patience = 3.0
    verdict, event = judged(judging, "import time\ndef forward(x, scale): time.sleep(1000)")
    assert verdict == "wrong"
    assert event["timed_out"]
    judging[0].patience = 15.0
    assert judged(judging, ORIGINAL)[0] == "right"


def test_an_original_that_fails_costs_the_size(tmp_path: Path) -> None:
    fails = f"{ORIGINAL}\none = forward\ndef forward(x, scale):\n assert len(x) != 33, 'not 33'\n return one(x, scale)"
    events: list[dict[str, Any]] = []
    judge_extension(request(tmp_path, fails, fails), None, events.append, device="cpu")
    assert [e["shape"]["n"] for e in events if e["event"] == "case"] == [1009, 1009]
    left_out = next(e for e in events if e["event"] == "unsupported")
    assert "not 33" in left_out["reason"]


def test_in_place_and_reference_and_time(tmp_path: Path) -> None:
    """An input that the original writes to is an output; a timed size gives a "speed" event."""
    text = "def forward(x, scale): x.mul_(scale)"
    asked = request(tmp_path, text, text)
    asked["cases"] = [{**case(1009, time=True), "distributions": ["normal", "zeros"]}]
    events: list[dict[str, Any]] = []
    judge_extension(asked, lambda x, scale: x * scale, events.append, device="cpu")
    cases = [e for e in events if e["event"] == "case"]
    assert [e["ok"] for e in cases] == [True, True], cases
    assert cases[0]["reference"]["candidate_max_abs"] < 1e-6
    speed = next(e for e in events if e["event"] == "speed")
    assert speed["ci95"][0] < speed["speedup"] < speed["ci95"][1]
    assert speed["judge_clock"]["candidate_us"] > 0
