"""What comes of a command, or of an editor's request, when one of its processes is killed: the same answer as without,
or one sentence.

    python benchmarks/kill_children.py [--tries 200] [--seed 0] [--only NAME] [--write]

Each try starts one command, or the language server with requests of an editor, in a cache of its own, and sends
SIGKILL to one process that it has started, of a random kind at a random moment: the sandbox's launcher, nvcc or one of
its passes, the emulator, the model, a worker of the server. A try fails where a traceback is printed, where nothing
comes for TOO_LONG_SECONDS, where the answer is another one than without, where a process is left behind, or where a
compiler that was killed is told as an error in the user's text. Linux alone has what this looks with.

`--write` adds the result, with hardware and versions, to benchmarks/results/kill_children.json.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edit_latency import Server
from hardware import processor

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "kill_children.json"
TOO_LONG_SECONDS = 150.0
LEFT_SECONDS = 3.0
MANY = 40
"""Files, which `check` shares among processes."""
_PR_SET_CHILD_SUBREAPER = 36
Json = dict[str, Any]

ORIGINAL = """\
// warpwright: array in[n * n] in
// warpwright: array out[n * n] out
// warpwright: check n=32
// warpwright: check n=96
// warpwright: profile n=96
__global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[(blockIdx.y * 32 + y) * n + blockIdx.x * 32 + x];
    __syncthreads();
    out[(blockIdx.x * 32 + y) * n + blockIdx.y * 32 + x] = tile[x][y];
}

void run(const float* in, float* out, int n) {
    transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(in, out, n);
}
"""
CANDIDATE = ORIGINAL.replace("tile[32][32]", "tile[32][33]")

KINDS = (
    ("launcher", r"launcher\.py \S*\{"),
    ("emulator", r"warpwright\.emulator|warpwright\.verify\.emulated"),
    ("worker", r"warpwright\.editor\.worker"),
    ("worker of check", r"warpwright\.cli check"),
    ("model", r"assist/child\.py"),
    ("nvcc", r"(^|/)nvcc "),
    ("compiler pass", r"(^|/)(cicc|ptxas|cudafe\+\+|fatbinary|cc1plus|gcc|g\+\+|as|sh) "),
    ("disassembler", r"(^|/)(cuobjdump|nvdisasm) "),
)
"""Processes by their command lines; the first that fits."""


@dataclass(frozen=True)
class Answer:
    """What a run said: `content` is what must be the same each time, `said` what a person reads where it is not. Names
    of files are from the try's folder on, which is another one each time."""

    content: object
    said: str
    errors: str


Scenario = Callable[[Path, Callable[[int], None]], Answer]
"""Runs in a folder; tells the process whose children may be killed. Raises TimeoutExpired or queue.Empty."""


