"""Which pointers of a kernel some launch hands the same elements."""

from __future__ import annotations

import pytest
from warpwright.cuda.overlap import overlaps
from warpwright.syntax.source import Source

HEAD = """#define ONE 1
__global__ void k(float *out, const float *in, int n);
struct Pair { float *out, *in; };
void run(float *out, const float *in, int n) { k<<<4, 128>>>(out, in, n); }
"""


def found(text: str) -> list[tuple[int, int, int]]:
    source = Source("a.cu", (HEAD + text).encode())
    return [(each.one, each.other, each.line) for each in overlaps([source], "k", [True, True, False])]


@pytest.mark.parametrize(
    "text",
    [
        "int main() { float *x; run(x, x, 9); }",
        "int main() { float *x; run(x + 1, x, 9); }",
        "int main() { float *x; run(&x[ONE], (const float *)x, 9); }",
        "int main() { float *x; const int one = 1; run(x + one, x, 9); }",
        "int main() { float *x; float *y = x; float *z = y; run(z, x, 9); }",
        "int main() { float *x; Pair p; p.out = x; p.in = x; run(p.out, p.in, 9); }",
        "template <typename T> void two(T *y, const T *x) { run(y, x, 9); } int main() { float *x; two<float>(x, x); }",
        "struct R { void go(float *y, float *x) { run(y, x, 9); } }; int main() { R r; float *x; r.go(x, x); }",
        "struct R { void go(float *y, float *x) { run(y, x, 9); } }; int main() { R *r; float *x; r->go(x, x); }",
        "int main() { float *x; auto f = [&](float *y, const float *a) { k<<<1, 32>>>(y, a, 9); }; f(x, x); }",
        "int main() { float *x, *y; run(x, y, 9); run(y, y, 9); }",
        "int main() { std::vector<float> v; run(thrust::raw_pointer_cast(v.data()), v.data(), 9); }",
    ],
)
def test_what_is_one_array_is_seen(text: str) -> None:
    assert found(text) == [(0, 1, 5)]


@pytest.mark.parametrize(
    "text",
    [
        "int main() { float *x, *y; run(x, y, 9); }",
        "int main(int n, char **v) { float *pool; run(pool + n, pool, n); }",
        "int main() { float *pool; run(pool + 4096, pool, 4096); }",
        "int main() { float *a, *b; for (int i = 0; i < 4; i++) { run(a, b, 9); float *t = a; a = b; b = t; } }",
        "int main() { run(NULL, NULL, 0); }",
        "int main() { float *x; x = f(); float *y = g(); run(x, y, 9); }",
    ],
)
def test_what_may_be_apart_is_taken_to_be(text: str) -> None:
    assert found(text) == []
