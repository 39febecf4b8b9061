"""`check --format sarif` against what SARIF 2.1.0 demands of a log (the numbers are its sections)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from cli.kernels import CONFLICT
from support.command import run_command


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("sarif")
    (folder / "with space").mkdir()
    (folder / "with space" / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (folder / "ü.cu").write_text(CONFLICT.replace("    out[", "    /* ü */ out["), encoding="utf-8")
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
        assert "\n" not in rule["shortDescription"]["text"]
        assert rule["help"]["text"].strip()  # 3.11.7: text is there where markdown is
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")  # 3.50.3


def test_the_results(log: Any) -> None:
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert run["columnKind"] == "unicodeCodePoints"  # 3.14.17
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


def test_columns_count_characters(log: Any) -> None:
    (region,) = [
        location["region"]
        for result in log["runs"][0]["results"]
        if unquote((location := result["locations"][0]["physicalLocation"])["artifactLocation"]["uri"]) == "ü.cu"
    ]
    line = CONFLICT.replace("    out[", "    /* ü */ out[").splitlines()[4]
    assert region["startColumn"] == line.index("tile[threadIdx.x]") + 1
