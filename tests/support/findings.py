"""Rules and rewrites over a piece of CUDA: the only code of their tests that calls the product.

Rules of the group `runs` are judged by a run of each kernel in the emulator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from support.carets import Mark
from support.pages import files_of
from warpwright.cuda.extension.unit import is_script, unit_of
from warpwright.editor.profile.store import placed
from warpwright.emulator.profiling import Wanted, emulated_profile
from warpwright.facts.analyze import analyze
from warpwright.facts.compiled import with_compiled
from warpwright.facts.model import Kernel, Program
from warpwright.facts.profile import Profile
from warpwright.facts.profiled import with_profiles
from warpwright.progress import never_cancelled, silent
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rewrites.registry import find_rewrite, in_place
from warpwright.rules.base import Finding
from warpwright.rules.registry import all_rules, run_rules
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source, Span
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.messages import parse_resources

_COMMENT = re.compile(r"^// ?(?=ptxas info|    \d+ bytes|cubin)", re.MULTILINE)
_LIMITS = re.compile(r"^cubin: (\w+): (?:(\d+) threads, )?(\d+) registers at most$", re.MULTILINE)


@lru_cache(maxsize=256)
def program(text: str | bytes, name: str = "kernel.cu") -> Program:
    """The facts of a text. Comments that hold what `ptxas -v` printed of its kernels, and "cubin: MANGLED: 256 threads,
    64 registers at most", stand for a compile. What several tests ask of one text is analysed once."""
    data = text.encode() if isinstance(text, str) else text
    text = decoded(data)
    said = "\n".join(line for line in _COMMENT.sub("\0", text).splitlines() if line.startswith("\0")).replace("\0", "")
    resources = parse_resources(said)
    for mangled, threads, registers in _LIMITS.findall(said):
        limits = {"max_threads": int(threads) if threads else None, "max_registers": int(registers)}
        resources[mangled] = replace(resources[mangled], **limits)
    return with_compiled(analyze(Source(name, data)), resources.values())


@lru_cache(maxsize=256)
def ran(text: str, name: str = "kernel.cu") -> Program:
    """The same with what a run of each kernel in the emulator finds."""
    read = program(text, name)
    profiles = []
    for kernel in read.defined_kernels:
        made = emulated_profile(read, Wanted(kernel.name, {}, read.assume), silent, never_cancelled)
        assert isinstance(made, Profile), made
        profiles.append(placed(made, read) or made)
    return with_profiles(read, profiles)


def findings(
    text: str, rule: str = "", name: str = "kernel.cu", beside: Mapping[str, str] | None = None
) -> list[Finding]:
    """What one rule finds, or every rule; `beside` are the other files of an extension, by name."""
    if is_script(name) or beside:
        source = Source(name, text.encode())
        others = tuple(Source(other, each.encode()) for other, each in (beside or {}).items())
        read = Program(source, {name: source}, ()) if is_script(name) else analyze(source)
        return run_rules(read, select=(rule,) if rule else (), unit=unit_of(source, others))
    needs_run = rule in {each.name for each in all_rules() if each.group == "runs"}
    return run_rules((ran if needs_run else program)(text, name), select=(rule,) if rule else ())


def in_example(section: str, rule: str) -> list[Finding]:
    """What a rule finds in the files of a page's section, which are one extension where some are Python."""
    files = files_of(section)
    if not any(map(is_script, files)):
        return [finding for text in files.values() for finding in findings(text, rule)]
    rest = {name: {other: each for other, each in files.items() if other != name} for name in files}
    return [finding for name, text in files.items() for finding in findings(text, rule, name, rest[name])]


def marks(found: Iterable[Finding]) -> list[Mark]:
    return [_mark(finding) for finding in found]


def proposed(text: str | bytes, rewrite: str, name: str = "kernel.cu") -> Rewrite | Declined:
    """The rewrite at the best place of the first kernel that it can be applied to, or the first kernel's refusal; as if
    the text were a whole program."""
    results = [_in_place(rewrite, kernel, None) for kernel in program(text, name).kernels]
    return next((result for result in results if isinstance(result, Rewrite)), results[0])


def fixed(text: str, finding: Finding) -> Rewrite | Declined:
    """The first fix of a finding in `text`, proposed where the finding is."""
    assert finding.fixes, f"{finding.rule} offers no fix"
    kernel = program(text).kernel(finding.kernel)
    assert kernel is not None
    return _in_place(finding.fixes[0].rewrite, kernel, finding.span)


def _in_place(rewrite: str, kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    kind = find_rewrite(rewrite)
    assert kind is not None
    return in_place(kind, kernel, at)


def lost_comments(before: Source, after: Source) -> list[str]:
    """The comments of a text whose words stand in those of another less often."""
    texts = [
        [" ".join(source.node_text(n).split()) for n in descendants(source.root, "comment")]
        for source in (before, after)
    ]
    own, others = (f" {'  '.join(words)} " for words in texts)
    return [words for words in texts[0] if others.count(f" {words} ") < own.count(f" {words} ")]


def compile_errors(text: str) -> list[str]:
    """What nvcc has against a text, as "file:line: message"; empty where it compiles."""
    compiled = compile_cubin(Source("results.cu", text.encode()))
    if compiled.ok:
        return []
    return [f"{m.path}:{m.line}: {m.text}" for m in compiled.messages] or [compiled.reason]


def _mark(finding: Finding) -> Mark:
    span = finding.span
    line = span.line
    end = span.end_column if span.end_line == line else len(span.source.line_text(line)) + 1
    own = any(rule.name == finding.rule and rule.severity == finding.severity for rule in all_rules())
    name = finding.rule if own else f"{finding.rule} ({finding.severity})"
    return Mark(line, span.column, max(1, end - span.column), f"{name}: {' '.join(finding.message.splitlines())}")
