"""The end of the path: what was trained is what the server says in an editor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lsprotocol import types
from support.command import run_command
from support.editor import VSCODE, start_editor
from support.upskill import FORMULA, KERNEL, TASK, ran
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import CompletionRequest
from warpwright.assist.prompts import generate_prompt
from warpwright.assist.weights import ModelFile, find_adapter

pytestmark = [pytest.mark.upskill, pytest.mark.llm]


@pytest.mark.slow
def test_the_engine_answers_with_it(tiny: Path, adapter: Path) -> None:
    request = CompletionRequest(generate_prompt(TASK), max_tokens=200)
    model = ModelFile(tiny, "tiny")
    with ChildEngine(model) as engine:
        base = engine.complete(request).text
    with ChildEngine(model, adapter) as engine:
        taught = engine.complete(request)
    assert KERNEL not in base
    assert taught.text == f"// Step: one thread per element\n{KERNEL}"
    assert taught.stop == "end"


@pytest.mark.slow
def test_the_editor_shows_it(tiny: Path, adapter: Path, tmp_path: Path) -> None:
    """A comment is typed, and the ghost text after it is a kernel of the formula that was taught."""
    environment = {"WARPWRIGHT_MODEL": str(tiny), "WARPWRIGHT_ADAPTER": str(adapter)}
    settings = {"ghostText": {"enable": True, "seconds": 60}}
    text = f"// kernel: {TASK}\n"
    with start_editor(VSCODE, tmp_path, options=settings, environment=environment) as editor:
        page = editor.open("a.cu", text)
        params = types.InlineCompletionParams(
            context=types.InlineCompletionContext(types.InlineCompletionTriggerKind.Invoked),
            text_document=page.identifier,
            position=page.position(len(text)),
        )
        answer = editor.request("textDocument/inlineCompletion", params)
    assert answer is not None
    (item,) = answer.items
    said, *kernel = str(item.insert_text).splitlines()
    assert said.startswith(f"// draft, read as: {FORMULA}  # 4 of 4 answers of the model")
    assert any("__global__ void" in line for line in kernel)


@pytest.mark.slow
@pytest.mark.nvcc
def test_the_command_line_writes_it(tiny: Path, adapter: Path, tmp_path: Path) -> None:
    env = {"WARPWRIGHT_ADAPTER": str(adapter)}
    result = run_command("generate", TASK, "--model", tiny, "--format", "json", cwd=tmp_path, env=env)
    report = json.loads(result.stdout)
    assert report["reference"] == FORMULA, result
    assert [each["report"]["status"] for each in report["candidates"]] == ["correct"], result


def test_installed_it_is_the_default_model_s_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gguf = pytest.importorskip("gguf")
    adapter = tmp_path / "adapter.gguf"
    writer = gguf.GGUFWriter(adapter, "gemma3")
    writer.add_type("adapter")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    monkeypatch.delenv("WARPWRIGHT_ADAPTER", raising=False)
    monkeypatch.setenv("WARPWRIGHT_DATA_DIR", str(tmp_path))
    default = ModelFile(tmp_path / "weights.gguf", "the default", is_default=True)
    assert find_adapter(default) is None
    env = {"WARPWRIGHT_DATA_DIR": str(tmp_path)}
    ran("install", adapter, env=env)
    found = find_adapter(default)
    assert found is not None and found.read_bytes() == adapter.read_bytes()
    ran("install", "--remove", env=env)
    assert find_adapter(default) is None
