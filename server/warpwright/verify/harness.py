"""The harness on a GPU: which GPU there is, and its warm processes."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import warpwright
from warpwright.directories import cache_dir
from warpwright.missing import Missing
from warpwright.progress import CancelledError, IsCancelled
from warpwright.sandbox.confine import Policy
from warpwright.toolchain.driver import has_driver
from warpwright.verify.bytecode import bytecode_variables, write_bytecode
from warpwright.verify.child import ChildEndedError, Event, Kind, data_limit, environment_of
from warpwright.verify.pool import Pool

START_SECONDS = 120.0
STEP_SECONDS = 20.0
TOTAL_SECONDS = 400.0
MOST_FILE_BYTES = 1 << 30
_ARCH_SECONDS = 10.0
ASK_AGAIN_SECONDS = 300.0
"""That there is no GPU is believed for this long."""

_ADVICE = "Install what runs kernels on a GPU with `pip install 'warpwright[gpu]'`."
_PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_PASSED_ON_PREFIXES = ("CUDA_", "NVIDIA_", "TORCH_")
_CACHES = {
    "CUDA_CACHE_PATH": "cuda",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
}
_FEW_WORKERS = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""torch.compile would start as many processes as there are processors, up to 32, in each harness; a reference has a few
kernels, which are compiled sooner than those are ready."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU that kernels are run on: its name, architecture ("sm_90"), and the software as the harness reports it."""

    name: str
    arch: str
    details: Mapping[str, Any]


def harness_python() -> str:
    """The Python that has torch: this one, or WARPWRIGHT_GPU_PYTHON."""
    return os.environ.get("WARPWRIGHT_GPU_PYTHON") or sys.executable


def harness_environment() -> dict[str, str]:
    """What the harness gets of the environment: where its programs are, and no secret of the user's."""
    return environment_of(_PASSED_ON, _PASSED_ON_PREFIXES, Path(warpwright.__file__).parent.parent)


def harness_kind() -> Kind:
    """The harness reads every file, as the user's own reference may, and writes to its own folder and its cache.

    CUDA's driver names its threads by writing below /proc, and does not start where it cannot, nor without sockets of
    Unix; it connects to a service only where there is the Multi-Process Service.
    """
    confined = harness_python() not in _unconfined
    kept = _cache()
    environment = harness_environment() | _FEW_WORKERS | bytecode_variables(harness_python())
    if kept is not None:
        environment |= {variable: str(kept / name) for variable, name in _CACHES.items()}
    served = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
    policy = Policy(
        limits={"FSIZE": MOST_FILE_BYTES, **(data_limit() if confined else {})},
        confined=confined,
        writes=("/proc", *(str(each) for each in (kept, served if served.exists() else None) if each is not None)),
        devices=True,
        local_sockets=True,
        local_services=served.exists(),
    )
    command = (harness_python(), "-m", "warpwright_harness")
    return Kind("the harness", command, environment, policy, START_SECONDS, STEP_SECONDS, TOTAL_SECONDS)


def _cache() -> Path | None:
    """The folder in which the harness's libraries keep what they compiled; None where it cannot be made."""
    folder = cache_dir() / "harness"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


_pool = Pool(harness_kind)
_asking = threading.Lock()
_asking_driver = threading.Lock()
_answers: dict[str, tuple[float, Gpu | Missing]] = {}
_unconfined: set[str] = set()


def find_gpu(is_cancelled: IsCancelled) -> Gpu | Missing:
    """The GPU to run on, as a harness says that is then kept warm; Missing at once where there is no NVIDIA driver.

    Raises CancelledError.
    """
    if sys.platform == "win32":
        return Missing("gpu", "Kernels are not run on Windows.", "Use WSL 2, where they are.")
    if not has_driver():
        return Missing("gpu", "There is no GPU here (no NVIDIA driver).", "Run it on a machine with an NVIDIA GPU.")
    if is_cancelled():
        raise CancelledError
    python = harness_python()
    with _asking:
        asked, answer = _answers.get(python, (0.0, None))
        if answer is None or (isinstance(answer, Missing) and time.monotonic() - asked > ASK_AGAIN_SECONDS):
            answer = _asked(python, is_cancelled)
            _answers[python] = time.monotonic(), answer
    return answer


