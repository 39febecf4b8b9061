"""Bit patterns of floating-point numbers that crowd around the awkward places."""

from __future__ import annotations

from hypothesis import strategies as st
from support.exact import Format


def patterns(form: Format) -> st.SearchStrategy[int]:
    """Bits of numbers with few ones or all ones in the fraction, often at the ends of the range, and any bits."""
    fraction = st.one_of(
        st.just(0),
        st.integers(0, form.fraction - 1).map(lambda i: 1 << i),
        st.integers(0, form.fraction).map(lambda i: (1 << form.fraction) - (1 << i)),
        st.integers(0, 2**form.fraction - 1),
    )
    top = 2**form.exponent - 1
    exponent = st.one_of(
        st.sampled_from([0, 1, 2, form.bias - 1, form.bias, form.bias + 1, top - 1, top]),
        st.integers(max(0, form.bias - 30), min(top, form.bias + 30)),
        st.integers(0, top),
    )
    return st.builds(
        lambda s, e, f: s << (form.width - 1) | e << form.fraction | f, st.integers(0, 1), exponent, fraction
    )


def rows(form: Format, count: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Some operands of an operation, `count` at a time."""
    return st.lists(st.tuples(*[patterns(form)] * count), min_size=1, max_size=40)
