"""A link between two sites that breaks on demand: a proxy on loopback."""

import asyncio
from contextlib import suppress
from typing import Final, Self

BLOCK_BYTES: Final = 65_536


class Line:
    """A proxy to a loopback port that can be cut, held up, made one way or slow, and mended.

    When cut, connections break and new ones fail. When held up, connections stand but carry nothing; pending data
    arrives late, when the line is mended. One way, requests get through and answers are held up.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.carried_bytes = 0
        self._target = target
        self._is_cut = False
        self._passing = {way: asyncio.Event() for way in ("there", "back")}
        self._delay_s = 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.mend()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.mend()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Breaks every connection and lets no new one through."""
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def hold_up(self) -> None:
        """Lets nothing pass, without a sign of it."""
        for passing in self._passing.values():
            passing.clear()

    def answer_not(self) -> None:
        """Lets requests pass and no answer, without a sign of it."""
        self._passing["back"].clear()

    def slow(self, delay_s: float) -> None:
        """Lets everything pass, each piece so many seconds late."""
        self._delay_s = delay_s

    def mend(self) -> None:
        """Lets everything pass again."""
        self._is_cut, self._delay_s = False, 0.0
        for passing in self._passing.values():
            passing.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self._is_cut:
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(far_writer)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._copy(reader, far_writer, "there"), name="there")
                    group.create_task(self._copy(far_reader, writer, "back"), name="back")
            finally:
                self._writers.discard(far_writer)
                far_writer.transport.abort()
        except OSError:
            pass  # who was to be reached is not there
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str
    ) -> None:
        with suppress(OSError):
            while content := await reader.read(BLOCK_BYTES):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._passing[way].wait()
                writer.write(content)
                self.carried_bytes += len(content)
                await writer.drain()
        writer.transport.abort()
