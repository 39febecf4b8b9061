"""Why a fix could not be verified here, as far as that can be seen before anything is compiled or run."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from warpwright.cuda.extension.entries import is_extension
from warpwright.cuda.project import files_that_launch
from warpwright.facts.model import Basis, Kernel, Program
from warpwright.missing import Missing
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.infer import find_problem
from warpwright.problems.kernel_text import live
from warpwright.problems.model import Problem
from warpwright.problems.shapes import Shape
from warpwright.rewrites.base import Rewrite
from warpwright.syntax.encoding import decoded
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
_CALLED = re.compile(rb"\b(?:cuda[A-Z]\w*(?=\s*\()|texture(?=\s*<))")
_DECLARED = re.compile(rb"\b(?:cuda[A-Z]\w*|textureReference)\b")
_TORCH = "lib*/python3*/site-packages/torch/include"


def not_compiled(program: Program) -> str:
    """Why nvcc here would refuse the text, "" where nothing tells: a header that is not there, or a name that its
    toolkit no longer has."""
    toolchain = find_toolchain()
    if not isinstance(toolchain, Toolchain) or not toolchain.include_dirs:
        return ""
    if unread := _unread_include(program, toolchain.include_dirs):
        return f"The header at {unread} is not found, so nothing compiles."
    gone = _gone_name(program, toolchain.include_dirs)
    return f"CUDA {toolchain.version} has no {gone}, so nothing compiles." if gone else ""


def not_run(program: Program, kernel: Kernel) -> str:
    """Why a kernel's edit could not be compared with it by a run; "" where it can be tried."""
    from warpwright.verify.harness import has_driver  # most files have no fix to judge

    problem = find_problem(program, kernel)
    if isinstance(problem, Missing):
        return problem.reason
    if problem.arrays and not problem.results and all(array.role == "in" for array in problem.arrays):
        return f"{kernel.name} writes to no array, so there is nothing to compare."
    if not has_driver() and not any(_is_small(problem, shape) for shape in (*problem.check, problem.own_shape)):
        return f"{kernel.name} is too large to emulate at every size, and there is no GPU here."
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


def _unread_include(program: Program, toolkit: tuple[Path, ...]) -> str:
    """The first include that neither the analysis nor nvcc finds, as `a.cu:3 ("b.h")`; "" for none."""
    if not program.unread_includes or is_extension(program.source):  # torch knows its own folders
        return ""
    folders = [*toolkit, *(folder for pattern in _SYSTEM for folder in Path("/").glob(pattern))]
    unread = (
        f'{span.path}:{span.line} ("{name}")'
        for span, name in program.unread_includes
        if not any((folder / name).is_file() for folder in folders)
    )
    return next(unread, "")


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


@lru_cache(maxsize=4)
def _names(toolkit: tuple[Path, ...]) -> frozenset[bytes]:
    """The names of the runtime in a toolkit's own headers."""
    headers = (header for folder in toolkit for header in folder.glob("*.h*"))
    return frozenset(name for header in headers for name in _DECLARED.findall(header.read_bytes()))


def _is_small(problem: Problem, shape: Shape | None) -> bool:
    """Whether the emulator may run all threads of a shape."""
    from warpwright.verify.emulation import BUDGET, MOST_BYTES

    if shape is None:
        return False
    try:
        case = problem.case(shape)
    except ExpressionError:
        return False
    threads = 1
    for extent in (*case.grid, *case.block):
        threads *= extent
    return problem.bytes(shape) <= MOST_BYTES and threads * _FEWEST_STEPS <= BUDGET.launch


def _guessed_block(kernel: Kernel) -> str:
    """Why a run would prove nothing: threads share memory by a shape of the block that another file gives."""
    if not kernel.shared_arrays or any(launch.basis is Basis.EXACT for launch in kernel.launches):
        return ""
    others = (Path(each.path).name for each in files_that_launch(kernel.source.path, kernel.name))
    other = next(others, "")
    return f"{other} gives {kernel.name} the shape of its blocks, which is not known here." if other else ""
