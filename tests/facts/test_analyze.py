"""Facts that span several places: launches, includes, caches, barriers."""

from __future__ import annotations

import pytest
from support.findings import program
from warpwright.facts.analyze import analyze
from warpwright.facts.cache import KernelCache
from warpwright.facts.document import facts_document
from warpwright.facts.model import AccessKind, Assumptions, Basis, Divergence
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source

KERNEL = "__global__ void k(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 0; }\n"


@pytest.mark.parametrize(
    ("host", "grid", "block"),
    [
        ("k<<<4, 128>>>(a, 512);", (4, 1, 1), (128, 1, 1)),
        ("dim3 b(32, 8); dim3 g(2, 3, 4); k<<<g, b>>>(a, 512);", (2, 3, 4), (32, 8, 1)),
        ("dim3 b = dim3(16, 16), g{7}; k<<<g, b>>>(a, 512);", (7, 1, 1), (16, 16, 1)),
        ("const int n = 1000, t = 256; k<<<(n + t - 1) / t, t>>>(a, n);", (4, 1, 1), (256, 1, 1)),
        ("dim3 b; b.x = 64; b.y = 2; k<<<dim3(9), b>>>(a, 1);", (9, 1, 1), (64, 2, 1)),
        ("int t = 32; t = 96; k<<<8, t>>>(a, 1);", (8, 1, 1), (96, 1, 1)),
        ("k<<<up(1000, 256), 256>>>(a, 1);", (4, 1, 1), (256, 1, 1)),
        ("k<<<BLOCKS, sizeof(double) * 8>>>(a, 1);", (12, 1, 1), (64, 1, 1)),
    ],
)
def test_launch_shapes_come_from_host_code(host: str, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    helpers = "#define BLOCKS (3 * 4)\nint up(int n, int d) { return (n + d - 1) / d; }\n"
    text = f"{helpers}{KERNEL}void f(float* a) {{ {host} }}"
    (launch,) = program(text).kernels[0].launches
    assert (launch.grid, launch.block, launch.basis) == (grid, block, Basis.EXACT)


@pytest.mark.parametrize(
    ("tune", "block"),
    [("int &t", None), ("int& t, int m = 0", None), ("const int &t", 128), ("int t", 128), ("int, int &m", 128)],
)
def test_a_block_that_a_function_may_change_by_reference_is_not_known(tune: str, block: int | None) -> None:
    text = f"{KERNEL}void tune({tune});\nvoid f(float* a, int m) {{ int t = 128; tune(t, m); k<<<8, t>>>(a, 9); }}"
    (launch,) = program(text).kernels[0].launches
    assert launch.basis is (Basis.EXACT if block else Basis.ASSUMED)
    assert block is None or launch.block == (block, 1, 1)


def test_a_shape_from_a_caller_and_one_from_outside() -> None:
    text = KERNEL + "void f(float* a, int t) { k<<<8, t>>>(a, 9); }\nvoid g(float* a) { f(a, 192); }"
    assert program(text).kernels[0].launches[0].block == (192, 1, 1)
    text = KERNEL + "void f(float* a, int t) { k<<<8, t>>>(a, 9); }"
    launch = program(text).kernels[0].launches[0]
    assert (launch.block, launch.basis) == ((256, 1, 1), Basis.ASSUMED)


def test_without_a_launch_the_shape_is_assumed_and_says_so() -> None:
    (launch,) = program(KERNEL).kernels[0].launches
    assert (launch.basis, launch.source) == (Basis.ASSUMED, "default")
    chosen = analyze(Source("a.cu", KERNEL.encode()), assume=Assumptions(block=(64, 4, 1)))
    assert (chosen.kernels[0].launches[0].block, chosen.kernels[0].launches[0].source) == ((64, 4, 1), "settings")
    bounded = program(KERNEL.replace("void k", "void __launch_bounds__(512) k"))
    assert bounded.kernels[0].launches[0].block == (512, 1, 1)


def test_a_kernel_in_a_header_gets_the_launch_of_the_file_that_includes_it() -> None:
    files = {"k.cuh": Source("k.cuh", KERNEL.encode())}
    main = Source("main.cu", b'#include "k.cuh"\nvoid f(float* a) { k<<<2, 96>>>(a, 192); }')
    found = analyze(main, lambda _from, name: files.get(name))
    (kernel,) = found.defined_kernels
    assert (kernel.source.path, kernel.launches[0].block, kernel.launches[0].source) == (
        "k.cuh",
        (96, 1, 1),
        "main.cu:2",
    )


def test_an_include_cycle_ends() -> None:
    files = {
        name: Source(name, b'#include "a.cuh"\n#include "b.cuh"\n' + KERNEL.encode()) for name in ("a.cuh", "b.cuh")
    }
    assert len(analyze(files["a.cuh"], lambda _from, name: files.get(name)).kernels) == 2


@pytest.mark.parametrize(
    ("after", "checked"),
    [
        ("", False),
        ("cudaDeviceSynchronize();", False),
        ("CHECK(cudaDeviceSynchronize());", False),
        ("cudaError_t e = cudaGetLastError(); if (e) return;", True),
        ("CHECK(cudaGetLastError());", True),
        ("cudaGetLastError();", False),
        ("checkKernel();", True),
        ("C10_CUDA_KERNEL_LAUNCH_CHECK();", True),
    ],
)
def test_whether_a_launch_is_checked(after: str, checked: bool) -> None:
    text = KERNEL + "#define CHECK(x) do { cudaError_t e = (x); if (e) abort(); } while (0)\n"
    text += f"void f(float* a) {{ k<<<1, 32>>>(a, 1); {after} }}"
    assert program(text).kernels[0].launches[0].checked is checked


def test_a_launch_in_a_lambda_is_not_an_argument_and_one_in_a_checking_macro_is() -> None:
    dispatch = KERNEL + "void f(float* a) { AT_DISPATCH(t, [&] { k<<<1, 32>>>(a, 1); }); }"
    assert not program(dispatch).kernels[0].launches[0].checked
    wrapped = KERNEL + "void f(float* a) { LAUNCH_AND_CHECK((k<<<1, 32>>>(a, 1))); }"
    assert program(wrapped).kernels[0].launches[0].checked


@pytest.mark.parametrize(
    ("body", "divergent", "basis"),
    [
        ("__syncthreads();", False, Basis.EXACT),
        ("if (threadIdx.x < 16) __syncthreads();", True, Basis.EXACT),
        ("if (threadIdx.x < 64) __syncthreads();", True, Basis.EXACT),
        ("if (blockIdx.x == 0) __syncthreads();", False, Basis.EXACT),
        ("if (threadIdx.x >= 96) return; __syncthreads();", False, Basis.EXACT),
        ("for (int i = 0; i < 9; i++) __syncthreads();", False, Basis.EXACT),
        ("for (int i = threadIdx.x; i < 100; i += 128) __syncthreads();", True, Basis.EXACT),
        ("if (a[threadIdx.x] > 0) __syncthreads();", True, Basis.DATA_DEPENDENT),
        ("if (a[0] > 0) __syncthreads();", False, Basis.EXACT),
        ("if (blockIdx.x * 128 + threadIdx.x < n) __syncthreads();", True, Basis.ASSUMED),
        ("if (blockIdx.x * 128 + threadIdx.x < (n + 127) / 128 * 128) __syncthreads();", False, Basis.EXACT),
        ("for (int i = threadIdx.x; i < n; i += 128) __syncthreads();", True, Basis.ASSUMED),
        ("if (n > 3) __syncthreads();", False, Basis.EXACT),
    ],
)
def test_barriers(body: str, divergent: bool, basis: Basis) -> None:
    text = f"__global__ void k(float* a, int n) {{ {body} }}\nvoid f(float* a, int n) {{ k<<<64, 128>>>(a, n); }}"
    (barrier,) = program(text).kernels[0].barriers
    assert (barrier.divergent, barrier.basis) == (divergent, basis)


@pytest.mark.parametrize(
    ("condition", "divergence", "share"),
    [
        ("threadIdx.x % 2", Divergence.EVERY_WARP, 1.0),
        ("threadIdx.x / 32 % 2", Divergence.UNIFORM, 0.0),
        ("threadIdx.x < 40", Divergence.PARTIAL, 0.25),
        ("blockIdx.x * 128 + threadIdx.x < 8100", Divergence.BOUNDARY, 0.0039),
        ("a[threadIdx.x] > 0", Divergence.DATA_DEPENDENT, None),
        ("a[blockIdx.x] > 0", Divergence.UNIFORM, 0.0),
    ],
)
def test_branches(condition: str, divergence: Divergence, share: float | None) -> None:
    text = f"__global__ void k(float* a) {{ if ({condition}) a[0] = 1; }}\nvoid f(float* a) {{ k<<<64, 128>>>(a); }}"
    (branch,) = program(text).kernels[0].branches
    assert (branch.divergence, branch.warps_diverging) == (divergence, share)


def test_an_uneven_block_counts_its_short_last_warp() -> None:
    text = "__global__ void k(float* a) { a[threadIdx.x] = 1; }\nvoid f(float* a) { k<<<1, dim3(17, 13)>>>(a); }"
    (store,) = program(text).kernels[0].accesses
    assert store.requests == 7
    assert store.active_lanes == round(221 / 7, 2)


def test_each_block_shape_is_counted_on_its_own() -> None:
    text = "__global__ void k(float* a) { a[threadIdx.y * 64 + threadIdx.x] = 1; }\n"
    text += "void f(float* a) { k<<<1, dim3(32, 8)>>>(a); k<<<2, dim3(8, 8)>>>(a); k<<<3, dim3(32, 8)>>>(a); }"
    kernel = program(text).kernels[0]
    assert [(a.launch, a.sectors_per_request) for a in kernel.accesses] == [(0, 4.0), (1, 4.0)]
    assert len(kernel.launches) == 3


@pytest.mark.parametrize(
    ("edit", "with_text"),
    [
        ("tile[threadIdx.x]", "tile[threadIdx.y]"),
        ("#define N 32", "#define N 33\n\n"),
        ("k<<<4, 32>>>", "k<<<4, 96>>>"),
    ],
)
def test_facts_kept_over_an_edit_are_those_of_a_fresh_look(edit: str, with_text: str) -> None:
    text = (
        "#define N 32\n__device__ int at(int i) { return i * N; }\n"
        "__global__ void first(float* a) { __shared__ float tile[N][N]; tile[threadIdx.x][0] = a[at(threadIdx.x)]; }\n"
        "__global__ void k(float* a) { __syncthreads(); if (threadIdx.x < 3) a[at(2)] = 1; }\n"
        "void f(float* a) { first<<<1, 32>>>(a); k<<<4, 32>>>(a); }\n"
    )
    cache = KernelCache()
    source = Source("a.cu", text.encode())
    analyze(source, cache=cache)
    at = text.index(edit)
    edited = source.edited([TextEdit(at, at + len(edit), with_text)])
    assert facts_document([analyze(edited, cache=cache)]) == facts_document([analyze(Source("a.cu", edited.data))])


def test_an_edit_elsewhere_is_a_hit() -> None:
    cache = KernelCache()
    source = Source("a.cu", (KERNEL + "// end").encode())
    before = analyze(source, cache=cache).kernels[0].accesses
    after = analyze(source.edited([TextEdit(0, 0, "// start\n")]), cache=cache).kernels[0].accesses
    assert before and [id(access.lanes) for access in after] == [id(access.lanes) for access in before]


def test_a_built_in_vector_is_a_struct_of_run_time_numbers() -> None:
    text = "__global__ void k(float* out, int2 size) { if (threadIdx.x < size.x) out[threadIdx.x * size.y] = 0; }"
    (kernel,) = program(text).kernels
    assert (kernel.branches[0].divergence, kernel.branches[0].warps_diverging) == (Divergence.UNIFORM, 0.0)
    (store,) = kernel.accesses
    assert (store.basis, store.sectors_per_request) == (Basis.ASSUMED, 32.0)


def test_a_kernel_that_is_being_written_has_facts() -> None:
    text = "__global__ void k(float* a) { __shared__ float t[32][32]; a[0] = t[threadIdx.x][0"
    (kernel,) = program(text).defined_kernels
    assert [(a.expression, a.wavefronts_per_request) for a in kernel.accesses if a.array == "t"] == [
        ("t[threadIdx.x][0", 32.0)
    ]


@pytest.mark.parametrize(
    "declared", ["float (*a)[64]", "float a[][64]", "float a[64][64]", "const float (* __restrict__ a)[64]"]
)
def test_a_pointer_to_an_array_is_no_array_of_pointers(declared: str) -> None:
    (kernel,) = program(f"__global__ void k({declared}, float* b) {{ b[threadIdx.x] = a[threadIdx.x][3]; }}").kernels
    (row,) = (access for access in kernel.accesses if access.array == "a")
    assert (row.expression, row.bytes, row.sectors_per_request) == ("a[threadIdx.x][3]", 4, 32.0)


def test_a_local_pointer_to_rows_is_followed() -> None:
    body = "__shared__ float t[32][32]; float (*p)[32] = t; b[threadIdx.x] = p[threadIdx.x][5];"
    text = f"__global__ void k(float* b) {{ {body} }}"
    (kernel,) = program(text).kernels
    (column,) = (access for access in kernel.accesses if access.array == "t")
    assert (column.expression, column.wavefronts_per_request) == ("p[threadIdx.x][5]", 32.0)


LAUNCHERS = r"""
template <class T, int N> __global__ void k(T* a, int n) { a[N * threadIdx.x] = n; }
#define LAUNCH(KERNEL, T, N, ...) KERNEL<T, N><<<grid, block>>>(__VA_ARGS__)
#define PICK(n, a) do { dim3 block(64); \
    if (n >= 128) { LAUNCH(k, float, 2, a, n); } else { LAUNCH(k, float, 4, a, n); } } while (0)
#define DEFINE(NAME) void NAME(float* a, int grid) { dim3 block(32); LAUNCH(k, double, 1, a, 5); }
"""


@pytest.mark.parametrize(
    "host, block, sectors",
    [
        ("void f(float* a) { int grid = 2, block = 96; LAUNCH(k, float, 1, a, 3); }", (96, 1, 1), [4.0]),
        ("void f(float* a) { int grid = 2, n = 32; PICK(n, a); }", (64, 1, 1), [16.0]),
        ("void f(float* a, int n) { int grid = 2; PICK(n, a); }", (64, 1, 1), [8.0]),
        (
            "void f(float* a) { int grid = 2, n = 256; "
            "switch (n) { case 32: PICK(32, a); break; case 256: PICK(n, a); } }",
            (64, 1, 1),
            [8.0],
        ),
        ("DEFINE(f)\nvoid g(float* a) { f(a, 2); }", (32, 1, 1), [8.0]),
    ],
)
def test_a_launch_in_a_macro_is_read_where_the_macro_is_used(
    host: str, block: tuple[int, ...], sectors: list[float]
) -> None:
    (kernel,) = program(LAUNCHERS + host).kernels
    launches = [kernel.launches[a.launch] for a in kernel.accesses]
    assert [a.sectors_per_request for a in kernel.accesses] == sectors
    assert {(launch.grid, launch.block, launch.basis) for launch in launches} == {((2, 1, 1), block, Basis.EXACT)}
    spans = [launch.span for launch in kernel.launches]
    assert all(span is not None and span.text in host and "<<<" not in span.text for span in spans)


def test_macros_that_launch_by_one_another_have_an_end() -> None:
    doubling = "\n".join(f"#define M{i}(a) M{i + 1}(a); M{i + 1}(a)" for i in range(30))
    text = f"{KERNEL}{doubling}\n#define M30(a) k<<<1, 32>>>(a, 1); M0(a)\nvoid f(float* a) {{ M0(a); }}"
    assert len(program(text).kernels[0].launches) <= 200


@pytest.mark.parametrize(
    "host",
    [
        "void f(float* a) { s<<<8, 64>>>(a, 1); s<<<8, 64>>>(a, 8); }",
        "void f(float* a) { s<<<8, 64>>>(a, 1); for (int i = 1; i <= 15; i++) s<<<8, 64>>>(a, i); }",
        "void f(float* a) { for (int i = 1; 64 >= i; i *= 2) s<<<8, 64>>>(a, i); }",
    ],
)
def test_launches_that_pass_other_numbers_are_looked_at(host: str) -> None:
    (kernel,) = program("__global__ void s(float* a, int n) { a[threadIdx.x * n] = 1; }\n" + host).kernels
    assert [a.sectors_per_request for a in kernel.accesses] == [4.0, 32.0]
    assert {kernel.launches[a.launch].basis for a in kernel.accesses} == {Basis.EXACT}


def test_other_numbers_that_change_no_count_are_said_once() -> None:
    host = "void f(float* a) { for (int i = 1; i < 9; i++) s<<<8, 64>>>(a, i); }"
    (kernel,) = program("__global__ void s(float* a, int n) { a[threadIdx.x] = n; }\n" + host).kernels
    assert [a.sectors_per_request for a in kernel.accesses] == [4.0]


@pytest.mark.parametrize(
    "host, basis, threads",
    [
        ("static int t = 0; void g() { t = 512; } void f(float* a) { k<<<1, t>>>(a, t); }", Basis.ASSUMED, 256),
        ("int t = 0; void g() { read(&t); } void f(float* a) { k<<<1, t>>>(a, t); }", Basis.ASSUMED, 256),
        ("int t = 96; void f(float* a) { k<<<1, t>>>(a, t); }", Basis.EXACT, 96),
        ("void f(float* a) { int t = 96; read(&t); k<<<1, t>>>(a, t); }", Basis.ASSUMED, 96),
        ("void f(float* a) { int t = 96; cudaMemcpy(a, &t, 4, kind); k<<<1, t>>>(a, t); }", Basis.EXACT, 96),
        ("void f(float* a) { int t = 0; read(&t); t = 96; k<<<1, t>>>(a, t); }", Basis.EXACT, 96),
        ("void f(float* a, int c) { int t = 96; if (c > 1) t = read(); k<<<1, t>>>(a, t); }", Basis.ASSUMED, 96),
        ("void f(float* a, int c) { int t = 0; if (c > 1) t = read(); k<<<1, t>>>(a, t); }", Basis.ASSUMED, 256),
        ("struct P { int t = 0; }; void f(float* a, P p) { k<<<1, p.t>>>(a, p.t); }", Basis.ASSUMED, 256),
    ],
)
def test_a_variable_that_is_written_elsewhere_is_at_most_likely(host: str, basis: Basis, threads: int) -> None:
    (launch,) = program(KERNEL + host).kernels[0].launches
    assert (launch.basis, launch.threads) == (basis, threads)


def test_a_host_template_has_its_default_arguments() -> None:
    host = "template <class T, int N, int TWICE = 2 * N> void run(T* a) { k<<<N, TWICE>>>(a, 9); }\n"
    (launch,) = program(KERNEL + host + "void f(float* a) { run<float, 64>(a); }").kernels[0].launches
    assert (launch.grid, launch.block, launch.basis) == ((64, 1, 1), (128, 1, 1), Basis.EXACT)


def test_a_merged_store_is_shown_at_the_address_of_the_whole() -> None:
    text = """
        __global__ void k(float *o) {
            __shared__ float s[512];
            int t = threadIdx.x;
            s[4 * t] = 1; s[4 * t + 1] = 2; s[4 * t + 2] = 3; s[4 * t + 3] = 4;
            __syncthreads();
            o[t] = s[t];
        }
        void f(float *o) { k<<<1, 128>>>(o); }
    """
    stores = [a for a in program(text).kernels[0].accesses if a.array == "s" and a.kind is AccessKind.STORE]
    assert [(a.expression, a.bytes, a.joined) for a in stores if not a.joined] == [("s[4 * t + 3]", 16, False)]
    (lead,) = [a for a in stores if not a.joined]
    assert lead.lanes is not None
    assert lead.lanes.addresses == tuple(16 * lane for lane in range(32))


def test_an_unnamed_type_makes_no_member_of_a_free_function() -> None:
    text = "enum : unsigned long long { BIT = 1 };\n__global__ void k(float* x) { x[threadIdx.x] = 1; }\n"
    assert [kernel.name for kernel in analyze(Source("a.cu", text.encode())).defined_kernels] == ["k"]


@pytest.mark.parametrize(
    ("step", "swept"), [("b *= 2", ((32, 1, 1), (1024, 1, 1), 6)), ("b += 1", ((32, 1, 1), None, 0))]
)
def test_a_sweep_of_more_blocks_than_are_followed_has_no_end_that_is_known(
    step: str, swept: tuple[object, ...]
) -> None:
    host = f"for (int b = 32; b <= 1024; {step}) k<<<1, b>>>(x);"
    (kernel,) = program(f"__global__ void k(float *x) {{ x[threadIdx.x] = 1; }}\nvoid f(float *x) {{ {host} }}").kernels
    sweeps = {launch.sweep for launch in kernel.launches}
    assert [(each.first, each.last, each.count) for each in sweeps if each is not None] == [swept]
