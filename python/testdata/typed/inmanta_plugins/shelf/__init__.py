"""A module as an author writes it who checks types: mypy --strict and pyright must find nothing in it."""

from __future__ import annotations

import dataclasses
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Optional, Union

from inmanta.agent.agent import AgentInstance
from inmanta.agent.handler import (
    CRUDHandler,
    DiscoveryHandler,
    HandlerContext,
    LoggerABC,
    PythonLogger,
    ResourceHandler,
    ResourcePurged,
    SkipResource,
    cache,
    provider,
)
from inmanta.ast import OptionalValueException, UnsetException
from inmanta.ast.attribute import RelationAttribute
from inmanta.ast.entity import Entity
from inmanta.compiler import finalizer
from inmanta.config import Config, Option, is_int
from inmanta.const import Change, HandlerResourceState, ResourceState
from inmanta.data.model import BaseModel
from inmanta.execute.proxy import DictProxy, DynamicProxy, SequenceProxy
from inmanta.execute.util import Unknown
from inmanta.export import Exporter, ModelDict, ResourceDict, dependency_manager, export, unknown_parameters
from inmanta.module import Project
from inmanta.plugins import Context, ModelType, PluginException, allow_reference_values, deprecated, plugin
from inmanta.protocol import SyncClient
from inmanta.references import Mutator, Reference, mutator, reference
from inmanta.resources import (
    DiscoveryResource,
    Id,
    IgnoreResourceException,
    ManagedResource,
    PurgeableResource,
    Resource,
    resource,
    to_id,
)
from inmanta.util import hash_file, parse_requirement
from inmanta.util.dict_path import DictPath, to_path

LOGGER = logging.getLogger(__name__)

depth = Option("shelf", "depth", 5, "How deep shelves are, in cm.", is_int)

Book = Annotated[DynamicProxy, ModelType["shelf::Book"]]


@dataclasses.dataclass(frozen=True)
class Label:
    text: str
    colour: Union[str, Reference[str]] = "white"


# -- plugins


@plugin
def thickest(ctx: Context, books: Sequence[Book], *, least: int = 0) -> Optional[Book]:
    """The book with the most pages."""
    best: Optional[DynamicProxy] = None
    for book in books:
        if book.pages >= least and (best is None or book.pages > best.pages):
            best = book
    if best is None and ctx.get_environment_id() == "":
        raise PluginException("no book")
    return best


@plugin("print")
def shown(value: Any) -> None:
    LOGGER.info("%s", value)


@plugin(allow_unknown=True, commands=["sh"])
def known(value: object) -> bool:
    return not isinstance(value, Unknown)


@deprecated(replaced_by="shelf::thickest")
@plugin()
def first(books: Annotated[Sequence[DynamicProxy], ModelType["shelf::Book[]"]]) -> Book:
    return books[0]


@plugin
def labelled(label: Label, width: int, names: dict[str, str]) -> list[Label]:
    return [dataclasses.replace(label, text=label.text * width), Label(",".join(names))]


@plugin
def owner(ctx: Context, book: Book) -> str:
    try:
        return str(allow_reference_values(book).owner.name)
    except OptionalValueException:
        return "nobody"
    except UnsetException:
        raise


@plugin
def kinds(ctx: Context) -> str:
    kind = ctx.get_type("shelf::Book")
    assert isinstance(kind, Entity)
    relation = kind.get_attribute("owner")
    if isinstance(relation, RelationAttribute) and relation.end is not None:
        return f"{relation.low} {relation.high} {relation.end.name} {len(kind.get_all_instances())}"
    return str(Project.get().project_path)


def plain(value: object) -> object:
    if isinstance(value, SequenceProxy):
        return [plain(v) for v in value]
    if isinstance(value, DictProxy):
        return {k: plain(v) for k, v in value.items()}
    return value


# -- references


@reference("shelf::Secret")
class Secret(Reference[str]):
    def __init__(self, name: Union[str, Reference[str]]) -> None:
        super().__init__()
        self.name = name

    def resolve(self, logger: LoggerABC) -> str:
        name = self.resolve_other(self.name, logger)
        logger.debug("resolving %(name)s", name=name)
        return name.upper()


@mutator("shelf::Upper")
class Upper(Mutator):
    def __init__(self, resource: Resource, field: str) -> None:
        super().__init__()
        self.resource = resource
        self.field = field

    def run(self, logger: LoggerABC) -> None:
        self.resource[self.field] = str(self.resource[self.field]).upper()


