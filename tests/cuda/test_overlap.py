"""Which pointers of a kernel some launch hands the same elements, or may."""

from __future__ import annotations

import pytest
from warpwright.cuda.overlap import overlaps
from warpwright.cuda.unread import unread_pointers
from warpwright.syntax.source import Source

HEAD = """#define ONE 1
__global__ void k(float *out, const float *in, int n);
struct Pair { float *out, *in; };
void run(float *out, const float *in, int n) { k<<<4, 128>>>(out, in, n); }
"""
PAIRS = """static void held(Pair p) { run(p.out, p.in, 9); }
static void lent(const Pair *p) { run(p->out, p->in, 9); }
static void both(Pair p, Pair q) { run(p.out, q.out, 9); }
"""
FUNCTIONS = """float *same(float *p) { return p; }
float *behind(float *p, int n) { return p + n; }
float *either(float *p, float *q, int s) { if (s) return p; return q; }
float *room(int n) { float *p; cudaMalloc(&p, n); return p; }
float *twice(int n) { return room(2 * n); }
float *scratch(int n) { static float *p; if (!p) cudaMalloc(&p, n); return p; }
float *pool; float *pooled() { return pool; }
struct View { float *p_; float *ptr() { return p_; } };
struct Made { Made(float *o, float *i) : out(o), in(i) {} float *out, *in; };
static void made(Made m) { run(m.out, m.in, 9); }
"""


def found(text: str, *, certain: bool = True) -> list[tuple[int, int, int]]:
    source = Source("a.cu", (HEAD + text).encode())
    both = overlaps([source], "k", [True, True, False])
    return [(each.one, each.other, each.line) for each in both if each.is_certain == certain]


def unread(text: str) -> list[str]:
    return [each.text for each in unread_pointers([Source("a.cu", (HEAD + text).encode())], "k", [True, True, False])]


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
    assert found(text, certain=False) == []


@pytest.mark.parametrize(
    "text",
    [
        "held(Pair{x, x});",
        "held({x, x});",
        "held((Pair){x, x});",
        "held({.out = x, .in = x + 1});",
        "Pair p{x, x}; held(p);",
        "Pair p = {x, y}; p.in = x; held(p);",
        "auto p = Pair{x, x}; lent(&p);",
        "Pair p; both(p, p);",
    ],
)
def test_members_of_structs_are_followed(text: str) -> None:
    whole = f"{PAIRS}int main() {{ float *x, *y; {text} }}"
    assert set(found(whole)) == {(0, 1, 8)}
    assert unread(whole) == []


@pytest.mark.parametrize(
    "text",
    [
        "held(Pair{x, y});",
        "held({.in = y, .out = x});",
        "Pair p = {x, y}; held(p);",
        "Pair p{x, y}; lent(&p);",
        "Pair p, q; both(p, q);",
        "Pair p{nullptr, nullptr}; held(p);",
        "Pair p; cudaMalloc(&p.in, 9); cudaMalloc(&p.out, 9); held(p);",
    ],
)
def test_members_that_are_apart_are_seen_to_be(text: str) -> None:
    whole = f"{PAIRS}int main() {{ float *x, *y; {text} }}"
    assert found(whole) + found(whole, certain=False) == []
    assert unread(whole) == []


@pytest.mark.parametrize(
    "text",
    [
        "run(same(x), x, 9);",
        "float *z = same(x); run(z, x, 9);",
        "float *z; z = same(x); z = y; run(z, x, 9);",
        "run(n ? same(x) : y, x, 9);",
        "run(either(x, y, n), y, 9);",
        "run(behind(x, n), x, 9);",
        "run(unseen(x), x, 9);",
        "run(unseen(n), unseen(n), 9);",
        "run(scratch(9), scratch(9), 9);",
        "float *z = scratch(9), *w = scratch(8); run(z, w, 9);",
        "run(pooled(), pool, 9);",
        "View v, w; v.p_ = x; w.p_ = x; run(v.ptr(), w.ptr(), 9);",
        "made(Made(x, x));",
        "Made m(x, x); made(m);",
        "Made *m = new Made(x, x); made(*m);",
    ],
)
def test_what_functions_return_may_be_one_array(text: str) -> None:
    whole = f"{FUNCTIONS}int main(int n, char **v_) {{ float *x, *y; {text} }}"
    assert found(whole) == []
    assert found(whole, certain=False) == [(0, 1, 15)]
    assert any(said.endswith("lead to one piece of memory is not known") for said in unread(whole))


@pytest.mark.parametrize(
    "text",
    [
        "run(same(x), y, 9);",
        "run(room(9), room(9), 9);",
        "float *z = room(n), *w = room(n); run(z, w, 9);",
        "float *z = twice(n), *w = twice(n); run(z, w, 9);",
        "float *z = (float *)malloc(n), *w = (float *)malloc(n); run(z, w, 9);",
        "float *z = arena.alloc(n), *w = arena.alloc(n); run(z, w, 9);",
        "run(unseen(0), unseen(1), 9);",
        "View v, w; run(v.ptr(), w.ptr(), 9);",
        "Made m(x, y); made(m);",
        "made(Made(x, y));",
    ],
)
def test_what_functions_return_is_apart_where_they_say_so(text: str) -> None:
    whole = f"{FUNCTIONS}int main(int n, char **v_) {{ float *x, *y; {text} }}"
    assert found(whole) + found(whole, certain=False) == []


def test_how_far_a_function_moves_a_pointer_is_not_known() -> None:
    text = "float *behind(float *p, int n) { return p + n; } int main() { float *x, *y; run(behind(x, 4), y, 9); }"
    assert unread(text) == ["how far behind the start of its array `out` points is not known"]


def test_pointers_that_are_set_on_too_many_ways_are_told() -> None:
    """What is followed has an end: the text is one that a program could have written."""
    sets = "".join(
        f"void set{i}(Pair *p, float *x, float *y) {{ p->out = x; p->in = {i} ? x : y; }}\n" for i in range(99)
    )
    calls = "".join(f"void go{i}(float *x, float *y) {{ Pair p; set{i}(&p, x, y); held(p); }}\n" for i in range(99))
    assert any("there are too many ways" in said for said in unread(PAIRS + sets + calls))
    assert found(PAIRS + sets + calls) == []
