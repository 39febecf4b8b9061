"""What is written of a formula, as files: CUDA, a single header, or a PyTorch extension."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from warpwright.formulas.resolve import formula_of
from warpwright.formulas.variants import in_type
from warpwright.writer.code import Code
from warpwright.writer.extension import binding_text, python_text
from warpwright.writer.write import file_text, written

LIBRARY = "warpwright"
"""The namespace of operators in torch: torch.ops.warpwright.softmax."""
_OF_OPERATORS = frozenset(
    {
        *keyword.kwlist,
        "torch",
        "ctx",
        "guard",
        "check",
        "check_size",
        "at",
        "c10",
        "stream",
        "blocks",
        "allowed",
        "workspace",
        "op",
        "below",
        "made",
        "kept",
        "gradients",
        "call_forward",
        "call_backward",
        "Derivative",
    }
)
"""Names that the operator's C++ or Python uses for something else."""


def for_python(text: str) -> str:
    """The formula with other names in place of those that Python keeps.

    >>> for_python("out[i] = 2 * in[i]")
    'out[i] = 2 * in_[i]'
    """
    formula = formula_of(text)
    names = {*formula.tensors, *formula.scalars, *formula.sizes, *(each.array for each in formula.tensors.values())}
    kept = "|".join(sorted(names & _OF_OPERATORS))
    return re.sub(rf"\b({kept})\b", lambda found: operator_word(found[0]), text) if kept else text


def operator_word(name: str) -> str:
    """The name, or one like it that the operator's texts leave free.

    >>> operator_word("in"), operator_word("x")
    ('in_', 'x')
    """
    return f"{name}_" if name in _OF_OPERATORS else name


def extension_codes(text: str, name: str, types: Sequence[str]) -> list[Code]:
    """The kernels of a formula in each type; of one type under the operator's own name. Raises FormulaError and
    ScatterError."""
    text = for_python(text)
    if len(types) < 2:
        return [written(formula_of(in_type(text, *types) if types else text), name)]
    return [written(formula_of(in_type(text, kind)), f"{name}_{kind}") for kind in types]


def extension_files(codes: Sequence[Code], name: str, library: str = LIBRARY) -> dict[str, str]:
    """The files of a PyTorch extension by name: kernels, the operator, and the Python module with its fake kernel.
    Raises NoExtensionError.

    >>> sorted(extension_files(extension_codes("y[i] = 2 * x[i]", "twice", ["f32", "bf16"]), "twice"))
    ['twice.cu', 'twice.py', 'twice_operator.cpp']
    """
    return {
        f"{name}.cu": file_text(*codes),
        f"{name}_operator.cpp": binding_text(codes, library),
        f"{name}.py": python_text(codes, library, f"{name}.so"),
    }
