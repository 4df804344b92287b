"""A cache that the handlers of one agent share from one operation to the next."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Optional, Set, Type

LOGGER = logging.getLogger(__name__)

DEFAULT_EVICT_AFTER_LAST_ACCESS = 60.0
"""How many seconds an entry is kept after its last use when nothing else was asked for."""

LEGACY_TIMEOUT = 5000.0
"""How many seconds an entry is kept that was asked for with for_version=False and no timeout."""


class CacheItem:
    """One value with its time to live, in seconds; 0 is no limit. Both limits set: the earlier counts."""

    def __init__(
        self,
        key: str,
        value: Any,
        call_on_delete: Optional[Callable[[Any], None]],
        evict_after_last_access: float,
        evict_after_creation: float,
    ) -> None:
        self.key = key
        self.value = value
        self.call_on_delete = call_on_delete
        self.evict_after_last_access = evict_after_last_access
        self.created = time.monotonic()
        self._latest = self.created + evict_after_creation if evict_after_creation > 0 else float("inf")
        self.expiry_time = 0.0
        self._deleted = False
        self.refresh(self.created)

    def refresh(self, now: float) -> None:
        """Note a use."""
        idle = now + self.evict_after_last_access if self.evict_after_last_access > 0 else float("inf")
        self.expiry_time = min(self._latest, idle)

    def expired(self, now: float) -> bool:
        """Tell whether the item's time is over."""
        return now >= self.expiry_time

    def __lt__(self, other: CacheItem) -> bool:
        return self.expiry_time < other.expiry_time

    def delete(self) -> None:
        """Give the value to whoever wants to clean up after it, once. What goes wrong there is only logged."""
        if self._deleted:
            return
        self._deleted = True
        if self.call_on_delete is None:
            return
        try:
            self.call_on_delete(self.value)
        except Exception:
            LOGGER.exception("cleaning up after the cached value %s", self.key)


class AgentCache:
    """The cache of one agent.

    Entries that are used in an operation, which is the body of a with statement over the cache, do not expire in it. Their
    idle time begins at its end.
    """

    def __init__(self, agent_instance: Optional[object] = None) -> None:
        self._agent = agent_instance
        self._lock = threading.RLock()
        self._items: Dict[str, CacheItem] = {}
        self._key_locks: Dict[str, threading.RLock] = {}
        self._used: Set[str] = set()
        self._depth = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self.clean_stale_entries()
            self._depth += 1

    def __exit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_val: Optional[BaseException],
        exc_tb: Optional[TracebackType],
    ) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self.touch_used_cache_items()

    def touch_used_cache_items(self) -> None:
        """Begin the idle time of everything that was used."""
        now = time.monotonic()
        with self._lock:
            for key in self._used:
                item = self._items.get(key)
                if item is not None:
                    item.refresh(now)
            self._used.clear()

    def clean_stale_entries(self) -> None:
        """Drop what is over its time."""
        now = time.monotonic()
        with self._lock:
            stale = [key for key, item in self._items.items() if key not in self._used and item.expired(now)]
        for key in stale:
            self._evict_item(key)

    def close(self) -> None:
        """Drop everything."""
        with self._lock:
            keys = list(self._items)
        for key in keys:
            self._evict_item(key)

    def _evict_item(self, key: str) -> None:
        with self._lock:
            item = self._items.pop(key, None)
            self._used.discard(key)
        if item is not None:
            item.delete()

    def _get_key(self, key: str, resource: Optional[Any]) -> str:
        if resource is None:
            return key
        return f"{key}__{resource.id.resource_str()}"

    def _get(self, key: str) -> CacheItem:
        now = time.monotonic()
        with self._lock:
            item = self._items[key]
            if key in self._used or not item.expired(now):
                if self._depth > 0:
                    self._used.add(key)
                else:
                    item.refresh(now)
                return item
        self._evict_item(key)
        raise KeyError(key)

    def cache_value(
        self,
        key: str,
        value: Any,
        evict_after_last_access: float = DEFAULT_EVICT_AFTER_LAST_ACCESS,
        evict_after_creation: float = 0,
        resource: Optional[Any] = None,
        call_on_delete: Optional[Callable[[Any], None]] = None,
    ) -> None:
        """Keep a value; one that was there under the same key is dropped."""
        full = self._get_key(key, resource)
        item = CacheItem(full, value, call_on_delete, evict_after_last_access, evict_after_creation)
        with self._lock:
            old = self._items.pop(full, None)
            self._items[full] = item
            if self._depth > 0:
                self._used.add(full)
        if old is not None and old.value is not value:
            old.delete()

    def find(self, key: str, resource: Optional[Any] = None) -> Any:
        """Return a kept value. KeyError: there is none, or its time is over."""
        return self._get(self._get_key(key, resource)).value

    def get_or_else(
        self,
        key: str,
        function: Callable[..., Any],
        for_version: Optional[bool] = None,
        timeout: Optional[int] = None,
        evict_after_last_access: float = DEFAULT_EVICT_AFTER_LAST_ACCESS,
        evict_after_creation: float = 0.0,
        ignore: Iterable[str] = frozenset(),
        cache_none: bool = True,
        call_on_delete: Optional[Callable[[Any], None]] = None,
        **kwargs: Any,
    ) -> Any:
        """Return the value kept for a key and these arguments, or call function with them and keep what it returns."""
        after_access, after_creation = eviction(for_version, timeout, evict_after_last_access, evict_after_creation)
        return self.call(key, function, kwargs, ignore, after_access, after_creation, cache_none, call_on_delete)

    def call(
        self,
        key: str,
        function: Callable[..., Any],
        kwargs: Dict[str, Any],
        ignore: Iterable[str],
        evict_after_last_access: float,
        evict_after_creation: float,
        cache_none: bool,
        call_on_delete: Optional[Callable[[Any], None]],
    ) -> Any:
        """Do what get_or_else does, with arguments of any name."""
        resource = kwargs.get("resource")
        ignored = {*ignore, "resource"}
        if "resource" in ignore:
            resource = None
        prefix = [f"{name},{value!r}" for name, value in sorted(kwargs.items()) if name not in ignored]
        key = "__".join([*prefix, key])
        full = self._get_key(key, resource)
        with self._lock:
            lock = self._key_locks.setdefault(full, threading.RLock())
        with lock:  # one call per key at a time: who comes second finds the value
            try:
                return self.find(key, resource)
            except KeyError:
                value = function(**kwargs)
            if cache_none or value is not None:
                self.cache_value(key, value, evict_after_last_access, evict_after_creation, resource, call_on_delete)
            return value


def eviction(
    for_version: Optional[bool],
    timeout: Optional[float],
    evict_after_last_access: float,
    evict_after_creation: float,
) -> "tuple[float, float]":
    """Turn the arguments of today and of yesterday into seconds after the last access and after the creation."""
    accessed, created, old = max(evict_after_last_access, 0.0), max(evict_after_creation, 0.0), max(timeout or 0.0, 0.0)
    if for_version is True:
        return accessed or DEFAULT_EVICT_AFTER_LAST_ACCESS, 0.0
    if for_version is False:
        return 0.0, created or old or LEGACY_TIMEOUT
    if accessed or created:
        return accessed, created
    return (0.0, old) if old else (DEFAULT_EVICT_AFTER_LAST_ACCESS, 0.0)
