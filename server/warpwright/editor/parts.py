"""What was found on this machine of what features need, and what to do about what was not."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from warpwright import __version__
from warpwright.assist.endpoint import Endpoint, named_endpoint
from warpwright.assist.opening import named_model
from warpwright.assist.weights import ModelFile, find_adapter, find_model
from warpwright.missing import Missing
from warpwright.progress import Progress, never_cancelled


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that features need. `gives` says which; `advice` is empty where it was found."""

    name: str
    found: bool
    what: str
    gives: str
    advice: str = ""


def parts(progress: Progress) -> Iterator[Part]:
    """Each part, as it is found: asking for the GPU's software or fetching the model's weights may take seconds."""
    yield Part(
        "warpwright",
        True,
        f"{__version__}, Python {platform.python_version()} ({short(Path(sys.executable))})",
        "anything",
    )
    yield _analysis()
    yield _compiler()
    yield _disassembler()
    yield _sandbox()
    yield _trust()
    yield _emulator()
    gpu = _gpu()
    yield gpu
    if gpu.found:
        yield _harness()
    yield _profiler()
    yield _runtime()
    yield _model(named_endpoint(None) or find_model(None, progress))
    yield _editors()


def glance(model: str) -> Iterator[Part]:
    """What a status shows, at once: the parts that most features need, with nothing fetched, assembled or loaded.

    `model` is the user's, by path or name; empty is the default one.
    """
    yield _analysis()
    yield _compiler()
    yield _emulator()
    yield _gpu()
    runtime = _runtime()
    named = named_model(model)
    yield _model(named) if runtime.found or isinstance(named, Endpoint) else replace(runtime, name="model")


def _analysis() -> Part:
    found = f"tree-sitter {_version('tree-sitter')}, grammar tree-sitter-cuda {_version('tree-sitter-cuda')}"
    if sys.platform == "darwin":
        found += "; all that needs no compiler works on macOS, and what compiles or runs kernels does not"
    return Part("analysis", True, found, "findings")


def _compiler() -> Part:
    from warpwright.toolchain.find import find_toolchain

    name, gives = "compiler", "verified fixes, registers and spills"
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        return Part(name, False, toolchain.reason, gives, toolchain.advice)
    beside = ", with cuobjdump" if toolchain.cuobjdump is not None else ""
    return Part(
        name, True, f"nvcc {toolchain.version} from {toolchain.origin} ({short(toolchain.nvcc)}){beside}", gives
    )


def _disassembler() -> Part:
    from warpwright.toolchain.find import find_toolchain

    name, gives = "disassembler", "machine code of a kernel, and which line spills registers"
    toolchain = find_toolchain()
    nvdisasm = toolchain.nvdisasm if not isinstance(toolchain, Missing) else None
    if nvdisasm is None:
        advice = "It comes with the CUDA toolkit, and with `pip install 'warpwright[cuda]'`."
        return Part(name, False, "NVIDIA's nvdisasm was not found beside nvcc or on PATH.", gives, advice)
    return Part(name, True, f"nvdisasm ({short(nvdisasm)})", gives)


def _sandbox() -> Part:
    from warpwright.sandbox.confine import in_force_here

    name, gives = "sandbox", "keeping of compilers and kernels from the network and from your files"
    in_force = in_force_here()
    words = ", ".join(in_force) or "nothing"
    if any("Landlock" in each for each in in_force) and any("seccomp" in each for each in in_force):
        return Part(name, True, words, gives)
    advice = "Linux 5.13 or later with Landlock and seccomp has it; in a container, its runtime must allow both."
    if not any("Landlock" in each for each in in_force):
        advice += " Until then nothing of a folder is compiled before you allow it: `warpwright trust FOLDER`."
    return Part(name, False, f"Only this is in force: {words}.", gives, advice)


def _trust() -> Part:
    from warpwright.trust import trusted_folders

    kept = trusted_folders()
    listed = ", ".join(short(each) for each in kept) if kept else "none"
    return Part(
        "trust", True, f"folders that you allowed (`warpwright trust`): {listed}", "more than analysis of others"
    )


