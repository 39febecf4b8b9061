"""A GGUF file's header: its values, and where its tensors lie. The data stay on disk.

The `gguf` package makes an array of each of the 262,144 tokens' texts, which takes ten seconds; this is one.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from warpwright.syntax.encoding import decoded, encoded

STRING, ARRAY = 8, 9
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_NUMBER_OF_TOKENS = 1 << 22
Replaced = tuple[tuple[int, ...], int, Callable[[], bytes]]
"""A tensor in the place of another: shape, type, and what makes its data when it is written."""
EMBEDDING = ("token_embd.weight", "output.weight")
"""The tensors with one row for each token."""


class GgufError(Exception):
    """A file that is not there or is damaged, in one sentence."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """`shape` has the width of a row first, as GGUF has it; `at` is its place in the file."""

    name: str
    shape: tuple[int, ...]
    kind: int
    at: int
    size: int


@dataclass(frozen=True, slots=True)
class GgufFile:
    """`raw` are the values as they stand in the file, each with its name and type before it."""

    path: Path
    values: dict[str, Any]
    raw: dict[str, bytes]
    tensors: tuple[Tensor, ...]

    @property
    def tokens(self) -> list[bytes]:
        found: list[bytes] = self.values.get("tokenizer.ggml.tokens") or []
        return found


def read_gguf(path: Path) -> GgufFile:
    """Raises GgufError for a file that is not there, is no GGUF or is cut off."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise GgufError(f"{path}: is not a GGUF file.")
            return _read(path, file)
    except OSError as error:
        raise GgufError(f"{path}: cannot be read ({error.strerror}).") from None
    except (struct.error, KeyError, ValueError, TypeError, ArithmeticError, MemoryError, RecursionError):
        raise GgufError(f"{path}: is a damaged GGUF file; get it anew.") from None


def _read(path: Path, file: BinaryIO) -> GgufFile:
    _, tensor_count, value_count = struct.unpack("<IQQ", file.read(20))
    values: dict[str, Any] = {}
    raw: dict[str, bytes] = {}
    for _ in range(value_count):
        start = file.tell()
        name = decoded(_string(file))
        (kind,) = struct.unpack("<I", file.read(4))
        values[name] = _value(file, kind)
        end = file.tell()
        file.seek(start)
        raw[name] = file.read(end - start)
    heads: list[tuple[str, tuple[int, ...], int, int]] = []
    for _ in range(tensor_count):
        name = decoded(_string(file))
        (dimensions,) = struct.unpack("<I", file.read(4))
        shape = struct.unpack(f"<{dimensions}Q", file.read(8 * dimensions))
        heads.append((name, shape, *struct.unpack("<IQ", file.read(12))))
    alignment = values.get("general.alignment", 32)
    data_at = _aligned(file.tell(), alignment)
    tensors: list[Tensor] = []
    for name, shape, kind, offset in heads:
        tensors.append(Tensor(name, shape, kind, data_at + offset, tensor_size(shape, kind)))
    if max((each.at + each.size for each in tensors), default=0) > path.stat().st_size:
        raise ValueError
    return GgufFile(path, values, raw, tuple(tensors))


def _string(file: BinaryIO) -> bytes:
    (length,) = struct.unpack("<Q", file.read(8))
    text = file.read(length)
    if len(text) != length:
        raise ValueError
    return text


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _string(file)
    if kind == ARRAY:
        inner, count = struct.unpack("<IQ", file.read(12))
        if count > _NUMBER_OF_TOKENS:
            raise ValueError
        if inner in (STRING, ARRAY):
            return [_value(file, inner) for _ in range(count)]
        form = f"<{count}{_SCALARS[inner][1]}"
        return list(struct.unpack(form, file.read(struct.calcsize(form))))
    return struct.unpack(_SCALARS[kind], file.read(struct.calcsize(_SCALARS[kind])))[0]


def data_of(file: GgufFile, tensor: Tensor) -> bytes:
    with file.path.open("rb") as handle:
        handle.seek(tensor.at)
        return handle.read(tensor.size)


def fingerprint(file: GgufFile) -> str:
    """Names a model by its layers: a vocabulary that was cut changes nothing, as an adapter fits both."""
    digest = hashlib.sha256()
    for tensor in sorted(file.tensors, key=lambda each: each.name):
        if tensor.name not in EMBEDDING:
            digest.update(encoded(f"{tensor.name} {tensor.shape} {tensor.kind}"))
            digest.update(data_of(file, tensor))
    return digest.hexdigest()


def write_gguf(
    source: GgufFile,
    out: Path,
    values: Mapping[str, bytes],
    replaced: Mapping[str, Replaced],
) -> None:
    """Copy `source` to `out` with some `values` (as in `raw`) and tensors (shape, type, data) replaced, in their order;
    values that it has not come first.

    The file is written whole or not at all.
    """
    alignment = source.values.get("general.alignment", 32)
    raw = {**{name: value for name, value in values.items() if name not in source.raw}, **source.raw, **values}
    header = b"GGUF" + struct.pack("<IQQ", 3, len(source.tensors), len(raw)) + b"".join(raw.values())
    shapes = {each.name: replaced.get(each.name, (each.shape, each.kind, None))[:2] for each in source.tensors}
    offset = 0
    for name, (shape, kind) in shapes.items():
        text = encoded(name)
        header += struct.pack(f"<Q{len(text)}sI{len(shape)}Q", len(text), text, len(shape), *shape)
        header += struct.pack("<IQ", kind, offset)
        offset += _aligned(tensor_size(shape, kind), alignment)
    unfinished = out.with_name(f".{out.name}.part")
    try:
        with unfinished.open("wb") as file:
            file.write(header.ljust(_aligned(len(header), alignment), b"\0"))
            for tensor in source.tensors:
                data = replaced[tensor.name][2]() if tensor.name in replaced else data_of(source, tensor)
                file.write(data.ljust(_aligned(len(data), alignment), b"\0"))
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def raw_array(source: GgufFile, name: str, kept: Sequence[int]) -> bytes:
    """The entries `kept` of an array of the file's values, as it stands in the file."""
    text = encoded(name)
    (kind,) = struct.unpack_from("<I", source.raw[name], 8 + len(text) + 4)
    entries = [source.values[name][each] for each in kept]
    if kind == STRING:
        body = b"".join(struct.pack("<Q", len(each)) + each for each in entries)
    else:
        body = struct.pack(f"<{len(entries)}{_SCALARS[kind][1]}", *entries)
    return struct.pack("<Q", len(text)) + text + struct.pack("<IIQ", ARRAY, kind, len(entries)) + body


def tensor_size(shape: Sequence[int], kind: int) -> int:
    """Bytes of a tensor. Raises ValueError for an unknown type."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    elements, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    whole: int = math.prod(shape) // elements * size
    return whole


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
