"""`warpwright fix`: only verified edits, and never a lost one."""

from __future__ import annotations

import json
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest
from cli.kernels import CLEAN, CONFLICT, UNCHECKED
from support.command import run_command

pytestmark = pytest.mark.nvcc

PADDED = CONFLICT.replace("tile[32][32]", "tile[32][33]")


def test_a_diff_is_shown_and_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    ran = run_command("fix", "a.cu", cwd=tmp_path)
    assert ran.status == 0
    trying = next(line for line in ran.stderr.splitlines() if not line.startswith(" "))
    assert trying == "trying   a.cu:5: bank-conflict: Pad the rows of tile by 1 element"
    assert "fixed    a.cu:5: bank-conflict" in ran.stderr
    assert (tmp_path / "a.cu").read_text(encoding="utf-8") == CONFLICT
    subprocess.run(["patch", "-p1"], cwd=tmp_path, input=ran.stdout, text=True, check=True, capture_output=True)
    assert run_command("check", "a.cu", cwd=tmp_path).status == 0


def test_write(tmp_path: Path) -> None:
    """Bytes that no fix touches stay as they are: an invalid one, a missing line end; and so do permissions."""
    path = tmp_path / "a.cu"
    path.write_bytes(b"// caf\xe9\n" + CONFLICT.rstrip("\n").encode())
    path.chmod(0o600)
    ran = run_command("fix", "a.cu", "--write", cwd=tmp_path)
    assert (ran.status, ran.stdout) == (0, "")
    after = path.read_bytes()
    assert after.startswith(b"// caf\xe9\n") and after.endswith(b"\n}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run_command("check", "a.cu", cwd=tmp_path).status == 0


def test_every_finding_of_a_file_in_one_go(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT + UNCHECKED.replace("void launch", "void other"), encoding="utf-8")
    ran = run_command("fix", "a.cu", "--write", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert "2 fixed, 0 refused" in ran.stderr
    assert run_command("check", "a.cu", "--format", "json", cwd=tmp_path).json == []


@pytest.mark.slow
def test_a_file_that_another_one_includes(tmp_path: Path) -> None:
    """It would not compile alone: `SIZE` is the other's."""
    at = CONFLICT.index("void launch")
    (tmp_path / "tile.cu").write_text(CONFLICT[:at].replace("[32][32]", "[SIZE][SIZE]"), encoding="utf-8")
    main = '#define SIZE 32\n#include "tile.cu"\n' + CONFLICT[at:]
    (tmp_path / "main.cu").write_text(main, encoding="utf-8")
    (row,) = run_command("check", "tile.cu", "--format", "json", cwd=tmp_path).json
    assert (row["file"], row["rule"], bool(row["fixes"])) == ("tile.cu", "bank-conflict", True)
    assert run_command("check", ".", "--format", "json", cwd=tmp_path).json == [row]
    ran = run_command("fix", "tile.cu", "--write", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert "[SIZE][SIZE + 1]" in (tmp_path / "tile.cu").read_text(encoding="utf-8")
    assert (tmp_path / "main.cu").read_text(encoding="utf-8") == main


def test_only_the_rules_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    ran = run_command("fix", "a.cu", "--rule", "unchecked-launch", "--write", cwd=tmp_path)
    assert ran.status == 0
    assert "no finding here has a fix" in ran.stderr
    assert (tmp_path / "a.cu").read_text(encoding="utf-8") == CONFLICT


def test_json(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (tmp_path / "b.cu").write_text(CLEAN, encoding="utf-8")
    ran = run_command("fix", ".", "--format", "json", cwd=tmp_path)
    assert ran.status == 0
    first, second = ran.json
    assert (first["file"], second["file"], second["fixes"], second["diff"]) == ("a.cu", "b.cu", [], "")
    (fix,) = first["fixes"]
    assert (fix["line"], fix["rule"], fix["rewrite"], fix["applied"]) == (5, "bank-conflict", "pad-shared-array", True)
    assert "re-analysed" in fix["report"]["levels"]
    assert fix["report"]["compile"]["registers"] > 0


def test_a_file_that_does_not_compile_is_refused_and_kept(tmp_path: Path) -> None:
    broken = CONFLICT.replace("void launch", "int wrong = undeclared;\nvoid launch")
    (tmp_path / "a.cu").write_text(broken, encoding="utf-8")
    ran = run_command("fix", "a.cu", "--write", cwd=tmp_path)
    assert ran.status == 1
    assert "refused  a.cu:5: bank-conflict" in ran.stderr
    assert "undeclared" in ran.stderr
    assert (tmp_path / "a.cu").read_text(encoding="utf-8") == broken


def test_a_half_written_kernel_is_kept(tmp_path: Path) -> None:
    half = CONFLICT[: CONFLICT.index("}")]
    (tmp_path / "a.cu").write_text(half, encoding="utf-8")
    ran = run_command("fix", "a.cu", "--write", cwd=tmp_path)
    assert ran.status in (0, 1)
    assert (tmp_path / "a.cu").read_text(encoding="utf-8") == half


def test_one_bad_input_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    ran = run_command("fix", "none.cu", "a.cu", "--write", cwd=tmp_path)
    assert ran.status == 2
    assert "error: none.cu: no such file" in ran.stderr
    assert (tmp_path / "a.cu").read_text(encoding="utf-8") != CONFLICT


def test_without_a_compiler_nothing_is_offered(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    ran = run_command("fix", "a.cu", "--write", cwd=tmp_path, env={"WARPWRIGHT_NVCC": "/nowhere/nvcc"})
    assert ran.status == 2
    assert "fixes cannot be verified. WARPWRIGHT_NVCC names /nowhere/nvcc, which does not exist." in ran.stderr
    assert (tmp_path / "a.cu").read_text(encoding="utf-8") == CONFLICT


def test_a_file_that_changes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """The user's next edit is saved, as an editor would, once the compiler has begun to verify the fix."""
    path, cache = tmp_path / "a.cu", tmp_path / "cache"
    path.write_text(CONFLICT, encoding="utf-8")

    def save() -> None:
        deadline = time.monotonic() + 60
        while not any(cache.rglob("source.cu")) and time.monotonic() < deadline:
            time.sleep(0.01)
        path.write_text(f"{CONFLICT}// mine\n", encoding="utf-8")

    user = threading.Thread(target=save)
    user.start()
    ran = run_command("fix", "a.cu", "--write", cwd=tmp_path, env={"WARPWRIGHT_CACHE_DIR": str(cache)})
    user.join()
    assert ran.status == 2
    assert "changed on disk while it was being fixed; nothing was written to it" in ran.stderr
    assert path.read_text(encoding="utf-8") == f"{CONFLICT}// mine\n"


def test_a_compiler_that_breaks_verifies_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    fake = tmp_path / "nvcc"
    fake.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) echo "Cuda compilation tools, release 13.0, V13.0.88";;\n'
        "*) kill -SEGV $$;; esac\n",
        encoding="utf-8",
    )
    fake.chmod(0o755)
    ran = run_command("fix", "a.cu", "--write", cwd=tmp_path, env={"WARPWRIGHT_NVCC": str(fake)})
    assert ran.status == 2
    assert "refused  a.cu:5: bank-conflict" in ran.stderr
    assert (tmp_path / "a.cu").read_text(encoding="utf-8") == CONFLICT


TWICE = """\
__global__ void rowsum(const float *in, float *out, int n) {
    int r = threadIdx.x, c = threadIdx.y;
    out[r * n + c] = in[r * n + c] * 2.0 + in[r * n + c];
}
void launch(float *a, float *b, int n) {
    rowsum<<<1, dim3(32, 8)>>>(a, b, n);
    if (cudaGetLastError() != cudaSuccess) return;
}
"""


def test_a_refusal_is_told_once_though_its_line_was_fixed_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(TWICE, encoding="utf-8")
    ran = run_command("fix", "a.cu", "--unsafe", cwd=tmp_path)
    said = [line.partition(":")[2] for line in ran.stderr.splitlines() if line.startswith(("fixed", "refused"))]
    assert any("double-precision-literal" in line for line in said)
    assert len(said) == len(set(said))


@pytest.mark.slow
def test_macros_and_folders_reach_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "size.h").write_text("#define ROWS SIDE\n", encoding="utf-8")
    text = '#include "size.h"\n' + CONFLICT.replace("tile[32][32]", "tile[ROWS][ROWS]")
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    assert "no finding here has a fix" in run_command("fix", "a.cu", cwd=tmp_path).stderr
    ran = run_command("fix", "a.cu", "-DSIDE=32", "-I", "below", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert "bank-conflict" in ran.stderr


def test_edits_of_host_code_are_verified_at_once(tmp_path: Path) -> None:
    kernel = "__global__ void one(float *x) { x[threadIdx.x] = 1.0f; }\n"
    host = "".join(f"void run{n}(float *x) {{ one<<<1, 32>>>(x); }}\n" for n in range(3))
    (tmp_path / "a.cu").write_text(f"#include <cstdlib>\n{kernel}{host}", encoding="utf-8")
    ran = run_command("fix", "a.cu", "--format", "json", cwd=tmp_path)
    made = [each for each in ran.json[0]["fixes"] if each["applied"]]
    assert len(made) == 3 and all(each["report"] == made[0]["report"] for each in made)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("option", "most", "after"),
    [
        ("--expt-relaxed-constexpr", "std::max(x[threadIdx.x], y)", ""),
        (
            "--extended-lambda",
            "y",
            "void twice(float *x) { each<<<1, 32>>>(x, [] __device__(float v) { return 2 * v; }); }",
        ),
    ],
)
def test_an_option_that_nvcc_asks_for_is_given_to_both(tmp_path: Path, option: str, most: str, after: str) -> None:
    text = f"""#include <algorithm>
__global__ void most(float *x, float y) {{ x[threadIdx.x] = {most}; }}
template <typename F> __global__ void each(float *x, F f) {{ x[threadIdx.x] = f(x[threadIdx.x]); }}
void run(float *x) {{ most<<<1, 32>>>(x, 1.0f); }}
{after}
"""
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    ran = run_command("fix", "a.cu", "--rule", "unchecked-launch", "--format", "json", cwd=tmp_path)
    made = ran.json[0]["fixes"][0]
    assert made["applied"] and option in json.dumps(made["report"])


def test_an_assertion_in_device_code_knows_its_line(tmp_path: Path) -> None:
    """What is inserted above it moves the line that it would print, and nothing else."""
    text = """#include <cassert>
__global__ void first(float *x) { x[threadIdx.x] = 1.0f; }
void run(float *x) { first<<<1, 32>>>(x); }
__global__ void second(float *x) { assert(x[threadIdx.x] > 0.0f); }
"""
    (tmp_path / "a.cu").write_text(text, encoding="utf-8")
    ran = run_command("fix", "a.cu", "--format", "json", cwd=tmp_path)
    assert [each["applied"] for each in ran.json[0]["fixes"]] == [True]
    assert "same device code" in ran.json[0]["fixes"][0]["report"]["backend"]
