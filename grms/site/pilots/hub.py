"""Where pilots connect: authenticates them, and passes messages both ways.

The agent (`grms.site.pilots.agent`) explains the way and the messages. Each pilot has a folder that is private to the
account of its job: in it the agent finds the address, the certificate and a secret of its own. The certificate is made
anew at each start, so no key outlives the process; the secret is the pilot's for its whole life.
"""

import asyncio
import hmac
import secrets
import shutil
import ssl
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import structlog
from cryptography.hazmat.primitives.serialization import Encoding

from grms.security.authority import create_authority, generate_key, issue_for_server, key_pem
from grms.site.pilots.agent import ATTEMPT_S, BEAT_S, LINE_BYTES_MAX, SILENCE_S, VERSION, line_of
from grms.site.pilots.messages import (
    SAID_CHARACTERS_MAX,
    AgentSpokeWronglyError,
    Greeting,
    Hello,
    News,
    RunTold,
    read,
)
from grms.util.names import Endpoint
from lrms_sim.util.files import read_json, write_new, write_secret

Log = structlog.typing.FilteringBoundLogger

CONTACT: Final = "contact.json"
AGENT: Final = "agent.py"
SECRET_BYTES: Final = 32
CONTACT_BYTES_MAX: Final = 64 << 10

STRANGERS_MAX: Final = 64
"""Connections that have not said who they are; beyond, new ones are closed."""

UNSENT_BYTES_MAX: Final = 64 << 20
"""Of a pilot that does not read; beyond, its connection is closed, and all of it sent again at the next one."""

CERTIFICATE_DAYS: Final = 3650
"""Nobody but the pilots of one process has to believe it."""


@dataclass(frozen=True, slots=True)
class PilotTerms:
    """What an agent is told beforehand, besides where the site is.

    Attributes:
        processors: that it hands out.
        wall_time: of its job, seconds.
        spare: so long before that it ends by itself, seconds.
        idle_limit: it ends after so long without runs, seconds; 0 for never.
        grace: between SIGTERM and SIGKILL for a run, seconds.
    """

    processors: int
    wall_time: float
    spare: float
    idle_limit: float
    grace: float


class Hears(Protocol):
    """Takes what agents say. It is called on the event loop, returns at once and does not raise."""

    def connected(self, pilot: str, hello: Hello) -> None:
        """A pilot is there, perhaps again; what was sent before may not have arrived."""

    def told(self, pilot: str, runs: list[RunTold]) -> None:
        """Runs have started or ended."""

    def used(self, pilot: str, processor_s: float) -> None:
        """So much have its runs used so far, processor-seconds."""

    def draining(self, pilot: str, why: str) -> None:
        """A pilot takes no more runs."""

    def leaves(self, pilot: str) -> None:
        """A pilot has told everything, and waits for `let_go`."""

    def parted(self, pilot: str) -> None:
        """The connection is lost."""


