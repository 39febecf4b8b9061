"""The page of a kernel's results: what is plotted was measured or predicted, and neither stands for the other."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from warpwright.editor.profile.view import view_of
from warpwright.editor.results.candidates import MOST_CANDIDATES, candidates_of
from warpwright.editor.results.page import results_html
from warpwright.editor.results.plot import plot
from warpwright.facts.analyze import analyze
from warpwright.facts.profile import Backend, InstructionSet, Line, Profile, ProfiledLaunch, text_hash
from warpwright.syntax.source import Source
from warpwright.verify.history import Run
from warpwright.verify.report import Prediction, Report, Speed, Status

FASTER = Report(
    Status.FASTER, backend="cuda:NVIDIA H200", kernel="k", speed=(Speed({"n": 4096}, 200.0, 100.0, 2.0, (1.9, 2.1)),)
)
PREDICTED = Report(Status.CORRECT, backend="emulator", kernel="k", predicted=Prediction(4.0, "H200"))
WRONG = Report(Status.WRONG, backend="emulator", kernel="k", predicted=Prediction(8.0, "H200"))
TEXT = '__global__ void k(float* a) {\n    a[threadIdx.x] = 0; // </style><script>alert("<b>")</script>\n}\n'


def run(report: Report, at: float = 0.0, what: str = "+1 -1 lines") -> Run:
    speedup = report.speed[0].speedup if report.speed else None
    status, badge = str(report.status), report.badge()
    return Run(at, "/w/a.cu", "k", what, "speed", report.backend, status, badge, speedup, report.to_json())


def test_candidates_are_numbered_from_the_oldest_and_only_the_newest_are_kept() -> None:
    many = [run(PREDICTED, at=float(at)) for at in range(MOST_CANDIDATES + 5)]
    shown = candidates_of(reversed(many))
    assert [each.number for each in shown] == list(range(1, MOST_CANDIDATES + 1))
    assert shown[-1].at == MOST_CANDIDATES + 4


def test_a_measurement_has_its_interval_and_a_prediction_is_none() -> None:
    measured, predicted = candidates_of([run(FASTER), run(PREDICTED, at=1.0)])
    assert (measured.speedup, measured.ci95, measured.predicted) == (2.0, (1.9, 2.1), None)
    assert (predicted.speedup, predicted.ci95, predicted.predicted) == (None, None, 4.0)


def drawn(report: Report) -> list[str]:
    found = re.findall(r'class="(measured|predicted|interval|sign)"', plot(candidates_of([run(report)])))
    return [str(each) for each in found]


@pytest.mark.parametrize(
    ("report", "marks"),
    [(FASTER, ["interval", "measured"]), (PREDICTED, ["predicted"]), (WRONG, ["sign"])],
)
def test_each_kind_of_verdict_is_drawn_in_its_own_way(report: Report, marks: list[str]) -> None:
    assert drawn(report) == marks


def test_twice_as_fast_is_as_far_up_as_twice_as_slow_is_down() -> None:
    speeds = [Speed({}, 100.0, 100.0 / s, s, (s, s)) for s in (0.5, 1.0, 2.0)]
    runs = [run(Report(Status.FASTER, backend="cuda:G", speed=(s,)), float(at)) for at, s in enumerate(speeds)]
    low, middle, high = (
        float(y) for y in re.findall(r'class="measured" cx="[^"]+" cy="([^"]+)"', plot(candidates_of(runs)))
    )
    assert low - middle == pytest.approx(middle - high)
    assert high < middle


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Elements()
    parser.feed(page)
    return parser.found


def test_the_page_has_one_style_one_script_and_nothing_that_a_strict_policy_forbids() -> None:
    source = Source("/w/a.cu", TEXT.encode())
    profile = Profile(
        "k",
        ProfiledLaunch((1, 1, 1), (32, 1, 1)),
        Backend.EMULATOR,
        {"/w/a.cu": text_hash(source.data)},
        (Line("/w/a.cu", 2, InstructionSet.PTX, 10, 320),),
    )
    view = view_of(profile, analyze(source, lambda path, name: None))
    page = results_html("k", view, candidates_of([run(FASTER), run(WRONG, 1.0, "<script>alert(1)</script>")]))
    found = elements(page)
    assert [tag for tag, _ in found].count("script") == [tag for tag, _ in found].count("style") == 1
    names = {name for _, attributes in found for name in attributes}
    assert not [name for name in names if name == "style" or name.startswith("on") or name in ("src", "srcset")]
    assert [attributes["data-path"] for _, attributes in found if "data-path" in attributes] == ["/w/a.cu"]
    assert [a["data-line"] for tag, a in found if tag == "tr" and "data-line" in a] == ["1", "2", "3"]


def test_the_totals_of_the_last_other_version_stand_beside_those_that_differ() -> None:
    program = analyze(Source("a.cu", TEXT.encode()), lambda path, name: None)
    launch, texts = ProfiledLaunch((1, 1, 1), (32, 1, 1)), {"a.cu": text_hash(TEXT.encode())}
    now, before = (
        Profile("k", launch, Backend.EMULATOR, texts, (Line("a.cu", 2, InstructionSet.PTX, n, 32),)) for n in (4, 9)
    )
    assert "executed by warps; last other version: 9<" in results_html("k", view_of(now, program), [], before)
    assert "last other version" not in results_html("k", view_of(now, program), [], now)


def test_a_kernel_of_which_nothing_is_known_says_what_to_do() -> None:
    page = results_html("k", None, ())
    assert "run Profile" in page
    assert "run Optimize" in page
    assert "<svg" not in page