def _emulator() -> Part:
    name, gives = "emulator", "kernels run, compared and profiled without a GPU"
    if importlib.util.find_spec("numpy") is None:
        return Part(
            name, False, "NumPy is not installed.", gives, "Install it with `pip install 'warpwright[emulator]'`."
        )
    covers = "runs nvcc's PTX for sm_75 to sm_90, but no TMA, textures or clusters that a launch sizes"
    return Part(name, True, f"NumPy {_version('numpy')}: {covers}", gives)


def _profiler() -> Part:
    from warpwright.toolchain.ncu import find_ncu

    name, gives = "profiler", "profiles measured on a GPU, and no reports (.ncu-rep) read"
    ncu = find_ncu()
    if isinstance(ncu, Missing):
        return Part(name, False, ncu.reason, gives, ncu.advice)
    return Part(name, True, f"Nsight Compute ({short(ncu)})", gives)


def _gpu() -> Part:
    name, gives = "GPU", "timing: kernels are run and compared on the CPU"
    command = ["nvidia-smi", "--query-gpu=name,compute_cap,memory.total,driver_version", "--format=csv,noheader"]
    advice = "On a machine with an NVIDIA GPU, install NVIDIA's driver. Everything but timing works without."
    if sys.platform == "darwin":
        advice = "NVIDIA has no driver for macOS."
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except FileNotFoundError:
        return Part(name, False, "No NVIDIA driver: nvidia-smi is not on PATH.", gives, advice)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Part(name, False, f"nvidia-smi could not be asked ({type(error).__name__}).", gives, advice)
    gpus = [line.split(", ") for line in answer.stdout.splitlines() if line.count(", ") == 3]
    if answer.returncode or not gpus:
        return Part(name, False, "nvidia-smi shows no GPU.", gives, advice)
    shown = [f"{gpu[0]} (compute capability {gpu[1]}, {gpu[2]}, driver {gpu[3]})" for gpu in gpus]
    more = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
    return Part(name, True, shown[0] + more, gives)


def _harness() -> Part:
    from warpwright.verify.harness import find_gpu, harness_python

    name, gives = "harness", "kernels run, compared and timed on a GPU"
    gpu = find_gpu(never_cancelled)
    if isinstance(gpu, Missing):
        return Part(name, False, gpu.reason, gives, gpu.advice)
    software = f"torch {gpu.details['torch']} with CUDA {gpu.details['cuda']}"
    return Part(name, True, f"{software} ({short(Path(harness_python()))})", gives)


def _runtime() -> Part:
    name, gives = "model runtime", "plans, and kernels from comments that no rule reads"
    if importlib.util.find_spec("llama_cpp") is None:
        advice = "Install it with `pip install 'warpwright[model]'`; it is compiled, so a C++ compiler is needed."
        return Part(name, False, "llama-cpp-python is not installed.", gives, advice)
    return Part(name, True, f"llama-cpp-python {_version('llama-cpp-python')}", gives)


def _model(model: ModelFile | Endpoint | Missing) -> Part:
    name, gives = "model", "plans, and kernels from comments that no rule reads"
    if isinstance(model, Endpoint):
        return Part(name, True, f"{model.name} ({model.url}), which is not asked before it is needed", gives)
    if isinstance(model, Missing):
        return Part(name, False, model.reason, gives, model.advice)
    adapter = find_adapter(model)
    return Part(
        name, True, f"{model.name} ({short(model.path)})" + (f", adapter {short(adapter)}" if adapter else ""), gives
    )


def _editors() -> Part:
    name, gives = "editor", "findings as you type"
    found = [f"{label} ({short(Path(path))})" for label, binary in EDITORS if (path := shutil.which(binary))]
    if found:
        return Part(name, True, ", ".join(found), gives)
    return Part(
        name, False, "None of Neovim, VS Code, Emacs, Helix on PATH.", gives, "docs/editors.md shows the set-up."
    )


EDITORS = (("Neovim", "nvim"), ("VS Code", "code"), ("Emacs", "emacs"), ("Helix", "hx"))


def short(path: Path) -> str:
    """A path as a person would write it: from the working directory or from home, where it lies there.

    >>> short(Path.cwd() / "a" / "b"), short(Path("/usr/bin/nvcc"))
    ('a/b', '/usr/bin/nvcc')
    """
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(unknown version)"
