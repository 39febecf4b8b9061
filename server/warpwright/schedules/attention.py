"""How a chain of two contractions is laid on blocks and warps; a schedule is legal or says why it is not."""

from __future__ import annotations

from dataclasses import dataclass

_SHARED_LIMIT = 227 * 1024


@dataclass(frozen=True, slots=True)
class FusedAttention:
    """Attention in one kernel: a block keeps `rows` queries and walks over the keys, `keys` at a time, with the softmax
    computed online."""

    rows: int = 128
    keys: int = 64
    warps: int = 4
    blocks: int = 2

    @property
    def threads(self) -> int:
        return self.warps * 32

    def shared(self, head: int) -> int:
        """Bytes of shared memory: the queries, and two tiles each of keys and values."""
        return (self.rows + 4 * self.keys) * in_shared(head) * 2

    def refusal(self, head: int) -> str:
        """Why no kernel can be written so for heads of that size; empty where one can."""
        if not 0 < head <= 256:
            return f"Heads of {head}: sums are kept in registers for up to 256."
        row = in_shared(head)
        if self.rows % (16 * self.warps) or self.keys % 16:
            return "A warp holds whole products of 16 rows by 16 keys."
        if self.shared(head) * self.blocks > _SHARED_LIMIT:
            return f"{self.shared(head)} bytes of shared memory, {self.blocks} blocks: over {_SHARED_LIMIT}."
        if (self.threads * 8 // row) % 8 or self.keys % (self.threads * 8 // row):
            return "A pass of copies is not a multiple of 8 rows, or no part of a tile."
        held = self.rows // self.warps * (head + self.keys) // 32 + 50
        if held > 255 or held * self.threads * self.blocks > 65536:
            return f"About {held} registers a thread, {self.threads} threads, {self.blocks} blocks: over 65,536."
        return ""


def in_shared(head: int) -> int:
    """The elements of a row in shared memory: 64, 128 or 256.

    >>> in_shared(64), in_shared(80)
    (64, 128)
    """
    return next(each for each in (64, 128, 256) if head <= each)


def fused_for(head: int) -> FusedAttention:
    """The schedule for heads of a size."""
    return FusedAttention() if head <= 128 else FusedAttention(128, 64, 8, 1)
