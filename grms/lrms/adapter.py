"""What makes an adapter of a batch system: its settings, and a function that makes it.

`grms.site.configuration.lrms_kinds` finds them by name: a few by itself, all others by entry points.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import Field

from grms.kit.models import Count, Model, Seconds
from grms.kit.shared_folders import SharedFolders
from grms.lrms.checks import Finding
from grms.lrms.port import Lrms, LrmsJob


class Timekeeper(Protocol):
    """The site's clock."""

    def now(self) -> float:
        """Returns the time, seconds."""

    async def sleep_until(self, moment: float) -> None:
        """Returns when the clock shows `moment`, seconds, or later."""


class LrmsSettings(Model):
    """What every adapter's table `[lrms]` has.

    Attributes:
        kind: which adapter.
        load_age_s: a load that is older is not known any more: own jobs stay at home, offers are
            declined. Real seconds.
        command_timeout_s: a command that has had no answer by then has an unknown outcome.
        commands: commands under way at one time; ends of jobs, which go together, are not counted.
    """

    kind: str
    load_age_s: Seconds = 30.0
    command_timeout_s: Seconds = 60.0
    commands: Annotated[Count, Field(le=64)] = 4

    @property
    def needs_sudo(self) -> list[str]:
        """Keys of the table by which programs run with other rights than the daemon's."""
        return []


@dataclass(frozen=True, slots=True)
class LrmsSite:
    """What an adapter is told of the site above it.

    Attributes:
        name: of the site.
        processors: size of its machine, as its configuration has it.
        clock: the site's.
        folder: where the adapter may keep files; the journal's. It exists.
        shared: folders in which jobs may use files in place.
        accounts: as which partners' jobs may run, beside the daemon's own.
        running: jobs that the journal has as started and not ended, with their starts, seconds.
        waiting: jobs that the journal has as handed over and not started, oldest first.
        moment: the last moment at which anything is known to have happened, seconds; minus
            infinity where nothing has.
        passes_held: a round of offers of a replay was under way (`ReplayableLrms.hold_passes`).
    """

    name: str
    processors: int
    clock: Timekeeper
    folder: Path
    shared: SharedFolders = field(default_factory=SharedFolders)
    accounts: Sequence[str] = ()
    running: Sequence[tuple[LrmsJob, float]] = ()
    waiting: Sequence[LrmsJob] = ()
    moment: float = float("-inf")
    passes_held: bool = False


S = TypeVar("S", bound=LrmsSettings)


@dataclass(frozen=True, slots=True)
class Adapter(Generic[S]):
    """A kind of batch system.

    Attributes:
        settings: the model of its table; its `kind` is a `Literal` of the one word.
        make: makes it. It opens and starts nothing, that is for `Lrms.open`, and raises `LrmsError`
            where jobs of the journal cannot go on.
        check: says whether everything is there that a site needs, for `grms lrms check`; the last
            argument is how long a job may take that is run for that, seconds, None for no job. None
            where there is nothing to look at.
    """

    settings: type[S]
    make: Callable[[S, LrmsSite], Lrms]
    check: Callable[[S, LrmsSite, float | None], Coroutine[Any, Any, list[Finding]]] | None = None

    def made(self, settings: Any, site: LrmsSite) -> Lrms:
        """Returns the batch system of a site.

        Args:
            settings: an instance of the model.
            site: above it.

        Raises:
            LrmsError: jobs of the journal cannot go on.
        """
        assert isinstance(settings, self.settings)
        return self.make(settings, site)
