"""Kernels as packages of PyTorch, on a GPU: built, their own tests run (opcheck, gradcheck, torch.compile, sizes),
their results beside what they should compute, and what a call costs beside a wrapper written by hand.

    python benchmarks/wired_kernels.py write FOLDER [--only NAME...]    needs nvcc and no GPU
    python benchmarks/wired_kernels.py build FOLDER [--seconds S] [--jobs N]
    python benchmarks/wired_kernels.py test FOLDER --out DIR [--seconds S] [--jobs N]
    python benchmarks/wired_kernels.py time FOLDER --out DIR

`write` wires every sample, with the formula in wired_formulas.toml where one says what it computes, and one formula
with a derivative of each kind in formulas/ as `formula --as package` does. `build` builds them, which needs torch, nvcc
and no GPU; `test` writes wired_kernels.json, `time` wrapper_overhead.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from formula_catalogue import catalogue
from hardware import gpu_run, processor

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "csrc_samples"
SERVER = HERE.parent / "server"
ONE_SECONDS = 170
"""For one package: its build and its tests."""
TYPES = ("f32", "f64")
"""Of the packages of formulas."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["write", "build", "test", "time"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no package later")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.action == "write":
        return write(arguments.folder, arguments.only)
    if arguments.action == "time":
        return timed(arguments.folder, arguments.out)
    return built(arguments) if arguments.action == "build" else tested(arguments)


def write(folder: Path, only: list[str]) -> int:
    """A folder for each package, and written.json."""
    from warpwright.formulas.lexer import FormulaError
    from warpwright.writer.extension import NoExtensionError
    from warpwright.writer.wire import wired

    rows = json.loads((folder / "written.json").read_text(encoding="utf-8")) if only else {}
    formulas = tomllib.loads((HERE / "wired_formulas.toml").read_text(encoding="utf-8"))
    for path in sorted(SAMPLES.glob("*/*/kernel.cu")):
        name = path.parent.name
        if not only or name in only:
            rows[name] = _sample(folder / name, path, formulas.get(name, ""))
            print(name, {key: value for key, value in rows[name].items() if key != "notes"}, flush=True)
    for _, entries in itertools.groupby(catalogue(), key=lambda entry: entry.kind):
        for each in entries:
            name = f"formula_{each.name}"
            if only and name not in only:
                continue
            try:
                made = wired(each.text, name, TYPES)
            except (FormulaError, NoExtensionError):
                continue
            if not made.backward:
                continue
            _put(folder / name, made.files, each.text)
            rows[name] = {"of": "formula", "formula": each.text, "backward": True, "types": TYPES}
            break
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "written.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


def _sample(folder: Path, path: Path, formula: str) -> dict[str, Any]:
    from warpwright.facts.analyze import analyze
    from warpwright.formulas.lexer import FormulaError
    from warpwright.progress import never_cancelled
    from warpwright.syntax.source import read_source
    from warpwright.verify.given_kernel import NotWiredError
    from warpwright.verify.wire import Asked, package_name, wired_kernel

    program = analyze(read_source(path))
    kernel = program.defined_kernels[0]
    name = package_name(kernel.name)
    row: dict[str, Any] = {"of": "sample", "kernel": kernel.name, "package": name, "formula": formula}
    for text in dict.fromkeys((formula, "")):
        try:
            made = wired_kernel(program, kernel, Asked(name, text), lambda *_: None, never_cancelled)
        except (NotWiredError, FormulaError) as error:
            row["refused" if not text else "not the formula"] = str(error)[:400]
            continue
        _put(folder, made.package.files, text)
        row |= {"types": made.types, "backward": bool(made.package.backward), "no_backward": made.package.no_backward}
        return row | {"notes": made.notes, "emulated": {k: v.status.value for k, v in made.reports.items()}}
    return row


