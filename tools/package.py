"""Build the wheel and the sdist, and try the wheel where nothing of this checkout is.

    python tools/package.py [--out dist]

The wheel is built from the sdist, as an index's users may do. It goes into a bare environment with what it requires;
there `check` must find a bank conflict and `serve` must answer, from a folder without this repository.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 600
BACKEND = "hatchling>=1.27"
_KERNEL = """\
__global__ void turn(float *out, const float *in) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
void run(float *out, const float *in) { turn<<<1, dim3(32, 32)>>>(out, in); }
"""


class PackageError(Exception):
    """What is wrong with a package, in one sentence."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    arguments = parser.parse_args()
    try:
        sdist, wheel = build(arguments.out)
        try_out(wheel)
    except PackageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{sdist}\n{wheel}")
    return 0


def build(out: Path) -> tuple[Path, Path]:
    """The sdist of this checkout, and the wheel that is built from it."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder) / "builder", BACKEND)
        _run([python, "-m", "hatchling", "build", "-t", "sdist", "-d", folder], ROOT)
        (made,) = Path(folder).glob("*.tar.gz")
        _run([python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, made], Path(folder))
        (wheel,) = Path(folder).glob("*.whl")
        return Path(shutil.copy2(made, out)), Path(shutil.copy2(wheel, out))


def try_out(wheel: Path) -> None:
    """Raises PackageError where what the wheel installs does not work by itself."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = _environment(folder / "user", str(wheel.resolve()))
        (folder / "turn.cu").write_text(_KERNEL, encoding="utf-8")
        said = _run([python, "-c", "import warpwright; print(warpwright.__file__)"], folder)
        if not Path(said.strip()).is_relative_to(folder):
            raise PackageError(f"the installed Python reads warpwright from {said.strip()}")
        command = python.parent / "warpwright"
        found = json.loads(_run([command, "check", "turn.cu", "--format", "json", "--fail-on", "never"], folder))
        if "bank-conflict" not in [row["rule"] for row in found]:
            raise PackageError(f"`check` of the wheel finds no bank conflict in {len(found)} findings")
        if served(command, folder) != "warpwright":
            raise PackageError("`serve` of the wheel does not say its name")


def served(command: Path, folder: Path) -> str:
    """The name that the server gives itself when an editor starts it, asks and ends it."""
    asked = (
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    )
    texts = [json.dumps({"jsonrpc": "2.0", **each}) for each in asked]
    sent = "".join(f"Content-Length: {len(text)}\r\n\r\n{text}" for text in texts)
    answer = _run([command, "serve"], folder, sent=sent)
    messages = (_first_json(part) for part in answer.split("\n\n")[1:])  # a text's line ends are read as one byte
    first = next((each for each in messages if each.get("id") == 1), {})
    return str(first.get("result", {}).get("serverInfo", {}).get("name", ""))


def _first_json(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0]
    return value


def _environment(folder: Path, *requirements: str) -> Path:
    """A bare environment with these; its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    _run([python, "-m", "pip", "install", "-q", *requirements], folder)
    return python


def _run(command: Sequence[str | Path], folder: Path, *, sent: str | None = None) -> str:
    """What a program prints, which runs with nothing of this checkout in its environment."""
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=_outside(os.environ), input=sent, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise PackageError(f"{' '.join(map(str, command))} ended with {done.returncode}: {last}")
    return done.stdout


def _outside(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


if __name__ == "__main__":
    sys.exit(main())
