"""Start a rule that passes its tests already: the module, its cases, and the page.

    python tools/new_rule.py GROUP NAME        for example: python tools/new_rule.py memory misaligned-access

The name says the defect, never the cure. The new rule finds kernels whose name ends in the rule's own name; replace its
`check`, its docstring and its cases with the real ones, then run `UPDATE_EXPECT=1 pytest tests/rules` and
`python tools/generate.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")

MODULE = '''\
"""One sentence that says the defect: $NAME.

## Why is this bad?

What it costs, with numbers, and on which hardware.

## Example

```cuda
__global__ void has_$WORD(float *out) {
  out[threadIdx.x] = 1.0f;
}
```

## Use instead

```cuda
__global__ void has_none(float *out) {
  out[threadIdx.x] = 1.0f;
}
```

## Limits

- What is not found, and why. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel
from warpwright.rules.base import Finding, Severity

severity = Severity.INFORMATION


def check(kernel: Kernel) -> Iterator[Finding]:
    if kernel.name.endswith("$WORD"):
        yield Finding(
            span=kernel.name_span,
            message="What is wrong, why, and what to do, with numbers.",
            evidence={"kernel": kernel.name},
        )
'''

CASES = """\
# $NAME

## $WORD.cu

```cuda
// Found.
__global__ void first_$WORD(float *out) {
//              ^$CARETS $NAME: What is wrong, why, and what to do, with numbers.
  out[threadIdx.x] = 1.0f;
}

// A near miss.
__global__ void first_other(float *out) {
  out[threadIdx.x] = 1.0f;
}
```
"""


def groups(root: Path) -> list[str]:
    return sorted(path.parent.name for path in (root / "server/warpwright/rules").glob("*/__init__.py"))


def refusal(root: Path, group: str, name: str) -> str:
    """Why no rule of that name can be started; empty where it can."""
    if not NAME.fullmatch(name):
        return f"{name!r} is not a rule's name: use lower-case words joined by hyphens, such as misaligned-access."
    if group not in groups(root):
        return f"There is no group {group!r}. The groups are: {', '.join(groups(root))}."
    taken = [path for path in files(root, group, name) if path.exists()]
    taken += (root / "server/warpwright/rules").glob(f"*/{name.replace('-', '_')}.py")
    return f"{taken[0].relative_to(root)} is there already; nothing was written." if taken else ""


def files(root: Path, group: str, name: str) -> dict[Path, str]:
    """The new files and their text."""
    word = name.replace("-", "_")
    carets = "^" * (len("first_") + len(word) - 1)
    return {
        root / f"server/warpwright/rules/{group}/{word}.py": _filled(MODULE, name, word),
        root / f"tests/rules/cases/{name}.md": _filled(CASES, name, word).replace("$CARETS", carets),
    }


def _filled(template: str, name: str, word: str) -> str:
    return template.replace("$NAME", name).replace("$WORD", word)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    group, name = arguments
    reason = refusal(ROOT, group, name)
    if reason:
        print(reason, file=sys.stderr)
        return 2
    for path, text in files(ROOT, group, name).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        print(f"wrote {path.relative_to(ROOT)}")
    return subprocess.run([sys.executable, ROOT / "tools/generate.py"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
