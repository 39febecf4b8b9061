"""Comments decide nothing and lose no byte: every rewrite makes the same code of a text that is full of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from support.findings import proposed
from support.pages import code, sections
from warpwright.rewrites.base import Rewrite, RewriteKind
from warpwright.rewrites.registry import all_rewrites
from warpwright.syntax.code import code_of, comments_of

WORDS = (
    "volatile asm atomics atomicAdd(&x, 1) __syncthreads clock printf goto return inline assembly texture malloc "
    "static threadIdx.x threadIdx.y blockIdx.z __shared__ extern __launch_bounds__ const & [i] -> ++ = { } ( ; \" ' "
    "#define <<<1, 2>>> cudaDeviceSynchronize(); template <class T>"
)
LATIN = b"caf\xe9 \xdf\xff"
rewrites = pytest.mark.parametrize("kind", all_rewrites(), ids=lambda kind: kind.name)


def behind_each_line(text: bytes) -> bytes:
    """A comment behind each line, other than inside of a comment and where the line goes on."""
    inside = comments_of(text)
    lines, at = [], 0
    for number, line in enumerate(text.split(b"\n")):
        at += len(line)
        free = line.strip() and not line.endswith(b"\\") and not any(start < at <= end for start, end in inside)
        lines.append(line + (b"  // %d " % number + WORDS.encode() + b" " + LATIN if free else b""))
        at += 1
    return b"\n".join(lines)


def below_the_kernels_head(text: bytes) -> bytes:
    """A comment as the first line of each kernel, and at the file's start and end."""
    comment = b"  // " + WORDS.encode() + b"\n"
    opened = re.sub(rb"(__global__[^;{]*\{)[ \t]*\n", lambda match: match[1] + b"\n" + comment, text)
    return comment + opened + comment


def in_other_encoding(text: bytes) -> bytes:
    """Bytes that are not UTF-8 in comments behind statements, and in a string."""
    lines = re.sub(rb";$", b"; // " + LATIN, text, flags=re.MULTILINE)
    return lines + b'\nconst char *name() { return "' + LATIN + b' volatile asm"; }\n'


def squeezed(data: bytes) -> bytes:
    return re.sub(rb"\s+", b"", code_of(data))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("filled", [behind_each_line, below_the_kernels_head, in_other_encoding])
@rewrites
def test_comments_change_no_rewrite(kind: RewriteKind, filled: Callable[[bytes], bytes]) -> None:
    for before in code(sections(kind.doc)["Before"]):
        text = before.encode()
        plain, result = proposed(text, kind.name), proposed(filled(text), kind.name)
        assert isinstance(plain, Rewrite)
        assert isinstance(result, Rewrite), result
        made = result.apply().data
        added = squeezed(filled(text)).removeprefix(squeezed(text))
        assert squeezed(made) == squeezed(plain.apply().data) + added
        assert b"\xef\xbf\xbd" not in made
        source = result.source.data
        for start, end in comments_of(source):
            assert source[start:end].rstrip() in made
        assert made.count(b'"' + LATIN) == source.count(b'"' + LATIN)
