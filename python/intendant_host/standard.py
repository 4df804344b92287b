"""The references of the module std where that is part of the program.

Importing this registers them; a std of the project's own, imported later, takes their places.
"""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from inmanta.protocol.endpoints import SyncClient
from inmanta.references import Reference, reference


@reference("std::IntReference")
class IntReference(Reference[int]):
    """A whole number that a text or another reference gives."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value

    def resolve(self, logger: Any) -> int:
        """Converts the value. Raises ValueError when it is no number."""
        return int(self.resolve_other(self.value, logger))  # type: ignore[call-overload, no-any-return]


@reference("std::Environment")
class EnvironmentReference(Reference[str]):
    """A variable of the environment of the process that resolves it."""

    def __init__(self, name: Union[str, Reference[str]]) -> None:
        super().__init__()
        self.name = name

    def resolve(self, logger: Any) -> str:
        """Reads the variable. Raises LookupError when it is not set."""
        name = self.resolve_other(self.name, logger)
        found = os.environ.get(name)
        if found is None:
            raise LookupError(f"Environment variable {name} is not set")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvironmentReference) and self.name == other.name


@reference("std::FactReference")
class FactReference(Reference[str]):
    """A fact of a resource, as the server knows it when the reference is resolved."""

    def __init__(self, environment: str, resource_id: str, fact_name: str, mocked_facts: Optional[dict[str, Any]] = None) -> None:
        super().__init__()
        self.environment = environment
        self.resource_id = resource_id
        self.fact_name = fact_name
        self.mocked_facts = mocked_facts
        """Facts that a test pretends: by resource and name."""

    def resolve(self, logger: Any) -> str:
        """Asks the server. Raises LookupError when it has no such fact."""
        if self.mocked_facts is not None:
            facts = self.mocked_facts.get(self.resource_id, {})
        else:
            found = SyncClient("agent").get_facts(tid=self.environment, rid=self.resource_id).value()
            facts = {fact["name"]: fact["value"] for fact in found}
        if self.fact_name not in facts:
            raise LookupError(f"Didn't find fact `{self.fact_name}` for resource `{self.resource_id}`")
        value: str = facts[self.fact_name]
        return value

    def __str__(self) -> str:
        return f"FactReference[resource_id={self.resource_id},fact_name={self.fact_name}]"
