"""Compiles the project in a directory with the reference implementation and prints what it took, in seconds of processor time, as JSON."""

import json
import os
import resource
import sys
import time

started = time.process_time()
from inmanta import compiler, module  # noqa: E402
from inmanta.config import Config  # noqa: E402

imported = time.process_time()
os.chdir(sys.argv[1])
Config.set("compiler", "cache", "false")
module.Project.get("main.cf")
types, _ = compiler.do_compile()
compiled = time.process_time()

instances = 0
for kind in types.values():
    if hasattr(kind, "get_all_instances"):
        instances += sum(1 for instance in kind.get_all_instances() if instance.type is kind)
print(
    json.dumps(
        {
            "import": imported - started,
            "compile": compiled - imported,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "instances": instances,
        }
    )
)