def _put(folder: Path, files: dict[str, str], formula: str) -> None:
    (package,) = (Path(name).parent.name for name in files if name.endswith("__init__.py"))
    texts = {**files}
    if formula:
        texts["tests/formula.txt"] = formula
        texts["tests/test_formula.py"] = BESIDE_FORMULA.format(name=package)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


BESIDE_FORMULA = '''"""Its results beside its formula, evaluated in double precision."""

from pathlib import Path

import pytest
import torch
from test_{name} import SHAPES, TYPES, arguments
from warpwright.formulas.numpy_reference import evaluate
from warpwright.formulas.resolve import formula_of
from warpwright.writer.extension import arguments_of
from warpwright.writer.forms import for_python

import {name} as package


@pytest.mark.parametrize("dtype", TYPES)
def test_it_computes_its_formula(dtype):
    formula = formula_of(for_python((Path(__file__).parent / "formula.txt").read_text()))
    args = arguments(*SHAPES[0], dtype)
    given = dict(zip(arguments_of(formula), args, strict=True))
    arrays = {{each.name: given[each.name].double().cpu().numpy() if given[each.name].is_floating_point()
               else given[each.name].cpu().numpy() for each in formula.inputs}}
    rest = {{key: value for key, value in given.items() if key not in arrays}}
    wanted = evaluate(formula, arrays, rest, {{key: rest[key] for key in formula.sizes if key in rest}})
    made = package.{name}(*args)
    made = made if isinstance(made, tuple) else (made,)
    for result, name in zip(made, [e.name for e in formula.tensors.values() if e.role == "out"], strict=True):
        tolerance = 1e-3 if dtype in (torch.float32, torch.float64) else 2e-2
        torch.testing.assert_close(result.double().cpu(), torch.as_tensor(wanted[name]).double(), rtol=tolerance,
                                   atol=tolerance, equal_nan=True)
'''


