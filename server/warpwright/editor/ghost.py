"""A kernel written from the comment above the cursor, by the local model."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from warpwright.missing import Missing
from warpwright.progress import IsCancelled

if TYPE_CHECKING:
    from warpwright.assist.engine import Engine

log = logging.getLogger(__name__)


class GhostWriter:
    """Holds the model from one request to the next, because loading it takes long. Used by one thread."""

    def __init__(self) -> None:
        self._model = ""
        self._engine: Engine | None = None
        self._missing: str | None = None

    def write(self, description: str, model: str, seconds: float, is_cancelled: IsCancelled) -> str | None:
        """A kernel that may be shown; None where the model wrote none, or is missing, which is logged once."""
        # Imported with the first request: most sessions make none, and every one waits for the server to start.
        from warpwright.assist.engine import EngineError
        from warpwright.assist.generate import generate

        engine = self._engine_for(model)
        if engine is None or is_cancelled():
            return None
        try:
            draft = generate(engine, description, is_cancelled, budget_seconds=seconds)
        except EngineError as error:
            log.warning("no kernel was written: %s", error)
            return None
        if not draft.shown:
            log.info("a draft is not shown: %s", draft.reason)
            return None
        return draft.code

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _engine_for(self, model: str) -> Engine | None:
        if self._engine is not None and model == self._model:
            return self._engine
        from warpwright.assist.opening import open_engine

        self.close()
        self._model = model
        found = open_engine(model or None)
        if isinstance(found, Missing):
            if self._missing != str(found):
                self._missing = str(found)
                log.warning("kernels are not written from comments: %s", found)
            return None
        self._engine = found
        return self._engine
