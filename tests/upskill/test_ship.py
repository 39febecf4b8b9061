"""What training changed, as it comes with warpwright: codes of few bits, a card, and the model that they make."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.upskill import ran, refused, settings
from warpwright.assist.taught.card import read_card
from warpwright.assist.taught.gguf_file import GgufError, read_gguf
from warpwright.assist.taught.make import main, make
from warpwright.assist.weights import ModelFile, find_model
from warpwright_upskill.training.whole import read_changes


@pytest.fixture(scope="module")
def trained(tiny: Path, lesson: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of weights that were trained themselves."""
    folder = tmp_path_factory.mktemp("trained")
    steps = settings(rank=0, mix="{formula=1}", max_steps=3, batch=1, learning_rate=0.01)
    ran("train", lesson, "--model", tiny, "--out", folder, *steps)
    return folder


@pytest.fixture(scope="module")
def data(tiny: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    ran("ship", "encode", trained, "--bits", "3", "--out", folder)
    ran("ship", "decode", folder, "--model", tiny, "--out", folder / "decoded")
    ran("ship", "card", folder, "--first", "400", "--model", tiny)
    return folder


@pytest.mark.slow
def test_codes_hold_nearly_all_of_what_changed(trained: Path, data: Path) -> None:
    whole, held = read_changes(trained), read_changes(data / "decoded")
    assert whole.keys() == held.keys()
    lost = sum(float(((held[name] - whole[name]).astype("float32") ** 2).sum()) for name in whole)
    assert 0 < lost < 0.1 * sum(float((each.astype("float32") ** 2).sum()) for each in whole.values())


@pytest.mark.slow
def test_the_mean_of_two_runs_lies_between_them(trained: Path, data: Path, tmp_path: Path) -> None:
    ran("ship", "blend", trained, data / "decoded", "--share", "0.25", "--out", tmp_path / "mean")
    one, other, mean = (read_changes(each) for each in (trained, data / "decoded", tmp_path / "mean"))
    for name in one:
        expected = 0.75 * one[name].astype("float32") + 0.25 * other[name].astype("float32")
        np.testing.assert_allclose(mean[name], expected, rtol=1e-3, atol=1e-7)
    base = tmp_path / "mean" / "base.json"
    base.write_text(json.dumps({"name": "other.gguf", "fingerprint": "0"}), encoding="utf-8")
    assert "is not of the same weights" in refused(
        "ship", "blend", trained, tmp_path / "mean", "--out", tmp_path / "no"
    )


@pytest.mark.slow
def test_the_made_model_is_the_one_that_the_card_tells(tiny: Path, data: Path, tmp_path: Path) -> None:
    card = read_card(data)
    assert card is not None
    shares: list[float] = []
    make(tiny, tmp_path / "made.gguf", data, shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert (tmp_path / "made.gguf").stat().st_size == card.model.size
    found = find_model(str(tmp_path / "made.gguf"))
    assert isinstance(found, ModelFile) and found.is_taught
    assert len(read_gguf(tmp_path / "made.gguf").tokens) == 400
    assert "Gemma Terms of Use" in (data / "NOTICE").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_damaged_part_and_another_base_are_refused(tiny: Path, data: Path, tmp_path: Path) -> None:
    ran("tiny", tmp_path / "other.gguf", "--seed", "7")
    with pytest.raises(GgufError, match="is not the model that was taught"):
        make(tmp_path / "other.gguf", tmp_path / "made.gguf", data)
    said = refused("ship", "decode", data, "--model", tmp_path / "other.gguf", "--out", tmp_path / "no")
    assert "is not of other.gguf" in said
    shutil.copytree(data, tmp_path / "data")
    part = tmp_path / "data" / "changes-1.npz"
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(GgufError, match=r"changes-1\.npz: is missing or damaged"):
        make(tiny, tmp_path / "made.gguf", tmp_path / "data")
    (tmp_path / "data" / "card.json").write_text(json.dumps({"name": 3}), encoding="utf-8")
    with pytest.raises(GgufError, match="holds no taught model"):
        make(tiny, tmp_path / "made.gguf", tmp_path / "data")
    assert not (tmp_path / "made.gguf").exists()


def test_what_cannot_be_made_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(tmp_path / "none.gguf"), str(tmp_path / "out.gguf"), str(tmp_path)) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_parts_without_trained_weights_are_refused(tmp_path: Path, tiny: Path) -> None:
    assert "holds no trained weights" in refused("ship", "encode", tmp_path, "--out", tmp_path / "out")
    assert "holds no parts" in refused("ship", "card", tmp_path, "--model", tiny)
    assert "holds no parts" in refused("ship", "decode", tmp_path, "--model", tiny, "--out", tmp_path / "out")


def test_a_code_has_the_bits_that_are_asked_for() -> None:
    from warpwright.assist.taught.weight_codes import change_of, codes_of

    change = np.random.default_rng(1).normal(0, 1, (16, 192)).astype("float32")
    for bits in (1, 2, 3, 4):
        codes = codes_of(change, bits)
        assert codes.planes.shape == (bits, 16, 24)
        assert len(np.unique(np.abs(change_of(codes)[0]))) <= 2 ** (bits - 1)
    assert not change_of(codes_of(np.zeros((8, 128), dtype="float32"), 2)).any()
