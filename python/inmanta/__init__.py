"""The package that modules import: plugins, resources, handlers and references.

It is part of Intendant and needs nothing but the standard library. Names and behaviour are those that existing modules rely on.
"""

from intendant_host import finder

finder.install()

COMPILER_VERSION = "2026.1"

RUNNING_TESTS = False
