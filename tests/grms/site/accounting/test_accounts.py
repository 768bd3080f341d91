"""What a journal's records say of jobs that have ended."""

import math

from grms.site.accounting.accounts import Accounts, GuestRun, OfferAnswer, OwnRun
from grms.site.model import records
from grms.site.model.lifecycle import Outcome
from tests.grms.site.accounting.stories import at_home, at_partner, guest, received


def accounts(*stories: list[records.Record]) -> Accounts:
    """Returns what stories say, one after the other."""
    found = Accounts()
    for story in stories:
        for record in story:
            found.take(record)
    return found


def test_a_job_at_home_is_told_as_it_was() -> None:
    """With the moment at which the batch system was to get it."""
    found = accounts(at_home(1, 10.0, 15.0, 30.0, 4))
    assert found.own == [OwnRun(1, 4, 100.0, 10.0, 0, 10.0, 1, 45.0, 30.0, "")]
    assert (found.first_time, found.last_time, found.open) == (10.0, 45.0, 0)
    assert math.isnan(found.shortened_time)


def test_a_job_at_a_partner_is_told_with_all_answers() -> None:
    """It ran where it was accepted last."""
    found = accounts(at_partner(1, 10.0, 15.0, 30.0, 4, partner="near"))
    assert found.own == [OwnRun(1, 4, 100.0, 10.0, 0, 10.0, 4, 45.0, 30.0, "near")]
    assert found.answers == [
        OfferAnswer(1, "stern", 4, 100.0, accepted=False),
        OfferAnswer(1, "near", 4, 100.0, accepted=True),
    ]


def test_a_job_that_left_the_queue_ran_where_a_place_was_held() -> None:
    """Who said no is known, who said nothing did not answer; one that stays ran here."""
    waits = at_home(1, 10.0, 15.0, 30.0, 4)
    rounds: list[records.Record] = [
        records.JobReoffered(900.0, 1, "stern", 1),
        records.JobReofferEnded(900.0, 1, "stern", 1, settled=True),
        records.JobReoffered(900.0, 1, "mute", 1),
        records.JobReofferEnded(902.0, 1, "mute", 1, settled=False),
        records.JobReoffered(1800.0, 1, "near", 1),
        records.JobLeaving(1800.0, 1),
    ]
    left = [records.JobLeft(1801.0, 1), records.JobDelegated(1802.0, 1)]
    ended = records.JobEnded(1900.0, 1, Outcome.COMPLETED, 1900.0, 90.0, "ran at near")
    found = accounts(waits[:2], rounds, [*left, ended])
    assert found.own[0].partner == "near"
    assert [(answer.partner, answer.accepted) for answer in found.answers] == [
        ("stern", False),
        ("near", True),
    ]
    stays = records.JobReofferEnded(1801.0, 1, "near", 1, settled=False)
    found = accounts(waits[:2], rounds, [stays, ended])
    assert found.own[0].partner == ""


def test_an_end_that_overtakes_the_answer_is_an_acceptance() -> None:
    """As the site's own books have it."""
    story = [record for record in at_partner(1, 10.0, 15.0, 30.0) if record.time > 10.0]
    asked = [received(1, 10.0), records.JobOffered(11.0, 1, "near", 1)]
    found = accounts(asked, story)
    assert [answer.accepted for answer in found.answers] == [True]
    assert found.own[0].partner == "near"


def test_a_job_that_came_back_ran_at_home() -> None:
    """Whether the partner gave it back, has ended it for another job, or was given up on."""
    for back in (
        records.JobReturned(20.0, 1),
        records.JobSentHome(20.0, 1, "near", 2.0),
        records.JobAbandoned(20.0, 1),
    ):
        away, home = at_partner(1, 10.0, 15.0, 5.0)[:-1], at_home(1, 20.0, 21.0, 5.0)[1:]
        found = accounts(away, [back], home)
        assert (found.own[0].partner, found.own[0].handed_time) == ("", 20.0)


def test_a_job_that_is_offered_while_it_waits_at_home_keeps_its_place_there() -> None:
    """A partner's no changes nothing of it."""
    begin, *rest = at_home(1, 0.0, 50.0, 5.0)
    asked = [records.JobOffered(20.0, 1, "near", 1), records.JobDeclined(21.0, 1)]
    found = accounts([begin, rest[0]], asked, rest[1:])
    assert (found.own[0].partner, found.own[0].handed_time, found.own[0].handed_after) == (
        "",
        0.0,
        1,
    )


def test_a_report_that_cannot_be_true_is_noted_for_its_own_job_alone() -> None:
    """Also where another partner has the same number."""
    one = [*at_partner(1, 0.0, 1.0, 5.0, number=7), records.ReportDisbelieved(6.0, "near", 7, "no")]
    other = at_partner(2, 0.0, 1.0, 5.0, partner="far", number=7)
    assert accounts(one, other).disbelieved == {1}
    stray = [*other, records.ReportDisbelieved(6.0, "near", 7, "no")]
    assert accounts(stray).disbelieved == set()


def test_guests_are_told_when_they_have_ended() -> None:
    """Not before."""
    story = guest(1, 5.0, 6.0, 20.0, 3, partner="far")
    assert accounts(story[:-1]).guests == []
    assert accounts(story).guests == [GuestRun("far", 3, 100.0, 5.0, 0, 26.0, 20.0)]


def test_what_begins_before_the_journal_is_passed_over() -> None:
    """A journal that was shortened has ends of jobs that it does not have."""
    end = records.JobEnded(9.0, 4, Outcome.COMPLETED, 9.0, 5.0, "")
    others = [
        records.JobOffered(1.0, 4, "near", 1),
        records.JobDelegated(1.0, 4),
        records.JobDeclined(1.0, 4),
        records.JobReturned(1.0, 4),
        records.JobSentHome(1.0, 4, "near", 2.0),
        records.JobKept(1.0, 4),
    ]
    found = accounts([records.SiteTally(1.0, 9), *others, end, guest(1, 5.0, 6.0, 20.0)[-1]])
    assert (found.own, found.guests, found.answers, found.open) == ([], [], [], 0)
    assert found.shortened_time == 1.0


def test_kinds_are_those_of_records() -> None:
    """A reader may leave out the others."""
    assert set(records.KINDS) > Accounts().kinds
    assert records.JobStarted not in Accounts().kinds
