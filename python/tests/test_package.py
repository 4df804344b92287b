"""The parts of the package that need no compiler: ``python -m unittest discover -s tests -t .``."""

from __future__ import annotations

import dataclasses
import decimal
import importlib.util
import json
import os
import sys
import typing
import unittest
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Optional, Union
from unittest import mock

from inmanta import ast, data, plugins, references, resources, util, validation_type
from inmanta.ast import type as asttype
from inmanta.config import Config, Option, is_bool, is_list, is_map
from inmanta.execute import proxy
from inmanta.execute.util import NoneValue, Unknown
from inmanta.warnings import InmantaWarning
from intendant_host import pairing, wire


@references.reference("t::Ref")
class Ref(references.Reference[str]):
    def __init__(self, name: Any, more: Any = None) -> None:
        super().__init__()
        self.name = name
        self.more = more

    def resolve(self, logger: Any) -> str:
        return f"<{self.resolve_other(self.name, logger)}>"


class Logger:
    def debug(self, msg: str, **kwargs: object) -> None:
        """Takes no notice."""


LATE = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
"""What makes annotations be evaluated late: nothing since Python 3.14, see PEP 649."""


class Late(unittest.TestCase):
    def test_annotations(self) -> None:
        space: dict[str, Any] = {"__name__": "inmanta_plugins.late"}
        exec(
            LATE
            + """
from inmanta.agent.handler import cache
from inmanta.data.model import BaseModel

class Base:
    a: int
    b: NotDefined

class Derived(Base):
    c: "Derived"

def function(x: int, y: NotDefined, *rest: Derived) -> AlsoNotDefined:
    pass

class Handler:
    @cache
    def method(self, one: NotDefined, two=2):
        pass
""",
            space,
        )
        plain = {name: getattr(hint, "__name__", hint) for name, hint in util._annotations_of(space["function"]).items()}
        self.assertEqual(plain, {"x": "int", "y": "NotDefined", "rest": "Derived", "return": "AlsoNotDefined"})
        self.assertEqual(set(util._annotations_of(space["Base"])), {"a", "b"})
        self.assertEqual(set(util._annotations_of(space["Derived"])), {"c"})
        self.assertEqual([p.name for p in util._parameters_of(space["function"])], ["x", "y", "rest"])
        self.assertEqual(util._annotations_of(len), {})


class References(unittest.TestCase):
    def test_identity(self) -> None:
        # The identity is part of what is stored: equal references must have it in every release.
        model = Ref("a").serialize()
        self.assertEqual(
            model.to_dict(),
            {
                "id": "29a5a481-36ee-309a-ab4f-e24b4fdb0e09",
                "type": "t::Ref",
                "args": [
                    {"type": "literal", "name": "name", "value": "a"},
                    {"type": "literal", "name": "more", "value": None},
                ],
            },
        )
        self.assertEqual(model.id.version, 3)
        self.assertEqual(model.id, Ref("a").serialize().id)
        self.assertNotEqual(model.id, Ref("b").serialize().id)

    def test_arguments(self) -> None:
        inner = Ref("x")
        model = Ref(inner, {"a": [1, inner], "b": str}).arguments
        self.assertIs(model["name"], inner)
        args = Ref(inner, {"a": [1, inner]}).serialize().to_dict()["args"]
        self.assertEqual(args[0], {"type": "reference", "name": "name", "id": str(inner.serialize().id)})
        self.assertEqual(args[1]["type"], "mjson")
        self.assertEqual(args[1]["value"], {"a": [1, None]})
        self.assertEqual(list(args[1]["references"]), ["$.'a'[1]"])
        self.assertEqual(Ref("x", [1, {"k": None}]).serialize().args[1].to_dict()["type"], "json")
        self.assertEqual(Ref("x", int).serialize().args[1].to_dict(), {"type": "python_type", "name": "more", "value": "int"})
        with self.assertRaisesRegex(ValueError, "not json serializable"):
            Ref("x", [object()]).serialize()
        with self.assertRaisesRegex(TypeError, "Unable to serialize argument `more`"):
            Ref("x", object()).serialize()

    def test_circle(self) -> None:
        a = Ref("a")
        a.name = Ref(a)
        with self.assertRaisesRegex(references.ReferenceCycleException, "Reference cycle detected"):
            a.serialize()

    def test_truth(self) -> None:
        with self.assertRaises(NotImplementedError):
            bool(Ref("a"))

    def test_unknown_names(self) -> None:
        with self.assertRaises(references.ReferenceMissingError):
            references.reference.get_class("t::Nope")
        with self.assertRaises(references.MutatorMissingError):
            references.mutator.get_class("t::Nope")

    def test_paths(self) -> None:
        target = {"a": [{"it's": 1}], "b": 2}
        for path in ("a[0].'it\\'s'", "$.a[0].'it\\'s'", "$['a'][0].\"it's\""):
            target = references.update_path(target, path, path)
            self.assertEqual(target["a"][0]["it's"], path)
        self.assertEqual(references.update_path({}, "$", 5), 5)
        with self.assertRaisesRegex(ValueError, "is not a path"):
            references.update_path({}, "a[", 1)

    def test_kinds(self) -> None:
        self.assertIs(Ref.get_reference_type(), str)
        self.assertTrue(references.is_reference_of(Ref("a"), str))
        self.assertFalse(references.is_reference_of("a", str))
        self.assertIsNone(references.unwrap_reference("a"))


