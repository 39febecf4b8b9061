"""What kernels take of memory and tensor cores, from sizes and from what nvcc makes of them."""

from __future__ import annotations

import pytest
from warpwright.formulas.aten.graph import Shape
from warpwright.formulas.aten.plan import FormulaPart, Given, Plan, Result
from warpwright.formulas.aten.texts import Array
from warpwright.formulas.loosened import loosened
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Num
from warpwright.progress import never_cancelled
from warpwright.verify.formulas import Written
from warpwright.verify.limits import Wanted, held_by, limits_of
from warpwright.verify.torch_parts import Part, held_by_parts
from warpwright.writer.write import file_text, plain, written


def made(text: str, *, is_plain: bool = False) -> Written:
    formula = formula_of(text)
    code = plain(formula, "f") if is_plain else written(formula, "f")
    return Written(formula, code, file_text(code), "", None)


def test_a_workspace_is_held_beside_the_arrays() -> None:
    softmax = "y[r, c] = exp(x[r, c] - m[r]) / s[r] where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])"
    held = held_by(made(softmax, is_plain=True), {"R": 100, "C": 7})
    assert held == {"x": 2800, "y": 2800, "workspace": 2 * 512}
    assert held_by(made("x'[i] = 2 * x[i]"), {"I": 9}) == {"x": 36}
    assert held_by(made("p: f32[N]{x, y}, s[n] = p.x[n] + p.y[n]"), {"N": 5}) == {"p": 40, "s": 20}


@pytest.mark.nvcc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "uses"), [("a: f16, b: f16, c[i, j] = sum[k] a[i, k] * b[k, j]", True), ("c[i] = -a[i]", False)]
)
def test_tensor_cores_are_found_in_what_is_compiled(text: str, uses: bool) -> None:
    kernels = made(text)
    sizes = dict.fromkeys(kernels.formula.sizes, 1024)
    asked = Wanted(sizes, held_by(kernels, sizes), 1 << 40, tensor_cores=True)
    memory, shared, cores = limits_of([(kernels, sizes)], asked, "sm_80", never_cancelled)
    assert (memory.holds, shared.holds, cores.holds) == (True, True, uses)
    assert (shared.numbers["bytes"] > 0) == uses


def test_arrays_between_parts_are_held_until_they_are_last_read() -> None:
    def array(name: str, count: int) -> Array:
        return Array(name, name, (Num(count),), "f32")

    def part(text: str, reads: list[Array], writes: list[Array]) -> tuple[FormulaPart, Part]:
        name = writes[0].array
        own = made(text)
        return FormulaPart(name, text, tuple(reads), tuple(writes)), Part(name, text, own, (), {})

    x, t, u, y = array("x", 10), array("t", 1000), array("u", 2000), array("y", 10)
    chain = [
        part("t: f32[1000], t[i] = x[i // 100], x: f32[10]", [x], [t]),
        part("u: f32[2000], u[i] = t[i // 2], t: f32[1000]", [t], [u]),
        part("y: f32[10], y[i] = u[i], u: f32[2000]", [u], [y]),
    ]
    given = (Given("x", "user_input", "", Shape((Num(10),), "f32")),)
    plan = Plan(tuple(each for each, _ in chain), given, (Result("user_output", "", "y", (Num(10),)),))
    assert held_by_parts(plan, [each for _, each in chain]) == {"x": 40, "y": 40, "t": 4000, "u": 8000}


def test_extents_stay_numbers_where_the_formula_holds_for_no_others() -> None:
    text = "x: f16[8, 1024], b: f16[333], y: f16[8, 1357], y[i, j] = x[i, j] if j < 1024 else b[j - 1024]"
    names = {8: "n", 1024: "t", 333: "s", 1357: "u"}
    found, sizes = loosened(formula_of(text), names)
    assert sizes == {"n": 8}
    assert found.sizes == ("n",)
    found, sizes = loosened(formula_of("x: f32[512, 256], y[i] = 512 * sum[j < 256] x[i, j]"), {512: "r", 256: "c"})
    assert (found.text.splitlines()[-1], sizes) == ("y[i] = 512 * (sum[j < c] x[i, j])", {"r": 512, "c": 256})
