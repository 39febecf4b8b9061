"""Write the pages of rules and rewrites from their docstrings, docs/rules/*.md and docs/rewrites/*.md, and that of
attacks on verification, docs/attacks.md, from tests/attacks and tests/honest and what a run of them gave; what the
search finds, docs/optimize.md, from results of benchmarks/optimize.py and benchmarks/plans.py; and how fast written
formulas are, docs/formulas-speed.md, from those of benchmarks/formula_speed.py and its like; and what each module is
for, docs/modules.md, from the first sentences of the modules.

    python tools/generate.py            write them
    python tools/generate.py --check    exit 1 where a page is stale, missing or left over

The pages are generated, so change the docstring and not the page.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from warpwright.cuda.extension.unit import is_script, unit_of
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.rewrites.base import RewriteKind
from warpwright.rewrites.registry import all_rewrites, find_rewrite
from warpwright.rules.base import Finding, Rule, Severity
from warpwright.rules.registry import all_rules, run_rules
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from formula_page import page as formula_page  # noqa: E402
from optimize_page import page as optimize_page  # noqa: E402
from support.pages import files_of, sections  # noqa: E402
from support.pairs import ATTACKS, HONEST, Pair, pairs_in, what_and_fields  # noqa: E402
from support.texts import read_texts, texts_in  # noqa: E402

FOLDERS = ("rules", "rewrites")


def pages() -> Iterator[tuple[str, str]]:
    """Path below docs/ and text of every page."""
    rules, rewrites = all_rules(), all_rewrites()
    for rule in rules:
        yield f"rules/{rule.name}.md", rule_page(rule)
    for rewrite in rewrites:
        yield f"rewrites/{rewrite.name}.md", rewrite_page(rewrite)
    yield "rules/index.md", rule_index(rules)
    yield "rewrites/index.md", rewrite_index(rewrites)
    yield "attacks.md", attacks_page()
    yield "modules.md", modules_page()
    yield (
        "optimize.md",
        optimize_page(
            _result("optimize_cuda.json"),
            _result("plans.json"),
            _result("programs_cuda.json"),
            _result("programs_unread_cuda.json"),
        ),
    )
    if speed := _result("formula_speed.json"):
        levels = [each for level in (1, 2) if (each := _result(f"kernelbench_level{level}.json"))]
        names = ("catalogue", "sampled")
        batches = {name: each for name in names if (each := _result(f"formula_batch_{name}.json"))}
        yield "formulas-speed.md", formula_page(speed, _result("formula_products.json"), levels, batches)


def modules_page() -> str:
    """Each module's first sentence, package by package; rules and rewrites have pages of their own."""
    rewrites = {rewrite.name for rewrite in all_rewrites()}
    lines = ["# Modules", "", "[ARCHITECTURE.md](../ARCHITECTURE.md) has the map, and what holds everywhere."]
    for folder in sorted({path.parent for path in (ROOT / "server").rglob("*.py")}):
        own = folder.relative_to(ROOT / "server").as_posix()
        if own == "." or own.startswith("warpwright/rules/"):
            continue
        paths = [path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("__")]
        if own == "warpwright/rewrites":
            paths = [path for path in paths if path.stem.replace("_", "-") not in rewrites]
        rows = [(path.stem, first_sentence(path)) for path in paths]
        if rows:
            lines += ["", f"## {own}", "", "| module | |", "|---|---|"]
            lines += [f"| `{name}` | {sentence} |" for name, sentence in rows]
    return "\n".join(lines) + "\n"


def first_sentence(path: Path) -> str:
    """Of a module's docstring, on one line."""
    said = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n\n")[0].split())
    sentence = re.match(r".+?[.:](?= [A-Z`]|$)", said)
    return (sentence[0] if sentence else said).rstrip(".:").replace("|", "\\|")


def rule_page(rule: Rule) -> str:
    summary, rest = _split(rule.doc)
    fixes = ", ".join((*(f"[{name}](../rewrites/{name}.md)" for name in fixes_of(rule)), *cures_of(rule))) or "none"
    return (
        f"# {rule.name}\n\n{summary}\n\n"
        f"| group | severity | fix |\n|---|---|---|\n| {rule.group} | {severities(rule)} | {fixes} |\n\n"
        f"{rest}\n\n## Suppress it\n\n"
        f"On the line, or in a comment of its own above it:\n\n```cuda\n// warpwright: ignore[{rule.name}]\n```\n"
    )


