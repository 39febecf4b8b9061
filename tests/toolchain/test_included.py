"""A changed file is compiled wherever the text includes it: directly, through others, and from other folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Ending
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.included import IncludeError, included_files, with_changed


def project(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_h", ".h")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_files_on_the_way_are_copied_and_others_named_where_they_are(tmp_path: Path) -> None:
    project(tmp_path, sub__scale_h='#include "one.h"\nint x;\n', sub__one_h="int one;\n", all_h="#include <scale.h>\n")
    changed = Source(str(tmp_path / "sub" / "scale.h"), b'#include "one.h"\nint y;\n')
    main = Source(str(tmp_path / "main.cu"), b'#include <cstdio>\n#include "all.h"\n').including(changed)
    text, copies = with_changed(main, [str(tmp_path / "sub")])
    assert text == b'#include <cstdio>\n#include "included_0.h"\n'
    scale, everything = sorted(copies.values(), key=len, reverse=True)
    assert scale.endswith(f'#include "{tmp_path}/sub/one.h"\nint y;\n'.encode())
    assert everything == f'#line 1 "{tmp_path}/all.h"\n#include "included_1.h"\n'.encode()


def test_nothing_is_copied_for_a_file_that_is_not_included(tmp_path: Path) -> None:
    main = Source(str(tmp_path / "main.cu"), b'#include "a.h"\n')
    assert with_changed(main.including(Source(str(tmp_path / "b.h"), b"int b;")), ()) == (main.data, {})


def test_an_include_by_macro_is_refused(tmp_path: Path) -> None:
    project(tmp_path, a_h="int a;\n")
    main = Source(str(tmp_path / "main.cu"), b'#include "a.h"\n#define B "a.h"\n#include B\n')
    with pytest.raises(IncludeError, match=r"main.cu:3 includes is named by a macro"):
        with_changed(main.including(Source(str(tmp_path / "a.h"), b"int b;")), ())


def test_files_are_followed_up_and_down(tmp_path: Path) -> None:
    project(
        tmp_path, sub__a_h='#include "../b.h"\n#include <vector>\n', b_h='#include "sub/a.h"\n#include "missing.h"\n'
    )
    main = Source(str(tmp_path / "sub" / "main.cu"), b'#include "a.h"\n')
    assert included_files(main, ()) == [str(tmp_path / "sub" / "a.h"), str(tmp_path / "b.h")]


@pytest.mark.nvcc
def test_the_changed_text_is_compiled_under_its_own_name(tmp_path: Path) -> None:
    project(tmp_path, k_h="#pragma once\n__global__ void k(int *a) { a[0] = 1; }\n")
    main = Source(str(tmp_path / "main.cu"), b'#include "k.h"\n#include "k.h"\nvoid run(int *a) { k<<<1, 1>>>(a); }\n')
    broken = Source(str(tmp_path / "k.h"), b"#pragma once\n__global__ void k(int *a) {\n  a[0] = one; }\n")
    compiled = compile_cubin(main.including(broken))
    assert compiled.ending is Ending.ERRORS
    assert "k.h:3" in compiled.reason
    assert compile_cubin(main).ok
