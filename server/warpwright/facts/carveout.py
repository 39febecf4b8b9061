"""How much of the L1 cache the host asks to have as shared memory for a kernel, as a share in percent.

`cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferL1)`, the same for the whole device, and
`cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 50)`. The driver follows it as long as one
block fits, so it limits the occupancy. Source of the shares: `cuda_occupancy.h` in the toolkit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tree_sitter import Node

from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

_SHARES = {
    "cudaFuncCachePreferL1": 0,
    "cudaFuncCachePreferEqual": 50,
    "cudaFuncCachePreferShared": 100,
    "cudaSharedmemCarveoutMaxL1": 0,
    "cudaSharedmemCarveoutMaxShared": 100,
}
_DEFAULTS = ("cudaFuncCachePreferNone", "cudaSharedmemCarveoutDefault", "-1")
_ATTRIBUTE = "cudaFuncAttributePreferredSharedMemoryCarveout"
_WORDS = (b"CacheConfig", b"Carveout")
EVERY_KERNEL = ""


def carveouts(sources: Iterable[Source]) -> dict[str, int | None]:
    """By kernel, and under EVERY_KERNEL what is asked for the device; None where it is not known which share it is:
    the text does not give it, or gives several."""
    found: dict[str, int | None] = {}
    for source in sources:
        if any(word in source.data for word in _WORDS):
            for kernel, share in _asked(source):
                found[kernel] = share if found.get(kernel, share) == share else None
    return found


def _asked(source: Source) -> Iterator[tuple[str, int | None]]:
    for call in descendants(source.root, "call_expression"):
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        given = uncommented(arguments)
        name = source.node_code(function).removeprefix("::") if function is not None else ""
        if name == "cudaDeviceSetCacheConfig" and len(given) == 1:
            yield EVERY_KERNEL, _share(source, given[0])
        elif name == "cudaFuncSetCacheConfig" and len(given) == 2:
            yield kernel_named(source, given[0]), _share(source, given[1])
        elif name == "cudaFuncSetAttribute" and len(given) == 3 and source.node_code(given[1]).endswith(_ATTRIBUTE):
            yield kernel_named(source, given[0]), _share(source, given[2])


def kernel_named(source: Source, argument: Node) -> str:
    """The kernel that an argument names: `kernel`, `&kernel`, `kernel<float, 3>`, `(const void *)kernel`."""
    value = argument.child_by_field_name("value") or argument.child_by_field_name("argument") or argument
    return unqualified(source.node_code(value).lstrip("&"))


def _share(source: Source, argument: Node) -> int | None:
    text = source.node_code(argument).removeprefix("::")
    if text in _DEFAULTS:
        return 100
    share = _SHARES.get(text, int(text) if text.isdigit() else None)
    return share if share is not None and share <= 100 else None
