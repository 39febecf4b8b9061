"""What Python can call in a torch extension, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

KINDS = ("tensor", "int", "float", "bool", "ints")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a bound function. `kind` is one of KINDS, or "" for a type that a call cannot be made for.

    `default` is the text of its default, None where it has none. `written` says that the schema declares it written.
    """

    name: str
    kind: str
    type: str
    optional: bool = False
    default: str | None = None
    keyword_only: bool = False
    written: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A function that Python can call. `namespace` is that of torch.ops, "" for a function of a PYBIND11_MODULE.

    `function` is its C++ definition, None where the file has none; `line` is that of the definition, else of the
    binding.
    """

    name: str
    namespace: str
    parameters: tuple[Parameter, ...]
    line: int
    function: Node | None = field(default=None, compare=False)

    @property
    def called(self) -> str:
        """How Python calls it.

        >>> Entry("scale", "ours", (), 1).called, Entry("forward", "", (), 1).called
        ('torch.ops.ours.scale', 'forward')
        """
        return f"torch.ops.{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def signature(self) -> tuple[object, ...]:
        """What two versions of a function must share so that one call fits both; names count where they are passed."""
        return self.called, tuple(
            (p.name if p.keyword_only else "", p.kind, p.optional, p.keyword_only) for p in self.parameters
        )
