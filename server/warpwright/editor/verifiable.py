"""Why a fix could not be verified here, as far as that can be seen before anything is compiled or run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import NamedTuple

from warpwright.cuda.extension.entries import is_extension
from warpwright.cuda.project import files_that_launch
from warpwright.editor.undeclared import undeclared_name, undefined_function
from warpwright.facts.model import AccessKind, Basis, Kernel, Program, Space
from warpwright.facts.unit_launches import is_device_code
from warpwright.missing import Missing
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.infer import find_problem
from warpwright.problems.kernel_text import live
from warpwright.problems.model import Problem
from warpwright.problems.shapes import Shape
from warpwright.rewrites.base import Rewrite
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import descendants, enclosing, launch_configuration, uncommented
from warpwright.toolchain.find import Toolchain, find_toolchain

_SYSTEM = (
    "usr/include",
    "usr/local/include",
    "usr/include/*-linux-gnu",
    "usr/include/c++/*",
    "usr/lib/gcc/*/*/include",
)
_FEWEST_STEPS = 4
"""Of a thread that does nothing but test its number."""
_ACCESS_STEPS = 6
"""Of an access with what its address takes, or less."""
_CALLED = re.compile(rb"\b(?:cuda[A-Z]\w*(?=\s*\()|texture(?=\s*<))")
_DECLARED = re.compile(rb"\b(?:cuda[A-Z]\w*|textureReference)\b")
_DECLARATION = re.compile(rb"^extern [^;{(]*?\bCUDARTAPI\s+(cuda\w+)\s*\(([^;{]*?)\)[ \t]*;", re.MULTILINE)
_OVERLOAD = re.compile(rb"\bcudaError_t\s+(cuda\w+)\s*\(")
_NUMBER = re.compile(r"-?\d+|cudaCpuDeviceId")
_TORCH = "lib*/python3*/site-packages/torch/include"


def not_compiled(program: Program) -> str:
    """Why nvcc here would refuse the text, "" where nothing tells: a header that is not there, a launch in device code,
    which wants a linker, or a call that its toolkit no longer has."""
    toolchain = find_toolchain()
    if not isinstance(toolchain, Toolchain) or not toolchain.include_dirs:
        return ""
    folders = (*toolchain.include_dirs, *(folder for pattern in _SYSTEM for folder in sorted(Path("/").glob(pattern))))
    if unread := _unread_include(program, folders):
        return f"The header at {unread} is not found, so nothing compiles."
    if not is_extension(program.source) and (name := undeclared_name(live(program), folders)):
        return f"Nothing declares {name}, so nothing compiles."
    if name := undefined_function(live(program)):
        return f"{name} is defined in another file, so nothing compiles by itself."
    if launch := _device_launch(program):
        return f"The launch at {launch} is in device code, which is not compiled by itself."
    gone = _gone_name(program, toolchain.include_dirs) or _changed_call(program, toolchain.include_dirs)
    return f"CUDA {toolchain.version} has no {gone}, so nothing compiles." if gone else ""


def not_run(program: Program, kernel: Kernel) -> str:
    """Why a kernel's edit could not be compared with it by a run; "" where it can be tried."""
    from warpwright.verify.harness import has_driver  # most files have no fix to judge

    problem = find_problem(program, kernel)
    if isinstance(problem, Missing):
        return problem.reason
    if problem.arrays and not problem.results and all(array.role == "in" for array in problem.arrays):
        return f"{kernel.name} writes to no array, so there is nothing to compare."
    shapes = (*problem.check, problem.own_shape)
    if not has_driver() and not any(_is_small(problem, shape, kernel) for shape in shapes):
        return f"{kernel.name} is too large to emulate at every size, and there is no GPU here."
    if array := _scattered(kernel):
        return f"Data decide which elements of {array} a thread writes, and others read it, so two runs may differ."
    return _guessed_block(kernel)


def not_included(made: Rewrite) -> str:
    """Why a header that an edit adds to an extension would not compile: PyTorch's for the CPU has not all of them."""
    if not any("c10/cuda/" in edit.new_text or "C10_CUDA_" in edit.new_text for edit in made.edits):
        return ""
    from warpwright.verify.harness import harness_python

    found = [*Path(harness_python()).parent.parent.glob(_TORCH)]
    if not found or any((folder / "c10/cuda/impl/cuda_cmake_macros.h").is_file() for folder in found):
        return ""
    return "The torch here is without CUDA, so its checks of launches do not compile."


def _unread_include(program: Program, folders: tuple[Path, ...]) -> str:
    """The first include that neither the analysis nor nvcc finds, as `a.cu:3 ("b.h")`; "" for none."""
    if not program.unread_includes or is_extension(program.source):  # torch knows its own folders
        return ""
    unread = (
        f'{span.path}:{span.line} ("{name}")'
        for span, name in program.unread_includes
        if not any((folder / name).is_file() for folder in folders)
    )
    return next(unread, "")


def _device_launch(program: Program) -> str:
    """The first launch in a function for the device, as `a.cu:12`; "" for none."""
    for source in live(program).sources.values():
        calls = descendants(source.root, "call_expression") if b"<<<" in source.code else ()
        for call in calls:
            if launch_configuration(call) is not None and is_device_code(
                source, enclosing(call, "function_definition")
            ):
                return f"{source.path}:{source.position(call.start_byte)[0]}"
    return ""


