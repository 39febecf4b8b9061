"""Lists of lanes are computed by shortcuts; each lane has to come out as if it were computed alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from warpwright.facts.lanes import OPERATIONS, Data, compute, integers, lanes, plus, wrapped
from warpwright.facts.model import WARP
from warpwright.facts.types import CHAR, FLOAT, INT, UCHAR, UINT, ULONG, CType
from warpwright.facts.values import Value, binary

NUMBERS = st.one_of(
    st.integers(-70, 70), st.integers(-(2**33), 2**33), st.floats(-1e9, 1e9), st.sampled_from([0, 1, 31, 32, 63, 64])
)
LANES = st.lists(st.one_of(NUMBERS, NUMBERS, NUMBERS, st.none()), min_size=WARP, max_size=WARP)
ALIKE = st.one_of(st.lists(st.integers(0, 4096), min_size=WARP, max_size=WARP), NUMBERS.map(lambda n: [n] * WARP))
DATA = st.one_of(NUMBERS, LANES, ALIKE)


@given(st.sampled_from(sorted(OPERATIONS)), DATA, DATA)
def test_every_lane_is_what_it_would_be_alone(op: str, left: Data, right: Data) -> None:
    alone = [
        None if a is None or b is None else OPERATIONS[op](a, b) for a, b in zip(lanes(left), lanes(right), strict=True)
    ]
    assert lanes(compute(op, left, right)) == alone


@given(LANES, st.integers(-(2**40), 2**40))
def test_moving_keeps_the_lanes_that_are_not_known(data: Data, offset: int) -> None:
    assert lanes(plus(data, offset)) == [None if n is None else n + offset for n in lanes(data)]


@given(DATA, st.sampled_from([CHAR, UCHAR, INT, UINT, ULONG, FLOAT]))
def test_a_list_is_wrapped_as_its_numbers_are(data: Data, kind: CType) -> None:
    assert lanes(wrapped(data, kind)) == [None if n is None else wrapped(n, kind) for n in lanes(data)]


@given(DATA)
def test_integers_are_rounded_towards_zero(data: Data) -> None:
    assert lanes(integers(data)) == [None if n is None else int(n) for n in lanes(data)]


def test_a_number_that_squares_itself_is_given_up() -> None:
    value = Value([lane + 2 for lane in range(WARP)], INT)
    for _ in range(64):
        value = binary("*", value, value)
    assert value.data is None
