"""A profile survives being written and read, and what is no profile is refused with the key that is wrong."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.facts.model import AccessKind, Space
from warpwright.facts.profile import (
    Backend,
    Fault,
    FaultKind,
    Inputs,
    InstructionSet,
    Line,
    Place,
    Profile,
    ProfiledLaunch,
    Thread,
    Traffic,
    text_hash,
)
from warpwright.facts.profile_document import ProfileError, profile_from_json, profile_json, read_profile

counts = st.integers(0, 2**62)
maybe = st.none() | counts
sizes = st.tuples(*[st.integers(0, 2**31 - 1)] * 3)
words = st.text(max_size=12)
traffic = st.builds(
    Traffic,
    st.sampled_from(Space), st.sampled_from(AccessKind), st.sampled_from((1, 2, 4, 8, 16)), counts, counts,
    maybe, maybe, maybe, maybe, st.none() | words,
)  # fmt: skip
lines = st.builds(
    Line, words, counts, st.sampled_from(InstructionSet), counts, counts, counts, counts,
    st.lists(traffic, max_size=3).map(tuple),
)  # fmt: skip
threads = st.lists(st.builds(Thread, sizes, sizes), max_size=2).map(tuple)
faults = st.builds(
    Fault, st.sampled_from(FaultKind), words, counts, words, threads, st.none() | st.integers(-(2**63), 2**63),
    st.none() | words, st.none() | st.builds(Place, words, counts), counts,
)  # fmt: skip
launches = st.builds(
    ProfiledLaunch, st.none() | sizes, st.none() | sizes, maybe, st.dictionaries(words, counts, max_size=2), words
)
profiles = st.builds(
    Profile, words, launches, st.sampled_from(Backend), st.dictionaries(words, words, max_size=2),
    st.lists(lines, max_size=3).map(tuple), st.lists(faults, max_size=2).map(tuple),
    st.lists(words, max_size=2).map(tuple), words, words,
    st.none() | st.lists(words, max_size=2).map(tuple), st.sampled_from(Inputs),
)  # fmt: skip


@given(profiles)
def test_what_is_written_is_read(profile: Profile) -> None:
    assert read_profile(json.dumps(profile_json(profile))) == profile


def example() -> Profile:
    load = Traffic(Space.GLOBAL, AccessKind.LOAD, 4, 8, 256, sectors=256, ideal_sectors=32)
    store = Traffic(Space.SHARED, AccessKind.STORE, 4, 8, 256, wavefronts=64, ideal_wavefronts=8, array="tile")
    line = Line("a.cu", 7, InstructionSet.PTX, 40, 1280, branches=8, divergent_branches=2, traffic=(load, store))
    fault = Fault(
        FaultKind.OUT_OF_BOUNDS, "a.cu", 7, "a[1024] is past the end.", (Thread((0, 0, 0), (3, 0, 0)),), 4096, "a"
    )
    launch = ProfiledLaunch((2, 1, 1), (100, 1, 1), shape={"n": 200}, source="a.cu:30")
    return Profile("copy", launch, Backend.EMULATOR, {"a.cu": text_hash(b"text")}, (line,), (fault,))


def test_a_line_adds_up_by_space() -> None:
    line = example().lines[0]
    assert (line.requests, line.sectors, line.ideal_sectors) == (16, 256, 32)
    assert (line.wavefronts, line.ideal_wavefronts) == (64, 8)
    (store,) = line.of(Space.SHARED)
    assert (store.wavefronts_per_request, store.sectors_per_request, store.active_lanes) == (8.0, None, 32.0)
    assert line.of(Space.GLOBAL, AccessKind.STORE) == ()


def test_an_unknown_part_makes_the_sum_unknown() -> None:
    spill = Traffic(Space.LOCAL, AccessKind.LOAD, 8, 2, 64, sectors=16)
    line = Line("a.cu", 1, InstructionSet.SASS, 2, 64, traffic=(*example().lines[0].traffic, spill))
    assert (line.sectors, line.ideal_sectors) == (272, None)


def test_json_holds_the_contract() -> None:
    document = profile_json(example())
    assert {"kernel", "launch", "backend", "lines", "faults"} <= document.keys()
    assert document["lines"][0].keys() >= {
        "file", "line", "instructions", "instruction_set", "threads_per_instruction", "requests", "sectors",
        "ideal_sectors", "wavefronts", "ideal_wavefronts", "divergent_branches",
    }  # fmt: skip


def changed(path: tuple[str | int, ...], value: object) -> Any:
    document: Any = copy.deepcopy(profile_json(example()))
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 3, "its version is 3; this warpwright reads version 2"),
        (("version",), 1, "its version is 1; this warpwright reads version 2"),
        (("kernel",), None, "`kernel` is not a text"),
        (("lines",), {}, "`lines` is not a list"),
        (("lines", 0), 3, "lines[0] is not an object"),
        (("lines", 0, "instructions"), -1, "`lines[0].instructions` is not a whole number of 0 or more"),
        (("lines", 0, "line"), True, "`lines[0].line` is not a whole number"),
        (("lines", 0, "branches"), KeyError, "lines[0] has no key `branches`"),
        (("lines", 0, "accesses", 1, "space"), "texture", "`lines[0].accesses[1].space` is 'texture', which is"),
        (("launch", "grid"), [1, 1], "`launch.grid` has 2 numbers instead of 3"),
        (("launch", "shape"), [], "`launch.shape` is not an object"),
        (("faults", 0, "threads", 0, "block"), KeyError, "faults[0].threads[0] has no key `block`"),
        (("texts",), [], "`texts` is not an object"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(path: tuple[str | int, ...], value: object, message: str) -> None:
    with pytest.raises(ProfileError) as refusal:
        profile_from_json(changed(path, value))
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("text", ["", "[]", "nonsense", '{"version": "1"}', b"\xff"])
def test_other_texts_are_refused(text: str | bytes) -> None:
    with pytest.raises(ProfileError):
        read_profile(text)
