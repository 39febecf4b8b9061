"""Put a GGUF adapter where the server looks for one, or take it away again.

python -m warpwright_upskill.install adapter.gguf
python -m warpwright_upskill.install --remove
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click
from warpwright.assist.weights import default_adapter_path

from warpwright_upskill.console import StageError, fail, stage
from warpwright_upskill.gemma import known_gguf


def install(adapter: Path) -> Path:
    """Copy `adapter` to where the server picks it up at its next start; the old one stays until the new one is whole.

    Raises StageError for what is no GGUF LoRA adapter, or cannot be written.
    """
    check_is_adapter(adapter)
    target = default_adapter_path()
    unfinished = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(adapter, unfinished)
        unfinished.replace(target)
    except OSError as error:
        raise StageError(
            f"{target} cannot be written ({error.strerror}); set WARPWRIGHT_DATA_DIR to another folder."
        ) from None
    return target


def check_is_adapter(path: Path) -> None:
    import gguf

    known_gguf(path)
    try:
        fields: Any = gguf.GGUFReader(str(path)).fields
        kinds = [fields[name].contents() for name in ("general.type", "general.architecture") if name in fields]
    except Exception as error:  # the reader raises whatever a damaged file makes numpy raise
        raise StageError(f"{path}: is a damaged GGUF file ({error}); export it anew.") from None
    if kinds != ["adapter", "gemma3"]:
        raise StageError(f"{path}: is no LoRA adapter of Gemma 3; `export` writes one.")


@click.command()
@click.argument("adapter", required=False, type=click.Path(path_type=Path))
@click.option("--remove", is_flag=True, help="Take the installed adapter away.")
def main(adapter: Path | None, remove: bool) -> None:
    """Install ADAPTER (GGUF, from `export`) for the server's default model."""
    if remove:
        target = default_adapter_path()
        click.echo(f"removed {target}" if target.is_file() else f"{target}: there is none")
        target.unlink(missing_ok=True)
        return
    if adapter is None:
        fail("Name the adapter to install, or say --remove.")
    click.echo(f"{install(adapter)}: used by the server from its next start")


if __name__ == "__main__":
    stage(main)
