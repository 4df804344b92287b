"""What clients of the API share: results and encoding."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional

from inmanta import util


def custom_json_encoder(o: object, tz_aware: bool = True) -> Any:
    """Encode, for the API, what the module json does not know."""
    return util.api_boundary_json_encoder(o, tz_aware)


def json_encode(value: object, tz_aware: bool = True) -> str:
    """Encode a value for the API. "</" is escaped, so that the text can stand in HTML."""
    return json.dumps(value, default=lambda o: custom_json_encoder(o, tz_aware)).replace("</", "<\\/")


class Result:
    """The answer to a call: its HTTP status and its body."""

    def __init__(self, code: int = 0, result: Optional[Dict[str, Any]] = None) -> None:
        self.code = code
        self._result = result
        self._callbacks: List[Callable[[Result], None]] = []

    @property
    def result(self) -> Optional[Dict[str, Any]]:
        """The body, None when there is none."""
        return self._result

    def get_result(self) -> Optional[Dict[str, Any]]:
        """Return the body."""
        return self._result

    def available(self) -> bool:
        """Tell whether there is a body or an error."""
        return self._result is not None or self.code > 0

    def value(self) -> Any:
        """Return the data of the answer. Exception: the call was refused."""
        if not 200 <= self.code < 300:
            raise Exception(f"the server answers {self.code}: {(self._result or {}).get('message', '')}")
        return (self._result or {}).get("data", self._result)

    def __repr__(self) -> str:
        return f"<Result code={self.code}>"
