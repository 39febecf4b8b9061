"""Profiles by Nsight Compute on this machine's GPU: the harness launches the kernel's problem once, under `ncu`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from warpwright.facts.model import Program
from warpwright.facts.profile import Inputs, Profile
from warpwright.missing import Missing
from warpwright.problems.chosen import chosen_shape
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.infer import find_problem
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.names import instance_of, no_instance
from warpwright.toolchain.ncu import COLLECT, exported, find_ncu, run_ncu
from warpwright.toolchain.ncu_profile import profiles_of
from warpwright.toolchain.ncu_tables import NcuError
from warpwright.verify.harness import find_gpu, harness_environment, harness_python
from warpwright.verify.plan import PlanError, Side, make_launch

RUN_SECONDS = 300.0
_ADVICE = "Without it the emulator profiles kernels: leave out --backend ncu."


def measured_profile(
    program: Program,
    kernel: str,
    sizes: Mapping[str, int],
    flags: tuple[str, ...],
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Profile | Missing:
    """Run one kernel of a saved file on the GPU and read its counters, or what is missing. Blocks for seconds.

    `sizes` gives some of the problem's symbols a size. Raises CancelledError.
    """
    ncu = find_ncu()
    gpu = find_gpu(is_cancelled)
    if isinstance(ncu, Missing):
        return replace(ncu, advice=_ADVICE)
    if isinstance(gpu, Missing):
        return replace(gpu, advice=_ADVICE)
    found = program.kernel(kernel)
    if found is None or found.node is None:
        return Missing("kernel", f"The kernel {kernel} is not defined here.", "Name one that is.")
    problem = find_problem(program, found)
    if isinstance(problem, Missing):
        return problem
    shape = chosen_shape(problem, sizes, problem.own_shape or problem.profile)
    if isinstance(shape, Missing):
        return shape
    progress("Compiling", None)
    source = Source(str(Path(program.source.path).absolute()), program.source.data)
    compiled = compile_cubin(source, arch=gpu.arch, flags=flags, is_cancelled=is_cancelled)
    if compiled.cubin is None:
        return Missing("cubin", compiled.reason, "")
    resources = instance_of(compiled.kernels, kernel, problem.instance)
    if resources is None:
        return no_instance(kernel)
    try:
        request = make_launch(Side(compiled.cubin, resources, problem), shape)
    except (ExpressionError, PlanError) as error:
        return Missing("launch", f"{kernel} cannot be launched: {error}.", "`warpwright problem` writes what is known.")
    progress(f"Running {kernel} under Nsight Compute", None)
    texts = {path: each.data for path, each in program.sources.items()}
    with tempfile.TemporaryDirectory(prefix="warpwright-ncu-") as folder:
        report = Path(folder) / "report.ncu-rep"
        asked = Path(folder) / "request.json"
        asked.write_text(json.dumps(request), encoding="utf-8")
        command = [
            str(ncu), "-f", "-o", str(report.with_suffix("")), *COLLECT,
            "--kernel-name-base", "mangled", "--kernel-name", resources.mangled_name, "--launch-count", "1",
            harness_python(), "-m", "warpwright_harness", "--once", str(asked),
        ]  # fmt: skip
        try:
            run_ncu(command, Path(folder), RUN_SECONDS, harness_environment(), is_cancelled)
            with exported(ncu, report, is_cancelled) as (table, launches):
                (profile, *_) = profiles_of(table, texts, [kernel], launches, problem.launch_origin, gpu.name)
        except NcuError as error:
            return Missing("profile", str(error), _ADVICE)
    launch = replace(profile.launch, shape=dict(shape))
    notes = (*profile.notes, *problem.notes)
    options = (f"-arch={gpu.arch}", *flags)
    return replace(profile, launch=launch, flags=options, inputs=Inputs.PROBLEM, notes=notes)
