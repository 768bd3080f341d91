"""A browser of a test's own that a daemon's pages have let in."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Visit:
    """A session that a link has begun.

    Attributes:
        host: and port of the pages.
        folder: of the session, with slashes at both ends.
        cookie: that goes with it.
    """

    host: str
    folder: str
    cookie: str

    @classmethod
    def by(cls, link: str) -> "Visit":
        """Opens a link, which is used up by that."""
        parts = urlsplit(link)
        connection = http.client.HTTPConnection(parts.netloc, timeout=300)
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == 303, link
        folder = answer.headers["location"].removeprefix(".")
        return cls(parts.netloc, folder, answer.headers["set-cookie"].partition(";")[0])

    def open(self, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Returns the answer to a question, not read yet, with its connection, which the caller closes."""
        connection = http.client.HTTPConnection(self.host, timeout=300)
        connection.request(
            "GET", self.folder + path.removeprefix("/"), headers={"cookie": self.cookie}
        )
        return connection, connection.getresponse()

    def ask(self, path: str) -> Any:
        """Returns what the pages answer."""
        connection, answer = self.open(path)
        content = answer.read()
        connection.close()
        return json.loads(content)
