"""Who is let in at the door, and how those are told who are not."""

import asyncio
from typing import Any, cast

import grpc
import pytest
from structlog.testing import capture_logs

from grms.daemon.loop import NotWrittenError
from grms.daemon.pacing import Rate
from grms.daemon.rpc.requests import Context
from grms.site.gateway.admission import Admission
from grms.site.runtime.event_loop import Engine


class Refused(Exception):  # noqa: N818  # what ends a call is no error of anybody's
    """A call was ended.

    Attributes:
        code: with which status.
    """

    def __init__(self, code: grpc.StatusCode) -> None:
        super().__init__(code)
        self.code = code


class FakeContext:
    """A call from nobody who has shown anything."""

    def peer(self) -> str:
        """Returns the connection's source."""
        return "unix:somebody"

    async def abort(self, code: grpc.StatusCode, *_: Any, **__: Any) -> None:
        """Ends the call."""
        raise Refused(code)


def admission(*, tls: bool) -> Admission:
    """Returns one with a partner and a broker."""
    return Admission(
        cast("Engine", None),
        users=None,
        operators=[],
        own_uid=1,
        partners=["away"],
        brokers=["planner"],
        tls=tls,
        submissions=Rate(1.0),
        offers=Rate(1.0),
        output_reads=Rate(1.0),
    )


def test_without_tls_whoever_is_on_this_machine_may_ask_for_health() -> None:
    """Nobody is known there before they speak; with TLS who shows nothing is refused."""
    context = cast("Context", FakeContext())
    asyncio.run(admission(tls=False).check_listed(context))
    with pytest.raises(Refused) as refused:
        asyncio.run(admission(tls=True).check_listed(context))
    assert refused.value.code is grpc.StatusCode.UNAUTHENTICATED


def test_a_refusal_is_logged_now_and_then_and_always_counted() -> None:
    """One caller who is refused again and again for one reason fills no log."""
    there, context = admission(tls=True), cast("Context", FakeContext())
    with capture_logs() as logs:
        for _ in range(30):
            there.count("not_listed", context, "x")
    assert there.refused["not_listed"] == 30
    assert len(logs) == 1


class FullEngine:
    """An engine whose journal has no room, with news of one of a user's jobs.

    Attributes:
        state: what it would show.
    """

    state = "the state"

    async def look(self, _: object) -> None:
        """Refuses."""
        raise NotWrittenError("the disk is full")

    def unwritten(self) -> list[str]:
        """Returns the jobs with news."""
        return ["new"]


def test_what_the_journal_does_not_have_is_not_shown() -> None:
    """Jobs without news are, where somebody looks at nothing else; whoever does not say so looks at everything."""
    there, context = admission(tls=False), cast("Context", FakeContext())
    there.engine = cast("Engine", FullEngine())

    async def look(*of: Any) -> str:
        return await (there.look_at(context, str, *of) if of else there.look(context, str))

    assert asyncio.run(look(lambda job: job == "old")) == "the state"
    for of in ([], [lambda job: job == "new"]):
        with pytest.raises(Refused) as refused:
            asyncio.run(look(*of))
        assert refused.value.code is grpc.StatusCode.UNAVAILABLE
    assert there.refused == {"journal": 2}
