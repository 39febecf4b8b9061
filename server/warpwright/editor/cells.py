"""Cells of a notebook that hold CUDA: those that begin with `%%cu`, `%%cuda` or `%%writefile kernel.cu`."""

from __future__ import annotations

import re

_MAGIC = re.compile(rb"%%(?:cu|cuda\w*|writefile[ \t]+(?:-a[ \t]+)?\S+\.cuh?)(?=\s|$)")


def cuda_of_cell(cell: bytes) -> bytes | None:
    """The CUDA in a cell, of the same length: the line that says what becomes of it is a comment. None of another cell.

    >>> cuda_of_cell(b"%%cu -O3\\nint x;"), cuda_of_cell(b"%%writefile a.py\\nx = 1")
    (b'//cu -O3\\nint x;', None)
    """
    return b"//" + cell[2:] if _MAGIC.match(cell) else None
