"""A shorter journal that makes the same memory, whatever has happened and whatever comes."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from grms.site.compaction import compacted
from grms.site.jobs import Request
from grms.site.lifecycle import Outcome
from grms.site.memory import Memory
from grms.site.records import JobEnded, JobReceived, PartnerTally, Record, SiteTally
from grms.site.settings import Limits, SiteSettings
from grms.site.state import SiteState
from grms.testing.trial import Trial

REQUEST = Request(1, 10.0)


def everything(settings: SiteSettings, records: list[Record]) -> object:
    """Returns all that a memory holds of records, every job and guest with every attribute."""
    memory = Memory(settings)
    for record in records:
        memory.apply(record)

    def shown(thing: Any) -> object:
        return [(name, repr(getattr(thing, name))) for name in thing.__slots__]

    books = [
        [
            (name, getattr(book, name))
            for name in book.__slots__
            if name not in {"guests", "answered", "undecided", "open"}
        ]
        for book in memory.books.values()
    ]
    inside = [
        (
            list(book.undecided),
            list(book.open),
            [(offer, shown(guest)) for offer, guest in book.guests.items()],
            [(n, shown(a) if hasattr(a, "offer") else a) for n, a in book.answered.items()],
        )
        for book in memory.books.values()
    ]
    jobs = [shown(job) for job in memory.jobs.values()]
    return (
        (jobs, books, inside, memory.keys, memory.open_by_user, list(memory.ended)),
        (memory.next_job, memory.jobs_open, memory.unconfirmed, list(memory.at_lrms)),
    )


@pytest.mark.parametrize("on_lost", ["wait", "resubmit"])
@pytest.mark.parametrize(("kept", "least"), [(1, 100), (3, 30), (1000, 10)])
def test_the_memory_is_the_same(
    kept: int, least: int, on_lost: Literal["wait", "resubmit"]
) -> None:
    """For journals of sites that crash, with partners that are lost, at many lengths of them."""
    lost = 0
    for seed in range(40):
        trial = Trial(seed, SiteState, None, on_lost)
        trial.run()
        for site in trial.sites.values():
            few = replace(site.settings, limits=Limits(jobs_kept=kept))
            for length in range(seed % 11, len(site.journal) + 1, 11):
                lost += check(few, site.journal[:length], site.journal[length:], on_lost)
    assert lost > least


def check(settings: SiteSettings, begin: list[Record], rest: list[Record], on_lost: str) -> int:
    """Checks a journal that is compacted and goes on; returns how many records it lost."""
    short = compacted(settings, lambda: begin)
    if short is None:
        assert on_lost == "resubmit"
        return 0
    assert everything(settings, short) == everything(settings, begin)
    # And so it stays, with whatever comes after it, and compacted once more.
    whole = begin + rest
    assert everything(settings, short + rest) == everything(settings, whole)
    assert compacted(settings, lambda: short + rest) == compacted(settings, lambda: whole)
    return len(begin) - sum(not isinstance(one, SiteTally | PartnerTally) for one in short)


def compacting(settings: SiteSettings, records: Any = ()) -> SiteState:
    """Makes a state of a journal that is compacted before it is read."""
    records = list(records)
    short = compacted(settings, lambda: records)
    return SiteState(settings, records if short is None else short)


def test_every_job_still_runs_exactly_once() -> None:
    """The fault test passes with daemons that compact their journals at every start."""
    for seed in range(1000, 1150):
        assert Trial(seed, compacting, None, "wait").run().problems == ()


def test_a_forgotten_job_leaves_its_number_alone() -> None:
    """Only the next number and counts are left of it; the payload is gone."""
    settings = SiteSettings("a", 4, limits=Limits(jobs_kept=1))
    records: list[Record] = []
    for number in (1, 2, 3):
        records += [
            JobReceived(1.0 * number, number, "u", f"k{number}", "", REQUEST, b"payload"),
            JobEnded(1.0 * number, number, Outcome.CANCELLED, 1.0 * number, 0.0, ""),
        ]
    short = compacted(settings, lambda: records)
    assert short is not None
    assert [type(record).__name__ for record in short] == ["JobReceived", "JobEnded", "SiteTally"]
    assert short[-1] == SiteTally(3.0, 4)
