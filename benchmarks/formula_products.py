"""Products and attention written from formulas against a GPU library, on a GPU: built, checked against float64, timed.

    PYTHONPATH=server python benchmarks/formula_products.py --out results.json

Times are medians of CUDA events; before each call the L2 cache is flushed by reading: what is flushed by writing leaves
lines behind whose way back to memory the kernel pays for.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from formula_attention import ATTENTION, AttentionVariant, attention_rows
from formula_timer import Timer
from hardware import gpu_run
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.resolve import formula_of
from warpwright.schedules.contraction import CoreProduct, TensorProduct
from warpwright.writer.code import Code
from warpwright.writer.products import LARGE, SMALL
from warpwright.writer.write import file_text, written

TYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
LIMITS = {"f64": 1e-13, "f32": 1e-5, "bf16": 5e-3, "f16": 1e-3}
"""Relative errors (norm) that no right result exceeds: rounding of the stored type, sums in f32."""


@dataclass(frozen=True)
class Variant:
    """One written product: how it is laid out (by the rules where nothing is said), and at which sizes (batch, m, n, k)
    it is timed."""

    name: str
    schedule: CoreProduct | TensorProduct | None = None
    type: str = "f32"
    a_inner: str = "depth"
    b_inner: str = "free"
    batch: bool = False
    epilogue: bool = False
    timed: tuple[tuple[int, int, int, int], ...] = ()
    arch: str = "sm_90"

    @property
    def formula(self) -> str:
        l_, index = ("l, ", "L, ") if self.batch else ("", "")
        a = "i, k" if self.a_inner == "depth" else "k, i"
        b = "j, k" if self.b_inner == "depth" else "k, j"
        arrays = f"a: {self.type}[{index}{a.upper()}] b: {self.type}[{index}{b.upper()}] y: {self.type}[{index}I, J]"
        total = f"sum[k] a[{l_}{a}] * b[{l_}{b}]"
        if not self.epilogue:
            return f"{arrays} y[{l_}i, j] = {total}"
        return f"{arrays} c: {self.type}[J] y[{l_}i, j] = relu({total} + c[j])"

    @property
    def code(self) -> Code:
        return written(formula_of(self.formula), self.name, self.schedule)

    def text(self) -> str:
        return file_text(self.code)


CUBE = (1, 4096, 4096, 4096)
THOUSAND = (1, 1024, 1024, 1024)
ODD = (1, 1000, 1013, 997)
EVEN = (1, 1000, 1000, 1000)
TALL = (1, 8192, 1024, 4096)
THIN = (1, 2048, 2048, 64)
LARGE_ODD = (1, 4099, 4093, 4095)
WAVE = (1, 2047, 2049, 2051)  # some tiles more than run at once
SHORT = (1, 1500, 1700, 300)
DEEP = (1, 256, 256, 65536)
HALF = (1, 512, 512, 512)
SIZES = (CUBE, TALL, THOUSAND, EVEN, ODD, THIN)
TINY = ((1, 1, 1, 1), (1, 3, 5, 7), (1, 65, 33, 17), (1, 127, 129, 131), (1, 256, 384, 192), (1, 264, 8, 72),
        (1, 9, 7, 0), (1, 40, 1000, 1000))  # fmt: skip

VARIANTS = (
    Variant("f32", timed=(*SIZES, LARGE_ODD, WAVE, SHORT, DEEP, HALF)),
    Variant("f32_128x128", LARGE, timed=(SHORT,)),
    Variant("f32_64x64", SMALL, timed=(CUBE, ODD, SHORT)),
    Variant("f32_bias_relu", epilogue=True, timed=(CUBE, LARGE_ODD, THOUSAND, ODD)),
    Variant("f32_turned", a_inner="free", b_inner="depth", timed=(CUBE, LARGE_ODD, THOUSAND, ODD)),
    Variant("f32_linear", b_inner="depth", timed=(CUBE, LARGE_ODD, THOUSAND, ODD)),
    Variant("f32_batched", batch=True, timed=((64, 512, 512, 64), (16, 1000, 1013, 97), (64, 100, 120, 80))),
    Variant("f64", type="f64", timed=(THOUSAND, ODD)),
    Variant("bf16", type="bf16", timed=(*SIZES, LARGE_ODD)),
    Variant("bf16_128x256", TensorProduct(), "bf16", timed=(CUBE, TALL, THOUSAND, EVEN, THIN, (1, 8192, 8192, 8192))),
    Variant("bf16_128x256_3", TensorProduct(stages=3), "bf16", timed=(CUBE,)),
    Variant("bf16_256x128", TensorProduct(256, 128), "bf16", timed=(CUBE, TALL)),
    Variant("bf16_128x128", TensorProduct(128, 128, 64, 64, 3, 2), "bf16", timed=SIZES),
    Variant("bf16_turned", TensorProduct(), "bf16", "free", "depth", timed=(CUBE,)),
    Variant("bf16_linear", TensorProduct(), "bf16", "depth", "depth", timed=(CUBE,)),
    Variant("bf16_bias_relu", TensorProduct(), "bf16", epilogue=True, timed=(CUBE,)),
    Variant("f16_128x256", TensorProduct(), "f16", timed=(CUBE,)),
    Variant("bf16_wgmma", type="bf16", timed=(*SIZES, LARGE_ODD), arch="sm_90a"),
    Variant("bf16_wgmma_turned", None, "bf16", "free", "depth", timed=(CUBE, THOUSAND), arch="sm_90a"),
    Variant("bf16_wgmma_linear", None, "bf16", "depth", "depth", timed=(*SIZES, LARGE_ODD), arch="sm_90a"),
    Variant("bf16_wgmma_bias_relu", type="bf16", epilogue=True, timed=(CUBE, THOUSAND), arch="sm_90a"),
    Variant("f16_wgmma_batched", type="f16", batch=True, timed=((64, 512, 512, 64),), arch="sm_90a"),
    Variant("f16_batched", type="f16", batch=True, timed=((64, 512, 512, 64),)),
)  # fmt: skip


def built(name: str, text: str, arch: str, folder: Path) -> tuple[Path, str]:
    """The library of one kernel, and what the compiler says of registers and spills."""
    source, library = folder / f"{name}.cu", folder / f"{name}.so"
    source.write_text(text)
    target = f"-gencode=arch=compute_{arch[3:]},code={arch}"
    command = ["nvcc", target, "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-Xptxas", "-v", "-o"]
    done = subprocess.run([*command, str(library), str(source)], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    said = [line.split("info    : ")[-1].strip() for line in done.stderr.splitlines()]
    return library, "; ".join(line for line in said if "registers" in line or "spill" in line)


def operands(variant: Variant, size: tuple[int, int, int, int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A and B as matrices (views where they lie turned) and the bias."""
    batch, m, n, k = size
    kind = TYPES[variant.type]

    def drawn(rows: int, cols: int, turned: bool) -> torch.Tensor:
        shape = (batch, cols, rows) if turned else (batch, rows, cols)
        made = torch.randn(shape, device="cuda", dtype=torch.float32).to(kind)
        made = made.transpose(1, 2) if turned else made
        return made if variant.batch else made[0]

    a = drawn(m, k, variant.a_inner == "free")
    b = drawn(k, n, variant.b_inner == "depth")
    return a, b, torch.randn(n, device="cuda", dtype=torch.float32).to(kind)


