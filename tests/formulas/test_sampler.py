"""The sampler: formulas that resolve, without end, of all that the language has."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest
from warpwright.formulas.functions import ARITHMETIC, BITS, COMPARISONS, FUNCTIONS, LOGIC, REDUCTIONS
from warpwright.formulas.lexer import tokens_of
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.sampler import FAMILIES, Sample, sample, samples
from warpwright.formulas.tree import Call, Load, Num, Reduce, walk
from warpwright.formulas.types import TYPES


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Sample, Formula]]:
    """2,000 samples; that each resolves is the first that is tested of them."""
    return [(each, formula_of(each.text)) for each in islice(samples("tests"), 2000)]


def test_samples_are_distinct_and_of_all_families(drawn: list[tuple[Sample, Formula]]) -> None:
    assert len({each.text for each, _ in drawn}) == 2000
    families = Counter(each.family for each, _ in drawn)
    assert families.keys() == FAMILIES.keys()
    assert max(families.values()) - min(families.values()) <= 1


def test_samples_differ_by_more_than_names(drawn: list[tuple[Sample, Formula]]) -> None:
    """Most have a structure of their own: what is left where each name and number counts as one."""
    shapes = {
        " ".join("n" if token.kind != "sign" and token.text not in FUNCTIONS else token.text for token in tokens)
        for tokens in (tokens_of(each.text) for each, _ in drawn)
    }
    assert len(shapes) >= 1200


def test_samples_are_short_as_people_write_them(drawn: list[tuple[Sample, Formula]]) -> None:
    lengths = sorted(len(tokens_of(each.text)) for each, _ in drawn)
    assert lengths[0] >= 8
    assert lengths[len(lengths) // 2] <= 60
    assert lengths[-1] <= 260
    assert all(printed(parse(each.text)) == each.text for each, _ in drawn)


def test_all_of_the_language_is_drawn(drawn: list[tuple[Sample, Formula]]) -> None:
    counts: Counter[str] = Counter()
    for _, formula in drawn:
        counts.update({each.type for each in formula.tensors.values()} | {each.type for each in formula.stages})
        counts.update(f"{stage.combine}=" for stage in formula.stages if stage.combine)
        counts.update("in place" for stage in formula.stages if stage.primed)
        counts.update("strided" for each in formula.tensors.values() if each.strides)
        counts.update("struct" for each in formula.tensors.values() if each.base)
        nodes = [node for stage in formula.stages for part in (*stage.index, stage.value) for node in walk(part)]
        for node in nodes:
            counts[type(node).__name__] += 1
            match node:
                case Call(name=name):
                    counts[name] += 1
                case Load(outside=outside):
                    counts["a number outside" if isinstance(outside, Num) else str(outside)] += 1
                case Reduce(op=op, accumulate=kind, ranges=ranges):
                    counts[f"reduce {op}"] += 1
                    counts["accumulated"] += bool(kind)
                    counts["ranges with ends"] += any(each.lower or each.upper for each in ranges)
    least = {
        **dict.fromkeys(TYPES, 8),
        **dict.fromkeys(FUNCTIONS, 5),
        **dict.fromkeys((*ARITHMETIC, *COMPARISONS, *BITS, *LOGIC, "select", "neg", "~"), 8),
        **dict.fromkeys((f"reduce {op}" for op in REDUCTIONS), 20),
        **dict.fromkeys(("Num", "Name", "Load", "Call", "Reduce"), 400),
        **dict.fromkeys(("clamp", "wrap", "reflect", "a number outside", "strided", "struct", "in place"), 30),
        **dict.fromkeys(("+=", "*=", "max=", "min=", "accumulated"), 5),
        "ranges with ends": 100,
    }
    assert {name: counts[name] for name, few in least.items() if counts[name] < few} == {}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_without_end(family: str) -> None:
    texts = [sample(family, f"more/{number}").text for number in range(200)]
    assert all(map(formula_of, texts))
    assert len(set(texts)) >= 120


def test_a_seed_gives_the_same_in_another_process() -> None:
    code = (
        "from itertools import islice; from warpwright.formulas.sampler import samples\n"
        "for each in islice(samples('a seed'), 60): print(each.text)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "".join(f"{each.text}\n" for each in islice(samples("a seed"), 60))
    assert run.stdout != "".join(f"{each.text}\n" for each in islice(samples("another"), 60))
