"""What the words of a comment mean where it stands: with a Python function that they name, and in the names and types
of the host function below."""

from __future__ import annotations

import re

from warpwright.assist.python_function import meant_words
from warpwright.assist.readings import by_wordings
from warpwright.assist.signature import parameters
from warpwright.assist.worded_formula import Reading
from warpwright.editor.own_types import own_types, with_types
from warpwright.syntax.source import Source

_HOST = re.compile(
    r"\s*(?!(?:struct|class|enum|union|namespace|typedef|using|return|else)\b)(?:[A-Za-z_][\w:]*[\s*&]+)+"
    r"[A-Za-z_]\w*\s*\((?P<given>[^(){};]*)\)\s*[{;]"
)


def readings_at(source: Source, words: str, offset: int) -> list[Reading]:
    """The readings of words above a byte offset, without a model; those that fit the host function that follows there,
    or without it where none does.

    >>> text = b"// relu of x\\n\\nvoid relu(const half* x, half* y, int n, cudaStream_t stream);\\n"
    >>> readings_at(Source("a.cu", text), "relu of x", 13)[0].formula.text
    'x: f16, y[i] = relu(x[i])'
    """
    meant = meant_words(words, source.path)
    given = with_types(host_parameters(source.text(offset)), own_types(source.code_text()))
    return (by_wordings(meant, given) if given else []) or by_wordings(meant)


def host_parameters(text: str) -> str:
    """The arrays and numbers that the host function takes with which a text begins, "" where it begins with none.

    >>> host_parameters("\\ncudaError_t f(const float *a, int n, cudaStream_t s) {"), host_parameters("int n;")
    ('const float *a, int n', '')
    """
    found = _HOST.match(text)
    parts = found["given"].split(",") if found is not None else []
    kept = [each.strip() for each in parts if any(one.pointer or one.type for one in parameters(each))]
    return ", ".join(kept) if any("*" in each for each in kept) else ""
