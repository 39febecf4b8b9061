"""What the writers of products share: the product as they see it, and text that all of them emit."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from warpwright.writer.text import listed

CUDA_TYPES = {"f32": "float", "bf16": "__nv_bfloat16", "f16": "__half"}


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a product, packed: `inner` is the index whose elements are neighbours in memory, the one that is
    summed over ("depth") or the one that it shares with the result ("free"). `batched`: it has the batch's index."""

    name: str
    inner: str
    batched: bool = False


@dataclass(frozen=True, slots=True)
class Product:
    """`out[batch, m, n] = result(sum[k] a[batch, m, k] * b[batch, k, n])` in names of C++. `batch` is "" where there is
    none. `parameters` are those of the kernel as they are declared; `lines` stand at its beginning; `epilogue` is a
    function in the kernel, `result`, of the sum, its row and its column, "" where the sum is the result."""

    name: str
    text: str
    a: Operand
    b: Operand
    out: str
    type: str
    out_type: str
    m: str
    n: str
    k: str
    parameters: tuple[str, ...]
    batch: str = ""
    lines: str = ""
    epilogue: str = ""

    @property
    def element(self) -> str:
        return CUDA_TYPES[self.type]

    @property
    def out_element(self) -> str:
        return CUDA_TYPES[self.out_type]

    @property
    def a_leading(self) -> str:
        """The distance of two rows of `a` as it lies in memory."""
        return self.k if self.a.inner == "depth" else self.m

    @property
    def b_leading(self) -> str:
        return self.k if self.b.inner == "depth" else self.n

    def result(self, total: str, row: str, col: str) -> str:
        """The text of an element of the result."""
        return f"result({total}, {row}, {col})" if self.epilogue else total

    def head(self, threads: int, blocks: int = 1) -> str:
        """The kernel's name and parameters, for blocks of so many threads, so many of them on a multiprocessor."""
        bounds = f"{threads}, {blocks}" if blocks > 1 else str(threads)
        return "\n".join(
            listed(list(self.parameters), f"__global__ void __launch_bounds__({bounds}) {self.name}(", ") {")
        )

    def base(self, name: str) -> str:
        """What the elements of an array's batch are counted from."""
        return f"{name}_batch" if self.batch and name in self.batched else name

    @property
    def batched(self) -> tuple[str, ...]:
        return (*(each.name for each in (self.a, self.b) if each.batched), self.out)


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
// Tiles run in bands of 8 rows of tiles: blocks that run together find their slices of both operands in L2.
const int tile_rows = ($m + kTileM - 1) / kTileM;
const int tile_cols = ($n + kTileN - 1) / kTileN;
$tile
const int band = tile / (8 * tile_cols) * 8;
const int band_rows = min(tile_rows - band, 8);
const int in_band = tile - band * tile_cols;
const int first_row = (band + in_band % band_rows) * kTileM;
const int first_col = in_band / band_rows * kTileN;
"""


def place(product: Product, leading: str = "") -> str:
    """The lines that say which tile a block computes, and where the arrays of its batch begin. `leading`: how the name
    ends of the distance of an operand's rows, where that is not their length."""
    m, n, k = product.m, product.n, product.k
    if not product.batch:
        return filled(_PLACE, m=m, n=n, tile="const int tile = blockIdx.x;")
    lines = ["const int batch = blockIdx.x / (tile_rows * tile_cols);"]
    lines.append("const int tile = blockIdx.x - batch * tile_rows * tile_cols;")
    for each, free, length in ((product.a, m, product.a_leading), (product.b, n, product.b_leading)):
        if each.batched:
            count = free if each.inner == "depth" else k
            offset = f"static_cast<long long>(batch) * {count} * {f'{each.name}_{leading}' if leading else length}"
            lines.append(f"const {product.element}* const {each.name}_batch = {each.name} + {offset};")
    offset = f"static_cast<long long>(batch) * {m} * {n}"
    lines.append(f"{product.out_element}* const {product.out}_batch = {product.out} + {offset};")
    return filled(_PLACE, m=m, n=n, tile="\n".join(lines))
