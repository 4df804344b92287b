"""The module ``unittest``, which every test project has: resources that live in memory, for trying out a model's reactions."""

MODEL = '''"""Resources that live in the memory of the test."""

entity Resource extends std::PurgeableResource:
    """
        A resource of which a test sees and sets the state.

        :attr skip: the handler skips it
        :attr fail: the handler fails, even in a dry run
        :attr fail_deploy: the handler fails when there is something to change
        :attr wrong_diff: the handler always sees a difference
    """
    string name
    string desired_value
    bool skip=false
    bool fail=false
    bool fail_deploy=false
    bool wrong_diff=false
    string agent="internal"
end

index Resource(name)

implement Resource using std::none

entity ResourceA extends Resource:
end

implement ResourceA using std::none

entity IgnoreResource extends std::PurgeableResource:
    """ A resource that is left out when the model is exported: a field says so. """
    string name
    string desired_value
    string agent="internal"
end

index IgnoreResource(name)

implement IgnoreResource using std::none

entity IgnoreResourceInIdAttr extends std::PurgeableResource:
    """ A resource that is left out when the model is exported: the field of its id says so. """
    string name
    string desired_value
    string agent="internal"
end

index IgnoreResourceInIdAttr(name)

implement IgnoreResourceInIdAttr using std::none
'''

CODE = '''"""Resources that live in the memory of the test."""

from inmanta.agent.handler import CRUDHandler, ResourcePurged, SkipResource, provider
from inmanta.resources import IgnoreResourceException, PurgeableResource, resource
from pytest_inmanta.handler import DATA


@resource("unittest::Resource", id_attribute="name", agent="agent")
class Resource(PurgeableResource):
    fields = ("name", "desired_value", "skip", "fail", "fail_deploy", "wrong_diff")


@resource("unittest::ResourceA", id_attribute="name", agent="agent")
class ResourceA(Resource):
    pass


@resource("unittest::IgnoreResource", id_attribute="name", agent="agent")
class IgnoreResource(PurgeableResource):
    fields = ("name", "desired_value")

    @staticmethod
    def get_desired_value(exporter, entity):
        raise IgnoreResourceException()


@resource("unittest::IgnoreResourceInIdAttr", id_attribute="name", agent="agent")
class IgnoreResourceInIdAttr(PurgeableResource):
    fields = ("name", "desired_value")

    @staticmethod
    def get_name(exporter, entity):
        raise IgnoreResourceException()


@provider("unittest::Resource", name="memory")
@provider("unittest::ResourceA", name="memory")
class MemoryHandler(CRUDHandler):
    def read_resource(self, ctx, resource):
        if resource.skip:
            raise SkipResource("the test asks for it")
        if resource.fail:
            raise Exception("the test asks for it")
        if resource.name not in DATA:
            raise ResourcePurged()
        for key, value in DATA[resource.name].items():
            setattr(resource, key, value)

    def calculate_diff(self, ctx, current, desired):
        if desired.wrong_diff:
            return {"desired_value": {"current": "this", "desired": "that"}}
        return super().calculate_diff(ctx, current, desired)

    def _change(self, resource):
        if resource.fail_deploy:
            raise Exception("the test asks for it")

    def create_resource(self, ctx, resource):
        self._change(resource)
        DATA[resource.name] = {"desired_value": resource.desired_value}
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self._change(resource)
        DATA[resource.name]["desired_value"] = resource.desired_value
        ctx.set_updated()

    def delete_resource(self, ctx, resource):
        self._change(resource)
        del DATA[resource.name]
        ctx.set_purged()


@provider("unittest::IgnoreResource", name="none")
@provider("unittest::IgnoreResourceInIdAttr", name="none")
class NothingHandler(CRUDHandler):
    pass
'''
