"""Texts of CUDA that are compiled together."""

from __future__ import annotations

import re


def together(texts: dict[str, str]) -> str:
    """One file: the headers first, then each text in a namespace of its own, its macros undefined after it."""
    headers: dict[str, None] = {}
    parts: list[str] = []
    for number, (name, text) in enumerate(texts.items()):
        headers |= dict.fromkeys(re.findall(r"^#\s*include.*$", text, flags=re.MULTILINE))
        body = re.sub(r"^#\s*include.*$", "", text, flags=re.MULTILINE)
        macros = re.findall(r"^#\s*define\s+(\w+)", body, flags=re.MULTILINE)
        parts.append(
            f'namespace n{number} {{\n#line 1 "{name}"\n{body}\n}}\n' + "".join(f"#undef {m}\n" for m in macros)
        )
    return "\n".join([*headers, *parts])