@plugin
def secret(name: str) -> Reference[str]:
    return Secret(name)


# -- resources


@resource("shelf::Book", agent="shelf.host.name", id_attribute="title")
class BookResource(PurgeableResource, ManagedResource):
    fields: Sequence[str] = ("title", "pages", "content")
    title: str
    pages: int
    content: str

    @staticmethod
    def get_content(exporter: Exporter, entity: DynamicProxy) -> str:
        if entity.content is None:
            raise IgnoreResourceException()
        return exporter.upload_file(entity.content)


@resource("shelf::Scan", agent="name", id_attribute="name")
class Scan(DiscoveryResource):
    fields = ("name",)
    name: str


class Found(BaseModel):
    title: str
    pages: int = 0


@dependency_manager
def order(model: ModelDict, resources: ResourceDict) -> None:
    for ident, made in resources.items():
        if isinstance(made, BookResource):
            before = {other.copy(version=0) for other in resources if other.attribute_value < made.title}
            made.requires |= before - {Id("shelf::Book", ident.agent_name, "title", made.title)}


@export("titles", "shelf::Book")
def titles(exporter: Exporter, types: Mapping[str, Sequence[DynamicProxy]]) -> None:
    for book in types["shelf::Book"]:
        name = to_id(book)
        if name is not None:
            unknown_parameters.append({"resource": name, "parameter": "pages", "source": "fact"})


@finalizer
def end() -> None:
    LOGGER.debug("%d", depth.get())


# -- handlers


@provider("shelf::Book", name="shelf")
class BookHandler(CRUDHandler[BookResource]):
    def __init__(self, agent: AgentInstance, io: Optional[Any] = None) -> None:
        super().__init__(agent, io)
        self.environment: uuid.UUID = agent.environment

    def pre(self, ctx: HandlerContext, resource: BookResource) -> None:
        ctx.set("row", self.rows(resource.title)[0])

    @cache(ignore=["unused"], evict_after_last_access=30)
    def rows(self, title: str, unused: int = 0) -> list[str]:
        return [title]

    def read_resource(self, ctx: HandlerContext, resource: BookResource) -> None:
        if not ctx.contains("row"):
            raise ResourcePurged()
        if resource.title == "":
            raise SkipResource("no title")
        resource.pages = len(ctx.get("row"))
        ctx.set_fact("pages", str(resource.pages), expires=False)

    def create_resource(self, ctx: HandlerContext, resource: BookResource) -> None:
        content = self.get_file(resource.content)
        assert content is None or hash_file(content) == resource.content
        ctx.set_created()

    def update_resource(self, ctx: HandlerContext, changes: dict[str, dict[str, Any]], resource: BookResource) -> None:
        ctx.info("%(count)d changes", count=len(changes))
        ctx.set_updated()
        assert ctx.change is Change.updated

    def delete_resource(self, ctx: HandlerContext, resource: BookResource) -> None:
        ctx.set_purged()

    def facts(self, ctx: HandlerContext, resource: BookResource) -> dict[str, str]:
        return {"title": resource.title}


@provider("shelf::Shelf")
class ShelfHandler(ResourceHandler[Resource]):
    def check_resource(self, ctx: HandlerContext, resource: Resource) -> Resource:
        current: Resource = resource.clone(purged=False)
        return current

    def do_changes(self, ctx: HandlerContext, resource: Resource, changes: Mapping[str, Mapping[str, object]]) -> None:
        for name in changes:
            ctx.add_change(name, desired=resource[name], current=None)
        ctx.set_resource_state(HandlerResourceState.deployed)

    def deploy(self, ctx: HandlerContext, resource: Resource, requires: Mapping[str, ResourceState]) -> None:
        if all(state == ResourceState.deployed for state in requires.values()):
            super().deploy(ctx, resource, requires)


@provider("shelf::Scan")
class ScanHandler(DiscoveryHandler[Scan, Found]):
    def discover_resources(self, ctx: HandlerContext, discovery_resource: Scan) -> dict[str, Found]:
        return {f"shelf::Book[{discovery_resource.name},title=a]": Found(title="a")}


# -- the rest


def rest() -> tuple[str, object]:
    path: DictPath = to_path("a.b")
    answer = SyncClient("compiler").get_param(tid=uuid.UUID(int=1), id="x", resource_id="")
    PythonLogger(LOGGER).info("%(code)d", code=answer.code)
    value: str = Config.get("shelf", "name", "none")
    return value + str(parse_requirement("a>1").name), path.get_element({"a": {"b": 1}})
