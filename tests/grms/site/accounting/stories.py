"""Journals of a site that exchanges jobs, drawn at random or written by hand."""

import random

from grms.site.model import records
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import Record

PROCESSORS = 8
"""Of the machine of every story."""

PARTNERS = ("near", "far")


def received(job: int, time: float, processors: int = 2, requested_time: float = 100.0) -> Record:
    """Returns the arrival of a job."""
    request = Request(processors, requested_time)
    return records.JobReceived(time, job, "anna", f"key {job}", "", request, b"what runs")


def at_home(
    job: int, submit: float, start: float, run_time: float, processors: int = 2
) -> list[Record]:
    """Returns the records of a job that runs at home."""
    end = start + run_time
    return [
        received(job, submit, processors),
        records.JobKept(submit, job),
        records.JobStarted(start, job, start),
        records.JobEnded(end, job, Outcome.COMPLETED, end, run_time, ""),
    ]


def at_partner(
    job: int,
    submit: float,
    start: float,
    run_time: float,
    processors: int = 2,
    *,
    partner: str = "near",
    number: int = 0,
) -> list[Record]:
    """Returns the records of a job that one partner declines and another runs."""
    end = start + run_time
    return [
        received(job, submit, processors),
        records.JobOffered(submit, job, "stern", number or job),
        records.JobDeclined(submit, job),
        records.JobOffered(submit, job, partner, number or job),
        records.JobDelegated(submit, job),
        records.JobEnded(end, job, Outcome.COMPLETED, end, run_time, f"ran at {partner}"),
    ]


def guest(
    number: int,
    accepted: float,
    start: float,
    run_time: float,
    processors: int = 2,
    *,
    partner: str = "near",
) -> list[Record]:
    """Returns the records of a partner's job here."""
    offer, end = OfferId(1, number), start + run_time
    request = Request(processors, 100.0)
    return [
        records.GuestAccepted(accepted, GuestRef(partner, offer), 1, request, b"what runs"),
        records.JobStarted(start, GuestRef(partner, offer), start),
        records.JobEnded(end, GuestRef(partner, offer), Outcome.COMPLETED, end, run_time, ""),
    ]


def random_story(seed: int, jobs: int = 12) -> list[Record]:
    """Returns the records of a site whose jobs run anywhere, end or not, or never run, and guests.

    When jobs ran is drawn as well: no machine could have run them so, and no report may mind.
    """
    chance = random.Random(seed)  # noqa: S311  # of stories, and no secret
    stories: list[list[Record]] = []
    for job in range(1, jobs + 1):
        submit = float(chance.randrange(300))
        start, run_time = submit + chance.randrange(200), float(chance.randrange(1, 100))
        processors = chance.randrange(1, PROCESSORS + 1)
        fate = chance.randrange(8)
        if fate < 3:
            story = at_home(job, submit, start, run_time, processors)
        elif fate < 6:
            partner = chance.choice(PARTNERS)
            story = at_partner(job, submit, start, run_time, processors, partner=partner)
            if fate == 5:
                lie = records.ReportDisbelieved(story[-1].time, partner, job, "no")
                story = [*story, lie] if chance.random() < 0.5 else story[:-1]
        elif fate == 6:
            cancelled = records.JobEnded(start, job, Outcome.CANCELLED, start, 0.0, "")
            story = [received(job, submit, processors), records.JobKept(submit, job), cancelled]
        else:
            # Delegated, given back, and run at home.
            away = at_partner(job, submit, start, run_time, processors)[:-1]
            home = at_home(job, start, start, run_time, processors)[1:]
            back: list[Record] = [
                records.JobReturned(start, job),
                records.JobSentHome(start, job, PARTNERS[0], 2.0),
            ]
            story = [*away, back[job % 2], *home]
        stories.append(story)
    for number in range(1, jobs // 2 + 1):
        accepted = float(chance.randrange(300))
        partner = chance.choice(PARTNERS)
        stories.append(
            guest(number, accepted, accepted, float(chance.randrange(1, 90)), 1, partner=partner)
        )
    numbered = [
        (record.time, number, position, record)
        for number, story in enumerate(stories)
        for position, record in enumerate(story)
    ]
    return [record for *_, record in sorted(numbered, key=lambda one: one[:3])]
