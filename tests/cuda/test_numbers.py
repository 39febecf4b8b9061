"""Which number a text stands for at a place of a file."""

from __future__ import annotations

import pytest
from warpwright.cuda.numbers import file_constants, number_at
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

FILE = Source(
    "a.cu",
    b"""
#define SIDE 0x10
#define AREA (SIDE * SIDE)
#define LOOP LOOP + 1
#define TWICE(x) 2 * x
#ifdef WIDE
#define LANES 64
#else
#define LANES 32
#endif
namespace tiles { constexpr int WIDTH = AREA / 3, LESS = -WIDTH; }
static const int rows = 8, *pointer = 0;
int changing = 4;
struct Tile { static constexpr int SIZE = 5; };

__global__ void scale(float *x, int n, int rows) {
  constexpr int STEP = SIDE / 2;
  const int size = STEP << 1;
  const int half = n / 2;
  { const int twice = 1; }
  { const int twice = 2; }
  x[n] = 0;
}

void run(float *x) {
  const int n = 1024, STEP = 3;
  scale<<<n, 256>>>(x, n, rows);
}
""",
)
KERNEL, HOST = descendants(FILE.root, "function_definition")


@pytest.mark.parametrize(
    "text, in_kernel, on_host",
    [
        ("7u", 7, 7),
        ("010 + 0b11", 11, 11),
        ("AREA", 256, 256),
        ("(WIDTH - 1) % 10", 4, 4),
        ("LESS / 2", -42, -42),
        ("STEP", 8, 3),
        ("size", 16, None),
        ("n", None, 1024),
        ("rows", None, 8),
        *(
            (text, None, None)
            for text in ("half", "twice", "LANES", "LOOP", "TWICE", "TWICE(2)", "changing", "pointer")
        ),
        *((text, None, None) for text in ("SIZE", "unknown", "1 / 0", "1.5f", "x[2]", "(2", "")),
    ],
)
def test_a_name_is_what_its_scope_says(text: str, in_kernel: int | None, on_host: int | None) -> None:
    assert (number_at(FILE, KERNEL, text), number_at(FILE, HOST, text)) == (in_kernel, on_host)


def test_macros_of_other_files_stand_behind_the_files_own() -> None:
    others = {"SIDE": "99", "DEPTH": "(SIDE + 1)", "rows": "3"}
    assert [number_at(FILE, HOST, text, others) for text in ("SIDE", "DEPTH", "rows")] == [16, 17, 8]


def test_constants_of_a_file_are_those_outside_of_functions() -> None:
    assert sorted(file_constants(FILE)) == ["LESS", "WIDTH", "rows"]
