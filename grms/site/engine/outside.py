"""Which of a site's commands somebody outside its process hears of.

A reply is one where somebody has asked; what partners are told always is. What is told to the batch
system is the engine's to judge, as a simulated one is in the process. Others change what those are shown
who watch, which is never ahead of the journal.
"""

from typing import Final, get_args

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
