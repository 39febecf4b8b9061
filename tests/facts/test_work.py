"""What an analysis does grows with its text as the text does, or is counted in steps: calls are compared, not times."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from warpwright.facts import analyze as analysis
from warpwright.facts.analyze import analyze, no_includes
from warpwright.facts.model import Assumptions
from warpwright.facts.running import (
    LEAST_STEPS,
    SHAPE_SHARES,
    STEPS_BY_FILE,
    STEPS_BY_LINE,
    kernel_steps,
    step_budget,
    step_share,
)
from warpwright.facts.steps import Steps
from warpwright.facts.unit import Unit, collect
from warpwright.rules.registry import all_rules, run_rules
from warpwright.syntax.source import Source

KERNEL = "__global__ void k(float *a, int n) { a[blockIdx.x * blockDim.x + threadIdx.x] = n; }\n"


def calls(work: Callable[[], object]) -> int:
    """How many functions, of Python and of C, a piece of work calls."""
    count = 0

    def seen(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def kernels(count: int) -> str:
    return "".join(f"__global__ void k{n}(float *a) {{ a[{n}] = 1; }}\n" for n in range(count))


def declared(count: int) -> str:
    """Kernels behind the declarations of others."""
    return "".join(f"static __global__ void k{n}(float *a);\n" for n in range(count)) + kernels(count)


def addresses(count: int) -> str:
    """An address of an address, and so on."""
    return KERNEL + f"void h(float *a, int n) {{ int m = {'& ' * 8 * count}n; k<<<1, 256>>>(a, 1); }}\n"


def branches(count: int) -> str:
    """A chain of `else if`, each of which launches."""
    chain = " else ".join(f"if (n == {n}) {{ k<<<{n + 1}, 96>>>(a, n); }}" for n in range(count))
    return KERNEL + f"void h(float *a, int n) {{ {chain} }}\n"


def launches(count: int) -> str:
    """Launches of a few threads on one line."""
    return KERNEL + f"void h(float *a) {{ {'k<<<1, 2>>>(a, 1); ' * 4 * count} }}\n"


def pointers(count: int) -> str:
    """Pointers that are filled, handed to a kernel and freed; the next use of each is far behind."""
    names = [f"p{n}" for n in range(count)]
    made = " ".join(f"float *{p}; cudaMalloc(&{p}, n * sizeof(float)); cudaMemset({p}, 0, 4 * n);" for p in names)
    used = " ".join(f"k<<<1, 96>>>({p}, 1); cudaFree({p}); cudaMalloc(&{p}, 64);" for p in names)
    return KERNEL + f"void h(int n) {{ {made} {used} }}\n"


def jumps(count: int) -> str:
    body = " ".join(f"if (n == {n}) goto l{n};" for n in range(count))
    labels = " ".join(f"l{n}: n += {n};" for n in range(count))
    return f"__global__ void k(int *a, int n) {{ {body} {labels} a[0] = n; }}\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("written", [kernels, declared, addresses, branches, launches, pointers, jumps])
def test_the_work_grows_as_the_text_does(written: Callable[[int], str]) -> None:
    all_rules()

    def analysed(count: int) -> Callable[[], object]:
        return lambda: run_rules(analyze(Source("a.cu", written(count).encode())))

    calls(analysed(8))  # what is made once
    assert calls(analysed(240)) < 2.6 * calls(analysed(120))


def unit_of(text: str) -> Unit:
    return collect(Source("a.cu", text.encode()), no_includes, Assumptions())


@pytest.mark.parametrize("count", [1, 12, 40, 700])
def test_the_kernels_of_a_file_share_its_steps(count: int) -> None:
    unit = unit_of(kernels(count))
    share = step_share(unit)
    assert count * share <= max(STEPS_BY_FILE + STEPS_BY_LINE * unit.lines, count * LEAST_STEPS)
    for shapes in (1, 2, 5):
        assert LEAST_STEPS // 2 < step_budget(share, shapes) <= max(SHAPE_SHARES * share / shapes, LEAST_STEPS)


def test_loops_run_fewer_iterations_where_many_kernels_share_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, Steps]] = []

    def noted(share: int) -> Steps:
        steps = kernel_steps(share)
        given.append((steps.left, steps))
        return steps

    def taken(count: int) -> int:
        given.clear()
        loops = "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int l = 0; l < n; l++) "
        text = "".join(
            f"__global__ void k{n}(float *a, int n) {{ {loops} a[i * n + j] += a[l * n + threadIdx.x]; }}\n"
            for n in range(count)
        )
        assert len(analyze(Source("a.cu", text.encode())).kernels) == count
        return sum(start - steps.left for start, steps in given)

    monkeypatch.setattr(analysis, "kernel_steps", noted)
    assert taken(80) < 2 * taken(10)


def test_what_both_sides_of_a_condition_keep_is_counted() -> None:
    body = " ".join(f"int v{n} = 0; if (a[{n}] > 1) v{n} = n;" for n in range(1500))
    kernel = analyze(Source("a.cu", f"__global__ void k(int *a, int n) {{ {body} }}".encode())).kernels[0]
    assert kernel.incomplete == "one warp takes more steps than are followed"


def test_each_overload_that_a_call_may_mean_is_counted() -> None:
    kinds = "".join(f"struct T{n} {{}};\n__device__ int f(T{n} x) {{ return {n}; }}\n" for n in range(500))
    body = " ".join(f"a[{n}] = f(T{n}());" for n in range(500))
    text = f"{kinds}__global__ void k(int *a) {{ {body} }}\n{KERNEL.replace(' k(', ' other(')}"
    incomplete = {kernel.name: kernel.incomplete for kernel in analyze(Source("a.cu", text.encode())).kernels}
    assert incomplete == {"k": "it takes more steps than one kernel is given", "other": None}
