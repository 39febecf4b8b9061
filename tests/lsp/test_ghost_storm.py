"""A thousand edits and requests in random order, through a real server process."""

from __future__ import annotations

import re
from concurrent.futures import CancelledError, Future
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Page, start_editor
from warpwright.assist.readings import by_wordings

WORDS = ("relu of x", "add a and b", "sum of x", "x + y", "the kernel above is slow", "exp of x")
ROUNDS = 1000
MOST_GROWTH = 40 << 20


def params(page: Page, index: int) -> types.InlineCompletionParams:
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    return types.InlineCompletionParams(context, text_document=page.identifier, position=page.position(index))


def resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10  # type: ignore[index]


@pytest.mark.nvcc
def test_a_storm_of_edits_and_requests_shows_nothing_stale_and_leaves_nothing_behind(tmp_path: Path) -> None:
    chance = Random(20)
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        words = WORDS[0]
        page = editor.open("a.cu", f"// {words}\n")
        asked: list[tuple[str, Future[Any]]] = []
        answers = 0
        sizes: list[int] = []
        for number in range(ROUNDS):
            match chance.randrange(4):
                case 0:
                    other = chance.choice(WORDS)
                    if other != words:
                        page.replace(f"// {words}\n", f"// {other}\n")
                        words = other
                case 1:
                    name = f"storm-{number}"
                    at = len(page.text) if chance.random() < 0.9 else chance.randrange(len(page.text))
                    future = editor.start_request("textDocument/inlineCompletion", params(page, at), name)
                    asked.append((words, future))
                    if chance.random() < 0.3:
                        editor.notify("$/cancelRequest", types.CancelParams(id=name))
                case 2 if asked and chance.random() < 0.2:
                    answers += settled(*asked[-1])
                case _:
                    page.hover(words.split()[0])
            if number in (ROUNDS // 3, ROUNDS - 1):
                sizes.append(resident(editor.process.pid))
        for each in asked:
            answers += settled(*each)
        assert answers > 20
        assert sizes[1] - sizes[0] < MOST_GROWTH
        assert all(future.done() for _, future in asked)
        last = editor.request("textDocument/inlineCompletion", params(editor.open("b.cu", "// relu of x\n"), 13), 60)
        assert "relu(x[i])" in last.items[0].insert_text
        assert not [line for line in editor.log if "Traceback" in line]


def settled(words: str, future: Future[Any]) -> bool:
    """Whether an answer came; where one did, it is one for the words that stood there."""
    try:
        answer = future.result(60)
    except CancelledError:
        return False
    except Exception as error:
        assert "ancel" in str(error)
        return False
    if answer is None:
        return False
    first = answer.items[0].insert_text.lstrip("\n").partition("\n")[0]  # in a comment it begins behind its line
    (reading, *_) = by_wordings(words)
    assert first.startswith(f"// read as: {reading.formula.text}  #"), (words, first)
    return True
