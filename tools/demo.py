"""The main job on one file: what is on this machine, what is wrong with the kernel, and a better version, verified.

`python tools/demo.py FILE` runs the commands that a user would type, and shows them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

COULD_NOT_RUN = 2

COMMENT = "subtract the mean of its row from each element of x[rows][cols] and write the largest absolute value per row"
STEPS = (
    ("What this machine has", ("doctor",)),
    ("What is wrong with the kernel, from its source alone", ("check", "{file}")),
    (
        "A better version: the model plans, a rewrite edits, the compiler and the harness decide",
        ("optimize", "{file}", "--plan", "model"),
    ),
    (
        "A kernel from a comment that no rule reads: the model reads it, the writer writes it, a run compares it",
        ("generate", COMMENT),
    ),
)


def main(file: str) -> int:
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else ("", "")
    for title, command in STEPS:
        arguments = [part.format(file=file) for part in command]
        print(f"\n{bold}== {title}{plain}\n$ {shlex.join(['warpwright', *arguments])}\n", flush=True)
        script = Path(sys.executable).parent / "warpwright"
        status = subprocess.run([script, *arguments], check=False).returncode
        # 1 is an answer: there are findings, or no better version was found.
        if status >= COULD_NOT_RUN:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
