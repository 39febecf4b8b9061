"""What people call the dimension that is worked along."""

from __future__ import annotations

from random import Random

from warpwright_upskill.data.requests.compose import Parts


def axis_words(parts: Parts, chance: Random) -> dict[str, str]:
    rank, along = parts.rank, parts.along
    if rank <= 1:
        return {
            "axis": chance.choice(("the whole vector", "all elements", "the array", "its only dim", "dim 0")),
            "per": chance.choice(("the whole vector", "the array", "the vector")),
            "dim": chance.choice(("-1", "0")),
            "rowwise": "",
            "along": chance.choice(("over all elements", "over the vector", "1d")),
            "per_row": "the vector",
        }
    if along == rank - 1:
        axis = [
            "the last dim",
            "the last dimension",
            "the last axis",
            "dim -1",
            "dim=-1",
            "axis -1",
            "the innermost dimension",
            "the feature dimension",
            "the hidden dim",
            f"dim {along}",
            f"axis {along}",
            "the trailing axis",
        ]
        per = (
            ["each row", "every row", "each row", "each token", "every sample"]
            if rank == 2
            else [
                "each position",
                "every token",
                "each vector along the last dim",
                "each (b, t) position",
                "every last-dim slice",
            ]
        )
        row = (
            ["row-wise", "per-row", "rowwise", "row wise"] if rank == 2 else ["per-token", "last-dim", "innermost-dim"]
        )
        over = [
            "over the last dim",
            "per row",
            "along dim -1",
            "row by row",
            "over the columns of a row",
            "for each row",
            "along each row",
        ]
        over = over if rank == 2 else ["over the last dim", "along dim -1", "per token", "along the last axis"]
        dims = ["-1", str(along)]
        if rank == 2:
            axis += ["each row", "the columns of each row", "the row"]
    elif along == 0:
        axis = [
            "the first dim",
            "dim 0",
            "axis 0",
            "dim=0",
            "the first axis",
            "the leading dimension",
            "the outermost dimension",
        ]
        per = ["each column", "every column"] if rank == 2 else ["each position along dim 0", "each dim-0 column"]
        row = ["column-wise", "per-column", "columnwise"] if rank == 2 else ["dim-0"]
        over = (
            ["over dim 0", "down the columns", "per column", "along the first axis"]
            if rank == 2
            else ["over dim 0", "along the first axis"]
        )
        dims = ["0"]
        if rank == 2:
            axis += ["the rows (dim 0)", "each column", "the batch dimension"]
    else:
        axis = ["dim 1", "the middle dim", "axis 1", "dim=1", "the second axis"]
        per, row, over, dims = ["each slice along dim 1"], ["dim-1"], ["over dim 1", "along the middle axis"], ["1"]
    return {
        "axis": chance.choice(axis),
        "per": chance.choice(per),
        "rowwise": chance.choice(row),
        "along": chance.choice(over),
        "dim": chance.choice(dims),
        "per_row": "each row",
    }
