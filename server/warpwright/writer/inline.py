"""A package of PyTorch in one Python file, which torch's load_inline builds: for a quick try, or a notebook.

load_inline puts all C++ in one file and all CUDA in another, so each text gets a namespace of its own below the headers
of all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_INCLUDE = re.compile(r'#include ["<].*')


def inline_text(
    name: str, sources: Mapping[str, str], flags: str, python: Sequence[str], example: Sequence[str]
) -> str | None:
    """`sources` are those of the package by their names below csrc, `python` its Python but for what loads it,
    `example` what is run where the file is. None where the kernel's file includes others: one file cannot hold them."""
    given = [text for file, text in sources.items() if "/" in file]
    if len(given) > 1:
        return None
    cuda = _joined({file: text for file, text in sources.items() if file.endswith(".cu") and "/" not in file})
    cpp = _joined({file: text for file, text in sources.items() if file.endswith(".cpp")})
    lines = [
        f'"""{name} in one file, for a quick try: it is built when it is first imported or run, and kept by torch."""',
        "",
        "import torch",
        "from torch.utils.cpp_extension import load_inline",
        "",
        f"CUDA = {_quoted(chr(10).join((*given, cuda)))}",
        f"CPP = {_quoted(cpp)}",
        "",
        "load_inline(",
        f'    "{name}_inline",',
        "    cpp_sources=CPP,",
        "    cuda_sources=CUDA,",
        f"    extra_cuda_cflags={flags},",
        "    is_python_module=False,",
        "    no_implicit_headers=True,",
        ")",
        "",
        "",
        *python,
        "",
        "",
        'if __name__ == "__main__":',
        *(f"    {each}" for each in example),
    ]
    return "\n".join(lines) + "\n"


def _joined(texts: Mapping[str, str]) -> str:
    headers: dict[str, None] = {}
    rest: list[str] = []
    for file, text in texts.items():
        lines = text.splitlines()
        headers |= {line: None for line in lines if line.startswith("#include <")}
        own = [line for line in lines if not _INCLUDE.match(line)]
        rest += [f"namespace of_{file.partition('.')[0]} {{", *own, "}", ""]
    return "\n".join([*headers, "", *rest])


def _quoted(text: str) -> str:
    """As a literal of Python's that can be read.

    >>> print(_quoted("a\\\\n"))
    r'''
    a\\n
    '''
    """
    return json.dumps(text) if "'''" in text or text.endswith("\\") else f"r'''\n{text.strip(chr(10))}\n'''"
