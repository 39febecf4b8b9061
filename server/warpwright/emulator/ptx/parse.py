"""PTX text to data.

`parse` takes what nvcc 12.x and 13.x emit, inline assembly included, for every architecture: that an instruction is
read here does not mean that the emulator runs it.

Source: PTX ISA 9.0, chapters 4 to 6 and 11 "Directives".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.emulator.ptx.body import Body, read_parameters
from warpwright.emulator.ptx.declarations import SPACES, read_variables, skip_parentheses
from warpwright.emulator.ptx.model import (
    Address,
    Function,
    Instruction,
    Label,
    Module,
    Operand,
    Symbol,
    Variable,
    Vector,
)
from warpwright.emulator.ptx.places import Places
from warpwright.emulator.ptx.tokens import Cursor, PtxError

OLDEST, NEWEST = (6, 0), (9, 5)
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_SECTION = re.compile(r"^[ \t]*\.section[ \t]+[\w.]+\s*\{[^{}\"/]*\}", re.MULTILINE | re.ASCII)
"""What debuggers read, most of the text of a file of many kernels."""


def parse(text: str) -> Module:
    """Read a PTX text. Raises PtxError, which names the line, where it is cut off, damaged, or of another version.

    >>> module = parse('''
    ... .version 8.4
    ... .target sm_90
    ... .address_size 64
    ... .visible .entry k(.param .u64 k_param_0) .maxntid 256
    ... {
    ...     .reg .b64 %rd<2>;
    ...     ld.param.u64 %rd1, [k_param_0];
    ...     st.global.v2.f32 [%rd1+8], {0f3F800000, 0f00000000};
    ...     ret;
    ... }''')
    >>> [item.name for item in module.functions["k"].body]
    ['ld.param.u64', 'st.global.v2.f32', 'ret']
    >>> module.functions["k"].directives
    (('maxntid', (256,)),)
    """
    code = _SECTION.sub(lambda section: "\n" * section[0].count("\n"), text.rstrip("\0"))
    cursor = Cursor(code)
    version, target, address_bits = _read_header(cursor)
    reader = _ModuleReader(cursor, Places(text))
    reader.read()
    module = Module(version, target, address_bits, reader.variables, reader.functions, reader.aliases)
    _check_symbols(module, cursor)
    return module


def _read_header(cursor: Cursor) -> tuple[tuple[int, int], str, int]:
    """`.version`, `.target` and `.address_size`."""
    if not cursor.take(".version"):
        raise cursor.error("this is not PTX: it does not begin with .version.")
    major, dot, minor = cursor.peek().partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal() and len(major) < 5 and len(minor) < 5):
        raise cursor.unexpected("a version such as 8.4")
    version = int(major), int(minor)
    if not OLDEST <= version <= NEWEST:
        known = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]} are"
        raise cursor.error(f"PTX version {major}.{minor} is not known; {known}. Use an nvcc that emits one of those.")
    cursor.at += 1
    cursor.expect(".target")
    target = cursor.name("a target such as sm_90")
    while cursor.take(","):
        cursor.name("an option of the target")
    address_bits = 32
    if cursor.take(".address_size"):
        address_bits = cursor.whole("32 or 64", 64)
        if address_bits not in {32, 64}:
            raise cursor.error(f"an address has 32 or 64 bits, not {address_bits}.")
    return version, target, address_bits


class _ModuleReader:
    """Reads what stands after the header. What it found is in its public fields, as `model.Module` describes them."""

    def __init__(self, cursor: Cursor, places: Places) -> None:
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self._cursor = cursor
        self._places = places

    def read(self) -> None:
        cursor = self._cursor
        while token := cursor.peek():
            cursor.at += 1
            linkage: set[str] = set()
            while token in _LINKAGE:
                linkage.add(token)
                token = cursor.next()
            if token in SPACES:
                for variable in read_variables(cursor, token[1:], is_external=".extern" in linkage):
                    self._add_variable(variable)
            elif token in (".entry", ".func"):
                self._function(is_kernel=token == ".entry")
            elif token == ".section":
                self._skip_section()
            elif token == ".file":
                self._skip_file()
            elif token == ".loc":
                self._places.read(cursor)
            elif token == ".alias":
                alias = cursor.name("a function's name")
                cursor.expect(",")
                self.aliases[alias] = cursor.name("a function's name")
                cursor.expect(";")
            elif token == ".pragma":
                while cursor.next() != ";":
                    continue
            else:
                cursor.at -= 1
                raise cursor.unexpected("a variable or a function")

    def _add_variable(self, variable: Variable) -> None:
        """A definition takes the place of an `.extern` declaration of the same name."""
        known = self.variables.get(variable.name)
        if known is not None and not known.is_external and not variable.is_external:
            raise self._cursor.error(f"the variable `{variable.name}` is declared twice.")
        if known is None or known.is_external:
            self.variables[variable.name] = variable

    def _skip_section(self) -> None:
        cursor = self._cursor
        cursor.next()
        cursor.expect("{")
        while cursor.next() != "}":
            continue

    def _skip_file(self) -> None:
        """`.file 1 "a.cu", 1700000000, 1234`: read beforehand."""
        cursor = self._cursor
        cursor.whole("a file's number")
        if not cursor.next().startswith('"'):
            cursor.at -= 1
            raise cursor.unexpected("a file's name")
        while cursor.take(","):
            cursor.whole("a number")

    def _function(self, *, is_kernel: bool) -> None:
        """`.func (results) name (parameters) directives`, and a body or `;`."""
        cursor = self._cursor
        results = () if is_kernel else read_parameters(cursor)
        name = cursor.name("a function's name")
        row = cursor.row
        parameters = read_parameters(cursor)
        directives = tuple(self._directives())
        if cursor.take(";"):
            declared = Function(name, is_kernel, parameters, results, {}, (), None, directives)
            self.functions.setdefault(name, declared)
            return
        cursor.expect("{")
        body = Body(cursor, self._places, name, (*results, *parameters))
        body.read()
        if name in self.functions and self.functions[name].body is not None:
            raise PtxError(row, f"the function `{name}` is defined twice.")
        self.functions[name] = Function(
            name, is_kernel, parameters, results, body.registers, tuple(body.variables), tuple(body.items), directives,
            body.branch_targets, body.call_targets, body.prototypes,
        )  # fmt: skip

    def _directives(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """`.maxntid 256, 1, 1`, `.noreturn`, with their numbers; `.pragma` and `.attribute` are skipped."""
        cursor = self._cursor
        while cursor.peek().startswith("."):
            token = cursor.next()
            if token == ".pragma":
                while cursor.next().startswith('"') or cursor.peek().startswith('"'):
                    continue
                cursor.take(";")
                continue
            if token == ".attribute":
                skip_parentheses(cursor)
                continue
            numbers: list[int] = []
            if cursor.peek()[:1].isdigit():
                numbers.append(cursor.whole("a number"))
                while cursor.take(","):
                    numbers.append(cursor.whole("a number"))
            yield token[1:], tuple(numbers)


def _check_symbols(module: Module, cursor: Cursor) -> None:
    """Raise PtxError where an instruction, an alias or an initial value names what the text does not declare."""
    common = {*module.variables, *module.functions, *module.aliases}
    for name in (
        *module.aliases.values(),
        *(s.name for v in module.variables.values() for s in (v.relocations or {}).values()),
    ):
        if name not in common:
            raise cursor.error(f"`{name}` is used and not declared; the text seems to be cut off.")
    for function in module.functions.values():
        labels = {item.name for item in function.body or () if isinstance(item, Label)}
        own = {variable.name for variable in (*function.parameters, *function.results, *function.variables)}
        lists = {*function.branch_targets, *function.call_targets, *function.prototypes}
        known = common | own | labels | lists
        for item in function.body or ():
            if isinstance(item, Instruction):
                for name in _symbols(item.operands):
                    if name not in known or (item.opcode == "bra" and name not in labels):
                        what = "label" if item.opcode == "bra" else "name"
                        raise PtxError(item.row, f"the {what} `{name}` is not declared.")
        for name in (name for targets in function.branch_targets.values() for name in targets):
            if name not in labels:
                raise cursor.error(f"`{function.name}` branches to `{name}`, which is not a label of it.")


def _symbols(operands: tuple[Operand, ...]) -> Iterator[str]:
    """The names of all symbols in operands."""
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand.name
        elif isinstance(operand, Address):
            if isinstance(operand.base, Symbol):
                yield operand.base.name
        elif isinstance(operand, Vector):
            yield from _symbols(operand.items)
