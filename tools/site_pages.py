"""What MkDocs is told beside mkdocs.yml: pages that lie outside of docs/, and links that lead out of it.

README.md is the home page and CHANGELOG.md a page. A link to another file of the repository leads to GitHub; one to a
file that is not there ends the build, as MkDocs does for links between pages (`mkdocs build --strict`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_PAGES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}
"""Pages of the site, and the file of the repository that each is."""
_MEDIA = ROOT / "client-vscode" / "media"
_LINK = re.compile(
    r'(?ms)^```.*?^```|`[^`]*`|(?P<head>\]\(|\b(?:src|srcset)=")(?P<target>[^)"\s#]+)(?P<anchor>#[^)"\s]*)?(?=[)"\s])'
)
_BLOB = "https://github.com/warpwright/warpwright/blob/main/"


class MissingFileError(Exception):
    """A link to a file that is not in the repository."""


def on_config(config: Any) -> Any:
    """Names of pages with a `*` in the navigation stand for all of them, in the order of their names; those that it
    does not name come last."""
    config.nav = [_expanded(entry) for entry in config.nav]
    named = set(_named(config.nav))
    every = [*_PAGES, *(path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md")))]
    left = [page for page in every if page not in named and not page.endswith("/index.md")]
    config.nav += [{"More": left}] if left else []
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File  # MkDocs calls this, and nothing else needs it

    for page, path in _PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text("utf-8")))
    for picture in sorted(_MEDIA.glob("*.png")):
        files.append(File.generated(config, f"media/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return with_site_links(markdown, page.file.src_uri)


def with_site_links(markdown: str, page: str) -> str:
    """The text of a page with its links made out for the site. Raises MissingFileError.

    >>> with_site_links("[a](docs/cli.md#x) [b](LICENSE) [c](https://a.b)", "index.md")
    '[a](cli.md#x) [b](https://github.com/warpwright/warpwright/blob/main/LICENSE) [c](https://a.b)'
    >>> with_site_links("[a](../csrc_samples) [b](rules/index.md)", "cli.md")
    '[a](https://github.com/warpwright/warpwright/blob/main/csrc_samples) [b](rules/index.md)'
    """
    folder = ROOT if page in _PAGES else (DOCS / page).parent

    def site_link(link: re.Match[str]) -> str:
        target = link["target"]
        if target is None or re.match(r"[a-z]+:", target):  # code, or another site
            return link[0]
        path = Path(os.path.normpath(folder / target))
        if not path.exists():
            raise MissingFileError(f"{page} links to {target}, which is not in the repository")
        return f"{link['head']}{_address(path, page)}{link['anchor'] or ''}"

    return _LINK.sub(site_link, markdown)


def _address(path: Path, page: str) -> str:
    """A file of the repository, seen from a page."""
    names = {ROOT / source: name for name, source in _PAGES.items()}
    if path in names:
        name = names[path]
    elif path.is_relative_to(DOCS) and path.is_file():
        name = path.relative_to(DOCS).as_posix()
    elif path.is_relative_to(_MEDIA):
        name = f"media/{path.name}"
    else:
        return _BLOB + path.relative_to(ROOT).as_posix()
    return os.path.relpath(name, Path(page).parent)


def _named(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from _named(inner)


def _expanded(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {title: _expanded(inner) for title, inner in entry.items()}
    if isinstance(entry, list):
        return [page for inner in entry for page in _pages(inner)]
    return _pages(entry) if "*" in entry else entry


def _pages(entry: Any) -> list[Any]:
    if not isinstance(entry, str) or "*" not in entry:
        return [_expanded(entry)]
    return [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.glob(entry)) if path.name != "index.md"]
