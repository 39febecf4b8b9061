"""`python -m warpwright.emulator`: profile one kernel, asked for by one JSON object on stdin; see `profiling`.

It writes one JSON object a line: {"progress": "a sentence", "share": 0.5 or null}, and at last {"profile": {...}} or
{"missing": {"what", "reason", "advice"}}. The end of stdin means that nobody waits any more: the process ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from warpwright.emulator.profile import profile_kernel
from warpwright.emulator.profiling import compiler_flags
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions
from warpwright.facts.profile import Profile
from warpwright.facts.profile_document import profile_json
from warpwright.missing import Missing
from warpwright.problems.chosen import chosen_shape
from warpwright.problems.launches import first_problem
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source, read_include
from warpwright.toolchain.compile_commands import merged

MOST_MEMORY_BYTES = 12 << 30


def main() -> int:
    _limit_memory()
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def progress(text: str, share: float | None) -> None:
        say({"progress": text, "share": share})

    try:
        answer = _profile(request, progress)
    except MemoryError:
        answer = Missing("memory", "The run needs more memory than it may use.", "Try a smaller shape.")
    say({"missing": asdict(answer)} if isinstance(answer, Missing) else {"profile": profile_json(answer)})
    return 0


def _profile(request: dict[str, Any], progress: Any) -> Profile | Missing:
    source = Source(request["path"], encoded(request["text"]))
    folders = tuple(request["folders"])
    assume = Assumptions(request["arch"], defines=request["defines"], included=tuple(request["included"]))
    unit = analyze(source, partial(read_include, folders=folders), assume)
    kernel = unit.kernel(request["kernel"])
    if kernel is None or kernel.node is None:
        return Missing("kernel", f"The kernel {request['kernel']} is not defined here.", "Name one that is.")
    problem = first_problem(unit, kernel)
    if isinstance(problem, Missing):
        return problem
    shape = chosen_shape(problem, request["shape"], problem.profile)
    if isinstance(shape, Missing):
        return shape
    if shape == request["shape"]:
        problem = replace(problem, own_shape=shape)
    flags = merged(request["flags"], compiler_flags(assume)).taken
    return profile_kernel(unit, kernel, problem, shape, arch=assume.arch, flags=flags, progress=progress)


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(1)


def _limit_memory() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))


if __name__ == "__main__":
    sys.exit(main())
