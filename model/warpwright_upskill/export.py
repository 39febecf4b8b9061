"""Write a trained adapter as a GGUF LoRA file, and check that llama.cpp computes with it what torch does.

python -m warpwright_upskill.export .build/adapter --out adapter.gguf --check examples.jsonl
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from warpwright_upskill.console import StageError, fail, stage
from warpwright_upskill.data.render import render
from warpwright_upskill.examples import read_examples
from warpwright_upskill.gemma import BOS, Tokens, load_weights, quiet_llama_cpp
from warpwright_upskill.options import find_base, model_option
from warpwright_upskill.training.lora import BASE_FILE, load_adapter
from warpwright_upskill.training.whole import holds_changes, low_rank, read_changes

GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_PEFT_NAME = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.([\w.]+?)(?:\.lora_[AB])?\.weight")
NOTICE = """Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms.
This file is a Model Derivative of Gemma: LoRA matrices that warpwright trained, to be added to Gemma's weights.
"""
LARGEST = 16 << 20
"""Bytes of a file that a repository or a package takes; at rank 32 an adapter of Gemma 3 270M has 15.2 MB as f16."""
RANK = 64
"""Of trained weights' matrices: 16.2 MB as q8_0 for Gemma 3 270M, and whole blocks of 32."""
_TYPES = {"f32": "F32", "f16": "F16", "q8_0": "Q8_0"}


@dataclass(frozen=True, slots=True)
class Agreement:
    """The two programs' next tokens over the same answers.

    `same_choice` of `positions` have torch's and llama.cpp's most likely token in common; `changed` counts the
    positions where the adapter changes what llama.cpp holds most likely; `largest_change` is the largest difference
    of a logit with and without it, `largest_difference` between llama.cpp and torch with it.
    """

    positions: int
    same_choice: int
    changed: int
    largest_change: float
    largest_difference: float


def gguf_name(peft_name: str) -> str:
    """llama.cpp's name of a LoRA matrix.

    >>> gguf_name("base_model.model.model.layers.3.self_attn.o_proj.lora_B.weight")
    'blk.3.attn_output.weight.lora_b'
    """
    return f"{weight_name(peft_name)}.lora_{'a' if '.lora_A.' in peft_name else 'b'}"


def weight_name(peft_name: str) -> str:
    """llama.cpp's name of a weight, by that of its own or of one of its LoRA matrices.

    >>> weight_name("base_model.model.model.layers.3.self_attn.o_proj.weight")
    'blk.3.attn_output.weight'
    """
    match = _PEFT_NAME.fullmatch(peft_name)
    if match is None or match[2] not in GGUF_NAMES:
        raise StageError(f"The adapter holds {peft_name}, which has no place in a GGUF file; train it anew.")
    return f"blk.{match[1]}.{GGUF_NAMES[match[2]]}.weight"


def torch_name(name: str) -> str:
    """The other way round: torch's name of a weight by llama.cpp's.

    >>> torch_name("blk.3.attn_output.weight")
    'model.layers.3.self_attn.o_proj.weight'
    """
    layer, own = name.removeprefix("blk.").removesuffix(".weight").split(".")
    (path,) = (torch for torch, here in GGUF_NAMES.items() if here == own)
    return f"model.layers.{layer}.{path}.weight"


