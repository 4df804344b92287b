"""Each thing that the fixture project can do."""

import inmanta.ast
import pytest
from inmanta.const import Change, ResourceState
from inmanta.resources import Id


@pytest.fixture(autouse=True)
def clean(inmanta_plugins):
    inmanta_plugins.trial.STATE.clear()


def test_plugins(project, inmanta_plugins):
    assert project.get_plugin_function("twice")(4) == 8
    assert inmanta_plugins.trial.twice(2) == 4
    assert {"twice", "refuse"} <= project.get_plugins().keys()
    with pytest.raises(Exception, match="nothing not found"):
        project.get_plugin_function("nothing")
    with pytest.raises(AttributeError, match="nosuch"):
        _ = inmanta_plugins.nosuch


def test_model(project):
    project.compile(
        """
        import trial
        t = trial::Thing(name="a", size=trial::twice(3))
        o = trial::Other(name="b")
        total = t.size + o.size
        std::print(total)
        """,
        no_dedent=False,
    )
    assert project.get_stdout() == "7\n"
    assert sorted(i.name for i in project.get_instances("trial::Thing")) == ["a", "b"]
    assert [i.size for i in project.get_instances("trial::Other")] == [1]
    with pytest.raises(Exception, match="trial::Nothing"):
        project.get_instances("trial::Nothing")
    assert project.get_root_scope().lookup("total").get_value() == 7
    assert project.get_resource("trial::Thing", size=6).id == Id.parse_id("trial::Thing[a,name=a]")
    assert project.get_resource("trial::Thing", size=7) is None
    assert project.get_resource("trial::Thing", nothing=7) is None
    assert project.get_one_resource("trial::Other").name == "b"
    assert project.get_resource("trial::Other", strict_mode=True).name == "b"
    made = project.resources[Id.parse_id("trial::Other[b,name=b]")]
    assert made.model.name == "b"


def test_modules_stay(project, inmanta_plugins):
    before = inmanta_plugins.trial
    count = len(before.COMPILES)
    project.compile("import trial")
    assert inmanta_plugins.trial is before
    assert len(before.COMPILES) == count + 1


def test_faults(project):
    with pytest.raises(inmanta.ast.TypeNotFoundException, match="could not find type trial::Thang") as e:
        project.compile("import trial\ntrial::Thang()")
    assert e.value.get_location().lnr == 2
    with pytest.raises(inmanta.ast.ExplicitPluginException) as e:
        project.compile('import trial\nx = trial::refuse("no")')
    assert "no" in str(e.value)
    with pytest.raises(inmanta.ast.ExternalException) as e:
        project.compile('import trial\nx = trial::fail("bad")')
    assert isinstance(e.value.__cause__, ValueError)
    with pytest.raises(inmanta.ast.RuntimeException):
        project.compile("import trial\nx = 1\nx = 2")
    project.compile("import trial")


def test_handlers(project, inmanta_plugins):
    project.compile('import trial\ntrial::Thing(name="a", size=2)')
    assert project.dryrun_resource("trial::Thing").keys() == {"purged"}
    assert not inmanta_plugins.trial.STATE
    project.deploy_resource("trial::Thing", change=Change.created)
    result = project.deploy_resource_v2("trial::Thing")
    result.assert_no_changes()
    assert result.assert_has_logline("Reading").msg
    with pytest.raises(AssertionError, match="No line found"):
        result.assert_has_logline("Writing")
    inmanta_plugins.trial.STATE["a"] = (9, None)
    assert project.dryrun_resource_v2("trial::Thing").changes["size"].current == 9
    project.deploy_resource("trial::Thing", change=Change.updated)
    assert project.get_last_context().status == ResourceState.deployed
    assert project.get_last_logs()


def test_all(project):
    project.compile("""
import trial
a = trial::Thing(name="a")
b = trial::Thing(name="b", requires=a)
""")
    out = project.dryrun_and_deploy_all(assert_create_or_delete=True)
    assert out.deploy.get_context_for("trial::Thing", name="b").change == Change.created
    with pytest.raises(LookupError):
        out.deploy.get_context_for("trial::Thing")
    assert len(out.deploy.get_contexts_for("trial::Thing")) == 2
    assert out.deploy.get_context_for("trial::Thing", name="c") is None
    assert out.deploy.get_resource("trial::Thing", name="a").name == "a"


