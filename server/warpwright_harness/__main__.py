"""`python -m warpwright_harness --results FD`, with `--bare LOCK` to launch kernels without torch under
compute-sanitizer; `--probe` to print what GPU there is as one JSON line, `--arch` its architecture alone; `--once FILE`
to launch one kernel once under a profiler; `--imports` to leave bytecode of all that is imported."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="warpwright_harness", description="Run, compare and time CUDA kernels.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--results", type=int, metavar="FD", help="file descriptor to write events to")
    group.add_argument("--probe", action="store_true", help="print the GPU that would be used, as JSON")
    group.add_argument("--arch", action="store_true", help="print the GPU's architecture, without torch")
    group.add_argument("--imports", action="store_true", help="import all that a request may need, and end")
    group.add_argument("--once", metavar="FILE", help="launch the kernel of this request once")
    parser.add_argument("--bare", metavar="LOCK", help="launch kernels without torch; the lock of the GPU")
    arguments = parser.parse_args()
    if arguments.once:
        from warpwright_harness.once import run_once

        wrong = run_once(json.loads(Path(arguments.once).read_text(encoding="utf-8")))
        if wrong:
            sys.stderr.write(f"{wrong}\n")
        return int(bool(wrong))
    if arguments.imports:
        from warpwright_harness.worker import import_all

        import_all()
        if sys.pycache_prefix is not None:
            (Path(sys.pycache_prefix) / "whole").touch()
        return 0
    if arguments.arch:
        from warpwright_harness.device import architecture

        sys.stdout.write(f"{architecture()}\n")
        return 0
    if arguments.probe:
        from warpwright_harness.device import probe

        sys.stdout.write(json.dumps(probe()) + "\n")
        return 0
    _silence()
    with os.fdopen(arguments.results, "w", buffering=1, encoding="utf-8") as sink:
        if arguments.bare:
            from warpwright_harness.bare import run_bare

            run_bare(arguments.bare, sys.stdin, sink)
            return 0
        from warpwright_harness.worker import serve

        return serve(sys.stdin, sink)


def _silence() -> None:
    """What kernels print goes nowhere: a million threads' lines would fill the log in which errors are told."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
