from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.document import write_problem
from warpwright.problems.expressions import evaluate
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem, Struct
from warpwright.syntax.source import Source, include_reader, read_source

SAMPLES = sorted((Path(__file__).parents[2] / "csrc_samples").glob("*/*/kernel.cu"))


def find(text: str, kernel: str | None = None, path: str = "a.cu") -> Problem | Missing:
    program = analyze(Source(path, text.encode()))
    chosen = program.kernels[0] if kernel is None else program.kernel(kernel)
    assert chosen is not None
    return find_problem(program, chosen)


def found(text: str, kernel: str | None = None, path: str = "a.cu") -> Problem:
    problem = find(text, kernel, path)
    assert isinstance(problem, Problem), str(problem)
    return problem


def extents(problem: Problem) -> dict[str, tuple[str, str, str]]:
    return {a.name: (a.extent, a.role, a.origin) for a in problem.arrays}


COPY = (
    "__global__ void copy(const float* in, float* out, int n) {"
    " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = in[i]; }"
)


def test_the_launch_and_the_allocations_say_everything() -> None:
    problem = found(
        COPY
        + """
int main() {
    const int count = 1 << 16;
    float *d_in, *d_out;
    cudaMalloc(&d_in, count * sizeof(float));
    cudaMalloc((void**)&d_out, sizeof(float) * (count + 7));
    dim3 block(128);
    copy<<<(count + block.x - 1) / block.x, block, 4 * sizeof(float)>>>(d_in, d_out, count);
}"""
    )
    assert extents(problem) == {"in": ("n", "in", "launch"), "out": ("n + 7", "out", "launch")}
    assert (problem.grid[0], problem.block[0], problem.dynamic_shared_bytes) == ("(n + 127) / 128", "128", "16")
    assert problem.own_shape == {"n": 65536}
    case = problem.case({"n": 1000})
    assert (case.grid, case.block, case.counts) == ((8, 1, 1), (128, 1, 1), {"in": 1000, "out": 1007})
    assert {s["n"] for s in problem.check} >= {65536, 1, 31, 33, 127, 129, 1000, 1009}


def test_a_guard_bounds_an_array_where_nothing_is_allocated_in_sight() -> None:
    problem = found(COPY + "void run(const float* a, float* b, int n) { copy<<<(n + 255) / 256, 256>>>(a, b, n); }")
    assert extents(problem) == {"in": ("n", "in", "inferred"), "out": ("n", "out", "inferred")}
    assert problem.own_shape is None
    assert problem.time[0]["n"] >= 1 << 20
    assert problem.notes == ()


def test_a_value_that_nothing_says_is_filled_in_and_said() -> None:
    text = COPY.replace("int n)", "float by, int n)").replace("= in[i]", "= by * in[i]")
    problem = found(text + "void run(float* a, float* b, float by, int n) { copy<<<n / 256, 256>>>(a, b, by, n); }")
    assert problem.scalars[0].value == "1.5"
    assert problem.notes == ("nothing says what by is; 1.5 was passed",)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (x < w && y < h) a[y * w + x] = 1;", "h * w"),
        ("if (x >= w || y >= h) return; a[y * w + x] = 1;", "h * w"),
        ("for (int i = x; i < w; i += gridDim.x * blockDim.x) a[i] = 1;", "w"),
        ("if (x < w) a[2 * x + 1] = 1;", "2 * (w - 1) + 2"),
        ("a[blockIdx.x] = 1;", "gridDim.x"),
        ("a[threadIdx.x % 32] = 1;", "32"),
        ("for (int k = 0; k <= w; k++) a[k] = 1;", "w + 1"),
        ("a[x] = 1;", "gridDim.x * blockDim.x"),
        ("a[x < w ? x : w - 1] = 1;", "w"),
    ],
)
def test_extents_are_bounded_by_what_the_text_shows(body: str, expected: str) -> None:
    problem = found(
        "__global__ void k(float* a, int w, int h) { int x = blockIdx.x * blockDim.x + threadIdx.x;"
        " int y = blockIdx.y * blockDim.y + threadIdx.y; " + body + " }\n"
        "void run(float* a, int w, int h) { k<<<dim3(w / 16 + 1, h / 16 + 1), dim3(16, 16)>>>(a, w, h); }"
    )
    shape = {"w": 100, "h": 40, "gridDim.x": 7, "blockDim.x": 16}
    assert evaluate(problem.arrays[0].extent, shape) == evaluate(expected, shape), problem.arrays[0].extent


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("size_t m = n - 1; m *= n; m /= 2;", "n * (n - 1) / 2"),
        ("size_t m; m = n; m += 3; m -= 1;", "n + 2"),
        ("size_t m = n; m++; ++m; m--;", "n + 1"),
        ("size_t m = n; for (int i = 0; i < 3; i++) m++;", "n"),
        ("size_t m = n; if (n % 2) m += 1;", "n"),  # not always done
    ],
)
def test_a_size_that_is_stepped_is_followed(steps: str, expected: str) -> None:
    problem = found(
        "__global__ void k(float* a, int n) { size_t i = blockIdx.x * blockDim.x + threadIdx.x;"
        " if (i < n) a[i * i] = 1; }\n"
        f"void run(int n) {{ {steps} float* d; cudaMalloc(&d, m * sizeof(float));"
        " k<<<(n + 255) / 256, 256>>>(d, n); }"
    )
    assert evaluate(problem.arrays[0].extent, {"n": 40}) == evaluate(expected, {"n": 40}), problem.arrays[0].extent


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("a[0] = 1;", "out"),
        ("a[0] += 1;", "in-out"),
        ("a[0] = a[1];", "in-out"),
        ("float x = a[0]; if (x > 0) b[0] = x;", "in"),
        ("atomicAdd(&a[0], 1);", "in-out"),
        ("a[0]++;", "in-out"),
        ("float* p = a; p[0] = 1;", "out"),
        ("float* p = a + 1; *p += 1;", "in-out"),
        ("float4* p = reinterpret_cast<float4*>(a); b[1] = p[0].x;", "in"),
        ("elsewhere(a);", "in-out"),
    ],
)
def test_roles_follow_from_the_text(body: str, role: str) -> None:
    problem = found(
        f"__global__ void k(float* a, float* b) {{ {body} b[0] = 1; }}\n"
        "int main() { float *a, *b; cudaMalloc(&a, 64); cudaMalloc(&b, 64); k<<<1, 1>>>(a, b); }"
    )
    assert problem.arrays[0].role == role


