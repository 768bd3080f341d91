"""How far a round of offers has come, by the records of its site."""

import math
from collections import Counter

from grms.lrms import base
from grms.policy.rebalancing import Rebalancing, Waiting
from grms.site.model.commands import PublishRound, SendOffer, SendWithdraw
from grms.site.model.events import OfferAnswered, Restarted, RoundDue, StatusAnswered
from grms.site.model.jobs import OfferId, Request
from grms.site.model.lifecycle import GuestState
from grms.site.model.rebalance_rounds import RebalanceBook
from grms.site.model.records import (
    JobKept,
    JobLeaving,
    JobLeft,
    JobReceived,
    JobReoffered,
    JobReofferEnded,
    JobStarted,
    Record,
    RoundHeld,
)
from grms.site.model.state_tables import StateTables
from tests.grms.site.conversation import FULL, Conversation, one, settings

SPARING = Rebalancing(900.0, "widest", pause=7200.0)
BEGUN = RoundHeld(900.0, over=False, left_out=())
OVER = RoundHeld(901.0, over=True, left_out=())


def memory(*records: Record) -> StateTables:
    """Returns what a site knows where four jobs wait, each twice as wide as the one before."""
    made = StateTables(settings(processors=16, reoffer=SPARING))
    for job in (1, 2, 3, 4):
        request = Request(2 ** (job - 1), 100.0)
        made.apply(JobReceived(1.0, job, "ann", str(job), "", request, b""))
        made.apply(JobKept(1.0, job))
    for record in records:
        made.apply(record)
    return made


def test_a_round_has_the_jobs_that_wait() -> None:
    """In the order of their turns, without those that run or that the record leaves out."""
    begun = RoundHeld(900.0, over=False, left_out=(3,))
    rounds = memory(JobStarted(2.0, 1, 2.0), begun).rounds
    assert rounds.order == [Waiting(2, 2, 100.0), Waiting(4, 8, 100.0)]
    assert (rounds.open, rounds.begun) == (True, 900.0)
    assert not memory(begun, OVER).rounds.open
    never = memory().rounds
    assert (never.open, never.begun) == (False, -math.inf)
    assert (never.job, never.again, never.questions) == (0, "", 0)


def test_a_round_knows_whom_it_has_asked() -> None:
    """About the job whose turn it is; an answer that has not come is to be asked for again."""
    asked = (BEGUN, JobReoffered(900.0, 1, "b", 1), JobReofferEnded(900.0, 1, "b", 1, True))
    rounds = memory(*asked).rounds
    assert (rounds.job, rounds.asked, rounds.again, rounds.questions) == (1, ["b"], "", 1)
    assert rounds.declined == [(Waiting(1, 1, 100.0), "b")]
    again = (JobReoffered(900.0, 1, "c", 1), JobReofferEnded(900.0, 1, "c", 1, False))
    rounds = memory(*asked, *again).rounds
    assert (rounds.job, rounds.asked, rounds.again, rounds.questions) == (1, ["b"], "c", 1)
    assert rounds.put == Counter("bc")
    rounds = memory(*asked, *again, JobReoffered(900.0, 1, "c", 2)).rounds
    assert (rounds.asked, rounds.again, rounds.questions) == (["b", "c"], "", 2)
    assert rounds.put == Counter("bcc")
    rounds = memory(*asked, JobReoffered(900.0, 4, "b", 2)).rounds
    assert (rounds.job, rounds.asked, rounds.put) == (4, ["b"], Counter("b"))


def test_a_question_that_is_no_part_of_a_round_changes_nothing() -> None:
    """Its round is over by then, or it was about another job."""
    late = (JobReoffered(900.0, 1, "b", 1), OVER, JobReofferEnded(902.0, 1, "b", 1, False))
    rounds = memory(BEGUN, *late).rounds
    assert (rounds.asked, rounds.again, rounds.questions) == (["b"], "", 1)
    book = RebalanceBook()
    book.ask(1, "b")
    assert (book.job, book.asked, book.questions) == (0, [], 0)
    book.open = True
    book.ask(1, "b")
    book.give_up(2, "b")
    book.give_up(1, "c")
    assert (book.asked, book.again, book.questions) == (["b"], "", 1)
    book.give_up(1, "b")
    assert (book.asked, book.again, book.questions) == ([], "b", 0)


def test_a_round_knows_what_has_left() -> None:
    """Also when it is over; the next round begins anew."""
    left = (JobReoffered(900.0, 4, "b", 1), JobLeaving(900.0, 4), JobLeft(900.0, 4))
    assert memory(BEGUN, *left, OVER).rounds.moved == [4]
    rounds = memory(BEGUN, *left, OVER, RoundHeld(1800.0, over=False, left_out=())).rounds
    assert (rounds.moved, rounds.job, rounds.questions) == ([], 0, 0)
    assert [one.job for one in rounds.order] == [1, 3, 2]


def test_pauses_grow_from_round_to_round() -> None:
    """Each is twice the one before, and those of jobs that wait no more are forgotten."""
    no = (JobReoffered(900.0, 1, "b", 1), JobReofferEnded(900.0, 1, "b", 1, True))
    assert memory(BEGUN, *no).rounds.pauses == {1: {"b": (1800.0, 900.0)}}
    later = RoundHeld(1800.0, over=False, left_out=())
    more = (JobReoffered(1800.0, 1, "b", 2), JobReofferEnded(1800.0, 1, "b", 2, True))
    assert memory(BEGUN, *no, OVER, later, *more).rounds.pauses == {1: {"b": (3600.0, 1800.0)}}
    gone = memory(BEGUN, *no, OVER, JobStarted(1000.0, 1, 1000.0), later)
    assert gone.rounds.pauses == {}


def test_a_question_that_is_put_once_more_is_one() -> None:
    """For the bound of a round, and for that of a job: b's answer is lost, c's is the second of two."""
    site = Conversation(settings(reoffer=Rebalancing(900.0, questions=2), partners_asked=2), up=())
    for key in ("a/7/1", "a/7/2"):
        site.submit(load=None)
        site(base.Accepted, key=key)
    site.up = ("b", "c")
    site.come_up()
    lost = one(site(RoundDue, load=FULL), SendOffer)
    site.restart()
    withdraw = one(site(Restarted, load=FULL), SendWithdraw)
    for key in ("a/7/1", "a/7/2"):
        site(base.Accepted, key=key)
    site.come_up()
    site(RoundDue, load=FULL)
    told = {"question": withdraw.cause, "status": GuestState.WITHDRAWN, "completion": None}
    for partner, number in (("b", 2), ("c", 1)):
        commands = (
            site(StatusAnswered, load=FULL, partner="b", offer=lost.offer, **told)
            if partner == "b"
            else site(OfferAnswered, load=FULL, partner="b", offer=OfferId(7, 2), accepted=False)
        )
        asked = one(commands, SendOffer)
        assert (asked.partner, asked.offer) == (partner, OfferId(7, number))
    over = site(OfferAnswered, load=FULL, partner="c", offer=OfferId(7, 1), accepted=False)
    assert [type(command) for command in over] == [PublishRound]
