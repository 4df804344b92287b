"""Starts a host module in a fresh interpreter: ``python -I boot.py MODULE``.

The file is read by whatever interpreter the user has, so it keeps to a syntax that old ones can parse and says plainly when one
is too old. The package directory goes to the front of ``sys.path``: our ``inmanta`` package is the one that modules import,
whatever else is installed.
"""

import sys

OLDEST = (3, 9)


def main():  # type: ignore[no-untyped-def]
    if sys.version_info[:2] < OLDEST:
        sys.stderr.write("Python %d.%d is too old: modules need Python 3.9 or later\n" % tuple(sys.version_info[:2]))  # noqa: UP031
        sys.exit(3)
    import faulthandler
    import importlib
    import os

    faulthandler.enable()
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # Integers of the modelling language have no bound on their length in decimal.
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    # What authors print shows up line by line, and can always be written.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    if sys.version_info >= (3, 14):
        # Have multiprocessing fork unless somebody chooses otherwise, as it did before. Its other ways start a new interpreter,
        # which would not find the modules that this process is given.
        import contextlib

        context = importlib.import_module("multiprocessing.context")
        with contextlib.suppress(AttributeError, KeyError):
            context._default_context._default_context = context._concrete_contexts["fork"]
    name = sys.argv[1]
    sys.argv[:] = ["intendant"]
    importlib.import_module(name).main()


if __name__ == "__main__":
    main()  # type: ignore[no-untyped-call]
