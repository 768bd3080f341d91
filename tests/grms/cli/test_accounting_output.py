"""What `grms exchange` says of a site's circuit breaker, for people and for programs."""

from pathlib import Path

import pytest

from grms.cli.main import run_command
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
