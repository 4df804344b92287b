"""Plugins: functions that models and templates call while they are compiled."""

import re

from inmanta.plugins import PluginException, plugin
from inmanta.references import Reference

from inmanta_plugins.notes.references import FirstLine


@plugin
def slug(title: "string") -> "string":
    """Make a title fit for the name of a file."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    if not words:
        raise PluginException(f"the title {title!r} has neither a letter of ASCII nor a digit")
    return "-".join(words)


@plugin
def first_line(path: "string") -> Reference[str]:
    """Refer to the first line of a file; the agent reads it when it deploys."""
    return FirstLine(path=path)
