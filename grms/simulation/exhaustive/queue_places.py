"""The places of jobs that are elsewhere, and the partner that has them, below a site that is explored.

The partner is no site: it answers at once and truly, ends jobs for others, and reports ends when it likes. What messages
between sites may meet is explored with two sites (`space`).
"""

from typing import Any, Final

from grms.lrms.base import LrmsRefusedError
from grms.lrms.batch.launcher import place_key
from grms.lrms.batch.queue_snapshot import JobRow
from grms.lrms.job_notes import KeptPlace
from grms.simulation.exhaustive.bounds import sites
from grms.simulation.exhaustive.choices import ViolationError
from grms.simulation.exhaustive.cluster import (
    ASIDE,
    ASKED,
    DECLINED,
    ENDED_THERE,
    FAR,
    HAS,
    HELD_THERE,
    MARKER,
    RAN_THERE,
    SENT_HOME,
    WAITS,
    Guest,
    key_of,
    program_of,
)
from grms.simulation.exhaustive.queue_steps import Below, Folders, QueueStep, TroubledSystem
from grms.site.model.commands import (
    AnswerOffer,
    AnswerStatus,
    Command,
    SendOffer,
    SendResolve,
    SendWithdraw,
)
from grms.site.model.jobs import Completion, OfferId
from grms.site.model.lifecycle import GuestState, Outcome
from grms.site.model.settings import SiteSettings

PARTNER: Final = "b"

GIVES: Final[SiteSettings] = sites(2, requeue="allow", reoffer=1.0, keeps_places=True)[0]
"""Of a site that offers a partner all it has, which may send it home, and keeps the places meanwhile."""

_ENDED: Final = {
    RAN_THERE: Outcome.COMPLETED,
    SENT_HOME: Outcome.PREEMPTED,
    ENDED_THERE: Outcome.CANCELLED,
}
"""How a job has ended at the partner."""


class Partner:
    """The partner, while something happens to it."""

    def __init__(self, step: QueueStep) -> None:
        self._step = step
        self._world = step.world

    def asked(self, question: SendOffer | SendResolve | SendWithdraw) -> Command:
        """Answers a question about a job."""
        if isinstance(question, SendOffer):
            return self._offered(question)
        found = self._of(question.offer)
        if found is None:
            withdrawn = isinstance(question, SendWithdraw)
            return AnswerStatus(0, GuestState.WITHDRAWN if withdrawn else None)
        key, guest = found
        if isinstance(question, SendResolve):
            if question.confirm and guest.phase == HELD_THERE:
                guest = guest._replace(phase=HAS)
        elif guest.phase == HELD_THERE or (guest.phase == HAS and question.cancel):
            guest = guest._replace(phase=ENDED_THERE)
        self._world.at_partner(key, guest)
        return _status(guest)

    def _offered(self, offer: SendOffer) -> Command:
        key = key_of(int(offer.payload))
        known = self._of(offer.offer)
        if known is None:
            self._must_be_over(key)
            word = self._step.choices.pick("", ("the partner declines", "decline"))
            taken = HELD_THERE if offer.reserve else HAS
            guest = Guest(_number(offer.offer), DECLINED if word else taken, reported=bool(word))
            self._world.at_partner(key, guest)
        else:
            guest = known[1]
        return AnswerOffer(0, guest.phase != DECLINED)

    def _must_be_over(self, key: str) -> None:
        guest = self._world.value.programs[program_of(key)].guest
        if guest is not None and guest.phase in {HELD_THERE, HAS}:
            raise ViolationError(f"job {key} is offered once more, and the partner {guest.phase}")

    def seen(self) -> OfferId | None:
        """Returns the last offer that it has seen."""
        guests = [one.guest for one in self._world.value.programs if one.guest is not None]
        return OfferId(*max(guest.offer for guest in guests)) if guests else None

    def completion(self, at: int) -> Completion:
        """Returns how a job has ended there."""
        guest = self._world.value.programs[at].guest
        assert guest is not None
        return completion_of(guest)

    def heard(self, at: int) -> None:
        """Notes that the end of a job was heard."""
        guest = self._world.value.programs[at].guest
        assert guest is not None
        self._world.at_partner(key_of(at), guest._replace(reported=True))

    def _of(self, offer: OfferId) -> tuple[str, Guest] | None:
        for at, program in enumerate(self._world.value.programs):
            guest = program.guest
            if guest is not None and guest.offer == _number(offer):
                return key_of(at), guest
        return None


