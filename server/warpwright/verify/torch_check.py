"""Every way in which PyTorch may call an operator, tried in a process of its own, with limits and a deadline.

Nothing here imports torch. A check in which the process crashes or hangs is reported as such, and the others are run
in a fresh process.
"""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from warpwright.progress import IsCancelled, Progress
from warpwright.toolchain.process import Finished, run_limited
from warpwright.verify.harness import harness_kind, harness_python

CHECKS = (
    "repeated", "inference mode", "backward", "gradcheck", "float16", "bfloat16", "autocast float16",
    "autocast bfloat16", "odd sizes", "size 1", "empty", "non-contiguous", "unaligned", "channels last",
    "other device", "tensors on the CPU", "other stream", "CUDA graph", "torch.compile", "torch.compile, backward",
    "export", "jit.trace", "vmap", "DDP", "FSDP", "FSDP in bfloat16", "opcheck",
)  # fmt: skip
"""What can be left out; the plain call, "eager", is always made."""
FAULTS = ("fallback", "wrong", "breaks", "crashed", "hung")
"""What a program does not notice by itself, or dies of."""
CHECK_SECONDS = 60.0
START_SECONDS = 300.0
"""To import torch and the module, which may build an extension."""
_OUTPUT_BYTES = 8 << 20


class NotCheckedError(Exception):
    """Why nothing was checked: one sentence."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`module` is a name that can be imported, or a file. `inputs` are arguments as "f32[64,128]", in place of what the
    function `arguments` of the module gives. Of `kernels` one must run, and of `backward` one in the backward.
    `reference` computes the same without the operator; `step(operator)` is one step of training."""

    module: str
    operator: str
    inputs: tuple[str, ...] = ()
    arguments: str = "get_inputs"
    kernels: tuple[str, ...] = ()
    backward: tuple[str, ...] = ()
    reference: str = ""
    step: str = ""
    checks: tuple[str, ...] = CHECKS
    seconds: float = CHECK_SECONDS


@dataclass(frozen=True, slots=True)
class Found:
    """One check: `status` is ran, raises, not-run or one of FAULTS; `said` what was seen, `cause` where it comes from,
    `cure` what to do. `launches`: how often the kernel ran, `share`: its part of the call's time."""

    check: str
    status: str
    said: str = ""
    launches: int = 0
    share: float | None = None
    cause: str = ""
    cure: str = ""

    @property
    def is_fault(self) -> bool:
        return self.status in FAULTS


@dataclass(frozen=True, slots=True)
class TorchCheck:
    """`gpu` is empty on a machine without one, where launches cannot be seen. `step` has the keys of
    `warpwright_harness.torch_check.step.measured`, or "error"; None where no step was given."""

    operator: str
    torch: str
    gpu: str
    kernels: tuple[str, ...]
    found: tuple[Found, ...]
    step: Mapping[str, Any] | None = None

    @property
    def faults(self) -> tuple[Found, ...]:
        return tuple(each for each in self.found if each.is_fault)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "faults": len(self.faults)}


