"""The variables of a module, as a cubin's symbol table has them."""

from __future__ import annotations

import pytest
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright_harness.variables import changed, variable_named, variables_in

TEXT = """
__device__ int calls;
static __device__ float scratch[100];
__constant__ float taps[5];
namespace ns { __device__ double inner = 4; }
__global__ void k(float* out, int n) {
    static __device__ int launches;
    launches++;
    scratch[n] = out[n];
    out[n] = taps[n] + scratch[n + 1] + calls++ + ns::inner++;
}
"""


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_variables_are_found_with_their_sizes(arch: str) -> None:
    compiled = compile_cubin(Source("/nowhere/k.cu", TEXT.encode()), arch=arch)
    assert compiled.cubin is not None, compiled.reason
    found = {v.name: v for v in variables_in(compiled.cubin.read_bytes())}
    for name, size, is_constant in (
        ("calls", 4, False),
        ("scratch", 400, False),
        ("taps", 20, True),
        ("inner", 8, False),
    ):
        mangled = variable_named(name, found)
        assert mangled is not None, (name, list(found))
        assert (found[mangled].size, found[mangled].is_constant) == (size, is_constant)
    assert any("launches" in name for name in found)


@pytest.mark.parametrize("content", [b"", b"PTX", b"\x7fELF\x01"])
def test_what_is_no_cubin_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="not an ELF file"):
        variables_in(content)


def test_a_name_that_could_be_two_is_none() -> None:
    assert variable_named("a", ["_ZN1x1aE", "_ZN1y1aE"]) is None
    assert variable_named("ns::a", ["_ZN2ns1aE"]) == "_ZN2ns1aE"


def test_only_what_holds_something_else_has_changed() -> None:
    assert changed({"a": b"1", "b": b"2"}, {"a": b"1", "b": b"3"}) == {"b"}