def export(adapter: Path, out: Path, kind: str = "f16", rank: int = RANK) -> int:
    """Write the peft adapter in folder `adapter` to `out`; returns the number of matrices.

    Trained weights become the nearest matrices of rank `rank`.

    lora_a is (rank, columns of the weight), lora_b (rows, rank), as peft has them. `kind` "q8_0" quantises the
    matrices whose rows are whole blocks of 32 and leaves the others in f16. The file is written whole or not at all.
    """
    import gguf
    import numpy as np

    config, tensors = read_adapter(adapter, rank)
    if config.get("use_rslora") or config.get("use_dora"):
        fail("llama.cpp scales by alpha/rank and knows no DoRA; train without use_rslora and use_dora.")
    of = json.loads((adapter / BASE_FILE).read_text(encoding="utf-8")) if (adapter / BASE_FILE).is_file() else {}
    unfinished = out.with_name(f".{out.name}.part")
    writer = gguf.GGUFWriter(str(unfinished), "gemma3")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]))
    writer.add_name("warpwright adapter for Gemma 3")
    writer.add_license("gemma")
    writer.add_license_link("https://ai.google.dev/gemma/terms")
    writer.add_string("warpwright.base", str(of.get("fingerprint", "")))
    for name in sorted(tensors):
        values: Any = np.ascontiguousarray(tensors[name], dtype=np.float32)
        as_type = _TYPES[kind]
        if as_type == "Q8_0" and values.shape[-1] % 32:
            as_type = "F16"
        quantised = gguf.GGMLQuantizationType[as_type]
        writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, quantised), raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.replace(out)
    card = {
        "file": out.name,
        "bytes": out.stat().st_size,
        "sha256": hashlib.sha256(out.read_bytes()).hexdigest(),
        "base": of,
        "rank": config["r"],
        "alpha": config["lora_alpha"],
        "licence": "https://ai.google.dev/gemma/terms",
    }
    out.with_name(f"{out.name}.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    out.with_name(f"{out.name}.NOTICE").write_text(NOTICE, encoding="utf-8")
    return len(tensors)


def read_adapter(folder: Path, rank: int = RANK) -> tuple[dict[str, Any], dict[str, Any]]:
    """Configuration and matrices of a trained adapter, or those of `rank` that are nearest to trained weights.

    Raises StageError where there is none, or half of one.
    """
    from safetensors.numpy import load_file

    if holds_changes(folder):
        return {"r": rank, "lora_alpha": rank}, low_rank(read_changes(folder), rank)
    try:
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        return config, load_file(folder / "adapter_model.safetensors")
    except OSError as error:
        raise StageError(
            f"{folder}: holds no trained adapter ({error.strerror or error}); `train` writes it."
        ) from None
    except Exception as error:  # safetensors' own error class derives from Exception alone
        raise StageError(f"{folder}: holds a damaged adapter ({error}); train it anew.") from None


def check(base: Path, adapter: Path, exported: Path, sequences: Sequence[tuple[Sequence[int], int]]) -> Agreement:
    """Compare llama.cpp with the exported adapter to torch with the trained one.

    `sequences` are (token ids, index of the answer's first token). Both read the same ids; each predicted position of
    the answer counts once. Raises StageError where llama.cpp does not take the file.
    """
    import numpy as np
    import torch

    with_adapter = _logits(base, exported, sequences)
    without = _logits(base, None, sequences)
    weights = load_weights(base, device="cpu", dtype="float32")
    model: Any = load_adapter(weights, adapter, base).eval()
    positions = same = changed = 0
    largest_change = largest_difference = 0.0
    for (ids, at), ours, plain in zip(sequences, with_adapter, without, strict=True):
        with torch.no_grad():
            theirs = model(torch.tensor([list(ids)])).logits[0, at - 1 : len(ids) - 1].float().numpy()
        positions += len(ours)
        same += int((ours.argmax(1) == theirs.argmax(1)).sum())
        changed += int((ours.argmax(1) != plain.argmax(1)).sum())
        largest_change = max(largest_change, float(np.abs(ours - plain).max()))
        largest_difference = max(largest_difference, float(np.abs(ours - theirs).max()))
    return Agreement(positions, same, changed, largest_change, largest_difference)


def _logits(base: Path, adapter: Path | None, sequences: Sequence[tuple[Sequence[int], int]]) -> list[Any]:
    """llama.cpp's logits at the positions that predict each answer: (answer tokens, vocabulary) per sequence."""
    import numpy as np

    llama_cpp = quiet_llama_cpp()
    longest = max(len(ids) for ids, _ in sequences)
    try:
        llama: Any = llama_cpp.Llama(str(base), n_ctx=longest + 1, n_batch=longest + 1, logits_all=True, verbose=False)
    except (ValueError, RuntimeError):
        raise StageError(f"llama.cpp cannot load {base}; give a complete GGUF model.") from None
    if adapter is not None:
        # By hand: the `lora_path` argument goes on with a null pointer where the adapter does not fit the model.
        loaded = llama_cpp.llama_adapter_lora_init(llama.model, os.fsencode(adapter))
        if not loaded:
            raise StageError(
                f"llama.cpp does not take the adapter {adapter} with {base}; was it trained on this model?"
            )
        one = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(loaded)
        llama_cpp.llama_set_adapters_lora(llama.ctx, one, 1, (ctypes.c_float * 1)(1.0))
    found: list[Any] = []
    try:
        for ids, at in sequences:
            llama.reset()
            llama.eval(list(ids))
            found.append(np.array(llama.scores[at - 1 : len(ids) - 1], dtype=np.float32))
    finally:
        llama.close()
    return found


@click.command()
@click.argument("adapter", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="GGUF file to write.")
@click.option(
    "--type", "kind", default="f16", show_default=True, type=click.Choice(sorted(_TYPES)), help="Number type."
)
@click.option("--rank", default=RANK, show_default=True, type=click.IntRange(1), help="Of what trained weights become.")
@click.option("--check", "checked", type=click.Path(path_type=Path), help="Examples to compare llama.cpp and torch on.")
@click.option("--check-count", default=4, show_default=True, type=click.IntRange(1), help="How many of them.")
@model_option
def main(
    *, adapter: Path, out: Path, kind: str, rank: int, checked: Path | None, check_count: int, model: str | None
) -> None:
    """Write the trained ADAPTER (a folder from `train`) as a GGUF LoRA file that llama.cpp loads."""
    if not out.parent.is_dir():
        fail(f"{out.parent}: no such folder; make it first.")
    count = export(adapter, out, kind, rank)
    click.echo(f"{out}: {count} matrices, {out.stat().st_size / 1e6:.1f} MB, with its hash and NOTICE beside it")
    if out.stat().st_size > LARGEST:
        click.echo("It is larger than 16 MiB: `--type q8_0` takes half of it.", err=True)
    if checked is None:
        return
    base = find_base(model).path
    tokens = Tokens(base)
    sequences: list[tuple[list[int], int]] = []
    for rendered in [r for e in read_examples(checked) if (r := render(e)) is not None][:check_count]:
        prompt = [BOS, *tokens.encode(rendered.prompt)]
        sequences.append(([*prompt, *tokens.encode(rendered.answer)], len(prompt)))
    tokens.close()
    if not sequences:
        fail(f"{checked}: holds no example to check with.")
    agreement = check(base, adapter, out, sequences)
    click.echo(json.dumps(asdict(agreement)))
    if not agreement.largest_change > 0:
        fail(
            "The exported adapter changes nothing in llama.cpp's output; train longer, or with a higher learning rate."
        )
    if agreement.same_choice < 0.9 * agreement.positions:
        fail(
            f"llama.cpp with the exported adapter and torch agree on {agreement.same_choice} of "
            f"{agreement.positions} tokens only; do not use {out}."
        )


if __name__ == "__main__":
    stage(main)
