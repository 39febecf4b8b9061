"""Precision and recall of the rules of torch extensions, on small extensions with one defect and their twins.

    python benchmarks/torch_rules.py [--out FILE] [FILE...]

The extensions are those of benchmarks/torch_defects, whose README says how they are labelled. All files of a case are
judged, each read with the others; nothing is built or run. A finding of the group, of any severity, is right in a case
that is labelled with its rule, and a false alarm in any other.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright import __version__
from warpwright.cuda.extension.unit import is_script, unit_of
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.rules.base import Finding
from warpwright.rules.registry import all_rules, run_rules
from warpwright.syntax.source import Source

FOLDER = Path(__file__).with_name("torch_defects")
GROUP = "torch"
_LABEL = re.compile(r"^### (?:wrong ([a-z-]+)|right): (.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(cuda|cpp|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SUFFIX = {"cuda": "cu", "cpp": "cpp", "python": "py"}


@dataclass(frozen=True)
class Case:
    """An extension: its files by name. `wrong` is the rule that finds its defect; None of one that is right."""

    page: str
    line: int
    wrong: str | None
    about: str
    files: dict[str, str]


def cases(text: str, page: str) -> Iterator[Case]:
    """What stands before the first label is part of every case: its CUDA before the first CUDA file.

    >>> text = "```cuda\\nint x;\\n```\\n### wrong a-b: c\\n```cuda\\nint y;\\n```\\n```python\\nz\\n```\\n"
    >>> [(case.wrong, case.files) for case in cases(text, "a.md")]
    [('a-b', {'file0.cu': 'int x;\\nint y;\\n', 'file1.py': 'z\\n'})]
    """
    labels = list(_LABEL.finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    shared = _BLOCK.findall(text[: labels[0].start()]) if labels else []
    for label, end in zip(labels, ends, strict=True):
        blocks = _BLOCK.findall(text[label.start() : end])
        cuda = [body for language, body in shared if language == "cuda"]
        first = next((at for at, (language, _) in enumerate(blocks) if language == "cuda"), None)
        if first is None and cuda:
            blocks.insert(0, ("cuda", "".join(cuda)))
        elif first is not None:
            blocks[first] = ("cuda", "".join([*cuda, blocks[first][1]]))
        blocks += [block for block in shared if block[0] != "cuda"]
        files = {f"file{at}.{_SUFFIX[language]}": body for at, (language, body) in enumerate(blocks)}
        yield Case(page, text.count("\n", 0, label.start()) + 1, label[1], label[2], files)


def found(case: Case) -> list[Finding]:
    """What the rules of the group find in all files of a case."""
    sources = tuple(Source(name, text.encode()) for name, text in case.files.items())
    every = []
    for source in sources:
        program = Program(source, {source.path: source}, ()) if is_script(source.path) else analyze(source)
        every += run_rules(program, select=(GROUP,), unit=unit_of(source, sources))
    return every


def summary(results: list[tuple[Case, set[str]]]) -> dict[str, dict[str, Any]]:
    """By rule: how many cases have its defect, of how many of them it is found, and in how many others."""
    out = {}
    for rule in [rule.name for rule in all_rules() if rule.group == GROUP]:
        wrong = [rules for case, rules in results if case.wrong == rule]
        hits = sum(rule in rules for rules in wrong)
        alarms = sum(rule in rules and case.wrong != rule for case, rules in results)
        out[rule] = {
            "wrong": len(wrong),
            "found": hits,
            "false_alarms": alarms,
            "precision": round(hits / (hits + alarms), 3) if hits + alarms else None,
            "recall": round(hits / len(wrong), 3) if wrong else None,
        }
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="FILE", help="files of torch_defects by their names")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the results are written as JSON")
    options = parser.parse_args()
    every = [p for p in sorted(FOLDER.glob("*.md")) if p.stem != "README"]
    pages = [p for p in every if not options.pages or p.stem in options.pages]
    if unknown := set(options.pages) - {p.stem for p in every}:
        parser.error(f"no such file: {', '.join(sorted(unknown))}; there are {', '.join(p.stem for p in every)}")
    results = []
    rows = []
    for page in pages:
        for case in cases(page.read_text(encoding="utf-8"), page.name):
            findings = found(case)
            results.append((case, {finding.rule for finding in findings}))
            place = f"{case.page}:{case.line}"
            for finding in findings:
                if finding.rule != case.wrong:
                    print(
                        f"{place} false alarm of {finding.rule} ({case.about}): {finding.span.line} {finding.headline}"
                    )
            if case.wrong is not None and case.wrong not in results[-1][1]:
                print(f"{place} not found, {case.wrong}: {case.about}")
            said = [f"{f.span.path}:{f.span.line} {f.rule}: {f.headline}" for f in findings]
            rows.append({"file": case.page, "line": case.line, "wrong": case.wrong, "about": case.about, "found": said})
    rules = summary(results)
    hits, alarms = (sum(each[key] for each in rules.values()) for key in ("found", "false_alarms"))
    wrong = sum(case.wrong is not None for case, _ in results)
    total = {
        "cases": len(results),
        "wrong": wrong,
        "precision": round(hits / (hits + alarms), 3) if hits + alarms else None,
        "recall": round(hits / wrong, 3) if wrong else None,
        "rules": rules,
    }
    for name, each in rules.items():
        print(f"{name:24} wrong {each['wrong']:2} precision {each['precision']} recall {each['recall']}")
    print(f"{len(results)} cases, {wrong} wrong: precision {total['precision']}, recall {total['recall']}")
    if options.out:
        versions = {"warpwright": __version__, "python": platform.python_version()}
        result = {"command": "python benchmarks/torch_rules.py", "versions": versions, "total": total, "rows": rows}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
