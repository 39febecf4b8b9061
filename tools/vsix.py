"""Build the VS Code extension: one .vsix for a platform, with the server and the libraries that it needs.

    python tools/vsix.py [--target linux-x64]... [--out dist]
    python tools/vsix.py --pin            write the hashes of client-vscode/libs.txt, for the versions that it names

Needs Node 22 or newer with npm. `--target all` builds every one. The libraries are those of client-vscode/libs.txt,
taken by their hashes: wheels in pure Python, and those of tree-sitter for the target's processor and for Python 3.11
to 3.14, whose compiled modules have names of their own and so lie in one folder. Their symbols for debuggers are
stripped where a `strip` of this machine knows the target. The commands of the terminal stay out, and what they alone
need. Each package is checked (tools/vsix_check.py); one for this machine also by starting its server.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

from vsix_check import CANNOT_LOAD, faults, imported, machine_target, normal

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "client-vscode"
BUNDLED = CLIENT / "bundled"
LIBS = CLIENT / "libs.txt"
PACKAGES = ("warpwright", "warpwright_harness")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_KEPT = (".py", ".so", ".pyd", ".dylib", "METADATA", "LICENSE")
NOTICES = CLIENT / "ThirdPartyNotices.txt"

PLATFORMS = {
    "linux-x64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux-arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "darwin-x64": ("macosx_11_0_x86_64", "macosx_10_13_x86_64", "macosx_10_9_x86_64"),
    "darwin-arm64": ("macosx_11_0_arm64",),
    "win32-x64": ("win_amd64",),
    "win32-arm64": ("win_arm64",),
    "alpine-x64": ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64"),
}
"""VS Code's targets, and the platforms of the wheels that run there."""


def fetch_wheels(target: str, folder: Path, libs: Path = LIBS, *, hashed: bool = True) -> None:
    """Download the wheels of every library for a target, for each version of Python."""
    platforms = [part for platform in PLATFORMS[target] for part in ("--platform", platform)]
    for version in VERSIONS:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--require-hashes"] if hashed else []
        command += ["--implementation", "cp", "--python-version", version, *platforms]
        subprocess.run([*command, "--dest", str(folder), "--requirement", str(libs)], check=True)


def pin() -> None:
    """Write libs.txt anew: the versions that it names, with the hashes of all wheels that any target takes."""
    versions = [line.split()[0] for line in LIBS.read_text(encoding="utf-8").splitlines() if "==" in line]
    hashes: dict[str, set[str]] = defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "libs.txt"
        bare.write_text("\n".join(versions), encoding="utf-8")
        for target in PLATFORMS:
            fetch_wheels(target, Path(folder), bare, hashed=False)
        for wheel in Path(folder).glob("*.whl"):
            hashes[normal(wheel.name.split("-")[0])].add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    lines = []
    for version in versions:
        own = sorted(hashes[normal(version.split("==")[0])])
        lines.append(" \\\n    ".join([version, *(f"--hash=sha256:{each}" for each in own)]))
    LIBS.write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    for name in ("LICENSE", "NOTICE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, CLIENT / name)
    NOTICES.write_text(notices(), encoding="utf-8")


def notices() -> str:
    """The licences of the npm packages that dist/extension.js has in it; those of bundled/libs lie beside them."""
    lock = json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))
    texts = []
    for path, package in sorted(lock["packages"].items()):
        if path and not package.get("dev"):
            licences = [file for file in (CLIENT / path).iterdir() if file.name.lower().startswith("licen")]
            assert licences, f"{path} has no licence"
            texts.append(
                f"{path.removeprefix('node_modules/')} {package['version']}\n\n{licences[0].read_text('utf-8')}"
            )
    return f"\n{'-' * 80}\n".join(texts)


def build(target: str, out: Path) -> list[str]:
    """Write one package into `out`. What is wrong with it, a sentence each."""
    out.mkdir(parents=True, exist_ok=True)
    package = out.resolve() / f"warpwright-{target}.vsix"
    command = ["npx", "vsce", "package", "--no-dependencies", "--target", target, "--out", str(package)]
    try:
        bundle(target)
        subprocess.run(["npm", "run", "--silent", "build"], cwd=CLIENT, check=True)
        subprocess.run(command, cwd=CLIENT, check=True, stdout=subprocess.DEVNULL)
        wrong = faults(package, target, VERSIONS)
        if target == machine_target():
            heavy = imported([BUNDLED / "server", BUNDLED / "libs"]) & CANNOT_LOAD
            wrong += [f"the server imports {name}" for name in sorted(heavy)]
    finally:
        # An extension with it beside it would start this server, and not that of the working tree.
        shutil.rmtree(BUNDLED)
    print(f"{package.name}: {package.stat().st_size / 1e6:.2f} MB")
    return wrong


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=[*sorted(PLATFORMS), "all"], action="append")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    parser.add_argument("--pin", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.pin:
        pin()
        return 0
    if shutil.which("npm") is None:
        print("vsix: npm was not found: install Node 22 or newer.", file=sys.stderr)
        return 2
    if not (CLIENT / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=CLIENT, check=True)
    targets = asked.target or ["linux-x64"]
    wrong = [
        f"{target}: {fault}"
        for target in (PLATFORMS if "all" in targets else targets)
        for fault in build(target, asked.out)
    ]
    for fault in wrong:
        print(f"vsix: {fault}.", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
