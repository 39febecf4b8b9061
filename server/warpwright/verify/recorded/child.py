"""Run a place of host code for each case, and write what it asks for: `python -I -S child.py RUNTIME LIBRARY`.

Standard library only: it is run by its path, confined, in a bare Python.
`cases.json` has for each case the bytes of the variables in hex, and which call of which function is to fail,
`parameters.json` the bytes of each parameter of each kernel by its mangled name;
`seen.json` gets what was seen.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

HEAD = 3
"""Lines of a record that are kept, for people."""


def main() -> None:
    runtime = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
    runtime.warpwright_open.restype = runtime.warpwright_function.restype = ctypes.c_void_p
    runtime.warpwright_record.restype = runtime.warpwright_error.restype = ctypes.c_char_p
    runtime.warpwright_otherwise.restype = ctypes.c_char_p
    library = runtime.warpwright_open(sys.argv[2].encode())
    if not library:
        sys.exit(runtime.warpwright_error().decode())
    for name, sizes in _read("parameters.json").items():
        runtime.warpwright_kernel(name.encode(), (ctypes.c_size_t * len(sizes))(*sizes), ctypes.c_size_t(len(sizes)))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
        runtime.warpwright_function(ctypes.c_void_p(library), b"warpwright_run")
    )
    seen = [_seen(runtime, run, case) for case in _read("cases.json")]
    Path("seen.json").write_text(json.dumps(seen))


def _read(name: str) -> Any:
    return json.loads(Path(name).read_text())


def _seen(runtime: Any, run: Any, case: dict[str, Any]) -> dict[str, Any]:
    held = [ctypes.create_string_buffer(bytes.fromhex(value), len(value) // 2) for value in case["values"]]
    handed = (ctypes.c_void_p * (len(held) + 1))(*(ctypes.addressof(each) for each in held))
    function, call = case["fails"]
    runtime.warpwright_reset(function.encode(), call)
    run(ctypes.addressof(handed))
    record: bytes = runtime.warpwright_record()
    lines = record.split(b"\n")
    return {
        "launches": len(lines) - 1,
        "digest": hashlib.sha256(record).hexdigest(),
        "head": [line.decode(errors="replace") for line in lines[:HEAD]],
        "unknown": any(b" ?" in line for line in set(lines)),
        "values": [each.raw.hex() for each in held],
        "otherwise": runtime.warpwright_otherwise().decode(),
        "graphs": runtime.warpwright_graph_launches(),
        "left": runtime.warpwright_left(),
        "error": runtime.warpwright_last(),
    }


if __name__ == "__main__":
    main()
