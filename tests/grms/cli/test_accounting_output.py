"""What `grms exchange` says of a site's circuit breaker, for people and for programs."""

from pathlib import Path
from typing import Any

import pytest

from grms.cli.accounting_output import account_lines
from grms.cli.main import run_command
from grms.site.accounting.own_account import AccountFigures
from tests.grms.cli.test_accounting_cli import site, week
from tests.grms.site.accounting.stories import at_home, guest
from tests.schemas import printed


@pytest.mark.parametrize(
    ("circuit_breaker", "said", "jobs"),
    [
        ("jobs = 3", "Circuit breaker: exchange goes on. It has brought 3 own jobs of 90 days", 3),
        (
            "",
            "Circuit breaker: 3 own jobs of 90 days are too few to judge by (100); exchange goes on.",
            3,
        ),
        (
            "jobs = 5\nsince = 5000",
            "Circuit breaker: 2 own jobs of 90 days are too few to judge by (5);",
            2,
        ),
    ],
)
def test_the_circuit_breaker_is_shown_by_the_same_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], circuit_breaker: str, said: str, jobs: int
) -> None:
    """With its own window; programs get its numbers and what it says."""
    path = Path(site(tmp_path, week(), clock="wall"))
    path.write_text(f"{path.read_text()}[circuit_breaker]\n{circuit_breaker}\n")
    assert run_command(["exchange", str(path)]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert run_command(["exchange", str(path), "--json"]) == 0
    document = printed("grms-exchange", capsys.readouterr().out)["circuit_breaker"]
    assert (document["jobs"], document["stops"]) == (jobs, False)


def test_a_circuit_breaker_that_stops_says_what_exchange_has_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is not done meanwhile."""
    story = [*guest(1, 0.0, 0.0, 90.0, 8), *at_home(1, 1.0, 90.0, 10.0, 8)]
    path = Path(site(tmp_path, story, clock="wall"))
    path.write_text(f"{path.read_text()}[circuit_breaker]\njobs = 1\n")
    assert run_command(["exchange", str(path)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) < 80
    assert (
        "Circuit breaker: exchange stands still. It has cost 1 own job of 90 days 890.0 %, and 2 % is what it "
        "may cost: guests are declined" in " ".join(shown.split())
    )
    assert run_command(["exchange", str(path), "--json"]) == 0
    assert printed("grms-exchange", capsys.readouterr().out)["circuit_breaker"]["stops"]


def account(**changes: Any) -> AccountFigures:
    """Returns the account of a site that exchange has paid."""
    return AccountFigures(
        **{
            "in_credit": True,
            "since": 7200.0,
            "turns": 2,
            "began": 0.0,
            "last_look": 9000.0,
            "guests": "preempt",
            "gain": 0.21,
            "saved": 0.05,
            "owed": 0.0,
            "turned_saved": 0.04,
            "turned_owed": 0.01,
            "waiting": 3,
            "protected": 2,
            "preemptible": 1,
            "staying": 0,
            "lent": 3600.0,
            "lent_lost": 1800.0,
            "given": 7200.0,
            "given_lost": 0.0,
            "guests_sent_home": 1,
            "sent_home": 0,
            **changes,
        }
    )


def test_a_director_is_told_what_was_measured() -> None:
    """By the shadow: time in the system, and whether a job that waits would run."""
    lines = list(account_lines(account(), wall=False, others=False))
    assert lines[0] == (
        "Account: the site is in credit since 7,200 s: own jobs that waited had lost 1.0 % by then, no more than the "
        "4.0 % that exchange had saved them. It has turned 2 times."
    )
    assert lines[1].startswith("Guests that run here: 2 protected, 1 that go when")
    assert "1.0 lent to partners' jobs and 0.5 lost with 1 time" in lines[2]
    assert lines[3] == (
        "In a sentence: your users' jobs took 21.0 % less time than they would have without exchange (weighted by "
        "work, recent ones most); none of yours that wait would have run by the last look without exchange."
    )
    alone = list(account_lines(account(waiting=0), wall=False, others=False))
    assert alone[3].endswith("none of yours waits.")
    worse = list(
        account_lines(account(gain=-0.02, owed=0.001, guests="run"), wall=False, others=False)
    )
    assert len(worse) == 3
    assert "took 2.0 % more time" in worse[2]
    assert "some of yours that waited at the last look would have run" in worse[2]


def test_above_a_real_batch_system_others_have_jobs_too() -> None:
    """What own jobs wait for them is no cost of exchange, and the account cannot tell."""
    *_, sentence, others = account_lines(account(gain=-0.02, owed=0.001), wall=True, others=True)
    assert "took 2.0 % more time than they would have alone on the whole machine" in sentence
    assert "without exchange" not in sentence
    assert others.startswith("Jobs that were handed to the batch system past this site")


@pytest.mark.parametrize(
    ("changes", "allowance", "text"),
    [
        ({}, 0.01, "no more than the 5.0 % left of what exchange may cost them"),
        ({"turned_saved": -0.02}, 0.1, "lost 1.0 % by then, no more than the 8.0 % left of what"),
        (
            {"in_credit": False, "turned_saved": -0.2},
            0.1,
            "exchange had cost own jobs 20.0 % by then, more than the 10.0 % that it may.",
        ),
        (
            {"in_credit": False, "turned_saved": -0.02},
            0.0,
            "exchange had cost own jobs 2.0 % by then.",
        ),
    ],
)
def test_what_has_turned_an_account_with_an_allowance(
    changes: dict[str, Any], allowance: float, text: str
) -> None:
    """Or one that has nothing saved."""
    first, *_ = account_lines(account(**changes), wall=False, others=False, allowance=allowance)
    assert text in first
