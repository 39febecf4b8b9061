"""`python -m warpwright.cli`: the command, where the script is not on PATH."""

from warpwright.cli.main import main

if __name__ == "__main__":
    main()