def test_requirement_that_fails(project):
    project.compile("""
import unittest
a = unittest::Resource(name="a", desired_value="x")
b = unittest::Resource(name="b", desired_value="x", fail=true, requires=a)
c = unittest::Resource(name="c", desired_value="x", requires=b)
unittest::IgnoreResource(name="d", desired_value="x")
unittest::IgnoreResourceInIdAttr(name="e", desired_value="x")
unittest::Resource(name="s", desired_value="x", skip=true)
""")
    assert len(project.resources) == 4
    out = project.deploy_all()
    status = {n: out.get_context_for("unittest::Resource", name=n).status for n in "abcs"}
    assert status == {
        "a": ResourceState.deployed,
        "b": ResourceState.failed,
        "c": ResourceState.skipped,
        "s": ResourceState.skipped,
    }
    with pytest.raises(AssertionError, match="expected deployed"):
        out.assert_all()
    assert project.unittest_resource_exists("a") and not project.unittest_resource_exists("b")
    project.unittest_resource_set("a", desired_value="y")
    assert project.unittest_resource_get("a") == {"desired_value": "y"}
    assert project.dryrun_resource("unittest::Resource", name="a").keys() == {"desired_value"}


def test_cycle(project):
    project.compile("""
import unittest
a = unittest::Resource(name="a", desired_value="x")
""")
    a = next(iter(project.resources.values()))
    a.requires.add(a.id)
    with pytest.raises(Exception, match="Cycle detected"):
        project.deploy_all()


def test_references(project, monkeypatch):
    project.compile('import trial\ntrial::Thing(name="a", note=trial::variable("TRIAL"))')
    thing = project.get_resource("trial::Thing")
    assert thing.note is None
    assert project.deploy(thing).status == ResourceState.skipped
    monkeypatch.setenv("TRIAL", "hidden")
    project.resolve_references(thing)
    assert thing.note == "hidden"
    project.deploy_resource("trial::Thing")


def test_files_facts_and_modules(project):
    project.add_mock_file("templates", "test.j2", "{{ value }}")
    project.create_module("extra", initcf='import trial\nvalue = trial::twice(21)\n', initpy="")
    project.add_fact("trial::Thing[a,name=a]", "colour", "red")
    project.compile("""
import unittest
import trial
import extra
value = "1234"
std::print(std::template("unittest/test.j2"))
std::print(extra::value)
thing = trial::Thing(name="a")
std::print(std::getfact(thing, "colour"))
""")
    assert sorted(project.get_stdout().split()) == ["1234", "42", "red"]
    project.add_blob("key", b"content")
    assert project.stat_blob("key") and project.get_blob("key") == b"content"
    with pytest.raises(Exception, match="already stored"):
        project.add_blob("key", b"other", allow_overwrite=False)


def test_what_tests_make_is_gone(project):
    with pytest.raises(inmanta.ast.CompilerException):
        project.compile("import extra")


def test_discovery(project):
    project.compile('import trial\ntrial::Finder(name="a")')
    result = project.deploy_resource_v2("trial::Finder")
    assert len(result.discovered_resources) == 1


def test_no_plugins(project_no_plugins):
    with pytest.raises(Exception, match="Plugins not loaded"):
        project_no_plugins.get_plugins()
    project_no_plugins.compile("import trial\nstd::print(trial::twice(1))")
    assert project_no_plugins.get_stdout() == "2\n"


def test_without_the_module(project):
    """A model that imports no module with Python code, and changes that are compared with plain dicts."""
    project.compile("""
host = std::Host(name="server", os=std::linux)
file = std::ConfigFile(host=host, path="/tmp/test", content="1234")
        """)
    assert [h.name for h in project.get_instances("std::Host")] == ["server"]
    assert project.get_resource("std::File").path == "/tmp/test"

    project.compile("import unittest\nunittest::Resource(name='x', desired_value='y')")
    project.deploy_resource("unittest::Resource")
    project.unittest_resource_set("x", desired_value="z")
    assert project.dryrun_resource("unittest::Resource") == {"desired_value": {"current": "z", "desired": "y"}}
    assert project.dryrun_resource("unittest::Resource") != {"desired_value": {"current": "y", "desired": "y"}}
