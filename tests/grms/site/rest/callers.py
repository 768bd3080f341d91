"""Calls over HTTP with tokens of a test's own."""

import asyncio
import http.client
import json
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jwt

from grms.daemon.ports import free_port
from tests.grms.site.daemons import Running

SECRET: Final = "0123456789abcdef0123456789abcdef"
NAME, AUDIENCE = "https://issuer.example", "hanse-home"
AT: Final = "/slurm/v0.0.38"
JOB: Final = {
    "name": "told",
    "tasks": 1,
    "time_limit": 5,
    "environment": {"PATH": "/usr/bin:/bin"},
}
SCRIPT: Final = "#!/bin/sh\nexit 0\n"


def table(folder: Path, **more: Any) -> dict[str, Any]:
    """Returns the part of a configuration that serves users over HTTP, with a secret in a file."""
    keys = folder / "tokens.key"
    keys.write_text(SECRET)
    keys.chmod(0o600)
    issuer: dict[str, Any] = {
        "issuer": NAME,
        "audience": AUDIENCE,
        "algorithm": "HS256",
        "keys": str(keys),
    }
    issuer["users"] = {"subject-1": "nobody", "subject-2": "daemon", "subject-0": "root"}
    issuer["users"] |= {"subject-3": "no-such-user-here"}
    return {"rest": {"listen": f"127.0.0.1:{free_port()}", "issuers": [issuer], **more}}


def token(secret: str = SECRET, **changes: Any) -> str:
    """Returns a token for the user `nobody`."""
    now = int(time.time())
    claims = {"iss": NAME, "aud": AUDIENCE, "sub": "subject-1", "iat": now, "exp": now + 600}
    return jwt.encode(claims | {"scope": "jobs:read jobs:write"} | changes, secret, "HS256")


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int
    headers: dict[str, str]
    document: Any

    @property
    def problem(self) -> str:
        """The text of its first error."""
        return str(self.document["errors"][0]["error"])


@dataclass(frozen=True)
class Caller:
    """A program with a token."""

    site: Running
    token: str = field(default_factory=token)
    context: ssl.SSLContext | None = None

    def said(self, method: str, path: str, body: Any = None, **headers: str) -> Said:
        """Returns what a request is answered; blocks."""
        assert self.site.core.rest is not None
        port = self.site.core.rest.port
        connection = (
            http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            if self.context is None
            else http.client.HTTPSConnection("127.0.0.1", port, timeout=300, context=self.context)
        )
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        more = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        more |= {} if body is None else {"content-type": "application/json"}
        more |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, content, more)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Said(answer.status, found, json.loads(text))

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Said:
        """Returns what a request is answered."""
        return await asyncio.to_thread(self.said, method, path, body, **headers)

    async def submit(self, **changes: Any) -> Said:
        """Returns what a submission is answered."""
        job = {name: value for name, value in (JOB | changes).items() if value is not None}
        return await self.ask("POST", f"{AT}/job/submit", {"script": SCRIPT, "job": job})
