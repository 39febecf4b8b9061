"""How the work of a code is laid on blocks and threads, in words and as pictures."""

from __future__ import annotations

from warpwright.formulas.tree import Expr, Num
from warpwright.schedules.model import Schedule
from warpwright.writer.code import Code, Path, Step
from warpwright.writer.decision import decided, host
from warpwright.writer.picture import described, picture


def explained(code: Code) -> str:
    """For each step what decides between its paths, as the launch function tests it, and the launches of each; then
    each schedule.

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
    made = decided(step)
    lines = [f"  {name} = {text}" for name, text in made.numbers]
    lines += [f"  {name}: {' and '.join(tests)}" for tests, name in made.tests.items()]
    schedules: dict[Schedule, str] = {}
    for number, path in enumerate(made.paths):
        when = " and ".join(made.conditions(path)) or ("always" if len(step.paths) == 1 else "else")
        own = path.schedule
        label = "" if own is None else schedules.setdefault(own, f"[{len(schedules) + 1}] ")
        lines.append(f"  {when}: {label}" + "; then ".join(_launch(path, n) for n in range(len(path.launches))))
        if path.reason and number < len(step.paths) - 1:
            lines.append(f"    {path.reason}")
    for schedule, label in schedules.items():
        lines.append(f"  {label}{described(schedule)}")
        lines += [f"      {line}" for line in picture(schedule).splitlines()]
    return "\n".join(lines)


def _launch(path: Path, number: int) -> str:
    launch = path.launches[number]
    grid = [host(each) for each in launch.grid if each != Num(1)] or ["1"]
    block = [str(each) for each in launch.block if each != 1] or ["1"]
    index = f" with indices of {'64' if launch.index == 'long long' else '32'} bits" if launch.index else ""
    threads = "thread" if block == ["1"] else "threads"
    blocks = "block" if grid == ["1"] else "blocks"
    return f"{launch.kernel}, {' x '.join(grid)} {blocks} of {' x '.join(block)} {threads}{index}"
