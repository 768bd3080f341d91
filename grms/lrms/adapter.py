"""The definition of an adapter of a batch system: its settings, and its factory.

`grms.lrms.batch_systems` finds them by name: some built in, all others by entry points.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import Field

from grms.daemon.config_base import Count, Model, Seconds
from grms.daemon.shared_folders import SharedFolders
from grms.lrms.base import Lrms, LrmsJob
from grms.lrms.checks import Finding
from grms.lrms.preemption import FileLines


class Timekeeper(Protocol):
    """The site's clock."""

    def now(self) -> float:
        """Returns the time, seconds."""

    async def sleep_until(self, moment: float) -> None:
        """Returns when the clock shows `moment`, seconds, or later."""


class LrmsSettings(Model):
    """Keys that every adapter's table `[lrms]` has.

    Attributes:
        kind: which adapter.
        load_age_s: maximum age of a load, real seconds; with an older one local jobs stay local and
            incoming offers are declined.
        command_timeout_s: after this the outcome of a command is unknown.
        commands: concurrent commands, not counting cancellations, which are batched.
    """

    kind: str
    load_age_s: Seconds = 30.0
    command_timeout_s: Seconds = 60.0
    commands: Annotated[Count, Field(le=64)] = 4

    @property
    def needs_sudo(self) -> list[str]:
        """Keys of the table by which programs run with other rights than the daemon's."""
        return []

    @property
    def ends_no_guests(self) -> str:
        """Why guests are never ended for own jobs here, for people; empty if they may be."""
        return f"lrms.kind = {self.kind!r} ends no guests for own jobs"

    @property
    def as_users(self) -> bool:
        """Whether own users' jobs run as these users, or are not run at all."""
        return False

    @property
    def by_deputies(self) -> bool:
        """Whether what runs as other accounts is run by these accounts' deputies, and never through sudo."""
        return False


@dataclass(frozen=True, slots=True)
class LrmsSite:
    """What an adapter learns about its site.

    Attributes:
        processors: size of the machine, from its configuration.
        folder: existing folder for the adapter's files; the journal's.
        shared: folders whose files jobs may use in place.
        accounts: local accounts for partners' jobs, besides the daemon's own.
        users: local users as whom a check tries to submit jobs.
        partitions: partitions or queues in which partners' jobs may run by the site's tables of names.
        running: jobs started and not ended by the journal, with their starts, seconds.
        waiting: jobs handed over and not started by the journal, oldest first.
        moment: latest moment of any known event, seconds; minus infinity if there is none.
        passes_held: a replay's round of offers was under way (`ReplayableLrms.hold_passes`).
        protects: protected guests are not ended for other jobs (`WithPreemption.protect`).
    """

    name: str
    processors: int
    clock: Timekeeper
    folder: Path
    shared: SharedFolders = field(default_factory=SharedFolders)
    accounts: Sequence[str] = ()
    users: Sequence[str] = ()
    partitions: Sequence[str] = ()
    running: Sequence[tuple[LrmsJob, float]] = ()
    waiting: Sequence[LrmsJob] = ()
    moment: float = float("-inf")
    passes_held: bool = False
    protects: bool = False


S = TypeVar("S", bound=LrmsSettings)


@dataclass(frozen=True, slots=True)
class Adapter(Generic[S]):
    """A kind of batch system.

    Attributes:
        settings: model of its table; its `kind` is a `Literal` of the one word.
        make: factory. It opens and starts nothing, which is for `Lrms.open`, and raises `LrmsError`
            if jobs of the journal cannot continue.
        check: checks for `grms lrms check` whether everything a site needs is there; the last argument is the
            time limit of a test job in seconds, `None` for no job. `None` if there is nothing to check.
        preemption: lines that an operator adds so that the batch system ends guests for own jobs; `None` if none would do.
    """

    settings: type[S]
    make: Callable[[S, LrmsSite], Lrms]
    check: Callable[[S, LrmsSite, float | None], Coroutine[Any, Any, list[Finding]]] | None = None
    preemption: Callable[[S, LrmsSite], Coroutine[Any, Any, list[FileLines]]] | None = None

    def made(self, settings: Any, site: LrmsSite) -> Lrms:
        """Returns the batch system of a site; `settings` is an instance of the model.

        Raises:
            LrmsError: jobs of the journal cannot continue.
        """
        assert isinstance(settings, self.settings)
        return self.make(settings, site)
