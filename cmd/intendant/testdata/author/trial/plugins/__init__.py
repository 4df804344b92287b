"""Things that live in memory."""

import os
from typing import Union

from inmanta.agent.handler import CRUDHandler, DiscoveryHandler, ResourcePurged, SkipResource, provider
from inmanta.plugins import Context, PluginException, plugin
from inmanta.references import Reference, reference
from inmanta.resources import DiscoveryResource, PurgeableResource, resource

STATE = {}
COMPILES = []


def inmanta_reset_state():
    COMPILES.append(1)


@plugin
def twice(n: "int") -> "int":
    return 2 * n


@plugin
def refuse(text: "string") -> "string":
    raise PluginException(text)


@plugin
def fail(text: "string") -> "string":
    raise ValueError(text)


@reference("trial::Variable")
class Variable(Reference[str]):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def resolve(self, logger) -> str:
        if self.name not in os.environ:
            raise SkipResource(f"{self.name} is not set")
        return os.environ[self.name]


@plugin
def variable(name: str) -> Union[str, Reference[str]]:
    return Variable(name)


@resource("trial::Thing", agent="name", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("name", "size", "note")


@resource("trial::Other", agent="name", id_attribute="name")
class Other(Thing):
    pass


@provider("trial::Thing", name="memory")
@provider("trial::Other", name="memory")
class ThingHandler(CRUDHandler):
    def read_resource(self, ctx, resource):
        ctx.debug("Reading %(name)s", name=resource.name)
        if resource.name not in STATE:
            raise ResourcePurged()
        resource.size, resource.note = STATE[resource.name]

    def create_resource(self, ctx, resource):
        STATE[resource.name] = (resource.size, resource.note)
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        STATE[resource.name] = (resource.size, resource.note)
        ctx.set_updated()

    def delete_resource(self, ctx, resource):
        del STATE[resource.name]
        ctx.set_purged()


@resource("trial::Finder", agent="name", id_attribute="name")
class Finder(DiscoveryResource):
    fields = ("name",)


class Found:
    def model_dump(self, **kwargs):
        return {"size": 3}


@provider("trial::Finder", name="memory")
class FinderHandler(DiscoveryHandler):
    def discover_resources(self, ctx, discovery_resource):
        return {"trial::Thing[a,name=a]": Found()}


@plugin
def same(text: Union[str, Reference[str]]) -> Union[str, Reference[str]]:
    return text


@plugin
def kind(number: Union[int, Reference[int]]) -> "string":
    return number.type


@plugin
def louder(ctx: Context, text: "string", times: "int" = 1) -> "string":
    return " ".join([text.upper() + "!"] * times)


def _bracketed(self, *args, **kwargs):
    assert isinstance(args[0], Context) and isinstance(args[1], str)
    return f"[{louder(*args, **kwargs)}]"


louder.__plugin__.call = _bracketed
