"""`python -m warpwright_harness.extension --settings` prints how extensions are built here, as one JSON line;
`--channel FD` is a side's process, which answers its judge on the socket FD."""

from __future__ import annotations

import argparse
import json
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="warpwright_harness.extension", description="Call a torch extension.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--settings", action="store_true", help="print how extensions are built here, as JSON")
    group.add_argument("--channel", type=int, metavar="FD", help="socket of the judge that asks")
    arguments = parser.parse_args()
    if arguments.settings:
        from warpwright_harness.extension.settings import build_settings

        sys.stdout.write(json.dumps(build_settings()) + "\n")
        return 0
    from warpwright_harness.extension.worker import serve

    return serve(arguments.channel)


if __name__ == "__main__":
    sys.exit(main())
