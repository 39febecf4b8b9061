"""Chains of two contractions around a softmax, by whatever they are spelt: each path right in the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from warpwright.emulator.formula_check import compared
from warpwright.emulator.formulas import Compiled, compiled, run_code
from warpwright.formulas.normal import normal
from warpwright.formulas.numpy_agreement import agreements, reference, reference_of
from warpwright.formulas.printer import shown
from warpwright.formulas.resolve import formula_of
from warpwright.missing import Missing
from warpwright.schedules.attention import FusedAttention
from warpwright.writer.chain import Chain, chains
from warpwright.writer.code import Code
from warpwright.writer.explain import explained
from warpwright.writer.write import ScheduleError, file_text, written

pytestmark = pytest.mark.sampled(8)

ARRAYS = "q: f16[H, I, 64] k: f16[H, J, 64] v: f16[H, J, 64] o: f16[H, I, 64]"
PRODUCT = "(sum[d] q[h, i, d] * k[h, j, d])"
RATIO = "o[h, i, d] = (sum[j] e[h, i, j] * v[h, j, d]) / sum[j] e[h, i, j]"
WEIGHTS = "m[h, i] = max[j] s[h, i, j], e[h, i, j] = exp(s[h, i, j] - m[h, i])"
SIZES = {"H": 2, "I": 70, "J": 100}


def scored(score: str, declared: str = "") -> str:
    """Attention with a score."""
    return f"{ARRAYS} {declared} {RATIO} where s[h, i, j] = {score}, {WEIGHTS}"


SPELLINGS = {
    "with stages": scored(f"0.125 * {PRODUCT}"),
    "normalised before": f"{ARRAYS} o[h, i, d] = sum[j] p[h, i, j] * v[h, j, d] where s[h, i, j] = {PRODUCT} / 8, "
    f"{WEIGHTS}, l[h, i] = sum[j] e[h, i, j], p[h, i, j] = e[h, i, j] / l[h, i]",
    "one expression": f"{ARRAYS} o[h, i, d] = sum[j] exp({PRODUCT} - logsumexp[j] {PRODUCT}) * v[h, j, d]",
    "scaled after": f"{ARRAYS} {RATIO} where s[h, i, j] = {PRODUCT}, m[h, i] = max[j] s[h, i, j], "
    "e[h, i, j] = exp(0.125 * (s[h, i, j] - m[h, i]))",
    "scaled before": f"{ARRAYS} {RATIO} where x[h, i, d] = q[h, i, d] / 8, "
    f"s[h, i, j] = sum[d] x[h, i, d] * k[h, j, d], {WEIGHTS}",
    "without a maximum": f"{ARRAYS} {RATIO} where e[h, i, j] = exp({PRODUCT} / 8)",
    "other names": "q: bf16[A, T, 64] k: bf16[A, S, 64] v: bf16[A, S, 64] o: bf16[A, T, 64] "
    "o[a, t, c] = (sum[u] w[a, t, u] * v[a, u, c]) / z[a, t] where s[b, i, j] = sum[d] k[b, j, d] * q[b, i, d], "
    "m[x, y] = max[n] s[x, y, n], w[b, i, j] = exp(s[b, i, j] - m[b, i]), z[b, i] = sum[k2] w[b, i, k2]",
    "powers of 2": f"{ARRAYS} {RATIO} where s[h, i, j] = {PRODUCT} / 8, m[h, i] = max[j] s[h, i, j], "
    "e[h, i, j] = exp2(s[h, i, j] - m[h, i])",
    "masked weights": f"{ARRAYS} {RATIO} where s[h, i, j] = {PRODUCT} / 8, m[h, i] = max[j] s[h, i, j], "
    "e[h, i, j] = exp(s[h, i, j] - m[h, i]) if j <= i else 0",
}
SCORES = {
    "causal": scored(f"0.125 * {PRODUCT} if j <= i else -inf"),
    "causal, added": scored(f"0.125 * {PRODUCT} + (-inf if j > i else 0)"),
    "window": scored(f"scale * {PRODUCT} if abs(i - j) <= w else -inf", "w: i32"),
    "range": f"{ARRAYS} o[h, i, d] = (sum[i - 20 < j <= i] e[h, i, j] * v[h, j, d]) / sum[i - 20 < j <= i] e[h, i, j] "
    f"where s[h, i, j] = 0.125 * {PRODUCT}, m[h, i] = max[i - 20 < j <= i] s[h, i, j], "
    "e[h, i, j] = exp(s[h, i, j] - m[h, i])",
    "lengths": scored(f"{PRODUCT} / 8 if j < n[h] and j <= i + J - I else -inf", "n: i32"),
    "bias, cap and slope": scored(f"20 * tanh({PRODUCT} / 160) + bias[i, j] - slope[h] * abs(i - j)", "bias: f16"),
    "sinks": f"{ARRAYS} o[h, i, d] = (sum[j] e[h, i, j] * v[h, j, d]) / ((sum[j] e[h, i, j]) + exp(sink[h] - m[h, i])) "
    f"where s[h, i, j] = {PRODUCT} / 8 if j <= i else -inf, m[h, i] = max(sink[h], max[j] s[h, i, j]), "
    "e[h, i, j] = exp(s[h, i, j] - m[h, i])",
    "epilogue": f"{ARRAYS} o[h, i, d] = x[h, i, d] + g[d] * a[h, i, d] "
    f"where a[h, i, d] = (sum[j] e[h, i, j] * v[h, j, d]) / sum[j] e[h, i, j], s[h, i, j] = {PRODUCT} / 8, {WEIGHTS}",
}


def chain_of(text: str) -> Chain | list[str]:
    found = list(chains(normal(formula_of(text))))
    made = [each for each in found if isinstance(each, Chain)]
    return made[0] if made else [str(each) for each in found]


def kernels(code: Code) -> list[str]:
    return [launch.kernel for path in code.steps[0].paths for launch in path.launches]


def right(text: str, *sizes: dict[str, int], schedule: FusedAttention | None = None) -> Code:
    """What is written computes the formula, by tiles and, from unaligned arrays, by rows."""
    formula = formula_of(text)
    code = written(formula, "attend", schedule)
    made = compiled(file_text(code))
    assert isinstance(made, Compiled), made
    for number, each in enumerate(sizes):
        for alignment, kernel in ((256, "attend_kernel"), (2, "attend_rows")):
            found = compared(formula, code, made, reference_of(formula), each, number, alignment=alignment)
            assert not isinstance(found, Missing), found
            assert found.ok, found.reason
            assert [launch.kernel for path in found.paths for launch in path.launches] == [kernel]
    return code


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_is_the_same_chain(name: str) -> None:
    found = chain_of(SPELLINGS[name])
    assert isinstance(found, Chain), found
    (result,) = found.results
    assert shown(result.value).startswith("@sum")
    assert kernels(written(formula_of(SPELLINGS[name]), "attend")) == ["attend_kernel", "attend_rows"]


@pytest.mark.sampled(8)
@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["one expression", "scaled before", "other names", "powers of 2"])
def test_spellings_compute_the_same(name: str) -> None:
    names = {"A": 2, "T": 70, "S": 100} if name == "other names" else SIZES
    right(SPELLINGS[name], names)


@pytest.mark.sampled(16)
@pytest.mark.nvcc
@pytest.mark.parametrize("name", SCORES)
def test_scores_are_any_expression(name: str) -> None:
    right(SCORES[name], SIZES, {"H": 1, "I": 131, "J": 63})


@pytest.mark.sampled(16)
@pytest.mark.nvcc
@pytest.mark.parametrize("head", [32, 72, 128, 256])
def test_heads_of_other_sizes(head: int) -> None:
    text = SCORES["causal"].replace("64]", f"{head}]")
    right(text, {"H": 1, "I": 1, "J": 1}, {"H": 2, "I": 33, "J": 150})


@pytest.mark.nvcc
def test_heads_whose_size_is_known_at_run_time() -> None:
    text = SCORES["causal"].replace("64]", "D]")
    formula = formula_of(text)
    code = written(formula, "attend")
    made = compiled(file_text(code))
    assert isinstance(made, Compiled), made
    for size, template in ((64, ("64",)), (24, ("64",)), (128, ("128",)), (20, ()), (136, ())):
        found = compared(formula, code, made, reference_of(formula), {"H": 1, "I": 30, "J": 40, "D": size})
        assert not isinstance(found, Missing), found
        assert found.ok, found.reason
        assert found.paths[0].launches[0].template == template


@pytest.mark.nvcc
def test_heads_that_share_keys_in_arrays_with_the_heads_last_and_a_second_result() -> None:
    text = """q: bf16[B, T, G * 4, 64] k: bf16[B, S, G, 64] v: bf16[B, S, G, 32] o: f32[B, T, G * 4, 32] lse: f32
        o[b, i, h, d] = sum[j] exp(s[b, h, i, j] - lse[b, h, i]) * v[b, j, h // 4, d]
        lse[b, h, i] = logsumexp[j] s[b, h, i, j]
        where s[b, h, i, j] = 0.125 * sum[d] q[b, i, h, d] * k[b, j, h // 4, d] if j <= i else -inf"""
    right(text, {"B": 2, "T": 40, "S": 70, "G": 1}, {"B": 1, "T": 3, "S": 0, "G": 1})


@pytest.mark.nvcc
@pytest.mark.parametrize("is_guarded", [False, True])
def test_rows_that_see_no_key(is_guarded: bool) -> None:
    masked = f"s[h, i, j] = {PRODUCT} / 8 if j < i - 3 else -inf, m[h, i] = max[j] s[h, i, j]"
    text = f"{ARRAYS} {RATIO} where {masked}, e[h, i, j] = exp(s[h, i, j] - m[h, i])"
    if is_guarded:
        text = f"""{ARRAYS}
            o[h, i, d] = 0 if l[h, i] == 0 else (sum[j] e[h, i, j] * v[h, j, d]) / l[h, i] where {masked},
            e[h, i, j] = 0 if m[h, i] == -inf else exp(s[h, i, j] - m[h, i]), l[h, i] = sum[j] e[h, i, j]"""
    right(text, SIZES)


@pytest.mark.nvcc
@pytest.mark.parametrize("text", [SCORES["causal"], SPELLINGS["normalised before"]])
def test_no_key_at_all(text: str) -> None:
    code = written(formula_of(text), "attend")
    made = compiled(file_text(code))
    assert isinstance(made, Compiled), made
    sizes = {"H": 1, "I": 3, "J": 0}
    arrays = {n: np.zeros((1, c, 64), np.float16) for n, c in (("q", 3), ("k", 0), ("v", 0), ("o", 3))}
    ran = run_code(code, made, arrays, {}, sizes)
    assert not isinstance(ran, Missing)
    expected = reference(formula_of(text), {n: arrays[n] for n in "qkv"}, {}, sizes)
    found = ran.arrays["o"].view(np.float16).reshape(1, 3, 64)
    assert all(each.agrees for each in agreements(formula_of(text), {"o": found}, expected))


@pytest.mark.nvcc
def test_names_that_the_kernel_has_too() -> None:
    text = """scores: f16[warp, lane, 64] sums: f16[warp, step, 64]
        shared: f16[warp, step, 64] total: f16[warp, lane, 64]
        total[head, half, x] = (sum[part] most[head, half, part] * shared[head, part, x])
            / sum[part] most[head, half, part]
        where score[head, half, part] = largest * (sum[x] scores[head, half, x] * sums[head, part, x]),
              most[head, half, part] = exp(score[head, half, part])"""
    right(text, {"warp": 1, "lane": 20, "step": 30, "HEAD": 1, "HALF": 20, "PART": 30})


@pytest.mark.sampled(8)
@pytest.mark.nvcc
@pytest.mark.parametrize("schedule", [FusedAttention(64, 64), FusedAttention(128, 64, 8), FusedAttention(128, 128)])
def test_other_schedules(schedule: FusedAttention) -> None:
    right(SCORES["causal"], SIZES, {"H": 1, "I": 140, "J": 150}, schedule=schedule)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{ARRAYS} o[h, i, d] = sum[j] {PRODUCT} * v[h, j, d]", "no exponential of a score"),
        (
            scored(PRODUCT).replace(" where s[h, i, j] =", " s[h, i, j] =").replace(", m[", " where m["),
            "is needed for each",
        ),
        (scored(PRODUCT).replace("[h, j, d])", "[h, j, d] * k[h, j, d])"), "no products of two arrays"),
        (f"{ARRAYS} o[h, i, d] = sum[j] exp({PRODUCT}) * v[h, j, d] / sum[j < 9] exp({PRODUCT})", "different ranges"),
        (
            "q: f16[H, 64] k: f16[H, J, 64] v: f16[H, J, 64] o[h, d] = (sum[j] e[h, j] * v[h, j, d]) / sum[j] e[h, j] "
            "where e[h, j] = exp(sum[d] q[h, d] * k[h, j, d])",
            "no rows share a tile",
        ),
    ],
)
def test_what_is_no_chain_says_why(text: str, reason: str) -> None:
    found = chain_of(text)
    assert not isinstance(found, Chain)
    assert any(reason in each for each in found), found


