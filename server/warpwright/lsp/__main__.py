"""`python -m warpwright.lsp` serves one editor on stdin and stdout; `--tcp PORT` serves editors that connect."""

from __future__ import annotations

import gc
import sys

_USAGE = "usage: python -m warpwright.lsp [--stdio | --tcp PORT]"


def main(arguments: list[str]) -> int:
    # Images of containers turn bytecode off: every start would compile some 600 modules anew, and take twice as long.
    sys.dont_write_bytecode = False
    gc.disable()  # to look for garbage among what is imported takes a fifth of the start; the first analysis enables it
    from warpwright.search_path import import_nothing_from_here, use_absolute_folders

    import_nothing_from_here()
    use_absolute_folders()
    from warpwright.lsp.server import serve_stdio, serve_tcp

    if arguments in ([], ["--stdio"]):
        serve_stdio()
    if len(arguments) == 2 and arguments[0] == "--tcp" and arguments[1].isdecimal() and int(arguments[1]) < 65536:
        return serve_tcp(int(arguments[1]))
    sys.stderr.write(f"{_USAGE}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
