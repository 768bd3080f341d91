"""What `grms exchange` says of a site's circuit breaker, for people and for programs."""

import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

from grms.cli.account_chart import chart_lines
from grms.cli.accounting_output import account_lines
from grms.cli.main import run_command
from grms.site.accounting.own_account import in_a_sentence
from grms.site.model.account_history import AccountPoint
from tests.grms.cli.test_accounting_cli import site, week
from tests.grms.site.accounting.accounts_of_sites import account
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


def points(*late: int) -> tuple[AccountPoint, ...]:
    """Returns a history of eight looks every two hours, so many of them with something owed."""
    return tuple(
        AccountPoint(7200.0 * number, 8, 8, count, 1.0, 0, 0, 0)
        for number, count in enumerate(late)
    )


def test_the_account_is_in_hours_of_own_users_waiting() -> None:
    lines = list(account_lines(account(), wall=False))
    assert lines[0] == (
        "Account: the site is in credit since 7,200 s: own jobs that waited had lost 3.5 hours by then, no more than the "
        "12.0 that exchange had saved them. It has turned 2 times."
    )
    assert lines[1] == (
        "In hours of own users' waiting (of a job of mean work, recent ones most): exchange has brought 1,234.5. "
        "Saved: 96.0; lost by own jobs that wait: 0.0."
    )
    assert lines[2].startswith("Guests that run here: 2 protected, 1 that go when")
    assert "1.0 lent to partners' jobs and 0.5 lost with 1 time" in lines[3]
    assert len(list(account_lines(account(guests="run"), wall=False))) == 4


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"history": points(*[0] * 360)},
            (
                "In a sentence: your users waited 21 % less than without exchange (weighted by work, recent jobs most); at "
                "none of 2,880 looks in 30 days did a job of theirs wait that would have begun by then without exchange."
            ),
        ),
        (
            {"waiting_gain": -0.031, "history": points(0, 3, 1)},
            (
                "In a sentence: your users waited 3.1 % longer than without exchange (weighted by work, recent jobs most); "
                "at 4 of 24 looks in a day a job of theirs waited that would have begun by then without exchange."
            ),
        ),
        (
            {"waiting_part": 0.001, "gain": 0.02},
            (
                "In a sentence: your users' jobs took 2.0 % less time than without exchange, where they would hardly have "
                "waited (weighted by work, recent jobs most)."
            ),
        ),
        (
            {"waiting_gain": 0.0001},
            "In a sentence: your users waited as long as without exchange (weighted by work, recent jobs most).",
        ),
        (
            {"compared": 99.4, "history": points(0)},
            (
                "It is too early for a sentence: the account has compared 99 own jobs (old ones count less and less); 100 "
                "are needed."
            ),
        ),
    ],
    ids=["less", "longer", "nobody waits", "as long as", "too early"],
)
def test_a_director_is_told_what_was_measured(changes: dict[str, Any], sentence: str) -> None:
    """And only where enough was."""
    assert in_a_sentence(account(**changes)) == sentence


def test_a_chart_has_no_more_than_80_columns() -> None:
    """With the greatest amounts, gaps, and moments without an amount."""
    random = Random(5)  # noqa: S311  # a story by chance, no secrets
    story = [
        AccountPoint(
            1.79e9 + 7200.0 * number,
            8,
            random.choice((0, 4, 8)),
            0,
            math.nan if number < 30 else random.uniform(-9e6, 9e7),
            random.randrange(9999),
            0,
            99,
        )
        for number in range(360)
        if not 120 <= number < 150
    ]
    lines = list(chart_lines(story, wall=True))
    assert max(map(len, lines)) <= 80
    credit = next(line for line in lines if "in credit |" in line).partition("|")[2]
    assert len(credit) == 60
    assert credit[20:25].isspace()
    assert {"█", "▄"} >= set(credit) - {" ", "·"}
    assert sum("•" in line for line in lines) > 4


def test_a_chart_of_one_look_and_of_none() -> None:
    (line,) = chart_lines((), wall=True)
    assert line == "The last 30 days: the account has not been looked at yet."
    none = AccountPoint(0.0, 1, 1, 0, math.nan, 0, 0, 0)
    assert any(
        "no own job has been compared yet" in each for each in chart_lines((none,), wall=False)
    )
    one = list(chart_lines(points(0), wall=False))
    assert sum("•" in each for each in one) == 1
    assert next(each for each in one if "in credit |" in each).endswith(f"|{' ' * 59}█")


def test_above_a_real_batch_system_others_have_jobs_too() -> None:
    """What own jobs wait for them is no cost of exchange, and the account cannot tell."""
    found = account(others=True, waiting_gain=-0.02, history=points(0, 3))
    *_, sentence, others = account_lines(found, wall=True)
    assert "waited 2.0 % longer than alone on the whole machine" in sentence
    assert "that would have begun by then alone on the whole machine" in sentence
    assert "without exchange" not in sentence
    assert others.startswith("Jobs that were handed to the batch system past this site")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"allowed": 0.01}, "no more than the 12.0 left of what exchange may cost them"),
        (
            {"in_credit": False, "turned_saved": -0.2, "allowed": 0.1},
            "exchange had cost own jobs 0.2 hours beyond what it may by then.",
        ),
        (
            {"in_credit": False, "turned_saved": -0.2},
            "exchange had cost own jobs 0.2 hours by then.",
        ),
    ],
)
def test_what_has_turned_an_account(changes: dict[str, Any], text: str) -> None:
    """With an allowance, or with nothing saved."""
    first, *_ = account_lines(account(**changes), wall=False)
    assert text in first
