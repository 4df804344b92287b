"""Makes resources of instances, and runs dependency managers and export functions."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import uuid
from typing import Any

from inmanta import ast, export, resources
from inmanta.execute import proxy, runtime
from inmanta.execute.util import Unknown
from intendant_host.bridge import Host, TypeTable, host, plain
from intendant_host.faults import describe


def _encode_json(value: Any) -> Any:
    if isinstance(value, (proxy.SequenceProxy, proxy.DictProxy)):
        return value.json_serialization_step()
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.timezone.utc)
        return value.isoformat(timespec="microseconds")
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, Exception):
        return str(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if type(value).__name__ in ("AnyUrl", "Url", "HttpUrl"):
        return str(value)
    raise TypeError(f"{value!r} is not JSON serializable")


def export_resources(args: dict[str, Any]) -> Any:
    """Makes the resources of the instances of one type."""
    h = host()
    h.take(args)
    out = []
    for instance in args["i"]:
        out.append(_export(h, args["n"], instance))
    h.tell_environment()
    return out


def _export(h: Host, name: str, instance: runtime.Instance) -> dict[str, Any]:
    view = proxy.DynamicProxy.return_value(instance, context=proxy.ProxyContext(path=f"<{instance!r}>"))
    try:
        made = resources.Resource.create_from_model(h.exporter, name, view)
    except ast.UnknownException:
        return {"s": "unknown"}
    except resources.IgnoreResourceException:
        return {"s": "ignored"}
    except ast.OptionalValueException as e:
        return {"s": "fault", "e": describe(e)}
    except Exception as e:
        return {"s": "fault", "e": describe(e)}
    if made.id in h.exporter._resources and made.id not in h.known:
        text = f"Resource {made.id} exists more than once in the configuration model"
        return {"s": "fault", "e": describe(ast.CompilerException(text))}
    out = _written(made)
    if out["s"] == "made":
        h.exporter._resources[made.id] = made
        h.known.add(made.id)
        h.made.setdefault(instance, []).append(made)
    return out


def _unwritable(fields: dict[str, Any]) -> str:
    """The name of the first field whose value has no form in JSON."""
    for name, value in fields.items():
        try:
            json.dumps(value, default=_encode_json, allow_nan=False)
        except (TypeError, ValueError):
            return name
    return "?"


def added(args: Any) -> list[dict[str, Any]]:
    """The resources that Python code added by itself, which no instance stands for."""
    h = host()
    out = []
    for ident, r in list(h.exporter._resources.items()):
        if ident not in h.known:
            h.known.add(ident)
            found = _written(r)
            try:
                found["r"] = sorted({_required(x) for x in r.requires})
            except Exception as e:
                found = {"s": "fault", "e": describe(e)}
            out.append(found)
    return out


def _written(made: resources.Resource) -> dict[str, Any]:
    """A resource as the compiler takes it."""
    unknown = []
    fields: dict[str, Any] = {}
    for field in type(made).fields:
        value = getattr(made, field, None)
        if isinstance(value, Unknown):
            unknown.append(field)
            value = "<<undefined>>"
        elif field in ("references", "mutators") and not value:
            continue
        fields[field] = value
    try:
        text = json.dumps(fields, default=_encode_json, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        return {
            "s": "fault",
            "e": {"class": "ValueError", "message": "a field contains itself", "traceback": "", "data": {"kind": "other"}},
        }
    except (TypeError, ValueError) as e:
        text = f"field {_unwritable(fields)} of resource {made.id} can not be exported: {e}"
        return {"s": "fault", "e": {"class": type(e).__name__, "message": text, "traceback": "", "data": {"kind": "compiler"}}}
    return {"s": "made", "id": made.id.resource_str(), "u": unknown, "j": text}


def to_id(args: dict[str, Any]) -> Any:
    """The id of the resource of one type that is made of an instance."""
    h = host()
    h.take(args)
    cls, options = resources.resource.get_class(args["n"])
    if cls is None or options is None:
        return None
    view = proxy.DynamicProxy.return_value(args["i"], context=proxy.ProxyContext(path=f"<{args['i']!r}>"))
    try:
        return str(cls.object_to_id(view, args["n"], options["name"], options["agent"]))
    except (ast.UnknownException, resources.IgnoreResourceException):
        return None


def run_managers(args: dict[str, Any]) -> Any:
    """Runs the dependency managers. Resources are [id, instance, requires, fields]; fields is null for those made here."""
    h = host()
    h.take(args)
    for rid, instance, requires, fields in args["r"]:
        ident = resources.Id.parse_id(rid)
        found = h.exporter._resources.get(ident)
        if found is None:
            found = foreign_resource(ident, fields or {})
            h.exporter._resources[ident] = found
        h.known.add(ident)
        if instance is not None:
            found.model = proxy.DynamicProxy.return_value(instance, context=proxy.ProxyContext(path=f"<{instance!r}>"))
        found.requires = {resources.Id.parse_id(r) for r in requires}
    table = h.exporter._resources
    for r in table.values():
        r.resource_requires = {table[x] for x in r.requires if x in table}
    before = {str(k): {str(x) for x in r.requires} for k, r in table.items()}
    kinds = TypeTable(h)
    h.exporter.types = kinds
    faults = []
    for manager in export.Exporter.get_dependency_managers():
        try:
            manager(kinds, table)
        except ast.UnknownException:
            continue
        except Exception as e:
            faults.append(describe(e))
    changed = {}
    for ident, r in table.items():
        if ident not in h.known:
            continue  # one that was added
        try:
            after = {_required(x) for x in r.requires}
        except Exception as e:
            faults.append(describe(e))
            continue
        if after != before[str(ident)]:
            changed[ident.resource_str()] = sorted(after)
    h.tell_environment()
    return {"changed": changed, "faults": faults}


def _required(r: Any) -> str:
    if isinstance(r, str):
        return resources.Id.parse_id(r).resource_str()
    if isinstance(r, resources.Resource):
        return r.id.resource_str()
    if isinstance(r, resources.Id):
        return r.resource_str()
    raise Exception(
        f"A dependency manager inserted the object {r!r} of type {type(r)} into a requires relation. "
        "However, only string, Resource or Id are allowable types"
    )


def foreign_resource(ident: resources.Id, fields: dict[str, Any]) -> resources.Resource:
    """Stands for a resource that the compiler made itself."""
    base = dict.fromkeys([*resources.Resource.fields, *fields])
    cls: Any = resources.ResourceMeta(ident.entity_type.rpartition("::")[2], (resources.Resource,), {"fields": tuple(base)})
    made: resources.Resource = cls(ident)
    for name, value in fields.items():
        setattr(made, name, plain(value))
    return made


def run_export(args: dict[str, Any]) -> Any:
    """Runs an export function."""
    h = host()
    name = args["n"]
    functions = export.Exporter.get_export_functions()
    if name not in functions:
        raise Exception(f"Export function {name} does not exist.")
    kinds, function = functions[name]
    table = TypeTable(h)
    h.exporter.types = table
    with proxy.exportcontext:
        if kinds:
            found = {
                k: [
                    proxy.DynamicProxy.return_value(i, context=proxy.ProxyContext(path=f"<{i!r}>"))
                    for i in (table[k].get_all_instances() if k in table else [])
                ]
                for k in kinds
            }
            function(h.exporter, types=found)
        else:
            function(h.exporter)
    return None
