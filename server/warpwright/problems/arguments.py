"""The arguments of a launch: what each parameter is, and the values of those that are passed by value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from tree_sitter import Node

from warpwright.cuda.sites import LaunchText
from warpwright.facts.model import Kernel, Parameter, Program
from warpwright.facts.types import CType
from warpwright.problems.deduced import (
    defines_structure,
    host_template_value,
    is_first_parameter,
    passed_type,
    returned_list,
    template_parameters,
)
from warpwright.problems.expressions import Expression, ExpressionError, Name, Number, names, parse, show, substitute
from warpwright.problems.guesses import Guess
from warpwright.problems.host import HostExpressions, Way, symbol_name
from warpwright.problems.kernel_text import KernelText, filled_type, scalar_parts, template_arguments_at
from warpwright.problems.lacking import LackingError
from warpwright.problems.model import Argument, Array, Part, Pointer, Scalar, Struct
from warpwright.problems.overrides import Overrides
from warpwright.problems.sites import alias_target, device_identifiers
from warpwright.problems.types import element_type
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import enclosing, uncommented

_TEXTURES = re.compile(r"\bcuda(Texture|Surface)Object_t\b")
_ADDRESSES = ("pointer", "other", "void")


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """An array that is passed: `to` is what the pointer points to, `passed` the host code's text for it."""

    name: str
    to: CType
    is_const: bool
    passed: str
    declared: str