def launcher(variant: Variant, function: Any, size: tuple[int, int, int, int]) -> Callable[..., None]:
    """Calls the written launch function on the current stream."""
    code = variant.code
    named = dict(zip(("L", "I", "J", "K"), size, strict=True))
    sizes = [ctypes.c_longlong(named[each]) for each in code.formula.sizes]
    counts = [math.prod(at_sizes(each, named) for each in array.extents) for array in code.temporaries]
    held = [torch.empty(8 * sum(counts) + 256 * len(counts), device="cuda", dtype=torch.uint8)] if counts else []
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def launch(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, c: torch.Tensor) -> None:
        arrays = [a, b, *([bias] if variant.epilogue else []), c]
        workspace = [ctypes.c_void_p(each.data_ptr()) for each in held]
        error = function(*(ctypes.c_void_p(each.data_ptr()) for each in arrays), *sizes, *workspace, stream)
        if error:
            raise RuntimeError(f"{variant.name} {size}: CUDA error {error}")

    return launch


def checked(variant: Variant, function: Any, size: tuple[int, int, int, int]) -> float:
    """The relative error against float64; infinite where an element was not written."""
    a, b, bias = operands(variant, size)
    c = torch.full((*a.shape[:-1], b.shape[-1]), float("nan"), device="cuda", dtype=TYPES[variant.type])
    launcher(variant, function, size)(a, b, bias, c)
    exact = a.double() @ b.double()
    if variant.epilogue:
        exact = (exact + bias.double()).relu()
    difference = (c.double() - exact).norm().item()
    if math.isnan(difference):
        return math.inf
    return difference / max(exact.norm().item(), 1e-30) if difference else 0.0


