"""Sites that are no honest partners: they talk rubbish, lie, start nothing, or have forgotten.

Some misuse the way by which a job leaves its home's queue: the place that a partner holds for it.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from grms.lrms import base
from grms.simulation.simulated_site import Rubbish, SimulatedSite
from grms.simulation.state_host import Make, Question, Reply
from grms.site.model.commands import (
    AnswerOffer,
    AnswerReport,
    AnswerStatus,
    Command,
    LrmsCancel,
    LrmsSubmit,
    SendReport,
    SendResolve,
    SendWithdraw,
)
from grms.site.model.events import OfferReceived, ResolveReceived, WithdrawReceived
from grms.site.model.jobs import Completion, OfferId
from grms.site.model.lifecycle import GuestState, Outcome
from grms.site.model.records import Record


@dataclass
class TalksRubbish(SimulatedSite):
    """Answers partners with what the protocol does not have, often; it takes jobs all the same."""

    def says(self, answer: Command) -> Command:
        """Says rubbish, or what is a word and no answer."""
        draws = self.draws
        if not isinstance(answer, AnswerOffer | AnswerStatus | AnswerReport) or draws.chance(0.3):
            return answer
        if isinstance(answer, AnswerStatus) and draws.chance(0.5):
            status = (None, GuestState.ENDED, GuestState.ACCEPTED)[draws.integer(0, 2)]
            return AnswerStatus(answer.cause, status)
        return Rubbish(answer.cause)


@dataclass
class Lies(SimulatedSite):
    """Reports partners' jobs as completed at once, with times that cannot be; it runs none."""

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        key = command.lrms_key
        if key.startswith(f"{self.settings.name}/"):
            super()._lrms_submit(command)
            return
        life = self._life
        for news in (
            base.Accepted(key),
            base.Started(key, self.now),
            base.Ended(key, base.LrmsEnd(Outcome.COMPLETED, self.now, 0.0)),
        ):
            if self._life == life:
                self.lrms_told(news)

    def _send(self, command: Question) -> None:
        if isinstance(command, SendReport):
            command = replace(command, completion=_impossible(command.completion))
        super()._send(command)

    def says(self, answer: Command) -> Command:
        """Says the same when it is asked."""
        if isinstance(answer, AnswerStatus) and answer.completion is not None:
            return replace(answer, completion=_impossible(answer.completion))
        return answer


def _impossible(completion: Completion) -> Completion:
    return replace(completion, end_time=-1e18, run_time=1e300)


@dataclass
class StartsNothing(SimulatedSite):
    """Takes partners' jobs and starts none of them; it ends one when told to."""

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        key = command.lrms_key
        if key.startswith(f"{self.settings.name}/"):
            super()._lrms_submit(command)
        else:
            self.lrms_told(base.Accepted(key))

    def _lrms_cancel(self, command: LrmsCancel) -> None:
        key = command.lrms_key
        if key.startswith(f"{self.settings.name}/"):
            super()._lrms_cancel(command)
        else:
            self.lrms_told(base.Ended(key, base.LrmsEnd(Outcome.CANCELLED, self.now, 0.0)))


@dataclass
class PutBack(SimulatedSite):
    """Has its journal put back from an older copy, once."""

    copy: list[Record] = field(default_factory=list)
    put_back: bool = False

    def make_copy(self) -> None:
        """Copies the journal."""
        self.copy = list(self.journal)

    def lose(self) -> None:
        """Dies, and starts again with the copy."""
        self.crash()
        self.put_back = True
        self.journal[:] = self.copy

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        # Its batch system knows jobs of names that it gives a second time, and runs none of them.
        super()._lrms_submit(replace(command, lookup=True))


@dataclass
class NeverHeard(SimulatedSite):
    """Takes jobs and holds slots, and never reports on them."""

    def ask(self, make: Make, reply: Reply) -> None:
        """Leaves every question about an offer without an answer."""
        if not isinstance(make(0), ResolveReceived | WithdrawReceived):
            super().ask(make, reply)

    def _send(self, command: Question) -> None:
        if not isinstance(command, SendReport):
            super()._send(command)


