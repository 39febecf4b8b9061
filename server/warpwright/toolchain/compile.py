"""Compile a CUDA file for one architecture with nvcc: to machine code, with what each kernel takes, to PTX, or as a
torch extension to a shared library."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from warpwright.directories import cache_dir
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.sandbox.confine import UnconfinedError
from warpwright.search_path import use_absolute_folders
from warpwright.syntax.encoding import encoded
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.source import Source
from warpwright.toolchain import cache
from warpwright.toolchain.command_line import HEADER, CommandLine, command_line, unsafe_word
from warpwright.toolchain.compilation import Compilation, Compiled, CompiledLibrary, CompiledPtx, Ending, TorchBuild
from warpwright.toolchain.cubin_info import kernel_info
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.toolchain.included import IncludeError, with_changed, with_line_marker
from warpwright.toolchain.messages import CompilerMessage, parse_resources
from warpwright.toolchain.names import demangle
from warpwright.toolchain.nvcc_output import (
    denied,
    errors_sentence,
    exit_sentence,
    killed_sentence,
    messages_of,
    printable,
    with_place,
)
from warpwright.toolchain.process import LOG, Finished, run_limited
from warpwright.toolchain.rights import Reads, compiler_policy, own_reads, project_root
from warpwright.trust import is_trusted

_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|weak)[ \t]+)*\.entry[ \t]+([\w$]+)", re.MULTILINE | re.ASCII)
OUTPUT_BYTES = 4 << 20
MEMORY_BYTES = 12 << 30
_PASSED_ON = (
    "PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "SYSTEMROOT",
    "INCLUDE", "LIB", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
)  # fmt: skip
"""What the compiler gets of the environment: it needs no secret of the user's."""
_OPTIONS = ("NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


@dataclass(frozen=True, slots=True)
class _Product:
    """What nvcc is asked to make: its name for people, the file, and the options that ask for it.

    `libraries` come after the text, as a linker wants them; `made_for` is what else the product is good for alone.
    """

    name: str
    file: str
    options: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    made_for: str = ""
    language: str = "cu"


_CUBIN = _Product("cubin", "kernel.cubin", ("-cubin", "-lineinfo", "-Xptxas", "-v", "--keep"))
_PTX = _Product("PTX file", "kernel.ptx", ("-ptx", "-lineinfo"))
_FAST_COMPILE, _FASTEST_COMPILE = "-Ofc=mid", "-Ofc=max"
"""nvcc's option to leave out what takes it long (NVIDIA CUDA Compiler Driver, `--Ofast-compile`)."""
_FAST_COMPILE_SINCE = 13
_UNLINKED = ("-shared", "-lineinfo", "-Xcompiler", "-fPIC", "-cudart", "none", "-Xlinker", "-z", "-Xlinker", "lazy")
_HOST = _Product("shared library", "host.so", _UNLINKED)
_RUNTIME = _Product("shared library", "runtime.so", _UNLINKED, ("-ldl",), language="c++")
_OPERATOR = _Product("object file", "operator.o", ("-c", "-Xcompiler", "-fPIC,-O0"), language="c++")
_KEPT_PTX = "source.ptx"
"""What `--keep` leaves of the way to a cubin: the very PTX that ptxas made it of, so that nobody compiles it again."""
_REJECTED = "rejected"
"""The file that marks a kept result of a text with errors."""
_PASSING = re.compile(r"no such file|cannot open|memory|no space|disk|quota|permission", re.IGNORECASE)
EXTENSION_MODULE = "warpwright_extension"
COMPILE_SECONDS = 60.0
EXTENSION_SECONDS = 300.0
"""torch's headers take a compiler half a minute and more."""


def compile_cubin(
    source: Source,
    *,
    arch: str = "sm_90",
    flags: tuple[str, ...] = (),
    timeout: float = COMPILE_SECONDS,
    is_cancelled: IsCancelled = never_cancelled,
    reads: Reads = None,
) -> Compiled:
    """Compile the text of `source` (which may be an unsaved buffer) as the file at its path, for `arch` alone.

    Quoted includes are found beside the file on disk. The result is kept in the user's cache under a hash of the text,
    every file that it includes, the flags, the architecture and the compiler's version, and so are its errors; a second
    call with nothing changed runs no compiler. nvcc's front end checks the file's host code too. The compiler has no
    network and writes nowhere else; `reads` says what it may read (see `toolchain.rights`). Where the system cannot
    keep it to that, only what lies in a folder that the user allowed is compiled. Raises CancelledError.
    """
    made, entry = _compile(source, _CUBIN, arch, flags, timeout, is_cancelled, reads)
    resources = _with_limits(parse_resources(entry.output), entry.product) if entry else {}
    kernels = {name: resources[mangled] for name, mangled in _by_name(resources).items()}
    cubin = entry.product if entry else None
    return Compiled(made.ending, made.messages, made.reason, made.compiler, arch, flags, made.included, kernels, cubin)


def _with_limits(resources: Mapping[str, KernelResources], cubin: Path) -> dict[str, KernelResources]:
    """With the launch bounds that each kernel was compiled for."""
    info = kernel_info(cubin.read_bytes())
    return {
        name: replace(each, max_threads=info[name].max_threads, max_registers=info[name].max_registers)
        if name in info
        else each
        for name, each in resources.items()
    }


def compile_ptx(
    source: Source,
    *,
    arch: str = "sm_90",
    flags: tuple[str, ...] = (),
    timeout: float = COMPILE_SECONDS,
    is_cancelled: IsCancelled = never_cancelled,
    reads: Reads = None,
) -> CompiledPtx:
    """Compile as `compile_cubin` does, and stop before ptxas: the optimised PTX with source lines. Needs no GPU.

    What only ptxas finds, such as too much shared memory, is not found. Raises CancelledError.
    """
    return _ptx(*_compile(source, _PTX, arch, flags, timeout, is_cancelled, reads))


def compile_rough_ptx(
    source: Source, *, arch: str = "sm_90", is_cancelled: IsCancelled = never_cancelled
) -> CompiledPtx:
    """PTX as of `compile_ptx`, hardly optimised, in a fifth of the time: for many kernels that are only emulated."""
    return _ptx(*_compile(source, _fast(_FAST_COMPILE), arch, (), COMPILE_SECONDS, is_cancelled, None))


def compile_hastily(source: Source, *, arch: str = "sm_90", is_cancelled: IsCancelled = never_cancelled) -> CompiledPtx:
    """PTX as of `compile_rough_ptx`, in half of that time: for whether nvcc takes a text."""
    return _ptx(*_compile(source, _fast(_FASTEST_COMPILE), arch, (), COMPILE_SECONDS, is_cancelled, None))


def _fast(option: str) -> _Product:
    """PTX that is made with an option of newer compilers."""
    toolchain = find_toolchain()
    if isinstance(toolchain, Toolchain) and int(toolchain.version.partition(".")[0]) >= _FAST_COMPILE_SINCE:
        return replace(_PTX, options=(*_PTX.options, option))
    return _PTX


def _ptx(made: Compilation, entry: cache.Entry | None) -> CompiledPtx:
    text = entry.product.read_text(encoding="utf-8", errors="replace") if entry else ""
    kernels = _by_name(_ENTRY.findall(text))
    return CompiledPtx(
        made.ending, made.messages, made.reason, made.compiler, made.arch, made.flags, made.included, kernels, text
    )


def compile_extension(
    source: Source,
    torch: TorchBuild,
    *,
    arch: str = "sm_90",
    flags: tuple[str, ...] = (),
    timeout: float = EXTENSION_SECONDS,
    is_cancelled: IsCancelled = never_cancelled,
) -> CompiledLibrary:
    """Build the text of `source` as the Python module EXTENSION_MODULE, host code and all, as `compile_cubin` does.

    One compiler run, for one version of torch, which is part of the hash under which the library is kept. Raises
    CancelledError.
    """
    options = (
        "-shared", "-lineinfo", "-Xcompiler", "-fPIC", "-cudart", "shared",
        f"-DTORCH_EXTENSION_NAME={EXTENSION_MODULE}",
    )  # fmt: skip
    product = _Product("shared library", "extension.so", options, torch.libraries, f"torch {torch.version}")
    flags = (*flags, *torch.flags)
    reads = own_reads(source, (*flags, *torch.libraries))
    return _library(*_compile(source, product, arch, flags, timeout, is_cancelled, reads))


def compile_operator(
    source: Source,
    torch: TorchBuild,
    *,
    timeout: float = EXTENSION_SECONDS,
    is_cancelled: IsCancelled = never_cancelled,
) -> Compilation:
    """Compile C++ that registers an operator against torch's headers, to see whether it can be. Raises
    CancelledError."""
    product = replace(_OPERATOR, made_for=f"torch {torch.version}")
    reads = own_reads(source, torch.flags)
    return _compile(source, product, "sm_90", torch.flags, timeout, is_cancelled, reads)[0]


def compile_host(
    source: Source,
    *,
    arch: str = "sm_90",
    flags: tuple[str, ...] = (),
    timeout: float = COMPILE_SECONDS,
    is_cancelled: IsCancelled = never_cancelled,
    reads: Reads = None,
) -> CompiledLibrary:
    """Build the text of `source`, host code and all, as a shared library that takes the CUDA runtime from whoever loads
    it: what is never called may be missing there. Kept as a cubin is. Raises CancelledError."""
    return _library(*_compile(source, _HOST, arch, flags, timeout, is_cancelled, reads))


def compile_runtime(source: Source, *, is_cancelled: IsCancelled = never_cancelled) -> CompiledLibrary:
    """Build C++ that stands for the CUDA runtime as a shared library, with the toolkit's headers. Raises
    CancelledError."""
    return _library(*_compile(source, _RUNTIME, "sm_90", (), COMPILE_SECONDS, is_cancelled, None))


def _library(made: Compilation, entry: cache.Entry | None) -> CompiledLibrary:
    return CompiledLibrary(
        made.ending, made.messages, made.reason, made.compiler, made.arch, made.flags, made.included,
        entry.product if entry else None,
    )  # fmt: skip


def _compile(
    source: Source,
    product: _Product,
    arch: str,
    flags: tuple[str, ...],
    timeout: float,
    is_cancelled: IsCancelled,
    reads: Reads,
) -> tuple[Compilation, cache.Entry | None]:
    """What came of it, and the kept result where it went well."""
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        return Compilation(Ending.MISSING, reason=str(toolchain), arch=arch, flags=flags), None
    compiler = f"nvcc {toolchain.version}"
    environment = _environment()
    reads = own_reads(source, flags) if reads is None else reads
    key = _key(source, product, arch, flags, toolchain, environment, reads)
    with cache.in_turn(key, is_cancelled):
        entry = cache.lookup(key, product.file)
        if entry is None and product is _PTX:
            entry = cache.lookup(_key(source, _CUBIN, arch, flags, toolchain, environment, reads), _KEPT_PTX)
        if entry is None and (rejected := cache.lookup(key, _REJECTED)) is not None:
            return _rejection(rejected, source, compiler, arch, flags), None
        if entry is None:
            try:
                with cache.building_directory() as directory:
                    failure = _build(
                        toolchain,
                        source,
                        product,
                        arch=arch,
                        flags=flags,
                        timeout=timeout,
                        is_cancelled=is_cancelled,
                        environment=environment,
                        directory=directory,
                        reads=reads,
                    )
                    if failure is not None:
                        included = _dependencies(directory)
                        if included and _is_lasting(failure):
                            (directory / _REJECTED).touch()
                            cache.store(key, _REJECTED, directory, included)
                        return replace(failure, included=tuple(map(str, included))), None
                    entry = cache.store(key, product.file, directory, _dependencies(directory))
            except OSError as error:
                reason = f"The cache {cache_dir()} cannot be written ({error.strerror}); set WARPWRIGHT_CACHE_DIR."
                return Compilation(Ending.BROKEN, (), reason, compiler, arch, flags), None
    messages = messages_of(entry.output, source)
    return Compilation(Ending.COMPILED, messages, "", compiler, arch, flags, entry.includes), entry


def _environment() -> dict[str, str]:
    """What the compiler gets of the environment, without what would be another thing in each folder, and without
    options of which a shell would make more than words."""
    found = {name: value for name in _PASSED_ON if (value := os.environ.get(name)) is not None}
    use_absolute_folders(found)
    return {name: value for name, value in found.items() if name not in _OPTIONS or not unsafe_word([value])}


def _rejection(kept: cache.Entry, source: Source, compiler: str, arch: str, flags: tuple[str, ...]) -> Compilation:
    """What the compiler said of a text that it rejected before."""
    messages = _messages(kept.output, kept.product.parent, source)
    reason = errors_sentence([m for m in messages if m.severity == "error"])
    return Compilation(Ending.ERRORS, messages, reason, compiler, arch, flags, kept.includes)


def _is_lasting(failure: Compilation) -> bool:
    """Whether the same text with the same includes is sure to be rejected again: each error is of a place in it, and
    none of a file that is not there yet or of what the machine has too little of."""
    errors = [m for m in failure.messages if m.severity == "error"]
    return failure.ending is Ending.ERRORS and all(m.line and not _PASSING.search(m.text) for m in errors)


def _messages(output: str, directory: Path, source: Source) -> tuple[CompilerMessage, ...]:
    """What the compiler said, at the places of the text; those of ptxas by the PTX that it left in `directory`."""
    ptx = next((file for name in (_KEPT_PTX, _PTX.file) if (file := directory / name).is_file()), None)
    return tuple(with_place(each, ptx, source) for each in messages_of(output, source))


def _key(
    source: Source,
    product: _Product,
    arch: str,
    flags: tuple[str, ...],
    toolchain: Toolchain,
    environment: Mapping[str, str],
    reads: Reads,
) -> str:
    """The hash of all that decides what comes of a compilation, but for the files that the text includes."""
    return cache.key_of(
        (product.options, product.libraries, product.made_for, product.language),
        str(Path(source.path).absolute()),
        source.data,
        [(str(Path(each.path).absolute()), each.data) for each in source.changed],
        arch,
        flags,
        str(toolchain.nvcc),
        f"nvcc {toolchain.version}",
        sorted(environment.items()),
        reads,
    )


def _build(
    toolchain: Toolchain,
    source: Source,
    product: _Product,
    *,
    arch: str,
    flags: tuple[str, ...],
    timeout: float,
    is_cancelled: IsCancelled,
    environment: Mapping[str, str],
    directory: Path,
    reads: tuple[str, ...],
) -> Compilation | None:
    """Run nvcc in `directory`. None is a success that left the product there; a failure says what went wrong."""
    path = Path(source.path).absolute()
    given = command_line(flags, path.parent)
    command = [
        str(toolchain.nvcc), *product.options, "-x", product.language, f"-arch={arch}",
        "-MD", "-MF", "dependencies.d", *given.words, "-o", product.file, "source.cu", *product.libraries,
    ]  # fmt: skip
    compiler = f"nvcc {toolchain.version}"

    def failed(ending: Ending, reason: str, messages: tuple[CompilerMessage, ...] = ()) -> Compilation:
        return Compilation(ending, messages, reason, compiler, arch, flags)

    try:
        text, copies = with_changed(source, parse_flags(flags, Path()).folders)
    except IncludeError as error:
        return failed(Ending.BROKEN, str(error))
    if unsafe := unsafe_word([*command[1:], str(directory)]):
        return failed(Ending.BROKEN, f"Nothing is compiled: nvcc would hand `{printable(unsafe)}` to a shell.")
    if given.header:
        copies = {**copies, HEADER: encoded(given.header)}
    for name, copy in {"source.cu": with_line_marker(text, str(path)), **copies}.items():
        (directory / name).write_bytes(copy)
    for name, folder in given.links.items():
        (directory / name).symlink_to(folder)
    (directory / "tmp").mkdir()
    try:
        finished = run_limited(
            command,
            directory=directory,
            environment={
                **environment,
                "TMPDIR": str(directory / "tmp"),
                "LC_ALL": "C.UTF-8",
                "CCACHE_DISABLE": "1",
            },
            timeout=timeout,
            output_bytes=OUTPUT_BYTES,
            memory_bytes=MEMORY_BYTES,
            is_cancelled=is_cancelled,
            policy=compiler_policy(
                reads, toolchain, environment, may_be_unconfined=product is _RUNTIME or is_trusted(path)
            ),
        )
    except UnconfinedError:
        reason = (
            f"Nothing in {path.parent} is compiled: this system cannot keep a compiler from your other files. If you "
            f"know what is in that folder, allow it with `warpwright trust {project_root(path)}`."
        )
        return failed(Ending.BROKEN, reason)
    except OSError as error:
        return failed(Ending.BROKEN, f"{toolchain.nvcc} could not be started ({error.strerror}).")
    finally:
        shutil.rmtree(directory / "tmp", ignore_errors=True)
    if finished.timed_out:
        return failed(Ending.TIMEOUT, f"{toolchain.nvcc} {finished.stopped}.")
    if finished.stopped:
        return failed(Ending.BROKEN, f"{toolchain.nvcc} {finished.stopped}.")
    if finished.was_killed:
        return failed(Ending.BROKEN, killed_sentence(toolchain.nvcc))
    for left in directory.glob("source.*"):
        if left.name not in ("source.cu", _KEPT_PTX):
            left.unlink()
    finished = _with_own_names(finished, given, directory, product)
    messages = _messages(finished.output, directory, source)
    if finished.returncode != 0:
        messages += denied(finished.output)
    errors = [m for m in messages if m.severity == "error"]
    if finished.returncode != 0:
        if errors:
            return failed(Ending.ERRORS, errors_sentence(errors), messages)
        return failed(Ending.BROKEN, exit_sentence(toolchain.nvcc, finished), messages)
    if not (directory / product.file).is_file():
        reason = f"{toolchain.nvcc} ended without an error and without writing a {product.name}."
        return failed(Ending.BROKEN, reason, messages)
    return None


def _with_own_names(finished: Finished, given: CommandLine, directory: Path, product: _Product) -> Finished:
    """What came of a compilation, as text and in files of text, with the names of folders that links stood for."""
    if not given.links:
        return finished
    for name in (LOG, "dependencies.d", _KEPT_PTX, *([product.file] if product is _PTX else [])):
        with suppress(OSError):
            text = (directory / name).read_text(encoding="utf-8", errors="surrogateescape")
            is_rule = name == "dependencies.d"
            text = (
                given.told(text, _as_in_make)
                if is_rule
                else given.told(text.replace(f"{directory}/folder_", "folder_"))
            )
            (directory / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    for name in given.links:
        (directory / name).unlink(missing_ok=True)
    return replace(finished, output=given.told(finished.output))


def _as_in_make(name: str) -> str:
    """A name as a make rule has it."""
    return re.sub(r"([ #])", r"\\\1", name).replace("$", "$$")


def _dependencies(directory: Path) -> list[Path]:
    """The files that the text includes, from the make rule that nvcc wrote; the text itself is not one of them."""
    try:
        rule = (directory / "dependencies.d").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    names = re.findall(r"(?:\\ |[^\s\\]|\\(?=[^\s]))+", rule.partition(" : ")[2])
    paths = (directory / name.replace("\\ ", " ").replace("$$", "$") for name in names)
    return [p for p in paths if p.parent != directory]


def _by_name(mangled: Iterable[str]) -> dict[str, str]:
    """Mangled names keyed by demangled name; overloads, which share it, by name and mangled name.

    >>> _by_name(["_Z1ai", "_Z1af", "_Z1bi"])
    {'a [_Z1ai]': '_Z1ai', 'a [_Z1af]': '_Z1af', 'b': '_Z1bi'}
    """
    names = {each: demangle(each) for each in mangled}
    count = Counter(names.values())
    return {name if count[name] == 1 else f"{name} [{each}]": each for each, name in names.items()}
