"""Make the taught model, in a process of its own: NumPy and the weights stay out of the process that asks.

    python -m warpwright.assist.taught.make BASE OUT FOLDER

Every line that it prints is the share of the tensors that are written. What is wrong is one sentence on stderr, with
exit status 2 or 3.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from warpwright.assist.taught.added_weights import added
from warpwright.assist.taught.card import MARK, TAUGHT_KEY, Card, read_card
from warpwright.assist.taught.cut_vocabulary import cut, kept_tokens
from warpwright.assist.taught.gguf_file import GgufError, fingerprint, read_gguf, write_gguf
from warpwright.assist.taught.weight_codes import Codes, change_of, codes_of

DAMAGED, NO_ROOM = 2, 3
"""Exit statuses: what is needed is missing or damaged; a file could not be read or written."""
_PLANES, _SCALES = "planes", "scales"


def write_changes(changes: Mapping[str, Any], bits: int, path: Path) -> None:
    """Write the codes of changes, (rows, columns) by llama.cpp's names of their weights, as one NumPy archive."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for name, change in changes.items():
        codes = codes_of(change, bits)
        arrays |= {f"{name}/{_PLANES}": codes.planes, f"{name}/{_SCALES}": codes.scales}
    with path.open("wb") as file:
        np.savez(file, **arrays)


def read_changes(folder: Path, card: Card) -> dict[str, Callable[[], Any]]:
    """What makes the change of each weight from the parts beside a card. Raises GgufError for a part that is not there
    or is another."""
    changes: dict[str, Callable[[], Any]] = {}
    for part in card.parts:
        path = folder / part.name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != part.sha256:
            raise GgufError(f"{path}: is missing or damaged; install warpwright again.")
        changes |= read_part(path)
    return changes


def read_part(path: Path) -> dict[str, Callable[[], Any]]:
    """What makes the change of each weight that a part holds."""
    import numpy as np

    archive = np.load(path, allow_pickle=False)
    return {
        name: partial(_change, archive, name) for name in sorted({each.rpartition("/")[0] for each in archive.files})
    }


def _change(archive: Any, name: str) -> Any:
    return change_of(Codes(archive[f"{name}/{_PLANES}"], archive[f"{name}/{_SCALES}"]))


def make(base: Path, out: Path, folder: Path, told: Callable[[float], None] = lambda share: None) -> None:
    """Write the taught model: `base` with its vocabulary cut and the changes in `folder` added. Raises GgufError where
    the changes are of another base or are damaged."""
    card = read_card(folder)
    if card is None:
        raise GgufError(f"{folder}: holds no taught model; install warpwright again.")
    file = read_gguf(base)
    if fingerprint(file) != card.base:
        raise GgufError(f"{base}: is not the model that was taught; remove it, so that it is made anew.")
    values, replaced = cut(file, kept_tokens(file, card.first_tokens))
    sums = added(file, read_changes(folder, card))
    for number, (name, (shape, kind, data)) in enumerate(sums.items(), 1):
        replaced[name] = (shape, kind, partial(_told, data, number / len(sums), told))
    write_gguf(file, out, {TAUGHT_KEY: MARK, **values}, replaced)


def _told(data: Callable[[], bytes], share: float, told: Callable[[float], None]) -> bytes:
    told(share)
    return data()


def main(base: str, out: str, folder: str) -> int:
    try:
        make(Path(base), Path(out), Path(folder), told=lambda share: _say(f"{share:.3f}"))
    except GgufError as error:
        sys.stderr.write(f"{error}\n")
        return DAMAGED
    except ImportError as error:
        sys.stderr.write(f"The Python package {error.name} is not installed.\n")
        return DAMAGED
    except OSError as error:
        sys.stderr.write(f"{error.filename or out} could not be read or written ({error.strerror}).\n")
        return NO_ROOM
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
