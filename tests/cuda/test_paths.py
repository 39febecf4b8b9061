"""The ways to a launch, where its pointers lead on each, and what the loops around it move."""

from __future__ import annotations

import pytest
from warpwright.cuda.addresses import address_of
from warpwright.cuda.loops import Listed, moved_variables
from warpwright.cuda.paths import LaunchPath, launch_paths
from warpwright.cuda.sites import launch_sites
from warpwright.syntax.source import Source

KERNEL = "__global__ void k(float* y, const float* x, int n) {}\n"


def paths_of(host: str, *others: str) -> list[LaunchPath]:
    sources = [Source(f"{place}.cu", text.encode()) for place, text in enumerate((KERNEL + host, *others))]
    return [path for site in launch_sites(sources, "k") for path in launch_paths(sources, site)]


def led_to(path: LaunchPath) -> list[str]:
    """The names that the pointers of a launch lead to, with what is added to them."""
    out = []
    for argument in path.site.arguments[:2]:
        address = address_of(path, argument)
        moves = [f"{'+' if m.sign > 0 else '-'}{path.scope(m.depth)[0].node_text(m.node)}" for m in address.moves]
        out.append(address.memory[2] + "".join(moves))
    return out


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("void f(float* a, float* b, int n) { k<<<1, 32>>>(a, b, n); }", [["a", "b"]]),
        ("void f(float* a, int n) { k<<<1, 32>>>(a, a, n); }", [["a", "a"]]),
        ("void f(float* a, int n) { k<<<1, 32>>>(a + n, &a[2 * n], n); }", [["a+n", "a+2 * n"]]),
        ("void f(float* a, int n) { float* b = a + 1; k<<<1, 32>>>(b - n, (const float*)a, n); }", [["a-n+1", "a"]]),
        ("void f(float* a, int n) { float* b; b = a; k<<<1, 32>>>(b, a, n); }", [["a", "a"]]),
        ("void f(float* a, int n) { float* b = nullptr; cudaMalloc(&b, n); k<<<1, 32>>>(b, a, n); }", [["b", "a"]]),
        ("void f(float* a, float* b, int n) { b = a + n; k<<<1, 32>>>(b, a, n); }", [["b", "a"]]),
        ("void f() { thrust::device_vector<float> v(9); k<<<1, 32>>>(v.data().get(), "
         "thrust::raw_pointer_cast(&v[0]), 9); }", [["v", "v+0"]]),
        ("void f(float* a, float* b, int n) { k<<<1, 32>>>(a, b, n); }\n"
         "void g(float* p) { f(p, p, 4); f(p, p + 4, 4); }\nint main() { float *q, *r; g(q); g(r); }",
         [["q", "q"], ["r", "r"], ["q", "q+4"], ["r", "r+4"]]),
        ("void f(float* a, float* b, int n) { if (n) f(b, a, n / 2); k<<<1, 32>>>(a, b, n); }", [["a", "b"]]),
        ("void f(float* a, int n) { void* args[] = {&a, &a, &n}; cudaLaunchKernel((void*)k, 1, 32, args, 0, 0); }",
         [["a", "a"]]),
    ],
)  # fmt: skip
def test_where_pointers_lead(host: str, expected: list[list[str]]) -> None:
    assert [led_to(path) for path in paths_of(host)] == expected


def test_a_static_function_is_called_in_its_own_file() -> None:
    host = "static void f(float* a, int n) { k<<<1, 32>>>(a, a, n); }\nvoid g(float* z) { f(z, 1); }"
    other = "void f(float* a, int n);\nvoid h(float* w) { f(w, 2); }"
    assert [led_to(path) for path in paths_of(host, other)] == [["z", "z"]]
    assert [led_to(path) for path in paths_of(host.removeprefix("static "), other)] == [["z", "z"], ["w", "w"]]


def test_a_path_is_told_by_its_outermost_call() -> None:
    host = "void f(float* a, int n) { k<<<1, 32>>>(a, a, n); }\nvoid g(float* z) {\n  f(z, 1);\n  f(z, 2);\n}"
    assert [path.place for path in paths_of(host)] == [("0.cu", 4), ("0.cu", 5)]


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for (int t = 0; t < n; t++) { LAUNCH }", [("t", "t++", "0", "<", "n")]),
        ("for (int t = 0; n > t; t += 2) LAUNCH", [("t", "t += 2", "0", "<", "n")]),
        ("int s = 1; while (s < n) { LAUNCH s *= 2; }", [("s", "s *= 2", None, "<", "n")]),
        ("int f = 0; do { LAUNCH f = 1 - f; } while (go());", [("f", "f = 1 - f", None, "", None)]),
        ("for (int i = 0, j = n; i < j; ++i, --j) { LAUNCH }",
         [("i", "++i", "0", "<", "j"), ("j", "--j", "n", ">", "i")]),
        ("for (int b : {64, 128}) LAUNCH", ["64 128"]),
        ("int bs[] = {32, 96}; for (int b : bs) { LAUNCH }", ["32 96"]),
        ("for (int t = 0; t < n; t++) { if (t) { LAUNCH } }", [("t", "t++", "0", "<", "n")]),
    ],
)  # fmt: skip
def test_what_loops_move(loop: str, expected: list[object]) -> None:
    (path,) = paths_of(f"void f(float* a, int n) {{ {loop.replace('LAUNCH', 'k<<<1, 32>>>(a, a, n);')} }}")
    text = path.site.source.node_text
    found: list[object] = []
    for each in moved_variables(path.site.source, path.site.call):
        if isinstance(each, Listed):
            found.append(" ".join(map(text, each.values)))
        else:
            start, bound = (text(node) if node is not None else None for node in (each.start, each.bound))
            found.append((each.name, text(each.update), start, each.relation, bound))
    assert found == expected
