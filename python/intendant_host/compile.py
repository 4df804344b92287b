"""Serves one compile: loads the Python code of modules, runs plugins, and makes resources of instances."""

from __future__ import annotations

import inspect
import json
import logging
import sys
from typing import Any

from inmanta import ast, compiler, export, plugins
from inmanta.execute import proxy, runtime
from inmanta.execute.util import Unknown
from intendant_host import pairing, wire
from intendant_host.bridge import host, serve
from intendant_host.exporting import added, export_resources, run_export, run_managers, to_id
from intendant_host.faults import describe
from intendant_host.loading import load

_POSITIONAL = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


def call_plugin(args: dict[str, Any]) -> Any:
    """Runs a plugin once."""
    h = host()
    h.take(args)
    p = h.plugins[args["p"]]
    p.check_requirements()
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    # With *args the others have to take their places, and a wrapper of the module's own may count on them; otherwise what is left
    # out leaves no hole when all go by name.
    places = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)
    any_args = any(a.kind in places for a in p.arguments) or type(p).call is not plugins.Plugin.call
    result = None
    if p._context_name is not None:
        result = runtime.ResultVariable()
        context = plugins.Context(h, p, result)
        if not any_args or p._context < 0:
            keywords[p._context_name] = context
    for a, v in zip(p.arguments, args["v"]):
        if any_args and p._context == len(positional):
            positional.append(context)
        convert = a.signature.convert if a.signature is not None else None
        if v is inspect.Parameter.empty:
            if any_args and a.kind in _POSITIONAL:
                positional.append(a.default)
            continue
        if a.kind is inspect.Parameter.VAR_POSITIONAL:
            positional.extend(_argument(p, x, convert, f"{a.name}[{i}]") for i, x in enumerate(v))
        elif a.kind is inspect.Parameter.VAR_KEYWORD:
            keywords.update({k: _argument(p, x, convert, k) for k, x in v.items()})
        elif any_args and a.kind in _POSITIONAL:
            positional.append(_argument(p, v, convert, a.name))
        else:
            keywords[a.name] = _argument(p, v, convert, a.name)
    if any_args and p._context == len(positional):
        positional.append(context)
    returned = p.call(*positional, **keywords)
    if p.emit_statement():
        if result is None or not result.has_value:
            raise ast.RuntimeException(None, f"plugin {p.get_full_name()} has emits_statements but did not set context.result")
        returned = result.value
    encoded = h.encode(returned)
    if result is not None and result.has_value and h.encode(result.value) != encoded:
        raise ast.DoubleSetException(result, None, returned, None)
    return encoded


def pair_dataclasses(args: dict[str, Any]) -> list[dict[str, Any]]:
    """Pairs the dataclasses of the model with those of Python and tells where they differ."""
    h = host()
    h.take(args)
    out = []
    for name, attributes in args["d"]:
        found = pairing.pair(name, attributes)
        if found["paired"] and not found["faults"]:
            pairing.class_of_entity(name)._paired_inmanta_entity = h.entity_by_name[name]
            h.dataclass_names.add(name.rpartition("::")[2])
        out.append(found)
    return out


def _convert(p: plugins.Plugin, value: Any, convert: Any, path: str, context: proxy.ProxyContext) -> Any:
    """Makes a value Python's own. That it can not be is for the caller as if it were of the wrong type."""
    try:
        return convert(value, context)
    except ast.UnexpectedReference as e:
        text = "contains a reference. To allow references, use `| Reference[...]` in your type annotation."
        raise ast.PluginTypeException(None, f"Value {value!r} for argument {path} of plugin {p.get_full_name()} {text}", e)
    except ast.TypingException as e:
        text = f"Value {value!r} for argument {path} of plugin {p.get_full_name()} has an incompatible value inside."
        raise ast.PluginTypeException(None, text, e)


def _argument(p: plugins.Plugin, value: Any, convert: Any, path: str) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return runtime.marked.get(value, value) if isinstance(value, str) else value
    if isinstance(value, Unknown):
        return value  # only plugins that allow unknowns get one
    context = proxy.ProxyContext(path=path)
    if convert is not None:
        return _convert(p, value, convert, path, context)
    return proxy.DynamicProxy.return_value(value, context=context)


def finalize(args: Any) -> Any:
    """Runs the finalizers."""
    faults = []
    for fnc in compiler.Finalizers.get_functions():
        try:
            fnc()
        except BaseException as e:
            faults.append(describe(e))
    compiler.Finalizers.reset_finalizers()
    host().tell_environment()
    return {"faults": faults, "unknowns": _unknown_parameters()}


def _unknown_parameters() -> list[list[str]]:
    return [[str(u.get("resource", "")), str(u.get("parameter", "")), str(u.get("source", "fact"))] for u in export.unknown_parameters]


def main() -> None:
    """Serves until the compiler closes the connection."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    decoder = json.JSONDecoder(object_hook=lambda d: host().hook(d))
    peer = wire.Peer(decoder=decoder, describe=describe)
    serve(peer)
    peer.handshake()
    peer.handle("load", load)
    peer.handle("pair", pair_dataclasses)
    peer.handle("plugin", call_plugin)
    peer.handle("export", export_resources)
    peer.handle("to_id", to_id)
    peer.handle("managers", run_managers)
    peer.handle("added", added)
    peer.handle("export_function", run_export)
    peer.handle("finalize", finalize)
    peer.serve()
