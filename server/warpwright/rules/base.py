"""What a rule is.

A rule is a module in a group's folder. Its name is the file's (`bank_conflict.py` is `bank-conflict`), its docstring
is its page, and it has

    severity = Severity.WARNING

    def check(kernel: Kernel) -> Iterator[Finding]: ...

or, where it judges host code or a torch extension and not a kernel,

    def check_unit(unit: Unit) -> Iterator[Finding]: ...

and where one finding for a file says it all

    def together(findings: Sequence[Finding]) -> Finding: ...

A message is what is wrong, in one line that starts with what it is about, and behind a line end what to do.
Rules are found by folder; there is no list to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from warpwright.cuda.extension.unit import Unit
from warpwright.facts.model import Kernel
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Span


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class Fix:
    """A rewrite that cures a finding, proposed at the finding's span; `safe` means: keeps the results bit for bit."""

    rewrite: str
    title: str
    safe: bool = True


@dataclass(frozen=True, slots=True)
class Cure:
    """Edits of the finding's file that are certain to cure it and need no proof: they change nothing that is computed
    where it was right before."""

    title: str
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that explains a finding, such as the launch that fixes the block's shape. `alike`: one where the
    rule finds the same."""

    span: Span
    message: str
    alike: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect at one place. A rule fills what it knows; `run_rules` sets `rule`, and `severity` unless given.

    `gain` is the share of the kernel's time that an ideal cure would save, None where nothing tells it. `array` is what
    is accessed: what a rule says of one in one loop nest has one cause (`folding`).
    """

    span: Span
    message: str
    evidence: Mapping[str, object]
    fixes: tuple[Fix, ...] = ()
    related: tuple[Related, ...] = ()
    gain: float | None = None
    severity: Severity | None = None
    rule: str = ""
    kernel: str = ""
    array: str = ""
    cure: Cure | None = None

    @property
    def places(self) -> tuple[Span, ...]:
        """Where it shows."""
        return (self.span, *(each.span for each in self.related if each.alike))

    @property
    def headline(self) -> str:
        """What is wrong, without the advice."""
        return self.message.split("\n", 1)[0]


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    group: str
    doc: str
    severity: Severity
    check: Callable[[Kernel], Iterable[Finding]] | None
    together: Callable[[Sequence[Finding]], Finding] | None = None
    check_unit: Callable[[Unit], Iterable[Finding]] | None = None

    @property
    def summary(self) -> str:
        return self.doc.strip().splitlines()[0]
