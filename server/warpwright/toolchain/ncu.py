"""NVIDIA Nsight Compute's command line: found, asked to read a report, asked to profile a program.

Looked for in this order: the environment variable WARPWRIGHT_NCU, PATH, CUDA_HOME and CUDA_PATH, /usr/local/cuda, and
where its own installer puts it. Reading a report needs no GPU; profiling needs one, and the right to read its counters.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from warpwright.missing import Missing
from warpwright.progress import IsCancelled
from warpwright.toolchain.ncu_tables import LaunchRow, NcuError, launch_rows
from warpwright.toolchain.process import LOG, run_limited

EXPORT_SECONDS = 300.0
TABLE_BYTES = 2 << 30
COLLECT = (
    "--section", "SourceCounters", "--section", "LaunchStats", "--import-source", "on",
    "--clock-control", "none", "--cache-control", "none",
)  # fmt: skip
"""What is collected for a profile; the GPU's clocks and caches are left as the application finds them."""
_ADVICE = (
    "Install NVIDIA Nsight Compute, which comes with the CUDA toolkit, or set WARPWRIGHT_NCU to the path of ncu; a "
    "source page that was exported elsewhere as CSV needs none."
)
_MEMORY_BYTES = 12 << 30
_NO_PERMISSION = "ERR_NVGPUCTRPERM"


def find_ncu() -> Path | Missing:
    """Nsight Compute's command line, or what is missing. A path in WARPWRIGHT_NCU is taken at its word."""
    if override := os.environ.get("WARPWRIGHT_NCU"):
        path = Path(override)
        if path.is_file():
            return path
        return Missing("ncu", f"WARPWRIGHT_NCU names {path}, which does not exist.", _ADVICE)
    found = next((path for path in _candidates() if path.is_file()), None)
    return found or Missing("ncu", "NVIDIA Nsight Compute's command line ncu was not found on this machine.", _ADVICE)


def _candidates() -> Iterator[Path]:
    name = "ncu.exe" if sys.platform == "win32" else "ncu"
    if on_path := shutil.which("ncu"):
        yield Path(on_path)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home) / "bin" / name
    yield Path("/usr/local/cuda/bin/ncu")
    yield from sorted(Path("/opt/nvidia/nsight-compute").glob("*/ncu"), reverse=True)


@contextmanager
def exported(ncu: Path, report: Path, is_cancelled: IsCancelled) -> Iterator[tuple[Path, list[LaunchRow]]]:
    """A report's source page as a CSV file, and its launches; the file is gone afterwards.

    Raises NcuError, CancelledError.
    """
    with tempfile.TemporaryDirectory(prefix="warpwright-ncu-") as folder:
        shown = [str(ncu), "--import", str(report.absolute()), "--csv", "--page"]
        details = _printed([*shown, "details"], Path(folder), "details", is_cancelled)
        launches = launch_rows(details)
        source = _printed([*shown, "source", "--print-source", "cuda,sass"], Path(folder), "source", is_cancelled)
        yield source, launches


def _printed(command: Sequence[str], folder: Path, page: str, is_cancelled: IsCancelled) -> Path:
    """What a command prints, in a file of its own."""
    directory = folder / page
    directory.mkdir()
    run_ncu(command, directory, EXPORT_SECONDS, os.environ, is_cancelled, memory_bytes=_MEMORY_BYTES)
    return directory / LOG


def run_ncu(
    command: Sequence[str],
    directory: Path,
    seconds: float,
    environment: Mapping[str, str],
    is_cancelled: IsCancelled,
    *,
    memory_bytes: int | None = None,
) -> None:
    """Run `ncu`; what it prints is left in `directory`/LOG. Raises NcuError where it fails, CancelledError."""
    try:
        finished = run_limited(
            command,
            directory=directory,
            environment=environment,
            timeout=seconds,
            output_bytes=TABLE_BYTES,
            memory_bytes=memory_bytes,
            is_cancelled=is_cancelled,
        )
    except OSError as error:
        raise NcuError(f"{command[0]} could not be started ({error.strerror}).") from None
    if finished.stopped:
        raise NcuError(f"{command[0]} {finished.stopped}.")
    if _NO_PERMISSION in finished.output:
        raise NcuError(
            f"The driver does not let this user read the GPU's counters ({_NO_PERMISSION}): run as root, or have it "
            "allowed as NVIDIA describes under that name."
        )
    if finished.returncode:
        raise NcuError(f"{command[0]} failed: {_last_words(finished.output)}")


def _last_words(output: str) -> str:
    """The last line that is an error of Nsight Compute's, else that the profiled program wrote.

    >>> _last_words("==PROF== Connected\\nno such kernel\\n==ERROR== The application returned an error code (1).\\n")
    'no such kernel. The application returned an error code (1).'
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith("==")][-1:]
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")][-1:]
    return " ".join(f"{said.rstrip('.')}." for said in (*own, *errors)) or "it said nothing."
