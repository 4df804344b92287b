"""``python -m inmanta.app compile``: compiles the project of the current directory with the modules that this interpreter has."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Optional

from inmanta.module import Project, ProjectNotFoundException


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; of the reference's flags those that have a meaning here."""
    parser = argparse.ArgumentParser(prog="inmanta.app", description="Compiles a project; for all else there is the program intendant.")
    parser.add_argument("-v", "--verbose", action="count", default=0, dest="before")
    verbs = parser.add_subparsers(dest="verb", required=True)
    compiling = verbs.add_parser("compile", help="compile the project of the current directory")
    compiling.add_argument("-v", "--verbose", action="count", default=0)
    compiling.add_argument("-e", dest="environment", help="the environment to compile for")
    compiling.add_argument("-f", dest="main_file", default="main.cf", help="the main file")
    for ignored in (("-X", "--extended-errors"), ("--no-cache",), ("--no-strict-deps-check",), ("--strict-deps-check",)):
        compiling.add_argument(*ignored, action="store_true", help="taken for compatibility; has no effect")
    return parser.parse_args(argv)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs the program and returns its exit status."""
    import subprocess

    from intendant_host import placing, session

    given = arguments(sys.argv[1:] if argv is None else argv)
    try:
        project = Project.get_project_dir(os.curdir)
    except ProjectNotFoundException as e:
        print(e, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        modules = os.path.join(scratch, "modules.json")
        with open(modules, "w", encoding="utf-8") as f:
            json.dump(placing.placement(), f)
        command = [session.program(), "compile", project, "--modules", modules, "--python", sys.executable, "-f", given.main_file]
        if given.environment:
            command += ["-e", given.environment]
        command += ["-v"] * (given.before + given.verbose)
        try:
            return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
        except OSError as e:
            print(f"{command[0]} can not be run: {e}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