def rewrite_page(rewrite: RewriteKind) -> str:
    summary, rest = _split(rewrite.doc)
    return (
        f"# {rewrite.name}\n\n{summary}\n\n"
        "| title in the editor | goal | of launches it relies on |\n|---|---|---|\n"
        f"| {rewrite.title} | {', '.join(rewrite.goals)} | {rewrite.needs} |\n\n{rest}\n"
    )


def rule_index(rules: tuple[Rule, ...]) -> str:
    lines = ["# Rules", ""]
    for group in sorted({rule.group for rule in rules}):
        lines += [f"## {group}", "", "| rule | severity | what it finds |", "|---|---|---|"]
        lines += [
            f"| [{rule.name}]({rule.name}.md) | {rule.severity} | {rule.summary} |"
            for rule in rules
            if rule.group == group
        ]
        lines.append("")
    return "\n".join(lines)


_BESIDE = (
    "A page's table says what the new code relies on of the kernel's launches. Other files may launch a kernel that",
    "is neither `static` nor in an unnamed namespace, where its own file has no `main`: such a kernel stays as it",
    "is, the new one stands beside it as a `static` kernel of another name (`stats_tuned`), and the launches of the",
    "file go to that. Where no launch is in the file, whoever wants the new kernel launches it. A kernel in a",
    "header is left alone. A rewrite that relies on nothing, or that repairs the kernel, edits it in place; make a",
    "kernel `static` to say that no other file launches it.",
)


def rewrite_index(rewrites: tuple[RewriteKind, ...]) -> str:
    lines = ["# Rewrites", "", *_BESIDE, "", "| rewrite | goal | what it does |", "|---|---|---|"]
    lines += [f"| [{r.name}]({r.name}.md) | {', '.join(r.goals)} | {r.summary} |" for r in rewrites]
    return "\n".join(lines) + "\n"


def attacks_page() -> str:
    """What each attack does, how it is caught, and what verification said of it on the CPU and on a GPU."""
    results = {
        (pairs, backend): _result(f"harness_{pairs}_{backend}.json")
        for pairs in ("attacks", "honest")
        for backend in ("emulator", "cuda")
    }
    lines = [
        "# Attacks on verification",
        "",
        "Each of these candidates is wrong, or proves nothing, and looks right to a careless harness. They stand in",
        "[tests/attacks](../tests/attacks), each an original and a candidate, and a test runs all of them; so do the",
        "honest rewrites below, which must pass. A verdict is that of a run in `benchmarks/results`; where there is",
        "none, the statuses are shown that are called true there.",
        "",
        *(_ran(pairs, backend, result) for (pairs, backend), result in results.items() if result),
        "",
        "| attack | what it does | caught by | emulator | GPU |",
        "|---|---|---|---|---|",
    ]
    lines += [_pair_row(pair, "attacks", results, caught=True) for pair in pairs_in(ATTACKS)]
    lines += ["", "## Honest rewrites", "", "| rewrite | what it does | emulator | GPU |", "|---|---|---|---|"]
    lines += [_pair_row(pair, "honest", results, caught=False) for pair in pairs_in(HONEST)]
    return "\n".join([*lines, *_extension_lines()]) + "\n"


def _extension_lines() -> Iterator[str]:
    """The torch extensions of tests/attacks/extension and tests/honest/extension, and what a GPU said of them."""
    result = _result("extension_attacks.json")
    rows = {row["name"]: row for row in result["results"]}
    attacks = sorted(texts_in(ATTACKS / "extension"), key=lambda attack: attack.name)
    texts = read_texts(HONEST / "extension" / "extensions.md")
    honest = sorted({each.name.partition("/")[0] for each in texts})
    for name, known in (("attacks", [each.name for each in attacks]), ("honest", honest)):
        ran = [rows[each] for each in known if each in rows]
        wrong = sum(not row["as_expected"] for row in ran)
        left = f", {len(known) - len(ran)} not run" if len(ran) < len(known) else ""
        if name == "attacks":
            yield from ("", "## Torch extensions", "")
            yield "They are called as Python calls them, on a GPU alone (`benchmarks/extension_attacks.py`)."
            yield ""
        yield f"- {name} ({result['hardware']}): {len(ran)} run, {wrong} with another verdict than is true{left}"
    yield from ("", "| attack | what it does | GPU |", "|---|---|---|")
    for attack in attacks:
        yield f"| `{attack.name}` | {what_and_fields(attack)[0]} | {_verdict(rows.get(attack.name))} |"
    yield from ("", "| honest | GPU | seconds, builds not counted |", "|---|---|---|")
    for each in honest:
        took = rows[each]["seconds"] if each in rows else ""
        yield f"| `{each}` | {_verdict(rows.get(each))} | {took} |"


