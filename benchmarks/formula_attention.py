"""Attention written from formulas against PyTorch's, for formula_products.py."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.attention
from formula_timer import Timer
from warpwright.formulas.resolve import formula_of
from warpwright.schedules.attention import FusedAttention
from warpwright.writer.code import Code
from warpwright.writer.write import file_text, written

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
LIMITS = {"bf16": 1e-2, "f16": 2e-3}
"""Relative errors (norm) that no right result exceeds: weights and results are rounded to the type."""


@dataclass(frozen=True)
class AttentionVariant:
    """One written attention: at which sizes (heads, rows, keys) it is timed. `kind` is one of "", "causal", "window",
    "bias", "slope" (ALiBi) and "cap"; of `shared` heads each reads the same keys; `heads_last`: arrays of rows x heads
    x elements."""

    name: str
    head: int
    kind: str = ""
    type: str = "bf16"
    schedule: FusedAttention | None = None
    shared: int = 1
    heads_last: bool = False
    timed: tuple[tuple[int, int, int], ...] = ((32, 4096, 4096),)
    arch: str = "sm_90"

    @property
    def formula(self) -> str:
        t, n, of = self.type, self.head, f" * {self.shared}" if self.shared > 1 else ""
        own = f"h // {self.shared}" if of else "h"
        arrays = f"q: {t}[H{of}, I, {n}] k: {t}[H, J, {n}] v: {t}[H, J, {n}] o: {t}[H{of}, I, {n}]"
        q, k, v, o = "q[h, i, d]", f"k[{own}, j, d]", f"v[{own}, j, d]", "o[h, i, d]"
        if self.heads_last:
            arrays = f"q: {t}[I, H{of}, {n}] k: {t}[J, H, {n}] v: {t}[J, H, {n}] o: {t}[I, H{of}, {n}]"
            q, k, v, o = "q[i, h, d]", f"k[j, {own}, d]", f"v[j, {own}, d]", "o[i, h, d]"
        product = f"{n**-0.5} * (sum[d] {q} * {k})"
        score = {
            "": product,
            "causal": f"{product} if j <= i else -inf",
            "window": f"{product} if i - 512 < j and j <= i else -inf",
            "bias": f"{product} + bias[h, i, j]",
            "slope": f"{product} - slope[h] * abs(i - j)",
            "cap": f"30 * tanh({product} / 30)",
        }[self.kind]
        weights = f"s[h, i, j] = {score}, m[h, i] = max[j] s[h, i, j], e[h, i, j] = exp(s[h, i, j] - m[h, i])"
        bias = f" bias: {t}" if self.kind == "bias" else ""
        return f"{arrays}{bias} {o} = (sum[j] e[h, i, j] * {v}) / sum[j] e[h, i, j] where {weights}"

    @property
    def code(self) -> Code:
        return written(formula_of(self.formula), self.name, self.schedule)

    def text(self) -> str:
        return file_text(self.code)


ATTENTION = (
    AttentionVariant("attention_128", 128),
    AttentionVariant("attention_128_keys32", 128, schedule=FusedAttention(128, 32)),
    AttentionVariant("attention_128_keys48", 128, schedule=FusedAttention(128, 48)),
    AttentionVariant("attention_128_causal", 128, "causal", timed=((32, 4096, 4096), (32, 1000, 1000))),
    AttentionVariant("attention_128_window", 128, "window"),
    AttentionVariant("attention_128_heads_last", 128, "causal", heads_last=True),
    AttentionVariant("attention_128_shared", 128, "causal", shared=4, timed=((8, 4096, 4096),)),
    AttentionVariant("attention_64", 64, timed=((32, 4096, 4096), (32, 1000, 777))),
    AttentionVariant("attention_64_keys128", 64, schedule=FusedAttention(128, 128)),
    AttentionVariant("attention_64_causal", 64, "causal"),
    AttentionVariant("attention_64_f16", 64, type="f16"),
    AttentionVariant("attention_64_bias", 64, "bias"),
    AttentionVariant("attention_64_slope", 64, "slope"),
    AttentionVariant("attention_64_cap", 64, "cap"),
    AttentionVariant("attention_32", 32),
    AttentionVariant("attention_80", 80),
    AttentionVariant("attention_96", 96),
    AttentionVariant("attention_256", 256),
)
SMALL = ((1, 1, 1), (2, 33, 200), (2, 100, 77), (3, 128, 128), (2, 257, 130), (4, 1024, 1024))


def _mask(variant: AttentionVariant, held: Mapping[str, torch.Tensor], rows: int, keys: int) -> torch.Tensor | None:
    """What is added to the scores."""
    i = torch.arange(rows, device="cuda")[:, None]
    j = torch.arange(keys, device="cuda")[None]
    match variant.kind:
        case "causal":
            return torch.where(j <= i, 0.0, -math.inf).double()
        case "window":
            return torch.where((j <= i) & (i - 512 < j), 0.0, -math.inf).double()
        case "bias":
            return held["bias"].double()
        case "slope":
            return -held["slope"].double()[:, None, None] * (i - j).abs()
    return None


def exact(variant: AttentionVariant, held: Mapping[str, torch.Tensor], heads: slice) -> torch.Tensor:
    """In float64, of some heads. Arrays begin with the heads."""
    q, k, v = (held[name].double() for name in "qkv")
    k, v = (each.repeat_interleave(variant.shared, 0) for each in (k, v))
    scores = q[heads] @ k[heads].transpose(1, 2) * variant.head**-0.5
    if variant.kind == "cap":
        scores = 30 * torch.tanh(scores / 30)
    mask = _mask(variant, held, q.shape[1], k.shape[1])
    if mask is not None:
        scores = scores + (mask[heads] if mask.dim() == 3 else mask)
    return scores.softmax(2) @ v[heads]


def library(variant: AttentionVariant, held: Mapping[str, torch.Tensor], timer: Timer) -> float | None:
    """PyTorch's flash attention; its other kernels where that takes no such mask; None where none takes the scores."""
    if variant.kind == "cap":
        return None
    q, k, v = (held[name][None] for name in "qkv")
    mask = _mask(variant, held, q.shape[2], k.shape[2])
    run = torch.nn.functional.scaled_dot_product_attention
    if variant.kind in ("", "causal"):
        grouped = {"enable_gqa": True} if variant.shared > 1 else {}
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            return timer(lambda: run(q, k, v, is_causal=variant.kind == "causal", **grouped))
    assert mask is not None
    added = mask.to(q.dtype).expand(1, q.shape[1], *mask.shape[-2:])
    return timer(lambda: run(q, k, v, attn_mask=added))


