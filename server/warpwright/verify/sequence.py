"""A kernel of the candidate that does what several launches of the original do, one after the other, or one in a loop.

Example: `square<<<grid, block>>>(a, tmp, n); add<<<grid, block>>>(tmp, out, n);` became
`square_add<<<grid, block>>>(a, tmp, out, n);`. The original's side of the comparison then runs its launches in order,
on the new kernel's arrays; which of them each gets, the texts of the launches' arguments say. A launch in a loop is
read by `repeated`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.facts.launch_loops import LaunchLoop
from warpwright.facts.model import Kernel, Parameter, Program
from warpwright.facts.types import builtin_type
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem, Step, Struct
from warpwright.rewrites._code import squeezed
from warpwright.syntax.names import template_arguments, unqualified
from warpwright.syntax.nodes import descendants, launch_configuration, uncommented
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled
from warpwright.toolchain.names import instance_of
from warpwright.verify.plan import PlanError, Side
from warpwright.verify.repeated import batched_loop, repeated

Place = tuple[str, int]
"""A file and a line."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The candidate's new kernel and its launch, and the launches of the original in its place; of one in a loop, the
    loop."""

    kernel: str
    launch: Node
    before: tuple[Node, ...]
    loop: LaunchLoop | None = None


def lines_of(replaced: Replaced | None, old: Source, new: Source) -> tuple[frozenset[Place], frozenset[Place]]:
    """The lines of the original's launches and of the new kernel's, which are compared with each other."""
    if replaced is None:
        return frozenset(), frozenset()
    gone = [replaced.loop.loop] if replaced.loop is not None else list(replaced.before)
    return _lines(old, gone), _lines(new, [replaced.launch])


def _lines(source: Source, nodes: list[Node]) -> frozenset[Place]:
    places = [(source.position(node.start_byte)[0], source.position(node.end_byte)[0]) for node in nodes]
    return frozenset((source.path, line) for first, last in places for line in range(first, last + 1))


def replaced_launches(old: Program, new: Program) -> Replaced | None:
    """The launches that a new kernel's took the place of: all in one function, next to each other, with one grid,
    block, shared memory and stream, which are the new launch's; None where there is no such place, or more than one."""
    known = {kernel.name for kernel in old.defined_kernels}
    added = {kernel.name for kernel in new.defined_kernels} - known
    if len(added) != 1:
        return None
    (name,) = added
    found: list[Replaced] = []
    before, after = _functions(old.source), _functions(new.source)
    for function, launches in after.items():
        mine, theirs = before.get(function, []), launches
        if not any(_kernel_of(new.source, call) == name for call in theirs):
            continue
        texts, others = [_text(old.source, c) for c in mine], [_text(new.source, c) for c in theirs]
        first = next((i for i, (a, b) in enumerate(zip(texts, others, strict=False)) if a != b), 0)
        rest = len(others) - first - 1
        gone = tuple(mine[first : len(mine) - rest])
        same_rest = texts[len(texts) - rest :] == others[len(others) - rest :] if rest else True
        if _kernel_of(new.source, theirs[first]) != name or not same_rest or not gone:
            return None
        loop = batched_loop(old, new.source, gone[0], theirs[first]) if len(gone) == 1 else None
        if len(gone) == 1 and loop is None:
            return None
        found.append(Replaced(name, theirs[first], gone, loop))
    if len(found) != 1 or (found[0].loop is None and not _fits(old.source, new.source, found[0])):
        return None
    return found[0]


def unplaced_kernel(old: Program, new: Program) -> str:
    """A new kernel that the candidate launches and that is all it changes on the GPU, where the launches that it took
    the place of are not known; empty where there is none. To compare the others with themselves would prove nothing."""
    known = {kernel.name: kernel for kernel in old.defined_kernels}
    added = [k for k in new.defined_kernels if k.name not in known and any(each.span for each in k.launches)]
    same = all(k.span.text == known[k.name].span.text for k in new.defined_kernels if k.name in known)
    return added[0].name if added and known and same and replaced_launches(old, new) is None else ""


def fused_sides(
    replaced: Replaced, units: tuple[Program, Program], compiled: tuple[Compiled, Compiled]
) -> tuple[Side, Side] | PlanError:
    """How the new kernel and the launches that it stands for are to be run, or why that is not known."""
    (old, new), (before, after) = units, compiled
    kernel = new.kernel(replaced.kernel)
    problem = find_problem(new, kernel) if kernel is not None else None
    if not isinstance(problem, Problem):
        return PlanError(str(problem) if problem is not None else f"{replaced.kernel} is not defined.")
    own = original_of(replaced, old, new, problem)
    if isinstance(own, str):
        return PlanError(f"{own}.")
    steps = [instance_of(before.kernels, step.kernel, step.instance) for step in own.steps]
    resources = instance_of(after.kernels, replaced.kernel, problem.instance)
    known = tuple(step for step in steps if step is not None)
    if len(known) < len(steps) or resources is None or before.cubin is None or after.cubin is None:
        return PlanError(f"which compiled instances {replaced.kernel} stands for is not known.")
    return Side(before.cubin, known[0], own, known), Side(after.cubin, resources, problem)


