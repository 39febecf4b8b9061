"""Shared memory that holds a poison when a kernel starts: what it reads there without having written it shows."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from warpwright_harness.device import Module

_THREADS = 1024
_PTX = b"""
.version 6.4
.target sm_70
.address_size 64
.extern .shared .align 4 .b8 memory[];
.visible .entry poison(.param .u32 word, .param .u32 bytes)
{
    .reg .pred %at_end;
    .reg .b32 %word, %end, %step, %address;
    ld.param.u32 %word, [word];
    ld.param.u32 %end, [bytes];
    mov.u32 %step, memory;
    add.u32 %end, %end, %step;
    mov.u32 %address, %tid.x;
    mad.lo.u32 %address, %address, 4, %step;
    mov.u32 %step, %ntid.x;
    shl.b32 %step, %step, 2;
more:
    setp.ge.u32 %at_end, %address, %end;
    @%at_end bra done;
    st.volatile.shared.u32 [%address], %word;
    add.u32 %address, %address, %step;
    bra more;
done:
    ret;
}
\0"""


class SharedMemory:
    """Of every multiprocessor; a context manager that unloads what fills it."""

    def __init__(self) -> None:
        properties: Any = torch.cuda.get_device_properties(0)
        self._bytes = int(properties.shared_memory_per_block_optin)
        self._blocks = 2 * int(properties.multi_processor_count)
        self._module = Module(_PTX)

    def __enter__(self) -> SharedMemory:
        return self

    def __exit__(self, *exception: object) -> None:
        self._module.__exit__(*exception)

    def poison(self, word: int) -> None:
        """Fill all that a block can have with `word` (32 bits), on the current stream: one block has a multiprocessor
        for itself. The hardware promises nothing of what a later block finds there; it is left as it was."""
        arguments = (ctypes.c_uint32(word), ctypes.c_uint32(self._bytes))
        function = self._module.function("poison")
        launch = self._module.prepare(function, (self._blocks, 1, 1), (_THREADS, 1, 1), self._bytes, arguments)
        launch.start(torch.cuda.current_stream().cuda_stream)
