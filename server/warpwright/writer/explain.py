"""How the work of a code is laid on blocks and threads, in words."""

from __future__ import annotations

from warpwright.formulas.tree import Expr, Num
from warpwright.writer.code import Code, Path, Step
from warpwright.writer.launch import host


def explained(code: Code) -> str:
    """One paragraph for each step: what decides between its paths, and the launches of each.

    >>> from warpwright.formulas.resolve import formula_of
    >>> from warpwright.writer.write import plain
    >>> print(explained(plain(formula_of("y[i] = 2 * x[i]"), "twice")))
    Step 1 of 1
      always: twice_kernel, (I + 255) / 256 blocks of 256 threads
    """
    parts = [f"Step {number} of {len(code.steps)}\n{_step(each)}" for number, each in enumerate(code.steps, 1)]
    if code.temporaries:
        held = ", ".join(f"{each.name} ({_extents(each.extents)} {each.type})" for each in code.temporaries)
        parts.append(f"Kept in global memory between the steps: {held}")
    return "\n".join(parts)


def _extents(extents: tuple[Expr, ...]) -> str:
    return " x ".join(host(each) for each in extents) or "1"


def _step(step: Step) -> str:
    lines = []
    for number, path in enumerate(step.paths):
        when = _when(path) or ("always" if len(step.paths) == 1 else "else")
        lines.append(f"  {when}: " + "; then ".join(_launch(path, n) for n in range(len(path.launches))))
        if path.reason and number < len(step.paths) - 1:
            lines.append(f"    {path.reason}")
    return "\n".join(lines)


def _when(path: Path) -> str:
    tests = [host(each) for each in path.conditions]
    tests += [f"{name} starts at a multiple of {size} bytes" for name, size in path.aligned.items()]
    return f"where {' and '.join(tests)}" if tests else ""


def _launch(path: Path, number: int) -> str:
    launch = path.launches[number]
    grid = [host(each) for each in launch.grid if each != Num(1)] or ["1"]
    block = [str(each) for each in launch.block if each != 1] or ["1"]
    index = f" with indices of {'64' if launch.index == 'long long' else '32'} bits" if launch.index else ""
    threads = "thread" if block == ["1"] else "threads"
    blocks = "block" if grid == ["1"] else "blocks"
    return f"{launch.kernel}, {' x '.join(grid)} {blocks} of {' x '.join(block)} {threads}{index}"
