"""The page of a profile as a file in the user's cache: one for each file and kernel, the last one written."""

from __future__ import annotations

import re
from pathlib import Path

from warpwright.directories import cache_dir
from warpwright.editor.profile.html import profile_html
from warpwright.editor.profile.view import view_of
from warpwright.facts.model import Program
from warpwright.facts.profile import Profile


def written_page(profile: Profile, program: Program) -> Path | None:
    """Where the page was written; None where it cannot be."""
    name = re.sub(r"\W+", "-", f"{Path(program.source.path).stem}-{profile.kernel}-profile")
    target = cache_dir() / "reports" / f"{name}.html"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(profile_html(view_of(profile, program)), encoding="utf-8")
    except OSError:
        return None
    return target
