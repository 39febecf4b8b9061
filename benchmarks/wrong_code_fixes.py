"""How many of the defects of benchmarks/wrong_code have a fix that is verified, and does what the twin does.

    python benchmarks/wrong_code_fixes.py [--out FILE] [CLASS...]

The fixes of a case are what `warpwright fix` offers for the rules of its class. One counts as fixed where no error or
warning of these rules is left, and as the twin where the emulator finds that the kernel gives what the twin's does, the
next case that is right.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpwright import __version__
from warpwright.editor.fixing import Reading, fix_source
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.progress import never_cancelled, silent
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source
from warpwright.verify.report import PASSED
from warpwright.verify.verify import verify
from wrong_code import CLASSES, FOLDER, GRAVE, Case, cases


def row_of(case: Case, twin: Case | None) -> dict[str, object]:
    rules = CLASSES[case.wrong or ""]

    def findings(program: Program) -> list[Finding]:
        return [finding for finding in run_rules(program, rules) if finding.severity in GRAVE]

    source = Source(str(FOLDER / case.file), case.text.encode())
    reading = Reading(analyze, findings, ())
    fixed = fix_source(source, reading, unsafe=False, progress=silent, is_cancelled=never_cancelled)
    left = findings(analyze(fixed.after))
    tried = [f"{each.rewrite}: {each.reason}" for each in fixed.attempts if not each.applied]
    made = [each.report.badge() for each in fixed.attempts if each.applied and each.report is not None]
    is_fixed = bool(made) and not left
    return {
        "file": case.file,
        "line": case.line,
        "wrong": case.wrong,
        "about": case.about,
        "fixed": is_fixed,
        "by": [each.rewrite for each in fixed.attempts if each.applied],
        "verdicts": made,
        "twin": _as_twin(fixed.after, twin) if is_fixed and twin is not None else None,
        "why_not": tried if not is_fixed else [],
    }


def _as_twin(fixed: Source, twin: Case) -> str:
    """The verdict on the twin in place of what was fixed."""
    names = [kernel.name for kernel in analyze(fixed).defined_kernels]
    others = [kernel.name for kernel in analyze(Source(fixed.path, twin.text.encode())).defined_kernels]
    text = twin.text
    for name, other in zip(names, others, strict=False):
        text = re.sub(rf"\b(run_)?{other}\b", lambda found, name=name: f"{found[1] or ''}{name}", text)
    report = verify(fixed, Source(fixed.path, text.encode()), kernel=names[0], backend="emulator")
    return "the same" if report.status in PASSED else f"{report.status}: {report.reason}"


def pairs(files: Sequence[Path]) -> Iterator[tuple[Case, Case | None]]:
    for path in files:
        read = list(cases(path.read_text(), path.name))
        for case, behind in zip(read, [*read[1:], None], strict=True):
            if case.wrong is not None:
                yield case, behind if behind is not None and behind.wrong is None else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="CLASS", help="files of wrong_code by their names, such as bounds")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the results are written as JSON")
    options = parser.parse_args()
    files = [path for path in sorted(FOLDER.glob("*.cu")) if not options.files or path.stem in options.files]
    rows = []
    for case, twin in pairs(files):
        rows.append(row_of(case, twin))
        print(json.dumps(rows[-1]), flush=True)
    total = {
        name: {
            "wrong": sum(row["wrong"] == name for row in rows),
            "fixed": sum(row["wrong"] == name and row["fixed"] is True for row in rows),
            "as_the_twin": sum(row["wrong"] == name and row["twin"] == "the same" for row in rows),
        }
        for name in Counter(str(row["wrong"]) for row in rows)
    }
    print(json.dumps(total, indent=1))
    if options.out:
        versions = {"warpwright": __version__, "python": platform.python_version()}
        document = {
            "command": "python benchmarks/wrong_code_fixes.py",
            "versions": versions,
            "total": total,
            "rows": rows,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