def forget_gpu() -> None:
    """Have the GPU looked for anew the next time, as after it was taken away or given back."""
    _answers.clear()


def is_gpu_known() -> bool:
    """Whether `find_gpu` has its answer without starting anything."""
    return harness_python() in _answers


def prepare() -> None:
    """Have a process ready that could run kernels, or getting ready, and the driver asked for the architecture; returns
    at once. Nothing of the GPU is used until `make_context` or a request."""
    if has_driver():
        _pool.prepare()
        threading.Thread(target=likely_arch, daemon=True, name="architecture").start()


def make_context(is_cancelled: IsCancelled) -> None:
    """Let a process do what its first request would wait for. Where that fails, the request is told. Raises
    CancelledError."""
    with suppress(ChildEndedError, OSError):
        for _ in run_request({"measure": "nothing", "reference": None}, is_cancelled):
            pass


def likely_arch() -> str:
    """The architecture of the GPU as the driver says it at once, long before torch is ready; "" where it does not."""
    with _asking_driver:
        return _likely_arch(harness_python())


@lru_cache(maxsize=4)
def _likely_arch(python: str) -> str:
    command = [python, "-m", "warpwright_harness", "--arch"]
    with suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.run(
            command, capture_output=True, env=harness_environment(), timeout=_ARCH_SECONDS, check=False, text=True
        )
        return answer.stdout.strip() if answer.returncode == 0 else ""
    return ""


def _asked(python: str, is_cancelled: IsCancelled) -> Gpu | Missing:
    answer = _greeted(python, is_cancelled)
    if isinstance(answer, Missing) and python not in _unconfined:
        _unconfined.add(python)  # perhaps this driver does not start where the disk is read-only
        again = _greeted(python, is_cancelled)
        if isinstance(again, Missing):
            _unconfined.discard(python)
            return answer
        return again
    return answer


def _greeted(python: str, is_cancelled: IsCancelled) -> Gpu | Missing:
    try:
        greeting = _pool.greeting(is_cancelled)
        device = greeting["device"]
    except ChildEndedError as error:
        if error.timed_out:
            return Missing("gpu", f"{python} did not say within {START_SECONDS:g} seconds which GPU there is.", _ADVICE)
        return Missing("gpu", f"{python} cannot say which GPU there is: {error}.", _ADVICE)
    except (OSError, KeyError):
        return Missing("gpu", f"{python} cannot say which GPU there is.", _ADVICE)
    if "missing" in device:
        return Missing("gpu", device["missing"], _ADVICE)
    if not greeting.get("has_bytecode", True):
        write_bytecode(python, harness_environment())
    return Gpu(device["name"], device["arch"], device)


def run_request(request: Mapping[str, Any], is_cancelled: IsCancelled) -> Iterator[Event]:
    """The events of one request, see `Pool.run`. A GPU that is gone is looked for anew the next time.

    The files of the GPU's lock are made here: the harness can lock but not make them.
    """
    if lock := request.get("lock"):
        with suppress(OSError):
            for path in (Path(lock), Path(f"{lock}.gate")):
                path.touch(mode=0o666)
    for event in _pool.run(request, is_cancelled):
        missing = event.get("device", {}).get("missing") if event["event"] == "hello" else None
        if missing or event.get("lost"):
            forget_gpu()
        if missing:
            yield {"event": "error", "text": str(missing).rstrip(".")}
            return
        yield event


@atexit.register
def close_idle() -> None:
    """End the warm processes; the next verification starts a new one."""
    _pool.close()
