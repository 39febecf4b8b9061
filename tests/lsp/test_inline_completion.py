"""Ghost text: a kernel after a comment that asks for one; without a model nothing, said once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import DEFAULT_MODEL, VSCODE, Page, start_editor
from support.endpoint import endpoint
from support.kernels import CONFLICT
from support.untaught import untaught_model
from warpwright.assist import opening
from warpwright.assist.weights import ModelFile
from warpwright.editor.ghost_request import ghost_request
from warpwright.editor.settings import Settings, settings_json
from warpwright.lsp import inline_completion
from warpwright.missing import Missing
from warpwright.progress import silent
from warpwright.syntax.source import Source

REQUEST = "#include <cuda_runtime.h>\n\n// kernel: the eigenvalues of a tridiagonal matrix\n"


def params(page: Page, index: int | None = None) -> types.InlineCompletionParams:
    at = page.position(len(page.text) if index is None else index)
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    return types.InlineCompletionParams(context=context, text_document=page.identifier, position=at)


def ghost(page: Page, index: int | None = None, seconds: float = 30, context: Any = None) -> Any:
    asked = params(page, index)
    asked.context = context or asked.context
    return page.editor.request("textDocument/inlineCompletion", asked, seconds)


@pytest.mark.slow
def test_without_a_model_nothing_comes_and_the_log_says_so_once(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", REQUEST)
        assert ghost(page) is None
        assert ghost(page) is None
        assert len(editor.log) == 1
        assert "/no/such/model.gguf" in editor.log[0]
        assert editor.messages == []


@pytest.mark.slow
def test_nothing_is_written_where_nothing_is_asked_for(tmp_path: Path) -> None:
    """No model is looked for either: one that does not exist goes unnoticed."""
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", "// the kernel below is slow\n\n" + CONFLICT)
        for index in range(0, len(page.text), 20):
            assert ghost(page, index) is None
        editor.set_settings({"ghostText": False, "model": "/no/such/model.gguf"})
        page = editor.open("b.cu", REQUEST)
        assert ghost(page) is None
        assert editor.log == []


FORMULA = "// Rows that sum to 1:\n// p[r, c] = x[r, c] / sum[c] x[r, c]\n"


@pytest.mark.nvcc
def test_a_formula_is_written_and_checked_without_a_model(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", f"#include <cuda_runtime.h>\n\n__global__ void p() {{}}\n\n{FORMULA}")
        answer = page.editor.request("textDocument/inlineCompletion", params(page), 60)
        (item,) = answer.items
        made = Source("k.cu", (page.text + item.insert_text).encode())
        assert not made.root.has_error
        assert 'extern "C" cudaError_t p_2(' in item.insert_text and "<<<" in item.insert_text
        assert made.text().count("#include <cuda_runtime.h>") == 1
        assert item.range.start == item.range.end == page.position(len(page.text))
        assert editor.log == []


WORDS = "// row-wise softmax of x[rows][cols]\n"


@pytest.mark.nvcc
def test_words_are_read_and_what_they_were_read_as_can_be_edited(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", WORDS)
        (item,) = ghost(page, seconds=60).items
        first, _, kernel = item.insert_text.partition("\n")
        assert first.startswith("// read as: y[r, c] = exp(x[r, c] - m[r]) / ")
        assert first.endswith("  # f32, row-major, any R and C")
        assert 'extern "C" cudaError_t softmax(' in kernel
        page = editor.open("b.cu", f"{WORDS}{first.replace('exp', 'exp2')}\n")
        (item,) = ghost(page, seconds=60).items
        assert "exp2f(" in item.insert_text and "read as" not in item.insert_text
        page = editor.open("c.cu", "// softmax of x\n")
        asked = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Invoked)
        several = ghost(page, seconds=60, context=asked).items
        assert len({each.insert_text.partition("  #")[0] for each in several}) == 2
        assert editor.log == []


@pytest.mark.nvcc
def test_what_was_shown_is_shown_again_at_once_and_while_it_is_typed(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", WORDS)
        (item,) = ghost(page, seconds=60).items
        editor.set_settings({"ghostTextSeconds": 0.01, "model": "/no/such/model.gguf"})  # too short to write one anew
        page.replace("softmax", "softmax of all")
        assert ghost(page) is None
        page.replace("softmax of all", "softmax")
        editor.set_settings({"model": "/no/such/model.gguf"})
        assert ghost(page).items[0].insert_text == item.insert_text
        begun = item.insert_text[:12]
        page.replace(WORDS, WORDS + begun)
        (rest,) = ghost(page).items
        assert begun + rest.insert_text == item.insert_text
        page.replace(begun, f"{begun}other")
        assert ghost(page) is None


@pytest.mark.nvcc
def test_below_a_signature_the_body_alone_is_written_for_its_names_and_types(tmp_path: Path) -> None:
    head = "__global__ void norm(const float* in, float* out, int rows, int cols) {"
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", f"// row-wise softmax\n{head}")
        (item,) = ghost(page, seconds=60).items
        assert "__global__" not in item.insert_text and "<<<" not in item.insert_text
        assert "// read as: out[r, c] = exp(in[r, c] - m[r])" in item.insert_text
        assert "// Launch rows threads or more, in one dimension" in item.insert_text
        assert not Source("k.cu", (page.text + item.insert_text).encode()).root.has_error
        page = editor.open("b.cu", f"// out[i] = 2 * in[i]\n{head.replace('int rows, int cols', 'int n')}\n    \n}}\n")
        (item,) = ghost(page, len(page.text) - 3, seconds=60).items
        assert item.insert_text.endswith("out[i] = 2.0f * in[i];")
        assert "in one dimension" in item.insert_text
        signature = "template <typename T>\n__global__ void twice(const T* in, T* out, int n) {"
        (item,) = ghost(editor.open("c.cu", f"// out[i] = 2 * in[i]\n{signature}"), seconds=60).items
        assert "// Compared with its formula for T = float." in item.insert_text
        assert editor.log == []


@pytest.mark.nvcc
def test_while_the_comment_is_written_the_kernel_stands_below_it_as_the_file_is_written(tmp_path: Path) -> None:
    above = "struct Box {\r\n\tint size;\r\n};\r\n"
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf", "ghostTextSeconds": 90}) as editor:
        page = editor.open("a.cu", f"{above}// relu of x[n], half precisio")
        assert ghost(page) is None
        page.replace("precisio", "precision")
        (item,) = ghost(page, seconds=120).items
        assert item.insert_text.startswith("\r\n// read as: x: f16, y[n] = relu(x[n])")
        assert "\n\t" in item.insert_text and "\n    " not in item.insert_text
        page.replace("precision", "precision\r\n")
        (rest,) = ghost(page).items
        assert "\r\n" + rest.insert_text == item.insert_text
        reports: list[Any] = [each for token in editor.client.progress_reports.values() for each in token]
        titles = [each.title for each in reports if isinstance(each, types.WorkDoneProgressBegin)]
        ends = [each for each in reports if isinstance(each, types.WorkDoneProgressEnd)]
        assert titles.count("Writing a kernel") == 1 and ends


ADD_ONE = "__global__ void add_one(float* x, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    BODY\n}"
ASKED = "// kernel: walk along the list of neighbours\n"


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_text_ends_where_its_line_does(tmp_path: Path) -> None:
    """VS Code shows nothing on an empty line for a text that ends with a line's end of its own."""
    comment = "// relu of x\n"
    with start_editor(VSCODE, tmp_path) as editor:
        for name, after in (("a.cu", ""), ("b.cu", "\n\nint a;\n")):
            (item,) = ghost(editor.open(name, comment + after), len(comment)).items
            assert not item.insert_text.endswith("\n")


