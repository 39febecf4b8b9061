"""KernelBench's tasks through the door from PyTorch.

    benchmarks/kernelbench.py FOLDER --level level1 --level level2 --out benchmarks/results/kernelbench.json

FOLDER holds a checkout of KernelBench (its tasks are not ours to keep). For each task: does its module become a plan,
and which parts stay torch's; and is what the formulas compute, by NumPy, what the module computes, with the whole
numbers of the task's file cut down to sizes that NumPy gets through.

With --gpu, at the task's own sizes instead: what is written for the formulas is compiled, compared with the module, and
timed beside it, eager and, with --compile, through torch.compile. fast_1 is the share of all tasks that are right and
at least as fast. With --library-products matrix products and attention stay torch's, as convolutions do.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import gc
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hardware import gpu_run, processor
from warpwright.formulas.aten.graph import graph_of
from warpwright.formulas.aten.plan import Plan, document, plan
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.numpy_reference import evaluate, stored
from warpwright.formulas.resolve import formula_of
from warpwright_harness import exported
from warpwright_harness.planned import run

CUTS = ((4, 2), (6, 2), (8, 2), (12, 2), (12, 1), (16, 1), (24, 1), (32, 1), (64, 1), (128, 1))
"""Whole numbers beyond the first become it, its product with the second, and so on, in their order. They are tried one
after the other until the module runs and its result is more than rounding."""
MOST_ELEMENTS = 1 << 22
"""Of all inputs and parameters of a task that is cut down."""
TOLERANCE = 1e-4
"""Of the norm of the difference to that of the result: both are of f32."""


TIMED = 15
"""Calls of which a time is the median."""
GPU_TOLERANCE = 1e-3
"""The same on a GPU, at the tasks' own sizes."""
NEAR = 1e-4
"""KernelBench's own measure, relative and absolute, of each element of f32: results that are rounding alone pass it."""
PART = 1 << 26
"""Elements of a result that are compared at once."""
LEAST_NORM = 1e-3
"""Of a result: that of what is normalised over one element is rounding."""


@dataclass
class Outcome:
    """What became of a task. `error` is empty where its formulas were evaluated and are right."""

    level: str
    task: str
    through: bool = False
    formulas: int = 0
    calls: tuple[str, ...] = ()
    error: str = ""
    cap: int = 0
    difference: float = 0.0
    seconds: float = 0.0
    gpu: str = ""
    ours_us: float = 0.0
    eager_us: float = 0.0
    compile_us: float = 0.0
    texts: tuple[str, ...] = field(default=(), repr=False)
    plan: Any = field(default=None, repr=False)

    def is_as_fast_as(self, other_us: float) -> bool:
        """Whether it is right, was timed, and takes no longer."""
        return not self.error and 0 < self.ours_us <= other_us


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--level", action="append", choices=("level1", "level2", "level3"))
    parser.add_argument("--task", default="", help="tasks whose names begin so")
    parser.add_argument("--library-products", action="store_true", help="leave matrix products to torch")
    parser.add_argument("--gpu", action="store_true", help="run what is written on the GPU, instead of NumPy")
    parser.add_argument("--compile", action="store_true", help="time torch.compile, too")
    parser.add_argument("--processes", type=int, default=1, help="that share the tasks; one of them times at a time")
    parser.add_argument("--share", type=int, help="try every so manyth task alone: this is one of the processes")
    parser.add_argument(
        "--build", type=Path, default=Path(".build/kernelbench"), help="where compiled kernels are kept"
    )
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--convolutions", action="store_true", help="write convolutions as formulas, too")
    parser.add_argument("--texts", action="store_true", help="print the formulas")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    keeps = {"keeps_convolutions": not arguments.convolutions, "keeps_products": arguments.library_products}
    wanted = [
        each
        for each in tasks(arguments.folder, arguments.level or ["level1", "level2"])
        if each[1].name.startswith(arguments.task)
    ]
    if arguments.share is not None:
        wanted = wanted[arguments.share :: arguments.processes]
    elif arguments.processes > 1:
        outcomes = _shared(arguments)
        print(table(outcomes))
        if arguments.out:
            _keep(arguments.out, outcomes)
        return 0
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 1) // arguments.processes)) as processes:
        outcomes = list(processes.map(partial(tried, keeps=keeps), *zip(*wanted, strict=True)))
    if not arguments.gpu:
        for (_, path), each in zip(wanted, outcomes, strict=True):
            if each.through:
                check(each, path, keeps)
            _show(each, arguments.texts)
            gc.collect()
    if arguments.gpu:
        from formula_timer import Timer
        from kernelbench_gpu import Built

        arguments.build.mkdir(parents=True, exist_ok=True)
        timer = Timer(TIMED)
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // arguments.processes)) as pool:
            made = build(outcomes, lambda text: Built(text, arguments.build, arguments.nvcc, arguments.arch), pool)
            for (_, path), each in zip(wanted, outcomes, strict=True):
                on_gpu(each, path, made, timer, arguments.build, arguments.compile)
                _show(each, arguments.texts)
                if arguments.out:
                    _keep(arguments.out, outcomes)
    print(table(outcomes))
    if arguments.out:
        _keep(arguments.out, outcomes)
    return 0


