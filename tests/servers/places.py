"""Where a test may put a table: an address, and the options that reach it."""

import re
import uuid
from dataclasses import dataclass, field, replace

from lancetable.store import Store, TableLocation


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket of a server."""

    uri: str
    options: dict[str, str] = field(default_factory=dict)
    pylance: dict[str, str] = field(default_factory=dict)
    """The same for pylance, where the names differ."""

    def fresh(self, name: str = "table") -> "Place":
        """Return a folder that nobody used."""
        return replace(self, uri=f"{self.uri}/{uuid.uuid4().hex[:12]}/{name}")

    def having(self, **options: str) -> "Place":
        """Return the same place with further options."""
        return replace(self, options={**self.options, **options})

    @property
    def port(self) -> int:
        """The port of the server on the loopback address."""
        others = {"dynamodb_endpoint"}
        text = " ".join(value for name, value in self.options.items() if name not in others)
        found = re.search(r"127\.0\.0\.1:(\d+)", text)
        assert found is not None, f"no port in {text}"
        return int(found[1])

    def through(self, port: int) -> "Place":
        """Return the same place reached through a proxy; pylance goes on without it."""
        mine, other = f"127.0.0.1:{self.port}", f"127.0.0.1:{port}"
        options = {name: value.replace(mine, other) for name, value in self.options.items()}
        return replace(self, options=options)

    @property
    def location(self) -> TableLocation:
        """The location of this folder."""
        return TableLocation(self.uri, self.options)

    def open(self) -> Store:
        """Open the store of this folder."""
        return self.location.open()
