"""What gpu_timing.py times: the samples, kernels of more sizes, and pairs that differ by some 3 % of their work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from warpwright.syntax.source import Source, read_source

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "csrc_samples"

_PROGRAM = """
{kernel}

int main() {{
    const int n = {n};
    float *in, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemset(in, 1, n * sizeof(float));
    k<<<(n + 255) / 256, 256>>>(in, out, n);
    return cudaDeviceSynchronize();
}}
"""
# What is done beside the copy decides over nothing: no input is that number.
_ARITHMETIC = """__global__ void k(const float* in, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i], w = v;
    for (int step = 0; step < {steps}; ++step) w = fmaf(w, 0.999f, 1e-3f);
    out[i] = w == 12345.678f ? w : 2.0f * v;
}}"""
_MEMORY = """__global__ void k(const float* in, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    if (i < (n >> 10) * {parts}) {{ float w = in[i + n / 2]; if (w == 12345.678f) v = w; }}
    out[i] = 2.0f * v;
}}"""


def program(kernel: str, n: int, name: str) -> Source:
    return Source(str(ROOT / "benchmarks" / f"{name}.cu"), _PROGRAM.format(kernel=kernel, n=n).encode())


def arithmetic(steps: int, n: int = 1 << 22) -> Source:
    """So many dependent multiplications and additions for each element of a copy."""
    return program(_ARITHMETIC.format(steps=steps), n, "arithmetic")


def memory(parts: int, n: int = 1 << 25) -> Source:
    """A copy that reads so many 1024ths of its input a second time, far from where it reads it first."""
    return program(_MEMORY.format(parts=parts), n, "memory")


ARITHMETIC, MORE_ARITHMETIC = arithmetic(2000), arithmetic(2064)
MEMORY, MORE_MEMORY = memory(0), memory(140)
DIFFERENT = (
    ("3 % less arithmetic", MORE_ARITHMETIC, ARITHMETIC, "faster"),
    ("3 % more arithmetic", ARITHMETIC, MORE_ARITHMETIC, "slower"),
    ("3 % less memory traffic", MORE_MEMORY, MEMORY, "faster"),
    ("3 % more memory traffic", MEMORY, MORE_MEMORY, "slower"),
)
"""Name, original, candidate and the verdict that is true."""

MORE = (
    ("arithmetic, 2000 steps", ARITHMETIC),
    ("arithmetic, 2064 steps", MORE_ARITHMETIC),
    ("memory", MEMORY),
    ("memory, 3 % more", MORE_MEMORY),
    ("arithmetic, 500 steps, 256 K", arithmetic(500, 1 << 18)),
    ("arithmetic, 40000 steps, 2 M", arithmetic(40_000, 1 << 21)),
    ("memory, 256 M", memory(0, 1 << 28)),
    ("memory, 4 M", memory(0, 1 << 22)),
)


def sample_sources() -> list[tuple[str, Source]]:
    return [(str(path.parent.relative_to(SAMPLES)), read_source(path)) for path in sorted(SAMPLES.rglob("kernel.cu"))]


def candidate_texts() -> Iterator[tuple[str, Source, Source]]:
    """Originals with honest rewrites, no two texts the same, so that each candidate has to be compiled."""
    path = SAMPLES / "memory/transpose_tiled" / "kernel.cu"
    original = read_source(path)
    text = original.text()
    padded = text.replace("float tile[TILE][TILE]", "float tile[TILE][TILE + 1]")
    for number in range(4):
        yield f"transpose, {number + 1}", original, Source(original.path, f"{padded}\n// {number}\n".encode())
