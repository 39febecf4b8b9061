"""Does a comparison prove anything? Where something that computes nothing would pass, the problem is at fault."""

from __future__ import annotations

import json

from warpwright.verify.child import Event

LEAST_ELEMENTS = 32
"""A case that compares fewer says nothing: one number is its own mean. Both backends look at no fewer."""


class Proof:
    """What the events of one verification say of the original's outputs.

    Outputs that hold the same whatever the inputs hold prove nothing, nor do those that something like "zero
    everywhere" passes for within the tolerance, at every shape that shows anything and with all values.
    """

    def __init__(self, has_inputs: bool) -> None:
        self._has_inputs = has_inputs
        self._spread = False
        self._samples: set[str] = set()
        self._tight = False
        self._loose: dict[str, str] = {}

    def add(self, event: Event) -> None:
        """Take an event "case" in."""
        self._spread = self._spread or bool(event.get("spread"))
        if event.get("distribution") != "zeros":
            self._samples.add(json.dumps(event.get("sample"), sort_keys=True))
            loose = event.get("loose") or {}
            if event.get("weighed", LEAST_ELEMENTS) >= LEAST_ELEMENTS:
                self._tight = self._tight or (bool(event.get("spread")) and not loose)
            self._loose |= loose

    @property
    def lacking(self) -> str:
        """Why nothing was proved, in one sentence; "" where something was."""
        if self._has_inputs and not self._spread and len(self._samples) <= 1:
            return "The original's outputs are the same whatever its inputs hold, so comparing proves nothing."
        if self._loose and not self._tight:
            name, impostor = next(iter(self._loose.items()))
            return (
                f"The original's {name} is lost in its own rounding: {impostor} would pass for it, so comparing proves "
                "nothing."
            )
        return ""
