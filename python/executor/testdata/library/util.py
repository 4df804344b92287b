"""The small things that modules import."""

import asyncio
import dataclasses
import datetime
import enum
import io
import json
import os
import tempfile
import uuid

from inmanta import const, data, util
from inmanta.data.model import AttributeStateChange, BaseModel, DiscoveredResourceInput
from inmanta.protocol.common import Result, custom_json_encoder, json_encode

assert util.hash_file(b"") == "da39a3ee5e6b4b0d3255bfef95601890afd80709"
assert util.hash_file_streaming(io.BytesIO(b"x" * 200_000)) == util.hash_file(b"x" * 200_000)
with tempfile.TemporaryDirectory() as d:
    path = util.ensure_directory_exist(d, "a", "b")
    assert os.path.isdir(path) and util.ensure_directory_exist(d, "a", "b") == path

r = util.parse_requirement("Some-Package[extra1, extra2]>=1.0,<2 ; python_version > '3'")
assert r.name == "Some-Package" and set(r.extras) == {"extra1", "extra2"} and str(r.marker)
assert util.Requirement("a @ https://example.org/a.whl").url == "https://example.org/a.whl"
try:
    util.Requirement("!!")
    raise AssertionError("nonsense is no requirement")
except ValueError:
    pass


class Color(enum.Enum):
    RED = "r"


@dataclasses.dataclass
class Point:
    x: int


class Own:
    def to_dict(self):
        return {"own": 1}


class Stepping(util.JSONSerializable):
    def json_serialization_step(self):
        return ["step"]


naive = datetime.datetime(2026, 1, 2, 3, 4, 5)
u = uuid.UUID(int=1)
encoded = json.loads(
    json.dumps({"d": naive, "u": u, "c": Color.RED, "e": ValueError("bad"), "p": Point(1), "o": Own(), "s": Stepping()}, default=util.api_boundary_json_encoder)
)
assert encoded == {"d": "2026-01-02T03:04:05.000000+00:00", "u": str(u), "c": "RED", "e": "bad", "p": {"x": 1}, "o": {"own": 1}, "s": ["step"]}, encoded
assert json.loads(json.dumps(naive, default=util.internal_json_encoder)) == naive.astimezone().isoformat(timespec="microseconds")
try:
    custom_json_encoder(object())
    raise AssertionError("an object is not JSON")
except TypeError:
    pass
assert json_encode({"a": "</script>"}) == '{"a": "<\\/script>"}' 
zoned = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
assert util.api_boundary_json_encoder(naive, tz_aware=False) == "2026-01-02T03:04:05.000000"
assert json_encode(zoned, tz_aware=False) == '"2026-01-02T01:04:05.000000"' and json_encode(zoned) == '"2026-01-02T03:04:05.000000+02:00"'


async def slow(value, seconds=0.0):
    await asyncio.sleep(seconds)
    return value


assert util.wait_sync(slow(3)) == 3


async def within_a_loop():
    return util.wait_sync(slow(4))


assert asyncio.run(within_a_loop()) == 4
try:
    util.wait_sync(slow(1, 60), timeout=0.01)
    raise AssertionError("there is a timeout")
except (asyncio.TimeoutError, TimeoutError):
    pass

# Texts and numbers of the interface.
assert const.ResourceState.deployed == "deployed" and const.Change.nochange == "nochange" and const.LogLevel.INFO.to_int == 20
assert const.ResourceState.undefined in const.UNDEPLOYABLE_STATES and const.ResourceState.available in const.TRANSIENT_STATES
assert const.UNKNOWN_STRING == "<<undefined>>" and const.PLUGINS_PACKAGE == "inmanta_plugins"
assert data.convert_boolean("Yes") is True and data.convert_boolean("off") is False and data.convert_boolean(True) is True
try:
    data.convert_boolean("perhaps")
    raise AssertionError("perhaps is no boolean")
except ValueError:
    pass
line = data.LogLine.log(30, "%(n)d left", n=3)
assert (line.msg, line.level, line.kwargs) == ("3 left", const.LogLevel.WARNING, {"n": 3})
assert data.format_message("%(missing)s and 100%", {"n": 1}) == "%(missing)s and 100%"
assert data.format_message("100%% sure", {}) == data.format_message("100%% %(w)s", {"w": "sure"}) == "100% sure"
assert data.format_message("100%", {}) == "100%" and data.format_message(5, {}) == "5"
assert data.level_of(3) == "TRACE" and data.level_of(45) == "ERROR"


class Base(BaseModel):
    a: int
    b: str = "x"


class Derived(Base):
    c: list = []


d = Derived(a=1)
assert d.model_dump() == {"a": 1, "b": "x", "c": []} and Derived(a=1) == d and d != Derived(a=2)
try:
    Derived(b="y")
    raise AssertionError("a is required")
except ValueError:
    pass
assert DiscoveredResourceInput(discovered_resource_id="a", values={"p": 1}, discovery_resource_id="b").values == {"p": 1}
assert AttributeStateChange(current=1, desired=2) == AttributeStateChange(1, 2)
assert Result(200, {"data": [1]}).value() == [1]
try:
    Result(404, {"message": "gone"}).value()
    raise AssertionError("a refused call has no value")
except Exception as e:
    assert "gone" in str(e)
