"""What is known of the changes that come with warpwright, and of the model that they make of its base."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from pathlib import Path

from warpwright.syntax.encoding import encoded

DATA = Path(__file__).parent / "data"
CARD = "card.json"
TAUGHT_KEY = "warpwright.taught"
TAUGHT = encoded(TAUGHT_KEY)
"""The first key of a model that was taught here, in one file."""
MARK = struct.pack(f"<Q{len(TAUGHT)}sIB", len(TAUGHT), TAUGHT, 7, 1)
"""The key as a GGUF has it, with the value true."""


@dataclass(frozen=True, slots=True)
class File:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Card:
    """`base` names the layers that the changes are of (`gguf_file.fingerprint`), `first_tokens` the tokens that are
    kept (`cut_vocabulary.kept_tokens`), `parts` the files of changes beside the card, `model` what is made of them."""

    name: str
    base: str
    first_tokens: int
    parts: tuple[File, ...]
    model: File


def read_card(folder: Path = DATA) -> Card | None:
    """The card in a folder; None where there is none, or a damaged one."""
    try:
        said = json.loads((folder / CARD).read_text(encoding="utf-8"))
        parts = tuple(File(**each) for each in said["parts"])
        card = Card(said["name"], said["base"], said["first_tokens"], parts, File(**said["model"]))
        is_plain = all(Path(each.name).name == each.name for each in (*card.parts, card.model))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return card if is_plain else None


def write_card(card: Card, folder: Path) -> None:
    (folder / CARD).write_text(json.dumps(asdict(card), indent=2) + "\n", encoding="utf-8")
