"""Types whose values are checked in Python: ``pydantic.*``, ``datetime.*``, ``ipaddress.*`` and ``uuid.*``."""

from __future__ import annotations

import dataclasses
import importlib
import re
from typing import Any, Optional

_MODULES = ("pydantic", "datetime", "ipaddress", "uuid")


@dataclasses.dataclass
class Regex:
    """In ``Annotated[str, Regex("...")]``: a text that begins with a match of one of Python's regular expressions."""

    pattern: str

    def __get_pydantic_core_schema__(self, source_type: Any, handler: Any) -> Any:
        """How pydantic checks such a text."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(_with_regex(self.pattern), handler(source_type))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        """How pydantic describes such a text."""
        return {**handler(schema), "pattern": self.pattern}


def regex_string(regex: str) -> str:
    """A regular expression; raises ValueError for any other text."""
    try:
        re.compile(regex)
    except re.error as e:
        raise ValueError(f"invalid regular expression {regex!r}: {e}") from None
    return regex


def _with_regex(expression: str) -> Any:
    pattern = re.compile(expression)

    def check(value: Any) -> Any:
        if not isinstance(value, str) or pattern.match(value) is None:
            raise ValueError(f"string does not match regex {expression!r}")
        return value

    return check


def parametrize_type(base_type: Any, validation_parameters: Optional[dict[str, Any]] = None, *, type_name: str = "the type") -> Any:
    """The type with its parameters, for types that pydantic makes by calling a function."""
    if validation_parameters is None:
        return base_type
    if not callable(base_type):
        raise TypeError(f"{type_name} takes no parameters")
    return base_type(**validation_parameters)


def validate_type(fq_type_name: str, value: Any, validation_parameters: Optional[dict[str, Any]] = None) -> None:
    """Checks a value against a type of one of a few Python modules.

    Raises ValueError, of which pydantic's errors are a kind, when the value does not fit.
    """
    if fq_type_name == "inmanta.validation_type.regex_string":
        regex_string(value)
        return
    module, _, name = fq_type_name.rpartition(".")
    if module not in _MODULES:
        raise ValueError(f"Unknown type {fq_type_name}")
    pydantic = importlib.import_module("pydantic")
    found = getattr(importlib.import_module(module), name, None)
    if found is None:
        raise ValueError(f"Unknown type {fq_type_name}")
    params = dict(validation_parameters or {})
    expression = params.pop("regex", None)
    if module == "pydantic" and callable(found) and (params or name.startswith("con")):
        found = found(**params)
    pydantic.TypeAdapter(found).validate_python(value)
    if expression is not None:
        _with_regex(expression)(value)
