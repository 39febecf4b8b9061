"""The function on the host that launches the kernels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.extents import at_sizes, is_constant, names_in
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.tree import Call, Expr, Num, product
from warpwright.formulas.types import TYPES, computed
from warpwright.writer.code import IN_64_BITS, Code, Kernel, Launch, Path, Step
from warpwright.writer.decision import LEVELS, Decision, decided, host
from warpwright.writer.text import Text, broken, listed
from warpwright.writer.types import NAMES

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
    "grid_of": """// The blocks for `count` elements. More than a grid holds become none, and the launch fails.
inline unsigned grid_of(long long count, int per_block = 1) {
    const long long blocks = (count + per_block - 1) / per_block;
    return blocks <= INT_MAX ? static_cast<unsigned>(blocks) : 0;
}""",
}
"""Functions on the host, by name; a text has those that it calls."""


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
        read = {name for each in code.temporaries for name in names_in(each.extents)}
        sizes = [f"long long {name}" if name in read else f"long long /* {name} */" for name in code.formula.sizes]
        text("// The bytes of device memory that the launch function needs for what its kernels hand on to each other.")
        head = listed(sizes, f'extern "C" size_t {code.name}_workspace(', ") {")
        text.add(head)
        parts = "\n            + ".join(map(_bytes, code.temporaries))
        text(f"    return {parts};")
        text("}")
        text()
    text.add([f"// {each}" for each in code.formula.promises])
    text.add(listed(signature(code), f'extern "C" cudaError_t {code.name}(', ") {"))
    text.depth += 1
    tests = [f"!are_countable({{{', '.join(each)}}})" for each in _products(code)]
    refused = _broken("if (", tests, 116, ") return cudaErrorInvalidValue;", "||") if tests else []
    if len(refused) > 1:
        refused = [*_broken("if (", tests, 116, ") {", "||"), "    return cudaErrorInvalidValue;", "}"]
    text.add(refused)
    _workspace(text, code.temporaries)
    for step in code.steps:
        _step(text, code, step)
    text("return cudaGetLastError();")
    text.depth -= 1
    text("}")
    return "\n".join(part for line in text.lines for part in broken(line))


def _workspace(text: Text, temporaries: Sequence[Tensor]) -> None:
    """Where the arrays lie in the workspace, one behind the other."""
    if len(temporaries) == 1:
        kind = NAMES[temporaries[0].type]
        text(f"{kind}* const {temporaries[0].name} = static_cast<{kind}*>(workspace);")
        return
    for number, each in enumerate(temporaries):
        kind = NAMES[each.type]
        if number == 0:
            text("char* place = static_cast<char*>(workspace);")
        text(f"{kind}* const {each.name} = reinterpret_cast<{kind}*>(place);")
        if number + 1 < len(temporaries):
            text(f"place += {_bytes(each)};")


def _products(code: Code) -> list[tuple[str, ...]]:
    """The sizes that the launch function multiplies; those in one product, without products in others."""
    extents = [each.extents for each in (*code.formula.tensors.values(), *code.temporaries)]
    counts = [*map(product, map(list, extents)), *(step.count for step in code.steps)]
    found = {tuple(sorted(key)) for each in counts for key in polynomial(each) or {} if len(key) > 1}
    most = [key for key in found if not any(key != other and not Counter(key) - Counter(other) for other in found)]
    order = code.formula.sizes
    return sorted(tuple(sorted(key, key=order.index)) for key in most if all(name in order for name in key))


def _bytes(tensor: Tensor) -> str:
    elements = product([*tensor.extents])
    count = "" if elements == Num(1) else f"{host(elements, LEVELS['*'])} * "
    return f"aligned_bytes({count}sizeof({NAMES[tensor.type]}))"


def _step(text: Text, code: Code, step: Step) -> None:
    """The first path that is right; tests that several paths share have a name."""
    if is_constant(step.count):
        if at_sizes(step.count, {}) and len(step.paths) > 1 and len(code.steps) > 1:
            with text.block(""):
                _paths(text, code, decided(step))
        elif at_sizes(step.count, {}):
            _paths(text, code, decided(step))
        return
    made, count = decided(step), host(step.count)
    named = next((name for name, value in made.numbers if value == count), "")
    if named:  # a C++17 initialiser keeps the name from the other steps
        made = replace(made, numbers=tuple(each for each in made.numbers if each[0] != named))
    with text.block(f"if (const long long {named} = {count}; {named} > 0)" if named else f"if ({count} > 0)"):
        _paths(text, code, made)


def _paths(text: Text, code: Code, made: Decision) -> None:
    for name, value in made.numbers:
        text(f"const long long {name} = {value};")
    *special, general = made.paths
    if not special:
        _path(text, code, general)
        return
    if any(re.search(r"INT_MAX - \d", test) for tests in made.tests for test in tests):
        text("// Indices of 32 bits reach all elements, and beyond the last one as far as a grid counts.")
    for tests, name in made.tests.items():
        text.add(_broken(f"const bool {name} = ", list(tests), 116 - 4 * text.depth, ";"))
    before = ""
    for number, path in enumerate(special):
        whole = made.conditions(path)
        whole += [f"has_shared({_called(code, one)}, {_shared(one)})" for one in path.launches if one.asks_for_shared]
        text.add(_broken(f"{'} else ' if number else ''}if (", whole, 116 - 4 * text.depth, ") {"))
        text.depth += 1
        reason = path.reason
        if reason == before:
            reason = IN_64_BITS if any(each.index == "long long" for each in path.launches) else ""
        if reason:
            text(f"// {reason}")
        before = path.reason
        _path(text, code, path)
        text.depth -= 1
    with text.block("} else"):
        _path(text, code, general)


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
        head = f"{called}<<<{_dim3(each.grid)}, {block_text(each.block)}, {_shared(each)}, stream>>>("
        if 4 * text.depth + len(head) > 120:
            text(called)
            head = f"        {head.removeprefix(called)}"
        text.add(listed(args, head, ");", 116 - 4 * text.depth))


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
    texts = [host(each) if is_constant(each) else f"grid_of({_blocks(each)})" for each in used]
    return texts[0] if len(texts) == 1 else f"dim3({', '.join(texts)})"


def _blocks(size: Expr) -> str:
    match size:
        case Call(name="//", args=(Call(name="+", args=(count, Num(value=int(more)))), Num(value=int(each)))) if (
            more == each - 1
        ):
            return f"{host(count)}, {each}"
    return host(size)


def block_text(block: tuple[int, int, int]) -> str:
    """The threads of a block in C++."""
    used = list(block)
    while len(used) > 1 and used[-1] == 1:
        used.pop()
    return str(used[0]) if len(used) == 1 else f"dim3({', '.join(map(str, used))})"
