"""Signals: Intendant ends its Python processes itself, so there is nothing to set up."""

from __future__ import annotations

from typing import Any


def setup_signal_handlers(*args: Any, **kwargs: Any) -> None:
    """Takes no notice."""


def dump_threads() -> None:
    """Writes the stacks of all threads to the standard error."""
    import faulthandler

    faulthandler.dump_traceback(all_threads=True)


def dump_ioloop_running() -> None:
    """Takes no notice."""
