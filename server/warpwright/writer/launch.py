"""The function on the host that launches the kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.tree import Call, Expr, Name, Num, product, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.writer.code import MOST_INDEX, Code, Kernel, Launch, Path, Step, evaluated
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES

_LEVELS = {"*": 3, "//": 3, "%": 3, "+": 2, "-": 2, "<=": 1, "<": 1, ">=": 1, ">": 1, "==": 1}
_SIGNS = {"//": "/"}


HOST_HELPERS = {
    "is_aligned": "inline bool is_aligned(const void* p, size_t bytes) "
    "{ return reinterpret_cast<uintptr_t>(p) % bytes == 0; }",
    "aligned_bytes": "inline size_t aligned_bytes(size_t bytes) { return (bytes + 255) / 256 * 256; }",
    "are_countable": """// Whether no size is below 0 and 64 bits hold the product of those that are not 0.
inline bool are_countable(std::initializer_list<long long> sizes) {
    double product = 1.0;
    for (const long long size : sizes) {
        if (size < 0) return false;
        product *= static_cast<double>(std::max(size, 1LL));
    }
    return product < 9e18;
}""",
    "has_shared": """// Whether the GPU has so much shared memory for a block; if so, launches may ask for it.
template <typename Kernel>
bool has_shared(Kernel* kernel, int bytes) {
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess) return true;
    cudaGetLastError();  // another path is taken instead
    return false;
}""",
    "grid_of": """// More blocks than a grid holds become none, and the launch fails.
