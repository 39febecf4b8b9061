"""All that is measured of PyTorch on a GPU, in one command: torch-check on seeded and sound operators, trace on
programs with their cures, wired kernels with what a call of them costs.

    PYTHONPATH=server python3 benchmarks/torch_gpu.py PACKAGES --out DIR [--seconds 420]

PACKAGES is what `wired_kernels.py write` wrote. Programs are traced and timed first, while compilers alone run beside
them; then operators and packages are tried side by side; last, calls are timed alone. Each part is a process with a
limit of its own, and what it wrote before it was ended is kept, in DIR beside torch_gpu.log and the recorded traces.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
from pathlib import Path

from warpwright.directories import cache_dir

HERE = Path(__file__).parent
TRACE_PART, CALLS_SECONDS = 0.55, 35.0
"""The part of the time that tracing may take, and what timing calls may."""
MOST_BYTES = 15 << 20
"""Of all recorded traces together."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=420.0)
    arguments = parser.parse_args()
    began, cores = time.monotonic(), os.cpu_count() or 2
    out = arguments.out.resolve()
    traces = out / "traces"
    traces.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
    scripts = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ.get("PATH", ""))
    os.environ["PATH"] = os.pathsep.join(scripts)  # ninja is there

    def left() -> float:
        return arguments.seconds - (time.monotonic() - began)

    with (out / "torch_gpu.log").open("ab") as log:

        def start(name: str, seconds: float, *command: str) -> Part:
            said = f"\n[{time.monotonic() - began:.0f} s] {name} {' '.join(command)} ({seconds:.0f} s)\n"
            log.write(said.encode())
            log.flush()
            nice = ["nice"] if "build" in command or "--build" in command else []
            process = subprocess.Popen(
                [*nice, sys.executable, str(HERE / f"{name}.py"), *command],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            return Part(name, process, time.monotonic() + seconds)

        packages, compilers = str(arguments.packages), max(1, (cores - 4) // 3)
        until = TRACE_PART * arguments.seconds
        built = [
            start("torch_fallbacks", until, "--build"),
            start("wired_kernels", until, "build", packages, "--jobs", str(compilers), "--seconds", str(until - 60)),
        ]
        traced = start(
            "trace_programs",
            until,
            "--device",
            "cuda",
            "--jobs",
            "5",
            "--seconds",
            str(until - 40),
            "--keep",
            str(traces),
            "--out",
            str(out),
        )
        done = {"trace": traced.end(), "build": max(each.end() for each in built)}
        for lock in [*arguments.packages.rglob("lock"), *(cache_dir() / "harness" / "extensions").rglob("lock")]:
            lock.unlink()  # torch waits for who was ended while it built
        jobs = str(max(1, cores // 2))
        rest = left() - CALLS_SECONDS
        together = [
            start("torch_fallbacks", rest, "--jobs", jobs, "--seconds", str(rest - 40), "--out", str(out)),
            start(
                "wired_kernels", rest, "test", packages, "--jobs", jobs, "--seconds", str(rest - 60), "--out", str(out)
            ),
        ]
        done |= {each.name: each.end() for each in together}
        done["calls"] = start("wired_kernels", CALLS_SECONDS, "time", packages, "--out", str(out)).end()
        log.write(f"\n[{time.monotonic() - began:.0f} s] {done}\n".encode())
    _packed(traces, out / "traces.tar")
    print(f"{time.monotonic() - began:.0f} s: {done}")
    print((out / "torch_gpu.log").read_text(encoding="utf-8", errors="replace")[-8000:])
    return int(any(done.values()))


class Part:
    """A process and all that it started, with an end."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], until: float) -> None:
        self.name, self.process, self.until = name, process, until

    def end(self) -> int:
        """Its status once it has ended, or is ended."""
        try:
            return self.process.wait(max(0.0, self.until - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return 124


def _packed(traces: Path, to: Path) -> None:
    """The smallest first, as many as go."""
    size = 0
    with tarfile.open(to, "w") as archive:
        for path in sorted(traces.iterdir(), key=lambda each: each.stat().st_size):
            size += path.stat().st_size
            if size <= MOST_BYTES:
                archive.add(path, path.name)
            path.unlink()
    traces.rmdir()


if __name__ == "__main__":
    sys.exit(main())
