"""What a rule says of one array in one loop nest is one finding; each place of it keeps its own numbers."""

from __future__ import annotations

from warpwright.editor.actions import QuickFix, actions
from warpwright.editor.analysis import analyse
from warpwright.editor.settings import Settings
from warpwright.facts.analyze import analyze, no_includes
from warpwright.rules.base import Finding
from warpwright.rules.folding import gathered
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source

COLUMNS = b"""\
__global__ void k(float *x, float *y, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  for (int c = 0; c < n; ++c) {
    for (int d = 0; d < 2; ++d)
      x[r * n + c] += y[r * n + c] * x[r * n + c + d];
  }
  x[r * n] = 0;
}
void run(float *x, float *y, int n) { k<<<64, 256>>>(x, y, n); }
"""


def found(text: bytes) -> list[Finding]:
    return run_rules(analyze(Source("a.cu", text)), ["uncoalesced-access"])


def test_one_for_an_array_in_a_loop_nest() -> None:
    every = found(COLUMNS)
    shown = gathered(every)
    assert [(each.array, len(each.places)) for each in shown] == [("y", 1), ("x", 2), ("x", 1)]
    folded = shown[1]
    own = {place.key for place in folded.places}
    assert folded.gain == sum(each.gain or 0.0 for each in every if each.span.key in own)
    alike = [each for each in folded.related if each.alike]
    assert [(each.span.text, each.message) for each in alike] == [
        ("x[r * n + c]", "Uncoalesced load `x[r * n + c]`: 32 sectors/request (ideal 4)")
    ]
    assert folded.message.endswith("\nAlso on `x` at 1 more place in this loop nest.")


def test_two_nests_are_two() -> None:
    text = COLUMNS.replace(b"  x[r * n] = 0;", b"  for (int c = 0; c < n; ++c) x[r * n + c] += 1;")
    assert [each.array for each in gathered(found(text))] == ["y", "x", "x"]


def test_a_comment_silences_its_own_line_alone() -> None:
    text = COLUMNS.replace(b"  x[r * n] = 0;", b"")
    text = text.replace(b"+= y[r * n + c] *", b"+= y[r * n + c] *\n // warpwright: ignore[uncoalesced-access]\n")
    assert [each.span.text for each in gathered(found(text))] == ["x[r * n + c]", "y[r * n + c]"]


def test_its_fix_is_offered_at_each_place() -> None:
    text = COLUMNS.replace(b"int r = blockIdx.x * blockDim.x + threadIdx.x;", b"int r = blockIdx.x * 16 + threadIdx.y;")
    text = text.replace(b"int c = 0; c < n; ++c", b"int c = threadIdx.x; c < n; c += 16").replace(
        b"64, 256", b"64, dim3(16, 16)"
    )
    text = text.replace(b"r * n + c", b"c * n + r")
    analysis = analyse(Source("a.cu", text), no_includes, Settings())
    folded = next(each for each in analysis.findings if len(each.places) > 1)
    offered = [
        {each.title for each in actions(analysis, at.start, at.start) if isinstance(each, QuickFix)}
        for at in folded.places
    ]
    assert offered[0] and all(each == offered[0] for each in offered)
