"""Unpack newer editors than the distribution has, for the tests: `python tools/editors.py FOLDER`

On Debian, packages of newer releases with all that they need, down to the C library, in FOLDER/<release>; nothing is
installed. FOLDER/<release>/nvim and FOLDER/<release>/hx start them. Uses the standard library alone.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

RELEASES = {"trixie": ("neovim",), "forky": ("neovim", "hx")}  # Neovim 0.10; Neovim 0.12, Helix 25.07
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
PROGRAMS = {
    "nvim": ("usr/bin/nvim", {"VIMRUNTIME": "usr/share/nvim/runtime"}),
    "hx": ("usr/lib/hx/hx", {"HELIX_RUNTIME": "usr/lib/hx/runtime"}),
}


def main(folder: Path) -> int:
    source = mirror()
    if source is None:
        print("Editors are unpacked on Debian alone: apt-get knows no Debian archive here.", file=sys.stderr)
        return 1
    failed = []
    for release, packages in RELEASES.items():
        root = folder.resolve() / release
        if not (root / "unpacked").exists():
            shutil.rmtree(root, ignore_errors=True)
            try:
                unpack(root, f"{source} {release} main", packages)
            except subprocess.CalledProcessError as error:
                words = (error.stderr or error.stdout or "it said nothing").strip().splitlines()[-1]
                print(f"{' and '.join(packages)} of {release} could not be unpacked: {words}", file=sys.stderr)
                failed.append(release)
                continue
        for program in started(root):
            version = output(str(program), "--version").splitlines()[0]
            print(f"{program}: {version}")
    return int(bool(failed))


def mirror() -> str | None:
    """The start of a line of sources.list for this machine's Debian archive, up to the release."""
    try:
        known = output("apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)")
    except (OSError, subprocess.CalledProcessError):
        return None
    for line in known.splitlines():
        origin, label, address = line.split("|")
        if (origin, label) == ("Debian", "Debian"):
            return f"deb [signed-by={KEYS}] {address}"
    return None


def unpack(root: Path, source: str, packages: tuple[str, ...]) -> None:
    """Fetch packages and what they depend on, as for a machine that has nothing, and unpack them below `root`. Raises
    CalledProcessError."""
    for part in ("lists/partial", "archives/partial", "etc"):
        (root / "apt" / part).mkdir(parents=True)
    (root / "apt" / "sources.list").write_text(f"{source}\n", encoding="utf-8")
    settings = {
        "Dir::State": f"{root}/apt",
        "Dir::State::Lists": f"{root}/apt/lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": f"{root}/apt",
        "Dir::Etc::sourcelist": f"{root}/apt/sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    output("apt-get", *options, "update")
    planned = output("apt-get", *options, "install", "--simulate", "--no-install-recommends", *packages)
    needed = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
    output("apt-get", *options, "download", *needed, cwd=root / "apt")
    for package in sorted((root / "apt").glob("*.deb")):
        output("dpkg-deb", "--extract", str(package), str(root))
    shutil.rmtree(root / "apt")
    (root / "unpacked").touch()


def started(root: Path) -> Iterator[Path]:
    """Write and yield a script for each program that is there; it runs it with the libraries that came with it."""
    (loader,) = root.glob("usr/lib/*/ld-linux-*.so.?")
    for name, (path, variables) in PROGRAMS.items():
        if (root / path).exists():
            lines = [f"export {variable}={shlex.quote(str(root / value))}" for variable, value in variables.items()]
            command = shlex.join([str(loader), "--library-path", str(loader.parent), str(root / path)])
            script = root / name
            script.write_text("\n".join(["#!/bin/sh", *lines, f'exec {command} "$@"', ""]), encoding="utf-8")
            script.chmod(0o755)
            yield script


def output(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/editors.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
