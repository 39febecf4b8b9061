"""Write a tiny random Gemma 3 as GGUF: the real architecture and file format, 0.3 million weights, no knowledge.

It stands in for the real weights where only the path matters (tests, `model/runs/tiny.sh`): the same loaders read it,
the same trainer adapts it, llama.cpp runs it.

    python -m warpwright_upskill.tiny tiny.gguf
"""

from __future__ import annotations

from pathlib import Path

import click

from warpwright_upskill.console import fail, stage

LAYERS = 2
WIDTH = 64
HEADS = 2
# Gemma 3 scales attention by 1/sqrt(256) whatever the head; llama.cpp takes the head's width. They agree at 256.
HEAD_WIDTH = 256
FEED_FORWARD = 128
CONTEXT = 8192
SLIDING_WINDOW = 512
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


def write_tiny_gemma(path: Path, seed: int = 0) -> None:
    """Write the model to `path`. The same seed gives the same weights."""
    import gguf
    import numpy as np

    rng = np.random.default_rng(seed)
    tokens = vocabulary()
    writer = gguf.GGUFWriter(str(path), "gemma3")
    writer.add_name("Tiny random Gemma 3")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_key_length(HEAD_WIDTH)
    writer.add_value_length(HEAD_WIDTH)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_sliding_window(SLIDING_WINDOW)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
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
        writer.add_tensor(name, (rng.standard_normal((rows, columns)) * columns**-0.5).astype(np.float32))

    def norm(name: str, width: int) -> None:
        writer.add_tensor(name, np.ones(width, dtype=np.float32))

    matrix("token_embd.weight", len(tokens), WIDTH)
    norm("output_norm.weight", WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        matrix(f"{block}.attn_q.weight", HEADS * HEAD_WIDTH, WIDTH)
        matrix(f"{block}.attn_k.weight", HEAD_WIDTH, WIDTH)
        matrix(f"{block}.attn_v.weight", HEAD_WIDTH, WIDTH)
        matrix(f"{block}.attn_output.weight", WIDTH, HEADS * HEAD_WIDTH)
        matrix(f"{block}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        matrix(f"{block}.ffn_up.weight", FEED_FORWARD, WIDTH)
        matrix(f"{block}.ffn_down.weight", WIDTH, FEED_FORWARD)
        for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            norm(f"{block}.{name}.weight", WIDTH)
        norm(f"{block}.attn_q_norm.weight", HEAD_WIDTH)
        norm(f"{block}.attn_k_norm.weight", HEAD_WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--seed", default=0, show_default=True, help="Seed of the random weights.")
def main(path: Path, seed: int) -> None:
    """Write a tiny random Gemma 3 to PATH (GGUF), to try the other stages on."""
    if not path.parent.is_dir():
        fail(f"{path.parent}: no such folder; make it first.")
    write_tiny_gemma(path, seed)
    click.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    stage(main)
