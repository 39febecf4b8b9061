"""Run a CUDA program that is no Python and record what it gives its GPUs: by CUPTI, of which a small library is loaded
into it, else by Nsight Systems. Both see any program; CUPTI's stacks also say which line made each call, where the
program has debug information (nvcc -g).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import warpwright
from warpwright.files import read_file
from warpwright.progress import IsCancelled
from warpwright.syntax.encoding import encoded, shown_bytes
from warpwright.timeline.model import Activity, Call, LineEvent, Place, Trace, TraceError, Work
from warpwright.timeline.nsys_report import find_nsys, read_nsys_report
from warpwright.timeline.record import Recording, run_recorded

_SOURCE = Path(warpwright.__file__).parent.parent / "warpwright_harness" / "cupti_trace.cpp"
_COMPILE_SECONDS = 120.0
_NVCC_SECONDS = 600.0
_RESOLVE_SECONDS = 120.0
_MOST_BYTES = 1 << 30
_STRUCTS = {"KERNEL": "Kernel", "MEMCPY": "Memcpy", "MEMSET": "Memset", "DEVICE": "Device"}
_DIRECTIONS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
_PAGEABLE = 1
"""CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE."""
_MOST_GAP = 5000
"""Nanoseconds between our part in CUPTI's callback and the call itself that are CUPTI's."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """Of CUDA: the compiler, None where there is none, and folders that may hold a toolkit."""

    nvcc: Path | None
    homes: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Cupti:
    """Where CUPTI's header and library are."""

    header: Path
    library: Path


def find_cupti(toolkit: Toolkit) -> Cupti | None:
    """CUPTI in the first home that has it."""
    for home in (each for start in toolkit.homes for each in (start, start / "extras" / "CUPTI")):
        headers = [home / "include" / "cupti.h", *home.glob("targets/*/include/cupti.h")]
        folders = [home / "lib64", home / "lib", *home.glob("targets/*/lib")]
        libraries = [each for folder in folders for each in sorted(folder.glob("libcupti.so*"))]
        header = next((each for each in headers if each.is_file()), None)
        if header is not None and libraries:
            return Cupti(header, libraries[-1])
    return None


