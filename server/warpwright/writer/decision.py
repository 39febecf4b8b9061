"""Between which paths a step decides, and by what: expressions over sizes in C++, names of those that paths share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from warpwright.formulas.extents import at_sizes, is_constant
from warpwright.formulas.tree import Call, Expr, Name, Num, walk
from warpwright.writer.code import MOST_INDEX, Launch, Path, Step

LEVELS = {"*": 3, "//": 3, "%": 3, "+": 2, "-": 2, "<=": 1, "<": 1, ">=": 1, ">": 1, "==": 1}
"""How tightly an operator binds."""
_SIGNS = {"//": "/"}
_NAMES = {"small": "fits_int", "packed": "is_packed", "aligned": "are_aligned"}


def host(node: Expr, least: int = 0) -> str:
    """An expression over sizes in C++.

    >>> host(Call("//", (Call("+", (Name("N"), Num(255))), Num(256))))
    '(N + 255) / 256'
    """
    if is_constant(node):
        value = at_sizes(node, {})
        below = MOST_INDEX - value
        return f"INT_MAX{f' - {below}' if below else ''}" if 0 <= below < 1 << 24 else str(value)
    match node:
        case Name(name=name):
            return name
        case Call(name="min" | "max" as name, args=(left, right)):
            return f"std::{name}<long long>({host(left)}, {host(right)})"
        case Call(name=name, args=(left, right)):
            level = LEVELS[name]
            text = f"{host(left, level)} {_SIGNS.get(name, name)} {host(right, level + 1)}"
            return f"({text})" if level < least else text
    raise ValueError(f"{node} is no expression over sizes")


@dataclass(frozen=True)
class Decision:
    """`numbers` are names with their expressions in C++, in the order in which they are computed, `tests` the tests of
    a name that several paths share; `paths` have those names in place of what they stand for."""

    numbers: tuple[tuple[str, str], ...]
    tests: Mapping[tuple[str, ...], str]
    paths: tuple[Path, ...]

    def conditions(self, path: Path) -> list[str]:
        """All that is tested for a path, with the names of shared tests."""
        own = _tests(path)
        found = [*own["other"]]
        for kind in _NAMES:
            found += [self.tests[own[kind]]] if own[kind] in self.tests else own[kind]
        return found


def decided(step: Step) -> Decision:
    """What decides between the paths of a step."""
    count = {"elements": step.count} if isinstance(step.count, Call) else {}
    names = {name: value for name, value in {**count, **step.names}.items() if not is_constant(value)}
    paths = tuple(_with_names(each, names) for each in step.paths)
    numbers: list[tuple[str, str]] = []
    named_here: dict[Expr, Expr] = {}
    for name, value in names.items():
        if any(Name(name) in walk(node) for path in paths for node in _sizes_in(path)):
            numbers.append((name, host(_replaced(value, named_here))))
            named_here[value] = Name(name)
    tests = [_tests(each) for each in paths[:-1]]
    shared: dict[tuple[str, ...], str] = {}
    for kind, name in _NAMES.items():
        counted = Counter(each[kind] for each in tests)
        often = [key for key, count in counted.items() if count > 1 and key]
        for number, key in enumerate(often[:1] + [key for key in often[1:] if len(key) > 1], 1):
            shared[key] = name if number == 1 else f"{name}_{number}"
    return Decision(tuple(numbers), shared, paths)


def _with_names(path: Path, names: Mapping[str, Expr]) -> Path:
    """The path with the names of expressions in their place."""
    named: dict[Expr, Expr] = {value: Name(name) for name, value in names.items()}

    def with_names(launch: Launch) -> Launch:
        x, y, z = (_replaced(each, named) for each in launch.grid)
        return replace(launch, grid=(x, y, z))

    launches = tuple(map(with_names, path.launches))
    return replace(path, launches=launches, conditions=tuple(_replaced(each, named) for each in path.conditions))


def _sizes_in(path: Path) -> Iterator[Expr]:
    """The expressions over sizes that decide on a path and its grids."""
    return chain(path.conditions, (each for launch in path.launches for each in launch.grid))


def _replaced(node: Expr, named: Mapping[Expr, Expr]) -> Expr:
    """The expression with others in the place of whole parts of it."""
    if node in named:
        return named[node]
    if isinstance(node, Call):
        return replace(node, args=tuple(_replaced(each, named) for each in node.args))
    return node


def _tests(path: Path) -> dict[str, tuple[str, ...]]:
    """The tests of a path by kind: that rows are whole packs which begin where one may, that arrays do, that indices of
    32 bits reach all."""
    found: dict[str, list[str]] = {"packed": [], "aligned": [], "small": [], "other": []}
    for each in path.conditions:
        found[_kind(each)].append(host(each, 1))
    aligned = [f"is_aligned({name}, {size})" for name, size in path.aligned.items()]
    found["packed" if found["packed"] else "aligned"] += aligned
    return {kind: tuple(tests) for kind, tests in found.items()}


def _kind(test: Expr) -> str:
    match test:
        case Call(name="==", args=(Call(name="%"), Num(value=0))):
            return "packed"
        case Call(name="<=", args=(_, most)) if host(most).startswith("INT_MAX"):
            return "small"
    return "other"
