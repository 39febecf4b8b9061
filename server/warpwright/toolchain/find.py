"""Where NVIDIA's compiler is on this machine.

Looked for in this order: the environment variable WARPWRIGHT_NVCC, PATH, CUDA_HOME and CUDA_PATH, /usr/local/cuda, and
NVIDIA's wheels in this Python environment (`pip install 'warpwright[cuda]'`), which put nvcc at
`site-packages/nvidia/cu13/bin/nvcc`. The wheels' nvcc.profile adds their own headers, cccl's (cub, thrust) among them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.toolchain.process import Finished, run_limited

ANSWER_SECONDS = 10
ANSWER_BYTES = 1 << 20
_ADVICE = "Install it with `pip install 'warpwright[cuda]'`, or set WARPWRIGHT_NVCC to the path of nvcc."
_ADVICE_FOR_MACOS = "Analysis works here; compiling and running kernels needs Linux, for example over Remote-SSH."
_DEFINED = re.compile(r"-D__CUDACC_VER_(?:MAJOR|MINOR|BUILD)__=(\d+)")
"""What nvcc tells the compiler for the host of its own version."""
_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One installation of the compiler. `version` is nvcc's own, such as 13.0.88; `origin` says where it was found."""

    nvcc: Path
    version: str
    origin: str
    cuobjdump: Path | None
    nvdisasm: Path | None
    include_dirs: tuple[Path, ...]


def find_toolchain() -> Toolchain | Missing:
    """The compiler to use, or what is missing. Asks each nvcc once.

    A path in WARPWRIGHT_NVCC is taken at its word: where it does not work, no other compiler is used instead.
    """
    override = os.environ.get("WARPWRIGHT_NVCC")
    if override and not Path(override).is_absolute():  # it would be another in each folder
        return Missing("nvcc", f"WARPWRIGHT_NVCC names {override}, which is not an absolute path.", _ADVICE)
    if override:
        return _describe(Path(override), "WARPWRIGHT_NVCC")
    broken: Missing | None = None
    for nvcc, origin in _candidates():
        found = _describe(nvcc, origin)
        if isinstance(found, Toolchain):
            return found
        broken = broken or found
    if broken is None and sys.platform == "darwin":
        return Missing("nvcc", "NVIDIA has no CUDA compiler for macOS.", _ADVICE_FOR_MACOS)
    return broken or Missing("nvcc", "NVIDIA's compiler nvcc was not found on this machine.", _ADVICE)


def wheel_directories() -> Iterator[Path]:
    """The folders into which NVIDIA's wheels unpack a toolkit, newest CUDA first; never the working directory's."""
    for entry in map(Path, sys.path):
        if entry.is_absolute() and entry != Path.cwd():
            yield from sorted(entry.glob("nvidia/cu[0-9]*"), reverse=True)


def _candidates() -> Iterator[tuple[Path, str]]:
    on_path = shutil.which("nvcc")
    if on_path:
        yield Path(on_path), "PATH"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        home = os.environ.get(variable)
        if home and (nvcc := Path(home) / "bin" / _executable("nvcc")).is_file():
            yield nvcc, variable
    if (nvcc := Path("/usr/local/cuda/bin/nvcc")).is_file():
        yield nvcc, "/usr/local/cuda"
    for directory in wheel_directories():
        if (nvcc := directory / "bin" / _executable("nvcc")).is_file():
            yield nvcc, "NVIDIA's wheels"


def _executable(name: str) -> str:
    return name + ".exe" if sys.platform == "win32" else name


def _describe(nvcc: Path, origin: str) -> Toolchain | Missing:
    try:
        modified = nvcc.stat().st_mtime_ns
    except OSError:
        return Missing("nvcc", f"{origin} names {nvcc}, which does not exist.", _ADVICE)
    answer = _version(nvcc, modified)
    if isinstance(answer, Missing):
        return answer
    version, home = answer
    include_dirs = tuple(p for p in (home / "include", home / "include" / "cccl") if p.is_dir())
    return Toolchain(nvcc, version, origin, _tool("cuobjdump", home), _tool("nvdisasm", home), include_dirs)


@lru_cache(maxsize=16)
def _version(nvcc: Path, modified: int) -> tuple[str, Path] | Missing:
    """nvcc's version and the toolkit's folder; `modified` makes a replaced binary be asked again.

    The folder is what nvcc itself calls TOP: nvcc on PATH may be a script that starts the real one elsewhere.
    """
    try:
        dry = _asked(nvcc, "--dryrun", "-cubin", "-x", "cu", os.devnull)
        version = ".".join(_DEFINED.findall(dry.output)[:3])
        if dry.timed_out:
            return Missing("nvcc", f"{nvcc} did not answer `--dryrun` within {ANSWER_SECONDS} seconds.", _ADVICE)
        if not version:  # as without a compiler for the host
            asked = _asked(nvcc, "--version")
            match = _VERSION.search(asked.output)
            if asked.stopped or asked.returncode != 0 or not match:
                return Missing("nvcc", f"{nvcc} does not answer `--version` as NVIDIA's compiler does.", _ADVICE)
            version = match[1]
    except OSError as error:
        return Missing("nvcc", f"{nvcc} cannot be run ({error.strerror}).", _ADVICE)
    top = re.search(r"^#\$ TOP=(.+)$", dry.output, re.MULTILINE)
    return version, Path(top[1]).resolve() if top else nvcc.resolve().parent.parent


def _asked(nvcc: Path, *arguments: str) -> Finished:
    """What a program that may be no compiler at all answers. Raises OSError where it cannot be started."""
    with tempfile.TemporaryDirectory() as folder:
        return run_limited(
            [str(nvcc), *arguments],
            directory=Path(folder),
            environment=os.environ,
            timeout=ANSWER_SECONDS,
            output_bytes=ANSWER_BYTES,
            memory_bytes=None,
            is_cancelled=never_cancelled,
        )


def _tool(name: str, home: Path) -> Path | None:
    """A companion of nvcc: beside it, else on PATH, else in the wheels."""
    beside = home / "bin" / _executable(name)
    if beside.is_file():
        return beside
    if on_path := shutil.which(name):
        return Path(on_path)
    return next((p for d in wheel_directories() if (p := d / "bin" / _executable(name)).is_file()), None)
