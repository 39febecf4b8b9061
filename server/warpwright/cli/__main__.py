"""`python -m warpwright.cli`: the command, where the script is not on PATH."""

from warpwright.search_path import import_nothing_from_here

import_nothing_from_here()

from warpwright.cli.main import main  # noqa: E402

if __name__ == "__main__":
    main()
