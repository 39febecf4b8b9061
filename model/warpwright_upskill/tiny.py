"""Write a tiny random Gemma 3 as GGUF: the real architecture and file format, 0.3 million weights, no knowledge.

It stands in for the real weights where only the path matters (tests, `model/runs/tiny.sh`): the same loaders read it,
the same trainer adapts it, llama.cpp runs it.

    python -m warpwright_upskill.tiny tiny.gguf

`--size 4b` writes one of full size, to measure what it takes to train where the real weights are not to be had.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from warpwright_upskill.console import fail, stage
from warpwright_upskill.gguf_file import read_gguf

CONTEXT = 8192
SLIDING_WINDOW = 512


@dataclass(frozen=True, slots=True)
class Size:
    """Gemma 3 scales attention by 1/sqrt(256) whatever the head; llama.cpp takes the head's width, 256 in each size."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    feed_forward: int
    head_width: int = 256


SIZES = {
    "tiny": Size(2, 64, 2, 1, 128),
    "270m": Size(18, 640, 4, 1, 2048),
    "1b": Size(26, 1152, 4, 1, 6912),
    "4b": Size(34, 2560, 8, 4, 10240),
}
WORDS = (
    *("__global__", "__shared__", "__syncthreads", "threadIdx", "blockIdx", "blockDim", "const", "float", "kernel"),
    *("analysis", "optimizations", "estimated_speedup", "wavefronts", "sectors", "request", "shared", "memory", "lane"),
    *("bank-conflict", "uncoalesced-access", "divergent-branch", "barrier-in-divergent-branch", "unchecked-launch"),
    *("pad-shared-array", "swap-thread-axes", "sequential-reduction-addressing", "check-launch", "return", "warp"),
)


def vocabulary() -> list[tuple[str, float, int]]:
    """(text, score, llama.cpp token type) by id: four special tokens, all bytes, ASCII, and the prefixes of WORDS.

    The prefixes let the tokenizer's pairwise merges build a word from its left end.

    >>> tokens = [text for text, _, _ in vocabulary()]
    >>> tokens[:4], tokens[4], len(tokens) == len(set(tokens))
    (['<pad>', '<eos>', '<bos>', '<unk>'], '<0x00>', True)
    """
    normal, unknown, control, byte = 1, 2, 3, 6
    tokens = [("<pad>", 0.0, control), ("<eos>", 0.0, control), ("<bos>", 0.0, control), ("<unk>", 0.0, unknown)]
    tokens += [(f"<0x{value:02X}>", 0.0, byte) for value in range(256)]
    texts = ["\n", *(chr(code) for code in range(33, 127)), "\u2581", "\u2581\u2581", "\u2581" * 4]
    for word in WORDS:
        texts += [word[:end] for end in range(2, len(word) + 1)]
    tokens += [(text, -float(rank), normal) for rank, text in enumerate(dict.fromkeys(texts))]
    return tokens


def write_tiny_gemma(path: Path, seed: int = 0, size: Size = SIZES["tiny"], like: Path | None = None) -> None:
    """Write the model to `path`, with the vocabulary of the model `like` where one is given.

    The same seed gives the same weights. Those of a full size are random numbers of four bits (Q4_0).
    """
    import gguf
    import numpy as np

    rng = np.random.default_rng(seed)
    tokens: list[tuple[str | bytes, float, int]] = [*vocabulary()]
    if like is not None:
        values = read_gguf(like).values
        named = (f"tokenizer.ggml.{name}" for name in ("tokens", "scores", "token_type"))
        tokens = list(zip(*(values[name] for name in named), strict=True))
    writer = gguf.GGUFWriter(str(path), "gemma3")
    writer.add_name("Tiny random Gemma 3" if size == SIZES["tiny"] else "Random Gemma 3")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(size.width)
    writer.add_block_count(size.layers)
    writer.add_feed_forward_length(size.feed_forward)
    writer.add_head_count(size.heads)
    writer.add_head_count_kv(size.kv_heads)
    writer.add_key_length(size.head_width)
    writer.add_value_length(size.head_width)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_sliding_window(SLIDING_WINDOW)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32 if size == SIZES["tiny"] else gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([text for text, _, _ in tokens])
    writer.add_token_scores([score for _, score, _ in tokens])
    writer.add_token_types([kind for _, _, kind in tokens])
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)

    def matrix(name: str, rows: int, columns: int) -> None:
        if size == SIZES["tiny"]:
            writer.add_tensor(name, (rng.standard_normal((rows, columns)) * columns**-0.5).astype(np.float32))
            return
        # A block of Q4_0 is a scale and 32 numbers from -8 to 7, whose standard deviation is 4.6.
        blocks = rng.integers(0, 256, (rows * columns // 32, 18), dtype=np.uint8)
        blocks[:, :2] = np.array([columns**-0.5 / 4.6], dtype=np.float16).view(np.uint8)
        writer.add_tensor(name, blocks.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType.Q4_0)

    def norm(name: str, width: int) -> None:
        writer.add_tensor(name, np.ones(width, dtype=np.float32))

    matrix("token_embd.weight", len(tokens), size.width)
    norm("output_norm.weight", size.width)
    for layer in range(size.layers):
        block = f"blk.{layer}"
        matrix(f"{block}.attn_q.weight", size.heads * size.head_width, size.width)
        matrix(f"{block}.attn_k.weight", size.kv_heads * size.head_width, size.width)
        matrix(f"{block}.attn_v.weight", size.kv_heads * size.head_width, size.width)
        matrix(f"{block}.attn_output.weight", size.width, size.heads * size.head_width)
        matrix(f"{block}.ffn_gate.weight", size.feed_forward, size.width)
        matrix(f"{block}.ffn_up.weight", size.feed_forward, size.width)
        matrix(f"{block}.ffn_down.weight", size.width, size.feed_forward)
        for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            norm(f"{block}.{name}.weight", size.width)
        norm(f"{block}.attn_q_norm.weight", size.head_width)
        norm(f"{block}.attn_k_norm.weight", size.head_width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--size", default="tiny", show_default=True, type=click.Choice(sorted(SIZES)), help="As which Gemma 3.")
@click.option("--vocabulary", "like", type=click.Path(path_type=Path), help="GGUF whose tokens the model shall have.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random weights.")
def main(path: Path, size: str, like: Path | None, seed: int) -> None:
    """Write a random Gemma 3, a tiny one or one of full size, to PATH (GGUF), to try the other stages on."""
    if not path.parent.is_dir():
        fail(f"{path.parent}: no such folder; make it first.")
    write_tiny_gemma(path, seed, SIZES[size], like)
    click.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    stage(main)
