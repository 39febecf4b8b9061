"""`warpwright generate`: a kernel from a description, compiled before it is called a kernel."""

from __future__ import annotations