def test_a_larger_model_behind_a_server_passes_the_same_door(tmp_path: Path) -> None:
    def says(body: dict[str, Any]) -> str:
        said = texts[0]
        return said if body["prompt"].endswith("// Formula:") == said.startswith(" y[") else " none"

    texts = [" y[i] = 2 * x[i]"]
    with (
        endpoint(says) as server,
        start_editor(VSCODE, tmp_path, options={"model": f"{server.url}#big", "ghostTextSeconds": 240}) as editor,
    ):
        (item,) = ghost(editor.open("a.cu", "// kernel: the x that Jane meant, two fold\n"), seconds=300).items
        assert item.insert_text.startswith("// draft, read as: y[i] = 2 * x[i]  # 4 of 4 answers of the model")
        texts[0] = ADD_ONE.replace("BODY", "if (i < n) x[i] += 1.0f;")
        (item,) = ghost(editor.open("b.cu", ASKED), seconds=300).items
        first, code = item.insert_text.split("\n", 1)
        assert first.startswith("// draft: compiled and run without a fault; nothing says what it should compute")
        assert code == texts[0]
        for number, refused in enumerate(
            (
                'if (i < n) x[i] += system("true");',
                "if (i < n) x[i] += undeclared;",
                "x[i] += 1.0f;",
                "while (x[0] < 1e30f * n) { }",
                "if (i < n) { x[i] += 1.0f;",
                "#include </etc/passwd>",
            )
        ):
            texts[0] = ADD_ONE.replace("BODY", refused)
            assert ghost(editor.open(f"{number}.cu", ASKED.replace("list", f"list {number}")), seconds=300) is None
        texts[0] = "```cuda\n" * 4000
        assert ghost(editor.open("c.cu", ASKED.replace("list", "markdown")), seconds=300) is None
        assert not [line for line in editor.log if "Traceback" in line]
    (later := tmp_path / "later").mkdir()
    with start_editor(VSCODE, later, options={"model": server.url}) as editor:
        assert ghost(editor.open("d.cu", ASKED), seconds=60) is None
        assert editor.messages == []


