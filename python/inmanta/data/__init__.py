"""Data that handlers and the orchestrator exchange."""

from __future__ import annotations

import datetime
from typing import Any, Dict, Mapping, Optional

from inmanta import const

AUTOSTART_AGENT_MAP = "autostart_agent_map"


def convert_boolean(value: object) -> bool:
    """Turn a text such as "yes" or "off" into a boolean. ValueError when it is neither true nor false."""
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text in ("1", "yes", "true", "on"):
        return True
    if text in ("0", "no", "false", "off"):
        return False
    raise ValueError(f"Not a boolean: {value}")


class LogLine:
    """One message about a resource. msg holds placeholders such as %(name)s no more: it is formatted when the line is made."""

    def __init__(
        self,
        level: const.LogLevel,
        msg: str,
        kwargs: Optional[Mapping[str, Any]] = None,
        timestamp: Optional[datetime.datetime] = None,
        args: object = (),
    ) -> None:
        self.level = level
        self.msg = msg
        self.args = args
        self.kwargs: Dict[str, Any] = dict(kwargs or {})
        self.timestamp = timestamp or datetime.datetime.now().astimezone()

    @classmethod
    def log(cls, level: int, msg: str, timestamp: Optional[datetime.datetime] = None, **kwargs: Any) -> LogLine:
        """Make a line of a numeric level, a message with placeholders and their values."""
        return cls(level_of(level), format_message(msg, kwargs), kwargs, timestamp)

    @property
    def log_level(self) -> const.LogLevel:
        """The level, under its older name."""
        return self.level

    def get_log_level_as_int(self) -> int:
        """Return the level as the module logging has it."""
        return self.level.to_int

    def to_dict(self) -> Dict[str, Any]:
        """Return the line in terms that JSON has."""
        return {"level": self.level.name, "msg": self.msg, "args": [], "kwargs": self.kwargs, "timestamp": self.timestamp}


def level_of(number: int) -> const.LogLevel:
    """Return the highest level that is not above a number."""
    for level, least in sorted(const.LOG_LEVEL_AS_INTEGER.items(), key=lambda item: -item[1]):
        if number >= least:
            return level
    return const.LogLevel.TRACE


def format_message(msg: str, kwargs: Mapping[str, Any]) -> str:
    """Put values into the placeholders of a message. One that can not be formatted stays as it is: a log line must not fail."""
    text = msg if isinstance(msg, str) else str(msg)
    if not kwargs:
        return text.replace("%%", "%")
    try:
        return text % kwargs
    except (KeyError, TypeError, ValueError):
        return text


__all__ = ["AUTOSTART_AGENT_MAP", "LogLine", "convert_boolean", "format_message", "level_of"]