@pytest.mark.parametrize("change", [("f16", "f32"), ("64]", "65]"), ("64]", "264]")])
def test_what_tiles_do_not_hold_is_written_as_before(change: tuple[str, str]) -> None:
    code = written(formula_of(SCORES["causal"].replace(*change)), "attend")
    assert not any(each.name == "attend_kernel" for each in code.kernels)
    assert len(code.steps) > 1


def test_a_schedule_that_cannot_be_says_why() -> None:
    assert "up to 256" in FusedAttention().refusal(257)
    assert "shared memory" in FusedAttention(128, 128, 8).refusal(128)
    with pytest.raises(ScheduleError, match="shared memory"):
        written(formula_of(SCORES["causal"].replace("64]", "128]")), "attend", FusedAttention(128, 128, 8))


def test_what_is_around_a_chain_is_written_apart() -> None:
    text = SCORES["causal"].replace("o[h, i, d] =", "y[i, c] = sum[h, d] o[h, i, d] * p[h, d, c] o[h, i, d] =")
    code = written(formula_of(f"p: f16[H, 64, C] y: f16[I, C] {text}"), "attend")
    names = [launch.kernel for step in code.steps for path in step.paths for launch in path.launches]
    assert "attend_o_kernel" in names
    assert any("attend_y" in each for each in names)


def test_words_say_how_it_is_laid_out() -> None:
    said = explained(written(formula_of(SCORES["causal"]), "attend"))
    assert "Tiles of 128 x 64 scores stay in registers" in said


def test_a_small_cap_has_a_quick_tanh_and_a_large_one_none() -> None:
    for cap, is_quick in (("20", True), ("2000", False), ("cap", False)):
        text = file_text(written(formula_of(scored(f"{cap} * tanh({PRODUCT} / 160)")), "attend"))
        assert (text.count("fast_tanh(") > 1) == is_quick
        assert "tanhf(" in text  # the kernel of rows takes the library's