def _number(offer: OfferId) -> tuple[int, int]:
    return offer.epoch, offer.number


def _status(guest: Guest) -> AnswerStatus:
    if guest.phase == DECLINED:
        return AnswerStatus(0, GuestState.DECLINED)
    if guest.phase in _ENDED:
        return AnswerStatus(0, GuestState.ENDED, completion_of(guest))
    return AnswerStatus(0, GuestState.ACCEPTED)


def completion_of(guest: Guest) -> Completion:
    """Returns what the partner reports of a job that has ended there."""
    ran = 0.0 if guest.phase == ENDED_THERE else 1.0
    return Completion(OfferId(*guest.offer), _ENDED[guest.phase], 0.0, ran)


def is_over(guest: Guest) -> bool:
    """Returns whether a job has ended at the partner."""
    return guest.phase in _ENDED


# --- below the adapter ---------------------------------------------------------------------------


class PlaceFolders(Folders):
    """The jobs' folders, with what has launchers wait or end."""

    def can_be_aside(self, key: str) -> bool:
        """See `Spool.can_be_aside`."""
        return bool(self._world.folder(key).made)

    def ask_aside(self, key: str) -> None:
        """See `Spool.ask_aside`."""
        folder = self._world.folder(key)
        if not folder.aside:
            self._mark(key, ASKED)

    def is_asked_aside(self, key: str) -> bool:
        """See `Spool.is_asked_aside`."""
        folder = self._world.folder(key)
        return folder.aside == ASKED or (not folder.aside and bool(folder.made))

    def set_aside(self, key: str) -> None:
        """See `Spool.set_aside`."""
        self._mark(key, ASIDE)

    def lift_aside(self, at: str, key: str) -> None:
        """See `Spool.lift_aside`."""
        if at != key:
            self._mark(at, key)
        self._mark(key, "")

    def _mark(self, key: str, what: str) -> None:
        self._step.may_die("it writes what has a launcher wait")
        self._world.keep(self._world.folder(key)._replace(aside=what))

    def keep_place(self, key: str, place: KeptPlace) -> None:
        """See `Spool.keep_place`."""
        self._step.may_die("it notes a place")
        self._world.note_place(key, place)

    def forget_place(self, key: str) -> None:
        """See `Spool.forget_place`."""
        self._step.may_die("it deletes the note of a place")
        self._world.note_place(key, None)

    def places(self) -> dict[str, KeptPlace]:
        """See `Spool.places`."""
        return dict(self._world.value.places)


class PlacingSystem(TroubledSystem):
    """The batch system as the adapter has it (`PlaceKeepingSystem`)."""

    keeps_places = True

    def place_name(self, key: str) -> str:
        """See `PlaceKeepingSystem.place_name`."""
        return f"{self.encode(place_key(key))}{MARKER}"

    def place_of(self, name: str) -> str | None:
        """See `PlaceKeepingSystem.place_of`."""
        return self.name_in(name).removesuffix(MARKER) if name.endswith(MARKER) else None

    def shown_as(self, name: str, key: str) -> str:
        """See `PlaceKeepingSystem.shown_as`."""
        del name
        return self.encode(key)

    def is_aside(self, row: JobRow) -> bool:
        """See `PlaceKeepingSystem.is_aside`."""
        return row.reason == FAR

    async def set_aside(self, row: JobRow, name: str) -> None:
        """See `PlaceKeepingSystem.set_aside`."""
        job = self._world.job(int(row.number))
        starts = job is not None and job.phase == WAITS and not job.far
        if starts and self._step.choices.pick("", ("it starts as it is to leave", "race")):
            self._world.start(int(row.number))
        self._change("a change of name and start", row, key=self.name_in(name), far=True)

    async def rename(self, row: JobRow, name: str) -> None:
        """See `PlaceKeepingSystem.rename`."""
        self._change("a change of name", row, key=self.name_in(name))

    async def start_now(self, row: JobRow) -> None:
        """See `PlaceKeepingSystem.start_now`."""
        self._change("a change of start", row, far=False)

    def _change(self, what: str, row: JobRow, **changes: Any) -> None:
        if not self._tells(what, lambda: self._world.change(int(row.number), **changes)):
            raise LrmsRefusedError("Job is no longer pending execution")


PLACES: Final = Below(PlacingSystem, PlaceFolders, places=True)
"""Below an adapter that keeps places."""