class Hub:
    """Listens for pilots, whose folders are in `folder`."""

    def __init__(self, folder: Path, now: Callable[[], float], log: Log) -> None:
        self._folder = folder
        self._now = now
        self._log = log
        self._hears: Hears | None = None
        self._server: asyncio.Server | None = None
        self._secrets: dict[str, str] = {}
        self._speaking: dict[str, asyncio.StreamWriter] = {}
        self._strangers = 0
        self._where: dict[str, Any] = {}
        self._conversations: set[asyncio.Task[None]] = set()

    # --- its life ------------------------------------------------------------------------------

    async def open(self, listen: Endpoint, shown: str, hears: Hears) -> None:
        """Listens; `shown` is the host by which nodes reach it.

        Raises:
            OSError: it cannot listen there, or the folder cannot be made.
        """
        self._hears = hears
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        context, certificate = self._credentials(shown)
        self._server = await asyncio.start_server(
            self._accept,
            listen.host,
            listen.port,
            ssl=context,
            ssl_handshake_timeout=ATTEMPT_S,
            limit=LINE_BYTES_MAX,
        )
        port = self._server.sockets[0].getsockname()[1]
        self._where = {"host": shown, "port": port, "certificate": certificate}
        self._log.info("pilots_listen", host=shown, port=port)

    def _credentials(self, shown: str) -> tuple[ssl.SSLContext, str]:
        now = datetime.now(UTC)
        authority = create_authority("pilots of a site", now=now, days=CERTIFICATE_DAYS)
        key = generate_key()
        own = issue_for_server(authority, [shown], key.public_key(), now=now, days=CERTIFICATE_DAYS)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        path = self._folder / f".key-{secrets.token_hex(8)}"
        try:
            write_new(path, key_pem(key) + own.public_bytes(Encoding.PEM))
            context.load_cert_chain(path)
        finally:
            path.unlink(missing_ok=True)
        return context, authority.certificate.public_bytes(Encoding.PEM).decode()

    async def close(self) -> None:
        """Ends all connections; pilots go on, and connect to the next process."""
        if self._server is not None:
            self._server.close()
        for task in self._conversations:
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    # --- pilots --------------------------------------------------------------------------------

    def place(self, pilot: str) -> Path:
        """Returns the folder of a pilot."""
        return self._folder / pilot

    def admit(self, pilot: str, terms: PilotTerms) -> None:
        """Makes or renews a pilot's folder; the pilot may connect from now on. Accesses the disk.

        Raises:
            OSError: it cannot be written.
        """
        place = self.place(pilot)
        place.mkdir(mode=0o700, exist_ok=True)
        try:
            known = read_json(place / CONTACT, CONTACT_BYTES_MAX, OSError)
            secret = known["secret"]
        except (OSError, KeyError, TypeError):
            secret = secrets.token_hex(SECRET_BYTES)
        self._secrets[pilot] = secret
        contact = {"pilot": pilot, "secret": secret, **self._where, **asdict(terms)}
        write_secret(place / CONTACT, contact)

    def dismiss(self, pilot: str) -> None:
        """Lets a pilot in no more, and ends its connection."""
        self._secrets.pop(pilot, None)
        writer = self._speaking.pop(pilot, None)
        if writer is not None:
            writer.close()

    def remove(self, pilot: str) -> None:
        """Deletes the folder of a pilot. Accesses the disk."""
        shutil.rmtree(self.place(pilot), ignore_errors=True)

    def is_there(self, pilot: str) -> bool:
        """Returns whether a pilot is connected."""
        return pilot in self._speaking

    def send(self, pilot: str, **message: Any) -> None:
        """Sends a message; without a connection nothing, as the next hello asks for it."""
        writer = self._speaking.get(pilot)
        if writer is None:
            return
        writer.write(line_of(message))
        if writer.transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            self._log.warning("pilot_does_not_read", pilot=pilot)
            writer.transport.abort()

    def let_go(self, pilot: str) -> None:
        """Answers a pilot that leaves: everything it has told is in the journal."""
        self.send(pilot, left=True)

    # --- connections ---------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        pilot = ""
        try:
            if self._strangers >= STRANGERS_MAX:
                return
            self._strangers += 1
            try:
                pilot, hello = await self._welcome(reader, writer)
            finally:
                self._strangers -= 1
            if pilot:
                await self._listen_to(pilot, hello, reader, writer)
        except (OSError, TimeoutError, AgentSpokeWronglyError, asyncio.CancelledError) as error:
            if not isinstance(error, asyncio.CancelledError):
                self._log.info("pilot_connection_lost", pilot=pilot, problem=str(error) or "silent")
        finally:
            self._conversations.discard(task)
            if pilot and self._speaking.get(pilot) is writer:
                del self._speaking[pilot]
                assert self._hears is not None
                self._hears.parted(pilot)
            writer.close()

    async def _welcome(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[str, Hello]:
        line = await _line(reader, ATTEMPT_S)
        said = read(line, Greeting)
        pilot, secret = said.pilot, said.secret
        right = self._secrets.get(pilot)
        # Compared in any case, so that the time does not say which pilots there are.
        same = hmac.compare_digest(secret.encode(), (right or secrets.token_hex()).encode())
        refused = "" if right is not None and same else "it is no pilot of this site, or over"
        if not refused and said.hello != VERSION:
            refused = f"it speaks version {said.hello}, this site {VERSION}"
        if refused:
            self._log.warning("pilot_refused", pilot=pilot[:80], reason=refused)
            writer.write(line_of({"refused": refused}))
            await writer.drain()
            return "", _NO_HELLO
        hello = read(line, Hello).within_bounds()
        writer.write(line_of({"now": self._now()}))
        return pilot, hello

    async def _listen_to(
        self,
        pilot: str,
        hello: Hello,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        assert self._hears is not None
        before = self._speaking.get(pilot)
        if before is not None:
            # The newest is alive; the other may be half of one that broke.
            before.transport.abort()
        self._speaking[pilot] = writer
        self._hears.connected(pilot, hello)
        beats = asyncio.create_task(_beat(writer), name=f"beats for pilot {pilot}")
        try:
            while self._speaking.get(pilot) is writer:
                self._heard(pilot, read(await _line(reader, SILENCE_S), News))
        finally:
            beats.cancel()

    def _heard(self, pilot: str, said: News) -> None:
        assert self._hears is not None
        if said.runs:
            self._hears.told(pilot, list(said.runs))
        if said.used is not None:
            self._hears.used(pilot, max(0.0, said.used))
        if said.draining is not None:
            self._hears.draining(pilot, said.draining[:SAID_CHARACTERS_MAX])
        if said.over:
            self._hears.leaves(pilot)


async def _beat(writer: asyncio.StreamWriter) -> None:
    while True:  # waits for time, not for an event
        await asyncio.sleep(BEAT_S)
        writer.write(b"{}\n")


async def _line(reader: asyncio.StreamReader, timeout_s: float) -> bytes:
    async with asyncio.timeout(timeout_s):
        try:
            line = await reader.readline()
        except ValueError as error:
            raise AgentSpokeWronglyError("a message is too long") from error
    if not line.endswith(b"\n"):
        raise AgentSpokeWronglyError("it has ended the connection")
    return line


_NO_HELLO: Final = Hello("", "", 0.0, "", over=False, used=0.0, runs=())
