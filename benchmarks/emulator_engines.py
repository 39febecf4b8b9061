"""Which engine runs PTX best on a CPU: NumPy over many lanes, or LLVM over the 32 lanes of a warp?

    python benchmarks/emulator_engines.py --write

Needs llvmlite (`pip install llvmlite`), which warpwright itself does not use. The same arithmetic kernels, of 30, 300
and 3,000 PTX instructions, are translated by both: by the emulator, and to LLVM vectors of 32 lanes, compiled by LLVM's
JIT for this machine. Measured are the time until the kernel can run and the lane-instructions per second of arithmetic
alone: LLVM's side has no memory, no masks and no checks, so its speed is an upper bound. What a kernel needs in all, to
run N lanes once, is the sum; the table says from how many lanes on LLVM would be ahead.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from ctypes import CFUNCTYPE, c_int64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from warpwright.emulator.launch import ArrayArgument, Launch, run
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse

RESULT = Path(__file__).resolve().parent / "results" / "emulator_engines.json"
SIZES = (30, 300, 3000)
REGISTERS = 8
OPERATIONS = ("add", "mul", "fma", "iadd", "xor", "shl")
LANES = 1 << 20


def arithmetic(size: int) -> list[tuple[str, int, int, int]]:
    """Random operations on eight float and eight integer registers: (operation, result, a, b)."""
    choose = random.Random(size)
    return [
        (choose.choice(OPERATIONS), *(choose.randrange(REGISTERS) for _ in range(3)))  # type: ignore[misc]
        for _ in range(size)
    ]


def as_ptx(operations: list[tuple[str, int, int, int]]) -> str:
    forms = {
        "add": "add.rn.f32 %f{0}, %f{1}, %f{2};",
        "mul": "mul.rn.f32 %f{0}, %f{1}, %f{2};",
        "fma": "fma.rn.f32 %f{0}, %f{1}, %f{2}, %f{0};",
        "iadd": "add.s32 %r{0}, %r{1}, %r{2};",
        "xor": "xor.b32 %r{0}, %r{1}, %r{2};",
        "shl": "shl.b32 %r{0}, %r{1}, 3;",
    }
    start = [f"cvt.rn.f32.u32 %f{k}, %r9; add.u32 %r{k}, %r9, {k};" for k in range(REGISTERS)]
    body = "\n".join([*start, *(forms[name].format(*numbers) for name, *numbers in operations)])
    sums = "\n".join(
        f"mov.b32 %r10, %f{k}; xor.b32 %r11, %r11, %r10; xor.b32 %r11, %r11, %r{k};" for k in range(REGISTERS)
    )
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{
.reg .f32 %f<12>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
mov.u32 %r12, %ctaid.x; mov.u32 %r13, %tid.x; mov.u32 %r14, %ntid.x; mad.lo.s32 %r9, %r12, %r14, %r13;
mov.u32 %r11, 0;
{body}
{sums}
ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r9, 4; add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r11;
ret;
}}
"""