def compiled_program(source: Path, folder: Path, nvcc: Path | None) -> Path:
    """A .cu file as a program with the lines of its host code. Raises TraceError."""
    if nvcc is None:
        raise TraceError(f"{source} has to be compiled, and NVIDIA's compiler nvcc was not found on this machine")
    program = folder / source.stem
    command = [str(nvcc), "-O3", "-g", "-lineinfo", "-arch=native", "-o", str(program), str(source)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_NVCC_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TraceError(f"{source} cannot be compiled: {error}") from None
    if done.returncode:
        said = shown_bytes(done.stderr + done.stdout).strip().splitlines()
        raise TraceError(f"{source} does not compile: {said[0] if said else f'exit status {done.returncode}'}")
    return program


def record_program(wanted: Recording, toolkit: Toolkit, is_cancelled: IsCancelled, output: int = 2) -> Trace:
    """The trace of one run of `wanted.script`, a program or a .cu file; what it prints goes to the file descriptor
    `output`. Raises TraceError and CancelledError."""
    if not wanted.script.is_file():
        raise TraceError(f"{wanted.script} is not a file")
    with tempfile.TemporaryDirectory(prefix="warpwright-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        program = wanted.script.absolute()
        if program.suffix == ".cu":
            program = compiled_program(program, folder, toolkit.nvcc)
        if not os.access(program, os.X_OK):
            raise TraceError(f"{wanted.script} is neither a Python script nor a program that can be run")
        cupti = find_cupti(toolkit)
        if cupti is not None:
            return _by_cupti(wanted, program, cupti, folder, is_cancelled, output)
        nsys = find_nsys()
        if nsys is None:
            raise TraceError(
                f"{wanted.script} is not a Python script: to trace a CUDA program takes CUPTI, which CUDA's toolkit "
                "has (lib64/libcupti.so with include/cupti.h), or Nsight Systems (nsys), and neither is found"
            )
        return _by_nsys(wanted, program, nsys, folder, is_cancelled, output)


def _by_cupti(
    wanted: Recording, program: Path, cupti: Cupti, folder: Path, is_cancelled: IsCancelled, output: int
) -> Trace:
    library, written = folder / "cupti_trace.so", folder / "trace.tsv"
    _compile(cupti, library)
    variables = {"CUDA_INJECTION64_PATH": str(library), "WARPWRIGHT_CUPTI_TRACE": str(written)}
    said = _run([str(program), *wanted.arguments], wanted, folder, variables, is_cancelled, output)
    text = shown_bytes(read_file(written, _MOST_BYTES)) if written.exists() else ""
    trace = _after(cupti_trace(text, wanted.script.name), wanted.skip)
    if not (trace.calls or trace.activities):
        why = "CUPTI cannot be used here" if text.startswith("E\t") else "it made no call of CUDA's that a driver saw"
        raise TraceError(f"{wanted.script}: nothing was recorded: {why}{f'; {said}' if said else ''}")
    notes = [said] if said else []
    if not trace.lines:
        notes.append("no line of a call is known: build the program with -g (nvcc -g -lineinfo)")
    return replace(trace, notes=tuple(notes))


def _after(trace: Trace, seconds: float) -> Trace:
    """Without what the program did at first."""
    starts = [*(each.start for each in trace.calls), *(each.start for each in trace.activities)]
    first = min(starts, default=0) + round(seconds * 1e9)
    return replace(
        trace,
        calls=tuple(each for each in trace.calls if each.start >= first),
        activities=tuple(each for each in trace.activities if each.start >= first),
        lines=tuple(each for each in trace.lines if each.time >= first),
    )


def recorder_defines(cupti: Cupti) -> list[str]:
    """What names the structs of this CUPTI for `cupti_trace.cpp`. Raises TraceError."""
    activities = (cupti.header.parent / "cupti_activity.h").read_text(encoding="utf-8", errors="replace")
    defines = []
    for macro, name in _STRUCTS.items():
        versions = [int(each or 0) for each in re.findall(rf"\}} CUpti_Activity{name}(\d*);", activities)]
        if not versions:
            raise TraceError(f"{cupti.header} is not the header of a supported CUPTI")
        defines.append(f"-D{macro}=CUpti_Activity{name}{max(versions) or ''}")
    return defines


def _compile(cupti: Cupti, library: Path) -> None:
    defines = recorder_defines(cupti)
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        raise TraceError("there is no C++ compiler (g++), which nvcc needs too")
    command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", *defines, f"-I{cupti.header.parent}", str(_SOURCE)]
    command += ["-o", str(library), str(cupti.library), f"-Wl,-rpath,{cupti.library.parent}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_COMPILE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TraceError(f"{compiler} cannot be run: {error}") from None
    if done.returncode:
        said = [line for line in shown_bytes(done.stderr).splitlines() if "error" in line]
        raise TraceError(f"what records by CUPTI does not compile with {cupti.header}: {said[0] if said else ''}")


def _by_nsys(
    wanted: Recording, program: Path, nsys: str, folder: Path, is_cancelled: IsCancelled, output: int
) -> Trace:
    report = folder / "report.nsys-rep"
    options = ["profile", "--trace", "cuda,nvtx", "--sample", "none", "--force-overwrite", "true"]
    command = [nsys, *options, "--output", str(report), str(program), *wanted.arguments]
    said = _run(command, wanted, folder, {}, is_cancelled, output)
    if not report.exists():
        raise TraceError(f"nsys wrote no report of {wanted.script}{f': {said}' if said else ''}")
    return replace(read_nsys_report(report), made_by=wanted.script.name, notes=(said,) if said else ())


def _run(
    command: Sequence[str],
    wanted: Recording,
    folder: Path,
    variables: Mapping[str, str],
    is_cancelled: IsCancelled,
    output: int,
) -> str:
    """What is to be said of how it ended."""
    status = run_recorded(command, wanted, folder, variables, wanted.skip + wanted.seconds, is_cancelled, output)
    if status is None:
        return f"stopped after {wanted.seconds:g} s of recording (--seconds)"
    if status < 0:
        return f"the program was ended by signal {-status}; this is what it did before"
    return f"the program ended with status {status}" if status else ""


def cupti_trace(text: str, name: str) -> Trace:
    """What `cupti_trace.cpp` wrote, as a trace. Lines that are cut off are left out."""
    calls: list[Call] = []
    activities: list[Activity] = []
    stacks: dict[int, tuple[int, ...]] = {}
    marks: dict[int, tuple[int, int, int]] = {}
    modules: dict[tuple[int, int, int], str] = {}
    devices: dict[str, None] = {}
    for line in text.splitlines():
        kind, *rest = line.split("\t")
        try:
            match kind:
                case "R":
                    title, start, end, thread, correlation = rest
                    plain = re.sub(r"_v\d+$|_ptsz$", "", title)
                    calls.append(Call(plain, int(start), int(end), thread, int(correlation)))
                case "T":
                    stacks[int(rest[0])] = tuple(map(int, rest[1:]))
                case "S":
                    correlation, *mark = rest
                    marks[int(correlation)] = int(mark[0]), int(mark[1]), int(mark[2])
                case "D":
                    devices[rest[0]] = None
                case "M":
                    modules[int(rest[0]), int(rest[1]), int(rest[2])] = rest[3]
                case "K" | "C" | "F":
                    activities.append(_activity(kind, rest))
        except (ValueError, IndexError):
            continue
    calls.sort(key=lambda each: each.start)
    places = _places({each for stack in stacks.values() for each in stack}, modules)
    kernels = {each.correlation: each.name for each in activities if each.kind is Work.KERNEL}
    lines: list[LineEvent] = []
    recorded: list[tuple[int, int]] = []
    for call in calls:
        stack, began, ended = marks.get(call.correlation, (0, 0, 0))
        own = (places[each] for each in stacks.get(stack, ()) if each in places)
        if place := next((each for each in own if not _is_stub(each, kernels.get(call.correlation))), None):
            lines.append(LineEvent(call.start, call.thread, place))
        if stack:
            recorded.append((began, max(ended, call.start) if call.start - ended < _MOST_GAP else ended))
    return Trace(
        name,
        calls=tuple(calls),
        activities=tuple(activities),
        lines=tuple(lines),
        devices=tuple(devices),
        recorded=tuple(recorded),
        is_python=False,
    )


def _is_stub(place: Place, kernel: str | None) -> bool:
    """Whether a frame is what nvcc writes for a kernel, which stands at the kernel's own line."""
    return place.function.startswith("__device_stub__") or place.function == kernel


def _activity(kind: str, fields: Sequence[str]) -> Activity:
    if kind == "K":
        title, *numbers = fields
        start, end, device, stream, correlation, *shape = map(int, numbers)
        return Activity(
            Work.KERNEL, title, start, end, device, stream, correlation, grid=tuple(shape[:3]), block=tuple(shape[3:6])
        )
    if kind == "F":
        start, end, device, stream, correlation = map(int, fields)
        return Activity(Work.SET, "Memset", start, end, device, stream, correlation)
    way, source, target, size, start, end, device, stream, correlation = map(int, fields)
    direction = _DIRECTIONS.get(way, "")
    pageable = _PAGEABLE in (source, target) and direction in ("HtoD", "DtoH")
    title = f"Memcpy {direction or 'of another kind'}{' (pageable)' if pageable else ''}"
    return Activity(Work.COPY, title, start, end, device, stream, correlation, size, direction, pageable)


def _places(addresses: set[int], modules: Mapping[tuple[int, int, int], str]) -> dict[int, Place]:
    """Of each address that the user's code has its line. A stack has the addresses behind calls."""
    found: dict[int, Place] = {}
    by_file: dict[str, list[tuple[int, int]]] = {}
    for address in sorted(addresses):
        for (start, end, offset), path in modules.items():
            if start <= address < end:
                at = address - 1 if _is_fixed(path) else address - 1 - start + offset
                by_file.setdefault(path, []).append((address, at))
    for path, wanted in by_file.items():
        if not path.startswith(("/usr/lib", "/lib", "/usr/local/cuda")):
            for address, place in zip(
                (each for each, _ in wanted), _resolved(path, [at for _, at in wanted]), strict=False
            ):
                if place is not None:
                    found[address] = place
    return found


def _resolved(path: str, offsets: Sequence[int]) -> Iterator[Place | None]:
    """Lines by addr2line, which binutils has, as every machine with a C++ compiler."""
    tool = shutil.which("addr2line")
    if tool is None:
        return
    asked = "".join(f"{each:#x}\n" for each in offsets)
    try:
        done = subprocess.run(
            [tool, "-f", "-C", "-e", path], input=encoded(asked), capture_output=True, timeout=_RESOLVE_SECONDS,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return
    said = shown_bytes(done.stdout).splitlines()
    for function, where in zip(said[::2], said[1::2], strict=False):
        file, _, line = where.split(" (discriminator", maxsplit=1)[0].rpartition(":")
        known = line.isdigit() and int(line) > 0 and not file.startswith("/usr/") and Path(file).is_file()
        yield Place(file, int(line), function) if known else None


@lru_cache(64)
def _is_fixed(path: str) -> bool:
    """Whether a program is always loaded at the place that its file says (ELF's ET_EXEC)."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(18)
    except OSError:
        return False
    return head[:4] == b"\x7fELF" and head[16:17] == b"\x02"
