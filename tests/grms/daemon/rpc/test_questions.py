"""What both daemons answer a call to which their engine has no answer."""

import asyncio
import enum
from dataclasses import dataclass
from typing import Any, cast

import grpc
import pytest

from grms.daemon.loop import Loop, NotWrittenError
from grms.daemon.messages import WireError
from grms.daemon.rpc import requests
from grms.daemon.rpc.requests import Context, Questions


class Why(enum.Enum):
    """Why nothing comes of it."""

    GONE = "not found"


@dataclass
class Refuse:
    """Refuses anything."""

    refusal: Why
    reason: str
    field: str = ""


class Ended(Exception):  # noqa: N818  # what ends a call is no error of anybody's
    """A call was ended."""


class Call:
    """A call that notes how it is ended."""

    def __init__(self) -> None:
        self.code: grpc.StatusCode | None = None
        self.text = ""

    async def abort(self, code: grpc.StatusCode, details: str = "", **_: Any) -> None:
        """Ends the call."""
        self.code, self.text = code, details
        raise Ended


class Engine:
    """Answers with what it is given, or raises it; `hangs` waits without end."""

    def __init__(self, answer: Any = None, *, hangs: bool = False) -> None:
        self.answer = answer
        self.hangs = hangs
        self.problem = ""
        self.state = "the state"

    async def ask(self, _: Any, read: Any) -> Any:
        """Returns what is read."""
        return await self.look(lambda _: read(self.answer))

    async def look(self, read: Any) -> Any:
        """Likewise."""
        if self.hangs:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return read(self.state)


class Asked(Questions[Any, Any]):
    """Those of a daemon that counts what it refuses."""

    refuse = Refuse
    daemon = "kitchen"
    again = ": ask again"

    def __init__(self, engine: Engine) -> None:
        super().__init__(cast("Loop[Any, Any, Any]", engine))
        self.counted: list[str] = []

    def count(self, reason: str, context: Context | None = None, text: str = "") -> None:
        """Notes it."""
        del context, text
        self.counted.append(reason)


def ended(engine: Engine, name: str, *words: Any, stopping: bool = False) -> tuple[Any, str, Any]:
    """Returns how a call has ended: its status, the text, and what was counted."""
    call, asked = Call(), Asked(engine)
    asked.stopping = stopping
    with pytest.raises(Ended):
        asyncio.run(getattr(asked, name)(cast("Context", call), *words))
    return call.code, call.text, asked.counted


def test_an_answer_is_read_and_a_refusal_ends_the_call() -> None:
    """With the status whose name the refusal has."""
    asked = Asked(Engine(4))
    assert asyncio.run(asked.ask(cast("Context", Call()), None, lambda one: one + 1)) == 5
    refused = Engine(Refuse(Why.GONE, "no such dish"))
    code = grpc.StatusCode.NOT_FOUND
    assert ended(refused, "ask", None, str) == (code, "no such dish", ["gone"])


def test_what_cannot_be_written_is_said() -> None:
    """Of a question that it may have been taken, of a look that nothing is shown."""
    engine, code = Engine(NotWrittenError("full")), grpc.StatusCode.UNAVAILABLE
    text = "the journal cannot be written (full); this is done when it can be: ask again"
    assert ended(engine, "ask", None, str) == (code, text, ["unavailable"])
    text = "the journal cannot be written (full); what is not in it is not shown: ask again then"
    assert ended(engine, "look", str) == (code, text, ["journal"])
    found = Asked(engine).look(cast("Context", Call()), str, settled=lambda: True)
    assert asyncio.run(found) == "the state"


def test_a_journal_that_hangs_keeps_no_caller_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are told to ask again."""
    monkeypatch.setattr(requests, "LOOK_S", 0.01)
    code, text, counted = ended(Engine(hangs=True), "look", str)
    assert (code, counted) == (grpc.StatusCode.UNAVAILABLE, [])
    assert text == "the journal is being written, for more than 0.01 s: ask again then"


def test_nothing_new_is_taken_while_it_cannot_be_kept() -> None:
    """And at the end, by the name of the daemon."""
    full, code = Engine(), grpc.StatusCode.UNAVAILABLE
    full.problem = "full"
    text = (
        "the journal cannot be written (full); nothing new is taken, but what was asked just before is done when it "
        "can be: ask again"
    )
    assert ended(full, "check_journal") == (code, text, ["journal"])
    text = "the kitchen is being stopped"
    assert ended(Engine(), "check_journal", stopping=True) == (code, text, ["stopping"])
    assert ended(Engine(), "check_stopping", stopping=True) == (code, text, ["stopping"])
    asyncio.run(Asked(Engine()).check_journal(cast("Context", Call())))


def test_a_message_that_means_nothing_names_its_field() -> None:
    """As an invalid argument."""
    code = grpc.StatusCode.INVALID_ARGUMENT
    assert ended(Engine(), "invalid", WireError("dish", "empty")) == (code, "empty", ["invalid"])

    def served(dish: str, table: int) -> str:
        if not dish:
            raise WireError("dish", "empty")
        return f"{dish} for {table}"

    asked = Asked(Engine())
    assert asyncio.run(asked.read(cast("Context", Call()), served, "soup", 4)) == "soup for 4"
    assert ended(Engine(), "read", served, "", 4) == (code, "empty", ["invalid"])
