"""Says which attributes of a shelf agents get. What they do with them is not Python's business: see the handler program."""

from inmanta.execute.proxy import DynamicProxy
from inmanta.export import Exporter
from inmanta.resources import PurgeableResource, resource


@resource("shop::Shelf", agent="shop.name", id_attribute="name")
class Shelf(PurgeableResource):
    fields = ("name", "width", "goods", "stock")

    @staticmethod
    def get_stock(_exporter: Exporter, shelf: DynamicProxy) -> str:
        return shelf.shop.stock
