"""torch.profiler's Chrome trace (`export_chrome_trace`), plain or gzipped, into a Trace.

The format, as Kineto writes it: an object with `traceEvents` (or that list alone), of which complete events (`ph` "X")
have `ts` and `dur` in microseconds since `baseTimeNanoseconds`. `cat` says what each is: `cpu_op`, `user_annotation`,
`python_function`, `cuda_runtime`, `cuda_driver`, `kernel`, `gpu_memcpy`, `gpu_memset`; older versions write `Operator`,
`Runtime`, `Kernel`, `Memcpy`, `Memset`. Runtime calls and the work that they gave share `args.correlation`; a copy's
name says its direction and both memories: `Memcpy HtoD (Pageable -> Device)`. Whatever in a file is not of this form is
left out, and a file without one event of it is refused.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from warpwright.files import read_file
from warpwright.timeline.model import Activity, Call, Event, Frame, LineEvent, Place, Trace, TraceError, Work

MOST_BYTES = 1 << 30
_OPERATORS, _RANGES, _FRAMES = {"cpu_op", "operator"}, {"user_annotation"}, {"python_function"}
_CALLS = {"cuda_runtime", "cuda_driver", "runtime"}
_WORK = {
    "kernel": Work.KERNEL,
    "gpu_memcpy": Work.COPY,
    "memcpy": Work.COPY,
    "gpu_memset": Work.SET,
    "memset": Work.SET,
}
_FRAME = re.compile(r"(?P<file>[^<].*?)\((?P<line>\d{1,9})\): (?P<function>.+)", re.DOTALL)
_DIRECTION = re.compile(r"Memcpy (?P<direction>\w+)")


def read_torch_trace(path: Path) -> Trace:
    """Raises TraceError."""
    try:
        data = read_file(path, MOST_BYTES)
        if data[:2] == b"\x1f\x8b":
            data = _unzipped(data)
        document = json.loads(data)
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError, EOFError, zlib.error):
        raise TraceError(f"{path} is not JSON; export it with profiler.export_chrome_trace(PATH)") from None
    return torch_trace(document, path.name)


def _unzipped(data: bytes) -> bytes:
    inside = zlib.decompressobj(wbits=31)
    text = inside.decompress(data, MOST_BYTES)
    if inside.unconsumed_tail:
        raise TraceError(f"the trace is larger than {MOST_BYTES >> 20} MB")
    if not inside.eof:
        raise gzip.BadGzipFile
    return text


def torch_trace(document: object, name: str) -> Trace:
    """The trace in a parsed document. Raises TraceError where it has no event of torch.profiler's."""
    listed = document.get("traceEvents") if isinstance(document, Mapping) else document
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise TraceError(f"{name} is not a trace: it has no list traceEvents")
    events = [each for each in listed if isinstance(each, Mapping) and each.get("ph") == "X"]
    host = _host(events)
    ops: list[Event] = []
    calls: list[Call] = []
    ranges: list[Event] = []
    frames: list[Frame] = []
    activities: list[Activity] = []
    for each in events:
        span, title, category = _span(each), each.get("name"), str(each.get("cat", "")).lower()
        if span is None or not isinstance(title, str):
            continue
        thread = f"{each.get('pid')}/{each.get('tid')}"
        if category in _WORK:
            activities.append(_activity(_WORK[category], title, span, each))
        elif host is not None and each.get("pid") != host:
            continue
        elif category in _OPERATORS:
            (ranges if title.startswith("ProfilerStep#") else ops).append(Event(title, *span, thread))
        elif category in _RANGES:
            ranges.append(Event(title, *span, thread))
        elif category in _CALLS:
            calls.append(Call(title, *span, thread, _whole(_args(each).get("correlation"))))
        elif category in _FRAMES and (found := _FRAME.fullmatch(title)):
            frames.append(Frame(found["function"], *span, thread, found["file"], int(found["line"])))
    if not (ops or calls or activities):
        raise TraceError(f"{name} has no operator, no CUDA call and no kernel; is it a trace of torch.profiler's?")
    properties = document.get("deviceProperties") if isinstance(document, Mapping) else None
    devices = [str(each["name"]) for each in _listed(properties) if isinstance(each, Mapping) and "name" in each]
    return Trace(
        name, tuple(ops), tuple(calls), tuple(activities), tuple(ranges), tuple(frames), devices=tuple(devices)
    )