def test_macros_functions_templates_and_containers_are_followed() -> None:
    problem = found(
        """
#define N (1 << 20)
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
int blocks(int n, int per) { return CEIL_DIV(n, per); }
template <typename T, int B> __global__ void reduce(const T* __restrict__ in, T* out, unsigned n) {
    int i = blockIdx.x * B + threadIdx.x;
    if (i < n) out[blockIdx.x] = in[i];
}
int main() {
    thrust::device_vector<double> v(N), o(blocks(N, 256));
    reduce<double, 256><<<blocks(N, 256), 256>>>(thrust::raw_pointer_cast(v.data()), o.data().get(), N);
}""",
        "reduce",
    )
    assert [a.type for a in problem.arrays] == ["double", "double"]
    assert extents(problem) == {"in": ("n", "in", "launch"), "out": ("(n + 255) / 256", "out", "launch")}
    assert problem.instance == ("double", "256")
    assert problem.own_shape == {"n": 1 << 20}


def test_a_launcher_is_followed_to_its_caller_and_types_to_their_meaning() -> None:
    problem = found(
        """
typedef double Real;
template <typename T> __global__ void scale(T* a, int n, T by) { int i = threadIdx.x; if (i < n) a[i] *= by; }
template <typename T> void run(T* a, int count, int threads, T by) {
    scale<T><<<(int)floorf(count / (float)threads) + 1, threads>>>(a, count, by);
}
int main() { const int total = 3 * 1000; run<Real>(nullptr, total, 128, 2.5); }""",
        "scale",
    )
    assert [a.type for a in problem.arrays] == ["double"]
    assert problem.own_shape == {"n": 3000}
    assert problem.instance == ("double",)
    case = problem.case({"n": 3000})
    assert (case.grid, case.block, case.counts) == ((24, 1, 1), (128, 1, 1), {"a": 3000})
    assert case.scalars == {"n": 3000, "by": 2.5}


def test_a_size_is_found_in_the_caller_under_the_name_that_it_has_here() -> None:
    problem = found(
        """__global__ void pull(float *out, const float *x, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = x[i];
    for (int j = 0; j < m; j++) sum += x[j];
    out[i] = sum;
  }
}
void pulled(int n, int m) {
  float *out, *x;
  cudaMalloc(&out, n * sizeof(float));
  cudaMalloc(&x, m * sizeof(float));
  pull<<<(n + 255) / 256, 256>>>(out, x, n, m);
}
int main() {
  int n, m;
  n = 784;
  m = 15000;
  pulled(n, m);
}"""
    )
    assert problem.own_shape == {"n": 784, "m": 15000}
    assert all(shape["n"] <= shape["m"] for shape in problem.time)  # x has m elements, and n are read


def test_a_loop_over_all_pairs_is_timed_at_sizes_that_end_soon() -> None:
    problem = found(
        """__global__ void pairs(float *out, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int j = 0; j < n; j++) sum += fabsf(x[j] - x[i]);
    out[i] = sum;
  }
}
void run(float *out, const float *x, int n) { pairs<<<(n + 255) / 256, 256>>>(out, x, n); }"""
    )
    assert problem.time[0] == {"n": 1 << 18}