@pytest.mark.slow
def test_words_that_are_not_understood_show_nothing(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        for number, words in enumerate(("somme des lignes de x", "the softmax above is slow", "add three vectors")):
            assert ghost(editor.open(f"{number}.cu", f"// {words}\n")) is None
        assert editor.log == []


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_formula_that_is_none_or_is_written_already_shows_nothing(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", f"{FORMULA}\n__global__ void p(const float* x) {{}}\n")
        assert ghost(page, len(FORMULA)) is None
        page = editor.open("b.cu", "// y[r] = x[r, c]\n")
        assert ghost(page) is None
        page = editor.open("c.cu", f"void host() {{\n{FORMULA}\n}}\n")
        assert ghost(page, page.text.index("\n}") + 1) is None
        page = editor.open("d.cu", FORMULA)
        page.editor.set_settings({"ghostTextSeconds": 0.01, "model": "/no/such/model.gguf"})
        assert ghost(page) is None
        assert editor.log == []


@pytest.mark.nvcc
def test_an_edit_ends_the_writing_of_a_formula(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"ghostTextSeconds": 60}) as editor:
        page = editor.open("a.cu", FORMULA)
        first = editor.start_request("textDocument/inlineCompletion", params(page), "first")
        second = editor.start_request("textDocument/inlineCompletion", params(page), "second")
        assert first.result(60) is None
        page.replace("sum to 1", "sum to one")
        assert second.result(60) is None
        answer = page.editor.request("textDocument/inlineCompletion", params(page), 60)
        assert answer is not None and "p_sum" in answer.items[0].insert_text
        assert not [line for line in editor.log if "Traceback" in line]


@pytest.mark.llm
@pytest.mark.nvcc
def test_the_taught_model_reads_what_no_rule_does(tmp_path: Path) -> None:
    words = "// kernel: for each row of x[rows][cols] how far its largest entry lies above its mean\n"
    settings = {"ghostTextSeconds": 120}
    with start_editor(
        VSCODE, tmp_path, options=settings, environment={**DEFAULT_MODEL, "WARPWRIGHT_DATA_DIR": str(tmp_path)}
    ) as editor:
        text = ghost(editor.open("a.cu", words), seconds=120).items[0].insert_text
        assert text.startswith("// draft, read as: ")
        assert "__global__" in text and "answers" in text.splitlines()[0]


@pytest.mark.llm
def test_a_newer_request_an_edit_and_the_time_limit_each_end_one(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"ghostTextSeconds": 0.01}, environment=untaught_model()) as editor:
        page = editor.open("a.cu", REQUEST)
        assert ghost(page) is None
        editor.set_settings({"ghostTextSeconds": 120})
        first = editor.start_request("textDocument/inlineCompletion", params(page), "first")
        second = editor.start_request("textDocument/inlineCompletion", params(page), "second")
        assert first.result(60) is None
        page.replace("eigenvalues", "singular values")
        assert second.result(120) is None
        third = editor.start_request("textDocument/inlineCompletion", params(page), "third")
        assert page.hover("singular") is None  # answered behind the third, which has begun
        editor.notify("$/cancelRequest", types.CancelParams(id="third"))
        with pytest.raises(Exception, match="cancel"):
            third.result(30)
        assert not [line for line in editor.log if "Traceback" in line]


