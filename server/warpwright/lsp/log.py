"""The server's log: stderr, warnings and worse, one line each, whatever a library puts into a record."""

from __future__ import annotations

import logging
import sys

_LONGEST = 500


class OneLine(logging.Formatter):
    """Shows the first line of a message, and of an exception its type and text; a traceback at DEBUG level alone."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"{record.levelname} {record.name}: {_first_line(record.getMessage())}"
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            text += f": {type(error).__name__}: {_first_line(str(error))}"
            if logging.getLogger().isEnabledFor(logging.DEBUG):
                text += "\n" + self.formatException(record.exc_info)  # type: ignore[arg-type]
        return text


def log_to_stderr(level: int = logging.WARNING) -> None:
    """pygls logs whole messages at INFO, so its logger stays at WARNING whatever `level` is.

    A message that it cannot read it reports twice; the second time with the reason.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("pygls").setLevel(logging.WARNING)
    logging.getLogger("pygls.protocol.json_rpc").addFilter(lambda record: "deserialize" not in str(record.msg))


def _first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