@pytest.mark.parametrize(
    ("bytes_asked", "elements"),
    [
        ("2 * sizeof h", 1000),
        ("sizeof(h) * 3", 1500),
        ("sizeof(h[0]) * 700", 700),
        ("sizeof *h * 600", 600),
        ("20 * sizeof(table)", 960),
    ],
)
def test_sizeof_of_an_array_counts_its_elements(bytes_asked: str, elements: int) -> None:
    problem = found(
        f"""
__global__ void k(float* a, int n) {{ if (threadIdx.x < n) a[threadIdx.x] = 1; }}
int other() {{ float h[3]; return 0; }}
int main() {{
    const int n = 500;
    float h[n], table[6][8], *a;
    cudaMalloc(&a, {bytes_asked});
    k<<<1, 32>>>(a, n);
}}""",
        "k",
    )
    assert evaluate(problem.arrays[0].extent, {"n": 500}) == elements


def test_types_that_calls_do_not_write_are_deduced_from_what_they_pass() -> None:
    problem = found(
        """
template <typename Data, typename Index> __global__ void pick(const Data* in, Data* out, Index n, Index stride) {
    Index i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * stride];
}
template <typename D, typename I> void inner(const D* in, D* out, I first, I n) {
    pick<<<(n + 127) / 128, 128>>>(&in[first * 2], out + first, n, 2);
}
template <typename V> void outer(V* in, V* out, long n) { inner(in, out, 0l, n); }
int main(int argc, char** argv) {
    const long n = atol(argv[1]);
    double *d_in, *d_out;
    cudaMalloc(&d_in, 2 * n * sizeof(double));
    cudaMalloc((void**)&d_out, n * sizeof(double));
    outer(d_in, d_out, n);
}""",
        "pick",
    )
    assert [a.type for a in problem.arrays] == ["double", "double"]
    assert problem.instance == ("double", "long")


@pytest.mark.parametrize(
    ("passed", "declared", "instance"),
    [
        ("1, a", "float *a", ("int", "float")),
        ("2.5f, v.data().get()", "thrust::device_vector<int> v(64)", ("float", "int")),
        ("(unsigned)n, thrust::raw_pointer_cast(&v[0])", "int n = 3; thrust::device_vector<double> v(64)",
         ("unsigned", "double")),
        ("static_cast<short>(n), (&a[n])", "int n = 3; float *a", ("short", "float")),
    ],
)  # fmt: skip
def test_the_instance_is_what_is_passed(passed: str, declared: str, instance: tuple[str, ...]) -> None:
    text = f"""
template <typename N, typename T> __global__ void k(N by, T *a) {{ a[threadIdx.x] *= (T)by; }}
int main() {{ {declared}; k<<<1, 64>>>({passed}); }}"""
    assert found(text, "k").instance == instance


SCALE = (
    "template <typename T> __global__ void scale(T* a, int n, T by) { if (threadIdx.x < n) a[threadIdx.x] *= by; }\n"
)


@pytest.mark.parametrize(
    "host",
    [
        "template <typename I, typename T = double> struct Table { T* a; I n; void grow(T by); };\n"
        "template <typename I, typename T> void Table<I, T>::grow(T by) { scale<T><<<1, 64>>>(a, n, by); }\n"
        "int main() { Table<int> table; table.grow(2.0); }",
        "template <typename T> struct Table { T* a; int n; void grow(T by) { scale<T><<<1, 64>>>(a, n, by); } };\n"
        "template <typename V> void own() { Table<V> table; }\n"
        "int main() { own<double>(); }",
        "template <typename T> void run(T* a, int n) { times(n, [&] { scale<T><<<1, 64>>>(a, n, T(2)); }); }\n"
        "int main() { double* d; run<double>(d, 64); }",
    ],
    ids=["default of a class", "in a class", "in a lambda"],
)
def test_an_instance_is_that_of_the_class_or_the_function_around_the_launch(host: str) -> None:
    problem = found(SCALE + host, "scale")
    assert [a.type for a in problem.arrays] == ["double"]
    assert problem.instance == ("double",)


def test_a_structure_that_is_made_where_it_is_passed_is_an_instance() -> None:
    problem = found(
        """
struct Twice { float by; Twice(float b) : by(b) {} __device__ float operator()(float x) const { return by * x; } };
template <typename Op> __global__ void apply(float* a, int n, Op op) { if (threadIdx.x < n) a[threadIdx.x] = op(a[0]); }
template <typename Op> void run(float* a, int n, const Op& op) { apply<<<1, 64>>>(a, n, op); }
void f(float* d) { run(d, 64, Twice(2.f)); }""",
        "apply",
    )
    assert problem.instance == ("Twice",)
    (structure,) = (each for each in problem.arguments if isinstance(each, Struct))
    assert [(offset, part.name) for offset, part in structure.members] == [(0, "op.by")]