@resources.resource("t::Thing", agent="agent", id_attribute="name")
class Thing(resources.PurgeableResource, resources.ManagedResource):
    fields = ("name", "values", "name")


class Instance:
    """Stands for an instance of the model."""

    def __init__(self, **values: Any) -> None:
        self.values = values
        self.type = "t::Thing"

    def read(self, name: str) -> Any:
        if name not in self.values:
            raise ast.NotFoundException(None, name)
        return self.values[name]

    def get_attribute(self, name: str) -> Any:
        return mock.Mock(get_value=lambda: self.read(name))


def view(**values: Any) -> Any:
    return proxy.DynamicProxy(Instance(**values))


class Resources(unittest.TestCase):
    def make(self, **values: Any) -> Any:
        given = {"name": "n", "agent": "a", "values": [], "purged": False, "purge_on_delete": False, "managed": True, **values}
        return resources.Resource.create_from_model(None, "t::Thing", view(**given))  # type: ignore[arg-type]

    def test_fields(self) -> None:
        self.assertEqual(
            Thing.fields,
            (
                *("send_event", "receive_events", "references", "mutators", "report_only"),
                *("purged", "purge_on_delete", "managed", "name", "values"),
            ),
        )

    def test_create(self) -> None:
        made = self.make(values=[1, {"k": Ref("x")}])
        self.assertEqual(str(made.id), "t::Thing[a,name=n]")
        self.assertEqual(made.values, [1, {"k": None}])
        self.assertEqual([r.type for r in made.references], ["t::Ref"])
        self.assertEqual(made.mutators[0].to_dict()["args"][2], {"type": "literal", "name": "destination", "value": "values[1].'k'"})
        self.assertEqual((made.send_event, made.receive_events, made.report_only), (False, True, False))

    def test_resolve(self) -> None:
        made = self.make(values=[1, {"k": Ref(Ref("x"))}])
        stored = json.loads(json.dumps(made.serialize(), default=lambda o: o.to_dict()))
        back: Any = resources.Resource.deserialize(stored)
        back.resolve_all_references(Logger())
        self.assertEqual(back.values, [1, {"k": "<<x>>"}])
        self.assertEqual(back.clone(purged=True).purged, True)

    def test_ignored_and_unknown(self) -> None:
        with self.assertRaises(resources.IgnoreResourceException):
            self.make(managed=False)
        made = self.make(values=Unknown("later"))
        self.assertEqual(made.unknowns, {"values"})
        with self.assertRaises(ast.UnknownException):
            self.make(name=Unknown("later"))
        with self.assertRaisesRegex(ast.ExternalException, "Failed to get attribute 'values' for export on 't::Thing'"):
            self.make(values=[Instance()])
        with self.assertRaisesRegex(resources.ResourceException, "should lead to a string, got 5"):
            self.make(agent=5)

    def test_like_a_dict(self) -> None:
        made = self.make()
        made["values"] = 3
        self.assertEqual((made["values"], made.get("nope", 1), "values" in made, dict(made.items())["name"]), (3, 1, True, "n"))
        for bad in (lambda: made["nope"], lambda: made.__setitem__("nope", 1)):
            self.assertRaises(KeyError, bad)
        with self.assertRaisesRegex(Exception, "Deleting fields"):
            del made["values"]

    def test_deserialize_faults(self) -> None:
        with self.assertRaisesRegex(TypeError, "No resource class registered for entity t::Nope"):
            resources.Resource.deserialize({"id": "t::Nope[a,b=c]"})
        with self.assertRaisesRegex(Exception, "does not have field send_event"):
            resources.Resource.deserialize({"id": "t::Thing[a,b=c]"})

    def test_ids(self) -> None:
        i = resources.Id.parse_id("a::b::C-d[agent,key=va=l,ue],v=12")
        self.assertEqual(list(i.to_dict().values()), ["a::b::C-d", "agent", "key", "va=l,ue", 12])
        self.assertEqual(str(i), "a::b::C-d[agent,key=va=l,ue],v=12")
        self.assertEqual((i.resource_str(), i.get_inmanta_module()), ("a::b::C-d[agent,key=va=l,ue]", "a"))
        self.assertEqual(i.copy(version=0), resources.Id.parse_id(i.resource_str()))
        self.assertTrue(resources.Id.is_resource_version_id(str(i)) and not resources.Id.is_resource_version_id(i.resource_str()))
        self.assertRaises(AttributeError, lambda: i.set_version(3))
        for bad in ("", "C[a,b=c]", "a::C[a]", "a::C[,b=c]"):
            self.assertRaises(ValueError, lambda bad=bad: resources.Id.parse_id(bad))
        for parts in (("a,b", "k", "v"), ("a", "k=", "v"), ("a", "k", "v]")):
            self.assertRaises(ValueError, lambda parts=parts: resources.Id("t::T", *parts))