def _shared(arguments: argparse.Namespace) -> list[Outcome]:
    """The outcomes of several processes, in the tasks' order."""
    arguments.build.mkdir(parents=True, exist_ok=True)
    outs = [arguments.build / f"share_{n}.json" for n in range(arguments.processes)]
    running = [
        subprocess.Popen([sys.executable, *sys.argv, "--share", str(n), "--out", str(out)])
        for n, out in enumerate(outs)
    ]
    for each in running:
        each.wait()
    found = [
        Outcome(**{**each, "calls": tuple(each["calls"])})
        for out in outs
        if out.exists()
        for each in json.loads(out.read_text(encoding="utf-8"))["tasks"]
    ]
    return sorted(found, key=lambda each: (each.level, int(each.task.split("_")[0])))


@contextmanager
def held(lock: Path, alone: bool) -> Iterator[None]:
    """A lock, together with other processes or alone."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def _keep(path: Path, outcomes: list[Outcome]) -> None:
    kept = [{k: v for k, v in asdict(each).items() if k not in ("texts", "plan")} for each in outcomes]
    where = gpu_run() if any(each.gpu for each in outcomes) else {"hardware": processor(), "torch": torch.__version__}
    made = {**where, "shares": shares(outcomes), "tasks": kept}
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def tasks(folder: Path, levels: list[str]) -> Iterator[tuple[str, Path]]:
    """The tasks of some levels, in order."""
    for level in levels:
        found = next((p for p in (folder / "KernelBench" / level, folder / level) if p.is_dir()), None)
        if found is None:
            sys.exit(f"{folder} has no {level}: give a checkout of KernelBench.")
        paths = [path for path in found.glob("*.py") if path.name.split("_")[0].isdigit()]
        for path in sorted(paths, key=lambda each: int(each.name.split("_")[0])):
            yield level, path


def tried(level: str, path: Path, keeps: Mapping[str, bool]) -> Outcome:
    """One task through the door."""
    found = Outcome(level, path.stem)
    began = time.monotonic()
    try:
        made = plan(graph_of(exported.graph_of(str(path), "Model")), **keeps)
        for each in made.formulas:
            formula_of(each.text)
        found.through = True
        found.formulas = len(made.formulas)
        found.calls = tuple(each.said for each in made.calls)
        found.texts = tuple(each.text for each in made.formulas)
        found.plan = document(made)
    except (exported.NotExportedError, FormulaError) as error:
        found.error = str(error)
    found.seconds = round(time.monotonic() - began, 2)
    return found


def build(outcomes: list[Outcome], make: Callable[[str], Any], pool: ThreadPoolExecutor) -> dict[str, Future[Any]]:
    """What is written for each formula, compiled in the background."""
    return {text: pool.submit(make, text) for text in dict.fromkeys(text for each in outcomes for text in each.texts)}


def on_gpu(
    found: Outcome, path: Path, builds: Mapping[str, Future[Any]], timer: Any, folder: Path, with_compile: bool
) -> None:
    """One task at its own sizes: right, and how fast. One for which other processes leave too little memory is run
    again without them."""
    for alone in (False, True):
        with held(folder / "memory.lock", alone):
            on_gpu_once(found, path, builds, timer, folder, with_compile)
        if "out of memory" not in found.error:
            return


def on_gpu_once(
    found: Outcome, path: Path, builds: Mapping[str, Future[Any]], timer: Any, folder: Path, with_compile: bool
) -> None:
    from kernelbench_gpu import ran

    if not found.through:
        return
    found.error = ""
    names: dict[str, Any] = {"__name__": "task"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    torch.manual_seed(0)
    module = inputs = ours = compiled = None
    try:
        built = {text: builds[text].result() for text in found.texts}
        with torch.device("cuda"), torch.no_grad():
            with held(folder / "time.lock", alone=False):
                module = names["Model"](*names["get_init_inputs"]()).cuda()
                inputs = [each.cuda() if isinstance(each, torch.Tensor) else each for each in names["get_inputs"]()]
                ours = ran(found.plan, built, module, inputs)
                torch.manual_seed(1)
                results = ours()
                torch.manual_seed(1)
                truth = module(*inputs)
                truths = list(truth) if isinstance(truth, tuple | list) else [truth]
                found.difference = max(distance(one, other) for one, other in zip(results, truths, strict=True))
                near = all(map(partial(torch.allclose, rtol=NEAR, atol=NEAR), results, truths))
                if not (near or found.difference <= GPU_TOLERANCE):
                    found.error = f"Its results differ by {found.difference:.2g}."
                del results, truth, truths
            with held(folder / "time.lock", alone=True):
                found.ours_us, found.eager_us = timer(ours), timer(lambda: module(*inputs))
            if with_compile:
                compiled = torch.compile(module)
                compiled(*inputs)
                with held(folder / "time.lock", alone=True):
                    found.compile_us = timer(lambda: compiled(*inputs))
                torch.compiler.reset()
    except Exception as error:  # also where memory runs out
        found.error = (str(error) or type(error).__name__).splitlines()[0]
    found.gpu = torch.cuda.get_device_name()
    module = inputs = ours = compiled = None
    gc.collect()
    torch.cuda.empty_cache()


def check(found: Outcome, path: Path, keeps: Mapping[str, bool]) -> None:
    """Compares the formulas, by NumPy, with the module, at the largest whole numbers with which it runs."""
    for cap, step in CUTS:
        names = cut_down(path, cap, step)
        torch.manual_seed(0)
        try:
            module = names["Model"](*names["get_init_inputs"]())
            inputs = names["get_inputs"]()
            tensors = [each for each in (*inputs, *module.parameters()) if isinstance(each, torch.Tensor)]
            if sum(each.numel() for each in tensors) > MOST_ELEMENTS:
                continue
            state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
            state = {name: each.detach().clone() for name, each in state.items()}
            torch.manual_seed(1)
            with torch.no_grad():
                truth = module(*inputs)
        except Exception as error:
            found.error = f"Cut down, the module does not run: {error}"
            continue
        first = truth[0] if isinstance(truth, tuple | list) else truth
        if not float(first.double().norm()) > LEAST_NORM:
            continue
        found.cap, found.error = cap, ""
        compare(found, module, inputs, state, truth, keeps)
        return
    found.error = found.error or "Cut down, the task is still too large."


def compare(
    found: Outcome, module: Any, inputs: list[Any], state: dict[str, Any], truth: Any, keeps: Mapping[str, bool]
) -> None:
    """The plan of the module at these inputs, run, and its distance from `truth`."""
    program = exported.exported(module, tuple(inputs), found.task)
    for name, each in program.constants.items():
        if isinstance(each, torch.Tensor):
            state.setdefault(name, each)
    made: Plan = plan(graph_of(exported.document(program)), **keeps)
    torch.manual_seed(1)
    with torch.no_grad():
        results, _ = run(document(made), state, inputs, by_numpy)
    truths = list(truth) if isinstance(truth, tuple | list) else [truth]
    if [tuple(each.shape) for each in results] != [tuple(each.shape) for each in truths]:
        found.error = f"Its results have the shapes {[tuple(e.shape) for e in results]}."
        return
    found.difference = max(distance(one, other) for one, other in zip(results, truths, strict=True))
    if not found.difference <= TOLERANCE:
        found.error = f"Its results differ by {found.difference:.2g}."


def by_numpy(part: Mapping[str, Any], reads: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A formula's arrays by the reference."""
    formula = formula_of(part["formula"])
    made = stored(formula, evaluate(formula, {name: each.numpy() for name, each in reads.items()}))
    return {name: torch.from_numpy(np.array(each)) for name, each in made.items()}


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The norm of the difference to that of `other`; infinite where one has a NaN alone. A part at a time: in double
    precision the whole takes more memory than there may be."""
    apart = whole = 0.0
    for a, b in zip(one.flatten().split(PART), other.flatten().split(PART), strict=True):
        if not torch.equal(a.isnan(), b.isnan()):
            return float("inf")
        same = (a == b) | a.isnan()
        exact = b.double().masked_fill(same & ~b.isfinite(), 0.0)
        apart += float((a.double() - exact).masked_fill(same, 0.0).square().sum())
        whole += float(exact.square().sum())
    return math.sqrt(apart) / max(math.sqrt(whole), 1e-30)


class _Cut(ast.NodeTransformer):
    def __init__(self, smaller: Mapping[int, int]) -> None:
        self.smaller = smaller

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and node.value in self.smaller:
            return ast.copy_location(ast.Constant(self.smaller[node.value]), node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def cut_down(path: Path, cap: int, step: int) -> dict[str, Any]:
    """The names of a task's file, run with smaller whole numbers outside of its classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    outside = [each for top in tree.body if not isinstance(top, ast.ClassDef) for each in ast.walk(top)]
    large = {e.value for e in outside if isinstance(e, ast.Constant) and type(e.value) is int and e.value > cap}
    smaller = {value: min(value, cap * step**number) for number, value in enumerate(sorted(large))}
    names: dict[str, Any] = {"__name__": "task"}
    exec(compile(ast.fix_missing_locations(_Cut(smaller).visit(tree)), str(path), "exec"), names)
    return names


