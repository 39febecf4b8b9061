"""Compile a CUDA file for one architecture with nvcc, and say what each kernel takes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from warpwright.directories import cache_dir
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.syntax.names import unqualified
from warpwright.syntax.source import Source
from warpwright.toolchain import cache
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.toolchain.messages import CompilerMessage, KernelResources, parse_messages, parse_resources
from warpwright.toolchain.process import Finished, run_limited

OUTPUT_BYTES = 4 << 20
MEMORY_BYTES = 12 << 30
_PASSED_ON = (
    "PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "SYSTEMROOT",
    "INCLUDE", "LIB", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
)  # fmt: skip
"""What the compiler gets of the environment: it needs no secret of the user's."""


class Ending(StrEnum):
    COMPILED = "compiled"
    ERRORS = "errors"  # the compiler rejected the text
    TIMEOUT = "timeout"
    MISSING = "missing"  # there is no compiler
    BROKEN = "broken"  # the compiler failed without saying what is wrong with the text


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of one compilation. `kernels` is keyed by the demangled name, such as `reduce<float, 256>`.

    `cubin` is a file in the user's cache, None unless `ok`. `reason` is one sentence for the user where it is not ok.
    `compiler` and `flags` say what was run, for reports.
    """

    ending: Ending
    messages: tuple[CompilerMessage, ...] = ()
    kernels: Mapping[str, KernelResources] = field(default_factory=lambda: {})
    cubin: Path | None = None
    reason: str = ""
    compiler: str = ""
    arch: str = ""
    flags: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.ending is Ending.COMPILED

    def instances(self, kernel: str) -> tuple[KernelResources, ...]:
        """The compiled kernels that the text calls `kernel`: one for each instance of a template or overload."""
        return tuple(r for name, r in self.kernels.items() if unqualified(name) == unqualified(kernel))


def compile_cubin(
    source: Source,
    *,
    arch: str = "sm_90",
    flags: tuple[str, ...] = (),
    timeout: float = 60.0,
    is_cancelled: IsCancelled = never_cancelled,
) -> Compiled:
    """Compile the text of `source` (which may be an unsaved buffer) as the file at its path, for `arch` alone.

    Quoted includes are found beside the file on disk. The result is kept in the user's cache under a hash of the text,
    every file that it includes, the flags, the architecture and the compiler's version; a second call with nothing
    changed runs no compiler. nvcc's front end checks the file's host code too. Raises CancelledError.
    """
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        return Compiled(Ending.MISSING, reason=str(toolchain), arch=arch, flags=flags)
    compiler = f"nvcc {toolchain.version}"
    environment = {name: value for name in _PASSED_ON if (value := os.environ.get(name)) is not None}
    key = cache.key_of(
        str(Path(source.path).absolute()),
        source.data,
        arch,
        flags,
        str(toolchain.nvcc),
        compiler,
        sorted(environment.items()),
    )
    entry = cache.lookup(key)
    if entry is None:
        try:
            with cache.building_directory() as directory:
                failure = _build(
                    toolchain,
                    source,
                    arch=arch,
                    flags=flags,
                    timeout=timeout,
                    is_cancelled=is_cancelled,
                    environment=environment,
                    directory=directory,
                )
                if failure is not None:
                    return failure
                entry = cache.store(key, directory, _dependencies(directory))
        except OSError as error:
            reason = f"The cache {cache_dir()} cannot be written ({error.strerror}); set WARPWRIGHT_CACHE_DIR."
            return Compiled(Ending.BROKEN, reason=reason, compiler=compiler, arch=arch, flags=flags)
    kernels = _by_name(parse_resources(entry.output))
    messages = parse_messages(entry.output, source.path)
    return Compiled(Ending.COMPILED, messages, kernels, entry.cubin, "", compiler, arch, flags)


def _build(
    toolchain: Toolchain,
    source: Source,
    *,
    arch: str,
    flags: tuple[str, ...],
    timeout: float,
    is_cancelled: IsCancelled,
    environment: Mapping[str, str],
    directory: Path,
) -> Compiled | None:
    """Run nvcc in `directory`. None is a success that left kernel.cubin there; a failure says what went wrong."""
    path = Path(source.path).absolute()
    (directory / "source.cu").write_bytes(_with_line_marker(source.data, source.path))
    command = [
        str(toolchain.nvcc), "-cubin", "-x", "cu", f"-arch={arch}", "-Xptxas", "-v", "-lineinfo",
        "-MD", "-MF", "dependencies.d", f"-I{path.parent}", *flags, "-o", "kernel.cubin", "source.cu",
    ]  # fmt: skip
    compiler = f"nvcc {toolchain.version}"

    def failed(ending: Ending, reason: str, messages: tuple[CompilerMessage, ...] = ()) -> Compiled:
        return Compiled(ending, messages, {}, None, reason, compiler, arch, flags)

    (directory / "tmp").mkdir()
    try:
        finished = run_limited(
            command,
            directory=directory,
            environment={**environment, "TMPDIR": str(directory / "tmp"), "LC_ALL": "C.UTF-8"},
            timeout=timeout,
            output_bytes=OUTPUT_BYTES,
            memory_bytes=MEMORY_BYTES,
            is_cancelled=is_cancelled,
        )
    except OSError as error:
        return failed(Ending.BROKEN, f"{toolchain.nvcc} could not be started ({error.strerror}).")
    finally:
        shutil.rmtree(directory / "tmp", ignore_errors=True)
    if finished.timed_out:
        return failed(Ending.TIMEOUT, f"{toolchain.nvcc} {finished.stopped}.")
    if finished.stopped:
        return failed(Ending.BROKEN, f"{toolchain.nvcc} {finished.stopped}.")
    messages = parse_messages(finished.output, source.path)
    errors = [m for m in messages if m.severity == "error"]
    if finished.returncode != 0:
        if errors:
            return failed(Ending.ERRORS, _errors_sentence(errors), messages)
        return failed(Ending.BROKEN, _exit_sentence(toolchain.nvcc, finished), messages)
    if not (directory / "kernel.cubin").is_file():
        return failed(Ending.BROKEN, f"{toolchain.nvcc} ended without an error and without writing a cubin.", messages)
    return None


def _with_line_marker(data: bytes, path: str) -> bytes:
    """The text such that the compiler's messages and line table name the user's file.

    A quote, a backslash or a control character in its name does not survive the compiler, and becomes `_`.

    >>> _with_line_marker(b"int x;", "a b.cu")
    b'#line 1 "a b.cu"\\nint x;'
    """
    quoted = re.sub(r'[\x00-\x1f\x7f"\\]', "_", path)
    return b'#line 1 "%s"\n' % quoted.encode("utf-8", errors="surrogateescape") + data.removeprefix(b"\xef\xbb\xbf")


def _errors_sentence(errors: list[CompilerMessage]) -> str:
    first = errors[0]
    place = f"{Path(first.path).name}:{first.line}: " if first.line else ""
    if len(errors) == 1:
        return f"nvcc found an error: {place}{first.text}."
    return f"nvcc found {len(errors)} errors; the first: {place}{first.text}."


def _exit_sentence(nvcc: Path, finished: Finished) -> str:
    lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
    said = f'its last words were "{_printable(lines[-1])}"' if lines else "it printed nothing"
    return f"{nvcc} failed with exit status {finished.returncode} and named no error; {said}."


def _printable(text: str, limit: int = 120) -> str:
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _dependencies(directory: Path) -> list[Path]:
    """The files that the text includes, from the make rule that nvcc wrote; the text itself is not one of them."""
    try:
        rule = (directory / "dependencies.d").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    names = re.findall(r"(?:\\ |[^\s\\]|\\(?=[^\s]))+", rule.partition(" : ")[2])
    paths = (directory / name.replace("\\ ", " ").replace("$$", "$") for name in names)
    return [p for p in paths if p != directory / "source.cu"]


def _by_name(resources: Mapping[str, KernelResources]) -> dict[str, KernelResources]:
    """Keyed by demangled name; overloads, which share it, by name and mangled name."""
    named: dict[str, KernelResources] = {}
    names = [r.name for r in resources.values()]
    for mangled, resource in resources.items():
        named[resource.name if names.count(resource.name) == 1 else f"{resource.name} [{mangled}]"] = resource
    return named
