"""Functions on the device that a kernel calls and that CUDA has no one for. A text holds those that it needs."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.writer.contraction_helpers import PRODUCT_HELPERS, PRODUCT_NEEDS
from warpwright.writer.lanes import TEXTS
from warpwright.writer.running import RUNNING
from warpwright.writer.window_helpers import WINDOW_HELPERS

PHILOX = """
// Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3): two words of the sequence of `seed` at
// `i`.
__device__ __forceinline__ uint2 philox(long long seed, long long i) {
    unsigned key_x = static_cast<unsigned>(seed);
    unsigned key_y = static_cast<unsigned>(static_cast<unsigned long long>(seed) >> 32);
    const unsigned high = static_cast<unsigned>(static_cast<unsigned long long>(i) >> 32);
    uint4 c = make_uint4(static_cast<unsigned>(i), high, 0u, 0u);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned high_x = __umulhi(0xD2511F53u, c.x);
        const unsigned high_z = __umulhi(0xCD9E8D57u, c.z);
        c = make_uint4(high_z ^ c.y ^ key_x, 0xCD9E8D57u * c.z, high_x ^ c.w ^ key_y, 0xD2511F53u * c.x);
        key_x += 0x9E3779B9u;
        key_y += 0xBB67AE85u;
    }
    return make_uint2(c.x, c.y);
}
"""


FAST_GELU = """
// For results of 16 bits or less. The normal distribution function of -|x| is 2 to the power of a polynomial that was
// fitted to its logarithm. Within 2^-20 |x|, and for x > -5.7 within 2^-15 of the result.
__device__ __forceinline__ float fast_gelu(float x) {
    const float a = fabsf(x);
    float p = -7.24747998e-8f;
    p = fmaf(p, a, 3.98074246e-7f);
    p = fmaf(p, a, 3.59040056e-5f);
    p = fmaf(p, a, -7.85823135e-4f);
    p = fmaf(p, a, 8.08101769e-3f);
    p = fmaf(p, a, -5.33154017e-2f);
    p = fmaf(p, a, -0.45891255f);
    p = fmaf(p, a, -1.15113897f);
    const float below = exp2f(fmaf(p, a, -1.0f));
    return x * (x < 0.0f ? below : 1.0f - below);
}
"""

FAST_SOFTPLUS = """
// For results of 16 bits or less: log(1 + exp(x)) without overflow, where log(1 + e) is e times a polynomial that was
// fitted for e from 0 to 1. Within 8 units of the last place of a float.
__device__ __forceinline__ float fast_softplus(float x) {
    const float e = expf(-fabsf(x));
    float p = -8.7787788e-3f;
    p = fmaf(p, e, 4.49864268e-2f);
    p = fmaf(p, e, -0.10902264f);
    p = fmaf(p, e, 0.178471923f);
    p = fmaf(p, e, -0.245368615f);
    p = fmaf(p, e, 0.332840621f);
    p = fmaf(p, e, -0.499981791f);
    p = fmaf(p, e, 1.0f);
    return fmaf(p, e, fmaxf(x, 0.0f));
}
"""


@dataclass(frozen=True, slots=True)
class Helper:
    """Text of one function, and the functions that it calls."""

    text: str
    needs: tuple[str, ...] = ()


def _of_float(name: str, body: str, comment: str = "", needs: tuple[str, ...] = (), before: str = "") -> Helper:
    said = f"// {comment}\n" if comment else ""
    if before:
        head = f"__device__ __forceinline__ float {name}(float x)"
        return Helper(f"{said}{head} {{\n    {before}\n    return {body};\n}}\n", needs)
    return Helper(f"{said}__device__ __forceinline__ float {name}(float x) {{ return {body}; }}\n", needs)


def _of_any(name: str, body: str, comment: str = "", parameters: str = "T x") -> Helper:
    said = f"// {comment}\n" if comment else ""
    head = f"template <typename T>\n__device__ __forceinline__ T {name}({parameters})"
    return Helper(f"{said}{head} {{\n    return {body};\n}}\n")


def _with_nan(op: str, word: str, sign: str) -> Helper:
    general = _of_any(f"{op}_of", f"a {sign} b || a != a ? a : b", f"The {word} one; a NaN is handed on.", "T a, T b")
    return Helper(
        f"{general.text}\n#if __CUDA_ARCH__ >= 800\n// The same in one instruction.\n"
        f"[[maybe_unused]] __device__ __forceinline__ float {op}_of(float a, float b) {{\n"
        f"    float {word};\n"
        f'    asm("{op}.NaN.f32 %0, %1, %2;" : "=f"({word}) : "f"(a), "f"(b));\n'
        f"    return {word};\n}}\n#endif\n"
    )


HELPERS: dict[str, Helper] = {
    "square": _of_any("square", "x * x"),
    "cube": _of_any("cube", "x * x * x"),
    "sigmoid": _of_any("sigmoid", "T(1) / (T(1) + exp(-x))"),
    "silu": _of_any("silu", "x / (T(1) + exp(-x))"),
    "gelu": _of_any("gelu", "T(0.5) * x * (T(1) + erf(x * T(0.7071067811865476)))"),
    "gelu_tanh": _of_any(
        "gelu_tanh", "T(0.5) * x * (T(1) + tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)))"
    ),
    "fast_sigmoid": _of_float(
        "fast_sigmoid",
        "__fdividef(x < 0.0f ? e : 1.0f, 1.0f + e)",
        "For results of 16 bits or less: within 5 units of the last place of a float.",
        before="const float e = expf(-fabsf(x));",
    ),
    "fast_silu": _of_float("fast_silu", "x * fast_sigmoid(x)", needs=("fast_sigmoid",)),
    "fast_gelu": Helper(FAST_GELU.lstrip("\n")),
    "fast_gelu_tanh": _of_float(
        "fast_gelu_tanh",
        "__fdividef(x, 1.0f + __expf(-v))",
        "For results of 16 bits or less: (1 + tanh(v / 2)) / 2 is 1 / (1 + exp(-v)). Within 2^-20 |x|.",
        before="const float v = 1.5957691f * (x + 0.044715f * x * x * x);",
    ),
    "fast_tanh": _of_float(
        "fast_tanh",
        "1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x))",
        "For scores whose exponentials have 16 bits: within 2^-22.",
    ),
    "fast_softplus": Helper(FAST_SOFTPLUS.lstrip("\n")),
    "softplus": _of_any("softplus", "fmax(x, T(0)) + log1p(exp(-fabs(x)))", "log(1 + exp(x)) without overflow."),
    "relu": _of_any("relu", "x < T(0) ? T(0) : x", "A NaN stays one."),
    "sign": _of_any("sign", "x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0)", "Of a NaN 0."),
    "max_of": _with_nan("max", "larger", ">"),
    "min_of": _with_nan("min", "smaller", "<"),
    "floor_div": Helper(
        "// Rounded down, as `/` is towards 0; by 0 it is 0.\n"
        "template <typename T>\n__device__ __forceinline__ T floor_div(T a, T b) {\n"
        "    return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0));\n}\n"
    ),
    "floor_mod": Helper(
        "// With the sign of the divisor; by 0 it is 0.\n"
        "template <typename T>\n__device__ __forceinline__ T floor_mod(T a, T b) {\n"
        "    const T rest = b == 0 ? 0 : a % b;\n    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n}\n"
    ),
    "whole_div": Helper(
        "// By 0 it is 0.\n"
        "template <typename T>\n__device__ __forceinline__ T whole_div(T a, T b) { return b == 0 ? 0 : a / b; }\n"
    ),
    "whole_mod": Helper(
        "// By 0 it is 0.\n"
        "template <typename T>\n__device__ __forceinline__ T whole_mod(T a, T b) { return b == 0 ? 0 : a % b; }\n"
    ),
    "whole_of": Helper(
        "// Towards zero, the nearest number of the type, and of a NaN 0.\n"
        "template <typename Whole, typename T>\n__device__ __forceinline__ Whole whole_of(T x) {\n"
        "    return isnan(x) ? 0 : static_cast<Whole>(x);\n}\n"
    ),
    "float_mod": Helper(
        "// With the sign of the divisor.\n"
        "template <typename T>\n__device__ __forceinline__ T float_mod(T a, T b) {\n"
        "    const T rest = fmod(a, b);\n    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;\n}\n"
    ),
    "whole_power": Helper(
        "template <typename T>\n__device__ __forceinline__ T whole_power(T base, T power) {\n"
        "    if (power < 0) return base == 1 ? 1 : base == -1 ? (power % 2 ? -1 : 1) : 0;\n"
        "    T product = 1;\n"
        "    for (; power; power /= 2, base *= base) {\n"
        "        if (power % 2) product *= base;\n"
        "    }\n"
        "    return product;\n}\n"
    ),
    "clamped": Helper(
        "// The nearest index within [0, n).\n"
        "template <typename T>\n__device__ __forceinline__ T clamped(T i, T n) {\n"
        "    return i < 0 ? 0 : i < n ? i : n - 1;\n}\n"
    ),
    "wrapped": Helper(
        "// i modulo n, within [0, n).\n"
        "template <typename T>\n__device__ __forceinline__ T wrapped(T i, T n) {\n"
        "    const T rest = i % n;\n    return rest < 0 ? rest + n : rest;\n}\n"
    ),
    "mirrored": Helper(
        "// Mirrored at the first and the last index, which are not repeated.\n"
        "template <typename T>\n__device__ __forceinline__ T mirrored(T i, T n) {\n"
        "    if (n == 1) return 0;\n    const T period = 2 * n - 2;\n    const T rest = wrapped(i, period);\n"
        "    return rest < n ? rest : period - rest;\n}\n",
        ("wrapped",),
    ),
    "philox": Helper(PHILOX.lstrip("\n")),
    "uniform": Helper(
        "// In [0, 1), of 24 random bits.\n"
        "__device__ __forceinline__ float uniform(long long seed, long long i) {\n"
        "    return static_cast<float>(philox(seed, i).x >> 8) * 5.9604645e-08f;\n}\n",
        ("philox",),
    ),
    "normal": Helper(
        "// Box and Muller's transform of two uniform numbers.\n"
        "__device__ __forceinline__ float normal(long long seed, long long i) {\n"
        "    const uint2 bits = philox(seed, i);\n"
        "    const float u = (static_cast<float>(bits.x >> 8) + 1.0f) * 5.9604645e-08f;\n"
        "    const float v = static_cast<float>(bits.y >> 8) * 5.9604645e-08f;\n"
        "    return sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);\n}\n",
        ("philox",),
    ),
    "swapped": Helper(
        "// Applies `combine` to what is in memory: for what has no atomic function of its own.\n"
        "template <typename T, typename Word, typename Combine>\n"
        "__device__ __forceinline__ void swapped(T* place, Combine combine) {\n"
        "    Word* const word = reinterpret_cast<Word*>(place);\n"
        "    Word seen = *word;\n"
        "    Word expected;\n"
        "    do {\n"
        "        expected = seen;\n"
        "        T value = combine(*reinterpret_cast<T*>(&expected));\n"
        "        const Word wanted = *reinterpret_cast<Word*>(&value);\n"
        "        if (wanted == expected) return;  // nothing to change, as of most values in a maximum\n"
        "        seen = atomicCAS(word, expected, wanted);\n"
        "    } while (seen != expected);\n}\n"
    ),
    **{name: Helper(text.lstrip("\n"), needs) for name, (text, needs) in (TEXTS | RUNNING | WINDOW_HELPERS).items()},
    **{name: Helper(text, PRODUCT_NEEDS.get(name, ())) for name, text in PRODUCT_HELPERS.items()},
}
"""By name. Functions of T are for float and double: `exp` and others are overloaded in CUDA."""


def helper_texts(names: set[str]) -> list[str]:
    """The texts of helpers and of those that they need, each before what calls it."""
    order: list[str] = []

    def add(name: str) -> None:
        for each in HELPERS[name].needs:
            add(each)
        if name not in order:
            order.append(name)

    for name in HELPERS:
        if name in names:
            add(name)
    return [HELPERS[name].text for name in order]