inline unsigned grid_of(long long blocks) { return blocks <= INT_MAX ? static_cast<unsigned>(blocks) : 0; }""",
}
"""Functions on the host, by name; a text has those that it calls."""


def host(node: Expr, least: int = 0) -> str:
    """An expression over sizes in C++.

    >>> host(Call("//", (Call("+", (Name("N"), Num(255))), Num(256))))
    '(N + 255) / 256'
    """
    if _is_fixed(node):
        value = evaluated(node, {})
        below = MOST_INDEX - value
        return f"INT_MAX{f' - {below}' if below else ''}" if 0 <= below < 1 << 20 else str(value)
    match node:
        case Name(name=name):
            return name
        case Call(name="min" | "max" as name, args=(left, right)):
            return f"std::{name}<long long>({host(left)}, {host(right)})"
        case Call(name=name, args=(left, right)):
            level = _LEVELS[name]
            text = f"{host(left, level)} {_SIGNS.get(name, name)} {host(right, level + 1)}"
            return f"({text})" if level < least else text
    raise ValueError(f"{node} is no expression over sizes")


def _is_fixed(node: Expr) -> bool:
    return not any(isinstance(each, Name) for each in walk(node))


def signature(code: Code) -> list[str]:
    """The parameters of the launch function: inputs, outputs, sizes, numbers, the workspace where there is one, the
    stream."""
    parts = [f"{'const ' if role == 'in' else ''}{NAMES[kind]}* {name}" for name, kind, role in arrays(code.formula)]
    parts += [f"long long {name}" for name in code.formula.sizes]
    parts += [f"{NAMES[computed(TYPES[kind]).name]} {name}" for name, kind in code.formula.scalars.items()]
    if code.temporaries:
        parts.append("void* workspace")
    return [*parts, "cudaStream_t stream"]


def arrays(formula: Formula) -> list[tuple[str, str, str]]:
    """Name, type and role of each array that a caller hands over; of a packed struct that of the whole."""
    found: dict[str, tuple[str, str, str]] = {}
    for each in formula.tensors.values():
        role = found[each.array][2] if each.array in found and found[each.array][2] != "in" else each.role
        found[each.array] = (each.array, each.type, role)
    return list(found.values())


def launch_function(code: Code) -> str:
    """The function, and one that tells the size of the workspace where there is one."""
    text = Text()
    if code.temporaries:
        sizes = [f"long long {name}" for name in code.formula.sizes]
        text("// How many bytes of memory on the device the launch function needs between its kernels.")
        head = listed(sizes, f'extern "C" size_t {code.name}_workspace(', ") {")
        _lines(text, head)
        text("    size_t bytes = 0;")
        for each in code.temporaries:
            text(f"    bytes += {_bytes(each)};  // {each.name}")
        text("    return bytes;")
        text("}")
        text()
    _lines(text, [f"// {each}" for each in code.formula.promises])
    _lines(text, listed(signature(code), f'extern "C" cudaError_t {code.name}(', ") {"))
    text.depth += 1
    tests = [f"!are_countable({{{', '.join(each)}}})" for each in _products(code)]
    for line in _broken("if (", tests, 116, ") return cudaErrorInvalidValue;", "||") if tests else []:
        text(line)
    if code.temporaries:
        text("char* place = static_cast<char*>(workspace);")
    for number, each in enumerate(code.temporaries):
        kind = NAMES[each.type]
        text(f"{kind}* {each.name} = reinterpret_cast<{kind}*>(place);")
        if number + 1 < len(code.temporaries):
            text(f"place += {_bytes(each)};")
    for step in code.steps:
        _step(text, code, step)
    text("return cudaGetLastError();")
    text.depth -= 1
    text("}")
    return str(text)


def _products(code: Code) -> list[tuple[str, ...]]:
    """The sizes that the launch function multiplies; those in one product, without products in others."""
    extents = [each.extents for each in (*code.formula.tensors.values(), *code.temporaries)]
    counts = [*map(product, map(list, extents)), *(step.count for step in code.steps)]
    found = {tuple(sorted(key)) for each in counts for key in polynomial(each) or {} if len(key) > 1}
    most = [key for key in found if not any(key != other and not Counter(key) - Counter(other) for other in found)]
    order = code.formula.sizes
    return sorted(tuple(sorted(key, key=order.index)) for key in most if all(name in order for name in key))


def _lines(text: Text, lines: list[str]) -> None:
    for each in lines:
        text(each)


def _bytes(tensor: Tensor) -> str:
    size = TYPES[tensor.type].bits // 8
    return (
        f"aligned_bytes({host(product([*tensor.extents]), _LEVELS['*'])} * {size})"
        if tensor.extents
        else "aligned_bytes(16)"
    )


def _step(text: Text, code: Code, step: Step) -> None:
    """The first path that is right; tests that several paths share have a name."""
    if _is_fixed(step.count):
        if evaluated(step.count, {}) and len(step.paths) > 1 and len(code.steps) > 1:
            with text.block(""):
                _paths(text, code, step)
        elif evaluated(step.count, {}):
            _paths(text, code, step)
        return
    with text.block(f"if ({host(step.count)} > 0)"):
        _paths(text, code, step)


def _paths(text: Text, code: Code, step: Step) -> None:
    named_here: dict[Expr, Expr] = {}
    names = {name: value for name, value in step.names.items() if not _is_fixed(value)}
    *special, general = (_with_names(each, names) for each in step.paths)
    for name, value in names.items():
        if any(Name(name) in walk(node) for path in (*special, general) for node in _sizes_in(path)):
            text(f"const long long {name} = {host(_replaced(value, named_here))};")
            named_here[value] = Name(name)
    if not special:
        _path(text, code, general)
        return
    tests = [_tests(each) for each in special]
    named: dict[tuple[str, ...], str] = {}
    for kind, name in (("packed", "is_packed"), ("small", "is_small"), ("rest", "has_rests")):
        shared = Counter(each[kind] for each in tests)
        for number, key in enumerate((key for key, count in shared.items() if count > 1 and key), 1):
            named[key] = name if number == 1 else f"{name}_{number}"
            _lines(text, _broken(f"const bool {named[key]} = ", list(key), 116 - 4 * text.depth, ";"))
    for number, (path, each) in enumerate(zip(special, tests, strict=True)):
        whole = [*each["other"]]
        for kind in ("small", "packed", "rest"):
            whole += [named[each[kind]]] if each[kind] in named else each[kind]
        whole += [f"has_shared({_called(code, one)}, {_shared(one)})" for one in path.launches if one.asks_for_shared]
        _lines(text, _broken(f"{'} else ' if number else ''}if (", whole, 116 - 4 * text.depth, ") {"))
        text.depth += 1
        if path.reason:
            text(f"// {path.reason}")
        _path(text, code, path)
        text.depth -= 1
    with text.block("} else"):
        _path(text, code, general)


def _with_names(path: Path, names: Mapping[str, Expr]) -> Path:
    """The path with the names of expressions in their place."""
    named: dict[Expr, Expr] = {value: Name(name) for name, value in names.items()}
    launches = tuple(replace(each, grid=(_replaced(each.grid[0], named), *each.grid[1:])) for each in path.launches)
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
    """The tests of a path by kind: that rows are whole packs which begin where one may, that they are not, that indices
    of 32 bits reach all."""
    found: dict[str, list[str]] = {"packed": [], "small": [], "rest": [], "other": []}
    for each in path.conditions:
        found[_kind(each)].append(host(each, 1))
    found["packed"] += [f"is_aligned({name}, {size})" for name, size in path.aligned.items()]
    return {kind: tuple(tests) for kind, tests in found.items()}


def _kind(test: Expr) -> str:
    match test:
        case Call(name="==", args=(Call(name="%"), Num(value=0))):
            return "packed"
        case Call(name="<=", args=(_, most)) if host(most).startswith("INT_MAX"):
            return "small"
        case Call(name=">=", args=(_, Num(value=1))):
            return "rest"
    return "other"


def _broken(head: str, tests: list[str], width: int, tail: str, sign: str = "&&") -> list[str]:
    """`head`, all tests and `tail`, on several lines where one does not hold them."""
    lines, line = [], head
    for number, each in enumerate(tests):
        piece = each + (f" {sign} " if number + 1 < len(tests) else tail)
        if len(line) + len(piece.rstrip()) > width and line != head:
            lines.append(line.rstrip())
            line = " " * 8
        line += piece
    return [*lines, line]


def _shared(launch: Launch) -> str:
    return str(launch.shared_bytes) if isinstance(launch.shared_bytes, int) else host(launch.shared_bytes)


def _called(code: Code, launch: Launch) -> str:
    """The name of the kernel or of its instance; a parameter of the same name would hide it."""
    arrays_here = {each.array for each in (*code.formula.tensors.values(), *code.temporaries)}
    hidden = launch.kernel in {*arrays_here, *code.formula.sizes, *code.formula.scalars}
    arguments = f"<{', '.join(launch.arguments)}>" if launch.arguments else ""
    return f"{'::' if hidden else ''}{launch.kernel}{arguments}"


def _path(text: Text, code: Code, path: Path) -> None:
    for each in path.launches:
        kernel = code.kernel(each.kernel)
        args = [_argument(code, kernel, each, name) for name in kernel.parameters]
        called = _called(code, each)
        head = f"{called}<<<{_dim3(each.grid)}, {_block(each.block)}, {_shared(each)}, stream>>>("
        _lines(text, listed(args, head, ");", 116 - 4 * text.depth))


def _argument(code: Code, kernel: Kernel, launch: Launch, name: str) -> str:
    if name in launch.arrays:
        return launch.arrays[name]
    if name in code.formula.sizes:
        kind = launch.index or kernel.size_type
        return name if kind == "long long" else f"static_cast<{kind}>({name})"
    return name


def _dim3(grid: tuple[Expr, Expr, Expr]) -> str:
    used = list(grid)
    while len(used) > 1 and used[-1] == Num(1):
        used.pop()
    texts = [host(each) if _is_fixed(each) else f"grid_of({host(each)})" for each in used]
    return texts[0] if len(texts) == 1 else f"dim3({', '.join(texts)})"


def _block(block: tuple[int, int, int]) -> str:
    used = list(block)
    while len(used) > 1 and used[-1] == 1:
        used.pop()
    return str(used[0]) if len(used) == 1 else f"dim3({', '.join(map(str, used))})"
