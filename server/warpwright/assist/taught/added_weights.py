"""Changes added to a model's weights, written as Q8_0: four bits again would throw most of a small change away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from warpwright.assist.taught.gguf_file import GgufFile, Replaced, Tensor, data_of


def added(file: GgufFile, changes: Mapping[str, Callable[[], Any]]) -> dict[str, Replaced]:
    """The tensors that change, as `write_gguf` takes them. A change is an array of (rows, columns) under llama.cpp's
    name of the weight, computed when it is asked for."""
    import gguf

    replaced: dict[str, Replaced] = {}
    for tensor in file.tensors:
        if (change := changes.get(tensor.name)) is not None:
            kind = gguf.GGMLQuantizationType.Q8_0 if tensor.shape[0] % 32 == 0 else gguf.GGMLQuantizationType.F16
            replaced[tensor.name] = (tensor.shape, int(kind), partial(_sum, file, tensor, change, kind))
    return replaced


def _sum(file: GgufFile, tensor: Tensor, change: Callable[[], Any], kind: Any) -> bytes:
    import gguf
    import numpy as np

    stored = np.frombuffer(data_of(file, tensor), dtype=np.uint8).reshape(tensor.shape[1], -1)
    weights = gguf.quants.dequantize(stored, gguf.GGMLQuantizationType(tensor.kind)).astype(np.float32)
    changed = np.ascontiguousarray(weights + change().astype(np.float32))
    data: bytes = gguf.quants.quantize(changed, kind).tobytes()
    return data
