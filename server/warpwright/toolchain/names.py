"""The names of kernels as the source has them, from the names that the compiler gives them.

Itanium C++ ABI mangling, the part that names a function: `_ZN2ns2tkIdLi7EEEvPT_` is `ns::tk<double, 7>`. A kernel's
parameters are left out. What is outside this subset shows as `...` inside the angle brackets, never as a wrong name.
Source of the grammar: Itanium C++ ABI, section 5.1 "External Names (a.k.a. Mangling)".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from warpwright.missing import Missing
from warpwright.syntax.names import has_arguments, unqualified

T = TypeVar("T")

_BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double",
}  # fmt: skip
_SUFFIX = {"j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}
_QUALIFIER = {"P": "*", "R": "&", "O": "&&", "K": " const"}


class _UnreadError(Exception):
    """The mangled name uses a part of the grammar that is not read here."""


def demangle(mangled: str) -> str:
    """A kernel's qualified name with template arguments and without parameters.

    >>> demangle("_Z9transposePfPKfi")
    'transpose'
    >>> demangle("_ZN2ns2tkIfLin3ENS_1AEEEvPT_PT1_")
    'ns::tk<float, -3, ns::A>'
    >>> demangle("_ZN34_GLOBAL__N__85dc0ed1_4_h_cu__Z1kPf2akEPf")
    '(anonymous namespace)::ak'
    >>> demangle("plain_c_name")
    'plain_c_name'
    """
    if not mangled.startswith("_Z"):
        return mangled
    reader = _Reader(mangled, 2)
    try:
        return reader.name()
    except (_UnreadError, IndexError, ValueError):
        return f"{reader.partial}<...>" if reader.partial else mangled


def instance_of(names: Mapping[str, T], kernel: str, arguments: Sequence[str]) -> T | None:
    """What belongs to the compiled kernel that a launch means; None where several fit.

    `names` are demangled. Where there is more than one instance of a template, the launch's arguments decide.

    >>> instance_of({"sum<float, 128>": 1, "sum<float, 256>": 2, "copy": 3}, "sum", ["float", "256"])
    2
    """
    instances = [name for name in names if unqualified(name) == unqualified(kernel)]
    if len(instances) == 1:
        return names[instances[0]]
    return next((names[name] for name in instances if has_arguments(name, arguments)), None)


def no_instance(kernel: str) -> Missing:
    """What is missing where `instance_of` finds none."""
    reason = f"Which compiled instance of {kernel} is launched is not known."
    return Missing("instance", reason, "Launch it in this file, or write the template arguments in the launch.")


class _Reader:
    """A cursor over one mangled name. `partial` is the name read so far, for when the rest is not understood."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.partial = ""
        self.seen: list[str] = []

    def peek(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.at)

    def take(self, prefix: str) -> bool:
        if self.peek(prefix):
            self.at += len(prefix)
            return True
        return False

    def name(self) -> str:
        if self.take("N"):
            while self.text[self.at] in "rVK":
                self.at += 1
            return self.prefix(stop="E")
        name = self.unqualified()
        self.partial = name
        if self.peek("I"):
            self.seen.append(name)
            name += self.template_arguments()
        return name

    def prefix(self, stop: str) -> str:
        """The parts of a nested name up to `stop`; each longer prefix can be referred back to."""
        name = ""
        while not self.take(stop):
            if self.peek("S") and not self.peek("St"):
                name = self.substitution()
                continue
            if self.take("St"):
                name = "std"
                continue
            if self.peek("I"):
                name += self.template_arguments()
            else:
                part = self.unqualified()
                name = f"{name}::{part}" if name else part
            self.partial = name if not name.endswith(">") else self.partial
            self.seen.append(name)
        if self.seen and self.seen[-1] == name:
            self.seen.pop()  # the whole name is no candidate for reference in its own encoding
        return name

    def unqualified(self) -> str:
        self.take("L")  # internal linkage
        start = self.at
        while self.text[self.at].isdigit():
            self.at += 1
        if start == self.at:
            raise _UnreadError
        length = int(self.text[start : self.at])
        part = self.text[self.at : self.at + length]
        if len(part) != length:
            raise _UnreadError
        self.at += length
        return "(anonymous namespace)" if part.startswith("_GLOBAL__N_") else part

    def template_arguments(self) -> str:
        if not self.take("I"):
            raise _UnreadError
        arguments: list[str] = []
        while not self.take("E"):
            if self.take("J"):  # an argument pack
                while not self.take("E"):
                    arguments.append(self.argument())
            else:
                arguments.append(self.argument())
        return f"<{', '.join(arguments)}>"

    def argument(self) -> str:
        if not self.peek("L"):
            return self.type()
        self.at += 1
        if self.peek("_Z"):
            raise _UnreadError
        code = self.text[self.at]
        kind = self.type()
        end = self.text.index("E", self.at)
        value = self.text[self.at : end].replace("n", "-")
        self.at = end + 1
        if code == "b":
            return "true" if value == "1" else "false"
        if code in "fde" or not value.lstrip("-").isdigit():
            raise _UnreadError
        if code == "i" or code in _SUFFIX:
            return value + _SUFFIX.get(code, "")
        return f"({kind}){value}"

    def type(self) -> str:
        code = self.text[self.at]
        if code in _BUILTIN:
            self.at += 1
            return _BUILTIN[code]
        if code in _QUALIFIER:
            self.at += 1
            result = self.type() + _QUALIFIER[code]
            self.seen.append(result)
            return result
        if code == "S" and not self.peek("St"):
            result = self.substitution()
            if self.peek("I"):
                result += self.template_arguments()
                self.seen.append(result)
            return result
        if code == "N":
            self.at += 1
            result = self.prefix(stop="E")
        elif self.take("St"):
            result = "std::" + self.unqualified()
        elif code.isdigit():
            result = self.unqualified()
        else:
            raise _UnreadError
        self.seen.append(result)
        if self.peek("I"):
            result += self.template_arguments()
            self.seen.append(result)
        return result

    def substitution(self) -> str:
        """`S_` is the first thing seen, `S0_` the second, in base 36."""
        end = self.text.index("_", self.at)
        digits = self.text[self.at + 1 : end]
        self.at = end + 1
        index = int(digits, 36) + 1 if digits else 0
        if index >= len(self.seen):
            raise _UnreadError
        return self.seen[index]
