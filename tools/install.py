"""Run pip with one line of progress: `python tools/install.py TITLE PIP-ARGUMENTS...`

Uses the standard library alone: it runs before anything is installed. The whole log stays beside the environment.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

LOG = Path(sys.prefix) / "install.log"
STEP = re.compile(r"\s*(Collecting|Downloading|Using cached|Building wheel for|Preparing metadata|Installing)\b")


class Status:
    """The step under way and the time since the start: rewritten in place on a terminal, else a line every 30 s."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.step = "starting"
        self.start = time.monotonic()
        self.done = threading.Event()

    def line(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
        return f"   {minutes}:{seconds:02} {self.title}: {self.step}"

    def show(self) -> None:
        live = sys.stdout.isatty()
        while not self.done.wait(0.5 if live else 30):
            print(f"\r\033[K{self.line()[:100]}" if live else self.line(), end="" if live else "\n", flush=True)
        print(f"\r\033[K{self.line()}" if live else self.line(), flush=True)


def main(title: str, *arguments: str) -> int:
    status = Status(title)
    shown = threading.Thread(target=status.show, daemon=True)
    shown.start()
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", *arguments]
    with LOG.open("a", encoding="utf-8") as log:
        pip = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert pip.stdout is not None
        try:
            for line in pip.stdout:
                log.write(line)
                log.flush()
                if STEP.match(line):
                    words = line.split()
                    what = Path(words[-1]).name if words[0] == "Using" else " ".join(words[:4])
                    status.step = "compiling llama-cpp-python" if "llama" in line and words[0] == "Building" else what
            code = pip.wait()
        except KeyboardInterrupt:
            pip.terminate()
            code = 130
    status.step = "done" if code == 0 else "failed"
    status.done.set()
    shown.join()
    if code:
        tail = LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-25:]
        print("\n".join(tail), file=sys.stderr)
        print(f"pip could not install what is needed; its whole log is {LOG}.", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