@pytest.mark.parametrize(("is_there", "jobs"), [(True, ["ghostReady"]), (False, [])])
def test_the_model_is_loaded_once_when_files_are_opened(
    monkeypatch: pytest.MonkeyPatch, is_there: bool, jobs: list[str]
) -> None:
    model = ModelFile(Path("/none.gguf"), "a model") if is_there else Missing("model", "None.", "")
    monkeypatch.setattr(opening, "named_model", lambda _: model)
    monkeypatch.setattr(inline_completion, "QUIET_SECONDS", 0)
    asked: list[str] = []

    async def run(job: str, *_: object) -> None:
        asked.append(job)

    async def opened_twice() -> None:
        ghost_text = inline_completion.GhostText()
        monkeypatch.setattr(ghost_text._worker, "run", run)
        ghost_text.get_ready("")
        ghost_text.get_ready("")
        assert ghost_text._rest is not None
        await ghost_text._rest

    asyncio.run(opened_twice())
    assert asked == jobs


def test_the_sizes_that_are_left_are_tried_once_after_requests_that_overtake_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Counting:
        """Stands for the process that writes."""

        tried = 0

        async def run(self, job: str, *_: object) -> dict[str, object]:
            await asyncio.sleep(0.05 if job == "ghostRest" else 0.01)
            self.tried += job == "ghostRest"
            return (
                {"wrong": ""} if job == "ghostRest" else {"texts": ["text"], "missing": "", "left": [], "others": False}
            )

    async def overtaken() -> tuple[object, int]:
        ghost_text = inline_completion.GhostText()
        monkeypatch.setattr(ghost_text, "_worker", worker := Counting())
        asked = [
            asyncio.ensure_future(ghost_text.texts(key, {"most": 1, "seconds": 1.0}, 0.0, silent))
            for key in ("one", "two")
        ]
        answers = await asyncio.gather(*asked)
        await asyncio.sleep(0.2)
        return answers, worker.tried

    monkeypatch.setattr(inline_completion, "QUIET_SECONDS", 0.03)
    assert asyncio.run(overtaken()) == ([(), ("text",)], 1)


@pytest.mark.slow
@pytest.mark.nvcc
def test_at_the_end_of_a_file_of_ten_thousand_lines(tmp_path: Path) -> None:
    above = "".join(
        f"__device__ float scaled_{number}(float x) {{\n    return {number}.0f * x;\n}}\n" for number in range(3400)
    )
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf", "ghostTextSeconds": 120}) as editor:
        page = editor.open("a.cu", f"{above}// relu of x[n]\n")
        (item,) = ghost(page, seconds=240).items
        assert item.insert_text.startswith("// read as: y[n] = relu(x[n])")
        assert ghost(page, seconds=30).items[0].insert_text == item.insert_text


@pytest.mark.nvcc
def test_what_is_asked_for_below_is_written_before_anybody_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "// relu of x\n\n// what follows is new\n\n// row sums of x\n\nint n;\n"
    settings = settings_json(Settings())
    request = {"path": str(tmp_path / "a.cu"), "text": text, "open": {}, "settings": settings, "at": 13}
    asked = {**request, "most": 1, "is_meant": False, "seconds": 120.0}
    monkeypatch.setattr(inline_completion, "QUIET_SECONDS", 0)
    monkeypatch.setattr(inline_completion, "MOST_REST_SECONDS", 600)

    async def written() -> tuple[tuple[str, ...], tuple[str, ...]]:
        ghost_text = inline_completion.GhostText()
        try:
            (shown,) = await ghost_text.texts("first", asked, 0.0, silent)
            ghost_text.follow(shown, asked)
            ghost_text.follow(shown, asked)
            assert ghost_text._rest is not None
            await ghost_text._rest
            accepted = Source(str(tmp_path / "a.cu"), (text[:13] + shown + text[13:]).encode())
            at = accepted.text().index("row sums of x\n") + len("row sums of x\n")
            wanted = ghost_request(accepted, at)
            assert wanted is not None
            key = inline_completion.key_of(wanted.key(accepted, at), asked)
            return ghost_text.shown.find(inline_completion.kept_as(key, asked)), (shown,)
        finally:
            await ghost_text.close()

    following, first = asyncio.run(written())
    assert "relu" in first[0]
    assert len(following) == 1 and following[0].startswith("// read as: y[r] = sum[c] x[r, c]")
