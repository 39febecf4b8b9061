"""Build the VS Code extension: one .vsix for a platform, with the server and the libraries that it needs.

    python tools/vsix.py [--target linux-x64] [--out dist]

Needs Node 22 or newer with npm. The libraries are those of client-vscode/libs.txt: wheels in pure Python, and those of
tree-sitter for the target's processor and for Python 3.11 to 3.14, whose compiled modules have names of their own and
so lie in one folder. Their symbols for debuggers are stripped where a `strip` of this machine knows the target. The
commands of the terminal stay out, and what they alone need.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "client-vscode"
BUNDLED = CLIENT / "bundled"
LIBS = CLIENT / "libs.txt"
PACKAGES = ("warpwright", "warpwright_harness")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_KEPT = (".py", ".so", ".pyd", ".dylib", "METADATA", "LICENSE")
LARGEST_BYTES = 5_000_000

PLATFORMS = {
    "linux-x64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux-arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "darwin-x64": ("macosx_11_0_x86_64", "macosx_10_13_x86_64", "macosx_10_9_x86_64"),
    "darwin-arm64": ("macosx_11_0_arm64",),
    "win32-x64": ("win_amd64",),
    "win32-arm64": ("win_arm64",),
}
"""VS Code's targets, and the platforms of the wheels that run there."""


def fetch_wheels(target: str, folder: Path) -> None:
    """Download the wheels of every library for a target, for each version of Python."""
    platforms = [part for platform in PLATFORMS[target] for part in ("--platform", platform)]
    for version in VERSIONS:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--implementation", "cp", "--python-version", version, *platforms]
        subprocess.run([*command, "--dest", str(folder), "--requirement", str(LIBS)], check=True)


def unpack(wheels: Path, libs: Path) -> None:
    """All wheels into one folder: modules, licences and what importlib.metadata reads."""
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(_KEPT) or "/licenses/" in name:
                    archive.extract(name, libs)
    for module in [*libs.rglob("*.so"), *libs.rglob("*.dylib")]:
        _strip(module)


def _strip(module: Path) -> None:
    for tool in ("llvm-strip", "strip"):
        if shutil.which(tool) is None:
            continue
        done = subprocess.run([tool, "--strip-debug", str(module)], check=False, capture_output=True)
        if done.returncode == 0:
            return


def bundle(target: str) -> None:
    shutil.rmtree(BUNDLED, ignore_errors=True)
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "cli")
        shutil.copytree(ROOT / "server" / package, BUNDLED / "server" / package, ignore=ignored)
    with tempfile.TemporaryDirectory() as wheels:
        fetch_wheels(target, Path(wheels))
        unpack(Path(wheels), BUNDLED / "libs")
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, CLIENT / name)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=sorted(PLATFORMS), default="linux-x64")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    asked = parser.parse_args(arguments)
    if shutil.which("npm") is None:
        print("vsix: npm was not found: install Node 22 or newer.", file=sys.stderr)
        return 2
    bundle(asked.target)
    if not (CLIENT / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=CLIENT, check=True)
    subprocess.run(["npm", "run", "--silent", "build"], cwd=CLIENT, check=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    package = asked.out.resolve() / f"warpwright-{asked.target}.vsix"
    command = ["npx", "vsce", "package", "--no-dependencies", "--target", asked.target, "--out", str(package)]
    subprocess.run(command, cwd=CLIENT, check=True)
    shutil.rmtree(BUNDLED)  # an extension with it beside it would start this server, and not that of the working tree
    size = package.stat().st_size
    print(f"{package.name}: {size / 1e6:.2f} MB")
    return 1 if size > LARGEST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
