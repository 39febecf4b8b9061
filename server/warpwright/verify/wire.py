"""A kernel that a user wrote as a package of PyTorch: what it is, and what of it was compiled and compared."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from warpwright.facts.model import Kernel, Program
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import CompiledPtx, Ending
from warpwright.toolchain.compile import compile_operator, compile_ptx
from warpwright.verify.formulas import Asked as FormulaAsked
from warpwright.verify.formulas import FormulaNotWrittenError, compared_at, written_and_checked
from warpwright.verify.given_kernel import FLOATS, Given, NotWiredError, flat_codes, formula_codes, formula_in, given
from warpwright.verify.report import PASSED, Report, Status
from warpwright.verify.torch_build import find_torch
from warpwright.verify.wire_tests import FailedTestsError, package_tests
from warpwright.writer.code import Code
from warpwright.writer.extension import NoExtensionError, binding_text
from warpwright.writer.forms import for_python, operator_word
from warpwright.writer.given import given_file
from warpwright.writer.names import is_reserved
from warpwright.writer.wire import Forward, Wired, packaged

SOURCE = "source"
"""The folder below csrc that has the user's file and what it includes."""
_NO_CUDA = "c10/cuda/impl/cuda_cmake_macros.h"
"""A header that a torch without CUDA leaves out of those that an operator includes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted: the package's name, the formula that the kernel computes ("" where it is not known), the types of
    elements where not all that go, and how the file is compiled."""

    name: str
    formula: str = ""
    types: tuple[str, ...] = ()
    arch: str = "sm_90"
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WiredKernel:
    """`reports` are those of the kernel beside its formula, by type, and of the backward; `notes` say what was left out
    or not tried, one sentence each."""

    package: Wired
    types: tuple[str, ...]
    reports: Mapping[str, Report] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form of `wire --format json`."""
        return {
            "files": self.package.files,
            "types": list(self.types),
            "backward": self.package.backward,
            "no_backward": self.package.no_backward,
            "reports": {name: report.to_json() for name, report in self.reports.items()},
            "notes": list(self.notes),
        }


def wired_kernel(
    program: Program, kernel: Kernel, asked: Asked, progress: Progress, is_cancelled: IsCancelled
) -> WiredKernel:
    """The package of a kernel. What nvcc rejects, what computes something else than the formula, and, where a GPU is,
    what fails the package's own tests is not shown.

    Raises NotWiredError, FormulaError and CancelledError."""
    progress("Reading the kernel", None)
    problem = find_problem(program, kernel)
    if isinstance(problem, Missing):
        raise NotWiredError(str(problem))
    own = given(kernel, problem)
    asked = replace(asked, formula=for_python(asked.formula)) if asked.formula else asked
    notes = list(problem.notes)
    wanted = asked.types or (own.own, *(each for each in FLOATS if each != own.own))
    if not own.open_types:
        if set(asked.types) - {own.own}:
            raise NotWiredError(f"{kernel.name} is not a template over its element type: it takes {own.own} alone.")
        wanted = (own.own,)
    taken: list[Code] = []
    reports: dict[str, Report] = {}
    for kind in wanted:
        found = _in_type(own, asked, kind, progress, is_cancelled)
        if isinstance(found, str):
            if asked.types or kind == own.own:
                raise NotWiredError(found)
            notes.append(f"{kind} is left out: {found}")
            continue
        code, report, note = found
        taken.append(code)
        if report is not None:
            reports[kind] = report
        notes += [note] if note and note not in notes else []
        if note and not asked.types:
            break  # without a compiler nothing says which other types the text takes
    types = tuple(kind for kind in wanted if any(each.name == f"{asked.name}_{kind}" for each in taken))
    files = _user_files(program)
    include = f"{SOURCE}/{files.main}"
    sources = {f"{asked.name}.cu": given_file(taken, include), **{f"{SOURCE}/{n}": t for n, t in files.texts.items()}}
    said = asked.formula.splitlines() or [f"{kernel.name} of {files.main}."]
    forward = Forward(taken, sources, said, is_flat=not asked.formula, is_given=True)
    try:
        package = packaged(forward, asked.name, asked.formula, types)
        notes += _operator_notes(taken, asked, progress, is_cancelled)
    except NoExtensionError as error:
        raise NotWiredError(str(error)) from None
    if package.backward:
        reports["backward"] = _backward_report(package.backward, asked, progress, is_cancelled)
    try:
        notes.append(package_tests(package.files, progress, is_cancelled))
    except FailedTestsError as error:
        raise NotWiredError(f"The package's own tests fail:\n{error}") from None
    return WiredKernel(package, types, reports, tuple(dict.fromkeys(notes)))


def _in_type(
    own: Given, asked: Asked, kind: str, progress: Progress, is_cancelled: IsCancelled
) -> tuple[Code, Report | None, str] | str:
    """The kernel in a type, with the report on it and a note; or why there is none."""
    progress(f"Compiling {own.kernel.name} for {kind}", None)
    ways = list(formula_codes(own, asked.name, [kind], asked.formula)) if asked.formula else []
    codes = [each for (each,) in ways] or flat_codes(own, asked.name, [kind])
    made = _compiled(own.kernel.source, given_file(codes[:1], Path(own.kernel.source.path).name), asked, is_cancelled)
    if made.ending is Ending.MISSING:
        return codes[0], None, f"Nothing was compiled: {made.reason}"
    if not made.ok:
        return made.reason
    if not asked.formula:
        return codes[0], None, ""
    return _computes(codes, made, asked, formula_in(own, asked.formula, kind), progress, is_cancelled)


def _compiled(source: Source, text: str, asked: Asked, is_cancelled: IsCancelled) -> CompiledPtx:
    """The PTX of a launch function's text beside the user's file."""
    beside = Source(str(Path(source.path).absolute().with_name("wired.cu")), encoded(text)).including(source)
    return compile_ptx(beside, arch=asked.arch, flags=asked.flags, is_cancelled=is_cancelled)


def _computes(
    codes: Sequence[Code],
    made: CompiledPtx,
    asked: Asked,
    formula: Formula,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> tuple[Code, Report | None, str] | str:
    """The first way to match sizes with which the kernel computes the formula."""
    from warpwright.emulator.formula_check import shapes_for
    from warpwright.emulator.formulas import read_kernels

    compiled, first = read_kernels(made), ""
    for code in codes:
        own = FormulaAsked(code.name, asked.arch)
        report = compared_at(formula, code, compiled, shapes_for(formula, {}), own, progress, is_cancelled)
        if is_cancelled():
            raise CancelledError
        if report.status in PASSED:
            return code, report, ""
        if report.status is Status.NOT_RUN:
            return code, report, f"Whether the kernel computes the formula was not tried: {report.not_run_because}"
        first = first or report.reason
    return f"{codes[0].kernels[0].name} does not compute the formula. {first}"


def _backward_report(text: str, asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> Report:
    own = FormulaAsked(f"{asked.name}_backward", asked.arch)
    try:
        made = written_and_checked(formula_of(text), own, progress, is_cancelled)
    except FormulaNotWrittenError as error:
        raise NotWiredError(f"The backward cannot be written: {error}") from None
    if is_cancelled():
        raise CancelledError
    assert made.report is not None
    if made.report.status not in (*PASSED, Status.NOT_RUN):
        raise NotWiredError(f"The backward is not right: {made.report.reason}")
    return made.report


def _operator_notes(codes: Sequence[Code], asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> list[str]:
    """What is to be said of the operator's C++, which is compiled where torch is. Raises NotWiredError where it is
    rejected."""
    progress("Compiling the operator", None)
    torch = find_torch()
    if isinstance(torch, Missing):
        return [f"The operator was not compiled: {torch.reason}"]
    folders = [Path(flag.removeprefix("-isystem=")) for flag in torch.flags if flag.startswith("-isystem=")]
    own = torch
    if not any((folder / _NO_CUDA).exists() for folder in folders):
        own = replace(torch, flags=(*torch.flags, "-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE"))
    source = Source(f"{asked.name}_operator.cpp", encoded(binding_text(codes, asked.name, is_flat=not asked.formula)))
    made = compile_operator(source, own, is_cancelled=is_cancelled)
    if made.ending is Ending.ERRORS:
        raise NotWiredError(f"The operator does not compile with torch {torch.version}: {made.reason}")
    return [] if made.ok else [f"The operator was not compiled: {made.reason}"]


@dataclass(frozen=True, slots=True)
class _Files:
    """The user's file and those that it includes, by their names below one folder."""

    main: str
    texts: dict[str, str]


def _user_files(program: Program) -> _Files:
    paths = {path: Path(os.path.normpath(Path(path).absolute())) for path in program.sources}
    root = Path(os.path.commonpath([each.parent for each in paths.values()]))
    names = {path: each.relative_to(root).as_posix() for path, each in paths.items()}
    texts = {names[path]: decoded(source.data) for path, source in program.sources.items()}
    return _Files(names[program.source.path], texts)


def package_name(kernel: str) -> str:
    """What the package of a kernel is called.

    >>> package_name("scale_rows_kernel"), package_name("kernel"), package_name("abs_kernel")
    ('scale_rows', 'kernel', 'abs_op')
    """
    name = re.sub(r"_?(?:kernel|cuda)$", "", kernel) or kernel
    return f"{name}_op" if is_reserved(name) or operator_word(name) != name else name