def test_an_array_whose_indices_have_no_bound_and_that_nobody_allocates_is_assumed_and_said() -> None:
    problem = found(
        """
__global__ void deposit(const float* where, float* cells, int n, float first, float width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int cell = (where[i] - first) / width;
    atomicAdd(&cells[cell], 1.f);
}
void f(const float* where, float* cells, int n) { deposit<<<(n + 63) / 64, 64>>>(where, cells, n, 0.f, 0.5f); }"""
    )
    assert extents(problem)["cells"] == ("256 * ((n + 63) / 64)", "in-out", "inferred")
    assert extents(problem)["where"] == ("n", "in", "inferred")
    assert "nothing says how many elements cells has; 256 * ((n + 63) / 64) were taken" in problem.notes


@pytest.mark.parametrize("value", ["scale<double>", "&scale<double>", "(scale<double>)"])
def test_a_kernel_that_a_variable_holds_is_launched_by_it(value: str) -> None:
    problem = found(
        f"""
template <typename T> __global__ void scale(T* a, int n) {{ int i = threadIdx.x; if (i < n) a[i] *= 2; }}
void f(double* a, float* b, int n) {{
    auto other = scale<float>;
    auto chosen = {value};
    chosen<<<1, 96>>>(a, n);
    other<<<1, 32>>>(b, n);
}}""",
        "scale",
    )
    assert [a.type for a in problem.arrays] == ["double"]
    assert problem.instance == ("double",)
    assert problem.block == ("96", "1", "1")


def test_a_size_from_the_command_line_that_only_the_grid_needs_is_a_symbol() -> None:
    problem = found(
        """
__global__ void fill(float* a) { a[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
int main(int argc, char** argv) {
    int n = atoi(argv[1]); float* a;
    cudaMalloc(&a, n * 256 * sizeof(float));
    fill<<<n, 256>>>(a);
}"""
    )
    assert (problem.symbols, problem.own_shape) == (("n",), None)
    assert extents(problem) == {"a": ("256 * n", "out", "launch")}


def test_a_constant_that_the_kernel_uses_too_is_no_shape_to_vary() -> None:
    problem = found(
        """
#define N 1024
__global__ void k(float* a, int n) { if (threadIdx.x < n) a[threadIdx.x + N] = 1; }
int main() { float* a; cudaMalloc(&a, 2 * N * sizeof(float)); k<<<1, 32>>>(a, N); }"""
    )
    assert problem.symbols == ()
    assert problem.scalars[0].value == "1024"
    assert problem.check == ({},)


def test_an_array_of_indices_holds_indices() -> None:
    problem = found(
        """
__global__ void gather(const int* idx, const float* x, float* y, int n, int m) {
    int i = threadIdx.x; if (i < n) { int j = idx[i]; y[i] = x[j]; }
}
int main() {
    const int n = 100, m = 50; int* i; float *x, *y;
    cudaMalloc(&i, n * 4); cudaMalloc(&x, m * 4); cudaMalloc(&y, n * 4);
    gather<<<1, 128>>>(i, x, y, n, m);
}"""
    )
    assert problem.arrays[0].values == "index(m)"
    assert problem.case({"n": 10, "m": 7}).limits == {"idx": 7}


def test_a_struct_is_filled_in_member_by_member() -> None:
    problem = found(
        """
struct Box { int lo; double scale; };
struct Grid { float* cells; int width, height; bool wrap; Box box; };
__global__ void fill(Grid g, float2 by) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < g.width && y < g.height) g.cells[y * g.width + x] = by.x;
}
int main() {
    Grid g;
    g.width = 640; g.height = 480; g.wrap = true; g.box.lo = 3; g.box.scale = 0.5;
    cudaMalloc(&g.cells, g.width * g.height * sizeof(float));
    fill<<<dim3((g.width + 63) / 64, g.height), 64>>>(g, make_float2(1.0f, 2.0f));
}"""
    )
    grid, by = problem.arguments
    assert isinstance(grid, Struct) and isinstance(by, Struct)
    assert (grid.bytes, [offset for offset, _ in grid.members]) == (40, [0, 8, 12, 16, 24, 32])
    assert extents(problem) == {"g.cells": ("g_height * g_width", "out", "launch")}
    assert problem.own_shape == {"g_width": 640, "g_height": 480, "g_wrap": 1, "g_box_lo": 3}
    case = problem.case({"g_width": 100, "g_height": 3, "g_wrap": 1, "g_box_lo": 3})
    assert (case.grid, case.counts) == ((2, 3, 1), {"g.cells": 300})
    assert (case.scalars["g.box.scale"], case.scalars["by.y"]) == (0.5, 2.0)


def test_an_array_of_structs_is_filled_as_its_numbers() -> None:
    text = """
struct Body { float x, y, z, mass; };
struct Cell { int first; float weight; };
__global__ void k(const Body* bodies, const Cell* cells, float* out, int n) {
    int i = threadIdx.x; if (i < n) out[i] = bodies[cells[i].first].mass * cells[i].weight;
}
int main() {
    const int n = 100; Body* b; Cell* c; float* o;
    cudaMalloc(&b, 7 * n * sizeof(Body)); cudaMalloc(&c, n * sizeof(Cell)); cudaMalloc(&o, n * sizeof(float));
    k<<<1, 128>>>(b, c, o, n);
}"""
    problem = found(text)
    assert [(a.type, a.extent, a.values) for a in problem.arrays] == [
        ("float[4]", "7 * n", "any"), ("unsigned int[2]", "n", "index(7 * n)"), ("float", "n", "any"),
    ]  # fmt: skip
    assert "cells holds structs `Cell`, which are filled with small whole numbers" in problem.notes


