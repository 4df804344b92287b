"""The resource notes::Note and its handler."""

import os

from inmanta.agent.handler import CRUDHandler, HandlerContext, ResourcePurged, provider
from inmanta.execute.proxy import DynamicProxy
from inmanta.export import Exporter
from inmanta.resources import PurgeableResource, resource

from inmanta_plugins.notes import slug


@resource("notes::Note", agent="folder.machine", id_attribute="path")
class Note(PurgeableResource):
    fields = ("path", "text")

    path: str
    text: str

    @staticmethod
    def get_path(_exporter: Exporter, note: DynamicProxy) -> str:
        """The entity has no attribute path: it is made of two others."""
        return os.path.join(note.folder.path, slug(note.title) + ".txt")


@provider("notes::Note", name="file")
class NoteHandler(CRUDHandler[Note]):
    def read_resource(self, ctx: HandlerContext, resource: Note) -> None:
        try:
            with open(resource.path, encoding="utf-8") as file:
                resource.text = file.read()
        except FileNotFoundError:
            raise ResourcePurged() from None
        self._count(ctx, resource)

    def create_resource(self, ctx: HandlerContext, resource: Note) -> None:
        os.makedirs(os.path.dirname(resource.path), exist_ok=True)
        self._write(ctx, resource)
        ctx.set_created()

    def update_resource(self, ctx: HandlerContext, changes: dict, resource: Note) -> None:
        self._write(ctx, resource)
        ctx.set_updated()

    def delete_resource(self, ctx: HandlerContext, resource: Note) -> None:
        os.unlink(resource.path)
        ctx.set_purged()

    def _write(self, ctx: HandlerContext, resource: Note) -> None:
        with open(resource.path, "w", encoding="utf-8") as file:
            file.write(resource.text)
        self._count(ctx, resource)

    def _count(self, ctx: HandlerContext, resource: Note) -> None:
        ctx.set_fact("words", str(len(resource.text.split())), expires=False)
