"""What a compiler has to be told to build an extension for this Python's torch."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path
from typing import Any


def build_settings() -> dict[str, Any]:
    """Keys: torch, cuda (None for a torch without it), python, flags and libraries for nvcc's command line.

    The same as torch.utils.cpp_extension gives its own builds: folders, definitions and the C++ standard are its.
    """
    import torch
    from torch.utils import cpp_extension

    device = "cuda" if torch.version.cuda else "cpu"
    includes = [p for p in cpp_extension.include_paths(device) if Path(p).is_dir()]
    folders = [p for p in cpp_extension.library_paths(device) if Path(p).is_dir()]
    libraries = ["c10", "torch_cpu", "torch", "torch_python"]
    if device == "cuda":
        libraries += ["c10_cuda", "torch_cuda"]
    standards = re.findall(r"-std=c\+\+(\d+)", Path(cpp_extension.__file__).read_text(encoding="utf-8"))
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": sysconfig.get_python_version(),
        "flags": [
            *(f"-isystem={p}" for p in (*includes, sysconfig.get_paths()["include"])),
            *cpp_extension.COMMON_NVCC_FLAGS,
            f"-std=c++{max(standards, default='17')}",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            "-DTORCH_API_INCLUDE_EXTENSION_H",
        ],
        "libraries": [*(f"-L{p}" for p in folders), *(f"-l{name}" for name in libraries)],
    }
