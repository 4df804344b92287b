"""
Compiles models with the reference implementation.

Reads requests from standard input, one JSON object per line: {"id": ..., "files": {path: text}}. Writes one answer per line, in
the order of the requests, in the form of a recorded conformance case: "outcome", then "error" or "stdout", "model" and "export".

Each model is compiled in a child process that is forked from this one once the package and the module std are loaded, so that
models can not disturb each other and none pays for starting up.

Run with the Python that has the reference installed: python reference.py [SECONDS], the time limit for each model.
"""

import io
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import warnings

WARM_UP = {
    "project.yml": "name: warm\nmodulepath: libs\n",
    "main.cf": 'import std::testing\nentity A:\n    string n\nend\nimplement A using std::none\nA(n="x")\nstd::print(std::get_env("NONE"))\nstd::testing::NullResource(name="x")\n',
}


def lay_out(top, files):
    for name, text in files.items():
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
    os.makedirs(os.path.join(top, "libs"), exist_ok=True)


class Places:
    """Paths as the cases have them: relative to the project, {std}/... for the standard module."""

    def __init__(self, top):
        import inmanta_plugins.std

        self.roots = [(top + "/", ""), (os.path.realpath(top) + "/", ""), (os.path.dirname(inmanta_plugins.std.__file__) + "/", "{std}/")]

    def name(self, path):
        for root, short in self.roots:
            if path.startswith(root):
                return short + path[len(root):]
        return path

    def text(self, text):
        for root, short in self.roots:
            text = text.replace(root, short)
        return text

    def location(self, at):
        if at is None:
            return None
        out = {"file": self.name(at.file), "line": at.lnr}
        if hasattr(at, "start_char"):
            out.update(col=at.start_char, end_line=at.end_lnr, end_col=at.end_char)
        return out


def error(e, places):
    from inmanta.ast import CompilerException

    out = {"class": f"{type(e).__module__}.{type(e).__qualname__}", "message": places.text(str(e)), "location": None}
    if isinstance(e, CompilerException):
        out["message"] = places.text(e.get_message())
        out["location"] = places.location(e.get_location())
        out["trace"] = places.text(e.format_trace(indent="  "))
        causes = [error(c, places) for c in e.get_causes()]
        if causes:
            out["causes"] = causes
    return out


def instances(types, places):
    """All instances, named by type and number, with their values."""
    from inmanta.ast import OptionalValueException
    from inmanta.ast.attribute import RelationAttribute
    from inmanta.ast.entity import Entity
    from inmanta.execute.runtime import Instance
    from inmanta.execute.util import NoneValue, Unknown
    from inmanta.references import Reference

    seen = []
    ids = {}
    for name, t in sorted(types.items()):
        if isinstance(t, Entity):
            for i in t.get_all_instances():
                if i not in ids:
                    ids[i] = f"{i.get_type().get_full_name()}#{len(ids)}"
                    seen.append(i)

    def value(v):
        if isinstance(v, NoneValue):
            return None
        if isinstance(v, str):
            return places.text(v)
        if isinstance(v, (bool, int)):
            return v
        if isinstance(v, float):
            return {"$float": repr(v)}
        if isinstance(v, Unknown):
            return {"$unknown": True}
        if isinstance(v, Instance):
            return {"$ref": ids[v]}
        if isinstance(v, list):
            return [value(x) for x in v]
        if isinstance(v, dict):
            return {"$dict": [[k, value(x)] for k, x in v.items()]}
        if isinstance(v, Reference):
            return {"$reference": type(v).__name__}
        return {"$python": repr(v)}

    out = []
    for i in seen:
        attrs, rels = {}, {}
        for name, slot in i.slots.items():
            if name == "self" and i.get_type().get_attribute(name) is None:
                continue
            try:
                v = value(slot.get_value())
            except OptionalValueException:
                v = None
            if isinstance(i.get_type().get_attribute(name), RelationAttribute):
                one = lambda x: x["$ref"] if isinstance(x, dict) and "$ref" in x else x
                rels[name] = [one(x) for x in v] if isinstance(v, list) else one(v)
            else:
                attrs[name] = v
        where = [places.location(at) for at in i.get_locations()]
        out.append({
            "id": ids[i], "type": i.get_type().get_full_name(), "attrs": attrs, "rels": rels,
            "locs": [f"{w['file']}:{w['line']}" for w in where],
        })
    return out


def export(types, scopes):
    from inmanta import protocol
    from inmanta.export import Exporter

    _, resources, state = Exporter().run(types, scopes, no_commit=True, include_status=True, export_env_var_settings=False)
    return {
        "outcome": "ok",
        "resources": json.loads(protocol.json_encode([r.serialize() for _, r in sorted(resources.items(), key=lambda x: str(x[0]))])),
        "resource_state": {str(k): str(getattr(v, "value", v)) for k, v in state.items()},
    }


def compile_model(top):
    from inmanta import compiler, module

    places = Places(top)
    out = {"outcome": "ok"}
    printed = sys.stdout = io.StringIO()
    try:
        module.Project.set(module.Project(top))
        module.Project.get().load()
        types, scopes = compiler.do_compile()
        out["model"] = {"instances": instances(types, places)}
        try:
            out["export"] = export(types, scopes)
        except Exception as e:
            out["export"] = {"outcome": "error", "error": error(e, places)}
    except Exception as e:
        out = {"outcome": "error", "error": error(e, places)}
    finally:
        sys.stdout = sys.__stdout__
    out["stdout"] = places.text(printed.getvalue())
    return out


def keep_std(cache):
    """Parsed files are kept for the standard module alone: those of two models may have the same name and time."""
    found, kept = cache.un_cache, cache.cache
    cache.un_cache = lambda ns, file: found(ns, file) if "inmanta_plugins/std/" in file else None
    cache.cache = lambda ns, file, tree: kept(ns, file, tree) if "inmanta_plugins/std/" in file else None


def answer(request, top, seconds):
    """Compiles in a child, which writes its answer to a file."""
    result = os.path.join(top, ".answer")
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(seconds)
            os.setpgid(0, 0)
            lay_out(top, request["files"])
            os.chdir(top)
            out = compile_model(top)
            with open(result, "w", encoding="utf-8") as f:
                json.dump(out, f)
        except BaseException as e:
            with open(result, "w", encoding="utf-8") as f:
                json.dump({"outcome": "broken", "error": {"class": type(e).__name__, "message": str(e), "location": None}}, f)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        return {"outcome": "timeout" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM else "broken"}
    with open(result, encoding="utf-8") as f:
        return json.load(f)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(5000)
    from inmanta.execute.util import Unknown
    from inmanta.module import cache_manager

    # The text of an unknown value is its address: no two runs would agree.
    Unknown.__repr__ = lambda self: "<unknown>"

    top = tempfile.mkdtemp(prefix="differential-")
    try:
        warm = os.path.join(top, "warm")
        lay_out(warm, WARM_UP)
        cache_manager.attach_to_project(warm)
        cache_manager.attach_to_project = lambda path: None
        os.chdir(warm)
        compile_model(warm)
        keep_std(cache_manager)
        print(json.dumps({"ready": True}), flush=True)
        for n, line in enumerate(sys.stdin):
            request = json.loads(line)
            project = os.path.join(top, str(n))
            os.mkdir(project)
            out = answer(request, project, seconds)
            out["id"] = request.get("id")
            print(json.dumps(out), flush=True)
            shutil.rmtree(project, ignore_errors=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main()
