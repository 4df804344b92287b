"""What tests use besides the fixture project."""

import os
import subprocess
import sys

import inmanta_plugins.std  # before anything was compiled
import pytest
from inmanta import loader, references
from inmanta.server.protocol import Server
from pytest_inmanta.server import StartError, run_server


def test_std_at_import(project):
    assert inmanta_plugins.std.FactReference is references.reference.get_class("std::FactReference")
    assert inmanta_plugins.std.replace("a", "a", "b") == "b"


def test_references_of_std(project, monkeypatch):
    # A plugin gets a reference that the compiler made, and an agent resolves it.
    project.compile(
        """
        import trial
        t = trial::Thing(name="a", note=trial::same(std::create_environment_reference("TRIAL_NOTE")))
        std::print(trial::kind(std::create_int_reference("3")))
        """,
        no_dedent=False,
    )
    assert project.get_stdout() == "std::IntReference\n"
    monkeypatch.setenv("TRIAL_NOTE", "from outside")
    project.deploy_resource("trial::Thing")
    thing = project.get_resource("trial::Thing")
    project.resolve_references(thing)
    assert thing.note == "from outside"


def test_wrapped_plugin(project):
    # A module may put a wrapper in the place of the method that calls its function; the wrapper counts on the places of arguments.
    project.compile("import trial\nstd::print(trial::louder('a', times=2))\nstd::print(trial::louder('b'))")
    assert project.get_stdout() == "[A! A!]\n[B!]\n"


def test_indices(project):
    project.compile("import trial\ntrial::Other(name='a')")
    thing, other = project.types["trial::Thing"], project.types["trial::Other"]
    assert thing.get_indices() == [["name"]]
    assert ["name"] in other.get_indices()
    assert other.has_attribute("size") and not other.has_attribute("nothing")
    assert project.types["trial::Finder"].get_indices() == []


def test_unload(project):
    import inmanta_plugins.trial as before

    loader.unload_inmanta_plugins("trial")
    import inmanta_plugins.trial as after

    assert after is not before
    project.compile("import trial\nstd::print(trial::twice(4))")
    assert project.get_stdout() == "8\n"


def test_compile_from_python(project, project_dir, tmp_path):
    # As generators do: the compiler is run as the module inmanta.app, with the modules that this interpreter has.
    packages = tmp_path / "inmanta_plugins" / "elsewhere"
    packages.mkdir(parents=True)
    (packages / "__init__.py").write_text(
        "from inmanta.plugins import plugin\n@plugin\ndef where() -> str:\n    return 'elsewhere'\n", encoding="utf-8"
    )
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "_init.cf").touch()
    (tmp_path / "setup.cfg").write_text("[metadata]\nname = inmanta-module-elsewhere\nversion = 1\n", encoding="utf-8")
    with open(os.path.join(project_dir, "main.cf"), "w", encoding="utf-8") as f:
        f.write("import elsewhere\nstd::print(elsewhere::where())\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])}
    out = subprocess.run([sys.executable, "-m", "inmanta.app", "compile"], cwd=project_dir, env=env, capture_output=True, text=True)
    assert (out.returncode, out.stdout) == (0, "elsewhere\n"), out.stderr
    out = subprocess.run([sys.executable, "-m", "inmanta.app", "compile"], cwd="/", env=env, capture_output=True, text=True)
    assert out.returncode == 1 and "project.yml expected" in out.stderr


def test_server(server, environment, sync_client, project):
    assert isinstance(server, Server)
    found = sync_client.environment_get(id=environment)
    assert found.code == 200 and found.result["data"]["name"] == "tests"
    made = sync_client.set_param(tid=environment, id="size", source="user", value="3")
    assert made.code == 200, made.result
    found = sync_client.get_param(tid=environment, id="size")
    assert found.result["parameter"]["value"] == "3", found.result


def test_server_of_another_test(server, client, sync_client):
    assert client.name == "client"
    assert sync_client.project_list().code == 200


def test_server_that_does_not_start(tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no database' >&2\nexit 3\n", encoding="utf-8")
    broken.chmod(0o700)
    monkeypatch.setenv("INTENDANT", str(broken))
    with pytest.raises(StartError, match="(?s)status 3.*no database"):
        next(run_server(str(tmp_path)))
    monkeypatch.setenv("INTENDANT", str(tmp_path / "missing"))
    with pytest.raises(StartError, match="missing can not be run"):
        next(run_server(str(tmp_path)))