class Proxies(unittest.TestCase):
    def test_reading(self) -> None:
        inner = Instance(x=1)
        p = view(a=1, none=NoneValue(), unknown=Unknown("s"), seq=[1, None], map={"k": inner}, ref=Ref("r"))
        self.assertEqual((p.a, p.none, list(p.seq), p.map["k"].x), (1, None, [1, None], 1))
        self.assertRaises(ast.UnknownException, lambda: p.unknown)
        self.assertFalse(hasattr(p, "nope"))
        with self.assertRaisesRegex(Exception, "Readonly object"):
            p.a = 2
        self.assertIsInstance(p.map, Mapping)
        self.assertNotIsInstance(p.seq, (list, Sequence))
        self.assertEqual(p.map["k"], view(map={"k": inner}).map["k"])
        self.assertIsInstance(proxy.DynamicProxy.unwrap(None), NoneValue)
        self.assertIs(proxy.DynamicProxy.unwrap([p.map["k"]])[0], inner)
        self.assertRaises(ast.RuntimeException, lambda: proxy.DynamicProxy.unwrap({1: 2}))
        self.assertEqual(json.dumps(p.seq, default=lambda o: o.json_serialization_step()), "[1, null]")

    def test_references(self) -> None:
        inside = proxy.DynamicProxy.return_value(Instance(ref=Ref("r"), l=[Ref("r")]), context=proxy.ProxyContext(path="arg"))
        with self.assertRaisesRegex(ast.UnexpectedReference, r"Encountered at arg\.ref"):
            inside.ref  # noqa: B018
        self.assertIsInstance(plugins.allow_reference_values(inside).ref, Ref)
        with self.assertRaisesRegex(ast.UnexpectedReference, r"Encountered at arg\.l\[0\]"):
            list(inside.l)
        with proxy.exportcontext:
            self.assertIsInstance(inside.ref, Ref)

    def test_iteration_goes_on(self) -> None:
        it, out = iter(view(seq=[1, Unknown("s"), 2]).seq), []
        while True:
            try:
                out.append(next(it))
            except ast.UnknownException:
                out.append("?")
            except StopIteration:
                break
        self.assertEqual(out, [1, "?", 2])


