"""Counts what makes this tree hard to hold in mind: its size, and where one thing is said twice.

    python tools/house.py                  tables
    python tools/house.py --format json    the same numbers, to be compared with those of another commit

It counts `server/` and, for the number of its files, the whole repository. A *reader of raw nodes* asks tree-sitter
what a text is built of, instead of what `cuda/` and `facts/ir` read of it. *Twins* are functions that share most of
their statements, whatever their variables are called.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import statistics
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
NODE_QUESTIONS = {
    "child_by_field_name", "children_by_field_name", "field_name_for_child", "named_children", "named_child",
    "named_child_count", "next_sibling", "prev_sibling", "next_named_sibling", "prev_named_sibling",
}  # fmt: skip
READERS = ("cuda", "syntax")
"""Packages that are there to read nodes."""
LEAST_WORDS = 50
"""Of a function's tree as text: one with fewer is no twin."""
SHARED = 0.8
"""Of the smaller one's words, in statements that both have, for two functions to be twins."""
COMMON = 12
"""A statement that more functions have says nothing of two of them."""
LONG_MODULE = 400
SHOWN = 12
LEFT_OUT = {"ctx", "annotation"}
WORD = re.compile(r"\w+")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Package:
    name: str
    files: int
    lines: int
    code: int
    """Lines that are not blank, a comment or a docstring."""
    functions: int
    median: int
    longest: int
    node_files: int
    node_uses: int


@dataclass(frozen=True)
class Twins:
    one: str
    other: str
    shared: int
    """Words of the statements that both have."""
    words: int
    """Of the smaller one."""


@dataclass(frozen=True)
class House:
    packages: list[Package]
    repository_files: int
    class_names: dict[str, list[str]]
    """Those that are defined in two modules or more."""
    twins: list[Twins]
    longest: list[tuple[int, str]]
    long_modules: list[tuple[int, str]]

    def totals(self) -> dict[str, int]:
        readers = [package for package in self.packages if package.name not in READERS]
        return {
            "files": sum(package.files for package in self.packages),
            "lines": sum(package.lines for package in self.packages),
            "code": sum(package.code for package in self.packages),
            "files that read raw nodes": sum(package.node_files for package in readers),
            "uses of raw nodes": sum(package.node_uses for package in readers),
            "class names in two modules": len(self.class_names),
            "twins": len(self.twins),
            "functions above 50 lines": sum(lines > 50 for lines, _ in self.longest),
            f"modules above {LONG_MODULE} lines": len(self.long_modules),
            "files of the repository": self.repository_files,
        }


@dataclass(frozen=True)
class Module:
    path: Path
    place: str
    """Below `server/`, with `/`."""
    lines: list[str]
    tree: ast.Module

    @property
    def package(self) -> str:
        parts = self.place.split("/")
        return parts[1] if parts[0] == "warpwright" and len(parts) > 2 else parts[0]


def house(root: Path) -> House:
    modules = list(_modules(root / "server"))
    of_package: dict[str, list[Module]] = defaultdict(list)
    classes: dict[str, set[str]] = defaultdict(set)
    functions: list[tuple[str, Function]] = []
    for module in modules:
        of_package[module.package].append(module)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].add(module.place)
            elif isinstance(node, Function):
                functions.append((f"{module.place}:{node.lineno} {node.name}", node))
    longest = sorted(((_length(node), place) for place, node in functions), key=lambda each: (-each[0], each[1]))
    sizes = ((len(module.lines), module.place) for module in modules)
    return House(
        [_package(name, of_package[name]) for name in sorted(of_package)],
        len(_output("git", "-C", str(root), "ls-files").splitlines()),
        {name: sorted(places) for name, places in sorted(classes.items()) if len(places) > 1},
        twins(functions),
        longest,
        sorted((size for size in sizes if size[0] > LONG_MODULE), reverse=True),
    )


