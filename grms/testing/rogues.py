"""Sites that are no honest partners: they talk rubbish, lie, start nothing, or have forgotten."""

from dataclasses import dataclass, field, replace

from grms.site.facts.commands import (
    AnswerOffer,
    AnswerReport,
    AnswerStatus,
    Command,
    LrmsCancel,
    LrmsSubmit,
)
from grms.site.facts.events import LrmsAccepted, LrmsEnded, LrmsStarted
from grms.site.facts.jobs import Completion
from grms.site.facts.lifecycle import GuestState, Outcome
from grms.site.facts.records import Record
from grms.testing.site import Rubbish, SimulatedSite


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
        for event in (
            lambda i: LrmsAccepted(i, key),
            lambda i: LrmsStarted(i, key, self.now),
            lambda i: LrmsEnded(i, key, Outcome.COMPLETED, self.now, 0.0),
        ):
            if self._life == life:
                self.happen(event)

    def reports(self, completion: Completion) -> Completion:
        """Reports what cannot be."""
        return replace(completion, end_time=-1e18, run_time=1e300)

    def says(self, answer: Command) -> Command:
        """Says the same when it is asked."""
        if isinstance(answer, AnswerStatus) and answer.completion is not None:
            return replace(answer, completion=self.reports(answer.completion))
        return answer


@dataclass
class StartsNothing(SimulatedSite):
    """Takes partners' jobs and starts none of them; it ends one when it is told to."""

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        key = command.lrms_key
        if key.startswith(f"{self.settings.name}/"):
            super()._lrms_submit(command)
        else:
            self.happen(lambda i: LrmsAccepted(i, key))

    def _lrms_cancel(self, command: LrmsCancel) -> None:
        key = command.lrms_key
        if key.startswith(f"{self.settings.name}/"):
            super()._lrms_cancel(command)
        else:
            self.happen(lambda i: LrmsEnded(i, key, Outcome.CANCELLED, self.now, 0.0))


@dataclass
class PutBack(SimulatedSite):
    """Has its journal put back from an older copy, once.

    Attributes:
        copy: of the journal.
        put_back: it was.
    """

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
