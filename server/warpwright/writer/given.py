"""The launch function of a kernel that somebody else wrote, which the text includes."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.formulas.extents import is_constant, names_in
from warpwright.formulas.tree import Name, Num
from warpwright.formulas.types import TYPES
from warpwright.writer.code import Code, Kernel, Launch
from warpwright.writer.decision import host
from warpwright.writer.launch import block_text, signature
from warpwright.writer.text import Text, broken, listed
from warpwright.writer.types import NAMES, headers_for, literal

NARROW = {
    "i32": "INT_MAX", "u32": "UINT_MAX", "i16": "SHRT_MAX", "u16": "USHRT_MAX", "i8": "SCHAR_MAX", "u8": "UCHAR_MAX",
}  # fmt: skip
"""The largest number that a parameter of the kernel may be handed, by its type."""


def given_file(codes: Sequence[Code], include: str) -> str:
    """A file of CUDA that includes the kernel's and has a launch function for each code, of one kernel each.

    >>> from warpwright.writer.code import Path, Step, ceiling
    >>> from warpwright.formulas.resolve import formula_of
    >>> grid = (ceiling(Name("I"), 256), Num(1), Num(1))
    >>> launch = Launch("twice", grid, (256, 1, 1))
    >>> kernel = Kernel("twice", "", ("x", "y", "n"), passed={"n": (Name("I"), "i32")})
    >>> code = Code("twice_f32", formula_of("y[i] = 2 * x[i]"), (kernel,), (Step((Path((launch,)),), Num(1)),))
    >>> print(given_file([code], "source/twice.cu").partition("CUDA's.")[2].strip())
    extern "C" cudaError_t twice_f32(const float* x, float* y, long long I, cudaStream_t stream) {
        if (I < 0 || I > INT_MAX) return cudaErrorInvalidValue;
        const long long blocks = (I + 255) / 256;
        if (blocks == 0) return cudaSuccess;
        if (blocks > INT_MAX) return cudaErrorInvalidValue;
        twice<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(x, y, static_cast<int>(I));
        return cudaGetLastError();
    }
    """
    text = Text()
    kinds = {each.type for code in codes for each in code.formula.tensors.values()}
    for header in sorted({"algorithm", "climits", "cstdint", "cuda_runtime.h", *headers_for(kinds)}):
        text(f"#include <{header}>")
    text()
    text(f'#include "{include}"')
    text()
    text("// Each function launches the kernel for arrays of one type. What it returns is an error of CUDA's.")
    for code in codes:
        text()
        _function(text, code)
    return f"{text}\n"


def _function(text: Text, code: Code) -> None:
    (launch,) = (each for step in code.steps for path in step.paths for each in path.launches)
    kernel = code.kernel(launch.kernel)
    text.add(listed(signature(code), f'extern "C" cudaError_t {code.name}(', ") {"))
    text.depth += 1
    tests = [f"{size} < 0" for size in code.formula.sizes]
    for value, kind in dict.fromkeys(kernel.passed.values()):
        if kind in NARROW and set(names_in([value])) & set(code.formula.sizes):
            tests.append(f"{host(value, 2)} > {NARROW[kind]}")
    if tests:
        text.add(broken(f"if ({' || '.join(tests)}) return cudaErrorInvalidValue;", 116))
    for name, wanted in code.steps[0].paths[0].aligned.items():
        text(f"if (reinterpret_cast<uintptr_t>({name}) % {wanted} != 0) return cudaErrorMisalignedAddress;")
    grid = _grid(text, launch)
    called = f"{launch.kernel}<{', '.join(launch.template)}>" if launch.template else launch.kernel
    shared = launch.shared_bytes if isinstance(launch.shared_bytes, int) else host(launch.shared_bytes)
    if launch.asks_for_shared:
        text(f"const cudaError_t allowed = cudaFuncSetAttribute({called}, cudaFuncAttributeMaxDynamicSharedMemorySize,")
        text(f"        static_cast<int>({shared}));")
        text("if (allowed != cudaSuccess) return allowed;")
    arguments = [_argument(code, kernel, name) for name in kernel.parameters]
    head = f"{called}<<<{grid}, {block_text(launch.block)}, {shared}, stream>>>("
    text.add(listed(arguments, head, ");", 112))
    text("return cudaGetLastError();")
    text.depth -= 1
    text("}")


def _grid(text: Text, launch: Launch) -> str:
    """The grid, behind tests of what a grid holds."""
    open_axes = [axis for axis, each in zip("xyz", launch.grid, strict=True) if not is_constant(each)]
    parts: list[str] = []
    for axis, each in zip("xyz", launch.grid, strict=True):
        if axis not in open_axes:
            parts.append(host(each))
            continue
        name = "blocks" if len(open_axes) == 1 else f"blocks_{axis}"
        text(f"const long long {name} = {host(each)};")
        parts.append(f"static_cast<unsigned>({name})")
    names = ["blocks"] if len(open_axes) == 1 else [f"blocks_{axis}" for axis in open_axes]
    if names:
        text(f"if ({' || '.join(f'{each} == 0' for each in names)}) return cudaSuccess;")
        most = {"x": "INT_MAX", "y": "65535", "z": "65535"}
        over = " || ".join(f"{name} > {most[axis]}" for name, axis in zip(names, open_axes, strict=True))
        text(f"if ({over}) return cudaErrorInvalidValue;")
    while len(parts) > 1 and parts[-1] == "1":
        parts.pop()
    return parts[0] if len(parts) == 1 else f"dim3({', '.join(parts)})"


def _argument(code: Code, kernel: Kernel, name: str) -> str:
    """What stands for a parameter of the kernel."""
    if name in kernel.casts:
        return f"reinterpret_cast<{kernel.casts[name]}>({name})"
    if name not in kernel.passed:
        return name
    value, kind = kernel.passed[name]
    if isinstance(value, Name) and value.name in code.formula.scalars:
        return value.name
    if isinstance(value, Num):
        return literal(value.value, TYPES[kind])
    return host(value) if kind in ("i64", "u64") else f"static_cast<{NAMES[kind]}>({host(value)})"
