"""What stands beside a request says the same as its formula: each array and number, its type, and what is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pytest
from warpwright.assist.signature import parameters
from warpwright.formulas.resolve import formula_of
from warpwright_upskill.data.requests.compose import Parts, composed
from warpwright_upskill.data.requests.given import arrays, names_of, shape_of, sizes_called, sizes_told
from warpwright_upskill.data.requests.signatures import c_signature, torch_signature
from warpwright_upskill.data.requests.vocabulary import C_TYPES, TENSOR_TYPES, TYPE_NAMES
from warpwright_upskill.data.requests.wording import worded

DRAWN = 600
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*")


def drawn(seed: str) -> Iterator[tuple[Parts, dict[str, str], Random]]:
    for number in range(DRAWN):
        parts = composed(f"{seed}/{number}")
        chance = Random(f"{seed}/{number}")
        yield parts, sizes_called(parts.formula, chance), chance


def untemplated(text: str) -> str:
    """The signature with the type that its template stands for, and without comments."""
    spelled = re.search(r"T(?: is |\s*=\s*)([\w:]+)", text)
    text = _COMMENT.sub(" ", text).replace("__launch_bounds__(256)", "")
    return re.sub(r"\bT\b(?=[ *])", spelled[1], text) if spelled and "template" in text else text


def test_a_c_signature_has_what_its_formula_has_and_no_more() -> None:
    for parts, sizes, chance in drawn("c"):
        text = c_signature(parts.formula, chance, sizes, parts.operator.name)
        if re.match(r"[\w: ]+ \*\w+(, \*\w+)*;", text):
            names = {*re.findall(r"\w+(?=[,;])", text)} - {*sizes.values()}
            assert names == {*names_of(parts.formula)}, text
            continue
        found = {each.name: each for each in parameters(untemplated(text))}
        expected = arrays(parts.formula)
        assert {each.name for each in found.values() if each.pointer} == {each.name for each in expected}, text
        constant = {each.name for each in found.values() if each.pointer and each.constant}
        assert constant in (set(), {each.name for each in expected if each.role == "in"}), text
        for each in expected:
            kind = {"c64": "f32", "c128": "f64"}.get(each.type, each.type)
            assert found[each.name].type in (each.type, kind), (text, parts.text)
        for name, type_ in parts.formula.scalars.items():
            assert found[name].type == type_ or "long " in text, (text, parts.text)
        rest = {*found} - {*names_of(parts.formula)}
        assert rest <= {*sizes.values(), "stream", "s", "0"}, text
        for name in rest & {*sizes.values()}:
            assert re.search(rf"\b(int|size_t|u?int\d\d_t|long|unsigned)\b&? {name}\b", text), text


@pytest.mark.slow
def test_a_torch_signature_has_what_is_read_with_its_type_and_shape() -> None:
    for parts, sizes, chance in drawn("torch"):
        text = torch_signature(parts.formula, chance, sizes, parts.operator.name)
        bare = parameters(re.sub(r"/\*|\*/|#", " ", text).replace("torch::", "torch.").replace("\n", ", "))
        found = {each.name: each for each in bare if each.name != "Tensor"}
        for each in arrays(parts.formula):
            assert each.role == "out" or re.search(rf"\b{each.name}\b", text), (text, parts.text)
            if each.name in found and found[each.name].rank is not None and not each.fields:
                assert found[each.name].rank == len(each.extents), (text, parts.text)
                assert found[each.name].type in (each.type, ""), (text, parts.text)
                assert each.type == "f32" or any(kind in text for kind in TENSOR_TYPES[each.type]), (text, parts.text)
        assert all(re.search(rf"\b{each}\b", text) for each in parts.formula.scalars), text
        assert text.startswith("def ") or {*found} <= {*names_of(parts.formula)}, text


def test_a_request_tells_what_its_formula_has() -> None:
    for number in range(DRAWN):
        parts = composed(f"request/{number}")
        words = worded(parts, Random(f"request/{number}"))
        said = f"{words.comment} {words.given}"
        allowed = {*parts.names.values(), *re.findall(r"[a-z]\w*", parts.operator.more + parts.operator.primed)}
        assert {*names_of(parts.formula)} <= allowed, parts.text
        for each in parts.dims:
            assert re.search(rf"\b{each.upper()}\b", said, re.I), (said, parts.text)
        for name, type_ in parts.typed.items():
            kinds = [*C_TYPES[type_], *TENSOR_TYPES[type_], *TYPE_NAMES[type_]]
            listed = re.search(rf"\b{name}\b", words.given)
            assert listed or any(kind.lower() in words.comment.lower() for kind in kinds), (said, parts.text)


@pytest.mark.slow
def test_one_array_is_read_and_written_where_a_request_is_in_place() -> None:
    drawn_in_place = [parts for parts, _, _ in drawn("place") if parts.in_place or parts.adds]
    assert len(drawn_in_place) > DRAWN // 50
    for parts in drawn_in_place:
        both = [each.name for each in arrays(parts.formula) if each.role == "in-out"]
        assert len(both) == 1
        signature = c_signature(parts.formula, Random(parts.text), {}, parts.operator.name)
        assert not re.search(rf"const [\w: ]*\W*\b{both[0]}\b", signature), signature


def test_sizes_are_called_as_the_words_have_them() -> None:
    formula = formula_of("y[b, i, j] = sum[k] A[b, i, k] * W[k, j]")
    sizes = sizes_called(formula, Random(1), "A [B, M, K] times W (k, n), K is small")
    assert sizes == {"B": "B", "I": "M", "K": "K", "J": "N"}
    assert [shape_of(each, sizes) for each in arrays(formula)] == [["B", "M", "K"], ["K", "N"], ["B", "M", "N"]]


def test_a_shape_in_the_words_is_of_the_array_that_it_follows() -> None:
    formula = formula_of("y[b, o, t] = sum[c, k < 7] w[o, c, k] * x[b, c, t + k - 3; zero]")
    told = sizes_told(formula, "x [B, C, T], weight w [O, C, 7]")
    assert told == {"B": "B", "C": "C", "T": "T", "O": "O"}
    assert sizes_told(formula_of("y[i, d] = sum[j] q[i, d] * k[j, d]"), "all [T, D]") == {"I": "T", "J": "T", "D": "D"}


@pytest.mark.parametrize("text", ["y[r] = sum[c] N[r, c] * rows[c]", "m[i, j] = cols[i] + C[j]"])
def test_no_size_is_called_as_an_array(text: str) -> None:
    formula = formula_of(text)
    for number in range(50):
        sizes = sizes_called(formula, Random(number))
        assert not {*sizes.values()} & {*names_of(formula)}
        assert len({*sizes.values()}) == len(sizes)