def attention_rows(variant: AttentionVariant, function: Any, timer: Timer) -> list[dict[str, object]]:
    """Checks of one written attention at small sizes and its times."""
    kind, rows, stream = TYPES[variant.type], [], ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    code = variant.code

    def drawn(heads: int, length: int) -> torch.Tensor:
        shape = (length, heads, variant.head) if variant.heads_last else (heads, length, variant.head)
        made = torch.randn(shape, device="cuda", dtype=torch.float32).to(kind)
        return made.transpose(0, 1) if variant.heads_last else made

    for size in (*SMALL, *variant.timed):
        heads, length, keys = size
        held = {"q": drawn(heads * variant.shared, length), "k": drawn(heads, keys), "v": drawn(heads, keys)}
        held["o"] = torch.full_like(held["q"], math.nan)
        if variant.kind == "bias":
            held["bias"] = torch.randn((heads, length, keys), device="cuda").to(kind)
        if variant.kind == "slope":
            held["slope"] = torch.rand(heads, device="cuda") * 0.1
        pointers = [ctypes.c_void_p(held[each].data_ptr()) for each in code.formula.tensors]
        named = {"H": heads, "I": length, "J": keys}
        sizes = [ctypes.c_longlong(named[each]) for each in code.formula.sizes]

        def launch(pointers: Any = pointers, sizes: Any = sizes) -> None:
            if error := function(*pointers, *sizes, stream):
                raise RuntimeError(f"{variant.name}: CUDA error {error}")

        launch()
        some = slice(0, 2)
        truth = exact(variant, held, some)
        error = ((held["o"][some].double() - truth).norm() / truth.norm()).item()
        right = error <= LIMITS[variant.type] and not held["o"].isnan().any().item()
        row: dict[str, object] = {"kernel": variant.name, "size": size, "error": error, "right": right}
        line = f"{variant.name:24} {'x'.join(map(str, size)):>22} {error:9.1e}"
        if size in variant.timed:
            ours, theirs = timer(launch), library(variant, held, timer)
            seen = 0.5 if variant.kind == "causal" else 0.125 if variant.kind == "window" else 1.0
            work = 4 * heads * variant.shared * length * keys * variant.head * seen
            row |= {"us": ours, "library_us": theirs, "operations": work}
            line += f" {ours:9.1f} {work / ours / 1e6:8.1f}"
            line += "" if theirs is None else f" {theirs:9.1f} {theirs / ours:6.2f}"
        if not right or size in variant.timed:
            print(line + ("" if right else " WRONG"), flush=True)
        rows.append(row)
    return rows
