"""Writes down what every rewrite makes of every kernel, so that two versions of the rewrites can be compared.

    python tools/replay.py write BEFORE.jsonl [PATH...]
    python tools/replay.py compare BEFORE.jsonl AFTER.jsonl

A PATH is a CUDA file, a Markdown file of cases, or a folder of them; left out, it is the rewrites' cases and the
samples.
`PYTHONPATH=OTHER/server` writes what the rewrites of another checkout make of the same texts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from warpwright.facts.analyze import analyze
from warpwright.rewrites.base import Rewrite
from warpwright.rewrites.registry import all_rewrites, in_place
from warpwright.syntax.source import Source, include_reader, read_source

ROOT = Path(__file__).resolve().parent.parent
USUAL = (ROOT / "tests" / "rewrites" / "cases", ROOT / "csrc_samples")
_CASE = re.compile(r"^## (\S+)\n\n```cuda\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = 40


@click.group(help=(__doc__ or "").partition("\n")[0])
def main() -> None:
    pass


@main.command(help="Every rewrite's edits, or its refusal, for each kernel of some texts.")
@click.argument("out", type=click.File("w", encoding="utf-8"))
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
def write(out: Any, paths: tuple[Path, ...]) -> None:
    for source in sources(paths or USUAL):
        for kernel in analyze(source, include_reader({}, ())).kernels:
            made = {kind.name: _outcome(kind, kernel) for kind in all_rewrites()}
            out.write(json.dumps({"place": source.path, "kernel": kernel.name, "made": made}) + "\n")


def sources(paths: tuple[Path, ...]) -> Iterator[Source]:
    for path in paths:
        if path.is_dir():
            yield from sources(tuple(sorted(p for suffix in ("*.cu", "*.md") for p in path.rglob(suffix))))
        elif path.suffix == ".md":
            for name, text in _CASE.findall(path.read_text(encoding="utf-8")):
                yield Source(f"{path.stem}/{name}.cu", text.encode())
        else:
            yield read_source(path)


def _outcome(kind: Any, kernel: Any) -> Any:
    """A list of edits, or a sentence."""
    try:
        made = in_place(kind, kernel, None)
    except Exception as error:  # what fails is compared as well
        return f"{type(error).__name__}: {error}"
    if isinstance(made, Rewrite):
        return [[edit.start, edit.end, edit.new_text] for edit in made.edits]
    return made.reason


@main.command(help="What differs, and how many kernels each rewrite has edits for.")
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
def compare(before: Path, after: Path) -> None:
    old, new = _read(before), _read(after)
    kinds: Counter[str] = Counter()
    for key in sorted(old.keys() | new.keys()):
        one, other = old.get(key), new.get(key)
        if one == other:
            continue
        kind = _kind(one, other)
        kinds[kind] += 1
        if kinds[kind] <= SHOWN:
            click.echo(f"{kind}: {': '.join(key)}\n  - {one}\n  + {other}")
    counts = [
        Counter(rewrite for (_, _, rewrite), made in read.items() if isinstance(made, list)) for read in (old, new)
    ]
    for rewrite in sorted({rewrite for _, _, rewrite in old | new}):
        click.echo(f"{counts[0][rewrite]:6} {counts[1][rewrite]:6}  {rewrite}")
    click.echo(f"{len(old)} and {len(new)} answers; {dict(kinds) or 'no difference'}")
    raise SystemExit(bool(kinds))


def _kind(one: Any, other: Any) -> str:
    if one is None or other is None:
        return "not there"
    kinds = ["edits" if isinstance(made, list) else "sentence" for made in (one, other)]
    return f"another {kinds[0]}" if kinds[0] == kinds[1] else f"{kinds[0]} became {kinds[1]}"


def _read(file: Path) -> dict[tuple[str, str, str], Any]:
    """By place, kernel and rewrite; kernels of one name and place are numbered."""
    found: dict[tuple[str, str, str], Any] = {}
    seen: Counter[tuple[str, str]] = Counter()
    with file.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            named = (row["place"], row["kernel"])
            seen[named] += 1
            name = row["kernel"] if seen[named] == 1 else f"{row['kernel']}#{seen[named]}"
            found |= {(row["place"], name, rewrite): made for rewrite, made in row["made"].items()}
    return found


if __name__ == "__main__":
    main()
