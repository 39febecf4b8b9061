"""`python -m warpwright_harness.torch_check REQUEST RESULTS`: run the checks that the file REQUEST (JSON) asks for, and
append a JSON line to RESULTS as each begins and ends.

The keys of a request: `module` (a name or a file), `folder` (where modules are looked for), `operator`, `inputs`
("f32[64,128]") or `arguments` (a function of the module), `kernels`, `backward`, `reference`, `step`, `checks` (their
names), `seconds` (for each check), `start_seconds` (to import). A check that takes longer ends the process by SIGALRM,
also where it hangs outside of Python.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def main() -> int:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with Path(sys.argv[2]).open("a", encoding="utf-8") as sink:

        def emit(**event: Any) -> None:
            sink.write(json.dumps(event) + "\n")
            sink.flush()

        _run(request, emit)
    return 0


def _run(request: dict[str, Any], emit: Any) -> None:
    import torch

    if tuple(int(each) for each in torch.__version__.split(".")[:2]) < (2, 4):
        emit(
            event="refused",
            text=f"torch {torch.__version__} is too old: 2.4 is the first with torch.library.custom_op.",
        )
        return
    from warpwright_harness.torch_check.checks import CHECKS
    from warpwright_harness.torch_check.subject import FAULTS, settled
    from warpwright_harness.torch_check.target import NoTargetError, found, subject_of

    emit(event="begin", check="import")
    _limit(request["start_seconds"])
    try:
        subject, names, given = subject_of(request)
    except NoTargetError as error:
        emit(event="refused", text=str(error))
        return
    gpu = torch.cuda.get_device_name() if subject.device == "cuda" else ""
    emit(event="begin", check="eager")
    _limit(request["seconds"])
    for answer in settled(subject, given):
        emit(event="machine", torch=torch.__version__, gpu=gpu, kernels=list(subject.kernels))
        if answer.status == "raises":
            emit(event="refused", text=f"The plain call fails: {answer.said}")
            return
        if not subject.kernels:
            text = "The call runs nothing but torch's own operators: name the kernel that should run with --kernel."
            emit(event="refused", text=text)
            return
        emit(event="check", check="eager", **_as_json(answer), cure=_EAGER if answer.status == "fallback" else "")
    for check in CHECKS:
        if check.name not in request["checks"]:
            continue
        emit(event="begin", check=check.name)
        _limit(request["seconds"])
        try:
            answer = check.run(subject)
        except Exception as error:
            emit(event="check", check=check.name, status="not-run", said=f"{type(error).__name__}: {str(error)[:160]}")
            continue
        emit(
            event="check",
            check=check.name,
            **_as_json(answer),
            cure=(answer.cure or check.cure) if answer.status in FAULTS else "",
        )
    if request.get("step"):
        from warpwright_harness.torch_check.step import called, measured

        emit(event="begin", check="step")
        _limit(10 * request["seconds"])
        try:
            step = found(names, request["step"], request["module"])
            assert subject.reference is not None
            answer = called(subject, step)
            emit(event="check", check="training step", **_as_json(answer), cure=answer.cure)
            emit(event="step", **measured(step, subject.call, subject.reference, subject.device == "cuda"))
        except Exception as error:
            emit(event="step", error=f"{type(error).__name__}: {str(error)[:200]}")
    emit(event="done")


_EAGER = "Call the operator: nothing of it runs in the plain call. See what the wrapper does before it."


def _as_json(answer: Any) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in ("status", "said", "launches", "share", "cause")}


def _limit(seconds: float) -> None:
    with suppress(AttributeError):  # a system without it has the deadline of the whole alone
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    sys.exit(main())