class Signatures(unittest.TestCase):
    def test_texts(self) -> None:
        for hint, want in (
            (str, "string"),
            ("string[]?", "string[]?"),
            ("m::E", "m::E"),
            ("any", "any"),
            (None, "null"),
            (list[int], "int[]"),
            (Sequence, "list"),
            (Sequence[Any], "any[]"),
            (dict[str, Any], "dict[string, any]"),
            (list[Optional[bool]], "bool?[]"),
            (list[Union[int, str]], "(int | string)[]"),
            (object, "any"),
            (dict[str, float], "dict[string, float]"),
            (Mapping, "dict"),
            (Optional[str], "string?"),
            (Union[int, str, None], "int | string | null"),
            (Annotated[Any, "else", plugins.ModelType["m::E[]"]], "m::E[]"),
            (Annotated[int, "else"], "int"),
            (Union[references.Reference[str], str], "Reference[string] | string"),
            (Ref, "Reference[string]"),
            (typing.Literal["a", "b"], "string"),
        ):
            with self.subTest(hint=hint):
                self.assertEqual(plugins.signature_of(hint).text, want)

    def test_faults(self) -> None:
        @dataclasses.dataclass(frozen=True)
        class Alone:
            x: int

        hint: Any
        for hint in (Union, 5, ..., Optional, typing.NoReturn, typing.TypeVar("T"), [int]):
            with self.subTest(hint=hint), self.assertRaises(ast.InvalidTypeAnnotation):
                plugins.signature_of(hint)
        for hint in (set[int], dict[int, str], Alone, list[set[int]], typing.MutableSequence[int], typing.MutableMapping[str, int]):
            with self.subTest(hint=hint), self.assertRaises(ast.TypingException) as caught:
                plugins.signature_of(hint)
            self.assertNotIsInstance(caught.exception, ast.InvalidTypeAnnotation)
        for hint in ("", "any[]", "any?", "int?[]", "int[][]", "string??", "int | string", "dict[string, int]", "Reference[int]", " int"):
            with self.subTest(hint=hint), self.assertRaises(ast.TypeNotFoundException):
                plugins.signature_of(hint)

    def test_read_as_any(self) -> None:
        for hint in (bytes, set, tuple, tuple[int], decimal.Decimal, frozenset, proxy.DynamicProxy):
            with self.subTest(hint=hint), self.assertWarnsRegex(InmantaWarning, "It is read as 'any'"):
                self.assertEqual(plugins.signature_of(hint).text, "any")

    def test_outside_a_module(self) -> None:
        with self.assertRaisesRegex(Exception, "should be loaded in the inmanta_plugins package"):
            plugins.plugin(lambda: None)


class Pairing(unittest.TestCase):
    def test_corresponds(self) -> None:
        for model, given, want in (
            ("int", "int", True),
            ("int", "any", True),
            ("int", "int | Reference[int]", True),
            ("int", "Reference[int]", False),
            ("int", "int | Reference[any]", False),
            ("int", "int | Reference[string]", False),
            ("int", "bool", False),
            ("int", "int | string", False),
            ("int", "int?", False),
            ("int?", "int?", True),
            ("int?", "int", False),
            ("int?", "int | null | Reference[int]", False),
            ("float", "int", False),
            ("number", "number", True),
            ("number", "int", True),
            ("number", "float", True),
            ("number", "int | float", False),
            ("list", "list", False),
            ("list", "any[]", True),
            ("list", "string[]", True),
            ("dict", "dict", True),
            ("dict", "dict[string, int]", True),
            ("dict", "dict?", False),
            ("dict?", "dict?", True),
            ("int[]", "int[]", True),
            ("int[]", "list", False),
            ("int[]", "any[]", True),
            ("int[]", "float[]", False),
            ("int[]", "(int | Reference[int])[]", True),
            ("int[]", "int[] | Reference[int[]]", True),
            ("int[]?", "int[]?", True),
        ):
            with self.subTest(model=model, given=given):
                self.assertIs(pairing.corresponds(model, given), want)


class Types(unittest.TestCase):
    def test_validate(self) -> None:
        for name, good, bad in (
            ("string", "x", 1),
            ("int", True, 1.5),
            ("float", 1.0, 1),
            ("bool", True, 1),
            ("string[]?", None, [1]),
            ("int[]", [1, 2], "x"),
        ):
            with self.subTest(name=name):
                kind = asttype.resolve_type(name)
                self.assertTrue(kind.validate(good))
                self.assertTrue(str(kind), name)
                self.assertRaises(ast.RuntimeException, lambda kind=kind, bad=bad: kind.validate(bad))
        self.assertEqual(asttype.TYPES["int"].cast("7"), 7)  # type: ignore[attr-defined]
        self.assertRaises(ast.RuntimeException, lambda: asttype.TYPES["int"].cast("x"))  # type: ignore[attr-defined]


