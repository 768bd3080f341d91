"""The account that a site keeps of itself, against the plain program of the documentation."""

import json
import math
import random
from dataclasses import dataclass
from typing import Any

import pytest

from grms.federation.own_account import AccountRules, CreditChange, OwnAccount, accountable
from lrms_sim.scheduling.disciplines import Conservative, Discipline, Easy, Fcfs, ListScheduling
from tests.grms.federation.plain_strict import plain

RULES = AccountRules()


@dataclass
class Life:
    """A job with a life by chance: it starts, perhaps is sent home, and ends."""

    row: int
    submit: float
    run: float
    request: float
    width: int


def _lives(rng: random.Random, processors: int) -> list[Life]:
    now = 0.0
    lives = []
    for row in range(rng.randint(5, 40)):
        now += rng.choice((0, 60, 900, 3600))
        run = float(rng.randint(1, 20_000))
        lives.append(Life(row, now, run, run + rng.randint(0, 9000), rng.randint(1, processors)))
    return lives


def _events(rng: random.Random, lives: list[Life]) -> list[tuple[float, int, str, int]]:
    """Real starts, returns and ends, in the order of time; submissions come last at one moment."""
    events: list[tuple[float, int, str, int]] = []
    for life in lives:
        events.append((life.submit, 3, "submitted", life.row))
        start = life.submit + rng.choice((0, 500, 5000, 40_000))
        if rng.random() < 0.3:
            back = start + rng.randint(1, 5000)
            events += [(start, 4, "started", life.row), (back, 1, "returned", life.row)]
            start = back + rng.choice((1, 900, 10_000))
        events += [(start, 4, "started", life.row), (start + life.run, 0, "ended", life.row)]
    last = max(event[0] for event in events)
    ticks = range(0, int(last) + 40_000, 900)
    return sorted(events + [(float(tick), 2, "look", tick) for tick in ticks])


class Both:
    """The same life told to the account and to the plain program."""

    def __init__(self, processors: int, discipline: Discipline, easy: bool) -> None:
        self.processors, self.discipline = processors, discipline
        self.account = OwnAccount(processors, discipline, RULES)
        values = {"processors": processors, "discipline": "easy" if easy else "fcfs", "rule": "G"}
        self.site = plain.Site(0, values)
        self.jobs: dict[int, Any] = {}
        self.turns: list[tuple[float, CreditChange]] = []

    def tell(self, now: float, what: str, life: Life | None) -> None:
        """Tells both of an event."""
        if what == "look":
            self._look(now)
            return
        assert life is not None
        row = life.row
        if what == "submitted":
            times = {"submit_time": now, "processors": life.width, "requested_time": life.request}
            self.account.submitted(row, **times)  # type: ignore[arg-type]  # of three types
            job = plain.Job(row, [now, life.run, life.request, life.width, 0], 0.0)
            self.jobs[row] = job
            self.site.arrivals.append(job)
            self.site.queue.append(job)
        job = self.jobs[row]
        if what == "started":
            self.account.started(row, now)
            job.start, job.end = now, math.inf
            self.site.queue.remove(job)
        elif what == "returned":
            self.account.returned(row)
            job.start = math.inf
            self.site.queue.append(job)
            self.site.queue.sort(key=lambda one: one.row)
        elif what == "ended":
            self.account.ended(row, now, life.run)
            job.end = now
            self.site.work += life.run * life.width
            self.site.work_asked += life.request * life.width

    def _look(self, now: float) -> None:
        site = self.site

        site.look(now)
        owed = site.owed(now)
        turn = self.account.look(now)
        balance = self.account.balance
        assert (balance.gain, balance.saved, balance.base) == pytest.approx(
            (site.gain, site.capped, site.base), rel=1e-12, abs=1e-6
        )
        assert balance.owed == pytest.approx(owed, rel=1e-12, abs=1e-6)
        assert balance.in_credit == (balance.saved - balance.owed >= 0)
        if turn is not CreditChange.NONE:
            self.turns.append((now, turn))
            assert balance.since == now


def _told(seed: int, discipline: Discipline, easy: bool, *, saved: bool) -> Both:
    rng = random.Random(seed)  # noqa: S311  # lives by chance, no secrets
    processors = rng.choice((4, 8, 32))
    lives = _lives(rng, processors)
    both = Both(processors, discipline, easy)
    for now, _, what, row in _events(rng, lives):
        if saved and rng.random() < 0.1:
            record = json.loads(json.dumps(both.account.record()))
            both.account = OwnAccount.of_record(record, processors, discipline, RULES)
        both.tell(now, what, None if what == "look" else lives[row])
    return both


@pytest.mark.parametrize("easy", [False, True], ids=["fcfs", "easy"])
def test_the_account_is_that_of_the_plain_program(easy: bool) -> None:
    turned = 0
    for seed in range(60):
        turned += len(_told(seed, Easy() if easy else Fcfs(), easy, saved=False).turns)
    assert turned > 20


