"""What is outside of the engine, and which of a site's commands somebody outside its process hears of.

A reply is one where somebody has asked; what partners are told always is. What is told to the batch
system is the engine's to judge, as a simulated one is in the process. Others change what those are shown
who watch, which is never ahead of the journal.
"""

from collections.abc import Iterable
from typing import Final, Protocol, get_args

from grms.lrms.slips import Slips
from grms.site.facts.commands import (
    AnswerOffer,
    AnswerReport,
    AnswerStatus,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    Publish,
    PublishReservation,
    PublishRound,
    Refuse,
    ReplyJob,
    ReplyPardon,
    ReplyReservation,
    SendOffer,
    SendProbe,
    SendReport,
    SendResolve,
    SendWithdraw,
)
from grms.site.facts.events import Event
from grms.site.facts.jobs import Load

Reply = (
    ReplyJob | ReplyPardon | ReplyReservation | Refuse | AnswerOffer | AnswerStatus | AnswerReport
)
"""What a question is answered with."""

Send = SendOffer | SendResolve | SendWithdraw | SendReport | SendProbe
"""What is said to a partner."""

REPLIES: Final[frozenset[type[Command]]] = frozenset(get_args(Reply))
SENDS: Final[frozenset[type[Command]]] = frozenset(get_args(Send))
TO_LRMS: Final[frozenset[type[Command]]] = frozenset({LrmsSubmit, LrmsCancel})
STAYS: Final[frozenset[type[Command]]] = frozenset({Append, Publish, PublishReservation})
"""What nobody waits for. The end of a round (`PublishRound`) is waited for by whoever has begun it."""

WAITED_FOR: Final[frozenset[type[Command]]] = SENDS | {PublishRound}
"""What somebody outside hears of, or waits for, in any case."""


class Driver(Protocol):
    """Carries out commands to the batch system; what happens there is told through `Engine.hear`."""

    @property
    def load_age(self) -> float | None:
        """How old the load is, seconds; None where there has been none."""

    @property
    def problem(self) -> str:
        """Why no job can be handed in although the batch system answers; empty where that is not so."""

    @property
    def commands_open(self) -> int:
        """How many commands the batch system has not answered."""

    @property
    def slips(self) -> Slips:
        """How often the batch system has not kept what it said."""

    def load(self) -> Load | None:
        """Returns the load as it is known now; None where it is not."""

    def due(self) -> Iterable[Event]:
        """Returns what has happened by now, where that can be known at once."""

    def do(self, command: LrmsSubmit | LrmsCancel) -> Iterable[Event]:
        """Takes a command, and returns what has come of it so far."""


class Outward(Protocol):
    """Says to partners what the state wants said."""

    def send(self, command: Send) -> None:
        """Begins to send; the outcome comes back as an event."""