@dataclass
class DeniesPlaces(SimulatedSite):
    """Holds places, and knows nothing of them, or will not have the job, when it is to start it."""

    def ask(self, make: Make, reply: Reply) -> None:
        """Denies starting what it is told to."""
        event = make(0)
        if not (isinstance(event, ResolveReceived) and event.confirm):
            super().ask(make, reply)
        elif self.up:
            states = (None, GuestState.DECLINED, GuestState.WITHDRAWN)
            reply(AnswerStatus(0, states[self.draws.integer(0, 2)]))


@dataclass
class EndsPlaces(SimulatedSite):
    """Says of jobs for which it holds a place, and which their homes have still, that they have ended."""

    def ask(self, make: Make, reply: Reply) -> None:
        """Reports the end of a job as soon as it holds a place for it."""
        event = make(0)

        def told(answer: Command) -> None:
            reply(answer)
            if not (isinstance(event, OfferReceived) and isinstance(answer, AnswerOffer)):
                return
            if event.reserve and answer.accepted:
                ended = Completion(event.offer, Outcome.COMPLETED, self.now, 0.0)
                # Before its home has the answer, just after that, and when the job may be leaving.
                for delay in (0.0, 0.1, 0.3):
                    self._send(SendReport(0, event.partner, ended, delay))

        super().ask(make, told)


@dataclass
class HoardsPlaces(SimulatedSite):
    """Has partners hold places for its jobs, and neither has them started nor gives them back."""

    def _send(self, command: Question) -> None:
        # Whatever else it wants to know it asks.
        confirms = isinstance(command, SendResolve) and command.confirm
        if not (confirms or isinstance(command, SendWithdraw)):
            super()._send(command)


@dataclass
class SendsHome(SimulatedSite):
    """Says of partners' jobs that they were ended for other ones: soon after their start, of each several times.

    It says so of jobs that must run to their end as well, and of offers that it never got; and that all of their work is kept,
    of which it has nothing.
    """

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        key = command.lrms_key
        if key.startswith(f"{self.settings.name}/"):
            super()._lrms_submit(command)
            return
        life, start = self._life, self.now

        def over() -> None:
            if self._life == life:
                ran = self.now - start
                end = base.LrmsEnd(Outcome.PREEMPTED, self.now, ran, kept=ran)
                self.lrms_told(base.Ended(key, end))

        for news in (base.Accepted(key), base.Started(key, start)):
            if self._life == life:
                self.lrms_told(news)
        self.clock.after(self.draws.exponential(3.0), over)

    def _send(self, command: Question) -> None:
        super()._send(command)
        if isinstance(command, SendReport) and command.delay_s < SAID_AGAIN_S:
            said = command.completion
            other = OfferId(said.offer.epoch, said.offer.number + 1)
            for delay, completion in (
                (SAID_AGAIN_S, said),
                (2.0 * SAID_AGAIN_S, replace(said, offer=other)),
            ):
                super()._send(replace(command, completion=completion, delay_s=delay))


SAID_AGAIN_S: Final = 4.0
"""When such a site says again that it has sent a job home, seconds."""

BYZANTINE_PARTNERS: Final[dict[str, type[SimulatedSite]]] = {
    "rubbish": TalksRubbish,
    "liar": Lies,
    "put back": PutBack,
}
"""What one of the sites may be."""

CONSTRAINED_BYZANTINE: Final = BYZANTINE_PARTNERS | {"starts nothing": StartsNothing}
"""If sites have exchange constraints, which protect against these."""

EVERY_BYZANTINE: Final = CONSTRAINED_BYZANTINE | {
    "never heard": NeverHeard,
    "denies places": DeniesPlaces,
    "ends places": EndsPlaces,
    "hoards places": HoardsPlaces,
}
"""If they also offer waiting jobs again."""

RETURNING_BYZANTINE: Final[dict[str, type[SimulatedSite]]] = {"sends home": SendsHome}
"""If partners' jobs may also be sent home."""

TAKERS: Final = frozenset(
    {"liar", "starts nothing", "never heard", "denies places", "ends places", "sends home"}
)
"""Those that harm the jobs they take."""

ANSWERING: Final = frozenset({"starts nothing", "ends places"})
"""Those that end a job when told to, and say so."""
