"""What is said over a tunnel before it carries bytes, and how two connections become one.

A tunnel is a TLS connection whose protocol (ALPN, RFC 7301) is `TUNNEL_PROTOCOL` rather than HTTP/2. Both sides
begin with lines of ASCII:

| who opened it | the other side | meaning |
|---|---|---|
| `WAIT` | `OK` | whoever wants to call the one who opened it may have this connection |
| empty | empty | both are still there |
| | `GO name` | that one calls |
| `GO` | | from here on the bytes are the caller's, and the answers to them |
| `CALL name` | `GO` | at a relay: the same, seen from the caller |
| | `NO reason` | what was said is refused, and the connection closed |

What is carried is a connection like any other at the port of partners: TLS from end to end.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from lrms_sim.util.messages import printable

LINE_BYTES_MAX: Final = 512
"""Longest line."""

CHUNK_BYTES: Final = 1 << 16
"""Most that is read at once."""

WAIT, OK, GO, CALL, NO = "WAIT", "OK", "GO", "CALL", "NO"
"""The words of the lines."""

KEEP_ALIVE: Final = (
    ("SO_KEEPALIVE", "SOL_SOCKET", 1),
    ("TCP_KEEPIDLE", "IPPROTO_TCP", 20),
    ("TCP_KEEPINTVL", "IPPROTO_TCP", 5),
    ("TCP_KEEPCNT", "IPPROTO_TCP", 3),
    ("TCP_USER_TIMEOUT", "IPPROTO_TCP", 35_000),
)
"""Options of a tunnel's socket (tcp(7)): the kernel notices within 35 s that the other side has gone."""


class TunnelError(ConnectionError):
    """A tunnel does not come about, or is over; the text says why, for a person."""


@dataclass(eq=False, slots=True)
class Stream:
    """Both directions of a connection.

    Attributes:
        reader: what comes.
        writer: what goes.
        carried: bytes that were passed on from here.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    carried: int = 0

    def say(self, *words: str) -> None:
        """Sends a line; without words an empty one."""
        if not self.writer.is_closing():
            text = printable(" ".join(words).replace("\n", " "))[: LINE_BYTES_MAX - 1]
            self.writer.write(text.encode("ascii", "replace") + b"\n")

    async def read_by(self, timeout_s: float) -> None:
        """Returns when the other side has read nearly all that was said.

        Raises:
            TunnelError: it has not within so many seconds, or the connection is over.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self.writer.drain()
        except TimeoutError:
            raise TunnelError(f"the other side has read nothing for {timeout_s:g} s") from None
        except OSError as error:
            raise TunnelError(f"the connection has broken: {error}") from error

    async def line(self, timeout_s: float) -> tuple[str, str]:
        """Returns the next line: its word, and what follows it.

        Raises:
            TunnelError: none has come within so many seconds, it is no line, or the connection is over.
        """
        try:
            async with asyncio.timeout(timeout_s):
                raw = await self.reader.readline()
        except TimeoutError:
            raise TunnelError(f"the other side has said nothing for {timeout_s:g} s") from None
        except (OSError, ValueError) as error:
            raise TunnelError(f"the connection has broken: {error}") from error
        if not raw.endswith(b"\n"):
            raise TunnelError("the other side has hung up")
        text = raw[:-1].decode("ascii", "replace")
        # It goes to logs and terminals, which control characters would control.
        if len(raw) > LINE_BYTES_MAX or not (text.isascii() and text.isprintable()):
            raise TunnelError("the other side says what is no line of a tunnel")
        word, _, rest = text.partition(" ")
        return word, rest

    async def ask(self, *words: str, wanted: str, timeout_s: float) -> None:
        """Says a line, and returns when the answer is the wanted word; else the connection is closed.

        Raises:
            TunnelError: it is another one, or none has come in time.
        """
        self.say(*words)
        try:
            word, rest = await self.line(timeout_s)
        except BaseException:
            self.abort()
            raise
        if word != wanted:
            self.abort()
            raise TunnelError(rest if word == NO else f"the other side answers {word!r}")

    def close(self) -> None:
        """Closes it, when what was written has been sent."""
        with suppress(OSError, RuntimeError):
            self.writer.close()

    def abort(self) -> None:
        """Closes it at once."""
        self.writer.transport.abort()


async def join(one: Stream, other: Stream) -> None:
    """Passes on what each of two connections says to the other, until one of them is over; then both are.

    A side that does not read is not sent more than the buffers hold, nor is its counterpart read further.
    """
    tasks = [
        asyncio.create_task(_copy(source, target), name="tunnel")
        for source, target in ((one, other), (other, one))
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        one.close()
        other.close()


async def _copy(source: Stream, target: Stream) -> None:
    with suppress(OSError):
        while data := await source.reader.read(CHUNK_BYTES):
            target.writer.write(data)
            source.carried += len(data)
            await target.writer.drain()
