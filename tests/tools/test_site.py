"""Every link of the documentation leads to a file that is there."""

from __future__ import annotations

import doctest
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = runpy.run_path(str(ROOT / "tools" / "site_pages.py"))
PAGES = {**{path.relative_to(SITE["DOCS"]).as_posix(): path for path in SITE["DOCS"].rglob("*.md")},
         **{page: ROOT / path for page, path in SITE["_PAGES"].items()}}  # fmt: skip


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links(page: str) -> None:
    SITE["with_site_links"](PAGES[page].read_text("utf-8"), page)


def test_a_link_to_nothing_is_found() -> None:
    with pytest.raises(SITE["MissingFileError"], match=r"cli\.md links to gone\.md"):
        SITE["with_site_links"]("`](no.md)` [a](gone.md)", "cli.md")


def test_how_links_are_written() -> None:
    function = SITE["with_site_links"]
    test = doctest.DocTestFinder().find(function, "with_site_links", globs=SITE)
    assert sum(doctest.DocTestRunner().run(each).failed for each in test) == 0


def test_the_navigation_has_every_page_once() -> None:
    config = SimpleNamespace(nav=[{"Use": ["cli.md", {"Rules": "rules/*.md"}]}])
    (use, more) = SITE["on_config"](config).nav
    named = [*use["Use"][1]["Rules"], "cli.md", *more["More"]]
    assert len(named) == len(set(named)) and set(named) == set(PAGES) - {"rules/index.md", "rewrites/index.md"}
