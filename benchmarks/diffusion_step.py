"""A denoising step of Stable Diffusion 3 at 512 x 512 with a batch of 4, for 24 GB and the tensor cores of an RTX 4090:
from PyTorch to kernels, compiled and compared, end to end.

    python benchmarks/diffusion_step.py

Runs `warpwright generate` on examples/stable_diffusion_3/step.py with an empty cache and writes what came of it beside
that file: the kernels (step.cu), the figures (result.json) and both as a page (README.md). The time is that of the
whole command; the processor's share of it and the load of the machine stand beside it, as others may compute there.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hardware import processor

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "stable_diffusion_3"
LIMITS = "in 24 GB on an RTX 4090 with tensor cores"
COMMAND = ["generate", "--reference", "step.py:step", LIMITS]
Json = dict[str, Any]


def main() -> int:
    started, load = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as cache:
        ran = subprocess.run(
            [sys.executable, "-m", "warpwright.cli", *COMMAND, "--format", "json"],
            cwd=FOLDER,
            env={**os.environ, "WARPWRIGHT_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=False,
        )
    seconds = time.monotonic() - started
    if not ran.stdout:
        print(ran.stderr, file=sys.stderr)
        return 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = json.loads(ran.stdout)
    (candidate,) = answer["candidates"]
    result: Json = {
        "command": f"warpwright generate --reference step.py:step {LIMITS!r}",
        "exit_status": ran.returncode,
        "reason": answer["reason"],
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "load_before_and_after": [round(each, 1) for each in (load, os.getloadavg()[0])],
        "machine": {"processor": processor(), "system": platform.platform(terse=True)},
        "limits": candidate["limits"],
        "parts": [part(each) for each in candidate["parts"]],
    }
    (FOLDER / "step.cu").write_text(candidate["code"], encoding="utf-8")
    (FOLDER / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (FOLDER / "README.md").write_text(page(result), encoding="utf-8")
    print(page(result))
    return ran.returncode


def part(each: Json) -> Json:
    report = each["report"]
    sizes = [case["shape"] for case in report["cases"]]
    return {
        **{key: each[key] for key in ("name", "function", "formula", "arrays", "sizes")},
        "status": report["status"],
        "comparisons": len(sizes),
        "not_covered": [one["text"] for one in report["uncovered"]],
    }


def page(result: Json) -> str:
    functions = {each["function"]: each for each in result["parts"]}
    comparisons = sum(each["comparisons"] for each in functions.values())
    right = sum(each["status"] == "correct" for each in functions.values())
    before, after = result["load_before_and_after"]
    machine = result["machine"]
    lines = [
        "# A denoising step of Stable Diffusion 3",
        "",
        "Made by `python benchmarks/diffusion_step.py`; do not edit by hand.",
        "",
        "512 x 512 pixels, a batch of 4 with guidance, 24 GB, tensor cores, RTX 4090. The request is PyTorch, "
        "[step.py](step.py): the last joint block of the transformer, the output layer, guidance and the Euler step. "
        "The blocks before it are of the same operations.",
        "",
        "    cd examples/stable_diffusion_3",
        f"    {result['command']} > step.cu",
        "",
        "What came out is [step.cu](step.cu): "
        f"{len(functions)} launch functions for {len(result['parts'])} parts, in the order that its first lines tell. "
        f"{right} of {len(functions)} are right in {comparisons} comparisons with their formulas in the emulator, at "
        "small sizes, as it cannot run these ([result.json](result.json) has the sizes). Nothing was timed on a GPU.",
        "",
        *(f"- {'Holds' if each['holds'] else 'Broken'}: {each['text']}." for each in result["limits"]),
        f"- {result['seconds']:.0f} seconds for the whole command, {result['processor_seconds']:.0f} of a processor, "
        f"on {machine['processor']}, with a load of {before} before and {after} after.",
        "",
        "| part | launch function | formula |",
        "|---|---|---|",
    ]
    for each in result["parts"]:
        body = " ".join(line for line in each["formula"].splitlines() if "=" in line or line.startswith("  "))
        shown = " ".join(body.split()).replace("|", "&#124;")
        lines.append(f"| {each['name']} | `{each['function']}` | `{shown}` |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
