"""From PyTorch into formulas: what a plan computes is what torch computes, and its text reads as one would write it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from warpwright.formulas.aten.graph import graph_of
from warpwright.formulas.aten.plan import Plan, document, plan
from warpwright.formulas.numpy_reference import evaluate, stored
from warpwright.formulas.resolve import formula_of

torch = pytest.importorskip("torch")
F = torch.nn.functional


def planned(function: Callable[..., Any], *inputs: Any, sizes: bool = False, convolutions: bool = False) -> Plan:
    from warpwright_harness.exported import called, document, exported

    module = function if isinstance(function, torch.nn.Module) else called(function)
    found = document(exported(module, inputs, "f", sizes))
    return plan(graph_of(found), keeps_convolutions=convolutions)


def by_numpy(part: Any, reads: Any) -> Any:
    formula = formula_of(part["formula"])
    made = stored(formula, evaluate(formula, {name: each.numpy() for name, each in reads.items()}))
    return {name: torch.from_numpy(np.array(each)) for name, each in made.items()}


def agree(function: Callable[..., Any], *inputs: Any, sizes: bool = False) -> Plan:
    """The plan, of which every part is a formula, computes what torch does."""
    from warpwright_harness.planned import run

    made = planned(function, *inputs, sizes=sizes)
    assert not made.calls
    state: dict[str, Any] = {}
    if isinstance(function, torch.nn.Module):
        both = {**dict(function.named_parameters()), **dict(function.named_buffers())}
        state = {name: each.detach().clone() for name, each in both.items()}
    with torch.no_grad():
        truth = function(*inputs)
        results, mutated = run(document(made), state, inputs, by_numpy)
    for one, other in zip(results, truth if isinstance(truth, tuple) else (truth,), strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, equal_nan=True)
    for name, each in mutated.items():
        torch.testing.assert_close(each, dict(function.named_buffers())[name])
    return made


def x(*extents: int) -> Any:
    return torch.randn(*extents, generator=torch.Generator().manual_seed(sum(extents)))


IDS = torch.tensor([2, 0, 3, 2])
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "activations": (lambda a: (F.gelu(a), F.mish(a), F.elu(a), F.hardswish(a), F.softplus(a)), (x(3, 5),)),
    "more activations": (lambda a: (F.selu(a), F.leaky_relu(a, 0.2), F.hardtanh(a), F.logsigmoid(a)), (x(3, 5),)),
    "scalars": (lambda a: torch.add(a, a * 2, alpha=3) / 4 - (1 - a) ** 3, (x(7),)),
    "comparisons": (lambda a, b: torch.where(a > b, a, b.abs()).logical_not(), (x(4, 3), x(3))),
    "casts": (lambda a: (a.half() * 2).float() + a.to(torch.int32), (x(6),)),
    "integers": (lambda a: (a // 2 + a % 3) << 1, (torch.arange(9),)),
    "sums": (lambda a: (a.sum(), a.mean(1), a.amax((0, 2), keepdim=True), a.prod(0)), (x(2, 3, 4),)),
    "variances": (lambda a: (a.var(1), a.std(0, correction=0), torch.var_mean(a, 2)[0]), (x(3, 4, 5),)),
    "places": (lambda a: (a.argmax(1), a.min(0).indices, a.max(1).values), (x(4, 6),)),
    "truths": (lambda a: ((a > 0).any(1), (a > -9).all()), (x(4, 6),)),
    "one element": (lambda a: (a.sum(1), a.argmax(1), a.softmax(1)), (x(5, 1),)),
    "norms": (lambda a: a / a.norm(dim=1, keepdim=True) + a.norm(1, 0) + a.norm(torch.inf), (x(3, 4),)),
    "softmax": (lambda a: (a.softmax(-1), a.log_softmax(0), a.logsumexp(1)), (x(3, 7),)),
    "layer norm": (lambda a, w, c: F.layer_norm(a, (4, 5), w, c), (x(3, 4, 5), x(4, 5), x(4, 5))),
    "group norm": (lambda a, w, c: F.group_norm(a, 2, w, c), (x(2, 6, 3, 2), x(6), x(6))),
    "rms norm": (lambda a, w: F.rms_norm(a, (5,), w), (x(3, 5), x(5))),
    "products": (lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2), (x(3, 4), x(4, 5), x(5))),
    "batches": (lambda a, b: a @ b.transpose(1, 2), (x(2, 3, 4), x(2, 5, 4))),
    "vectors": (lambda a, b: (a @ b, b @ b, torch.outer(b, b)), (x(3, 4), x(4))),
    "einsum": (lambda a, b: torch.einsum("bijl,lk->bijk", a, b), (x(2, 3, 4, 5), x(5, 6))),
    "linear": (lambda a, w, c: F.linear(a, w, c).relu(), (x(2, 3, 4), x(5, 4), x(5))),
    "views": (lambda a: a.view(2, 6, 4).transpose(1, 2).reshape(8, 6)[:, 1:4] + 1, (x(3, 4, 4),)),
    "moves": (lambda a: torch.cat([a.flip(1), a[:, :2]], 1).roll(1, 0), (x(3, 4),)),
    "stacks": (lambda a: torch.stack([a, a + 1], 1).unsqueeze(0).expand(2, -1, -1, -1), (x(3, 4),)),
    "pads": (lambda a: F.pad(a.exp(), (1, 2, 0, 1), value=7.0), (x(3, 4),)),
    "pads by itself": (lambda a: F.pad(a, (2, 1), mode="reflect") + F.pad(a, (1, 2), mode="replicate"), (x(3, 4),)),
    "triangles": (lambda a: a.tril(1) + a.triu(-1) * 2 + a.diagonal().sum(), (x(4, 4),)),
    "gathers": (lambda t, i: (F.embedding(i, t), t[i, 1], t.gather(0, i[:, None])), (x(4, 3), IDS)),
    "scatters": (lambda a, i, s: (a.index_add(0, i, s), a.scatter_add(0, i[:, None], s)), (x(4, 3), IDS, x(4, 3))),
    "scans": (lambda a: (a.cumsum(1), a.flip(0).cumprod(0)), (x(3, 5),)),
    "max pooling": (lambda a: F.max_pool2d(a.relu(), 3, 2, 1), (x(1, 2, 7, 6),)),
    "average pooling": (lambda a: F.avg_pool2d(a, 3, 2, 1, count_include_pad=False), (x(1, 2, 7, 6),)),
    "one window": (lambda a: F.avg_pool2d(a, 5), (x(1, 2, 6, 6),)),
    "adaptive pooling": (lambda a: F.adaptive_avg_pool2d(a, (2, 3)), (x(1, 2, 4, 6),)),
    "convolution": (lambda a, w: F.conv2d(a, w, stride=2, padding=1, dilation=2), (x(2, 3, 9, 8), x(4, 3, 3, 2))),
    "groups": (lambda a, w, c: F.conv1d(a, w, c, padding=2, groups=2), (x(2, 4, 7), x(6, 2, 3), x(6))),
    "transposed": (
        lambda a, w: F.conv_transpose2d(a, w, stride=2, padding=1, groups=2), (x(2, 4, 4, 3), x(4, 3, 3, 2))
    ),
    "upsampling": (lambda a: F.interpolate(a, scale_factor=2), (x(1, 2, 3, 3),)),
    "pixel shuffle": (lambda a: F.pixel_shuffle(a, 2) + 1, (x(2, 8, 3, 2),)),
    "channel shuffle": (lambda a: F.channel_shuffle(a * 2, 2), (x(2, 6, 3, 2),)),
    "group norm and mean": (lambda a: F.group_norm(a, 2).mean((1, 2, 3)), (x(2, 6, 3, 4),)),
    "maxima of groups": (lambda a: a.view(3, 4, 2).softmax(1).view(3, 8).argmax(1), (x(3, 8),)),
    "losses": (
        lambda a, b: (F.mse_loss(a, b), F.huber_loss(a, b), F.l1_loss(a, b), F.kl_div(a, b.softmax(1))),
        (x(3, 4), x(3, 4) + 1),
    ),
    "cross-entropy": (lambda a, i: F.cross_entropy(a, i, label_smoothing=0.1), (x(4, 5), IDS)),
    "triplets": (F.triplet_margin_loss, (x(3, 4), x(3, 4) + 1, x(3, 4) - 1)),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (x(2, 3, 4), x(2, 3, 4), x(2, 3, 5))
    ),
    "attention with shared heads": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        (x(2, 6, 3, 4), x(2, 2, 3, 4), x(2, 2, 3, 5)),
    ),
    "masked attention": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m), (x(2, 3, 4), torch.tensor([[1, 0, 1]] * 3).bool())
    ),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_a_plan_computes_what_torch_does(name: str) -> None:
    function, inputs = CASES[name]
    agree(function, *inputs)


@pytest.mark.parametrize(
    "name", ["softmax", "layer norm", "products", "batches", "norms", "pads", "scans", "attention"]
)
def test_sizes_may_be_known_at_run_time(name: str) -> None:
    function, inputs = CASES[name]
    made = agree(function, *inputs, sizes=True)
    assert any(formula_of(each.text).sizes for each in made.formulas)


def test_statistics_of_a_batch_are_kept() -> None:
    made = agree(torch.nn.BatchNorm2d(3), x(4, 3, 5, 2))
    assert [each.target for each in made.results] == ["running_mean", "running_var", "num_batches_tracked", ""]


def test_running_statistics_are_used() -> None:
    agree(torch.nn.BatchNorm2d(3).eval(), x(4, 3, 5, 2))


def test_what_is_computed_of_a_product_is_part_of_it() -> None:
    made = planned(lambda a, b, c: torch.relu(a @ b + c) * 2, x(3, 4), x(4, 5), x(5))
    (part,) = made.formulas
    assert part.text.splitlines()[-2:] == [
        "out[i, j] = relu(mm[i, j] + c[j]) * 2",
        "  where mm[i, j] = sum[k] a[i, k] * b[k, j]",
    ]


def test_a_softmax_reads_as_in_a_paper() -> None:
    (part,) = planned(lambda a: a.softmax(-1), x(3, 7)).formulas
    assert part.text.splitlines()[2:] == [
        "out[i, j] = exp(a[i, j] - softmax_max[i]) / softmax_sum[i]",
        "  where softmax_max[i] = max[j] a[i, j],",
        "        softmax_sum[i] = sum[j] exp(a[i, j] - softmax_max[i])",
    ]


def test_views_become_dimensions() -> None:
    """No quotient is left, nor three dimensions where one place in memory is read."""
    (_, part) = planned(lambda a: F.group_norm(a, 2).mean((1, 2, 3)), x(2, 6, 3, 4)).formulas
    assert part.text.splitlines()[-1] == (
        "mean_out[i] = mean[j, k, l] (a[i, j, k, l] - group_norm_mean[i, j]) * rsqrt(group_norm_var[i, j] + 1e-05)"
    )


def test_a_convolution_stays_the_library_s() -> None:
    made = planned(lambda a, w: F.conv2d(a, w).relu(), x(1, 3, 5, 5), x(4, 3, 3, 3), convolutions=True)
    assert [each.said for each in made.calls] == ["convolution stays torch's: it calls a library."]
    assert len(made.formulas) == 1


def test_an_operator_without_a_formula_is_named_and_the_rest_goes_on() -> None:
    made = planned(lambda a: torch.sort(a * 2).values + 1, x(3, 4))
    assert [each.said for each in made.calls] == ["sort stays torch's: it has no formula."]
    assert len(made.formulas) == 2


def test_a_complex_number_stays_torch_s() -> None:
    from warpwright_harness.planned import run

    def function(a: Any) -> Any:
        return (a.to(torch.complex64) * 1j + 2).imag + 1

    made = planned(function, x(3, 4))
    assert "mul stays torch's: it takes a complex number." in [each.said for each in made.calls]
    results, _ = run(document(made), {}, (x(3, 4),), by_numpy)
    torch.testing.assert_close(results[0], function(x(3, 4)))


def test_random_numbers_stay_torch_s() -> None:
    made = planned(torch.nn.Dropout(0.5), x(3, 4))
    assert "its random numbers are torch's" in made.calls[0].said
    assert not planned(torch.nn.Dropout(0.5).eval(), x(3, 4)).calls


def test_results_are_freed_at_once() -> None:
    """Else a training loop holds the arrays of many calls until Python looks for cycles."""
    from warpwright_harness.planned import run

    def tensors() -> int:
        return sum(isinstance(each, torch.Tensor) for each in gc.get_objects())

    plan, inputs = document(planned(lambda a: torch.sort(a * 2).values + 1, x(3, 4))), (x(3, 4),)
    gc.collect()
    gc.disable()
    try:
        before = tensors()
        run(plan, {}, inputs, by_numpy)
        assert tensors() == before
    finally:
        gc.enable()
