"""Do the emulator's instructions give what a GPU gives? One tiny PTX kernel for each instruction and mode, on both.

    PYTHONPATH=server python3 benchmarks/emulator_numerics.py --out benchmarks/results

Needs a CUDA GPU, nvcc, and a Python with torch and numpy. Operands are special values, random bits and ordinary
numbers, mixed. Integers and plain floats must agree in every bit; the approximate functions within the
bound that stands beside them. Writes emulator_numerics.json with the command, the hardware and the versions, prints one
line for each instruction that differs and a summary, and exits 1 where one differs by more than it may.

`--ptx` prints the PTX and stops, which needs no GPU. Most of this file is the list of the instructions.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from warpwright.emulator.numerics import approximate, convert, floats, halves, integers
from warpwright.missing import Missing
from warpwright.toolchain.find import find_toolchain

LANES = 1 << 16
BLOCK = 256
EXAMPLES = 16
INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
ROUNDINGS = ("rn", "rz", "rm", "rp")
KINDS: dict[str, Any] = {
    "u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16, "u32": np.uint32, "s32": np.int32,
    "u64": np.uint64, "s64": np.int64, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.uint32,
    "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64, "f16x2": np.uint32, "bf16x2": np.uint32,
}  # fmt: skip
# Bits of exponent and of fraction.
FLOATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
WIDENING = (("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64"))


@dataclass(frozen=True)
class Case:
    """One instruction: `{d}` is its result, `{a}` and so on its operands, whose types (PTX's names) are `operands`.

    `bound` is "bits", or how far apart two results may be: ("ulp", 2), ("absolute", 2**-20).
    """

    instruction: str
    operands: tuple[str, ...]
    result: str
    function: Callable[..., Any]
    bound: tuple[str, float] = ("bits", 0.0)
    low: float = 0.0
    high: float = 0.0


# The cases


def binary(name: str, kind: str, function: Callable[..., Any], result: str = "") -> Case:
    return Case(f"{name}.{kind}", (kind, kind), result or kind, function)


def wide(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def integer_cases() -> Iterator[Case]:
    for kind in INTEGERS:
        three = (kind, kind, kind)
        yield binary("add", kind, np.add)
        yield binary("sub", kind, np.subtract)
        yield binary("mul.lo", kind, np.multiply)
        yield binary("mul.hi", kind, integers.mul_hi)
        yield binary("min", kind, np.minimum)
        yield binary("max", kind, np.maximum)
        yield binary("div", kind, integers.div)
        yield binary("rem", kind, integers.rem)
        yield Case(f"mad.lo.{kind}", three, kind, lambda a, b, c: a * b + c)
        yield Case(f"mad.hi.{kind}", three, kind, lambda a, b, c: integers.mul_hi(a, b) + c)
        yield Case(f"sad.{kind}", three, kind, integers.sad)
        yield Case(f"shr.{kind}", (kind, "b32"), kind, integers.shr)
        if kind[0] == "s":
            yield Case(f"abs.{kind}", (kind,), kind, np.abs)
            yield Case(f"neg.{kind}", (kind,), kind, np.negative)
        if kind[1:] != "64":
            yield binary("mul.wide", kind, integers.mul_wide, wide(kind))
            yield Case(
                f"mad.wide.{kind}", (kind, kind, wide(kind)), wide(kind), lambda a, b, c: integers.mul_wide(a, b) + c
            )
        if kind[1:] != "16":
            yield Case(f"bfind.{kind}", (kind,), "u32", integers.bfind)
            yield Case(f"bfind.shiftamt.{kind}", (kind,), "u32", integers.bfind_shiftamt)
            yield Case(f"bfe.{kind}", (kind, "b32", "b32"), kind, integers.bfe)
        if kind[1:] == "32":
            yield binary("mul24.lo", kind, integers.mul24_lo)
            yield binary("mul24.hi", kind, integers.mul24_hi)
            yield Case(f"szext.wrap.{kind}", (kind, "b32"), kind, integers.szext_wrap)
            yield Case(f"szext.clamp.{kind}", (kind, "b32"), kind, integers.szext_clamp)
    yield binary("add.sat", "s32", integers.add_sat)
    yield binary("sub.sat", "s32", integers.sub_sat)
    yield Case("mad.hi.sat.s32", ("s32",) * 3, "s32", integers.mad_hi_sat)
    for kind in ("b16", "b32", "b64"):
        yield Case(f"shl.{kind}", (kind, "b32"), kind, integers.shl)
        yield Case(f"cnot.{kind}", (kind,), kind, integers.cnot)
    for kind in ("b32", "b64"):
        yield Case(f"popc.{kind}", (kind,), "u32", integers.popc)
        yield Case(f"clz.{kind}", (kind,), "u32", integers.clz)
        yield Case(f"brev.{kind}", (kind,), kind, integers.brev)
        yield Case(f"bfi.{kind}", (kind, kind, "b32", "b32"), kind, integers.bfi)
    for mode in ("wrap", "clamp"):
        yield Case(f"bmsk.{mode}.b32", ("b32",) * 2, "b32", getattr(integers, f"bmsk_{mode}"))
        for side in "lr":
            yield Case(f"shf.{side}.{mode}.b32", ("b32",) * 3, "b32", getattr(integers, f"shf_{side}_{mode}"))
    yield Case("and.b32 {b}, {b}, 31; fns.b32 {d}, {a}, {b}, {c};", ("b32", "b32", "s32"), "b32",
               lambda a, b, c: integers.fns(a, b & np.uint32(31), c))  # fmt: skip
    for table in (0x00, 0x1B, 0x69, 0x80, 0x96, 0xCA, 0xE8, 0xFE):
        yield Case(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};", ("b32",) * 3, "b32",
                   lambda a, b, c, table=table: integers.lop3(a, b, c, table))  # fmt: skip
    yield Case("prmt.b32", ("b32",) * 3, "b32", integers.prmt)
    for selector in (0x5410, 0x7732, 0x3340, 0x0123, 0xF9A2):
        yield Case(f"prmt.b32 {{d}}, {{a}}, {{b}}, {selector};", ("b32",) * 2, "b32",
                   lambda a, b, selector=selector: integers.prmt(a, b, np.uint32(selector)))  # fmt: skip
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield Case(
            f"prmt.b32.{mode}", ("b32",) * 3, "b32", lambda a, b, c, mode=mode: integers.prmt_mode(a, b, c, mode)
        )
    for a, b in (("u32", "u32"), ("u32", "s32"), ("s32", "u32"), ("s32", "s32")):
        kind = "u32" if a == b == "u32" else "s32"
        yield Case(f"dp4a.{a}.{b}", (a, b, kind), kind, integers.dp4a)
        yield Case(f"dp2a.lo.{a}.{b}", (a, b, kind), kind, integers.dp2a_lo)
        yield Case(f"dp2a.hi.{a}.{b}", (a, b, kind), kind, integers.dp2a_hi)
    for kind in ("u32", "u64"):
        scratch = f".reg .b{kind[1:]} t;"
        yield Case(f"{scratch} add.cc.{kind} t, {{a}}, {{b}}; addc.cc.{kind} t, t, {{c}}; addc.{kind} {{d}}, {{a}}, t;",
                   (kind,) * 3, kind, _carried)  # fmt: skip
        yield Case(f"{scratch} sub.cc.{kind} t, {{a}}, {{b}}; subc.cc.{kind} t, t, {{c}}; subc.{kind} {{d}}, {{a}}, t;",
                   (kind,) * 3, kind, _borrowed)  # fmt: skip
        yield Case(f"{scratch} mad.lo.cc.{kind} t, {{a}}, {{b}}, {{c}}; madc.hi.{kind} {{d}}, {{a}}, {{b}}, t;",
                   (kind,) * 3, kind, _long_product)  # fmt: skip


def _carried(a: Any, b: Any, c: Any) -> Any:
    total, carry = integers.addc_cc(*_first(integers.add_cc(a, b), c))
    return integers.addc_cc(a, total, carry)[0]


def _borrowed(a: Any, b: Any, c: Any) -> Any:
    difference, borrow = integers.subc_cc(*_first(integers.sub_cc(a, b), c))
    return integers.subc_cc(a, difference, borrow)[0]


def _first(pair: tuple[Any, Any], operand: Any) -> tuple[Any, Any, Any]:
    return pair[0], operand, pair[1]


def _long_product(a: Any, b: Any, c: Any) -> Any:
    low, carry = integers.add_cc(a * b, c)
    return integers.addc_cc(integers.mul_hi(a, b), low, carry)[0]


def flushed(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: floats.flush(function(*(floats.flush(operand) for operand in operands)))


def saturated(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: floats.saturate(function(*operands))


def float_cases() -> Iterator[Case]:
    count = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1, "rcp": 1}
    for kind in ("f32", "f64"):
        for name, operands in count.items():
            for rounding in ROUNDINGS:
                function = _rounded(getattr(floats, name), rounding)
                yield Case(f"{name}.{rounding}.{kind}", (kind,) * operands, kind, function)
                if kind == "f32":
                    ftz = flushed(function)
                    if hasattr(floats, f"{name}_ftz"):
                        ftz = _rounded(getattr(floats, f"{name}_ftz"), rounding)
                    yield Case(f"{name}.{rounding}.ftz.f32", (kind,) * operands, kind, ftz)
                    if operands > 1 and name != "div":
                        yield Case(f"{name}.{rounding}.sat.f32", (kind,) * operands, kind, saturated(function))
        yield binary("min", kind, floats.minimum)
        yield binary("max", kind, floats.maximum)
        yield binary("copysign", kind, floats.copysign)
        yield Case(f"abs.{kind}", (kind,), kind, floats.absolute)
        yield Case(f"neg.{kind}", (kind,), kind, floats.negate)
        for name, compare in floats.COMPARE.items():
            for ftz in ("", ".ftz")[: 2 if kind == "f32" else 1]:
                yield Case(f".reg .pred t; setp.{name}{ftz}.{kind} t, {{a}}, {{b}}; selp.u32 {{d}}, 1, 0, t;",
                           (kind, kind), "pred", _compared(compare, bool(ftz)))  # fmt: skip
        for name, test in floats.TESTS.items():
            yield Case(f".reg .pred t; testp.{name}.{kind} t, {{a}}; selp.u32 {{d}}, 1, 0, t;", (kind,), "pred", test)
        yield Case(f"slct.{kind}.s32", (kind, kind, "s32"), kind, floats.slct)
    yield Case("slct.u32.f32", ("u32", "u32", "f32"), "u32", floats.slct)
    yield binary("min.ftz", "f32", flushed(floats.minimum))
    yield binary("max.ftz", "f32", flushed(floats.maximum))
    yield binary("min.NaN", "f32", floats.minimum_nan)
    yield binary("max.NaN", "f32", floats.maximum_nan)
    yield binary("min.xorsign.abs", "f32", _xor_sign(floats.minimum))
    yield binary("max.xorsign.abs", "f32", _xor_sign(floats.maximum))
    yield Case("abs.ftz.f32", ("f32",), "f32", flushed(floats.absolute))
    yield Case("neg.ftz.f32", ("f32",), "f32", flushed(floats.negate))


def _rounded(function: Callable[..., Any], rounding: str) -> Callable[..., Any]:
    return lambda *lanes: function(*lanes, rounding)


def _compared(compare: Callable[..., Any], ftz: bool) -> Callable[..., Any]:
    return (lambda a, b: compare(floats.flush(a), floats.flush(b))) if ftz else compare


def _xor_sign(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: floats.with_xor_sign(function(floats.absolute(a), floats.absolute(b)), a, b)


def half_cases() -> Iterator[Case]:
    names = {"add": "add", "sub": "sub", "mul": "mul", "fma.rn": "fma", "min": "minimum", "max": "maximum",
             "min.NaN": "minimum_nan", "max.NaN": "maximum_nan", "neg": "negate", "abs": "absolute"}  # fmt: skip
    for kind in ("f16", "bf16"):
        relu = getattr(halves, f"relu_{kind}")
        for instruction, name in names.items():
            function = getattr(halves, f"{name}_{kind}")
            operands = {"fma": 3, "negate": 1, "absolute": 1}.get(name, 2)
            for count, form in ((1, lambda f: f), (2, lambda f: halves.pairs(f, KINDS[kind]))):  # noqa: B023
                typed = kind + ("x2" if count == 2 else "")
                yield Case(f"{instruction}.{typed}", (typed,) * operands, typed, form(function))
                if name == "fma":
                    clamped = form(lambda a, b, c, f=function, r=relu: r(f(a, b, c)))
                    yield Case(f"fma.rn.relu.{typed}", (typed,) * 3, typed, clamped)
        if kind == "f16":
            for name in ("add", "mul"):
                function = getattr(halves, f"{name}_f16")
                yield Case(
                    f"{name}.sat.f16", ("f16",) * 2, "f16", lambda a, b, f=function: halves.saturate_f16(f(a, b))
                )
    yield Case("add.ftz.f16", ("f16",) * 2, "f16", lambda a, b: halves.flush_f16(
        halves.add_f16(halves.flush_f16(a), halves.flush_f16(b))))  # fmt: skip
    yield Case("mul.ftz.f16", ("f16",) * 2, "f16", halves.mul_ftz_f16)
    yield Case("fma.rn.ftz.f16", ("f16",) * 3, "f16", halves.fma_ftz_f16)
    yield Case("ex2.approx.f16", ("f16",), "f16", halves.ex2_f16, ("ulp", 2))
    yield Case("tanh.approx.f16", ("f16",), "f16", halves.tanh_f16, ("ulp", 2))
    yield Case("ex2.approx.ftz.bf16", ("bf16",), "bf16", lambda a: halves.flush_bf16(halves.ex2_bf16(a)), ("ulp", 2))
    yield Case("tanh.approx.bf16", ("bf16",), "bf16", halves.tanh_bf16, ("ulp", 2))


def conversion_cases() -> Iterator[Case]:
    whole = [*convert.INTEGERS]
    for source in whole:
        for target in whole:
            if source != target:
                yield conversion(target, source)
                if not covers(target, source):
                    yield conversion(target, source, "sat")
        for target in FLOATS if source[1:] != "8" else ("f16", "f32", "f64"):
            for rounding in ROUNDINGS:
                yield conversion(target, source, rounding)
    for source in FLOATS:
        for rounding in ROUNDINGS:
            for target in whole if source != "bf16" else INTEGERS:
                yield conversion(target, source, f"{rounding}i")
                if source == "f32":
                    yield conversion(target, source, f"{rounding}i", "ftz")
            if source != "bf16":
                yield conversion(source, source, f"{rounding}i")
    for rounding in ROUNDINGS:
        for source in FLOATS:
            for target in FLOATS:
                if (source, target) not in (*WIDENING, *((kind, kind) for kind in FLOATS)):
                    yield conversion(target, source, rounding)
    for source, target in WIDENING:
        yield conversion(target, source)
    for rounding in ROUNDINGS:
        yield conversion("f32", "f64", rounding, "ftz")
    yield conversion("f64", "f32", "ftz")
    yield conversion("f32", "f32", "rni", "ftz")
    yield conversion("f32", "f32", "sat")
    yield conversion("f16", "f32", "rn", "relu")
    yield conversion("bf16", "f32", "rn", "relu")
    yield conversion("f32", "f64", "rn", "sat")
    yield conversion("f32", "s32", "rn", "sat")
    for kind, pack in (("f16x2", convert.pack_f16x2), ("bf16x2", convert.pack_bf16x2)):
        for modifiers in (("rn",), ("rz",), ("rn", "relu"), ("rn", "satfinite"), ("rz", "relu", "satfinite")):
            yield Case(f"cvt.{'.'.join(modifiers)}.{kind}.f32", ("f32", "f32"), kind,
                       lambda a, b, pack=pack, modifiers=modifiers: pack(a, b, modifiers))  # fmt: skip
    for rounding in ("rna", "rn", "rz"):
        yield Case(
            f"cvt.{rounding}.tf32.f32", ("f32",), "b32", lambda a, rounding=rounding: convert.to_tf32(a, rounding)
        )
    for kind in ("f16", "bf16"):
        for modifiers in (("rn", "satfinite"), ("rz", "satfinite"), ("rn", "relu", "satfinite")):
            yield conversion(kind, "f32", *modifiers)
    yield Case("cvt.rna.satfinite.tf32.f32", ("f32",), "b32", convert.to_tf32_satfinite)
    yield Case("cvt.rn.relu.tf32.f32", ("f32",), "b32", lambda a: convert.to_tf32(a, "rn", True))
    for kind in ("e4m3x2", "e5m2x2"):
        pack, from_halves = getattr(convert, f"pack_{kind}"), getattr(convert, f"pack_{kind}_of_f16x2")
        unpack = getattr(convert, f"unpack_{kind}")
        yield Case(f"cvt.rn.satfinite.{kind}.f32", ("f32", "f32"), "b16", pack)
        yield Case(f"cvt.rn.satfinite.relu.{kind}.f32", ("f32", "f32"), "b16", lambda a, b, f=pack: f(a, b, True))
        yield Case(f"cvt.rn.satfinite.{kind}.f16x2", ("f16x2",), "b16", from_halves)
        yield Case(f"cvt.rn.f16x2.{kind}", ("b16",), "f16x2", unpack)
        yield Case(f"cvt.rn.relu.f16x2.{kind}", ("b16",), "f16x2", lambda a, f=unpack: f(a, True))


def covers(target: str, source: str) -> bool:
    """Whether the target has every value of the source; PTX then knows no .sat."""
    there, here = np.iinfo(KINDS[target]), np.iinfo(KINDS[source])
    return bool(there.min <= here.min and here.max <= there.max)


def conversion(target: str, source: str, *modifiers: str) -> Case:
    """Of 8 bits: the operand is the lower byte of a word, and the result is a word, extended from the byte."""
    function = convert.conversion(target, source, modifiers)
    read = {"u8": "u32", "s8": "s32"}.get(source, source)
    written = {"u8": "u32", "s8": "s32"}.get(target, target)
    name = ".".join(("cvt", *modifiers, target, source))
    return Case(
        name, (read,), written, lambda a: function(a).astype(KINDS[written]) if written != target else function(a)
    )


def approximate_cases() -> Iterator[Case]:
    """The bounds of ex2, rcp and rsqrt are 2 ulp; of the others the manual's errors."""
    trigonometric, logarithm = ("absolute", 2.0**-20.5), ("absolute below 1, else relative", 2.0**-22)
    for ftz in ("", ".ftz"):
        form = flushed if ftz else (lambda function: function)
        for name, bound in (("ex2", ("ulp", 2)), ("rcp", ("ulp", 2)), ("rsqrt", ("ulp", 2)), ("sqrt", ("ulp", 2))):
            yield Case(f"{name}.approx{ftz}.f32", ("f32",), "f32", form(getattr(approximate, name)), bound)
        yield Case(f"sin.approx{ftz}.f32", ("f32",), "f32", form(approximate.sin), trigonometric, -np.pi, np.pi)
        yield Case(f"cos.approx{ftz}.f32", ("f32",), "f32", form(approximate.cos), trigonometric, -np.pi, np.pi)
        yield Case(f"lg2.approx{ftz}.f32", ("f32",), "f32", form(approximate.lg2), logarithm, 0.5, 2)
        yield Case(f"lg2.approx{ftz}.f32", ("f32",), "f32", form(approximate.lg2), logarithm)
    yield Case("div.full.f32", ("f32", "f32"), "f32", floats.div, ("ulp", 2))
    yield Case("div.full.ftz.f32", ("f32", "f32"), "f32", floats.div_ftz, ("ulp", 2))
    yield Case("div.approx.f32", ("f32", "f32"), "f32", approximate.div, ("ulp", 2))
    yield Case("div.approx.ftz.f32", ("f32", "f32"), "f32", approximate.div_ftz, ("ulp", 2))
    yield Case("tanh.approx.f32", ("f32",), "f32", approximate.tanh, ("relative", 2.0**-11))
    yield Case("rcp.approx.ftz.f64", ("f64",), "f64", approximate.rcp_f64, ("relative", 2.0**-19))
    yield Case("rsqrt.approx.ftz.f64", ("f64",), "f64", approximate.rsqrt_f64, ("relative", 2.0**-19))
    yield Case("rsqrt.approx.f64", ("f64",), "f64", approximate.rsqrt_full_f64, ("ulp", 2))


def all_cases() -> list[Case]:
    return [*integer_cases(), *float_cases(), *half_cases(), *conversion_cases(), *approximate_cases()]


# Kernels and operands


def kernel(case: Case, name: str) -> str:
    """PTX of a kernel (a, b, c, d: arrays; result: array) that applies the instruction to each element."""
    size = {t: np.dtype(KINDS[t]).itemsize for t in (*case.operands, case.result)}
    registers = [f".reg .b{8 * size[t]} %{n};" for n, t in zip("abce", case.operands, strict=False)]
    lines = [
        f".visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pe, .param .u64 pd) {{",
        ".reg .b64 %p, %o; .reg .b32 %i, %n, %t;", *registers, f".reg .b{8 * size[case.result]} %d;",
        f"mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, {BLOCK}, %t;",
    ]  # fmt: skip
    for letter, kind in zip("abce", case.operands, strict=False):
        lines.append(f"ld.param.u64 %p, [p{letter}]; mul.wide.u32 %o, %i, {size[kind]}; add.s64 %p, %p, %o;")
        lines.append(f"ld.global.b{8 * size[kind]} %{letter}, [%p];")
    lines.append("{ " + instruction(case) + " }")
    lines.append(f"ld.param.u64 %p, [pd]; mul.wide.u32 %o, %i, {size[case.result]}; add.s64 %p, %p, %o;")
    lines.append(f"st.global.b{8 * size[case.result]} [%p], %d; ret;\n}}")
    return "\n".join(lines)


def instruction(case: Case) -> str:
    if "{d}" in case.instruction:
        return case.instruction.format(a="%a", b="%b", c="%c", d="%d")
    return f"{case.instruction} {', '.join(('%d', *(f'%{n}' for n, _ in zip('abce', case.operands, strict=False))))};"


def module(cases: Sequence[Case], arch: str) -> str:
    kernels = (kernel(case, f"k{number}") for number, case in enumerate(cases))
    return f".version 8.6\n.target {arch}\n.address_size 64\n" + "\n".join(kernels) + "\n"


def operands(case: Case, seed: int) -> list[Any]:
    """LANES values for each operand; every 16-bit value for a single operand of 16 bits."""
    rng = np.random.default_rng(seed)
    if case.operands in (("f16",), ("bf16",), ("u16",), ("s16",), ("b16",)):
        return [np.arange(LANES).astype(np.uint16).view(KINDS[case.operands[0]])]
    if case.high > case.low:
        inside = rng.uniform(case.low, case.high, LANES)
        inside[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.0]
        return [inside.astype(KINDS[kind]) for kind in case.operands]
    lanes = [values(kind, rng) for kind in case.operands]
    for lane, near in zip(lanes, _near_least(case, rng) if ".ftz" in case.instruction else [], strict=False):
        lane[: len(near)] = near
    return lanes


def _near_least(case: Case, rng: np.random.Generator) -> list[Any]:
    """Operands whose result lies about the least normal number, where .ftz has to choose; [] for other operations."""
    least, precision = (2.0**-14, 11) if case.result == "f16" else (2.0**-126, 24)
    count = LANES // 8
    signs = rng.choice([-1.0, 1.0], (2, count))
    target = signs[0] * least * (1 + rng.integers(-16, 17, count) * 2.0 ** -(precision + 2))
    other = signs[1] * (1 + rng.random(count)) * 2.0 ** rng.integers(-4, 5, count)
    other = other.astype(KINDS[case.operands[0]]).astype(np.float64)
    # The product is small beside c, and its factors are no subnormal numbers.
    small = signs[1] * 2.0 ** -rng.integers(precision - 2, precision + 4, count).astype(np.float64)
    found = {
        "mul": [other, target / other], "div": [target * other, other], "rcp": [1 / target], "cvt": [target],
        "fma": [small, least * np.abs(other) * 16, signs[0] * least],
    }.get(case.instruction.split(".", 1)[0], [])  # fmt: skip
    return [lane.astype(KINDS[kind]) for kind, lane in zip(case.operands, found, strict=False)]


def values(kind: str, rng: np.random.Generator) -> Any:
    """In equal shares: special values, any bits, small numbers, and numbers with few significant bits."""
    if kind in ("f16x2", "bf16x2"):
        upper, lower = (values(kind[:-2], rng).view(np.uint16).astype(np.uint32) for _ in range(2))
        return upper << np.uint32(16) | lower
    dtype = np.dtype(KINDS[kind])
    bits = dtype.itemsize * 8
    word = np.dtype(f"u{dtype.itemsize}")
    share = LANES // 4
    anything = rng.integers(0, 2**bits, share, dtype=word)
    if kind in FLOATS:
        exponents, fraction = FLOATS[kind]
        bias = 2 ** (exponents - 1) - 1
        special = _float_specials(exponents, fraction)
        near = _assembled(rng, share, fraction, bits, max(1, bias - 12), min(2 * bias, bias + 12))
        few = _assembled(rng, share, fraction, bits, max(0, bias - 40), min(2 * bias, bias + 40))
        few = few & ~np.array((1 << (3 * fraction // 4)) - 1, word)
        small, short = near.astype(word), few.astype(word)
    else:
        special = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256]
        special += [2**bits - 1 - s for s in special] + [2 ** (bits - 1) + s for s in range(-3, 4)]
        small = rng.integers(0, 200, share).astype(word) * rng.choice(np.array([1, 2**bits - 1], word), share)
        short = np.array(1, word) << rng.integers(0, bits, share).astype(word)
    chosen = rng.choice(np.array(special, word), LANES - 3 * share)
    return rng.permutation(np.concatenate([chosen, anything, small, short])).view(dtype)


def _float_specials(exponents: int, fraction: int) -> list[int]:
    sign, infinity = 1 << (exponents + fraction), (2**exponents - 1) << fraction
    one, ulp = (2 ** (exponents - 1) - 1) << fraction, 1 << fraction
    positive = [
        0,
        1,
        2,
        ulp - 1,
        ulp,
        ulp + 1,
        2 * ulp - 1,
        2 * ulp,
        infinity - 1,
        infinity - ulp,
        infinity,
        infinity + 1,
    ]
    positive += [
        infinity + ulp // 2,
        infinity + ulp - 1,
        infinity + ulp // 2 + 5,
        one,
        one + 1,
        one - 1,
        one + ulp,
        one - ulp,
    ]
    positive += [one + 8 * ulp, one + ulp // 2, one + ulp + ulp // 2, one + 2 * ulp + 1, one - ulp + 1]
    return positive + [value | sign for value in positive]


def _assembled(rng: np.random.Generator, count: int, fraction: int, bits: int, low: int, high: int) -> Any:
    exponent = rng.integers(low, high + 1, count).astype(np.uint64) << np.uint64(fraction)
    sign = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(bits - 1)
    return sign | exponent | rng.integers(0, 2**fraction, count, dtype=np.uint64)


# Comparison


def compare(case: Case, gpu: Any, ours: Any, lanes: Sequence[Any]) -> dict[str, Any]:
    """How far apart two results are, and the first lanes that differ by more than they may."""
    word = np.dtype(f"u{gpu.dtype.itemsize}")
    a, b = gpu.view(word), np.ascontiguousarray(ours).astype(gpu.dtype, copy=False).view(word)
    differ = a != b
    row: dict[str, Any] = {
        "instruction": instruction(case),
        "bound": f"{case.bound[0]} {case.bound[1]:.3g}".strip("0 "),
    }
    row |= {"lanes": int(a.size), "differing": int(differ.sum())}
    if case.result in FLOATS:
        x, y = numbers(case.result, a), numbers(case.result, b)
        row["differing_nan"] = int((differ & np.isnan(x) & np.isnan(y)).sum())
        bad = differ
        if case.bound[0] != "bits":
            finite = np.isfinite(x) & np.isfinite(y)
            # A result at the edge of the range may fall on either side of it: infinity, or one ulp from it.
            distance = np.where(np.isfinite(x) | ~np.isnan(x) & ~np.isnan(y), ulps(case.result, a, b), 0)
            row["max_ulp"] = int(distance[finite].max(initial=0))
            row["max_absolute"] = float(np.abs(x - y)[finite].max(initial=0))
            row["max_relative"] = float((np.abs(x - y) / np.abs(y))[finite & (y != 0)].max(initial=0))
            with np.errstate(all="ignore"):
                measures = {
                    "ulp": distance, "absolute": np.abs(x - y), "relative": np.abs(x - y) / np.abs(y),
                    "absolute below 1, else relative": np.abs(x - y) / np.maximum(np.abs(y), 1),
                }  # fmt: skip
            close = (measures[case.bound[0]] <= case.bound[1]) | (distance <= 2)
            bad = differ & ~(close & ~np.isnan(x) & ~np.isnan(y))
    else:
        bad = differ
    row["bad"] = int(bad.sum())
    row["examples"] = [
        {"operands": [hex_of(lane[i]) for lane in lanes], "gpu": hex_of(a[i]), "emulator": hex_of(b[i])}
        for i in np.flatnonzero(bad)[:: max(1, int(bad.sum()) // EXAMPLES)][:EXAMPLES].tolist()
    ]
    return row


def numbers(kind: str, bits: Any) -> Any:
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view(KINDS[kind]).astype(np.float64)


def ulps(kind: str, a: Any, b: Any) -> Any:
    """How many numbers of the format lie between."""
    width = np.dtype(KINDS[kind]).itemsize * 8
    places = []
    for bits in (a, b):
        magnitude = (bits & np.array((1 << (width - 1)) - 1, bits.dtype)).astype(np.int64)
        places.append(np.where(bits >> np.array(width - 1, bits.dtype), -magnitude, magnitude))
    return np.abs(places[0] - places[1])


def hex_of(value: Any) -> str:
    return hex(int(np.asarray(value).view(f"u{np.asarray(value).dtype.itemsize}")))


# Running


def assemble(ptx: str, arch: str) -> bytes:
    """A cubin. Exits with ptxas's words where it refuses."""
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        raise SystemExit(f"emulator_numerics: {toolchain}")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "cases.ptx", Path(folder) / "cases.cubin"
        source.write_text(ptx, encoding="utf-8")
        command = [str(toolchain.nvcc), "-cubin", f"-arch={arch}", "-o", str(target), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"emulator_numerics: ptxas refuses the kernels\n{done.stderr[:4000]}")
        return target.read_bytes()


def on_gpu(loaded: Any, number: int, case: Case, lanes: Sequence[Any]) -> Any:
    import torch
    from warpwright_harness.device import pointer_argument, synchronize

    buffers = [torch.from_numpy(lane.view(np.uint8)).cuda() for lane in lanes]
    result = torch.zeros(LANES * np.dtype(KINDS[case.result]).itemsize, dtype=torch.uint8, device="cuda")
    addresses = [buffer.data_ptr() for buffer in buffers] + [0] * (4 - len(buffers)) + [result.data_ptr()]
    torch.cuda.synchronize()
    arguments = [pointer_argument(address) for address in addresses]
    function = loaded.function(f"k{number}")
    loaded.launch(
        function, (LANES // BLOCK, 1, 1), (BLOCK, 1, 1), 0, torch.cuda.current_stream().cuda_stream, arguments
    )
    synchronize()
    return result.cpu().numpy().view(KINDS[case.result])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where emulator_numerics.json is written")
    parser.add_argument("--only", default="", metavar="TEXT", help="the instructions that hold TEXT")
    parser.add_argument("--ptx", action="store_true", help="print the PTX and stop")
    arguments = parser.parse_args()
    cases = [case for case in all_cases() if arguments.only in case.instruction]
    if arguments.ptx:
        print(module(cases, "sm_90"))
        return 0
    from warpwright_harness.device import Module, probe

    gpu = probe()
    if "missing" in gpu:
        print(f"emulator_numerics: {gpu['missing']}", file=sys.stderr)
        return 2
    import torch

    torch.zeros(1, device="cuda")  # makes torch's context current, in which the driver then loads
    rows = []
    with Module(assemble(module(cases, gpu["arch"]), gpu["arch"])) as loaded, np.errstate(all="ignore"):
        for number, case in enumerate(cases):
            lanes = operands(case, number)
            rows.append(compare(case, on_gpu(loaded, number, case, lanes), case.function(*lanes), lanes))
            show(rows[-1])
    wrong = [row for row in rows if row["bad"]]
    print(f"{len(rows) - len(wrong)} of {len(rows)} instructions agree, on {LANES} lanes each")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        toolchain = find_toolchain()
        assert not isinstance(toolchain, Missing)
        result = {
            "command": "PYTHONPATH=server python3 benchmarks/emulator_numerics.py --out DIR",
            "hardware": gpu,
            "versions": {"nvcc": toolchain.version, "numpy": np.__version__, "python": platform.python_version()},
            "agreeing": len(rows) - len(wrong),
            "instructions": rows,
        }
        target = arguments.out / "emulator_numerics.json"
        target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong else 0


def show(row: dict[str, Any]) -> None:
    if not row["bad"] and "max_ulp" not in row:
        return
    measured = (
        f"max {row['max_ulp']} ulp, {row['max_absolute']:.3g} absolute, {row['max_relative']:.3g} relative"
        if "max_ulp" in row
        else ""
    )
    print(f"{'FAIL' if row['bad'] else 'ok  '} {row['instruction']:<50} {row['bad']:>6} lanes differ  {measured}")
    for example in row["examples"][:4]:
        print(f"       {' '.join(example['operands'])} -> GPU {example['gpu']}, emulator {example['emulator']}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
