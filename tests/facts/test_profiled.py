"""A run's numbers replace the text's where they are of the same accesses, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Access, AccessKind, Basis, Dim3, Divergence, Kernel, Program, Space
from warpwright.facts.profile import (
    Backend,
    Inputs,
    InstructionSet,
    Line,
    Profile,
    ProfiledLaunch,
    Traffic,
    text_hash,
)
from warpwright.facts.profiled import with_profiles
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source, read_include

TEXT = """\
__global__ void k(float* out, const float* in, const int* at, int n) {
    __shared__ float tile[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        tile[at[i] & 31] = 0.0f;
        out[i] = in[at[i]];
        out[i] = in[i] + in[i * n];
    }
}
void run(float* out, const float* in, const int* at, int n) {
    k<<<(n + 63) / 64, 64>>>(out, in, at, n);
    k<<<(n + 127) / 128, 128>>>(out, in, at, n);
}
"""
GUARD, SHARED, GATHER, TWO = 4, 5, 6, 7


def program(text: str = TEXT) -> Program:
    return analyze(Source("a.cu", text.encode()), read_include)


def profile(*lines: Line, block: Dim3 | None = (64, 1, 1), backend: Backend = Backend.NCU) -> Profile:
    launch = ProfiledLaunch((4, 1, 1), block, shape={"n": 256})
    texts = {"a.cu": text_hash(TEXT.encode())}
    return Profile("k", launch, backend, texts, lines, inputs=Inputs.APPLICATION)


def line(number: int, *traffic: Traffic, branches: int = 0, divergent: int = 0) -> Line:
    return Line("a.cu", number, InstructionSet.SASS, 80, 2560, branches, divergent, traffic)


def load(sectors: int, ideal: int, array: str | None = None, size: int = 4) -> Traffic:
    return Traffic(Space.GLOBAL, AccessKind.LOAD, size, 8, 256, sectors=sectors, ideal_sectors=ideal, array=array)


def access(of: Program, expression: str, launch: int = 0) -> Access:
    (kernel,) = of.kernels
    return next(a for a in kernel.accesses if a.expression == expression and a.launch == launch)


def kernel(of: Program) -> Kernel:
    return of.kernels[0]


GATHERED = line(GATHER, load(8 * 4, 8 * 4, "at"), load(8 * 20, 8 * 4, "in"))


def test_unknown_numbers_become_known_for_the_launch_that_ran() -> None:
    before = program()
    assert access(before, "in[at[i]]").basis is Basis.DATA_DEPENDENT
    after = with_profiles(before, [profile(GATHERED)])
    found = access(after, "in[at[i]]")
    assert (found.basis, found.sectors_per_request, found.ideal_sectors_per_request) == (Basis.MEASURED, 20.0, 4.0)
    assert found.excess == 5.0
    assert access(after, "in[at[i]]", launch=1) == access(before, "in[at[i]]", launch=1)
    assert access(after, "out[i]") == access(before, "out[i]")


def test_findings_carry_the_numbers_and_the_basis() -> None:
    found = [f for f in run_rules(with_profiles(program(), [profile(GATHERED)])) if f.span.text == "in[at[i]]"]
    assert [(f.rule, f.evidence["basis"]) for f in found] == [("uncoalesced-access", "measured")]
    assert "20 sectors/request (ideal 4)" in found[0].message
    assert ", measured" in found[0].message
    assert not [f for f in run_rules(program()) if f.span.text == "in[at[i]]"]


def test_accesses_that_cannot_be_told_apart_keep_what_the_text_gives() -> None:
    before = program()
    after = with_profiles(before, [profile(line(TWO, load(8 * 36, 8 * 8)))])
    for expression in ("in[i]", "in[i * n]"):
        assert access(after, expression) == access(before, expression)


def test_likes_share_their_numbers() -> None:
    text = TEXT.replace("in[i * n]", "in[i + 1024]")
    after = with_profiles(program(text), [profile(line(TWO, load(8 * 4, 8 * 4)))])
    assert {access(after, e).basis for e in ("in[i]", "in[i + 1024]")} == {Basis.MEASURED}


def test_a_merged_access_is_not_counted_by_its_parts() -> None:
    """The compiler reads four neighbouring words at once, which the PTX does not say."""
    text = (
        "__global__ void k(float* out, const float4* in) {\n"
        "    float4 v = in[threadIdx.x];\n    out[threadIdx.x] = v.x + v.y;\n}\n"
        "void run(float* o, const float4* i) { k<<<1, 64>>>(o, i); }\n"
    )
    before = program(text)
    parts = Line("a.cu", 2, InstructionSet.PTX, 8, 256, traffic=(load(8 * 16, 8 * 4, size=4),))
    emulated = with_profiles(before, [profile(parts, backend=Backend.EMULATOR)])
    assert access(emulated, "in[threadIdx.x]") == access(before, "in[threadIdx.x]")
    whole = Line("a.cu", 2, InstructionSet.PTX, 2, 64, traffic=(load(8 * 16, 8 * 16, size=16),))
    emulated = with_profiles(before, [profile(whole, backend=Backend.EMULATOR)])
    assert access(emulated, "in[threadIdx.x]").basis is Basis.EMULATED


def test_a_reason_that_no_longer_explains_the_number_goes() -> None:
    text = TEXT.replace("in[at[i]]", "in[i * 8]")
    before = program(text)
    why = access(before, "in[i * 8]").why
    assert why
    same = with_profiles(before, [profile(line(GATHER, load(8 * 32, 8 * 4)))])
    assert (access(same, "in[i * 8]").why, access(same, "in[i * 8]").basis) == (why, Basis.MEASURED)
    other = with_profiles(before, [profile(line(GATHER, load(8 * 12, 8 * 4)))])
    assert access(other, "in[i * 8]").why == ""


def test_requests_without_a_lane_are_left_out_of_what_is_said() -> None:
    """Of 8 requests 6 have no lane on: those that have move 16 sectors where 4 would do."""
    few = Traffic(Space.GLOBAL, AccessKind.LOAD, 4, 8, 64, sectors=32, ideal_sectors=4, array="in")
    after = with_profiles(program(), [profile(line(GATHER, load(32, 32, "at"), few))])
    found = access(after, "in[at[i]]")
    assert (found.sectors_per_request, found.ideal_sectors_per_request, found.idle) == (4.0, 0.5, 0.5)
    (finding,) = [f for f in run_rules(after) if f.span.text == "in[at[i]]"]
    assert "8 sectors/request (ideal 1)\nBlock 64 from a.cu:11, measured." in finding.message


def test_an_atomic_keeps_what_the_text_knows() -> None:
    """The compiler makes a loop of an atomic on floats, which comes again for each lane that did not get its turn."""
    text = TEXT.replace("out[i] = in[at[i]];", "atomicAdd(&out[0], 1.0f);")
    tries = Traffic(Space.GLOBAL, AccessKind.ATOMIC, 4, 64, 1024, sectors=64, ideal_sectors=64)
    before = program(text)
    atomics = [a for a in kernel(before).accesses if a.kind is AccessKind.ATOMIC]
    after = with_profiles(before, [profile(line(GATHER, tries))])
    assert [a for a in kernel(after).accesses if a.kind is AccessKind.ATOMIC] == atomics


@pytest.mark.parametrize(
    ("branches", "divergent", "divergence"),
    [(8, 0, Divergence.UNIFORM), (8, 2, Divergence.BOUNDARY), (0, 0, Divergence.UNIFORM)],
)
def test_branches(branches: int, divergent: int, divergence: Divergence) -> None:
    after = with_profiles(program(), [profile(line(GUARD, branches=branches, divergent=divergent))])
    guard = next(b for b in kernel(after).branches if b.condition == "i < n" and b.launch == 0)
    assert guard.divergence is divergence
    assert (f"{divergent} of {branches} branches" in guard.why) == bool(branches)


def test_what_depends_on_data_stays_so_where_the_data_were_made_up() -> None:
    before = program(TEXT.replace("if (i < n)", "if (at[i] < n)"))
    ran = profile(GATHERED, line(GUARD, branches=8, divergent=8))
    own = with_profiles(before, [ran])
    assert access(own, "in[at[i]]").basis is Basis.MEASURED
    assert next(b for b in kernel(own).branches if b.launch == 0).divergence is Divergence.PARTIAL
    made_up = with_profiles(before, [replace(ran, inputs=Inputs.PROBLEM)])
    assert access(made_up, "in[at[i]]") == access(before, "in[at[i]]")
    assert kernel(made_up).branches == kernel(before).branches


def test_a_table_without_a_launch_holds_where_there_is_one_only() -> None:
    two = program()
    assert with_profiles(two, [profile(GATHERED, block=None)]).kernels == two.kernels
    one = program(TEXT.replace("    k<<<(n + 127) / 128, 128>>>(out, in, at, n);\n", ""))
    after = with_profiles(one, [profile(GATHERED, block=None)])
    assert access(after, "in[at[i]]").basis is Basis.MEASURED


def test_an_assumed_launch_takes_the_block_that_ran() -> None:
    text = TEXT[: TEXT.index("void run")]
    after = with_profiles(program(text), [profile(GATHERED, block=(96, 2, 1))])
    (launch,) = kernel(after).launches
    assert (launch.block, launch.basis, launch.source) == ((96, 2, 1), Basis.MEASURED, "the measured run")
    known = program()
    assert with_profiles(known, [profile(GATHERED, block=(96, 2, 1))]).kernels == known.kernels


def test_the_first_of_two_profiles_holds() -> None:
    second = profile(line(GATHER, load(8 * 4, 8 * 4, "at"), load(8 * 8, 8 * 4, "in")), backend=Backend.EMULATOR)
    after = with_profiles(program(), [profile(GATHERED), second])
    assert access(after, "in[at[i]]").sectors_per_request == 20.0


def test_profiles_of_other_kernels_say_nothing() -> None:
    here = program()
    assert with_profiles(here, [replace(profile(GATHERED), kernel="other")]).kernels == here.kernels