class ArgumentReader:
    """Reads the arguments in the problem's symbols. `notes` and
    `guesses` collect what was assumed; `text` is set once the kernel's
    own text has been read with `template_types`."""

    text: KernelText

    def __init__(
        self,
        program: Program,
        kernel: Kernel,
        site: LaunchText | None,
        said: Overrides,
        directives: Overrides,
        notes: list[str],
        guesses: list[Guess],
        way: Way | None = None,
    ) -> None:
        self.program = program
        self.kernel = kernel
        self.site = site
        self.said = said
        self.directives = directives
        self.notes = notes
        self.guesses = guesses
        self.way = way
        self.reader = self._host_reader()
        self.passed = self._passed()
        self.renamed: dict[str, Expression] = {}
        self.scalar_values: dict[str, Scalar] = {}
        self.structs: dict[str, list[tuple[int, str]]] = {}

    def _host_reader(self) -> HostExpressions:
        if self.site is None:
            return HostExpressions(self.program, self.kernel.source, None)
        device = device_identifiers(self.program)
        passed = {self.site.source.plain_text(a) for a in self.site.arguments if a.type == "identifier"}
        function = enclosing(self.site.call, "function_definition", "lambda_expression")
        return HostExpressions(self.program, self.site.source, function, frozenset(passed - device), way=self.way)

    def _passed(self) -> dict[str, Node]:
        if self.site is None:
            return {}
        if len(self.site.arguments) > len(self.kernel.parameters):
            raise LackingError(
                f"its launch passes {len(self.site.arguments)} arguments and it takes {len(self.kernel.parameters)}"
            )
        return {p.name: a for p, a in zip(self.kernel.parameters, self.site.arguments, strict=False)}

    # Types ----------------------------------------------------------------------------------------------------------

    def template_types(self) -> dict[str, str]:
        """The kernel's template parameters by the launch's text: explicit arguments, or the types of what is passed."""
        if self.kernel.node is None:
            return {}
        found = {n: self._aliased(self._host_template_value(v)) for n, v in self._template_values().items()}
        for name in template_parameters(self.kernel.source, self.kernel.node):
            for parameter in self.kernel.parameters:
                if name not in found and re.search(rf"\b{re.escape(name)}\b", parameter.type):
                    declared = self._declared(self.passed.get(parameter.name))
                    if declared is not None and self._is_type(declared):
                        found[name] = declared
        return found

    def _is_type(self, name: str) -> bool:
        return element_type(name) is not None or any(
            defines_structure(source, name) for source in self.program.sources.values()
        )

    def _declared(self, passed: Node | None) -> str | None:
        """The element type that the host code declares for what is passed."""
        if self.site is None or passed is None:
            return None
        declared = passed_type(self.site.source, self.reader.function, passed)
        return None if declared is None else self._aliased(self._host_template_value(self._aliased(declared)))

    def _type_name(self, declared: str, kind: CType) -> str | None:
        """What an element is filled as: by its spelling, which tells bfloat16 from half, else by its layout."""
        plain = re.sub(r"\b(const|volatile|__restrict__|__restrict|struct)\b|[*&]", " ", declared)
        plain = self._aliased(" ".join(plain.split()))
        values = self._template_values()
        if plain in values:
            plain = self._aliased(self._host_template_value(values[plain]))
        spelled = element_type(plain)
        if spelled is not None and (kind.size in (None, spelled.bytes) or kind.assumed):
            return plain
        return filled_type(kind)

    def _aliased(self, name: str) -> str:
        """The type behind a typedef, a `using` or a macro of that name; the name itself where there is none."""
        for _ in range(4):
            if element_type(name) is not None:
                return name
            target = alias_target(self.program, name)
            if target is None:
                return name
            name = target
        return name

    def _host_template_value(self, argument: str) -> str:
        """A launch's template argument; where it is the host function's own parameter, what that is called with."""
        function = enclosing(self.site.call, "function_definition") if self.site is not None else None
        if self.site is None or function is None:
            return argument
        return host_template_value(self.program, self.site.source, function, argument) or argument

    def _template_values(self) -> dict[str, str]:
        """The kernel's template parameters with the launch's explicit arguments."""
        if self.kernel.node is None or self.site is None:
            return {}
        listed = template_parameters(self.kernel.source, self.kernel.node)
        return dict(zip(listed, self.site.instance, strict=False))

    def instance(self) -> tuple[str, ...]:
        """The launch's template arguments: those that are written, then those that what is passed tells, in order."""
        if self.site is None or self.kernel.node is None:
            return ()
        bound = template_arguments_at(self.program, self.kernel, self.site.call.start_byte)
        found = [
            str(value) if isinstance(value, int) else self._aliased(self._host_template_value(written))
            for written, value in zip_longest(self.site.instance, bound[: len(self.site.instance)])
        ]
        types = self.template_types()
        for name in template_parameters(self.kernel.source, self.kernel.node)[len(found) :]:
            if name not in types:
                break
            found.append(types[name])
        return tuple(found)

    def element(self, pointer: PointerArgument) -> str:
        """The element type of an array. Raises LackingError for one that cannot be filled in."""
        found = self._type_name(pointer.declared, pointer.to)
        if found is None and pointer.to.kind == "array" and pointer.to.to is not None:
            inner = pointer.to
            while inner.kind == "array" and inner.to is not None:
                inner = inner.to
            found = filled_type(inner)
        if found is None and pointer.to.kind == "void":
            found = "unsigned char"
        if found is None:
            raise self._not_filled(pointer.name, pointer.declared, pointer.to)
        return found

    def _not_filled(self, name: str, declared: str, kind: CType) -> LackingError:
        if kind.kind == "pointer" or any(part.kind == "pointer" for _, _, part in scalar_parts(kind)):
            return LackingError(f"`{name}` holds addresses, which cannot be filled in")
        for parameter in self.text.open_types if hasattr(self, "text") else ():
            if re.search(rf"\b{re.escape(parameter)}\b", declared):
                return LackingError(f"`{name}` is of the type `{parameter}`, which no launch found gives")
        return LackingError(f"`{name}` is declared as `{declared}`, which cannot be filled in")

    # Values ---------------------------------------------------------------------------------------------------------

    def scalars(self) -> None:
        """Read every argument that is passed by value into `scalar_values` and `structs`.

        Raises LackingError for one that cannot be filled in.
        """
        for parameter in self.kernel.parameters:
            kind = self.text.types.get(parameter.name)
            if kind is None:
                raise LackingError(f"`{parameter.name}` is declared as `{parameter.type}`, which cannot be filled in")
            if _TEXTURES.search(parameter.type):
                raise LackingError(f"`{parameter.name}` is a texture or surface, which cannot be filled in")
            if parameter.is_pointer:
                continue
            if kind.kind == "struct":
                self._struct(parameter, kind)
            else:
                type_name = self._scalar_type(parameter.name, self._declared_type(parameter), kind)
                self._scalar(parameter.name, type_name, self._resolved(self.passed.get(parameter.name)))
        for name, scalar in self.scalar_values.items():
            tree = self.renamed_in(parse(scalar.value))
            small = {n: Number(v) for n in names(tree) if isinstance(v := self.reader.defaults.get(n), int) and v < 1}
            self.scalar_values[name] = Scalar(name, scalar.type, show(substitute(tree, small)), scalar.origin)

    @staticmethod
    def _declared_type(parameter: Parameter) -> str:
        return re.sub(rf"\b{re.escape(parameter.name)}\b[^*&]*$", "", parameter.type)  # `float x[]` is `float`

    def _scalar_type(self, name: str, declared: str, kind: CType) -> str:
        type_name = self._type_name(declared, kind)
        element = element_type(type_name) if type_name is not None else None
        if element is None or element.components > 1:
            raise self._not_filled(name, declared.strip(), kind)
        return element.scalar

    def _struct(self, parameter: Parameter, kind: CType) -> None:
        """The numbers of a struct, each found by its member's name in the host code or its place in a list."""
        if kind.size is None:
            raise LackingError(f"`{parameter.name}` is declared as `{parameter.type}`, which cannot be filled in")
        passed = self.passed.get(parameter.name)
        base = re.sub(r"\s", "", self.site.source.plain_text(passed)) if self.site is not None and passed else ""
        members: list[tuple[int, str]] = []
        for path, offset, part in scalar_parts(kind):
            name = f"{parameter.name}{path}"
            members.append((offset, name))
            if part.kind == "pointer":
                continue
            if part.kind in _ADDRESSES or part.size is None:
                raise LackingError(f"`{name}` is of the type `{part.name}`, which cannot be filled in")
            value = self._named(f"{base}{path}") if re.fullmatch(r"\w+", base) else None
            listed = self._listed(passed, kind, path)
            if listed is not None and (value is None or isinstance(value, Name)):
                value = self._resolved(listed)
            value = value or self._count_of_viewed(passed, kind, path)
            self._scalar(name, self._scalar_type(name, part.name, part), value)
        self.structs[parameter.name] = members

    def _listed(self, passed: Node | None, kind: CType, path: str) -> Node | None:
        """What stands between braces for the member `.a.b` of a struct that is passed, or that the variable is declared
        as that is passed; None where nothing does."""
        value = passed
        if passed is not None and passed.type == "identifier" and self.reader.function is not None:
            name = self.reader.text(passed)
            named = (v for d, v in self.reader.declarations(self.reader.function) if self.reader.text(d) == name)
            value = next(named, None)
        for step in path[1:].split("."):
            listed = self._parts(value, kind)
            place = _place_of(kind, step)
            if place is None or len(listed) > len(kind.fields) or place >= len(listed):
                return None
            value, kind = listed[place], kind.fields[place][2]
        return value

    def _parts(self, value: Node | None, kind: CType) -> list[Node]:
        """What stands between the braces or parentheses of a struct's value; nothing for a call of a function
        other than `make_float2` and its kin, whose parameters are not the struct's members."""
        if value is None or value.type in ("initializer_list", "argument_list"):
            return uncommented(value)
        called = value.child_by_field_name("function")
        if called is not None and unqualified(self.reader.text(called)).removeprefix("make_") != unqualified(kind.name):
            return []
        return uncommented(value.child_by_field_name("arguments") or value.child_by_field_name("value"))

    def _viewed(self, passed: Node | None, kind: CType, path: str) -> tuple[str, Node] | None:
        """For a member of the struct that `owner.view()` gives, between braces: the owner's name, and what stands
        there; None for another."""
        *outer, last = path[1:].split(".")
        call = self._listed(passed, kind, "." + ".".join(outer)) if outer else passed
        called = call.child_by_field_name("function") if call is not None else None
        if called is None or called.type != "field_expression":
            return None
        for step in outer:
            kind = next(inner for member, _, inner in kind.fields if member == step)
        owner, method = called.child_by_field_name("argument"), called.child_by_field_name("field")
        place = _place_of(kind, last)
        returned = returned_list(self.program, self.reader.text(method)) if method is not None else []
        if owner is None or place is None or place >= len(returned):
            return None
        return self.reader.text(owner), returned[place]

    def _count_of_viewed(self, passed: Node | None, kind: CType, path: str) -> Expression | None:
        """The count that the owner was made with, of a member that its constructor takes from its first parameter."""
        viewed = self._viewed(passed, kind, path)
        if viewed is None or self.reader.function is None or not is_first_parameter(viewed[1]):
            return None
        for declarator, value in self.reader.declarations(self.reader.function):
            if self.reader.text(declarator) == viewed[0] and value is not None:
                try:
                    return self.reader.container_count(value)
                except ExpressionError:
                    return None
        return None

    def _scalar(self, name: str, type_name: str, expression: Expression | None) -> None:
        for overrides in (self.said, self.directives):
            if name in overrides.scalars:
                self.scalar_values[name] = Scalar(name, type_name, overrides.scalars[name], overrides.origin)
                return
        is_float, symbol = "float" in type_name, symbol_name(name)
        if isinstance(expression, Name) and not is_float and expression.name not in self.renamed:
            self.renamed[expression.name] = Name(symbol)
            if expression.name in self.reader.defaults:
                self.reader.defaults.setdefault(symbol, self.reader.defaults[expression.name])
        if expression is not None:
            self.scalar_values[name] = Scalar(name, type_name, show(expression), "launch")
        elif type_name == "bool" or "[" in name:
            self.notes.append(f"nothing says what {name} is; 1 was passed")
            self.scalar_values[name] = Scalar(name, type_name, "1", "inferred")
        else:
            self.scalar_values[name] = Scalar(name, type_name, "nan_" if is_float else symbol, "inferred")

    def _resolved(self, node: Node | None) -> Expression | None:
        if node is None:
            return None
        try:
            return self.reader.resolve(node)
        except ExpressionError:
            return None

    def _named(self, path: str) -> Expression | None:
        try:
            return self.reader.resolve_name(path)
        except ExpressionError:
            return None

    def renamed_in(self, expression: Expression) -> Expression:
        """With host variables named as the parameter that they are passed for."""
        aliases = {caller: Name(own) for caller, own in self.reader.called_with.items()}
        return substitute(substitute(expression, {**aliases, **self.renamed}), self.renamed)

    def settled(self, expression: Expression, symbols: tuple[str, ...]) -> Expression:
        """In the problem's symbols: host variables by their parameter's name, all others by the value they have.

        Raises ExpressionError for a host variable that has none.
        """
        renamed = self.renamed_in(expression)
        others = {n: Number(v) for n, v in self.reader.defaults.items() if n not in symbols}
        settled = substitute(renamed, others)
        known = {*symbols, *(f"{dim}.{axis}" for dim in ("gridDim", "blockDim") for axis in "xyz")}
        if unknown := sorted(names(settled) - known):
            raise ExpressionError(f"`{unknown[0]}` has no value that is known")
        return settled

    def whole_numbers(self) -> Mapping[str, Expression]:
        """The whole-number arguments by parameter or member: a number, a symbol, or `@name` for an expression."""
        values = {n: parse(s.value) for n, s in self.scalar_values.items() if "float" not in s.type}
        return {n: v if isinstance(v, (Name, Number)) else Name(f"@{n}") for n, v in values.items()}

    # Together -------------------------------------------------------------------------------------------------------

    def pointers(self) -> Iterator[PointerArgument]:
        """Every array that is passed, those that are members of a struct included."""
        for parameter in self.kernel.parameters:
            kind = self.text.types[parameter.name]
            passed = self.passed.get(parameter.name)
            text = self.site.source.plain_text(passed) if self.site is not None and passed is not None else ""
            if parameter.is_pointer and kind.to is not None:
                yield PointerArgument(
                    parameter.name, kind.to, parameter.is_const, text, self._declared_type(parameter).strip()
                )
            elif parameter.name in self.structs:
                for path, _, part in scalar_parts(kind):
                    if part.kind == "pointer" and part.to is not None:
                        listed = self._listed(passed, kind, path)
                        whole = f"{text.strip()}{path}" if re.fullmatch(r"\s*\w+\s*", text) else ""
                        whole = self.reader.text(listed) if listed is not None else whole
                        viewed = self._viewed(passed, kind, path)
                        whole = f"{viewed[0]}.data()" if viewed is not None else whole
                        yield PointerArgument(f"{parameter.name}{path}", part.to, False, whole, part.to.name)

    def filled(self, arrays: Mapping[str, Array | Pointer]) -> tuple[Argument, ...]:
        """The arguments in the order of the parameters."""
        every: dict[str, Part] = {**self.scalar_values, **arrays}
        out: list[Argument] = []
        for parameter in self.kernel.parameters:
            kind = self.text.types[parameter.name]
            members = self.structs.get(parameter.name)
            if members is None:
                out.append(every[parameter.name])
            else:
                parts = tuple((offset, every[name]) for offset, name in members)
                out.append(Struct(parameter.name, kind.name, kind.size or 0, parts))
        return tuple(out)


def _place_of(kind: CType, member: str) -> int | None:
    """The place of a member in its struct."""
    return next((place for place, (name, _, _) in enumerate(kind.fields) if name == member), None)
