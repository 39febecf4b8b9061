"""`check --format sarif` against what SARIF 2.1.0 demands of a log (the numbers are its sections)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from cli.kernels import CLEAN, CONFLICT
from support.command import run_command

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("sarif")
    (folder / "with space").mkdir()
    (folder / "with space" / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (folder / "ü.cu").write_text(CONFLICT.replace("    out[", "    /* ü😀 */ out["), encoding="utf-8")
    ran = run_command("check", ".", "none.cu", "--format", "sarif", cwd=folder)
    assert ran.status == 2
    return ran.json


def test_the_log(log: Any) -> None:
    assert log["version"] == "2.1.0"  # 3.13.2
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    assert len(log["runs"]) == 1


def test_the_tool(log: Any) -> None:
    driver = log["runs"][0]["tool"]["driver"]  # 3.18.2, 3.19
    assert driver["name"] == "warpwright"
    assert re.fullmatch(r"\d+\.\d+\.\d+", driver["semanticVersion"])  # 3.19.12
    names = [rule["id"] for rule in driver["rules"]]
    assert len(names) == len(set(names))  # 3.19.23: unique
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"].strip()  # 3.49.9, 3.11
        assert rule["fullDescription"]["text"].endswith((".", "`"))  # a whole sentence; GitHub demands one
        assert (ROOT / rule["helpUri"].partition("/blob/main/")[2]).is_file()  # 3.49.12
        assert "\n" not in rule["shortDescription"]["text"]
        assert rule["help"]["text"].strip()  # 3.11.7: text is there where markdown is
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")  # 3.50.3


def test_the_results(log: Any) -> None:
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert run["columnKind"] == "utf16CodeUnits"  # 3.14.17
    assert [result["ruleId"] for result in run["results"]] == ["bank-conflict"] * 2
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]  # 3.27.6
        assert result["level"] in ("none", "note", "warning", "error")  # 3.27.10
        assert result["message"]["text"].strip()  # 3.27.11
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())  # 3.27.17
        for location in [*result["locations"], *result.get("relatedLocations", [])]:
            region = location["physicalLocation"]["region"]
            assert 1 <= region["startLine"] <= region["endLine"]  # 3.30.5, 3.30.7
            assert region["startColumn"] >= 1  # 3.30.6
            if region["startLine"] == region["endLine"]:
                assert region["endColumn"] >= region["startColumn"]  # 3.30.8: one past the end
        ids = [location["id"] for location in result.get("relatedLocations", [])]
        assert len(ids) == len(set(ids))  # 3.28.2


def test_files_are_relative_uris(log: Any) -> None:
    run = log["runs"][0]
    base = run["originalUriBaseIds"]["SRCROOT"]["uri"]
    assert base.startswith("file:///") and base.endswith("/")  # 3.14.14
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in run["results"]]
    assert [place["uriBaseId"] for place in places] == ["SRCROOT"] * 2  # 3.4.4
    assert all(re.fullmatch(r"[\w.%/-]+", place["uri"], re.ASCII) for place in places)  # 3.4.3: RFC 3986
    assert sorted(unquote(place["uri"]) for place in places) == ["with space/a.cu", "ü.cu"]
    root = Path(unquote(base.removeprefix("file://")))
    assert all((root / unquote(place["uri"])).is_file() for place in places)


def test_what_could_not_be_read_is_a_notification(log: Any) -> None:
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False  # 3.20.14
    (notification,) = invocation["toolExecutionNotifications"]  # 3.20.21
    assert notification["level"] == "error"
    assert "none.cu: no such file" in notification["message"]["text"]


def test_columns_count_utf16_units(log: Any) -> None:
    (region,) = [
        location["region"]
        for result in log["runs"][0]["results"]
        if unquote((location := result["locations"][0]["physicalLocation"])["artifactLocation"]["uri"]) == "ü.cu"
    ]
    line = CONFLICT.replace("    out[", "    /* ü😀 */ out[").splitlines()[4].encode("utf-16-le")
    words = "tile[threadIdx.x][threadIdx.y]".encode("utf-16-le")
    assert (region["startColumn"] - 1) * 2 == line.index(words)
    assert (region["endColumn"] - region["startColumn"]) * 2 == len(words)


# What the schema lets each object have, of what is used here, and what it must have. It allows nothing else.
OBJECTS = {
    "log": ({"$schema", "version", "runs"}, {"version", "runs"}),
    "run": ({"tool", "columnKind", "originalUriBaseIds", "invocations", "results"}, {"tool"}),
    "driver": ({"name", "semanticVersion", "informationUri", "rules"}, {"name"}),
    "rule": (
        {"id", "shortDescription", "fullDescription", "helpUri", "help", "defaultConfiguration", "properties"},
        {"id"},
    ),
    "invocation": ({"executionSuccessful", "toolExecutionNotifications"}, {"executionSuccessful"}),
    "notification": ({"level", "message"}, {"message"}),
    "result": (
        {
            "ruleId", "ruleIndex", "level", "message", "locations", "relatedLocations", "partialFingerprints",
            "properties", "rank",
        },
        {"message"},
    ),
    "location": ({"id", "message", "physicalLocation", "logicalLocations"}, set[str]()),
    "physicalLocation": ({"artifactLocation", "region"}, {"artifactLocation"}),
    "artifactLocation": ({"uri", "uriBaseId"}, {"uri"}),
    "region": ({"startLine", "startColumn", "endLine", "endColumn"}, {"startLine"}),
}  # fmt: skip


def test_no_object_has_what_the_schema_does_not_know(log: Any) -> None:
    def check(kind: str, value: dict[str, Any]) -> None:
        known, needed = OBJECTS[kind]
        assert needed <= set(value) <= known, (kind, set(value))

    check("log", log)
    (run,) = log["runs"]
    check("run", run)
    assert set(run["tool"]) == {"driver"}
    check("driver", run["tool"]["driver"])
    for rule in run["tool"]["driver"]["rules"]:
        check("rule", rule)
    for invocation in run["invocations"]:
        check("invocation", invocation)
        for notification in invocation["toolExecutionNotifications"]:
            check("notification", notification)
    assert run["results"]
    for result in run["results"]:
        check("result", result)
        assert result["relatedLocations"]
        for location in [*result["locations"], *result["relatedLocations"]]:
            check("location", location)
            check("physicalLocation", location["physicalLocation"])
            check("artifactLocation", location["physicalLocation"]["artifactLocation"])
            check("region", location["physicalLocation"]["region"])


def test_files_are_named_relative_to_the_checkout(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.cu").write_text(CONFLICT, encoding="utf-8")
    marks = set()
    for folder in (tmp_path, tmp_path / "below"):
        (run,) = run_command("check", ".", "--format", "sarif", cwd=folder).json["runs"]
        (result,) = run["results"]
        assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == f"{tmp_path.resolve().as_uri()}/"
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "below/a.cu"
        marks.add(result["partialFingerprints"]["warpwright/v1"])
    assert len(marks) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the file system takes only UTF-8")
def test_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff%.cu")).write_text(CONFLICT, encoding="utf-8")
    (run,) = run_command("check", ".", "--format", "sarif", cwd=tmp_path).json["runs"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%FF%25.cu"


def test_nothing_found(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CLEAN, encoding="utf-8")
    ran = run_command("check", ".", "--format", "sarif", cwd=tmp_path)
    assert (ran.status, ran.json["runs"][0]["results"]) == (0, [])  # 3.14.23: an empty list says that it was looked
