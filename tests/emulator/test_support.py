"""What is not run is refused by name, with its source line, before anything runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse
from warpwright.emulator.support import unsupported
from warpwright.emulator.translate.registry import UnsupportedError

HEADER = '.version 9.0\n.target sm_90a\n.address_size 64\n.file 1 "/home/me/a.cu"\n'
REGISTERS = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n"


def text(body: str, before: str = "", directives: str = "") -> str:
    return (
        f"{HEADER}{before}\n.visible .entry k(.param .u64 k_param_0) {directives}\n{{\n{REGISTERS}"
        f".loc 1 7 5\n{body}\n.loc 1 9 1\nret;\n}}\n"
    )


def refused(body: str, before: str = "", directives: str = "") -> list[str]:
    """The sentences, after a check that translation refuses just those texts that have one."""
    module = parse(text(body, before, directives))
    sentences = unsupported(module, "k")
    if sentences:
        with pytest.raises(UnsupportedError):
            translate(module, "k")
    elif not sentences:
        translate(module, "k")
    return sentences


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (
            "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 0, 0, 1, 1, 1;",
            "`wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16` is not emulated",
        ),
        ("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1;", "not emulated"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%r1], [%rd1, {%r2, %r3}], [%r4];",
            "a bulk copy (TMA) is not emulated",
        ),
        ("tcgen05.wait::ld.sync.aligned;", "tensor memory (tcgen05) is not emulated"),
        (
            "barrier.cluster.arrive.aligned;",
            "a cluster whose size only the launch gives is not emulated (`barrier.cluster.arrive.aligned`)",
        ),
        ("mapa.shared::cluster.u32 %r1, %r2, 0;", "a cluster whose size only the launch gives is not emulated (`mapa"),
        ("mbarrier.pending_count.b64 %r1, %rd1;", "`mbarrier.pending_count.b64` is not emulated (.pending_count)"),
        ("griddepcontrol.wait;", "programmatic dependent launch (griddepcontrol) is not emulated"),
        ("setmaxnreg.inc.sync.aligned.u32 240;", "an exchange of registers between warps"),
        ("frobnicate.u32 %r1, %r2;", "the instruction `frobnicate.u32` is not known to the emulator"),
        ("mov.u32 %r1, %cluster_ctarank;", "a cluster whose size only the launch gives is not emulated (`mov.u32`)"),
        ("st.async.shared.u32 [%r1], %r2, [%r3];", "`st.async.shared.u32` is not emulated (.async)"),
        ("fma.rn.oob.f16 %h1, %h2, %h3, %h1;", "`fma.rn.oob.f16` is not emulated (.oob)"),
        ("add.f77 %r1, %r2, %r3;", "`add.f77` is not emulated (.f77)"),
        ("cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;", "`cvt.rs.f16x2.f32` is not emulated"),
        (
            "cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;",
            "`cvt.rs.satfinite.e4m3x4.f32` is not emulated",
        ),
        ("cvt.rn.satfinite.tf32.f32 %r1, %f1;", "`cvt.rn.satfinite.tf32.f32` is not emulated"),
        ("cvt.rn.e4m3x2.f32 %h1, %f1, %f2;", "`cvt.rn.e4m3x2.f32` is not emulated"),
    ],
)
def test_each_feature_is_named_with_its_line_and_instruction(instruction: str, words: str) -> None:
    (sentence,) = refused(instruction)
    assert sentence.startswith("a.cu:7: ")
    assert words in sentence
    assert sentence.endswith(".")


def test_textures() -> None:
    (sentence,) = refused("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, {%f5, %f6}];", ".global .texref image;")
    assert sentence.startswith("a.cu:7: a texture or surface is not emulated (`tex.2d.v4.f32.f32`)")


def test_a_launch_in_clusters() -> None:
    assert refused("", directives=".reqnctapercluster 1, 1, 1") == []
    assert refused("", directives=".reqnctapercluster 2, 1, 1") == []
    (sentence,) = refused("", directives=".reqnctapercluster 2, 2, 1")
    assert sentence == "A cluster of 2 x 2 x 1 blocks is not emulated."
    (sentence,) = refused("", directives=".explicitcluster")
    assert sentence == "A cluster whose size only the launch gives is not emulated."


def test_addresses_of_32_bits() -> None:
    module = parse(text("").replace(".address_size 64", ".address_size 32"))
    assert unsupported(module, "k") == ["PTX with addresses of 32 bits is not emulated."]


def test_recursion() -> None:
    function = ".func f(.param .b32 a) {\n{ .param .b32 p; call.uni f, (p); }\nret;\n}"
    call = "{ .param .b32 p; st.param.b32 [p], %r1; call.uni f, (p); }"
    assert refused(call, function) == ["The recursive function f is not emulated."]


def test_a_function_that_the_module_does_not_hold() -> None:
    (sentence,) = refused("call.uni other;", ".extern .func other;")
    assert "a call of other" in sentence


def test_a_refused_instruction_in_a_called_function_counts_for_each_kernel_that_reaches_it() -> None:
    function = ".func f() {\n.loc 1 3 1\nsetmaxnreg.inc.sync.aligned.u32 240;\nret;\n}\n.entry other() { ret; }"
    module = parse(text("call.uni f;", function))
    assert unsupported(module, "k")[0].startswith("a.cu:3: ")
    assert unsupported(module, "other") == []


def test_all_are_listed_in_order_and_the_like_together() -> None:
    body = (
        "frobnicate.u32 %r1, %r2;\n.loc 1 8 1\ngriddepcontrol.wait;\n"
        "frobnicate.u32 %r3, %r2;\nmov.u32 %r4, %clusterid.x;\nadd.u32 %r1, %r2, %r3;\nfrobnicate.u32 %r3, %r2;"
    )
    assert refused(body) == [
        "a.cu:7: the instruction `frobnicate.u32` is not known to the emulator, and 2 more like it.",
        "a.cu:8: programmatic dependent launch (griddepcontrol) is not emulated (`griddepcontrol.wait`).",
        "a.cu:8: a cluster whose size only the launch gives is not emulated (`mov.u32`).",
    ]


def test_a_kernel_that_runs_has_nothing_to_say() -> None:
    body = (
        "ld.param.u64 %rd1, [k_param_0];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r1, %tid.x;\n"
        "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\nld.global.f32 %f1, [%rd4];\n"
        "fma.rn.f32 %f2, %f1, %f1, 0f3F800000;\nbar.sync 0;\nst.global.f32 [%rd4], %f2;"
    )
    assert refused(body) == []


def test_what_is_no_kernel_of_the_module() -> None:
    module = parse(HEADER + ".extern .func f;\n.entry k();")
    assert unsupported(module, "k") == ["k is not a kernel with a body."]
    with pytest.raises(KeyError):
        unsupported(module, "other")


def test_threads_that_ask_while_another_is_first_know_every_instruction() -> None:
    """In a process of its own: which instructions are known is found out when the first one is translated."""
    code = (
        "import time\n"
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from warpwright.emulator.translate.registry import translator_of\n"
        "def ask(place):\n"
        "    time.sleep(place / 250)\n"
        "    return translator_of('shfl')\n"
        "with Pool(50) as pool: print(all(pool.map(ask, range(50))))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True"
