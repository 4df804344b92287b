"""The host side of Intendant's Python processes. Nothing in this package is for the authors of modules."""
