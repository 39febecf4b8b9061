"""Why nvcc would refuse a text here, as far as that can be seen before it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from warpwright.cuda.extension.entries import is_extension
from warpwright.editor.undeclared import header_text, undeclared_name, undefined_function
from warpwright.facts.model import Program
from warpwright.facts.unit_launches import is_device_code
from warpwright.problems.kernel_text import live
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
            if _is_named(name, toolkit) or any(re.search(own, each.code) for each in sources):
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
    overloaded = {name for folder in toolkit for name in _OVERLOAD.findall(header_text(folder / "cuda_runtime.h"))}
    found: dict[bytes, tuple[_Form, ...]] = {}
    for folder in toolkit:
        for name, inside in _DECLARATION.findall(header_text(folder / "cuda_runtime_api.h")):
            parameters = [] if inside.strip() == b"void" else inside.split(b",")
            given = sum(b"__dv(" in each for each in parameters)
            structs = {
                n for n, each in enumerate(parameters) if each.strip().startswith(b"struct ") and b"*" not in each
            }
            form = _Form(len(parameters) - given, len(parameters), frozenset(structs))
            if name not in overloaded:
                found[name] = (*found.get(name, ()), form)
    return found


def _is_named(name: bytes, toolkit: tuple[Path, ...]) -> bool:
    """Whether a toolkit's own headers name a part of the runtime."""
    return any(name in _named(header) for header in _headers(toolkit) if name in header_text(header))


@lru_cache(maxsize=4)
def _headers(toolkit: tuple[Path, ...]) -> list[Path]:
    """Those of the runtime first, which name nearly all of it."""
    found = (header for folder in toolkit for header in folder.glob("*.h*"))
    return sorted(found, key=lambda header: not header.name.startswith("cuda_runtime"))


@lru_cache(maxsize=256)
def _named(header: Path) -> frozenset[bytes]:
    return frozenset(_DECLARED.findall(header_text(header)))
