"""Hostile and careless text, given to the real compiler: it reads nothing that is not the project's, runs nothing, and
ends in time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from warpwright.sandbox.confine import Confined, Policy
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled, Ending
from warpwright.toolchain.compile import compile_cubin
from warpwright.verify.report import Report, Status
from warpwright.verify.verify import verify

pytestmark = pytest.mark.nvcc

KERNEL = """__global__ void k(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 2 * a[i];
}
"""
LAUNCH = "void f(float* a, int n) { k<<<(n + 255) / 256, 256>>>(a, n); }\n"
HONEST = KERNEL + LAUNCH
SECRET = "warpwright_test_secret"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a header, and a secret beside it that is not its."""
    (tmp_path / "secret.h").write_text(f"int {SECRET};\n#error {SECRET}\n")
    folder = tmp_path / "project"
    (folder / "include").mkdir(parents=True)
    (folder / "src").mkdir()
    (folder / ".git").mkdir()
    (folder / "include" / "own.h").write_text("#define TWO 2\n")
    return folder


def confines_reading() -> bool:
    confined = Confined(["true"], Policy(), environment={}, output=1)
    try:
        return any("Landlock" in each for each in confined.in_force())
    finally:
        confined.kill()


def compiled(project: Path, text: str, timeout: float = 60.0) -> Compiled:
    """The text compiled as a candidate is."""
    source = Source(str(project / "src" / "a.cu"), text.encode())
    return compile_cubin(source, timeout=timeout, reads=(str(project),))


def verified(project: Path, candidate: str) -> Report:
    path = str(project / "src" / "a.cu")
    return verify(Source(path, HONEST.encode()), Source(path, candidate.encode()), backend="emulator")


@pytest.mark.parametrize("name", ["/etc/passwd", "../../secret.h", "../../../../../../../../etc/hostname"])
@pytest.mark.parametrize("quotes", ['""', "<>"])
def test_an_include_from_outside_the_project_is_unsafe(name: str, quotes: str, project: Path) -> None:
    report = verified(project, f"#include {quotes[0]}{name}{quotes[1]}\n{HONEST}")
    assert report.status is Status.UNSAFE
    assert report.reason == (
        f"The candidate includes {name}, which lies outside its project and the compiler's own folders."
    )


def test_what_the_project_includes_is_no_matter(project: Path) -> None:
    text = f'#include "../include/own.h"\n#include <cuda_fp16.h>\n#include <cstdint>\n{HONEST.replace("2 *", "TWO *")}'
    assert verified(project, text).status is Status.CORRECT


@pytest.mark.parametrize(
    "text",
    [
        '#define FILE_NAME "{secret}"\n#include FILE_NAME\n',
        '%:include "{secret}"\n',
        '#inc\\\nlude "{secret}"\n',
        '#/* */include "{secret}"\n',
        '#include_next "{secret}"\n',
        '#import "{secret}"\n',
        'const char bytes[] = {{\n#embed "{secret}"\n}};\n',
        '#pragma GCC dependency "{secret}"\n',
        'asm(".incbin \\"{secret}\\"");\n',
        '__device__ void d() {{ asm(".incbin \\"{secret}\\""); }}\n',
        '__device__ void d() {{ asm(".include \\"{secret}\\""); }}\n',
    ],
    ids=["macro", "digraph", "continued", "comment", "next", "import", "embed", "pragma", "incbin", "device", "ptx"],
)
def test_no_other_spelling_reads_a_file_of_somebody_else(text: str, project: Path) -> None:
    if not confines_reading():
        pytest.skip("this kernel has no Landlock")
    secret = project.parent / "secret.h"
    made = compiled(project, text.format(secret=secret) + HONEST)
    assert not [m for m in made.messages if SECRET in m.text]
    assert SECRET not in made.reason
    if made.cubin is not None:
        assert SECRET.encode() not in made.cubin.read_bytes()
    report = verified(project, text.format(secret=secret) + HONEST)
    assert report.status in (Status.UNSAFE, Status.DOES_NOT_COMPILE, Status.NOT_RUN, Status.CORRECT)
    assert SECRET not in str(report.to_json())


def test_host_code_is_never_run(project: Path) -> None:
    ran = project / "ran"
    text = f"""#include <cstdlib>
struct Starts {{ Starts() {{ system("touch {ran}"); }} }} starts;
__attribute__((constructor)) void first() {{ system("touch {ran}"); }}
static int at_start = system("touch {ran}");
{HONEST}"""
    assert verified(project, text).status is Status.CORRECT
    assert not ran.exists()


BOMBS = {
    "templates": """
template <int N, int M> struct Tree {
    static const int value = Tree<N - 1, 2 * M>::value + Tree<N - 1, 2 * M + 1>::value;
};
template <int M> struct Tree<0, M> { static const int value = M; };
__device__ int bomb = Tree<26, 0>::value;
""",
    "macros": "\n".join(
        ["#define A0 x", *(f"#define A{n + 1} {' '.join([f'A{n}'] * 10)}" for n in range(10)), "A10\n"]
    ),
    "constant expressions": """
constexpr unsigned long long spin(unsigned long long n) { unsigned long long s = 0; for (; n; n--) s += n; return s; }
__device__ unsigned long long bomb = spin(1ull << 60);
""",
    "unrolling": """
__global__ void bomb(float* a) {
#pragma unroll
    for (int i = 0; i < 100000; i++)
#pragma unroll
        for (int j = 0; j < 100000; j++) a[i * j] += a[i] * a[j] + sinf(a[i]);
}
""",
    "memory": "__device__ char bomb[1ull << 40];\n__device__ char other[1ull << 33] = {1};\n",
    "flood": """
#pragma message "a line of many, many lines that nobody has asked for and that nobody is ever going to read through"
#if __INCLUDE_LEVEL__ < 20
#include "flood.h"
#include "flood.h"
#endif
""",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BOMBS)
def test_a_compile_bomb_ends_in_a_sentence_and_harms_nobody(name: str, project: Path) -> None:
    (project / "src" / "flood.h").write_text(BOMBS["flood"])
    started = time.monotonic()
    made = compiled(project, BOMBS[name] + HONEST, timeout=4.0)
    assert time.monotonic() - started < 60
    assert made.ending in (Ending.TIMEOUT, Ending.ERRORS, Ending.BROKEN, Ending.COMPILED)
    assert made.ok or made.reason.endswith(".")
    assert made.ending is not Ending.COMPILED or name in ("memory", "unrolling")
    assert not list((project.parent / "cache" / "compilations" / "building").iterdir())
    assert compiled(project, HONEST).ok


def test_one_hash_is_one_folder_and_another_question_another(project: Path) -> None:
    first = compiled(project, HONEST)
    source = Source(str(project / "src" / "a.cu"), HONEST.encode())
    others = [
        compile_cubin(source, reads=(str(project),), arch="sm_80"),
        compile_cubin(source, reads=(str(project),), flags=("-DX",)),
        compiled(project, HONEST + "\n"),
    ]
    folders = {made.cubin.parent for made in (first, *others) if made.cubin is not None}
    assert len(folders) == 4
    assert compiled(project, HONEST).cubin == first.cubin