def built(arguments: argparse.Namespace) -> int:
    """Imports each package, which builds it, and builds the wrappers by hand."""
    until = time.monotonic() + arguments.seconds

    def build(name: str) -> str:
        if time.monotonic() > until:
            return "left out: the time was over"
        began = time.monotonic()
        code = f"import {_package(arguments.folder / name)}"
        if name == BY_HAND:
            code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import wired_kernels, pathlib; "
            code += f"wired_kernels.load_by_hand(pathlib.Path({str(arguments.folder.resolve())!r}))"
        try:
            done = subprocess.run(
                [sys.executable, "-c", code], env=_environment(arguments.folder / name), capture_output=True, text=True,
                timeout=max(10.0, until + 60 - time.monotonic()), check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "did not end in time"
        return f"{time.monotonic() - began:.1f} s" if done.returncode == 0 else done.stderr[-1500:]

    names = [*HAND, BY_HAND, *(each for each in _order(arguments) if each not in HAND)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, said in zip(names, pool.map(build, names), strict=True):
            print(name, said, flush=True)
    return 0


def _order(arguments: argparse.Namespace) -> list[str]:
    """The packages that were written: those with a backward first, then other kernels."""
    written = json.loads((arguments.folder / "written.json").read_text(encoding="utf-8"))
    names = [each for each in written if not arguments.only or each in arguments.only]
    names = [each for each in names if (arguments.folder / each).is_dir()]
    return sorted(names, key=lambda each: (not written[each].get("backward"), written[each]["of"] != "sample"))


def _package(folder: Path) -> str:
    return next((path.parent.name for path in folder.glob("*/__init__.py")), "")


def _environment(folder: Path) -> dict[str, str]:
    paths = [str(folder.resolve()), str(SERVER.resolve()), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(each for each in paths if each),
        "TORCH_EXTENSIONS_DIR": str(folder.resolve() / ".built"),
        "MAX_JOBS": "3",
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(folder.resolve() / ".inductor"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def tested(arguments: argparse.Namespace) -> int:
    """The packages with a backward first, then other kernels, each in a process of its own."""
    written = json.loads((arguments.folder / "written.json").read_text(encoding="utf-8"))
    names = _order(arguments)
    until = time.monotonic() + arguments.seconds
    rows: list[dict[str, Any]] = []
    ran = gpu_run()

    def work(name: str) -> dict[str, Any] | None:
        return _tested(arguments.folder / name, written[name], until) if time.monotonic() < until else None

    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, row in zip(names, pool.map(work, names), strict=True):
            rows.append({"package": name, **(row or {"left out": "the time was over"})})
            print(json.dumps(rows[-1])[:400], flush=True)
            if arguments.out:
                document = {**ran, "processor": processor(), "summary": summary(rows), "packages": rows}
                text = json.dumps(document, indent=1) + "\n"
                (arguments.out / "wired_kernels.json").write_text(text, encoding="utf-8")
    print(json.dumps(summary(rows), indent=1))
    return int(any("failures" in row and row["failures"] for row in rows))


def _tested(folder: Path, written: dict[str, Any], until: float) -> dict[str, Any]:
    began = time.monotonic()
    report = folder / "junit.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(folder.resolve()), "-c", os.devnull]
    command = [sys.executable, "-m", "pytest", *options]
    limit = min(ONE_SECONDS, until + 60 - time.monotonic())
    row: dict[str, Any] = {"of": written["of"], "has backward": written.get("backward", False)}
    row["has formula"] = (folder / "tests" / "formula.txt").exists()
    try:
        done = subprocess.run(
            [*command, f"--junitxml={report.resolve()}", str((folder / "tests").resolve())],
            cwd=folder, env=_environment(folder), capture_output=True, text=True, timeout=limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {**row, "failures": {"all": f"did not end in {limit:.0f} seconds"}}
    row["seconds"] = round(time.monotonic() - began, 1)
    if not report.exists():
        return {**row, "failures": {"all": (done.stdout + done.stderr)[-1500:]}}
    return {**row, **_outcomes(report)}


def _outcomes(report: Path) -> dict[str, Any]:
    """Tests that passed by their function, and what failed."""
    passed: dict[str, int] = {}
    failures: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "")
        bad = [each for each in case if each.tag in ("failure", "error")]
        if bad:
            failures[name] = f"{bad[0].get('message', '')[:300]} ... {(bad[0].text or '')[-700:]}"
        elif not any(each.tag == "skipped" for each in case):
            passed[name.partition("[")[0]] = passed.get(name.partition("[")[0], 0) + 1
    return {"passed": passed, "failures": failures}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """
    >>> row = {"has backward": True, "has formula": False, "passed": {"test_opcheck": 2}}
    >>> row["failures"] = {"test_gradients_agree": ""}
    >>> {name: count for name, count in summary([row]).items() if count}
    {'packages': 1, 'ran': 1, 'opcheck passed': 1, 'gradcheck asked': 1, 'tests failed': 1}
    """
    ran = [row for row in rows if "failures" in row]

    def passing(test: str) -> int:
        return sum(
            any(name.startswith(test) for name in row.get("passed", {}))
            and not any(name.startswith(test) for name in row["failures"])
            for row in ran
        )

    return {
        "packages": len(rows),
        "ran": len(ran),
        "opcheck passed": passing("test_opcheck"),
        "gradcheck asked": sum(bool(row["has backward"]) for row in ran),
        "gradcheck passed": passing("test_gradients_agree"),
        "formula asked": sum(bool(row["has formula"]) for row in ran),
        "formula agrees": passing("test_it_computes_its_formula"),
        "all tests passed": sum(bool(row.get("passed")) and not row["failures"] for row in ran),
        "tests failed": sum(len(row["failures"]) for row in ran),
    }


BY_HAND = ".by_hand"


def load_by_hand(folder: Path) -> None:
    """The operators of wired_by_hand.cpp, built where they are not yet."""
    from torch.utils.cpp_extension import load

    built = (folder / BY_HAND).resolve()
    built.mkdir(exist_ok=True)
    sources = [str((HERE / "wired_by_hand.cpp").resolve())]
    for name, package in HAND.items():
        source = (folder / name / package / "csrc" / f"{package}.cu").resolve()
        own = built / f"{package}_beside.cu"  # samples are programs, and one library has one main
        text = f'#define main main_of_{package}\n#include "{source}"\n'
        if not own.exists() or own.read_text(encoding="utf-8") != text:
            own.write_text(text, encoding="utf-8")
        sources.append(str(own))
    load("by_hand", sources, build_directory=str(built), extra_cuda_cflags=["-O3"], is_python_module=False)


CALLS = 1000
ROUNDS = 25
AIM_US = 3.0


def timed(folder: Path, out: Path | None) -> int:
    """Microseconds of the processor in a call: of packages, and of wrappers by hand around the same launch functions,
    in turns; where gradients are required, those with a backward too. What a call launches takes less than the call, so
    the GPU does not hold it up."""
    import torch

    load_by_hand(folder)
    sys.path[:0] = [str((folder / name).resolve()) for name in HAND]
    x, w = torch.randn(16, 64, device="cuda"), torch.randn(64, device="cuda")
    flat = torch.randn(1024, device="cuda")
    arguments = {
        "scale_chunks": (flat, 2.0),
        "matvec_rows": (x, w),
        "rms_norm_block": (x, w, 1e-5),
        "saxpy": (flat, flat.clone(), 0.0),
    }
    rows = []
    for name, package in HAND.items():
        os.environ["TORCH_EXTENSIONS_DIR"] = str((folder / name).resolve() / ".built")
        wired = getattr(__import__(package), package)
        for way in ("plain", "no_grad", "requires grad"):
            args, library = arguments[name], torch.ops.by_hand
            if way == "requires grad":
                if name == "saxpy":
                    continue  # what writes over its argument has no backward
                args = tuple(e.clone().requires_grad_() if isinstance(e, torch.Tensor) else e for e in args)
                library = torch.ops.by_hand_with_backward
                _agree(wired, getattr(library, package), args)
            with torch.set_grad_enabled(way != "no_grad"):
                rows.append({"package": name, "call": way, **_beside(wired, getattr(library, package), args)})
            print(json.dumps(rows[-1]), flush=True)
    document = {
        **gpu_run(),
        "processor": processor(),
        "aim_us": AIM_US,
        "most_us": max(row["added_us"] for row in rows),
        "within": sum(row["added_us"] < AIM_US for row in rows),
        "rows": rows,
    }
    if out:
        (out / "wrapper_overhead.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def _agree(wired: Any, by_hand: Any, args: tuple[Any, ...]) -> None:
    """Both are the same function, with the same gradients."""
    import torch

    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    results = [call(*args) for call in (wired, by_hand)]
    gradients = [torch.autograd.grad(each.sum(), tensors) for each in results]
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def _beside(wired: Any, by_hand: Any, args: tuple[Any, ...]) -> dict[str, float]:
    import torch

    def microseconds(call: Any) -> float:
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(CALLS):
            call(*args)
        taken = time.perf_counter() - begun
        torch.cuda.synchronize()
        return taken / CALLS * 1e6

    for call in (wired, by_hand):
        microseconds(call)
    pairs = [(microseconds(wired), microseconds(by_hand)) for _ in range(ROUNDS)]
    ours, theirs = (min(column) for column in zip(*pairs, strict=True))
    differences = sorted(a - b for a, b in pairs)
    return {
        "wired_us": round(ours, 2),
        "by_hand_us": round(theirs, 2),
        "added_us": round(statistics.median(differences), 2),
    }


HAND = {
    "scale_chunks": "scale_chunks",
    "matvec_rows": "matvec_rows",
    "rms_norm_block": "rms_norm_block",
    "saxpy": "saxpy",
}
"""Packages beside which a wrapper by hand stands in wired_by_hand.cpp."""


if __name__ == "__main__":
    sys.exit(main())