def _gone_name(program: Program, toolkit: tuple[Path, ...]) -> str:
    """The first function of the runtime that is called and that no header and no file of the program names, such as
    `cudaBindTexture (a.cu:12)`."""
    sources = live(program).sources.values()
    for source in sources:
        for match in _CALLED.finditer(source.code):
            name = b"textureReference" if match[0] == b"texture" else match[0]
            own = rb"(?:#[ \t]*define[ \t]+|[\w>*&][ \t*&]+)%s\s*[(<]" % re.escape(match[0])
            if name in _names(toolkit) or any(re.search(own, each.code) for each in sources):
                continue
            return f"{decoded(match[0])} ({source.path}:{source.position(match.start())[0]})"
    return ""


def _changed_call(program: Program, toolkit: tuple[Path, ...]) -> str:
    """The first call of a function of the runtime that no longer takes such arguments, as `cudaMemAdvise with these
    arguments (a.cu:12)`; "" for none."""
    declared = _declarations(toolkit)
    for source in live(program).sources.values():
        if not any(name in source.code for name in declared):
            continue
        for call in descendants(source.root, "call_expression"):
            function, given = (call.child_by_field_name(part) for part in ("function", "arguments"))
            forms = declared.get(encoded(source.node_code(function))) if function is not None else None
            if function is None or forms is None or given is None:
                continue
            arguments = [source.node_code(each) for each in uncommented(given)]
            if not any(form.takes(arguments) for form in forms) and not any("..." in each for each in arguments):
                line = source.position(call.start_byte)[0]
                return f"{source.node_code(function)} with these arguments ({source.path}:{line})"
    return ""


class _Form(NamedTuple):
    """What a function of the runtime takes: how many arguments, and which of them are structs."""

    least: int
    most: int
    structs: frozenset[int]

    def takes(self, arguments: Sequence[str]) -> bool:
        numbers = {place for place, each in enumerate(arguments) if _NUMBER.fullmatch(each)}
        return self.least <= len(arguments) <= self.most and not numbers & self.structs


@lru_cache(maxsize=4)
def _declarations(toolkit: tuple[Path, ...]) -> Mapping[bytes, tuple[_Form, ...]]:
    """The functions of the runtime that are declared for C alone, whose overloads are all known."""
    texts = [text for folder in toolkit for text in _read(folder / "cuda_runtime_api.h")]
    overloaded = {
        name for folder in toolkit for text in _read(folder / "cuda_runtime.h") for name in _OVERLOAD.findall(text)
    }
    found: dict[bytes, tuple[_Form, ...]] = {}
    for text in texts:
        for name, inside in _DECLARATION.findall(text):
            parameters = [] if inside.strip() == b"void" else inside.split(b",")
            given = sum(b"__dv(" in each for each in parameters)
            structs = {
                n for n, each in enumerate(parameters) if each.strip().startswith(b"struct ") and b"*" not in each
            }
            form = _Form(len(parameters) - given, len(parameters), frozenset(structs))
            if name not in overloaded:
                found[name] = (*found.get(name, ()), form)
    return found


def _read(header: Path) -> Iterator[bytes]:
    if header.is_file():
        yield header.read_bytes()


@lru_cache(maxsize=4)
def _names(toolkit: tuple[Path, ...]) -> frozenset[bytes]:
    """The names of the runtime in a toolkit's own headers."""
    headers = (header for folder in toolkit for header in folder.glob("*.h*"))
    return frozenset(name for header in headers for name in _DECLARED.findall(header.read_bytes()))


def _is_small(problem: Problem, shape: Shape | None, kernel: Kernel) -> bool:
    """Whether the emulator may run all threads of a shape."""
    from warpwright.verify.emulation import BUDGET, MOST_BYTES

    if shape is None:
        return False
    try:
        case = problem.case(shape)
    except ExpressionError:
        return False
    steps = _FEWEST_STEPS * prod((*case.grid, *case.block))
    if not shape:  # the one size that there is, which is the one that the accesses were counted at
        of_first = (each for each in kernel.accesses if each.launch == 0)
        steps += _ACCESS_STEPS * int(sum(each.requests * each.active_lanes for each in of_first))
    return problem.bytes(shape) <= MOST_BYTES and steps <= BUDGET.alone


def _scattered(kernel: Kernel) -> str:
    """An array that a thread loads from and others store to, at an index from memory and without atomics."""
    of_grid = [each for each in kernel.accesses if each.space is Space.GLOBAL]
    stored = {each.array for each in of_grid if each.kind is AccessKind.STORE and each.basis is Basis.DATA_DEPENDENT}
    return next((each.array for each in of_grid if each.kind is AccessKind.LOAD and each.array in stored), None) or ""


def _guessed_block(kernel: Kernel) -> str:
    """Why a run would prove nothing: threads share memory by a shape of the block that another file gives."""
    if not kernel.shared_arrays or any(launch.basis is Basis.EXACT for launch in kernel.launches):
        return ""
    others = (Path(each.path).name for each in files_that_launch(kernel.source.path, kernel.name))
    other = next(others, "")
    return f"{other} gives {kernel.name} the shape of its blocks, which is not known here." if other else ""
