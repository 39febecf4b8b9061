"""The work behind "Wire into PyTorch": a package around a kernel, in a new folder beside its file."""

from __future__ import annotations

from pathlib import Path

from warpwright.editor.actions import kernel_for
from warpwright.editor.analysis import compiled_as, compiler_options
from warpwright.editor.formula_comment import formula_of_kernel
from warpwright.editor.job_request import JobError, Json, analysed
from warpwright.formulas.lexer import FormulaError
from warpwright.progress import IsCancelled, Progress
from warpwright.verify.given_kernel import NotWiredError
from warpwright.verify.wire import Asked, WiredKernel, package_name, wired_kernel


def wire(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Write the package of the kernel "kernel". `folder` is where it lies, `text` its Python module, `summary` what of
    it was tried. Raises JobError; a folder that is there is left as it is."""
    progress("Reading the document", 0.0)
    analysis, settings = analysed(request)
    kernel = kernel_for(analysis, request["kernel"], None)
    if kernel is None:
        raise JobError(f"There is no kernel {request['kernel']} here any more.")
    name = package_name(kernel.name)
    folder = Path(kernel.source.path).absolute().with_name(f"{name}_torch")
    if folder.exists():
        raise JobError(f"{folder} is there already: move it away first.")
    formula = formula_of_kernel(kernel)
    path = analysis.source.path
    flags = tuple(compiler_options(path, settings))
    asked = Asked(name, "" if formula is None else formula.text, (), compiled_as(path, settings)[0].arch, flags)
    try:
        made = wired_kernel(analysis.program, kernel, asked, progress, is_cancelled)
        for file, text in made.package.files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
    except (NotWiredError, FormulaError) as error:
        raise JobError(str(error)) from None
    except OSError as error:
        raise JobError(f"{folder} cannot be written ({error.strerror}).") from None
    return {"folder": str(folder), "text": str(folder / name / "__init__.py"), "summary": summary(made, folder)}


def summary(made: WiredKernel, folder: Path) -> str:
    """What was written, what of it was tried, and what was left out."""
    tried = ", ".join(f"{name}: {report.badge()}" for name, report in made.reports.items())
    parts = [f"Wrote {folder} for {' and '.join(made.types)}."]
    parts += [f"{tried}."] if tried else ["The kernel was compared with nothing: the comment above it has no formula."]
    parts += [f"There is no backward: {made.package.no_backward}"] if made.package.no_backward else []
    return " ".join([*parts, *made.notes])
