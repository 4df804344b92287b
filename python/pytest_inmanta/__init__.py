"""Tests of modules with pytest: compile models, look at resources, run handlers, without a server."""
