"""A profile laid out over its text: the definition that ran, the sums, and what stands nowhere in it."""

from __future__ import annotations

from warpwright.editor.profile.view import Counts, counts_of, view_of
from warpwright.facts.analyze import analyze
from warpwright.facts.model import AccessKind, Space
from warpwright.facts.profile import (
    Backend,
    Fault,
    FaultKind,
    InstructionSet,
    Line,
    Profile,
    ProfiledLaunch,
    Traffic,
    text_hash,
)
from warpwright.syntax.source import Source

TEXT = """\
template <typename T> __global__ void k(T* a) {
    a[threadIdx.x] = 0;
}
template <> __global__ void k<double>(double* a) {
    a[threadIdx.x] = 1;
}
"""


def profile(*lines: Line, faults: tuple[Fault, ...] = ()) -> Profile:
    launch = ProfiledLaunch((1, 1, 1), (32, 1, 1))
    return Profile("k", launch, Backend.EMULATOR, {"a.cu": text_hash(TEXT.encode())}, lines, faults)


def line(number: int, *traffic: Traffic) -> Line:
    return Line("a.cu", number, InstructionSet.PTX, 10, 160, traffic=traffic)


def test_of_specialisations_the_one_that_ran_is_shown() -> None:
    program = analyze(Source("a.cu", TEXT.encode()), lambda path, name: None)
    for number, span in ((2, (1, 3)), (5, (4, 6))):
        (file,) = view_of(profile(line(number)), program).files
        assert (file.first, file.last) == span
        assert [row.number for row in file.rows if row.counts is not None] == [number]


def test_sums_keep_memories_apart() -> None:
    spill = Traffic(Space.LOCAL, AccessKind.LOAD, 4, 1, 32, sectors=4)
    load = Traffic(Space.GLOBAL, AccessKind.LOAD, 4, 1, 32, sectors=32, ideal_sectors=4)
    put = Traffic(Space.SHARED, AccessKind.STORE, 4, 1, 32, wavefronts=2, ideal_wavefronts=1)
    assert counts_of([line(2, spill, load), line(3, load, put)]) == Counts(20, 16.0, (64, 8), (2, 1), (4, None), 0, 0)


def test_a_fault_that_stands_in_no_shown_line_is_kept() -> None:
    program = analyze(Source("a.cu", TEXT.encode()), lambda path, name: None)
    here = Fault(FaultKind.TRAP, "a.cu", 2, "It trapped.")
    there = Fault(FaultKind.ASSERTION, "/usr/include/cuda.h", 9, "It asserted.")
    view = view_of(profile(line(2), faults=(here, there)), program)
    assert view.elsewhere == (there,)
    assert next(row for row in view.files[0].rows if row.number == 2).faults == (here,)
