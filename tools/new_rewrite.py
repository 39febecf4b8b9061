"""Start a rewrite that passes its tests already: the module, two cases, and the page.

    python tools/new_rewrite.py NAME        for example: python tools/new_rewrite.py hoist-invariant-load

The new rewrite marks a kernel's first statement with a comment; replace its `propose`, its docstring and its cases
with the real ones, then run `UPDATE_EXPECT=1 pytest tests/rewrites` and `python tools/generate.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")

MODULE = '''\
"""One sentence that says what is changed, and to which end: $NAME.

## Before

```cuda
__global__ void $WORD(float *out) {
  out[threadIdx.x] = 1.0f;
}
```

## After

```cuda
__global__ void $WORD(float *out) {
  // $NAME
  out[threadIdx.x] = 1.0f;
}
```

## Assumes

- What has to hold for the results to stay the same. Where it does not, `propose` declines and says why.

## Cost

What it takes: shared memory, registers, other rounding.
"""

from __future__ import annotations

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import body
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Span

NAME = "$NAME"
title = "$TITLE"
goals = ("speed",)
relies_on = ()  # of `Reliance`: what the new code needs of every launch that the old did not


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body(kernel)
    statements = [child for child in block.named_children if child.type != "comment"] if block is not None else []
    if kernel.name != "$WORD" or not statements:
        return Declined(NAME, f"{kernel.name} has nothing to rewrite.")
    start = statements[0].start_byte
    if NAME in kernel.source.text(kernel.span.start, start):
        return Declined(NAME, f"{kernel.name} is rewritten already.")
    indent = kernel.source.line_indent(start)
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=kernel.source,
        edits=(TextEdit(start, start, f"// {NAME}\\n{indent}"),),
        explanation="What changes, why it helps, and what it costs.",
    )
'''

CASES = """\
# $NAME

## $WORD

```cuda
__global__ void $WORD(float *out) {
    out[threadIdx.x] = 2.0f;
}
```

becomes

```cuda
__global__ void $WORD(float *out) {
    // $NAME
    out[threadIdx.x] = 2.0f;
}
```

## near_miss

```cuda
__global__ void other(float *out) {
    out[threadIdx.x] = 2.0f;
}
```

declined: other has nothing to rewrite.
"""


def refusal(root: Path, name: str) -> str:
    """Why no rewrite of that name can be started; empty where it can."""
    if not NAME.fullmatch(name):
        return (
            f"{name!r} is not a rewrite's name: use lower-case words joined by hyphens, such as hoist-invariant-load."
        )
    taken = [path for path in files(root, name) if path.exists()]
    return f"{taken[0].relative_to(root)} is there already; nothing was written." if taken else ""


def files(root: Path, name: str) -> dict[Path, str]:
    """The new files and their text."""
    word = name.replace("-", "_")
    return {
        path: text.replace("$NAME", name).replace("$WORD", word).replace("$TITLE", word.replace("_", " ").capitalize())
        for path, text in {
            root / f"server/warpwright/rewrites/{word}.py": MODULE,
            root / f"tests/rewrites/cases/{name}.md": CASES,
        }.items()
    }


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    (name,) = arguments
    reason = refusal(ROOT, name)
    if reason:
        print(reason, file=sys.stderr)
        return 2
    for path, text in files(ROOT, name).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        print(f"wrote {path.relative_to(ROOT)}")
    return subprocess.run([sys.executable, ROOT / "tools/generate.py"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