def test_allocations_are_traced_through_the_functions_of_the_host_code() -> None:
    problem = found(
        """
__global__ void k(float* a, float* b, float* c) { a[threadIdx.x] = b[threadIdx.x] + c[threadIdx.x]; }
struct State { float* data; };
void launch(float* first, State& s, int blocks, float* third) { k<<<blocks, 64>>>(first, s.data, third); }
int main(int argc, char** argv) {
    int size = argc > 1 ? atoi(argv[1]) : 4096;
    State state; float* mine; float* other = new float[size + 1];
    cudaMalloc((void**)&mine, sizeof(float) * size);
    cudaMalloc(&state.data, size * 8);
    launch(mine, state, size / 64, other);
}"""
    )
    assert {a.name: a.extent for a in problem.arrays} == {"a": "4096", "b": "8192", "c": "4097"}
    assert problem.case({}).grid == (64, 1, 1)


def test_without_a_launch_the_guards_say_how_large_the_grid_is() -> None:
    problem = found(
        """
__global__ void __launch_bounds__(128) add(float* a, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= w || blockIdx.y >= h) return;
    a[blockIdx.y * w + x] += 1;
}"""
    )
    assert (problem.grid, problem.block) == (("(w + 127) / 128", "h", "1"), ("128", "1", "1"))
    assert extents(problem) == {"a": ("h * w", "in-out", "inferred")}
    assert problem.notes == (
        "no launch of it is found; blocks of 128 threads were taken",
        "no launch of it is found; as many blocks as its guards ask for were taken",
    )


def test_a_grid_without_guards_is_a_size_of_its_own() -> None:
    problem = found("__global__ void k(float* a) { a[blockIdx.x] = threadIdx.x; }")
    assert (problem.symbols, problem.grid[0], problem.arrays[0].extent) == (("blocks",), "blocks", "gridDim.x")


def test_a_counter_that_gives_places_starts_at_zero() -> None:
    text = """
__global__ void keep(const float* in, float* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0) out[atomicAdd(count, 1)] = in[i];
}
int main() {
    const int n = 1000; float *a, *b; int* c;
    cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4); cudaMalloc(&c, 4);
    keep<<<(n + 127) / 128, 128>>>(a, b, c, n);
}"""
    problem = found(text)
    assert problem.arrays[2].values == "index(1)"
    assert "count holds counters; they start at 0" in problem.notes
    assert any(note.startswith("an index of out has no bound") for note in problem.notes)


def test_an_allocation_for_the_own_size_grows_with_the_others() -> None:
    problem = found(
        COPY + "int main() { float *a, *b; cudaMalloc(&a, 400); cudaMalloc(&b, 400); copy<<<1, 128>>>(a, b, 100); }"
    )
    assert problem.symbols == ()
    text = (
        COPY + "int main(int c, char** v) { float *a, *b; cudaMalloc(&a, 400); cudaMalloc(&b, 400); int n = atoi(v[1]);"
    )
    grown = found(text + " copy<<<n / 100, 128>>>(a, b, n); }")
    assert {a.extent for a in grown.arrays} == {"max(100, n)"}
    assert "the host code allocates in for its own sizes; for others it is made longer" in grown.notes


def test_variables_of_the_file_that_host_code_sets_are_arrays_too() -> None:
    problem = found(
        """
__constant__ float weights[9];
__constant__ int order[4];
__device__ int known = 7;
__global__ void k(float* a) { a[order[threadIdx.x % 4]] = weights[threadIdx.x % 9] + known; }
int main() { float* a; cudaMalloc(&a, 64 * 4); k<<<1, 32>>>(a); }"""
    )
    assert [(g.name, g.type, g.extent, g.values) for g in problem.globals] == [
        ("weights", "float", "9", "any"), ("order", "int", "4", "index(64)"),
    ]  # fmt: skip
    assert problem.case({}).counts == {"a": 64, "weights": 9, "order": 4}


def test_shapes_that_outgrow_the_kernels_own_arrays_are_left_out() -> None:
    problem = found(
        """
__global__ void k(float* a, int n) { __shared__ float s[64]; for (int j = 0; j < n; j++) s[j] = a[j]; a[0] = s[0]; }
void run(float* a, int n) { k<<<1, 32>>>(a, n); }"""
    )
    assert {shape["n"] for shape in problem.check} == {1, 31, 33}


