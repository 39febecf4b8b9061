"""What a search found, for people: the plan in the model's words, each candidate with its verdict, the best as a diff."""

from __future__ import annotations

from collections.abc import Iterator

import click

from warpwright.assist.plan import Plan
from warpwright.cli.diff import coloured, source_diff
from warpwright.cli.findings_text import printable
from warpwright.cli.report_text import report_text
from warpwright.optimize.outcome import Candidate, Outcome
