"""A kernel that another file of the project launches."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.elsewhere import in_project
from warpwright.syntax.source import include_reader, read_source

OWN = "__global__ void k(int *a) { a[0] = 1; }\nint main() { int *a; k<<<1, 1>>>(a); }\n"
OTHER = "extern __global__ void k(int *);\nvoid run(int *a) { k<<<1, 1>>>(a); }\n"


@pytest.mark.parametrize(
    ("own", "other", "said"),
    [
        (OWN, OTHER, "other.cu launches k, too"),
        (OWN, OTHER.replace("k<<<1, 1>>>(a)", "(void)a"), ""),
        (OWN, OWN, ""),
        (f"#include <cstdio>\n{OWN.replace('int main() {', 'void run() {')}", "", "k has external linkage"),
    ],
)
def test_the_files_of_its_project_are_looked_into(own: str, other: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "warpwright.toml").write_text("", encoding="utf-8")
    (tmp_path / "own.cu").write_text(own, encoding="utf-8")
    (tmp_path / "other.cu").write_text(other, encoding="utf-8")
    kernel = analyze(read_source(tmp_path / "own.cu")).kernel("k")
    assert kernel is not None
    assert in_project(kernel).launched_elsewhere.startswith(said)
    assert bool(in_project(kernel).launched_elsewhere) == bool(said)


def test_the_file_itself_is_no_other(tmp_path: Path) -> None:
    (tmp_path / "k.cuh").write_text(OWN.partition("int main")[0], encoding="utf-8")
    (tmp_path / "own.cu").write_text(f'#include "k.cuh"\nint main{OWN.partition("int main")[2]}', encoding="utf-8")
    kernel = analyze(read_source(tmp_path / "own.cu"), include_reader({})).kernel("k")
    assert kernel is not None
    assert kernel.node is not None
    assert in_project(kernel).launched_elsewhere == ""