def command(*words: str, content: Callable[[int, str], object]) -> Scenario:
    """A command of warpwright's on the files of the folder."""

    def run(folder: Path, started: Callable[[int], None]) -> Answer:
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "warpwright.cli", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            started(process.pid)
            try:
                out, errors = process.communicate(timeout=TOO_LONG_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        said = "\n".join(line for line in errors.splitlines() if not re.match(r"\s+\d+\.\d s  ", line))
        return Answer(content(process.returncode, out), said + _reasons(out), errors + out)

    return run


def _reasons(out: str) -> str:
    """The sentences in a report that say why something is not known."""
    return "\n".join(re.findall(r'"(?:reason|not_run_because|missing|message|plan_missing)": "([^"]+)"', out))


def findings(status: int, out: str) -> object:
    return status, [(f["line"], f["rule"]) for f in json.loads(out)] if out.strip() else None


def verdict(status: int, out: str) -> object:
    if not out.strip():
        return status, None
    report = json.loads(out)
    return status, report["status"], report.get("predicted_speedup")


def profile(status: int, out: str) -> object:
    return status, json.loads(out)["lines"] if out.strip() else None


def search(status: int, out: str) -> object:
    if not out.strip():
        return status, None
    outcome = json.loads(out)
    found = {(each.get("report") or each)["status"] for each in outcome["candidates"]}
    return status, sorted(found - {"not-run"})


class Editor(Server):
    """A client that answers what the server asks, and keeps what it is shown."""

    patience_seconds = TOO_LONG_SECONDS

    def __init__(self) -> None:
        self.shown: list[str] = []
        super().__init__(
            {"diagnostic": {}, "codeAction": {"dataSupport": True, "resolveSupport": {"properties": ["edit"]}}}
        )

    def wait(self, is_wanted: Callable[[Json], bool]) -> tuple[float, Json]:
        def seen(message: Json) -> bool:
            if "id" in message and "method" in message:
                refused = {"applied": False} if message["method"] == "workspace/applyEdit" else None
                self._send({"id": message["id"], "result": refused})
            if message.get("method") in ("window/showMessage", "window/logMessage"):
                self.shown.append(message["params"]["message"])
            return is_wanted(message)

        return super().wait(seen)


def editing(folder: Path, started: Callable[[int], None]) -> Answer:
    """A file is opened, compiled in the background, its fix resolved, its kernel optimised."""
    errors = (folder / "errors").open("w+b")
    stderr, held = sys.stderr.fileno(), os.dup(sys.stderr.fileno())
    os.dup2(errors.fileno(), stderr)
    try:
        client = Editor()
    finally:
        os.dup2(held, stderr)
        os.close(held)
    started(client.process.pid)
    uri = (folder / "a.cu").as_uri()
    try:
        client.tell("workspace/didChangeConfiguration", {"settings": {"warpwright": {"optimizeSeconds": 40}}})
        item = {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": ORIGINAL}
        client.tell("textDocument/didOpen", {"textDocument": item})
        document = {"textDocument": {"uri": uri}}
        found = client.ask("textDocument/diagnostic", document)["items"]
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 15, "character": 0}}
        asked = {**document, "range": whole, "context": {"diagnostics": found}}
        offered = client.ask("textDocument/codeAction", asked) or []
        fix = next(each for each in offered if "data" in each and "disabled" not in each)
        resolved = client.ask("codeAction/resolve", fix)
        argument = {"uri": uri, "kernel": "transpose", "preview": True}
        optimised = client.ask("workspace/executeCommand", {"command": "warpwright.optimize", "arguments": [argument]})
        client.end()
    finally:
        client.process.kill()
        client.process.wait()
    errors.seek(0)
    written = errors.read().decode(errors="replace")
    edit = resolved.get("edit")
    content = [[f["code"] for f in found], edit is not None, optimised["status"]]
    disabled = (resolved.get("disabled") or {}).get("reason", "")
    return Answer(content, "\n".join([*client.shown, disabled, str(optimised.get("message") or "")]), written)


SCENARIOS: Mapping[str, tuple[int, Scenario]] = {
    "check --compile": (16, command("check", "--compile", "--format", "json", "a.cu", content=findings)),
    "check of many files": (5, command("check", "--format", "json", "many", content=findings)),
    "profile": (8, command("profile", "--format", "json", "a.cu", content=profile)),
    "verify": (6, command("verify", "--format", "json", "a.cu", "b.cu", content=verdict)),
    "optimize": (
        2,
        command("optimize", "--plan", "fixed", "--seconds", "40", "--format", "json", "a.cu", content=search),
    ),
    "optimize --plan model": (
        1,
        command("optimize", "--plan", "model", "--seconds", "80", "--format", "json", "a.cu", content=search),
    ),
    "editor": (2, editing),
}
"""Each with how often it is tried, of forty."""


def descendants(process: int) -> dict[int, str]:
    """What a process has started, with their command lines; what is dead left out."""
    parents: dict[int, list[int]] = {}
    lines: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parents.setdefault(int(parent), []).append(int(entry.name))
                lines[int(entry.name)] = line
    found: dict[int, str] = {}
    pending = [process]
    while pending:
        for child in parents.get(pending.pop(), []):
            found[child] = lines[child]
            pending.append(child)
    return found


def kind_of(pid: int, line: str) -> str:
    """What a process is. Of the two that a launcher's command line names, one that leads no group waits for the end of
    whoever started the other."""
    with suppress(ProcessLookupError):
        if "launcher.py" in line and os.getpgid(pid) != pid:
            return "launcher's companion"
    return next(
        (kind for kind, pattern in KINDS if re.search(pattern, line)), line.split(" ", maxsplit=1)[0].rsplit("/", 1)[-1]
    )


