"""Index expressions counted by the interpreter against a brute-force evaluation of the same text in Python."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.findings import program

LEAVES = ["threadIdx.x", "threadIdx.y", "blockIdx.x", "1", "2", "3", "5", "16", "32", "33"]
OPERATORS = ["+", "*", "&", "|", "^"]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    kind = draw(st.sampled_from([*OPERATORS, "/", "%", "<<", ">>", "?"]))
    left = draw(expressions(depth=depth - 1))
    if kind in ("/", "%"):
        return f"({left} {kind} {draw(st.sampled_from(['2', '3', '7', '32']))})"
    if kind in ("<<", ">>"):
        return f"({left} {kind} {draw(st.sampled_from(['1', '2', '4']))})"
    right = draw(expressions(depth=depth - 1))
    if kind == "?":
        return f"({left} < {right} ? {left} : {right})"
    return f"({left} {kind} {right})"


def in_python(expression: str) -> str:
    """The same expression for Python's eval; all values are small and not negative."""
    out = expression.replace("threadIdx.x", "tx").replace("threadIdx.y", "ty").replace("blockIdx.x", "bx")
    out = out.replace("/", "//")
    while "?" in out:
        end = out.index("?")
        start = _open(out, end)
        close = _close(out, end)
        condition, rest = out[start + 1 : end], out[end + 1 : close]
        colon = _colon(rest)
        out = f"{out[:start]}choose({condition}, {rest[:colon]}, {rest[colon + 1 :]}){out[close + 1 :]}"
    return out


def _open(text: str, at: int) -> int:
    depth = 0
    for i in range(at, -1, -1):
        depth += (text[i] == ")") - (text[i] == "(")
        if depth < 0:
            return i
    raise AssertionError(text)


def _close(text: str, at: int) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth < 0:
            return i
    raise AssertionError(text)


def _colon(text: str) -> int:
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == ":" and depth == 0:
            return i
    raise AssertionError(text)


def choose(condition: bool, then: int, otherwise: int) -> int:
    return then if condition else otherwise


def counted(expression: str, width: int, height: int, size: int) -> tuple[float, float]:
    """Mean sectors, and mean wavefronts, per request over all warps of one block."""
    code = compile(in_python(expression), "index", "eval")
    threads = [(t % width, t // width) for t in range(width * height)]
    sectors = wavefronts = requests = 0
    for first in range(0, len(threads), 32):
        addresses = [
            size * eval(code, {"tx": x, "ty": y, "bx": 0, "choose": choose}) for x, y in threads[first : first + 32]
        ]
        requests += 1
        sectors += len({a // 32 for a in addresses})
        banks: dict[int, set[int]] = {}
        for a in addresses:
            banks.setdefault(a // 4 % 32, set()).add(a // 4)
        wavefronts += max(len(words) for words in banks.values())
    return sectors / requests, wavefronts / requests


@examples(150)
@given(expressions(), st.sampled_from([(32, 1), (64, 2), (16, 16), (17, 13), (8, 4), (5, 3)]))
def test_counts_agree_with_brute_force(expression: str, block: tuple[int, int]) -> None:
    width, height = block
    text = f"""
    __global__ void k(float* a, float* out) {{
        __shared__ float s[12288];
        a[{expression}] = 1.0f;
        s[{expression}] = 1.0f;
    }}
    void f(float* a) {{ k<<<1, dim3({width}, {height})>>>(a, a); }}
    """
    stored, shared = program(text).kernels[0].accesses
    sectors, wavefronts = counted(expression, width, height, 4)
    assert stored.sectors_per_request == round(sectors, 3)
    assert shared.wavefronts_per_request == round(wavefronts, 3)
    assert stored.basis == "exact"