def torch_check(asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> TorchCheck:
    """Import the module, which runs its code, and try its operator: only where a user asks for it.

    Raises NotCheckedError and CancelledError."""
    if asked.module.endswith(".py") and not Path(asked.module).is_file():
        raise NotCheckedError(f"There is no file {asked.module}.")
    found: dict[str, Found] = {}
    machine: Mapping[str, Any] = {}
    step: Mapping[str, Any] | None = None
    left = asked
    while True:
        more = f" in {len(left.checks)} more ways" if left.checks else ""
        progress(f"Calling {asked.operator}{more}", None)
        events, finished = _run(left, is_cancelled)
        for event in events:
            if event["event"] == "refused":
                raise NotCheckedError(event["text"])
            if event["event"] == "machine":
                machine = event
            elif event["event"] == "step":
                step = {name: value for name, value in event.items() if name != "event"}
            elif event["event"] == "check":
                own = Found(**{name: value for name, value in event.items() if name != "event"})
                found[own.check] = own
        if any(each["event"] == "done" for each in events):
            break
        at = next((each["check"] for each in reversed(events) if each["event"] == "begin"), "")
        if at in ("", "import", "eager"):
            raise NotCheckedError(_unanswered(at, finished, asked))
        if at == "step":
            step = {"error": _ended(finished, 10 * asked.seconds)[1]}
            break
        status, said = _ended(finished, asked.seconds)
        found[at] = Found(at, status, said)
        left = replace(left, checks=left.checks[left.checks.index(at) + 1 :])
    ordered = tuple(found[name] for name in ("eager", *asked.checks, "training step") if name in found)
    kernels = tuple(machine.get("kernels", ()))
    return TorchCheck(asked.operator, machine.get("torch", ""), machine.get("gpu", ""), kernels, ordered, step)


def _run(asked: Asked, is_cancelled: IsCancelled) -> tuple[list[dict[str, Any]], Finished]:
    kind = harness_kind()
    timeout = START_SECONDS + asked.seconds * (len(asked.checks) + 2)
    with tempfile.TemporaryDirectory(prefix="warpwright-torch-check-") as work:
        request, results = Path(work) / "request.json", Path(work) / "results.jsonl"
        request.write_text(json.dumps(_request(asked)), encoding="utf-8")
        results.touch()
        command = [harness_python(), "-m", "warpwright_harness.torch_check", str(request), str(results)]
        policy = replace(kind.policy, limits={**kind.policy.limits, "CPU": int(8 * timeout)})
        environment = {**kind.environment, "TMPDIR": work, "HOME": work, "TORCH_SHOW_CPP_STACKTRACES": "0"}
        environment["KINETO_LOG_LEVEL"] = "6"  # the profiler's own lines are not what the operator said
        try:
            finished = run_limited(
                command,
                directory=Path(work),
                environment=environment,
                timeout=timeout,
                output_bytes=_OUTPUT_BYTES,
                memory_bytes=None,
                is_cancelled=is_cancelled,
                policy=policy,
            )
        except OSError as error:
            raise NotCheckedError(f"{command[0]} cannot be started: {error.strerror}.") from None
        lines = results.read_text(encoding="utf-8").splitlines()
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except ValueError:
            break  # the process ended while it wrote this one
    return events, finished


def _request(asked: Asked) -> dict[str, Any]:
    """With the module's file as an absolute path: the process has another working directory."""
    file = Path(asked.module)
    module = str(file.resolve()) if file.suffix == ".py" or file.is_file() else asked.module
    return {**asdict(asked), "module": module, "folder": str(Path.cwd()), "start_seconds": START_SECONDS}


def _ended(finished: Finished, seconds: float) -> tuple[str, str]:
    """Status and words for a process that went away in a check."""
    if finished.timed_out or finished.returncode == -14:
        return "hung", f"did not end in {seconds:g} seconds"
    if finished.returncode < 0:
        return "crashed", f"ended the process by signal {-finished.returncode} ({_named(-finished.returncode)})"
    last = [line for line in finished.output.strip().splitlines() if line.strip()]
    return "crashed", f"ended the process with status {finished.returncode}{f': {last[-1][:160]}' if last else ''}"


def _named(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "of no name"


def _unanswered(at: str, finished: Finished, asked: Asked) -> str:
    if "No module named 'torch'" in finished.output:
        return f"{harness_python()} has no torch: install it there, or name another Python in WARPWRIGHT_GPU_PYTHON."
    _, said = _ended(finished, asked.seconds if at == "eager" else START_SECONDS)
    is_late = said.startswith("did not end")
    if at == "import":
        late = "Build its extension first, by importing it once in Python, and keep long work out of its top level."
        return f"Importing {asked.module} {said}. {late if is_late else 'Import it in Python to see why.'}"
    if at == "eager":
        late = "Give it more time (--timeout) or smaller arguments (--input)."
        return f"The plain call of {asked.operator} {said}. {late if is_late else 'Call it in Python to see why.'}"
    return f"The process of the checks {said} before it began."