@pytest.mark.parametrize(
    ("launch", "profile"),
    [
        ("const int n = 5000;", {"n": 5000}),
        ("const int n = 1 << 24;", {"n": 50021}),
        ("int n = atoi(v[1]);", {"n": 50021}),
    ],
)
def test_a_profile_has_few_threads_and_a_partial_block(launch: str, profile: dict[str, int]) -> None:
    text = f"int main(int c, char** v) {{ float *a, *b; {launch} copy<<<(n + 255) / 256, 256>>>(a, b, n); }}"
    problem = found(COPY + text)
    assert problem.profile == profile
    threads, block, _ = problem.size(profile) or (0, 0, 0)
    assert 4 * block < threads <= 1 << 16 and profile["n"] % block


DIRECTED = """
// Fills y.
// warpwright: array y[n + 1] out
// warpwright: scalar alpha = 0.25
// warpwright: launch grid((n + 63) / 64, 2) block(64) shared(4 * n)
// warpwright: shape n=5000
// warpwright: check n=3
// warpwright: profile n=300
/* warpwright: check n=77 */
__global__ void fill(float* y, float alpha, int n) { y[threadIdx.x] = alpha; }
"""


def test_directives_say_how_to_run_a_kernel_that_nothing_launches() -> None:
    problem = found(DIRECTED)
    assert extents(problem) == {"y": ("n + 1", "out", "directive")}
    assert problem.scalars[0].value == "0.25"
    assert problem.launch_origin == "directive"
    assert (problem.own_shape, problem.check) == ({"n": 5000}, ({"n": 3}, {"n": 77}))
    assert problem.profile == {"n": 300}
    case = problem.case({"n": 100})
    assert (case.grid, case.block, case.dynamic_shared_bytes) == ((2, 2, 1), (64, 1, 1), 400)


def test_a_suppression_is_no_directive() -> None:
    assert found("// warpwright: ignore[bank-conflict]\n" + COPY) == found(COPY)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__global__ void k(float** a) { a[0][0] = 1; }\nvoid f(float** a) { k<<<1, 1>>>(a); }", "`a` holds addresses"),
        ("__global__ void k(cudaTextureObject_t t, float* a) { a[0] = 1; }", "`t` is a texture or surface"),
        ("template <class T> __global__ void k(T* a) { a[0] = 1; }", "`a` is of the type `T`, which no launch"),
        ("__global__ void k(float* a) { extern __shared__ int s[]; a[0] = s[(int)a[0]]; }", "dynamic shared memory"),
        ("// warpwright: array a in\n" + COPY, "a.cu:1: the directive `array a in` cannot be read"),
        ("void f() { gone<<<1, 1>>>(3); }", "its definition is not in this file"),
        ("__global__ void k(float* a, int n", "How to run k is not known"),
    ],
    ids=["addresses", "texture", "template", "shared", "bad directive", "elsewhere", "half written"],
)  # fmt: skip
def test_what_is_not_known_is_one_sentence_with_a_way_out(text: str, words: str) -> None:
    program = analyze(Source("a.cu", text.encode()))
    for kernel in program.kernels:
        missing = find_problem(program, kernel)
        assert isinstance(missing, Missing)
        assert words in missing.reason
        assert "// warpwright: " in missing.advice


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.parent.name)
def test_every_sample_can_be_run_and_written_out(path: Path, tmp_path: Path) -> None:
    program = analyze(read_source(path))
    (kernel,) = program.defined_kernels
    problem = find_problem(program, kernel)
    assert isinstance(problem, Problem), str(problem)
    assert problem.reference == path.parent / "reference.py"
    assert all(problem.bytes(shape) > 0 for shape in (*problem.check, *problem.time))

    copy = tmp_path / "kernel.cu"
    copy.write_bytes(path.read_bytes())
    (tmp_path / "reference.py").write_bytes(problem.reference.read_bytes())
    (tmp_path / "sample.toml").write_text(write_problem(problem))
    program = analyze(read_source(copy))
    again = find_problem(program, program.defined_kernels[0])
    assert isinstance(again, Problem), str(again)
    assert {a.origin for a in again.arrays} == {"sample.toml"}
    for shape in problem.check:
        assert again.case(shape) == problem.case(shape)
    assert (again.check, again.time, again.own_shape) == (problem.check, problem.time, problem.own_shape)


