"""What the other layers log, shown to the person who typed the command: a line each, no traceback."""

from __future__ import annotations

import logging
import os


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message = f"{record.levelname.lower()}: {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            if os.environ.get("WARPWRIGHT_DEBUG"):
                return f"{message}\n{self.formatException(record.exc_info)}"
            error = record.exc_info[1]
            message += f" ({type(error).__name__}: {error}); please report it"
        return message


def log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
