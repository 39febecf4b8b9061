"""Whether a candidate leaves all that runs on the GPU as it is: then there is nothing to run and compare."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import decoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_ptx
from warpwright.verify.claim import Climb
from warpwright.verify.host_code import differs_in_checks_alone
from warpwright.verify.lower_rungs import Lower

_LINES = re.compile(r"^\s*(\.loc|\.file|//).*\n|\s*//.*$", re.MULTILINE)
"""What of PTX tells of the text's lines alone, as far as the sections of debugging."""
_OF_FILE = re.compile(r"[0-9a-f]{8}(_\d+_\w+?_cu_)[0-9a-f]{8}")
"""The name of a file's own symbols, with hashes of its text: of unnamed namespaces, and of what headers keep to it."""


def same_device_code(climb: Climb, lower: Lower) -> bool:
    """Whether both compile to the same PTX but for its line numbers, and their host code differs in nothing but in how
    errors are looked at. The PTX is compiled already, to be asked for what depends on where it runs."""
    if not differs_in_checks_alone(*lower.units):
        return False
    claim, (before, after) = climb.claim, lower.compiled
    given, stop = climb.compiled_with, claim.is_cancelled
    own = compile_ptx(claim.original, arch=before.arch, flags=given, is_cancelled=stop)
    other = compile_ptx(claim.candidate, arch=after.arch, flags=given, is_cancelled=stop, reads=climb.reads)
    if not own.ok or not other.ok:
        return False
    if _code(own.text) == _code(other.text):
        return True
    numbered = _with_lines_of(claim.original, claim.candidate)  # __LINE__, as in assert, is a number of the code
    again = compile_ptx(numbered, arch=after.arch, flags=given, is_cancelled=stop, reads=climb.reads)
    return again.ok and _code(own.text) == _code(again.text)


def _with_lines_of(original: Source, candidate: Source) -> Source:
    """The candidate with its lines counted as the original's are, behind each change.

    >>> _with_lines_of(Source("a.cu", b"a\\nb\\n"), Source("a.cu", b"a\\nx\\nb\\n")).data
    b'a\\nx\\n#line 2\\nb\\n'
    """
    old, new = original.data.splitlines(keepends=True), candidate.data.splitlines(keepends=True)
    lines: list[bytes] = []
    for kind, _, end, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        lines += new[start:stop]
        if kind != "equal" and end < len(old):
            lines.append(b"#line %d\n" % (end + 1))
    return candidate.edited([TextEdit(0, len(candidate.data), decoded(b"".join(lines)))])


def _code(ptx: str) -> str:
    """
    >>> _code(".global .b8 _ZN39_INTERNAL_8feb12dd_9_source_cu_a499bdc33endE[1];")
    '.global .b8 _ZN39_INTERNAL__9_source_cu_3endE[1];'
    """
    return _OF_FILE.sub(r"\1", _LINES.sub("", ptx.split("\n\t.section\t.debug", maxsplit=1)[0]))
