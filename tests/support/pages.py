"""Pages, and docstrings of rules and rewrites as their pages: sections and the code in them."""

from __future__ import annotations

import re


def sections(doc: str) -> dict[str, str]:
    """Text by heading; what stands before the first heading is under "".

    >>> sections("Sum.\\n\\n## Example\\n\\ncode\\n")
    {'': 'Sum.', 'Example': 'code'}
    """
    parts = re.split(r"^## (.+)$", doc, flags=re.MULTILINE)
    return {heading: text.strip() for heading, text in zip(["", *parts[1::2]], parts[0::2], strict=True)}


def code(text: str) -> list[str]:
    """The ```cuda blocks of a section."""
    return blocks(text, "cuda")


def files_of(text: str) -> dict[str, str]:
    """The ```cuda and ```python blocks of a section as files.

    >>> list(files_of("```cuda\\nint x;\\n```\\n\\n```python\\nx = 1\\n```\\n"))
    ['kernel0.cu', 'script1.py']
    """
    found = re.findall(r"^```(cuda|python)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return {
        f"kernel{at}.cu" if language == "cuda" else f"script{at}.py": block
        for at, (language, block) in enumerate(found)
    }


def blocks(text: str, language: str) -> list[str]:
    """What stands in a page between ```language and ```, in order.

    >>> blocks("Put\\n```sh\\nls\\n```\\nthere.\\n", "sh")
    ['ls\\n']
    """
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