def _modules(server: Path) -> Iterator[Module]:
    for path in sorted(server.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield Module(path, path.relative_to(server).as_posix(), text.splitlines(), ast.parse(text))


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _package(name: str, modules: list[Module]) -> Package:
    lengths = [_length(n) for module in modules for n in ast.walk(module.tree) if isinstance(n, Function)]
    questions = [count for module in modules if (count := node_questions(module.tree))]
    return Package(
        name,
        len(modules),
        sum(len(module.lines) for module in modules),
        sum(_code_lines(module) for module in modules),
        len(lengths),
        int(statistics.median(lengths)) if lengths else 0,
        max(lengths, default=0),
        len(questions),
        sum(questions),
    )


def _length(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _code_lines(module: Module) -> int:
    said = {
        line
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(
        bool(text.strip()) and not text.lstrip().startswith("#") and number not in said
        for number, text in enumerate(module.lines, 1)
    )


def node_questions(tree: ast.Module) -> int:
    """How often a module asks a tree-sitter node what it is: its parts by name or order, its type as a string.

    >>> node_questions(ast.parse("from tree_sitter import Node\\nn.type in ('a', 'b') and n.next_sibling"))
    2
    >>> node_questions(ast.parse("n.type == 'a'"))
    0
    """
    if not any(name.startswith(("tree_sitter", "warpwright.syntax")) for name in _imported(tree)):
        return 0
    return sum(
        (isinstance(node, ast.Attribute) and node.attr in NODE_QUESTIONS)
        or (isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "type")
        for node in ast.walk(tree)
    )


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def twins(functions: Iterable[tuple[str, Function]]) -> list[Twins]:
    """Pairs of functions that share most of their statements, most shared first.

    What is in a function is not its twin.
    """
    shapes = {(place, node): shape for place, node in functions if (shape := _shape(node)).total() >= LEAST_WORDS}
    having: dict[str, list[tuple[str, Function]]] = defaultdict(list)
    for function, shape in shapes.items():
        for statement in shape:
            having[statement].append(function)
    shared: Counter[tuple[tuple[str, Function], tuple[str, Function]]] = Counter()
    for statement, those in having.items():
        if len(those) <= COMMON:
            for one, other in itertools.combinations(those, 2):
                shared[one, other] += min(shapes[one][statement], shapes[other][statement])
    found = (
        Twins(one[0], other[0], count, least)
        for (one, other), count in shared.items()
        if count >= SHARED * (least := min(shapes[one].total(), shapes[other].total()))
        and not any(other[1] is inner for inner in ast.walk(one[1]))
    )
    return sorted(found, key=lambda pair: (-pair.shared, pair.one, pair.other))


def _shape(function: Function) -> Counter[str]:
    """Its statements, each with its words, without the names of variables and the words of messages; a block's head
    stands without its body."""
    own = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    own |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def written(node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return "_" if node.id in own else node.id
        if isinstance(node, ast.Constant):
            return type(node.value).__name__ if isinstance(node.value, str) else repr(node.value)
        inner = (value for name, value in ast.iter_fields(node) if name not in LEFT_OUT and not _is_block(value))
        parts = [written(e) if isinstance(e, ast.AST) else str(e) for value in inner for e in _list(value)]
        return f"{type(node).__name__}({' '.join(parts)})"

    shape: Counter[str] = Counter()
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and not isinstance(node, Function) and not _is_text(node):
            text = written(node)
            shape[text] += len(WORD.findall(text))
    return shape


def _is_block(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, ast.stmt | ast.excepthandler) for each in value)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--root", type=click.Path(exists=True, file_okay=False, path_type=Path), default=ROOT, help="A checkout.")
@click.option("--format", "as_", type=click.Choice(["text", "json"]), default="text", help="How it is told.")
@click.option("--all", "whole", is_flag=True, help="Every row of the lists, not the first ones alone.")
def main(root: Path, as_: str, whole: bool) -> None:
    found = house(root)
    if as_ == "json":
        click.echo(json.dumps({"totals": found.totals(), **asdict(found), "longest": found.longest[:SHOWN]}, indent=1))
        return
    console = Console(width=120)
    most = None if whole else SHOWN
    console.print(_table("package files lines code functions median longest node_files node_uses", found.packages))
    for name, count in found.totals().items():
        console.print(f"{count:8,}  {name}", highlight=False)
    for title, rows in {
        "twins, by the words that they share": [
            f"{t.shared:4} of {t.words:3}  {t.one}  ~  {t.other}" for t in found.twins
        ],
        "class names in two modules": [f"{name}: {', '.join(places)}" for name, places in found.class_names.items()],
        "longest functions": [f"{lines:4}  {place}" for lines, place in found.longest[: None if whole else SHOWN]],
        f"modules above {LONG_MODULE} lines": [f"{lines:4}  {place}" for lines, place in found.long_modules],
    }.items():
        console.print(f"\n{title}: {len(rows)}" if title[0] != "l" else f"\n{title}", style="bold", highlight=False)
        for row in rows[:most]:
            console.print(f"  {row}", highlight=False, soft_wrap=True, markup=False)


def _table(columns: str, packages: list[Package]) -> Table:
    table = Table(box=None)
    for number, column in enumerate(columns.split()):
        table.add_column(column.replace("_", " "), justify="right" if number else "left")
    for package in packages:
        values = asdict(package).values()
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in values))
    return table


if __name__ == "__main__":
    main()
