"""What the writers of products share: the product as they see it, and text that all of them emit."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from warpwright.writer.text import listed
from warpwright.writer.types import NAMES

CUDA_TYPES = {"f32": "float", "bf16": "__nv_bfloat16", "f16": "__half"}


@dataclass(frozen=True, slots=True)
class Operand:
    """An array that a product reads. `name` is that of its variables. `inner` is the index whose elements are
    neighbours in memory, the one that is summed over ("depth") or the one that it shares with the result ("free").
    `batch` tells where the elements of a batch begin, "" of an array that all batches share; `free` where those of a
    row or a column `@`; `step` is the distance of neighbours along the depth, `leading` that of the index that is not
    `inner`. Where the steps along the depth vary, `depth` tells where the element at `depth` lies."""

    name: str
    array: str
    element: str
    inner: str
    batch: str
    free: str
    step: str
    leading: str
    depth: str = ""

    @property
    def base(self) -> str:
        """What the elements of its batch are counted from."""
        return f"{self.name}_batch" if self.batch else self.array


@dataclass(frozen=True, slots=True)
class Product:
    """`out[batch, m, n] = result(sum[k] a[batch, m, k] * b[batch, k, n])` in names of C++. `batch` is "" where there is
    none, `out_batch` tells where the results of one begin. `parameters` are those of the kernel as they are declared;
    `lines` stand at its beginning; `epilogue` is a function in the kernel, `result`, of the sum, its row and its
    column, "" where the sum is the result. `operands` are all arrays that pass through the loop, `a` and `b` first."""

    name: str
    text: str
    operands: tuple[Operand, ...]
    out: str
    type: str
    out_type: str
    m: str
    n: str
    k: str
    parameters: tuple[str, ...]
    batch: str = ""
    out_batch: str = ""
    lines: str = ""
    epilogue: str = ""

    @property
    def a(self) -> Operand:
        return self.operands[0]

    @property
    def b(self) -> Operand:
        return self.operands[1]

    @property
    def element(self) -> str:
        return self.a.element

    @property
    def out_element(self) -> str:
        return NAMES[self.out_type]

    @property
    def out_base(self) -> str:
        """What the results of a batch are counted from."""
        return f"{self.out}_batch" if self.batch else self.out

    def result(self, total: str, row: str, col: str) -> str:
        """The text of an element of the result."""
        return f"result({total}, {row}, {col})" if self.epilogue else total

    def head(self, threads: int | str, blocks: int | str = 1) -> str:
        """The kernel's name and parameters, for blocks of so many threads, so many of them on a multiprocessor."""
        bounds = f"{threads}, {blocks}" if blocks != 1 else str(threads)
        return "\n".join(
            listed(list(self.parameters), f"__global__ void __launch_bounds__({bounds}) {self.name}(", ") {")
        )


def filled(text: str, /, **names: object) -> str:
    """The text with its `$names` filled in.

    >>> filled("constexpr int kTile = $tile;", tile=128)
    'constexpr int kTile = 128;'
    """
    return Template(text).substitute({key: str(value) for key, value in names.items()})


def indented(text: str, by: int = 4) -> str:
    """The lines moved to the right, empty ones and those of the preprocessor left where they are."""
    mark = " " * by
    return "".join(
        f"{mark if line.strip() and not line.startswith('#') else ''}{line}" for line in text.splitlines(keepends=True)
    )


_PLACE = """\
const int tile_rows = ($m + kTileM - 1) / kTileM;
const int tile_cols = ($n + kTileN - 1) / kTileN;
"""
_TILE = """\
$tile// Tiles run in bands of 8 rows of tiles: blocks that run together find their slices of both operands in L2.
const int band = tile / (8 * tile_cols) * 8;
const int band_rows = min(tile_rows - band, 8);
const int in_band = tile - band * tile_cols;
const int first_row = (band + in_band % band_rows) * kTileM;
const int first_col = in_band / band_rows * kTileN;
$bases"""


def place(product: Product, number: str = "blockIdx.x", between: str = "", *, operands: bool = True) -> str:
    """The lines that say which tile is computed, by its `number`, and where the arrays of its batch begin, unless they
    are not read (`operands`). `between` are lines that make the number from that of tiles along both sides."""
    head = filled(_PLACE, m=product.m, n=product.n) + between
    if not product.batch:
        tile = "" if number == "tile" else f"const int tile = {number};\n"
        return head + filled(_TILE, tile=tile, bases="")
    tile = f"const long long batch = {number} / (tile_rows * tile_cols);\n"
    tile += f"const int tile = {number} - static_cast<int>(batch) * tile_rows * tile_cols;\n"
    bases = [
        f"const {each.element}* const {each.base} = {each.array} + {each.batch};\n"
        for each in product.operands
        if operands and each.batch
    ]
    bases.append(f"{product.out_element}* const {product.out_base} = {product.out} + {product.out_batch};\n")
    return head + filled(_TILE, tile=tile, bases="".join(bases))
