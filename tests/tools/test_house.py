"""tools/house.py, on a tree of two small modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

ROWS = '''
"""Rows of a matrix."""

from tree_sitter import Node


class Place:
    # where a row is
    pass


def loops(body: Node) -> list[Node]:
    return [each for each in body.named_children if each.type == "for_statement" and each.next_sibling is None]


def total(rows: list[list[int]], skipped: int) -> int:
    found = 0
    for row in rows:
        if len(row) > skipped and row[skipped] not in rows[0]:
            found += sum(value * value - skipped for value in row[skipped:])
    return max(found, min(skipped, len(rows), rows[0][0] + rows[-1][-1]))
'''


def test_it_counts_what_is_said_twice(tmp_path: Path) -> None:
    twin = ROWS.replace("row", "line").replace("found", "added").replace("def total", "def squares")
    for place, text in {"rewrites/rows.py": ROWS, "cuda/lines.py": twin, "cuda/__init__.py": ""}.items():
        file = tmp_path / "server" / "warpwright" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "server/warpwright/cuda"], check=True)

    told = subprocess.run(
        [sys.executable, ROOT / "tools" / "house.py", "--root", tmp_path, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(told.stdout)

    lines = len(ROWS.splitlines())
    assert found["totals"] | {"files": 3, "lines": 2 * lines, "files of the repository": 2} == found["totals"]
    assert [(each["name"], each["code"], each["node_uses"]) for each in found["packages"]] == [
        ("cuda", 11, 3),
        ("rewrites", 11, 3),
    ]
    assert (found["totals"]["files that read raw nodes"], found["totals"]["uses of raw nodes"]) == (1, 3)
    assert found["class_names"] == {"Place": ["warpwright/cuda/lines.py", "warpwright/rewrites/rows.py"]}
    assert [(each["one"].split()[-1], each["other"].split()[-1]) for each in found["twins"]] == [
        ("squares", "total"),
    ]