def original_of(replaced: Replaced, old: Program, new: Program, problem: Problem) -> Problem | str:
    """The original's side of the new kernel's problem: its launches as steps; a reason where what they are handed is
    not known."""
    kernel = new.kernel(replaced.kernel)
    if kernel is None or problem.globals or any(isinstance(argument, Struct) for argument in problem.arguments):
        return (
            f"the new kernel {replaced.kernel} takes more than arrays and numbers, which several launches are not given"
        )
    types = {p.name: _type(p) for p in kernel.parameters}
    if replaced.loop is not None:
        step = old.kernel(_kernel_of(old.source, replaced.loop.call))
        if step is None or [_type(p) for p in step.parameters] != list(types.values()):
            return f"the new kernel {replaced.kernel} takes other parameters than the one that was launched in a loop"
        return repeated(old.source, step, replaced.loop, problem)
    names = _names_by_text(new.source, replaced.launch, kernel)
    if names is None:
        return f"the new kernel {replaced.kernel} is handed one array twice"
    steps: list[Step] = []
    for call in replaced.before:
        name = _kernel_of(old.source, call)
        step = old.kernel(name)
        arguments = [squeezed(old.source.node_code(a)) for a in uncommented(call.child_by_field_name("arguments"))]
        if step is None or len(arguments) != len(step.parameters):
            return f"what {name} is handed is not known"
        for text, parameter in zip(arguments, step.parameters, strict=True):
            if text not in names or types[names[text]] != _type(parameter):
                return f"{name} is handed `{text}`, and {replaced.kernel} nothing of that text and type"
        written = template_arguments(old.source.node_text(call).partition("<<<")[0])
        steps.append(Step(name, written, tuple(names[text] for text in arguments)))
    unused = [a.name for a in problem.arrays if not any(a.name in step.arguments for step in steps)]
    if unused:
        return f"the new kernel {replaced.kernel} takes {unused[0]}, which no launch before was passed"
    return replace(problem, kernel=steps[0].kernel, steps=tuple(steps))


def _fits(old: Source, new: Source, replaced: Replaced) -> bool:
    """Whether the launches stand next to each other and have the new one's grid, block, shared memory and stream."""
    wanted = _configuration(new, replaced.launch)
    if any(_configuration(old, call) != wanted for call in replaced.before):
        return False
    statements = [call.parent for call in replaced.before]
    for one, other in pairwise(statements):
        after = one.next_named_sibling if one is not None else None
        while after is not None and after.type == "comment":
            after = after.next_named_sibling
        if after is None or other is None or after != other or one is None or one.type != "expression_statement":
            return False
    return True


def _functions(source: Source) -> dict[str, list[Node]]:
    """The launches of each function that has any, in text order."""
    found: dict[str, list[Node]] = {}
    for function in descendants(source.root, "function_definition"):
        launches = [call for call in descendants(function, "call_expression") if launch_configuration(call) is not None]
        if launches:
            found.setdefault(function_name(source, function) or "", []).extend(launches)
    return found


def _kernel_of(source: Source, call: Node) -> str:
    function = call.child_by_field_name("function")
    return unqualified(source.node_text(function)) if function is not None else ""


def _configuration(source: Source, call: Node) -> str:
    configuration = launch_configuration(call)
    return squeezed(source.node_code(configuration)) if configuration is not None else ""


def _text(source: Source, call: Node) -> str:
    return squeezed(source.node_code(call))


def _names_by_text(source: Source, call: Node, kernel: Kernel) -> dict[str, str] | None:
    """The kernel's parameters by what its launch hands them; None where two arrays have one text."""
    given = uncommented(call.child_by_field_name("arguments"))
    if len(given) != len(kernel.parameters):
        return None
    found: dict[str, str] = {}
    for parameter, text in _handed(source, given, kernel):
        if text in found and parameter.is_pointer:
            return None
        found.setdefault(text, parameter.name)
    return found


def _handed(source: Source, given: list[Node], kernel: Kernel) -> Iterator[tuple[Parameter, str]]:
    for argument, parameter in zip(given, kernel.parameters, strict=True):
        yield parameter, squeezed(source.node_code(argument))


def _type(parameter: Parameter) -> tuple[str, int | None]:
    """What tells whether two parameters take the same: the type without its qualifiers, and its bytes."""
    words = parameter.type.replace("*", " * ").split()
    kept = [w for w in words if w not in ("const", "__restrict__", "__restrict", "restrict", parameter.name)]
    known = builtin_type(" ".join(w for w in kept if w != "*"))
    return (f"{known.name}{'*' * kept.count('*')}" if known is not None else " ".join(kept)), parameter.element_bytes
