"""What partners' jobs run, and what is made of their home sites' answers."""

from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc import aio

from grms.site.peers.script_fetch import ProgramFetcher
from grms.site.runtime.executor_driver import ProgramAwayError, ProgramGoneError
from grms.v1 import partner_pb2, request_pb2


def failed(code: grpc.StatusCode) -> aio.AioRpcError:
    """Returns how a call ends."""
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), "as\x1b it is")


class Owners:
    """Takes any user but one."""

    def __init__(self) -> None:
        self.users: list[str] = []

    async def take(self, partner: str, key: str, owner: str, user: str) -> None:
        """Takes note, and refuses who is banned."""
        assert partner == key.partition("/")[0] == "home"
        assert user in {"", "ann"}
        self.users.append(user)
        if owner == BANNED:
            raise ProgramGoneError("its user is banned here", unwanted=True)


BANNED = "0" * 32


def fetcher(answer: Any) -> tuple[ProgramFetcher, list[Any]]:
    """Returns one whose partner home answers so; and what home is asked."""
    asked = []

    async def fetch(request: Any, timeout: float) -> Any:  # noqa: ASYNC109  # gRPC's
        assert timeout > 0
        asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    owners: Any = Owners()
    links: Any = SimpleNamespace(
        links={
            "home": SimpleNamespace(stub=SimpleNamespace(FetchProgram=fetch)),
            "down": SimpleNamespace(stub=None),
        }
    )
    return ProgramFetcher(links, "away", owners), asked


async def test_a_program_comes_as_a_payload() -> None:
    """Asked for by the offer that the key names."""
    program = request_pb2.Program(script="#!/bin/sh\n", arguments=["a"], outputs=["b"])
    fetch, asked = fetcher(partner_pb2.FetchProgramResponse(program=program))
    payload = await fetch("home", "home/1f/17")
    assert request_pb2.JobRequest.FromString(payload) == request_pb2.JobRequest(program=program)
    (request,) = asked
    assert (request.site, request.offer.epoch, request.offer.number) == ("away", 0x1F, 17)


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (failed(grpc.StatusCode.NOT_FOUND), ProgramGoneError, r"home: as\\x1b it is"),
        (failed(grpc.StatusCode.UNAVAILABLE), ProgramAwayError, "home: as"),
        (failed(grpc.StatusCode.UNIMPLEMENTED), ProgramAwayError, "does not know a call"),
        (None, ProgramAwayError, "cannot be read"),
        (partner_pb2.FetchProgramResponse(owner=BANNED), ProgramGoneError, "user is banned here"),
        (
            partner_pb2.FetchProgramResponse(program=request_pb2.Program(outputs=["../x"])),
            ProgramGoneError,
            "no name of a file",
        ),
    ],
)
async def test_what_is_no_program(answer: Any, kind: type[Exception], text: str) -> None:
    """It is not to be run here, or it may come later."""
    fetch, _ = fetcher(answer)
    with pytest.raises(kind, match=text):
        await fetch("home", "home/1/1")


async def test_nobody_to_ask() -> None:
    """A partner that is not connected, or none any more."""
    fetch, _ = fetcher(None)
    for partner in ("down", "stranger"):
        with pytest.raises(ProgramAwayError, match="not connected"):
            await fetch(partner, f"{partner}/1/1")
