"""How many examples a property test tries: all of them, or with `--hypothesis-profile=few` a quarter."""

from __future__ import annotations

from hypothesis import settings


def examples(most: int) -> settings:
    """For a test of which `most` examples are tried where the profile does not ask for fewer."""
    share: int = settings.default.max_examples
    return settings(max_examples=max(1, most * share // 100), deadline=None)
