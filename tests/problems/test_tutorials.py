"""Sound kernels as tutorials have them, each in a program of its own: none may be called unsound in a run.

What tutorials do that is easily read wrong: template arguments from macros, `using` and defaults, dynamic shared memory
by `sizeof`, elements of structs and typedefs, values that `#if` decides, launches through wrappers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.texts import Text, read_texts
from warpwright.emulator.profiling import Wanted, emulated_profile
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions
from warpwright.facts.profile import Fault, Profile
from warpwright.progress import never_cancelled, silent
from warpwright.syntax.source import Source

TUTORIALS = read_texts(Path(__file__).parent / "tutorials.md")
pytestmark = pytest.mark.nvcc


NOT_RECONSTRUCTED = ("matmul_pitch.cu",)
"""Of which not all sizes are followed: a run may go wrong, which is said of the set-up."""


def source_of(tutorial: Text) -> Source:
    return Source(tutorial.name, tutorial.text.encode())


def faults(source: Source, assume: Assumptions | None = None) -> dict[str, tuple[Fault, ...]]:
    """By kernel, what a run of it finds wrong."""
    assume = assume or Assumptions()
    program = analyze(source, assume=assume)
    found = {}
    for kernel in program.defined_kernels:
        made = emulated_profile(program, Wanted(kernel.name, {}, assume), silent, never_cancelled)
        assert isinstance(made, Profile), made
        found[kernel.name] = made.faults
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda tutorial: tutorial.name)
def test_a_sound_tutorial_kernel_has_no_fault(tutorial: Text) -> None:
    found = faults(source_of(tutorial))
    assert found
    if tutorial.name in NOT_RECONSTRUCTED:
        assert all(fault.guessed for each in found.values() for fault in each), found
    else:
        assert not any(found.values()), found


OVERRUN = """\
#include <cstdlib>
__global__ void shift(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i + 1];
}
"""
KNOWN = """\
int main() {
  const int n = 1 << 20;
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  shift<<<(n + 255) / 256, 256>>>(out, in, n);
  return cudaDeviceSynchronize();
}
"""
BLOCK_NOT_KNOWN = (
    KNOWN.replace("main()", "main(int argc, char **argv)")
    .replace("shift<<<", "int threads = atoi(argv[1]);\n  shift<<<")
    .replace("256, 256", "256, threads")
)


@pytest.mark.parametrize(
    ("host", "guessed"),
    [
        (KNOWN, None),
        (BLOCK_NOT_KNOWN, "the size of the block `threads` is not known from the text; assuming 256"),
        ("float *make(int n);\n" + KNOWN.replace("cudaMalloc(&in, n * sizeof(float))", "in = make(n)"), None),
        ("", "the launch and the sizes were taken from the kernel's text"),
    ],
    ids=["known", "block not known", "in not allocated here", "no launch"],
)
def test_a_fault_is_the_kernels_own_where_nothing_that_it_depends_on_was_guessed(
    host: str, guessed: str | None
) -> None:
    found = faults(Source("shift.cu", (OVERRUN + host).encode()))["shift"]
    if guessed is None:
        assert all(not fault.guessed for fault in found)
        assert bool(found) is (host is KNOWN)
    else:
        assert all(any(guessed in said for said in fault.guessed) for fault in found), found


def test_sizes_that_the_program_does_not_have_are_named() -> None:
    """Without a guard it is sound at the program's own size, of which the profile's is not one."""
    text = OVERRUN.replace("if (i < n) out[i] = in[i + 1]", "out[i] = in[i]") + KNOWN
    found = faults(Source("copy.cu", text.encode()))["shift"]
    assert all(any("the program has n = 1,048,576" in said for said in fault.guessed) for fault in found), found


def test_a_race_in_shared_memory_is_the_kernels_own_whatever_is_guessed() -> None:
    text = """\
__global__ void reverse(float *x, const int *from) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[from[threadIdx.x] & 255];
}
"""
    (fault,) = faults(Source("reverse.cu", text.encode()))["reverse"]
    assert (fault.kind.value, fault.guessed) == ("shared-memory-race", ())


def test_a_macro_of_the_command_line_is_what_the_program_is_run_with() -> None:
    tutorial = next(each for each in TUTORIALS if each.name == "real_by_macro.cu")
    assert not any(faults(source_of(tutorial), Assumptions(defines={"USE_SINGLE": "1"})).values())
