"""What must not stand in the words of an example, wherever they come from."""

from __future__ import annotations

import re
import unicodedata

from warpwright_upskill.examples import Example

CONTROL_TOKEN = re.compile(
    r"<\|?/?(?:start_of_turn|end_of_turn|bos|eos|pad|unk|im_start|im_end|endoftext|mask|unused\d+|s)\|?>", re.I
)
"""What models take for the ends of turns and texts."""
MARKS = ("// Formula:", "// Task:", "// Given:", "// Like:", "# Plan")
"""What prompts are made of: words that hold one could end them."""


def poison(example: Example) -> str:
    """Why the texts of an example may not be trained on, in one sentence; "" where they may."""
    texts = {"problem": example.problem, "given": example.given, "formula": example.formula, "message": example.message}
    for name, text in texts.items():
        if (found := CONTROL_TOKEN.search(text)) is not None:
            return f"Its {name} holds the control token {found[0]}."
        if any(unicodedata.category(each) in ("Cc", "Cf", "Co", "Cs") and each not in "\n\r\t" for each in text):
            return f"Its {name} holds a character that is not printed."
        for mark in MARKS:
            if mark in text:
                return f"Its {name} holds {mark!r}, which prompts are made of."
    return ""
