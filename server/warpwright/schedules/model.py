"""The schedules: how the elements of a formula are laid on threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from warpwright.schedules.attention import FusedAttention
from warpwright.schedules.contraction import CoreProduct, TensorProduct
from warpwright.schedules.pairs import Pairs
from warpwright.schedules.windows import Windows


@dataclass(frozen=True, slots=True)
class Pointwise:
    """Each thread computes `vector` elements that lie side by side, `packs` times, a grid's stride apart."""

    threads: int = 256
    vector: int = 4
    packs: int = 1


Keep = Literal["registers", "shared", "reload"]
"""Where a row stays between passes: in registers, in shared memory, or nowhere, so that each pass reads it anew."""


@dataclass(frozen=True, slots=True)
class Rows:
    """`lanes` threads share a row: a part of a warp, a warp, or all of a block; `rows` of them share a block. A lane
    reads `vector` elements at once and holds `per_lane` such packs, where the row is kept in registers. `online`:
    maximum and sum of exponentials in one pass. `stream`: results leave the caches first. `is_whole`: rows are whole
    packs; else packs begin where memory's words do, and single lanes take what of a row lies before and behind."""

    lanes: int = 32
    rows: int = 4
    vector: int = 4
    per_lane: int = 8
    keep: Keep = "registers"
    online: bool = False
    stream: bool = False
    is_whole: bool = True

    @property
    def capacity(self) -> int:
        """The longest row, in elements, that registers hold."""
        return self.lanes * self.vector * self.per_lane


@dataclass(frozen=True, slots=True)
class Columns:
    """A reduction over slow dimensions: a thread takes `vector` columns, `warps` of a block and `split` blocks share
    the rows; a second launch brings the blocks' results together."""

    vector: int = 4
    warps: int = 16
    split: int = 8


@dataclass(frozen=True, slots=True)
class Tile:
    """A square of `side` x `side` elements turns in shared memory; `rows` of it are moved at once, `vector` elements a
    thread."""

    side: int = 64
    rows: int = 16
    vector: int = 4


@dataclass(frozen=True, slots=True)
class Bins:
    """A scatter to few places: at most `blocks` blocks gather in shared memory, `vector` values of a thread at once."""

    threads: int = 1024
    blocks: int = 264
    vector: int = 4


@dataclass(frozen=True, slots=True)
class Scan:
    """`warps` warps share a row and keep `packs` packs of `vector` elements a lane in registers; `rows` rows share a
    block. Along a slow dimension a thread has `vector` columns and `packs` rows of them, warps below each other."""

    warps: int = 8
    rows: int = 1
    vector: int = 4
    packs: int = 4

    @property
    def capacity(self) -> int:
        """The elements of a row that registers hold."""
        return 32 * self.warps * self.packs * self.vector


@dataclass(frozen=True, slots=True)
class Segments:
    """A reduction over segments that memory tells: `lanes` threads share one."""

    lanes: int = 32


Schedule = (
    Pointwise
    | Rows
    | Columns
    | Tile
    | Bins
    | Scan
    | Segments
    | Windows
    | Pairs
    | CoreProduct
    | TensorProduct
    | FusedAttention
)
