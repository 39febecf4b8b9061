"""Findings as SARIF 2.1.0 (OASIS standard), for code scanning and for editors that read it.

What GitHub's code scanning wants beyond the standard is there too: a full description of each rule, files relative to
the checkout. Fixes are named and not given as edits: `check` verifies none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from warpwright import __version__
from warpwright.cli.findings import Place, Row, fingerprints, relative
from warpwright.editor.diagnostics import rule_page
from warpwright.rules.base import Rule, Severity
from warpwright.rules.registry import all_rules

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFORMATION: "note", Severity.HINT: "note"}


def sarif_log(rows: Sequence[Row], failures: Sequence[str], root: Path) -> dict[str, object]:
    """One run; files below `root` are named relative to it. Inputs that could not be read are notifications of its
    invocation, which then was not successful."""
    rules = sorted(all_rules(), key=lambda rule: rule.name)
    index = {rule.name: at for at, rule in enumerate(rules)}
    marks = fingerprints(rows, root)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "warpwright",
                        "semanticVersion": __version__,
                        "informationUri": "https://github.com/warpwright/warpwright",
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "columnKind": "utf16CodeUnits",  # what readers that know no columnKind count in
                "originalUriBaseIds": {"SRCROOT": {"uri": _directory_uri(root)}},
                "invocations": [
                    {
                        "executionSuccessful": not failures,
                        "toolExecutionNotifications": [
                            {"level": "error", "message": {"text": failure}} for failure in failures
                        ],
                    }
                ],
                "results": [_result(row, index[row.rule], mark, root) for row, mark in zip(rows, marks, strict=True)],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": _why(rule)},
        "helpUri": rule_page(rule.name),
        "help": {"text": rule.doc.strip(), "markdown": rule.doc.strip()},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": [rule.group]},
    }


def _why(rule: Rule) -> str:
    """The first paragraph of the page's first section, on one line."""
    found = re.search(r"^## .+\n\n((?:.+\n)+)", rule.doc, re.MULTILINE)
    return " ".join(found[1].split()) if found else rule.summary


def _result(row: Row, index: int, mark: str, root: Path) -> dict[str, object]:
    location = _location(row.place, root)
    if row.kernel:
        location["logicalLocations"] = [{"name": row.kernel, "kind": "function"}]
    result: dict[str, object] = {
        "ruleId": row.rule,
        "ruleIndex": index,
        "level": LEVELS[row.severity],
        "message": {"text": row.message},
        "locations": [location],
        "partialFingerprints": {"warpwright/v1": mark},
        "properties": {"evidence": row.evidence, "fixes": [title for _, title, _ in row.fixes]},
    }
    if row.gain is not None:
        result["rank"] = round(100 * row.gain, 1)
    if row.related:
        result["relatedLocations"] = [
            {"id": at, "message": {"text": message}, **_location(place, root)}
            for at, (place, message) in enumerate(row.related)
        ]
    return result


def _location(place: Place, root: Path) -> dict[str, object]:
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(place.file, root),
            "region": {
                "startLine": place.line,
                "startColumn": place.utf16_columns[0],
                "endLine": place.end_line,
                "endColumn": place.utf16_columns[1],
            },
        }
    }


def _artifact(file: str, root: Path) -> dict[str, object]:
    """A file below the root is named relative to it, so that a log means the same on another machine."""
    path = relative(file, root)
    if Path(path).is_absolute():
        return {"uri": Path(path).as_uri()}
    return {"uri": quote(os.fsencode(path)), "uriBaseId": "SRCROOT"}


def _directory_uri(root: Path) -> str:
    return root.resolve().as_uri().rstrip("/") + "/"