def clock_zero(document: object) -> int:
    """The Unix time in nanoseconds that a trace's times count from."""
    return _whole(document.get("baseTimeNanoseconds")) if isinstance(document, Mapping) else 0


def line_events(recorded: object, zero: int) -> tuple[LineEvent, ...]:
    """The lines that `warpwright_harness.traced_script` wrote down: files, and for each thread times, files and lines;
    a file of -1 is what is not the user's."""
    if not isinstance(recorded, Mapping):
        return ()
    files = [str(each) for each in _listed(recorded.get("files"))]
    places: dict[tuple[int, int], Place | None] = {}
    found = []
    for thread in _listed(recorded.get("threads")):
        if not isinstance(thread, Mapping):
            continue
        rows = zip(
            _listed(thread.get("times")), _listed(thread.get("files")), _listed(thread.get("lines")), strict=False
        )
        for time, file, line in rows:
            known = (_whole(file), _whole(line))
            if known not in places:
                places[known] = Place(files[known[0]], known[1]) if 0 <= known[0] < len(files) else None
            found.append(LineEvent(_whole(time) - zero, str(thread.get("thread")), places[known]))
    return tuple(found)


def is_users(file: str) -> bool:
    """Whether a file is the user's: not of a library, nor of Python itself. torch.profiler shortens names of files by
    the folders that modules are looked for in.

    >>> is_users("train.py"), is_users("/home/me/app/train.py"), is_users("torch/nn/functional.py")
    (True, True, False)
    """
    path = PurePath(file)
    parts = path.parts
    if not parts or file.startswith("<") or {"site-packages", "dist-packages"} & {*parts}:
        return False
    if (
        parts[0] in ("torch", "torchvision", "numpy", "triton")
        or "torch" in parts[:-1]
        or "warpwright_harness" in parts
    ):
        return False
    if any(re.fullmatch(r"python3\.\d+", part) for part in parts[:-1]):
        return False
    return path.is_absolute() or PurePath(parts[0]).stem not in sys.stdlib_module_names


def _host(events: Sequence[Mapping[str, Any]]) -> object:
    """The process of most host events: a trace may hold several."""
    names = _OPERATORS | _CALLS
    counted = Counter(
        each.get("pid")
        for each in events
        if str(each.get("cat", "")).lower() in names and isinstance(each.get("pid"), int | str)
    )
    return counted.most_common(1)[0][0] if counted else None


def _activity(kind: Work, title: str, span: tuple[int, int], event: Mapping[str, Any]) -> Activity:
    args = _args(event)
    direction = _DIRECTION.match(title)
    return Activity(
        kind,
        title,
        *span,
        device=_whole(args.get("device")),
        stream=_whole(args.get("stream")),
        correlation=_whole(args.get("correlation")),
        bytes=max(0, _whole(args.get("bytes"))),
        direction=direction["direction"] if direction else "",
        pageable="pageable" in title.lower(),
        grid=tuple(_whole(each) for each in _listed(args.get("grid"))[:3]),
        block=tuple(_whole(each) for each in _listed(args.get("block"))[:3]),
    )


def _span(event: Mapping[str, Any]) -> tuple[int, int] | None:
    start, length = _number(event.get("ts")), _number(event.get("dur"))
    if start is None or length is None or length < 0:
        return None
    return round(start * 1000), round(start * 1000) + round(length * 1000)


def _number(value: object) -> float | None:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        return number if math.isfinite(number) and abs(number) < 1e18 else None
    return None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _args(event: Mapping[str, Any]) -> Mapping[str, Any]:
    args = event.get("args")
    return args if isinstance(args, Mapping) else {}
