"""What is said of one trace, as data: for a terminal, a page, JSON and an editor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.timeline.host import Cause
from warpwright.timeline.kernels import KernelCost, base_name, dearest_kernels, kernel_sources
from warpwright.timeline.lines import LineCost, line_costs
from warpwright.timeline.model import Place, Trace, Work
from warpwright.timeline.nsys_report import read_nsys_report
from warpwright.timeline.places import text_at
from warpwright.timeline.proposals import Proposal, proposals
from warpwright.timeline.shares import Shared, shared
from warpwright.timeline.torch_trace import read_torch_trace


@dataclass(frozen=True, slots=True)
class Report:
    """`kernels` are those of the window, the most time first; `lines` those of the user's, the dearest first."""

    trace: Trace
    shared: Shared
    lines: tuple[LineCost, ...]
    kernels: tuple[KernelCost, ...]
    proposals: tuple[Proposal, ...]

    @property
    def has_gpu(self) -> bool:
        return bool(self.trace.activities)


def read_trace(path: Path) -> Trace:
    """A trace from a file: Nsight Systems' by its suffix, any other torch.profiler's. Raises TraceError."""
    return read_nsys_report(path) if path.suffix in (".nsys-rep", ".sqlite", ".db") else read_torch_trace(path)


def report_of(trace: Trace, folder: Path) -> Report:
    """All that is said of a trace; kernels' sources are looked for in `folder`."""
    whole = shared(trace)
    lines = line_costs(trace, whole)
    names = {base_name(each.name) for each in trace.activities if each.kind is Work.KERNEL}
    kernels = dearest_kernels(trace, (whole.start, whole.end), kernel_sources(folder, names))
    return Report(trace, whole, tuple(lines), tuple(kernels), tuple(proposals(trace, whole, lines)))


def report_json(report: Report) -> dict[str, Any]:
    """The contract of `warpwright trace --format json`. Times are in microseconds."""
    whole = report.shared
    return {
        "version": 1,
        "trace": report.trace.made_by,
        "devices": list(report.trace.devices),
        "wall_us": whole.wall / 1e3,
        "recording_us": (whole.wall - whole.own) / 1e3,
        "bound_by": str(whole.bound),
        "shares": {str(cause): share for cause, share in whole.shares().items()},
        "lines": [line_json(each) for each in report.lines],
        "kernels": [
            {
                "name": each.name,
                "launches": each.count,
                "time_us": each.time / 1e3,
                "file": each.file,
                "line": each.line,
            }
            for each in report.kernels
        ],
        "proposals": [proposal_json(each) for each in report.proposals],
        "notes": list(report.trace.notes),
    }


def line_json(cost: LineCost) -> dict[str, Any]:
    return {
        **_place(cost.place),
        "text": text_at(cost.place),
        "launches": cost.launches,
        "gpu_us": cost.gpu / 1e3,
        "waits": dict(cost.waits),
        "waited_us": cost.waited / 1e3,
        "pageable_copies": cost.pageable,
        "pageable_bytes": cost.pageable_bytes,
        "idle_us": {str(cause): time / 1e3 for cause, time in _largest(cost.idle).items()},
    }


def proposal_json(proposal: Proposal) -> dict[str, Any]:
    return {
        "kind": proposal.kind,
        "text": proposal.text,
        "places": [_place(each) for each in proposal.places],
        "saved_us": proposal.saved / 1e3,
        "gain": proposal.gain,
        "basis": proposal.basis,
    }


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "exact": place.exact}


def _largest(idle: Mapping[Cause, int]) -> dict[Cause, int]:
    return dict(sorted(idle.items(), key=lambda item: -item[1]))
