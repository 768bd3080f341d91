"""What agents tell a site, as it is read: each message typed, and every number and length within its bounds.

An agent runs as the account of the pilot's job, beside the programs of those who have reserved: what it says may be
damaged, or made up. What does not fit is refused as a whole with a clear error, before anything of it is in the journal.
"""

from typing import Annotated, Final, Literal, TypeVar

import msgspec

MOMENT_MAX: Final = 1e11
"""Of a moment or a duration, seconds: some three thousand years."""

RUN_CHARACTERS_MAX: Final = 256
SAID_CHARACTERS_MAX: Final = 1000
"""Longest text for people that is kept; a longer one is cut."""

Moment = Annotated[float, msgspec.Meta(ge=-MOMENT_MAX, le=MOMENT_MAX)]
ProcessorSeconds = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
ExitCode = Annotated[int, msgspec.Meta(ge=0, le=255)]
SignalNumber = Annotated[int, msgspec.Meta(ge=0, le=127)]


class AgentSpokeWronglyError(Exception):
    """What came over a connection is no message of an agent."""


class RunTold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent tells of a run; moments are seconds of the site's clock.

    Attributes:
        why: it did not end by itself: `limit`, `until`, `killed`, `pilot`, or `folder`, and it has not begun.
        problem: for people.
    """

    run: Annotated[str, msgspec.Meta(max_length=RUN_CHARACTERS_MAX)]
    state: Literal["waiting", "running", "ended"]
    start: Moment | None = None
    end: Moment | None = None
    code: ExitCode | None = None
    signal: SignalNumber | None = None
    why: Annotated[str, msgspec.Meta(max_length=RUN_CHARACTERS_MAX)] = ""
    problem: str = ""

    @property
    def said(self) -> str:
        """The problem, as much of it as is kept."""
        return self.problem[:SAID_CHARACTERS_MAX]


class Greeting(msgspec.Struct, frozen=True):
    """Of the first message what every version has: who speaks, and in which version."""

    hello: int
    pilot: str
    secret: str = ""


class Hello(msgspec.Struct, frozen=True):
    """The first message of an agent at each connection.

    Attributes:
        job: the batch system's number of its job; may be empty.
        host: the node.
        ends_in: seconds until it ends by itself.
        draining: why it takes no more runs; empty if it does.
        over: it has no more runs, and leaves.
        used: by runs, processor-seconds.
    """

    job: Annotated[str, msgspec.Meta(max_length=RUN_CHARACTERS_MAX)]
    host: Annotated[str, msgspec.Meta(max_length=RUN_CHARACTERS_MAX)]
    ends_in: Moment
    draining: str
    over: bool
    used: ProcessorSeconds
    runs: tuple[RunTold, ...]

    def within_bounds(self) -> "Hello":
        """Returns it with what is no fault of the agent set right: a long text, and a clock that was put back."""
        draining = self.draining[:SAID_CHARACTERS_MAX]
        return msgspec.structs.replace(self, draining=draining, used=max(0.0, self.used))


class News(msgspec.Struct, frozen=True):
    """A later message; an empty one only says that the agent is there."""

    runs: tuple[RunTold, ...] = ()
    used: ProcessorSeconds | None = None
    draining: str | None = None
    over: bool = False


M = TypeVar("M", Greeting, Hello, News)


def read(line: bytes, kind: type[M]) -> M:
    """Returns a message.

    Raises:
        AgentSpokeWronglyError: it is none; the text says where.
    """
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise AgentSpokeWronglyError(f"a message is not understood: {error}") from error
