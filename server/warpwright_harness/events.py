"""What the harness tells its parent: one JSON object a line.

hello: the GPU, and whether Python found torch compiled to bytecode, first of all. begin: what runs next (phase, case,
side), before every launch. case: one comparison. unsupported: a shape at which the original cannot serve as the
reference. rates: what the GPU can do, where that had to be measured. speed: one timed shape. peers: what the reference
takes there, after all that is timed. note: a sentence for the report. A begin with "seconds" asks for that long a
patience before the next event.

The last of a request is one of done, refused (the driver turned a launch down; the process is fit for the next
request), fault (a CUDA error) and error (the harness cannot go on; "lost" where the GPU is of no use). After the last
two, and after a done that is "spent", the process ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Emit = Callable[[dict[str, Any]], None]
"""Sends one event; its key "event" names its kind."""
