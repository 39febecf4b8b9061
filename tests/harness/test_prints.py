"""What a library prints to standard output, as the driver does for kernels, and whether two launches print alike."""

from __future__ import annotations

import ctypes
import os
import sys

import pytest
from warpwright_harness.prints import TOO_MUCH, are_prints_lost, captured, other_prints, same_prints

needs_memfd = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files in memory are Linux's")


def say(text: str) -> None:
    """By the C library, whose buffer is not Python's."""
    library = ctypes.CDLL(None)
    library.printf(b"%s", text.encode())


@needs_memfd
def test_lines_are_taken_and_what_stands_around_is_not(capfd: pytest.CaptureFixture[str]) -> None:
    say("before\n")
    with captured(wanted=True) as lines:
        say("one 1.5\ntwo\n")
        os.write(1, b"three\n")
    say("behind\n")
    ctypes.CDLL(None).fflush(None)
    assert sorted(lines) == ["one 1.5", "three", "two"]
    assert capfd.readouterr().out.split() == ["before", "behind"]


@needs_memfd
def test_nothing_is_taken_where_it_is_not_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    with captured(wanted=False) as lines:
        os.write(1, b"shown\n")
    assert lines == []
    assert capfd.readouterr().out == "shown\n"


@needs_memfd
def test_standard_output_is_put_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        os.write(1, b"lost\n")
        raise ValueError

    with pytest.raises(ValueError), captured(wanted=True):
        fails()
    os.write(1, b"here\n")
    sys.stdout.flush()
    assert capfd.readouterr().out == "here\n"


@needs_memfd
def test_too_much_is_not_compared() -> None:
    with captured(wanted=True) as lines:
        for _ in range(300):
            os.write(1, b"x" * 1000 + b"\n")
    assert tuple(lines) == TOO_MUCH
    assert are_prints_lost([lines], [["a"]])
    assert other_prints([lines], [["a"]]) == ""


def test_what_is_told() -> None:
    assert other_prints([["a 1"], ["a 1"]], [["a 2"], ["a 2"]]) == "it prints `a 2`, and the original `a 1`"
    assert other_prints([["a"], ["a"]], [[], []]) == "it prints nothing, and the original `a`"
    assert other_prints([["a", "b"]] * 2, [["b"]] * 2) == "it does not print `a`, which the original does"
    assert other_prints([["a"]] * 2, [["a", "a"]] * 2) == "it prints `a`, which the original does not"
    assert other_prints([["a"], ["b"]], [["c"]]) == "", "the original does not print the same twice"
    assert not same_prints(["sum 10"], ["sum 11"])
