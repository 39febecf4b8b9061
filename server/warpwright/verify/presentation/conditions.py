"""Under which conditions it was run, and what was not checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from warpwright.verify.presentation.blocks import JUDGES, Cell, Json, Section, Table, cells
from warpwright.verify.report import UNTIMED, Level, Status

_NAMES = {
    "driver": "driver",
    "cuda": "CUDA",
    "torch": "torch",
    "bindings": "cuda.bindings",
    "numpy": "NumPy",
    "seed": "seed of the values",
    "judge": "judged by",
    "sandbox": "sandbox",
    "sha256": "binaries (SHA-256)",
}
_MACHINE = frozenset({"name", "uuid", "arch", "capability", "multiprocessors", "l2_bytes", "memory_bytes"})


_LACKS = re.compile(r"\bnot\b|\bleft out\b|\bno output\b")


def unchecked_section(report: Json) -> Section | None:
    lines = [Cell(line) for line in _unchecked(report)]
    return Section("Not checked", tuple(lines)) if lines else None


def _unchecked(report: Json) -> Iterator[str]:
    levels = report["levels"]
    if report["status"] == Status.NOT_RUN and str(Level.COMPILED) in levels:
        yield "Correctness and speed: it was not run."
    elif report["status"] == Status.CURED:
        yield "Results and speed: the original does wrong in every run."
    elif report["status"] == Status.RAN:
        yield "Results and speed: nothing says what it should compute."
    elif report["backend"] in UNTIMED and report["cases"]:
        yield f"Speed: the {report['backend']} times nothing; an NVIDIA GPU is needed."
    elif report["cases"] and not report["speed"] and str(Level.CORRECT) in levels:
        yield "Speed: it was not timed."
    if report["speed"] and not any((each.get("peers") or {}).values() for each in report["speed"]):
        yield "Whether torch is faster than both: there is no reference in torch (reference.py)."
    yield from (_sentence(note) for note in report["notes"] if _LACKS.search(note))


def uncovered_section(report: Json) -> Section | None:
    """What the verdict does not cover, each with its place."""
    lines = tuple(Cell(_uncovered(each), "warn") for each in report.get("uncovered", ()))
    return Section("Not covered by this verdict", lines) if lines else None


def _uncovered(each: Json) -> str:
    place = f"{each['file']}:{each['line']}: " if each["file"] else ""
    return f"{place}{_sentence(each['text']) if not place else each['text'].rstrip('.') + '.'}"


def notes_section(report: Json) -> Section | None:
    """What else is to be known; what was not checked has a section of its own."""
    lines = tuple(Cell(_sentence(note)) for note in report["notes"] if not _LACKS.search(note))
    return Section("Notes", lines) if lines else None


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."


def conditions_section(report: Json) -> Section | None:
    rows = tuple(cells(name, text) for name, text in _conditions(report))
    return Section("Conditions", (Table(("", ""), rows, frozenset({0, 1})),)) if rows else None


def _conditions(report: Json) -> Iterator[tuple[str, str]]:
    environment = report["environment"]
    if not environment:
        return
    yield "run by", _machine(environment)
    for key, value in environment.items():
        name = _NAMES.get(key, key.replace("_", " "))
        if key not in _MACHINE and value not in (None, "", [], {}):
            yield name, JUDGES.get(value, value) if key == "judge" else _text(key, value)
    compiled = report["compile"] or {}
    if compiled.get("compiler"):
        yield "compiler", f"{compiled['compiler']}, {compiled['arch']}"


def _machine(environment: Json) -> str:
    """The GPU with what it has, or the emulator."""
    parts = [f"{environment['multiprocessors']} multiprocessors"] if environment.get("multiprocessors") else []
    for key, name in (("l2_bytes", "second-level cache"), ("memory_bytes", "memory")):
        parts += [f"{_text(key, environment[key])} {name}"] if environment.get(key) else []
    return str(environment.get("name", "")) + (f" ({', '.join(parts)})" if parts else "")


def _text(key: str, value: Any) -> str:
    if key.endswith("_bytes") and isinstance(value, int):
        return f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_text(name, each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text("", each) for each in value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)[:16] if re.fullmatch("[0-9a-f]{64}", str(value)) else str(value)