def test_a_version_elsewhere_is_run_as_the_one_that_it_is_like(tmp_path: Path) -> None:
    own, elsewhere = analyze(read_source(SAMPLES[0])), analyze(Source(str(tmp_path / "b.cu"), SAMPLES[0].read_bytes()))
    (kernel,), (other,) = own.defined_kernels, elsewhere.defined_kernels
    problem, alike = find_problem(own, kernel), find_problem(elsewhere, other, like=kernel)
    assert isinstance(problem, Problem) and isinstance(alike, Problem)
    assert (alike.check, alike.time, alike.reference) == (problem.check, problem.time, problem.reference)
    (tmp_path / "sample.toml").write_text("[kernels.none]\n")
    alone = find_problem(elsewhere, other, like=kernel)
    assert not isinstance(alone, Problem) or alone.reference is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[kernels.copy\n", "is not a TOML file"),
        ("[kernels]\ncopy = 3\n", "with a table [kernels.copy] (copy is not a table)"),
        ("[kernels.copy]\nblocks = 3\n", "has the unknown key `blocks`"),
        ("[kernels.copy]\ngrid = ['n +']\n", "ends where a value should stand"),
        ("[kernels.copy]\nshape = { n = 'big' }\n", "does not give each symbol a whole number"),
        ("[kernels.copy.arguments]\nin = { extent = 'n', role = 'input' }\n", "which is not in, out or in-out"),
        ("[kernels.copy]\nreference = 'gone.py'\ngrid = ['n']\nblock = [32]\n", "names the reference gone.py"),
    ],
)
def test_a_wrong_sample_file_is_said(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "sample.toml").write_text(text)
    missing = find(COPY, path=str(tmp_path / "a.cu"))
    assert isinstance(missing, Missing)
    assert words in missing.reason


@pytest.mark.parametrize(
    ("body", "block"),
    [
        ("__shared__ float s[16][17]; s[threadIdx.y][threadIdx.x] = a[blockIdx.x * 16 + threadIdx.x];", "16 16 1"),
        ("int t = threadIdx.x, i = blockIdx.x * 64 + t; if (i < n) a[i] = t;", "64 1 1"),
        ("__shared__ float s[128]; int t = threadIdx.x; s[t] = a[0]; __syncthreads(); a[t] = s[127 - t];", "128 1 1"),
        ("__shared__ float s[512]; int t = threadIdx.x; s[t] = a[0]; __syncthreads(); a[t] = s[511 - t];", "512 1 1"),
        ("for (int i = threadIdx.x; i < n; i += 96) a[i] = 0;", "96 1 1"),
        (
            "__shared__ float s[32][33]; int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;"
            " for (int j = 0; j < 32; j += 4) s[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];",
            "32 4 1",
        ),
        # What stands at a condition says nothing of the other threads, nor does a tile larger than a block.
        ("__shared__ float s[8]; if (threadIdx.x < 8) s[threadIdx.x] = a[threadIdx.x];", "256 1 1"),
        ("int i = blockIdx.x * 4096 + threadIdx.x; a[i] = 0;", "256 1 1"),
    ],
)  # fmt: skip
def test_without_a_launch_the_text_says_how_large_a_block_is(body: str, block: str) -> None:
    problem = found("__global__ void k(float* a, int n) { " + body + " }")
    assert " ".join(problem.block) == block


@pytest.mark.parametrize(("guard", "grid"), [("", "max(1, n / 16)"), ("if (i < n) ", "(n + 15) / 16")])
def test_without_a_launch_tiles_cover_the_sizes_and_no_more(guard: str, grid: str) -> None:
    problem = found(f"__global__ void k(float* a, int n) {{ int i = blockIdx.x * 16 + threadIdx.x; {guard}a[i] = n; }}")
    assert (problem.grid[0], problem.symbols) == (grid, ("n",))


REVERSED = """
__global__ void mirror(const float* in, float* out, int n) {
    extern __shared__ float tile[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (i < n) tile[%s] = in[i];
    __syncthreads();
    if (i < n) out[i] = tile[%s];
}
void run(const float* a, float* b) { const int n = 3000; mirror<<<(n + 255) / 256, 256%s>>>(a, b, n); }
"""


@pytest.mark.parametrize(
    ("place", "given", "bytes_"), [("t", "", 0), ("t", ", 1024", 1024), ("t + 1", ", 1024", 1024), ("t", ", 0", 0)]
)
def test_a_launch_that_gives_too_little_shared_memory_is_left_so(place: str, given: str, bytes_: int) -> None:
    problem = found(REVERSED % (place, place, given))
    assert problem.own_shape is not None
    assert problem.case(problem.own_shape).dynamic_shared_bytes == bytes_