def shares(outcomes: list[Outcome]) -> dict[str, dict[str, Any]]:
    """For each level the shares of tasks that go through, that are right, and of which no part stays torch's."""
    found = {}
    for level in dict.fromkeys(each.level for each in outcomes):
        own = [each for each in outcomes if each.level == level]
        found[level] = {
            "tasks": len(own),
            "through": sum(each.through for each in own) / len(own),
            "correct": sum(each.through and not each.error for each in own) / len(own),
            "all_formulas": sum(each.through and not each.calls for each in own) / len(own),
            "fast_1_eager": sum(each.is_as_fast_as(each.eager_us) for each in own) / len(own),
            "fast_1_compile": sum(each.is_as_fast_as(each.compile_us) for each in own) / len(own)
            if any(each.compile_us for each in own)
            else None,
            "some_formula": sum(each.through and each.formulas > 0 for each in own) / len(own),
        }
    return found


_SHARES = ("through", "correct", "all_formulas", "some_formula", "fast_1_eager", "fast_1_compile")


def table(outcomes: list[Outcome]) -> str:
    """The shares, and what stays torch's by how many tasks have it."""
    lines = [
        "| level | tasks | through | correct | formulas alone | with a formula | fast_1, eager | fast_1, compile |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for level, each in shares(outcomes).items():
        cells = ["-" if each[name] is None else f"{each[name]:.0%}" for name in _SHARES]
        lines.append(f"| {level} | {each['tasks']:.0f} | {' | '.join(cells)} |")
    stays = Counter(said for each in outcomes for said in set(each.calls))
    lines += ["", *(f"{count:4} {said}" for said, count in stays.most_common())]
    return "\n".join(lines)


def _show(each: Outcome, texts: bool) -> None:
    said = each.error or ("right" if each.through else "")
    times = f"; {each.ours_us:.0f} us, eager {each.eager_us:.0f}, compile {each.compile_us:.0f}" if each.ours_us else ""
    print(f"{each.level} {each.task}: {each.formulas} formulas, {len(each.calls)} calls, {said}{times}", flush=True)
    if texts:
        print("\n\n".join(each.texts))


if __name__ == "__main__":
    sys.exit(main())