def _verdict(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not run"
    return str(row["status"]) if row["as_expected"] else f"{row['status']}: {row['reason']}".replace("|", "\\|")


def _result(name: str) -> dict[str, Any]:
    path = ROOT / "benchmarks" / "results" / name
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _ran(pairs: str, backend: str, result: dict[str, Any]) -> str:
    where = result["hardware"].get("name") or result["hardware"].get("cpu")
    counts = result["counts"]
    wrong = f"{counts['surprises']} with another verdict than is true"
    wrong += f", {counts['left_out']} left for lack of time" if counts["left_out"] else ""
    return f"- {pairs}, {backend} ({where}): {counts['pairs']} run, {wrong}, in {result['seconds']:g} s"


def _pair_row(pair: Pair, pairs: str, results: dict[tuple[str, str], dict[str, Any]], *, caught: bool) -> str:
    verdicts = []
    for backend in ("emulator", "cuda"):
        rows = {row["name"]: row for row in results[pairs, backend].get("pairs", ())}
        row = rows.get(pair.name)
        verdicts.append(row["status"] if row else " or ".join(pair.expected[backend]))
    parts = [f"`{pair.name}`", pair.what, *([pair.caught] if caught else []), *verdicts]
    return f"| {' | '.join(part.replace('|', chr(92) + '|') for part in parts)} |"


def fixes_of(rule: Rule) -> list[str]:
    """Rewrites that the rule offers for its own examples."""
    fixes = [fix.rewrite for finding in example_findings(rule) for fix in finding.fixes if find_rewrite(fix.rewrite)]
    return list(dict.fromkeys(fixes))


def cures_of(rule: Rule) -> list[str]:
    """Titles of the edits that the rule offers for its own examples."""
    return list(dict.fromkeys(finding.cure.title for finding in example_findings(rule) if finding.cure))


@cache
def example_findings(rule: Rule) -> list[Finding]:
    """What the rule finds in its page's sections, each of which is one unit of CUDA files and scripts."""
    found: list[Finding] = []
    for section in sections(rule.doc).values():
        sources = tuple(Source(name, encoded(text)) for name, text in files_of(section).items())
        for source in sources:
            program = Program(source, {source.path: source}, ()) if is_script(source.path) else analyze(source)
            found += run_rules(program, select=(rule.name,), unit=unit_of(source, sources))
    return found


def severities(rule: Rule) -> str:
    return f"**{rule.severity}**" if rule.severity in (Severity.ERROR, Severity.WARNING) else str(rule.severity)


def _split(doc: str) -> tuple[str, str]:
    summary, _, rest = doc.strip().partition("\n")
    return summary, rest.strip()


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    docs = ROOT / "docs"
    wanted = dict(pages())
    present = {p.relative_to(docs).as_posix(): p for folder in FOLDERS for p in (docs / folder).glob("*.md")}
    present |= {
        name: docs / name
        for name in ("attacks.md", "modules.md", "optimize.md", "formulas-speed.md")
        if (docs / name).is_file()
    }
    stale = [name for name, text in wanted.items() if name not in present or _text(present[name]) != text]
    left_over = sorted(present.keys() - wanted.keys())
    if arguments:
        for name in stale:
            print(f"docs/{name} is stale or missing")
        for name in left_over:
            print(f"docs/{name} belongs to nothing")
        if stale or left_over:
            print("Run: python tools/generate.py", file=sys.stderr)
        return 1 if stale or left_over else 0
    for name in stale:
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[name], encoding="utf-8")
        print(f"wrote docs/{name}")
    for name in left_over:
        present[name].unlink()
        print(f"removed docs/{name}")
    return 0


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
