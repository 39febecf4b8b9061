"""A formula as a single header: everything in it may be included by several files of one program."""

from __future__ import annotations

import re

from warpwright.writer.code import Code
from warpwright.writer.write import file_text

_KERNEL = re.compile(r"(?m)(?<!>\n)^__global__")
_LAUNCH = re.compile(r'(?m)^extern "C" (?P<head>[^{;]*\{)$')


def header_text(code: Code) -> str:
    """The header. Its launch function stands in no namespace; what it uses stands in `<name>_detail`.

    >>> from warpwright.formulas.resolve import formula_of
    >>> from warpwright.writer.write import written
    >>> text = header_text(written(formula_of("y[i] = 2 * x[i]"), "twice"))
    >>> text.splitlines()[:2], text.splitlines()[-1]
    (['#ifndef TWICE_CUH_', '#define TWICE_CUH_'], '#endif  // TWICE_CUH_')
    """
    guard = f"{code.name.upper()}_CUH_"
    space = f"{code.name}_detail"
    text = file_text(code).rstrip()
    text = text.replace("\nnamespace {\n", f"\nnamespace {space} {{\n").replace(
        "\n}  // namespace\n", f"\n}}  // namespace {space}\n"
    )
    # A kernel that is no template would be defined once for each file that includes it.
    text = _KERNEL.sub("static __global__", text)
    text = _LAUNCH.sub(lambda found: f"inline {found['head']}\n    using namespace {space};", text)
    return f"#ifndef {guard}\n#define {guard}\n\n{text}\n\n#endif  // {guard}\n"
