"""What is known of all launches of a kernel: whether each is found, and with which block."""

from __future__ import annotations

from warpwright.cuda.linkage import is_header
from warpwright.facts.model import Basis, Dim3, Kernel, Launch
from warpwright.rewrites._code import host_launches, unseen_launch


def found_launches(kernel: Kernel) -> list[Launch] | str:
    """The launches of a kernel that is named by nothing else; the reason where there is none, or others may be."""
    if reason := unseen_launch(kernel):
        return reason
    return host_launches(kernel) or f"No launch of {kernel.name} is found, and the edit depends on its block."


def in_header(kernel: Kernel) -> str:
    """Why files that are not read may launch the kernel; empty where it stands in no header."""
    header = is_header(kernel.source)
    return f"{kernel.name} stands in a header, so not all of its launches are found." if header else ""


def block_of(launch: Launch) -> Dim3 | str:
    """The shape of a launch's block, or why it is not certain."""
    x, y, z = launch.block
    if launch.basis is not Basis.EXACT or x is None or y is None or z is None:
        return f"The block of the launch at {launch.source} is not known from the text."
    return x, y, z


def flat_block_of(launch: Launch) -> int | str:
    """The threads of a launch's block of one dimension, or why they are not certain."""
    shape = block_of(launch)
    if isinstance(shape, str):
        return shape
    return shape[0] if shape[1:] == (1, 1) else f"The block at {launch.source} has more than one dimension."


def blocks_in_sight(kernel: Kernel) -> list[Dim3] | str:
    """The shapes of the blocks of the launches found, each once. A kernel in a header may have others: who asks says
    what is assumed of them."""
    launches = found_launches(kernel)
    if isinstance(launches, str):
        return launches
    shapes = [block_of(launch) for launch in launches]
    unknown = next((shape for shape in shapes if isinstance(shape, str)), "")
    return unknown or list(dict.fromkeys(shape for shape in shapes if not isinstance(shape, str)))


def launched_blocks(kernel: Kernel) -> list[Dim3] | str:
    """The same, of a kernel all of whose launches are found."""
    return in_header(kernel) or blocks_in_sight(kernel)


def block_in_sight(kernel: Kernel) -> Dim3 | str:
    """The block that every launch found has, or the reason why that is not certain."""
    return _only(kernel, blocks_in_sight(kernel))


def block_of_all_launches(kernel: Kernel) -> Dim3 | str:
    """The same, of a kernel all of whose launches are found."""
    return _only(kernel, launched_blocks(kernel))


def _only(kernel: Kernel, shapes: list[Dim3] | str) -> Dim3 | str:
    if isinstance(shapes, str):
        return shapes
    return shapes[0] if len(shapes) == 1 else f"{kernel.name} is launched with blocks of different shapes."
