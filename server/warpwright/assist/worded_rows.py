"""Requests for one operation of each row or column of a matrix with a vector: `add bias[cols] to every row of
x[rows][cols]`, `divide each row of x[R][C] by s[R]`.

Along which dimension the vector lies, its own extent says, which is one of the matrix's; without it only that a vector
or a bias is added to each row, or column. Where that is not said nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright.assist.signature import Parameter
from warpwright.assist.worded_names import DIMS, Names, UnfitError
from warpwright.assist.wording import Array, Said, shape_in

_EXTENTS = r"(?:\s?(?:\[\s*[A-Za-z_]\w*\s*\])+|\s?[\[(]\s*[A-Za-z_]\w*(?:\s*[,x×]\s*[A-Za-z_]\w*)*\s*[\])])?"
_VECTOR = rf"(?:(?:the|a|an)\s+)?(?P<vector>vector\s+)?(?P<one>[A-Za-z_]\w*)(?P<extent>{_EXTENTS})"
_EACH = r"(?:each|every|all|the)(?:\s+of)?(?:\s+the)?\s+(?P<axis>row|column|col)s?\s+(?:of|in)"
_MATRIX = rf"(?:the\s+)?(?:matrix\s+)?(?P<other>[A-Za-z_]\w*)(?P<extents>{_EXTENTS})"
_RESULT = (
    r"(?:\s*,?\s+(?:(?:and\s+)?(?:store|write|put)\s+(?:the\s+result|it)\s+(?:in|into|to)|into|->)\s*"
    r"(?P<result>[A-Za-z_]\w*)|\s*,?\s+(?P<place>in[- ]?place))?"
)
_FORMS = tuple(
    re.compile(rf"(?:kernel\s*:\s*)?{form}{_RESULT}\s*[.;]?", re.IGNORECASE)
    for form in (
        rf"(?P<do>add|subtract)\s+{_VECTOR}\s+(?:to|from|onto)\s+{_EACH}\s+{_MATRIX}",
        rf"(?P<do>multiply|scale|divide)\s+{_EACH}\s+{_MATRIX}\s+(?:by|with)\s+{_VECTOR}",
    )
)
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "scale": "*", "divide": "/"}
_BIASES = frozenset(("bias", "b"))


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """The operation, a sign; the matrix and the vector; whether the vector lies along the columns, so that each row
    meets all of it; and where the result is to be."""

    sign: str
    matrix: Array
    vector: Array
    along_columns: bool
    result: str
    in_place: bool


def rows_asked(comment: str) -> RowsAsked | None:
    """What a comment asks for that is a request of this kind and nothing else.

    >>> rows_asked("add bias[cols] to every row of x[rows][cols]").along_columns
    True
    >>> rows_asked("divide each row of x[R][C] by s[R]").along_columns
    False
    >>> rows_asked("divide each row of x by s") is None
    True
    """
    found = next((match for form in _FORMS if (match := form.fullmatch(" ".join(comment.split())))), None)
    if found is None or found["one"] == found["other"]:
        return None
    one, other = shape_in(found["extent"]), shape_in(found["extents"])
    is_row = found["axis"].lower() == "row"
    if len(other) == 2 and len(one) == 1 and other[0] != other[1]:
        if one[0] not in other:
            return None
        along_columns = one[0] == other[1]
    elif not one and len(other) in (0, 2) and found["do"].lower() in ("add", "subtract"):
        if not found["vector"] and found["one"].lower() not in _BIASES:
            return None  # a number, or one for each row
        along_columns = is_row
    else:
        return None
    return RowsAsked(
        _SIGNS[found["do"].lower()],
        Array(found["other"], other),
        Array(found["one"]),
        along_columns,
        found["result"] or "",
        bool(found["place"]),
    )


def rows_text(asked: RowsAsked, signature: Sequence[Parameter]) -> str:
    """The formula of a request. Raises UnfitError."""
    said = Said(operands=[asked.matrix, asked.vector], in_place=asked.in_place)
    names = Names(replace(said, result=Array(asked.result)) if asked.result else said, signature)
    r, c = names.dims(len(DIMS[1]), asked.matrix.shape)
    matrix = names.operand(asked.matrix.name, "x", 0)
    vector = names.operand(asked.vector.name, "v", 1)
    if any(each in names.numbers for each in (matrix, vector)):
        raise UnfitError
    result = names.result("y", (matrix, vector), is_new=False)
    names.check()
    value = f"{matrix}[{r}, {c}] {asked.sign} {vector}[{c if asked.along_columns else r}]"
    return f"{names.declarations('')}{result}[{r}, {c}] = {value}"