def ours_timed(variant: Variant, function: Any, size: tuple[int, int, int, int], timer: Timer) -> float:
    a, b, bias = operands(variant, size)
    c = torch.empty((*a.shape[:-1], b.shape[-1]), device="cuda", dtype=TYPES[variant.type])
    launch = launcher(variant, function, size)
    return timer(lambda: launch(a, b, bias, c))


def eager(variant: Variant, size: tuple[int, int, int, int], timer: Timer) -> float:
    a, b, bias = operands(variant, size)
    c = torch.empty((*a.shape[:-1], b.shape[-1]), device="cuda", dtype=TYPES[variant.type])
    if variant.epilogue:
        return timer(lambda: torch.relu(a @ b + bias))
    return timer(lambda: torch.matmul(a, b, out=c))


def product_rows(
    variant: Variant, function: Any, timer: Timer, library: dict[tuple[object, ...], float], late: bool
) -> list[dict[str, object]]:
    """Checks of one written product at small sizes and, if it is not too late, its times."""
    rows: list[dict[str, object]] = []
    for size in (*TINY, *variant.timed):
        sized = (3, *size[1:]) if variant.batch and size in TINY else size
        error = checked(variant, function, sized)
        right = error <= LIMITS[variant.type]
        row: dict[str, object] = {"kernel": variant.name, "size": sized, "error": error, "right": right}
        line = f"{variant.name:24} {'x'.join(map(str, sized if variant.batch else sized[1:])):>22} {error:9.1e}"
        if size in variant.timed and not late:
            ours = ours_timed(variant, function, size, timer)
            key = (size, variant.type, variant.a_inner, variant.b_inner, variant.epilogue)
            if key not in library:
                library[key] = eager(variant, size, timer)
            row |= {"us": ours, "library_us": library[key]}
            rate = 2 * math.prod(size) / ours / 1e6
            line += f" {ours:9.1f} {rate:8.1f} {library[key]:9.1f} {library[key] / ours:6.2f}"
        if not right or size in variant.timed:
            print(line + ("" if right else " WRONG"), flush=True)
        rows.append(row)
    return rows


def kept(path: Path, rows: list[dict[str, object]]) -> None:
    report = {**gpu_run(), "rows": rows}
    path.write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("formula_products.json"))
    parser.add_argument("--only", default="", help="only variants whose name holds this")
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=200, help="begin no further timing after this")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(7)
    begun = time.monotonic()
    hang = threading.Timer(options.seconds + 30, lambda: os._exit(3))  # a kernel that never ends
    hang.daemon = True
    hang.start()
    chosen = [each for each in VARIANTS if options.only in each.name]
    attentions = [each for each in ATTENTION if options.only in each.name]
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(16) as pool:
            every = [*chosen, *attentions]
            jobs = {v.name: pool.submit(built, v.name, v.text(), v.arch, Path(folder)) for v in every}
        print(f"built in {time.monotonic() - begun:.0f} s on {torch.cuda.get_device_name()}", flush=True)
        timer = Timer(options.calls)
        library: dict[tuple[object, ...], float] = {}
        order: list[Variant | AttentionVariant] = [*chosen, *attentions]
        print(
            f"{'kernel':24} {'size':>22} {'error':>9} {'us':>9} {'TFLOP/s':>8} {'library':>9} {'share':>6}", flush=True
        )
        for variant in order:
            try:
                path, said = jobs[variant.name].result()
                function = getattr(ctypes.CDLL(str(path)), variant.name)
                rows.append({"kernel": variant.name, "compiler": said})
                if isinstance(variant, AttentionVariant):
                    rows += attention_rows(variant, function, timer)
                else:
                    late = time.monotonic() - begun > options.seconds
                    rows += product_rows(variant, function, timer, library, late)
            except RuntimeError as error:
                print(f"{variant.name:24} FAILED {str(error)[-600:]}", flush=True)
                rows.append({"kernel": variant.name, "failed": str(error)})
            kept(options.out, rows)
    print(f"{time.monotonic() - begun:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