class Killer:
    """Kills one process after some seconds; where none runs then, the first that does."""

    def __init__(self, after: float, choice: random.Random) -> None:
        self.killed = ""
        self._after = after
        self._choice = choice
        self._is_over = threading.Event()

    def watch(self, process: int) -> None:
        threading.Thread(target=self._run, args=(process,), daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def _run(self, process: int) -> None:
        self._is_over.wait(self._after)
        while not self._is_over.is_set():
            running = descendants(process)
            kinds = sorted({kind_of(pid, line) for pid, line in running.items()})
            if kinds:
                kind = self._choice.choice(kinds)
                chosen = self._choice.choice(
                    [pid for pid, line in sorted(running.items()) if kind_of(pid, line) == kind]
                )
                with suppress(ProcessLookupError):
                    os.kill(chosen, signal.SIGKILL)
                    self.killed = kind
                    return
            time.sleep(0.01)


def in_folder(scenario: Scenario, models: Path, started: Callable[[int], None]) -> Answer:
    with tempfile.TemporaryDirectory(prefix="kill-children-") as name:
        folder = Path(name) / "project"
        folder.mkdir()
        (folder / "a.cu").write_text(ORIGINAL)
        (folder / "b.cu").write_text(CANDIDATE)
        (folder / "many").mkdir()
        for number in range(MANY):
            (folder / "many" / f"{number}.cu").write_text(ORIGINAL)
        cache = Path(name) / "cache"
        cache.mkdir()
        if models.is_dir():
            shutil.copytree(models, cache / "models", copy_function=os.link)
        os.environ["WARPWRIGHT_CACHE_DIR"] = str(cache)
        answer = scenario(folder, started)
        return replace(answer, said=answer.said.replace(f"{name}/", ""), errors=answer.errors.replace(f"{name}/", ""))


def judged(answer: Answer, expected: Answer) -> str:
    """What a try came to: "same", "said", or what is wrong with it."""
    if "Traceback (most recent call last)" in answer.errors:
        return "a traceback"
    if re.search(r"(nvcc found (an|\d+) errors?|does not compile)", answer.said + answer.errors):
        return "the text is blamed"
    if answer.content == expected.content:
        return "same"
    wrong = {"wrong", "unsafe", "compile-error", "rejected", "timeout"}
    if wrong & set(re.findall(r"[\w-]+", str(answer.content))):
        return "a wrong verdict"
    is_said = set(answer.said.splitlines()) - set(expected.said.splitlines())
    return "said" if is_said else "another answer, without a word"


def left_behind() -> list[str]:
    """What is still there of what has run, after some seconds; it is ended then."""
    until = time.monotonic() + LEFT_SECONDS
    while (left := descendants(os.getpid())) and time.monotonic() < until:
        time.sleep(0.05)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [kind_of(pid, line) for pid, line in left.items()]


def tried(name: str, number: int, seed: int, models: Path, expected: Answer, seconds: float) -> Json:
    choice = random.Random(f"{seed} {name} {number}")
    killer = Killer(choice.uniform(0.05, seconds), choice)
    try:
        answer = in_folder(SCENARIOS[name][1], models, killer.watch)
        outcome = judged(answer, expected)
        said = answer.said
    except subprocess.TimeoutExpired:
        outcome, said = "no answer", ""
    except (Exception, SystemExit) as error:
        outcome, said = f"{type(error).__name__}: {error}", ""
    finally:
        killer.stop()
    left = left_behind()
    if left:
        outcome = f"left behind: {', '.join(left)}"
    made = {"scenario": name, "killed": killer.killed, "outcome": outcome}
    return made if outcome == "same" else {**made, "said": said[-400:], "try": number}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first try, to go on where one ended")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=SCENARIOS)
    parser.add_argument("--models", type=Path, default=Path.home() / ".cache" / "warpwright" / "models")
    parser.add_argument("--write", action="store_true", help=f"add to {RESULT.relative_to(ROOT)}")
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    names = [name for name, (share, _) in SCENARIOS.items() if asked.only in (None, name) for _ in range(share)]
    order = random.Random(asked.seed)
    order.shuffle(names)
    known: dict[str, tuple[Answer, float]] = {}
    made: list[Json] = []
    before = json.loads(RESULT.read_text())["tries"] if asked.first and RESULT.exists() else []
    for number in range(asked.first, asked.first + asked.tries):
        name = names[number % len(names)]
        if name not in known:
            began = time.monotonic()
            known[name] = in_folder(SCENARIOS[name][1], asked.models, lambda _: None), time.monotonic() - began
            left_behind()
        made.append(tried(name, number, asked.seed, asked.models, *known[name]))
        print(json.dumps(made[-1]), flush=True)
        if asked.write:
            write([*before, *made], asked)
    good = [each for each in made if each["outcome"] in ("same", "said")]
    print(f"{len(good)} of {len(made)}: the same answer, or one sentence")
    return 0 if len(good) == len(made) else 1


def write(tries: list[Json], asked: argparse.Namespace) -> None:
    killed = Counter(each["killed"] or "nothing: it had ended" for each in tries)
    result = {
        "what": "SIGKILL to one process of a command or of the language server at a random moment",
        "command": f"python benchmarks/kill_children.py --tries {len(tries)} --seed {asked.seed} --write",
        "outcomes": {
            name: dict(Counter(each["outcome"] for each in tries if each["scenario"] == name)) for name in SCENARIOS
        },
        "killed": dict(killed.most_common()),
        "hardware": processor(),
        "versions": {"python": platform.python_version(), "warpwright": version("warpwright")},
        "tries": tries,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
