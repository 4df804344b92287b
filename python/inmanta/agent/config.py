"""Options of an agent that handlers read."""

from __future__ import annotations

from inmanta.config import Option, is_str, is_uuid_opt

environment: "Option[object]" = Option("config", "environment", None, "The environment that this process works for", is_uuid_opt)
state_dir: "Option[str]" = Option("config", "state-dir", "/var/lib/intendant", "Where this process keeps its files", is_str)

__all__ = ["environment", "state_dir"]