def as_llvm(operations: list[tuple[str, int, int, int]]) -> str:
    """A function that does the same for each warp of 32 lanes, in LLVM's text."""
    lines: list[str] = []
    count = 0

    def value(text: str) -> str:
        nonlocal count
        count += 1
        lines.append(f"  %v{count} = {text}")
        return f"%v{count}"

    v, f = "<32 x i32>", "<32 x float>"
    lane = ", ".join(f"i32 {k}" for k in range(32))
    base = value("trunc i64 %first to i32")
    one = value(f"insertelement {v} undef, i32 {base}, i32 0")
    spread = value(f"shufflevector {v} {one}, {v} undef, {v} zeroinitializer")
    number = value(f"add {v} {spread}, <{lane}>")
    whole = [value(f"add {v} {number}, <{', '.join([f'i32 {k}'] * 32)}>") for k in range(REGISTERS)]
    floats = [value(f"uitofp {v} {number} to {f}") for _ in range(REGISTERS)]
    three = f"<{', '.join(['i32 3'] * 32)}>"
    for name, result, a, b in operations:
        if name in {"add", "mul"}:
            floats[result] = value(f"f{name} {f} {floats[a]}, {floats[b]}")
        elif name == "fma":
            arguments = f"{f} {floats[a]}, {f} {floats[b]}, {f} {floats[result]}"
            floats[result] = value(f"call {f} @llvm.fma.v32f32({arguments})")
        elif name == "iadd":
            whole[result] = value(f"add {v} {whole[a]}, {whole[b]}")
        elif name == "xor":
            whole[result] = value(f"xor {v} {whole[a]}, {whole[b]}")
        else:
            whole[result] = value(f"shl {v} {whole[a]}, {three}")
    total = f"{v} zeroinitializer"
    for k in range(REGISTERS):
        bits = value(f"bitcast {f} {floats[k]} to {v}")
        part = value(f"xor {total}, {bits}")
        total = f"{v} {value(f'xor {v} {part}, {whole[k]}')}"
    place = value("getelementptr i32, ptr %out, i64 %first")
    lines.append(f"  store {total}, ptr {place}, align 4")
    body = "\n".join(lines)
    return f"""declare {f} @llvm.fma.v32f32({f}, {f}, {f})
define void @k(ptr %out, i64 %lanes) {{
entry:
  br label %loop
loop:
  %first = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}
  %next = add i64 %first, 32
  %more = icmp slt i64 %next, %lanes
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def by_numpy(operations: list[tuple[str, int, int, int]]) -> tuple[float, float, Any]:
    """Seconds to translate, seconds to run, and the result."""
    text = as_ptx(operations)
    start = time.perf_counter()
    program = translate(parse(text), "k")
    ready = time.perf_counter() - start
    out = np.zeros(LANES, dtype=np.uint32)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        result = run(program, Launch((LANES // 256, 1, 1), (256, 1, 1)), [ArrayArgument("out", out, "out")])
        best = min(best, time.perf_counter() - start)
    return ready, best, result.outputs["out"]


def by_llvm(operations: list[tuple[str, int, int, int]]) -> tuple[float, float, Any]:
    """Seconds to translate, seconds to run, and the result."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    start = time.perf_counter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )
    module = llvm.parse_assembly(as_llvm(operations))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    function = CFUNCTYPE(None, c_void_p, c_int64)(engine.get_function_address("k"))
    ready = time.perf_counter() - start
    out = np.zeros(LANES, dtype=np.uint32)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        function(out.ctypes.data, LANES)
        best = min(best, time.perf_counter() - start)
    return ready, best, out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/emulator_engines.json")
    options = parser.parse_args()
    try:
        import llvmlite
    except ImportError:
        print("emulator_engines needs llvmlite: pip install llvmlite", file=sys.stderr)
        return 2
    rows = []
    print("instructions   ready: numpy    llvm    M lane-instructions/s: numpy     llvm   llvm ahead from lanes")
    for size in SIZES:
        operations = arithmetic(size)
        numpy_ready, numpy_run, own = by_numpy(operations)
        llvm_ready, llvm_run, other = by_llvm(operations)
        assert (own == other).all(), "the two engines disagree"
        per_lane = (numpy_run - llvm_run) / LANES
        ahead = max(0.0, llvm_ready - numpy_ready) / per_lane if per_lane > 0 else float("inf")
        speeds = [size * LANES / seconds / 1e6 for seconds in (numpy_run, llvm_run)]
        print(
            f"{size:12}   {numpy_ready * 1e3:9.0f} ms {llvm_ready * 1e3:6.0f} ms"
            f" {speeds[0]:25.0f} {speeds[1]:9.0f} {ahead:20,.0f}"
        )
        rows.append(
            {
                "instructions": size,
                "numpy_ready_s": numpy_ready,
                "llvm_ready_s": llvm_ready,
                "numpy_million_per_s": speeds[0],
                "llvm_million_per_s": speeds[1],
                "llvm_ahead_from_lanes": ahead,
            }
        )
    if options.write:
        about = {
            "command": "python benchmarks/emulator_engines.py --write",
            "hardware": platform.processor() or platform.machine(),
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "llvmlite": llvmlite.__version__,
            },
        }
        RESULT.write_text(json.dumps({**about, "lanes": LANES, "results": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
