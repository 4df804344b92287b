"""Where newer modules import AgentInstance from."""

from __future__ import annotations

from inmanta.agent.agent import AgentInstance

__all__ = ["AgentInstance"]
