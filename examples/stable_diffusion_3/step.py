"""One denoising step of Stable Diffusion 3 (medium), as PyTorch: the last joint block of its transformer, the output
layer, guidance and the Euler step. The blocks before it are of the same operations.

512 x 512 pixels are latents of 16 x 64 x 64, or 1024 patches of 2 x 2; 333 tokens of text (77 of CLIP, 256 of T5) are
read beside them. Guidance runs a batch of 4 twice: without the prompt and with it.
"""

from __future__ import annotations

import torch
from torch.nn import functional

BATCH, TOKENS, TEXT, WIDTH, HEADS = 4, 1024, 333, 1536, 24


def step(
    latents, image, text, image_mod, text_mod, w_q, b_q, w_k, b_k, w_v, b_v, text_w_q, text_b_q, text_w_k, text_b_k,
    text_w_v, text_b_v, w_o, b_o, w_up, b_up, w_down, b_down, last_mod, w_last, b_last, sigma_step, guidance,
):  # fmt: skip
    """The latents after the step. `image` and `text` come from the block before; a `..._mod` holds what the time and
    the prompt make of shift, scale and gate; `sigma_step` is the next sigma less this one."""
    n, t, width = image.shape

    def normed(x, mod, first):
        return functional.layer_norm(x, (width,), eps=1e-6) * (1 + mod[:, None, first + 1]) + mod[:, None, first]

    def heads(x, w, b):
        return functional.linear(x, w, b).reshape(n, x.shape[1], HEADS, width // HEADS).transpose(1, 2)

    x, y = normed(image, image_mod, 0), normed(text, text_mod, 0)
    q = torch.cat([heads(x, w_q, b_q), heads(y, text_w_q, text_b_q)], 2)
    k = torch.cat([heads(x, w_k, b_k), heads(y, text_w_k, text_b_k)], 2)
    v = torch.cat([heads(x, w_v, b_v), heads(y, text_w_v, text_b_v)], 2)
    attention = functional.scaled_dot_product_attention(q, k, v)[:, :, :t].transpose(1, 2).reshape(n, t, width)
    x = image + image_mod[:, None, 2] * functional.linear(attention, w_o, b_o)
    up = functional.gelu(functional.linear(normed(x, image_mod, 3), w_up, b_up), approximate="tanh")
    x = x + image_mod[:, None, 5] * functional.linear(up, w_down, b_down)

    patches = functional.linear(normed(x, last_mod, 0), w_last, b_last)
    velocity = patches.reshape(n, 32, 32, 2, 2, 16).permute(0, 5, 1, 3, 2, 4).reshape(n, 16, 64, 64).float()
    without, guided = velocity.chunk(2)
    return latents + sigma_step * (without + guidance * (guided - without))


def get_inputs():
    def half(*shape):
        return torch.zeros(shape, dtype=torch.float16)

    projection = [half(WIDTH, WIDTH), half(WIDTH)]
    return [
        torch.zeros(BATCH, 16, 64, 64),
        half(2 * BATCH, TOKENS, WIDTH), half(2 * BATCH, TEXT, WIDTH), half(2 * BATCH, 6, WIDTH),
        half(2 * BATCH, 2, WIDTH), *7 * projection, half(4 * WIDTH, WIDTH), half(4 * WIDTH), half(WIDTH, 4 * WIDTH),
        half(WIDTH), half(2 * BATCH, 2, WIDTH), half(64, WIDTH), half(64), torch.tensor(-0.03), torch.tensor(7.0),
    ]  # fmt: skip
