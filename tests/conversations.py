"""Golden conversations: what is asked of a service and what it answers, as plain text.

A file has lines that ask, lines that are answered, and lines that say what else happens:

    # A comment.
    > ResourceService.Register resource { name: "alpha" }
    < name: "alpha"
    ! now 30
    > ResourceService.Remove name: "beta"
    < NOT_FOUND name: there is no resource 'beta'; there are: alpha

A request may go on in further lines. What is played again has to be the file, letter by letter.
HANSE_BLESS=1 writes down what was answered instead: look at the difference before it is committed.
"""

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from grms.daemon.status_details import DETAILS_KEY

BLESS = "HANSE_BLESS"


class Talk:
    """Somebody who asks.

    Args:
        channel: to the services.
        modules: generated, with the services in them.
        act: lets something else happen, as a line says.
        masks: patterns of what is different each time, and what stands for it.
    """

    def __init__(
        self,
        channel: aio.Channel,
        modules: tuple[Any, ...],
        act: Callable[[str], Awaitable[None]],
        masks: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._channel = channel
        self._services = {
            service.name: service
            for module in modules
            for service in module.DESCRIPTOR.services_by_name.values()
        }
        self._act = act
        self._masks = masks

    async def check(self, path: Path) -> None:
        """Plays a conversation again; fails unless every answer is the same."""
        text = path.read_text(encoding="utf-8")
        played = "".join([line async for line in self._play(text.splitlines())])
        if os.environ.get(BLESS):
            path.write_text(played, encoding="utf-8")
            return
        assert played == text

    async def _play(self, lines: list[str]) -> AsyncIterator[str]:
        asked: list[str] = []
        for line in [*lines, None]:
            if asked and (line is None or not line.startswith("> ")):
                for answer in await self._answers(" ".join(asked)):
                    for each in self._masked(answer).splitlines():
                        yield f"< {each}".rstrip() + "\n"
                asked = []
            if line is None:
                return
            if line.startswith("> "):
                asked.append(line[2:])
            elif line.startswith("! "):
                await self._act(line[2:])
            if not line.startswith("<"):
                yield line + "\n"

    def _masked(self, text: str) -> str:
        for pattern, word in self._masks:
            text = re.sub(pattern, word, text)
        return text

    async def _answers(self, asked: str) -> list[str]:
        name, _, body = asked.partition(" ")
        service, _, method = name.partition(".")
        described = self._services[service].methods_by_name[method]
        request = text_format.Parse(body, GetMessageClass(described.input_type)())
        path = f"/{self._services[service].full_name}/{method}"
        coding = (
            lambda message: message.SerializeToString(),
            GetMessageClass(described.output_type).FromString,
        )
        try:
            if described.server_streaming:
                stream = self._channel.unary_stream(path, *coding)(request, timeout=300)
                return [_written(message) async for message in stream]
            return [_written(await self._channel.unary_unary(path, *coding)(request, timeout=300))]
        except aio.AioRpcError as error:
            return [_refused(error)]


def _written(message: Any) -> str:
    return text_format.MessageToString(message) or "(nothing)"


def _refused(error: aio.AioRpcError) -> str:
    details = dict(list(error.trailing_metadata() or ())).get(DETAILS_KEY)
    field = ""
    if isinstance(details, bytes):
        status = status_pb2.Status.FromString(details)
        bad = error_details_pb2.BadRequest()
        status.details[0].Unpack(bad)
        field = f" {bad.field_violations[0].field}:"
    return f"{error.code().name}{field} {error.details()}"
