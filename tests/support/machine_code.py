"""The machine code that nvcc makes of a text, for tests of what is said about it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from warpwright.toolchain.find import Toolchain, find_toolchain


def machine_code(text: str, folder: Path) -> dict[str, list[str]]:
    """The instructions (SASS for sm_90) of each kernel by its name, which is mangled unless it is extern "C"."""
    toolchain = find_toolchain()
    assert isinstance(toolchain, Toolchain)
    assert toolchain.cuobjdump is not None
    (folder / "k.cu").write_text(text)
    command = [toolchain.nvcc, "-w", "-O3", "-arch=sm_90", "-cubin", "-o", folder / "k.cubin", folder / "k.cu"]
    subprocess.run(command, check=True)
    dump = [toolchain.cuobjdump, "-sass", folder / "k.cubin"]
    sass = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    found: dict[str, list[str]] = {}
    for part in sass.split("Function : ")[1:]:
        name, _, rest = part.partition("\n")
        found[name.strip()] = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", rest)
    return found
