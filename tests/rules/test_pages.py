"""Each rule's docstring, run: its example is found, "use instead" is clean, and the fix leads from one to the other."""

from __future__ import annotations

import pytest
from support.carets import assert_same
from support.findings import findings, fixed, in_example
from support.pages import code, files_of, sections
from warpwright.rewrites.base import Rewrite
from warpwright.rules.base import Rule
from warpwright.rules.registry import all_rules

HEADINGS = ["", "Why is this bad?", "Example", "Use instead", "Limits"]
rules = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)


@rules
def test_page_has_its_sections(rule: Rule) -> None:
    assert list(sections(rule.doc)) == HEADINGS
    assert rule.summary.endswith(".")


@rules
def test_example_is_found(rule: Rule) -> None:
    section = sections(rule.doc)["Example"]
    files = files_of(section)
    for found in (
        [in_example(section, rule.name)] if rule.check_unit else [findings(x, rule.name) for x in files.values()]
    ):
        assert found
        assert all(finding.evidence and finding.kernel and finding.severity for finding in found)


@rules
def test_use_instead_is_clean(rule: Rule) -> None:
    assert not in_example(sections(rule.doc)["Use instead"], rule.name)


@pytest.mark.sampled(3)
@rules
def test_fix_turns_the_example_into_use_instead(rule: Rule) -> None:
    page = sections(rule.doc)
    if rule.check_unit:
        is_cured = any(each.cure for each in in_example(page["Example"], rule.name))
        assert is_cured != ("There is no fix" in page["Limits"])
        return
    for example, better in zip(code(page["Example"]), code(page["Use instead"]), strict=True):
        found = findings(example, rule.name)
        if not found[0].fixes:
            assert "There is no fix" in page["Limits"]
            continue
        rewrite = fixed(example, found[0])
        assert isinstance(rewrite, Rewrite), rewrite
        assert_same(better, rewrite.apply().text(), "Use instead")


@rules
def test_a_fix_is_called_safe_exactly_where_its_rewrite_is(rule: Rule) -> None:
    """In the examples as they stand, and with floats for integers, whose sums depend on their order."""
    for example in code(sections(rule.doc)["Example"]):
        for text in (example, example.replace("int *", "float *").replace("shared__ int", "shared__ float")):
            for finding in findings(text, rule.name):
                if finding.fixes:
                    rewrite = fixed(text, finding)
                    assert isinstance(rewrite, Rewrite), rewrite
                    assert rewrite.safe == finding.fixes[0].safe
