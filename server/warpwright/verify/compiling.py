"""Both sides compiled, at the same time; the candidate confined to what its project may include."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from warpwright.facts.compiled import occupancies, with_compiled
from warpwright.facts.model import Program
from warpwright.missing import Missing
from warpwright.progress import CancelledError, IsCancelled
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.nodes import walk
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled, Ending
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.included import included_files
from warpwright.toolchain.rights import project_folders
from warpwright.verify.report import CompiledKernel, Status

STATUS_OF = {
    Ending.COMPILED: Status.NOT_RUN,
    Ending.ERRORS: Status.DOES_NOT_COMPILE,
    Ending.TIMEOUT: Status.TIMEOUT,
    Ending.MISSING: Status.NOT_RUN,
    Ending.BROKEN: Status.NOT_RUN,
}
"""The verdict on a text of which nothing is known but how its compilation ended."""
_SYSTEM = ("/usr", "/opt", "/lib", "/lib64", "/nix", "/gnu")


def compiled_both(
    original: Source,
    candidate: Source,
    *,
    arch: str,
    flags: tuple[str, ...],
    timeout: float,
    reads: tuple[str, ...] | None,
    is_cancelled: IsCancelled,
) -> tuple[Compiled, Compiled]:
    """The original and the candidate, compiled at the same time. Where the candidate fails it stands for both.

    `reads` is what the candidate's compiler may read (see `toolchain.rights`). Raises CancelledError.
    """
    failed = threading.Event()

    def compile_original() -> Compiled | None:
        try:
            return compile_cubin(
                original, arch=arch, flags=flags, timeout=timeout,
                is_cancelled=lambda: failed.is_set() or is_cancelled(),
            )  # fmt: skip
        except CancelledError:
            return None

    with ThreadPoolExecutor(1) as compiler:
        beside = compiler.submit(compile_original)
        try:
            after = compile_cubin(
                candidate, arch=arch, flags=flags, timeout=timeout, is_cancelled=is_cancelled, reads=reads
            )
            if not after.ok:
                failed.set()
        except BaseException:
            failed.set()
            raise
        before = beside.result()
    if not after.ok:
        return after, after
    if before is None:
        raise CancelledError
    return before, after


def compiled_kernel(compiled: Compiled, program: Program, name: str) -> CompiledKernel | None:
    """What the instance that is launched first takes, and its occupancy where the launch is known."""
    kernel = with_compiled(program, compiled.kernels.values()).kernel(name)
    if kernel is None:
        return None
    launched = next(occupancies(kernel), None)
    if launched is not None:
        return CompiledKernel(launched.resources, launched.occupancy)
    instances = kernel.compiled or compiled.instances(name)
    return CompiledKernel(instances[0], None) if instances else None


def allowed_folders(
    original: Source, candidate: Source, flags: Iterable[str], project_flags: Iterable[str]
) -> tuple[str, ...]:
    """What the candidate may include beside the compiler's and the system's headers: its project's files, the folders
    that the flags name, and what lies beside a file that the original includes.

    `project_flags` are those of `flags` that the project has set: what a library's headers include in their turn is not
    looked up (torch's are 4,500 files).
    """
    included = included_files(original, parse_flags(tuple(project_flags), Path()).folders)
    return project_folders((original.path, candidate.path, *included), flags)


def foreign_include(original: Source, candidate: Source, allowed: tuple[str, ...]) -> str:
    """A sentence where the candidate's text includes a file outside `allowed` that the original's does not; else "".

    An absolute path and one that leads out of the folders are foreign whether or not there is such a file.
    """
    known = set(_included(original))
    folder = Path(candidate.path).absolute().parent
    for name in _included(candidate):
        if name in known or not (Path(name).is_absolute() or ".." in Path(name).parts):
            continue
        target = (folder / name).resolve()
        if not _lies_in(target, allowed) and not _lies_in(target, _headers()):
            return f"The candidate includes {name}, which lies outside its project and the compiler's own folders."
    return ""


def foreign_file(before: Compiled, after: Compiled, allowed: tuple[str, ...]) -> str:
    """The same of the files that the compiler read, however the text spelt them."""
    as_written = frozenset(before.included)
    new = [(path, Path(path).resolve()) for path in dict.fromkeys(after.included) if path not in as_written]
    inside = (*allowed, *_headers()) if new else ()
    outside = [(path, target) for path, target in new if not _lies_in(target, inside)]
    known = {Path(path).resolve() for path in before.included} if outside else set()
    for path, target in outside:
        if target not in known:
            return f"The candidate includes {path}, which lies outside its project and the compiler's own folders."
    return ""


def _included(source: Source) -> list[str]:
    """The names in its include directives, as they are written."""
    names = []
    for text in (source, *source.changed):
        for node in walk(text.root):
            path = node.child_by_field_name("path") if node.type == "preproc_include" else None
            if path is not None:
                names.append(text.node_text(path).strip('"<>'))
    return names


def _headers() -> tuple[str, ...]:
    toolchain = find_toolchain()
    own = () if isinstance(toolchain, Missing) else tuple(str(each.resolve().parent) for each in toolchain.include_dirs)
    return (*own, *_SYSTEM)


def _lies_in(path: Path, folders: Iterable[str]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
