"""The server that tests run against."""

from __future__ import annotations


class Server:
    """A running server: what the fixture ``server`` of tests is."""

    def __init__(self, address: str, port: int, state_dir: str) -> None:
        self.address = address
        self.port = port
        self.state_dir = state_dir

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self.address}:{self.port}"

    def __repr__(self) -> str:
        return f"Server {self.url}"
