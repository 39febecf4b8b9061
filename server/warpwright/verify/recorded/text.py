"""A file's text with one place of its host code made a function of its own, which a library gives to who loads it.

Example: of `for (...) step<<<grid, 256>>>(b, a, n);` with `float *a, *b; int n;` it is
`void warpwright_run(void **warpwright_values)`, which takes `a`, `b` and `n` from there, does that, and puts them back.
"""

from __future__ import annotations

from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source
from warpwright.verify.host_change import HostChange, Variable

_VALUES = "warpwright_values"


def with_place(source: Source, change: HostChange, statements: str) -> Source:
    """The file with a function behind it that has the statements, `warpwright_run`."""
    taken = "".join(
        f"  {_declared(v)} = *reinterpret_cast<{_type(v)} *>({_VALUES}[{i}]);\n" for i, v in _numbered(change)
    )
    given = "".join(
        f"  *reinterpret_cast<{_type(v)} *>({_VALUES}[{i}]) = {v.name};\n"
        for i, v in _numbered(change)
        if not v.is_constant
    )
    constants = "".join(f"  {each}\n" for each in change.constants)
    text = (
        "\n\n#include <type_traits>\n\n"
        f'extern "C" void warpwright_run(void **{_VALUES}) {{\n'
        f"{constants}{taken}  {{\n{statements}\n  }}\n{given}}}\n"
    )
    end = len(source.data)
    return source.edited([TextEdit(end, end, text)])


def _numbered(change: HostChange) -> list[tuple[int, Variable]]:
    return list(enumerate(change.variables))


def _type(variable: Variable) -> str:
    """The type as a name of its own, so that `const` belongs to what it stands before."""
    return f"std::remove_reference_t<{variable.type}>"


def _declared(variable: Variable) -> str:
    return f"{'const ' if variable.is_constant else ''}{_type(variable)} {variable.name}"