class Settings(unittest.TestCase):
    def test_precedence(self) -> None:
        Config._reset()
        self.addCleanup(Config._reset)
        self.assertEqual(Config.get("a-section", "some-name", "d"), "d")
        Config.set("a_section", "some_name", "v")
        self.assertEqual(Config.get("a-section", "some-name"), "v")
        self.assertTrue(Config.is_set("a-section", "some_name"))
        with mock.patch.dict(os.environ, {"INMANTA_A_SECTION_SOME_NAME": "e"}):
            self.assertEqual(Config.get("a-section", "some-name"), "e")
        number: Option[bool] = Option("a-section", "flag", "false", "", is_bool)
        self.assertFalse(number.get())
        number.set("yes")
        self.assertTrue(number.get())
        self.assertEqual((is_list("a, b"), is_map("a=1,b=2")), (["a", "b"], {"a": "1", "b": "2"}))
        self.assertRaises(ValueError, lambda: is_bool("maybe"))


class Validation(unittest.TestCase):
    def test_types(self) -> None:
        with self.assertRaisesRegex(ValueError, "Unknown type os.path"):
            validation_type.validate_type("os.path", "x")
        validation_type.validate_type("inmanta.validation_type.regex_string", "a+")
        with self.assertRaisesRegex(ValueError, "invalid regular expression"):
            validation_type.validate_type("inmanta.validation_type.regex_string", "a(")
        if importlib.util.find_spec("pydantic") is None:
            return  # the types are pydantic's
        validation_type.validate_type("ipaddress.IPv4Address", "10.0.0.1")
        validation_type.validate_type("pydantic.constr", "abc", {"regex": "a.c"})
        for name, value, parameters in (
            ("ipaddress.IPv4Address", "10.0.0.300", None),
            ("pydantic.constr", "abd", {"regex": "a.c"}),
            ("pydantic.conint", 7, {"gt": 10}),
            ("pydantic.Nothing", 1, None),
        ):
            with self.subTest(name=name), self.assertRaises(ValueError):
                validation_type.validate_type(name, value, parameters)


class Older(unittest.TestCase):
    def test_data(self) -> None:
        for text, want in (("yes", True), ("1", True), (True, True), ("off", False), ("False", False)):
            with self.subTest(text=text):
                self.assertIs(data.convert_boolean(text), want)
        with self.assertRaisesRegex(ValueError, "Not a boolean: maybe"):
            data.convert_boolean("maybe")
        self.assertEqual(data.AUTOSTART_AGENT_MAP, "autostart_agent_map")


class Wire(unittest.TestCase):
    def test_describe(self) -> None:
        class Odd(Exception):
            def __str__(self) -> str:
                raise ValueError

        self.assertIn("no text", wire.describe(Odd())["message"])
        self.assertEqual(wire.describe(KeyError("k"))["class"], "KeyError")

    def test_nested(self) -> None:
        to_us, from_them = os.pipe()
        to_them, from_us = os.pipe()
        peer = wire.Peer(read_fd=to_us, write_fd=from_us)
        for fd in (to_us, from_us):
            self.assertFalse(os.get_inheritable(fd))
        self.assertRaises(wire.ClosedError, lambda: peer.call("anything"))
        frame = json.dumps({"id": 1, "call": "nope", "args": None}).encode()
        os.write(from_them, len(frame).to_bytes(4, "big") + frame)
        os.close(from_them)
        peer.serve()
        size = int.from_bytes(os.read(to_them, 4), "big")
        answer = json.loads(os.read(to_them, size))
        self.assertEqual((answer["id"], answer["error"]["class"]), (1, "LookupError"))


class Identity(unittest.TestCase):
    def test_uuid(self) -> None:
        if sys.version_info >= (3, 12):
            import hashlib

            args: list[references.Argument] = []
            data = json.dumps({"type": "t", "args": args}, sort_keys=True)
            want = uuid.uuid3(uuid.NAMESPACE_OID, hashlib.md5(data.encode()).digest())
            self.assertEqual(references.compute_reference_or_mutator_id("t", args), want)


if __name__ == "__main__":
    unittest.main()
