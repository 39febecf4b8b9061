"""What nvcc, its front end, the host's preprocessor and ptxas print, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from warpwright.toolchain.names import demangle


@dataclass(frozen=True, slots=True)
class CompilerMessage:
    """One diagnostic. `line` is 1-based, 0 where the compiler gave no place; `severity` is "error" or "warning"."""

    path: str
    line: int
    severity: str
    text: str


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What one kernel takes, as ptxas reports it. `constant_bytes` is its parameter bank and the constants it reads.

    Registers and the stack are per thread, shared memory (static) and barriers per block.
    """

    name: str
    mangled_name: str
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    shared_bytes: int
    constant_bytes: int
    barriers: int


_FRONT_END = re.compile(
    r"^(?P<path>[^\n]+?)\((?P<line>\d+)\): (?P<kind>(?:catastrophic |internal |command-line )?error|warning)"
    r"(?: #(?P<number>\d+)(?:-D)?)?: (?P<text>.*)$"
)
_END_OF_SOURCE = re.compile(r"^At end of source: (?P<kind>error|warning)(?: #(?P<number>\d+)(?:-D)?)?: (?P<text>.*)$")
_PREPROCESSOR = re.compile(
    r"^(?P<path>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?P<kind>fatal error|error|warning): (?P<text>.*)$"
)
_DRIVER = re.compile(r"^(?P<tool>nvcc|ptxas|cicc|nvlink)\b[^;\n]*?(?P<kind>fatal|error|warning) *: (?P<text>.*)$")
_PTX_PLACE = re.compile(r"^ptxas (?P<path>.+), line (?P<line>\d+); (?P<kind>fatal|error|warning) *: (?P<text>.*)$")


def parse_messages(output: str, path: str) -> tuple[CompilerMessage, ...]:
    """The diagnostics in a compiler's output, each once, in the order printed.

    What has no place in the source (ptxas, the driver) is filed under `path`, line 0.

    >>> parse_messages('a.cu(3): error: identifier "x" is undefined\\n      x = 1;\\n      ^\\n', "a.cu")
    (CompilerMessage(path='a.cu', line=3, severity='error', text='identifier "x" is undefined'),)
    >>> parse_messages("ptxas error   : Entry function '_Z1kPf' uses too much shared data", "a.cu")[0].text
    "ptxas: Entry function 'k' uses too much shared data"
    >>> parse_messages('At end of source: error: expected a "}"', "a.cu")[0].text
    'at the end of the source: expected a "}"'
    """
    messages: dict[CompilerMessage, None] = {}
    for line in output.splitlines():
        if match := _FRONT_END.match(line):
            number = match["number"]
            text = f"{match['text']} (#{number})" if number else match["text"]
            messages[CompilerMessage(match["path"], int(match["line"]), _severity(match["kind"]), text)] = None
        elif match := _END_OF_SOURCE.match(line):
            text = f"at the end of the source: {match['text']}"
            messages[CompilerMessage(path, 0, _severity(match["kind"]), text)] = None
        elif match := _PREPROCESSOR.match(line):
            message = CompilerMessage(match["path"], int(match["line"]), _severity(match["kind"]), match["text"])
            messages[message] = None
        elif match := _PTX_PLACE.match(line):
            text = f"ptxas: {match['text']} (line {match['line']} of the PTX)"
            messages[CompilerMessage(path, 0, _severity(match["kind"]), text)] = None
        elif match := _DRIVER.match(line):
            text = re.sub(r"'(_Z\w+)'", lambda m: f"'{demangle(m[1])}'", match["text"])
            messages[CompilerMessage(path, 0, _severity(match["kind"]), f"{match['tool']}: {text}")] = None
    return tuple(messages)


def _severity(kind: str) -> str:
    return "warning" if kind == "warning" else "error"


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for '?([^'\s]+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")


def parse_resources(output: str) -> dict[str, KernelResources]:
    """What `ptxas -v` says of each kernel, by mangled name.

    >>> text = '''ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'
    ... ptxas info    : Function properties for _Z1kPf
    ...     800 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
    ... ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem, 536 bytes cmem[0], 8 bytes cmem[2]'''
    >>> r = parse_resources(text)["_Z1kPf"]
    >>> r.name, r.registers, r.spill_store_bytes, r.spill_load_bytes, r.stack_bytes, r.shared_bytes, r.constant_bytes
    ('k', 40, 4, 8, 800, 256, 544)
    >>> r.barriers
    1
    """
    resources: dict[str, KernelResources] = {}
    entry = properties_of = ""
    for line in output.splitlines():
        if match := _ENTRY.search(line):
            entry = match[1]
            resources[entry] = KernelResources(demangle(entry), entry, 0, 0, 0, 0, 0, 0, 0)
        elif match := _PROPERTIES.search(line):
            properties_of = match[1]
        elif (match := _STACK.search(line)) and properties_of == entry and entry in resources:
            stack, stores, loads = (int(g) for g in match.groups())
            resources[entry] = replace(
                resources[entry], stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads
            )
        elif (match := _USED.search(line)) and entry in resources:
            rest = match[2]
            resources[entry] = replace(
                resources[entry],
                registers=int(match[1]),
                barriers=_sum(r"used (\d+) barriers", rest),
                shared_bytes=_sum(r"(\d+) bytes smem", rest),
                constant_bytes=_sum(r"(\d+) bytes cmem\[\d+\]", rest),
            )
    return resources


def _sum(pattern: str, text: str) -> int:
    return sum(int(n) for n in re.findall(pattern, text))
