"""A site to talk to: hands over events one by one and keeps what was journaled."""

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from grms.lrms.base import Ended, LrmsEnd
from grms.policy.location import AwrtLocation
from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, TransferPolicy
from grms.site.model.commands import Append, Command, Publish
from grms.site.model.events import (
    Event,
    LoadedEvent,
    LrmsNews,
    LrmsTold,
    PartnerUp,
    Restarted,
    Submit,
)
from grms.site.model.invariants import check
from grms.site.model.jobs import HomeJob, Load, OfferId, Request
from grms.site.model.records import Record
from grms.site.model.settings import PartnerSettings, SiteSettings
from grms.site.runtime.journal import KIND
from grms.site.scheduler.state import SiteState

AnyCommand = TypeVar("AnyCommand", bound=Command)

FREE = Load(8, 8, 0)
FULL = Load(8, 0, 3)
REQUEST = Request(2, 100.0)


def settings(**changes: Any) -> SiteSettings:
    """Returns site a with eight processors and the partners b and c, all of them AWF."""
    awf: dict[str, TransferPolicy] = {"b": AcceptWhenFit(), "c": AcceptWhenFit()}
    given: dict[str, Any] = {
        "name": "a",
        "processors": 8,
        "epoch": 7,
        "partners": (PartnerSettings("b", 8), PartnerSettings("c", 4)),
        "transfer": awf,
        "location": AwrtLocation(open_jobs="count"),
        "clock_grace": math.inf,  # time stands still here, unless a test moves it
        "retry_first_s": 1.0,
        "retry_most_s": 4.0,
    }
    return SiteSettings(**{**given, **changes})


KEEP = {"b": AlwaysKeep(), "c": AlwaysKeep()}


class Conversation:
    """A site, its journal, and a clock that the test moves.

    Attributes:
        see: is told of each event and all its commands, as those are who watch a daemon.
    """

    def __init__(self, given: SiteSettings | None = None, *, up: Iterable[str] = "bc") -> None:
        self.settings = given or settings()
        self.journal: list[Record] = []
        self.state = SiteState(self.settings)
        self.now = 0.0
        self.last_id = 0
        self.up = tuple(up)
        self.see: Callable[[Event, list[Command]], None] | None = None
        self.come_up()

    def come_up(self) -> None:
        """Lets the partners describe themselves."""
        for partner in self.settings.partners:
            if partner.name in self.up:
                self(PartnerUp, load=FREE, partner=partner.name, processors=partner.processors)

    def __call__(self, event: type[Event | LrmsNews], **values: Any) -> list[Command]:
        """Hands over an event, and returns the commands but records and publications.

        What the end of a job at the batch system has is given beside its key.
        """
        self.last_id += 1
        if not issubclass(event, Event):
            if event is Ended:
                values = {"key": values.pop("key"), "end": LrmsEnd(**values)}
            event, values = LrmsTold, {"news": event(**values)}
        if issubclass(event, LoadedEvent):
            values.setdefault("load", None)
        before = {job.job_id: job.shown for job in self.state.memory.jobs.values()}
        happened = event(id=self.last_id, **values)
        commands = self.state.handle(happened, self.now)
        if self.see is not None:
            self.see(happened, commands)
        # Watchers hear of every job whose state has changed; at a restart there are none yet.
        published = [command for command in commands if isinstance(command, Publish)]
        told = {job for command in published for job in (command.job, *command.also)}
        for job in self.state.memory.jobs.values():
            same = job.shown is before.get(job.job_id)
            assert same or job.job in told or event is Restarted, job.job_id
        check(self.state.memory)
        assert all(command.cause == self.last_id for command in commands)
        appends = [command for command in commands if isinstance(command, Append)]
        assert appends == [command for command in commands[:1] if isinstance(command, Append)]
        for append in appends:
            # As they are read after a restart, with fields of the right kinds.
            assert len(KIND.codec.decode(KIND.codec.encode(list(append.records)))) == len(
                append.records
            )
            self.journal += append.records
        return [command for command in commands if not isinstance(command, Append | Publish)]

    def restart(self, given: SiteSettings | None = None) -> None:
        """Ends the process; another begins with the journal, and the partners are found again."""
        self.settings = given or self.settings
        self.state = SiteState.recover(self.settings, list(self.journal))
        check(self.state.memory)

    def submit(self, load: Load | None = FULL, **changes: Any) -> list[Command]:
        """Hands in a job of ann's; by default where home is full."""
        given: dict[str, Any] = {
            "load": load,
            "user": "ann",
            "idempotency_key": f"key-{self.last_id}",
            "name": "",
            "request": REQUEST,
            "payload": b"run",
        }
        return self(Submit, **{**given, **changes})

    def job(self, number: int = 1) -> HomeJob:
        """Returns a job by its number."""
        job = self.state.job(f"a-{number}")
        assert job is not None
        return job


def offer(number: int, epoch: int = 7) -> OfferId:
    """Returns the name of an offer; by default one of site a's."""
    return OfferId(epoch, number)


def one(commands: list[Command], kind: type[AnyCommand]) -> AnyCommand:
    """Returns the one command of a kind."""
    (found,) = [command for command in commands if isinstance(command, kind)]
    return found


def kinds(commands: list[Command]) -> list[str]:
    """Returns the names of commands, in order."""
    return [type(command).__name__ for command in commands]