def test_constants_of_included_files_are_the_launchs_own_sizes(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text(
        "namespace sizes { constexpr int N = 5000, THREADS = 64, BLOCKS = (N + THREADS - 1) / THREADS; }\n"
    )
    path = tmp_path / "a.cu"
    path.write_text(
        '#include "sizes.h"\nusing namespace sizes;\n'
        "__global__ void fill(float *a) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) a[i] = 1.0f; }\n"
        "void run(float *a) { fill<<<BLOCKS, THREADS>>>(a); }\n"
    )
    program = analyze(read_source(path), include_reader({}, ()))
    kernel = program.kernel("fill")
    assert kernel is not None
    problem = find_problem(program, kernel)
    assert isinstance(problem, Problem), problem
    assert (problem.grid[0], problem.block[0], problem.symbols) == ("79", "64", ())
    assert not any("the size of the block" in note for note in problem.notes)


EACH = """
template <typename Body> __global__ void each(int n, Body body) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) body(i);
}
struct Step { float* out; const float* in; int by; __device__ void operator()(int i) const { out[i] = in[i + by]; } };
void run() {
    const int n = 4096; float *x, *y;
    cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&y, n * sizeof(float));
"""


@pytest.mark.parametrize(
    "launch",
    [
        "Step step{y, x, 1}; each<<<16, 128>>>(n, step);",
        "Step step = {y, x, 1}; each<<<16, 128>>>(n, step);",
        "each<<<16, 128>>>(n, Step{y, x, 1});",
    ],
    ids=["declared", "assigned", "made where it is passed"],
)
def test_a_functor_has_the_members_that_stand_between_its_braces(launch: str) -> None:
    problem = found(EACH + launch + "\n}", "each")
    assert problem.instance == ("Step",)
    assert extents(problem) == {"body.out": ("n", "out", "launch"), "body.in": ("n", "in", "launch")}
    assert problem.case({"n": 64, "body_by": 1}).scalars["body.by"] == 1


def test_what_a_function_is_called_with_is_no_member_of_the_struct_that_it_gives() -> None:
    make = "Step make(float* y, const float* x, int rows, int by) { Step s; s.out = y; s.in = x; s.by = by; return s; }"
    text = (
        EACH.replace("void run", make + "\nvoid run") + "Step step = make(y, x, 7, 1); each<<<16, 128>>>(n, step);\n}"
    )
    problem = found(text, "each")
    assert problem.own_shape is None
    assert problem.case({"n": 64, "body_by": 5}).scalars["body.by"] == 5


def test_a_functor_that_runs_past_its_arrays_is_run_at_the_programs_own_sizes() -> None:
    """At all sizes that differ it does so, too: what goes wrong at its own is the program's."""
    problem = found(EACH + "each<<<16, 128>>>(n, Step{y, x, 1});\n}", "each")
    assert problem.own_shape is not None
    assert problem.own_shape["n"] == 4096
    assert problem.profile == problem.own_shape


def test_the_view_that_an_owner_gives_has_the_count_it_was_made_with() -> None:
    problem = found(
        """
struct View { float* data; int size; };
class Owner {
 public:
    explicit Owner(int n) : size_(n) { cudaMalloc(&data_, n * sizeof(float)); }
    View view() const { return View{data_, size_}; }
 private:
    float* data_; int size_;
};
__global__ void fill(View v) { int i = blockIdx.x * 64 + threadIdx.x; if (i < v.size) v.data[i] = 1.0f; }
void run() { Owner owner(1000); fill<<<16, 64>>>(owner.view()); }"""
    )
    assert {a.name: a.extent for a in problem.arrays} == {"v.data": "1000"}
    assert problem.case({}).scalars["v.size"] == 1000


MADE = """
__global__ void twice(float* a, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) a[i] *= 2.0f; }
"""


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        (
            "static float* on_device(const float* host, int count) { float* x; cudaMalloc(&x, count * sizeof(float));"
            " copy(x, host); return x; }",
            "on_device(host, n - 3)",
        ),
        (
            "static float* on_device(const float* host, size_t count) { float* x; size_t all = count * sizeof(float);"
            " cudaMalloc(&x, all); cudaMemcpy(x, host, all, cudaMemcpyHostToDevice); return x; }",
            "on_device(host, n - 3)",
        ),
        (
            "template <typename T> T* make(cudaStream_t s, int n) { T* x = nullptr;"
            " cudaMallocAsync((void**)&x, n * sizeof(T), s); return x; }",
            "make<float>(0, n - 3)",
        ),
        (
            "float* rows_of(int rows, int width) { void* p; if (cudaMalloc(&p, 4 * rows * width)) exit(1);"
            " return static_cast<float*>(p); }",
            "rows_of(3, n / 3 - 1)",
        ),
    ],
    ids=["counted", "in bytes", "of any type", "cast"],
)
def test_what_a_function_allocates_and_returns_is_as_large_as_it_is_asked_for(helper: str, call: str) -> None:
    problem = found(
        f"{MADE}{helper}\nvoid run(const float* host) {{\n    int n = 3000;\n    float* a = {call};\n"
        "    twice<<<(n + 63) / 64, 64>>>(a, n);\n}",
        "twice",
    )
    (array,) = problem.arrays
    assert array.origin == "launch"
    assert evaluate(array.extent, {"n": 3000}) == 2997


def test_a_shape_of_the_profile_may_show_what_the_programs_own_sizes_do_wrong() -> None:
    """The guards take the width for the height: only where the image is wider than high do threads leave it."""
    problem = found(
        """
__global__ void grey(float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < height && y < width) out[y * width + x] = 1.0f;
}
void run() {
    const int width = 640, height = 360; float* out; cudaMalloc(&out, width * height * sizeof(float));
    grey<<<dim3((width + 15) / 16, (width + 15) / 16), dim3(16, 16)>>>(out, width, height);
}"""
    )
    assert problem.own_shape == {"width": 640, "height": 360}
    assert problem.profile is not None
    assert problem.profile["width"] > problem.profile["height"]
