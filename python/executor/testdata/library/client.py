"""Clients of the API without an agent: the configuration says where the server is. The argument is its port."""

import asyncio
import sys

from inmanta.config import Config
from inmanta.protocol import Client, SyncClient
from inmanta.protocol.endpoints import Client as Same

Config.set("mine_rest_transport", "host", "127.0.0.1")
Config.set("mine_rest_transport", "port", sys.argv[1])
Config.set("mine_rest_transport", "token", "of mine")
env = "11111111-2222-3333-4444-555555555555"
client = SyncClient("mine")

ok = client.set_param(env, "a name/with", source="plugin", value="v", recompile=True, metadata={"k": "v"})
assert ok.code == 200 and ok.result["seen"] == {
    "method": "PUT", "uri": "/api/v1/parameter/a%20name%2Fwith", "tid": env, "auth": "Bearer of mine",
    "body": {"source": "plugin", "value": "v", "recompile": True, "metadata": {"k": "v"}},
}, ok.result  # fmt: skip
seen = client.resource_list(tid=env, limit=5, filter={"agent": ["a"]}).result["seen"]
assert seen["uri"].startswith("/api/v2/resource?limit=5&filter="), seen
missing = client.get_file("0" * 40)
assert missing.code == 404 and missing.result == {"message": "not here"} and missing.get_result() is missing.result
assert asyncio.run(Client("mine").environment_get(env)).code == 200 and Client is Same
for wrong in (
    lambda: client.get_param(id="x"),
    lambda: client.get_param(env, "x", nonsense=1),
    lambda: client.get_param(env, "x", "y", "z"),
    lambda: client.get_param(env, tid=env, id="x"),
    lambda: client.get_param(env),
):
    try:
        wrong()
        raise AssertionError("a wrong call was made")
    except TypeError:
        pass
try:
    client.drop_everything
    raise AssertionError("there is no such method")
except AttributeError:
    pass
Config.set("gone_rest_transport", "host", "127.0.0.1")
Config.set("gone_rest_transport", "port", "1")
assert SyncClient("gone").get_param(env, "x").code == 503
