"""How a contraction is laid on blocks, warps and lanes; each schedule is legal or says why it is not."""

from __future__ import annotations

from dataclasses import dataclass

_SHARED_LIMIT = 227 * 1024
_REGISTERS = 255
PROCESSORS = 132  # multiprocessors of an H100 or H200


@dataclass(frozen=True, slots=True)
class CoreProduct:
    """A product without tensor cores: a thread keeps `thread_m` x `thread_n` sums of `words` 32-bit words in registers,
    slices of both operands pass through two buffers of shared memory. `blocks` of them share a multiprocessor. `split`:
    where the last tiles do not fill the GPU, several blocks share the depth of each, and a second launch brings
    together what they give."""

    tile_m: int = 128
    tile_n: int = 128
    thread_m: int = 16
    thread_n: int = 8
    warp_m: int = 64
    warp_n: int = 64
    blocks: int = 2
    words: int = 1
    split: bool = True

    @property
    def threads(self) -> int:
        return self.tile_m * self.tile_n // (self.thread_m * self.thread_n)

    @property
    def places(self) -> int:
        """How many blocks run at once on the GPU."""
        return PROCESSORS * self.blocks

    @property
    def depth(self) -> int:
        """Of a slice: turned stores of another depth would meet in banks of shared memory."""
        return 8

    @property
    def piece(self) -> int:
        """Neighbours that are read from shared memory at once: 16 bytes."""
        return 4 // self.words

    def refusal(self) -> str:
        """Why no kernel can be written so; empty where one can."""
        if (self.warp_m // self.thread_m) * (self.warp_n // self.thread_n) != 32:
            return "The threads of a warp do not make up its tile: 32 of them, thread_m x thread_n each."
        if self.tile_m % self.warp_m or self.tile_n % self.warp_n or self.thread_m % 4 or self.thread_n % 4:
            return "Warps do not divide the tile evenly, or threads do not hold pieces of 4 x 4."
        if min(self.tile_m, self.tile_n) * self.depth % (4 * self.threads):
            return "A slice is not a whole number of loads of 4 elements for each thread."
        held = (self.thread_m * self.thread_n + self.thread_m + self.thread_n) * self.words + 40
        if held > _REGISTERS or held * self.threads * self.blocks > 65536:
            return f"About {held} registers a thread, {self.threads} threads, {self.blocks} blocks: over 65,536."
        return ""


@dataclass(frozen=True, slots=True)
class TensorProduct:
    """A product by tensor cores: slices of both operands come by cp.async, `stages` of them under way. A warp
    multiplies `warp_m` x `warp_n` by mma.sync; in a build for sm_90a warpgroups share the tile of a block by rows.
    `through_l1`: copies pass through L1, where rows that share lines with their neighbours find them."""

    tile_m: int = 128
    tile_n: int = 256
    warp_m: int = 64
    warp_n: int = 64
    stages: int = 4
    blocks: int = 1
    through_l1: bool = False
    depth: int = 64

    @property
    def threads(self) -> int:
        return self.tile_m // self.warp_m * (self.tile_n // self.warp_n) * 32

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return (self.tile_m + self.tile_n) * self.depth * 2 * self.stages

    @property
    def staged(self) -> int:
        """Bytes of shared memory through which results go, 16 rows of each warp at a time."""
        return self.threads // 32 * 16 * (max(self.tile_n, self.warp_n) + 8) * 4

    def refusal(self) -> str:
        """Why no kernel can be written so; empty where one can."""
        if self.depth != 64:
            return "Slices are 64 deep: a row of 128 bytes is what the swizzle permutes."
        if self.tile_m % self.warp_m or self.tile_n % self.warp_n or self.warp_m % 16 or self.warp_n % 16:
            return "Warps do not divide the tile evenly, or hold no whole products of 16 x 16."
        if self.shared * self.blocks > _SHARED_LIMIT:
            return f"{self.shared} bytes of shared memory, {self.blocks} blocks: over {_SHARED_LIMIT}."
        if self.threads % 128 or self.tile_m * 128 // self.threads % 64 or self.tile_n not in (64, 128, 256):
            return "Warpgroups of four warps hold no whole products of 64 rows x 64, 128 or 256 columns."
        if self.threads > 512 or self.tile_m % 64:
            return "The threads of a block copy more rows at once than there are in 64."
        if self.staged > self.shared:
            return f"{self.staged} bytes of results, which leave by way of {self.shared} bytes of shared memory."
        held = self.warp_m * self.warp_n // 32 + self.warp_m // 2 + self.warp_n // 2 + 50
        if held > _REGISTERS or held * self.threads * self.blocks > 65536:
            return f"About {held} registers a thread, {self.threads} threads, {self.blocks} blocks: over 65,536."
        return ""
