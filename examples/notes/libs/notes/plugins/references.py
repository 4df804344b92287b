"""References: values that are found out at the agent and are never stored in the server."""

from inmanta.agent.handler import LoggerABC
from inmanta.references import Reference, reference


@reference("notes::FirstLine")
class FirstLine(Reference[str]):
    def __init__(self, path: "str | Reference[str]") -> None:
        super().__init__()
        self.path = path

    def resolve(self, logger: LoggerABC) -> str:
        path = self.resolve_other(self.path, logger)
        logger.debug("reading the first line of %(path)s", path=path)
        with open(path, encoding="utf-8") as file:
            return file.readline().rstrip("\n")
