"""What is told on the way: to `logging`, and to a bar where one is asked for."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any

logger = logging.getLogger("metastate")


class Listener:
    """Hears from the solver; use it as a context."""

    def __init__(self, progress: Any) -> None:
        self._bar: Any = None
        if progress is True:
            try:
                from tqdm.auto import tqdm

                progress = tqdm
            except ImportError:
                logger.warning("progress=True needs tqdm; install it, or look at the logger `metastate`")
                progress = None
        if progress:
            # No total: how many sweeps a rank needs is not known beforehand.
            self._bar = progress(desc="metastate", bar_format="{desc} {elapsed} {postfix}")

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, phase: str, text: str) -> None:
        if phase == "line":
            logger.info(text)
            return
        logger.debug("%s: %s", phase, text)
        if self._bar is not None:
            self._bar.set_description_str(phase, refresh=False)
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(1)