@pytest.mark.parametrize("easy", [False, True], ids=["fcfs", "easy"])
def test_an_account_of_a_record_goes_on_where_it_was_made(easy: bool) -> None:
    for seed in range(60):
        _told(seed, Easy() if easy else Fcfs(), easy, saved=True)


def test_late_is_who_waits_and_has_begun_in_the_shadow() -> None:
    """As far as the shadow knows: it does not go beyond the end of a job that still runs."""
    account = OwnAccount(4, Fcfs(), RULES)
    for row, width in enumerate((4, 4, 4)):
        account.submitted(row, submit_time=10.0 * row, processors=width, requested_time=5000)
    account.look(900.0)
    assert account.late == 1  # the first one would run
    account.started(0, 900.0)
    account.look(1800.0)
    assert account.late == 0
    account.ended(0, 2000.0, 1100.0)
    account.look(2700.0)
    assert account.late == 1  # the second one began at 1100 there
    again = OwnAccount.of_record(json.loads(json.dumps(account.record())), 4, Fcfs(), RULES)
    assert again.late == 1


def test_memory_is_bounded_by_the_jobs_that_are_open() -> None:
    account = OwnAccount(8, Easy(), RULES)
    for row in range(1000):
        now = row * 900.0
        account.submitted(row, submit_time=now, processors=4, requested_time=600)
        account.started(row, now)
        account.ended(row, now + 300, 300)
        account.look(now + 900)
    assert len(account.record()["jobs"]) <= 2
    assert len(account._names) <= 128


def test_a_job_that_waits_longer_than_alone_costs_the_credit_and_one_that_gains_brings_it_back() -> (
    None
):
    account = OwnAccount(4, Fcfs(), RULES)
    account.submitted("a", submit_time=0, processors=4, requested_time=1000)
    assert account.look(900) is CreditChange.LOST  # alone it would run since 0
    assert not account.in_credit
    account.started("a", 950)
    assert account.look(1800) is CreditChange.REGAINED  # nobody waits, and nothing is booked yet
    account.ended("a", 1950, 1000)
    assert account.look(2700) is CreditChange.LOST
    assert account.balance.gain < 0 < account.balance.base
    assert account.balance.since == 2700


def test_a_forgotten_job_holds_up_nobody_in_the_shadow() -> None:
    account = OwnAccount(4, Fcfs(), RULES)
    for name in ("cancelled", "other"):
        account.submitted(name, submit_time=0, processors=4, requested_time=1e6)
    account.look(900)
    assert account.balance.owed == 2 * 4e6 * 900  # one runs in the shadow, one waits there
    account.forgotten("cancelled")
    account.look(1800)
    assert account.balance.owed == 4e6 * 1800
    assert [job[0] for job in account.record()["jobs"]] == ["other"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"processors": 5}, "this machine has 4"),
        ({"requested_time": -1.0}, "requested_time is -1.0"),
        ({"requested_time": math.nan}, "requested_time is nan"),
        ({"submit_time": -5.0}, "the job before it came at 0"),
    ],
)
def test_bad_jobs_are_named(wrong: dict[str, float], said: str) -> None:
    account = OwnAccount(4, Fcfs(), RULES)
    account.submitted(1, submit_time=0, processors=1, requested_time=10)
    good: dict[str, Any] = {"submit_time": 0, "processors": 1, "requested_time": 10}
    with pytest.raises(ValueError, match=said):
        account.submitted(2, **{**good, **wrong})


def test_what_is_told_of_unknown_or_ended_jobs_is_refused() -> None:
    account = OwnAccount(4, Fcfs(), RULES)
    with pytest.raises(ValueError, match="not one of this account's"):
        account.started(7, 0)
    account.submitted(7, submit_time=0, processors=1, requested_time=10)
    with pytest.raises(ValueError, match="there already"):
        account.submitted(7, submit_time=0, processors=1, requested_time=10)
    account.started(7, 0)
    with pytest.raises(ValueError, match="run_time is 0"):
        account.ended(7, 5, 0)
    account.ended(7, 5, 5)
    with pytest.raises(ValueError, match="has ended"):
        account.started(7, 6)


def test_a_damaged_record_is_named() -> None:
    record = OwnAccount(4, Fcfs(), RULES).record()
    with pytest.raises(ValueError, match="version 9"):
        OwnAccount.of_record({**record, "version": 9}, 4, Fcfs(), RULES)
    with pytest.raises(ValueError, match="damaged"):
        OwnAccount.of_record({**record, "sums": {}}, 4, Fcfs(), RULES)


def test_only_disciplines_that_can_lose_jobs_have_an_account() -> None:
    assert [accountable(one) for one in (Fcfs(), ListScheduling(), Easy(), Conservative())] == [
        True,
        True,
        True,
        False,
    ]
    with pytest.raises(ValueError, match="fcfs, list, easy"):
        OwnAccount(4, Conservative(), RULES)
