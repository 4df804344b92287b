"""Proxies for templates that modules render with Jinja themselves: what has no value is undefined there, not an exception."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import jinja2.runtime
import jinja2.utils

from inmanta.ast import NotFoundException, OptionalValueException, PluginException
from inmanta.execute import proxy
from inmanta.references import Reference


class JinjaDynamicProxy(proxy.DynamicProxy):
    """A view of an instance for templates, around a plain proxy."""

    def __init__(self, instance: proxy.DynamicProxy) -> None:
        super().__init__(instance._get_instance(), context=instance._get_context())
        object.__setattr__(self, "__delegate", instance)

    def _get_delegate(self) -> Any:
        return object.__getattribute__(self, "__delegate")

    @classmethod
    def return_value(cls, value: object, *, context: Optional[proxy.ProxyContext] = None) -> Any:
        """The value for a template."""
        if context is None:
            context = proxy.ProxyContext(path=object.__repr__(value), validated=False)
        if isinstance(value, Reference):
            raise PluginException(f"Encountered reference in Jinja template for variable {context.path} (= `{value!r}`)")
        return cls.wrap(super().return_value(value, context=context))

    def _return_value(self, value: object, *, relative_path: str) -> Any:
        return self.wrap(self._get_delegate()._return_value(value, relative_path=relative_path))

    @classmethod
    def wrap(cls, value: Any) -> Any:
        """A view for templates of a proxy; anything else as it is."""
        if not isinstance(value, proxy.DynamicProxy) or isinstance(value, JinjaDynamicProxy):
            return value
        for kind, view in _VIEWS:
            if isinstance(value, kind):
                return view(value)
        return JinjaDynamicProxy(value)

    def __getattr__(self, name: str) -> Any:
        instance = self._get_instance()
        if not hasattr(instance, "get_attribute"):
            return self._return_value(getattr(instance, name), relative_path="." + name)
        try:
            return self.wrap(getattr(self._get_delegate(), name))
        except (AttributeError, OptionalValueException):
            return jinja2.runtime.Undefined(f"variable {name} not set on {instance}", instance, name)


class JinjaIteratorProxy(JinjaDynamicProxy):
    """A view of an iteration."""

    def _is_sequence(self) -> bool:
        return bool(self._get_delegate()._is_sequence())

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.wrap(next(self._get_delegate()))


class JinjaGetItemProxy(JinjaDynamicProxy):
    """A view of a list or dict."""

    def __getitem__(self, key: Any) -> Any:
        return self.wrap(self._get_delegate()[key])

    def __iter__(self) -> Any:
        return self.wrap(iter(self._get_delegate()))

    def __len__(self) -> int:
        return len(self._get_delegate())


class JinjaSequenceProxy(JinjaGetItemProxy):
    """A view of a list."""


class JinjaDictProxy(JinjaGetItemProxy):
    """A view of a dict."""


class JinjaCallProxy(JinjaDynamicProxy):
    """A view of something that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._return_value(self._get_delegate()(*args, **kwargs), relative_path="(...)")


_VIEWS: list[tuple[type, Any]] = [
    (proxy.SequenceProxy, JinjaSequenceProxy),
    (proxy.DictProxy, JinjaDictProxy),
    (proxy.IteratorProxy, JinjaIteratorProxy),
    (proxy.CallProxy, JinjaCallProxy),
]


class ResolverContext(jinja2.runtime.Context):
    """Looks names up in the scope of the call; the resolver is the variable ``{{resolver``."""

    def resolve_or_missing(self, key: str) -> Any:
        try:
            variable = self.parent["{{resolver"].lookup(key)
        except NotFoundException:
            return super().resolve_or_missing(key)
        try:
            return JinjaDynamicProxy.return_value(variable.get_value(), context=proxy.ProxyContext(path=key, validated=False))
        except OptionalValueException:
            return jinja2.utils.missing


class EmptyResolver:
    """Finds nothing, for templates whose variables are given."""

    def lookup(self, key: str) -> Any:
        """Always raises NotFoundException."""
        raise NotFoundException(None, key)
