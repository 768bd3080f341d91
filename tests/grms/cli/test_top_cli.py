"""A site in the terminal: what is on the screen, within 80 columns."""

import asyncio
import io
from pathlib import Path

from click.testing import CliRunner
from rich.console import Console

from grms.cli.main import cli
from grms.cli.top_cli import screen, short
from grms.client import Job, JobState
from grms.v1 import operator_pb2
from tests.grms.site.daemons import document, running


def shown(*parts: object, width: int = 80) -> str:
    """Returns what a terminal of that width shows."""
    console = Console(file=io.StringIO(), width=width)
    console.print(*parts)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def status(**more: object) -> operator_pb2.StatusResponse:
    """Returns how a site is."""
    values: dict[str, object] = {
        "site": "home",
        "clock": "wall",
        "now_s": 1.8e9,
        "processors": 100_000,
        "processors_free": 25_000,
        "processors_waiting": 3_000_000,
        "jobs": {"RUNNING": 3, "ENDED": 9},
        **more,
    }
    return operator_pb2.StatusResponse(**values)  # type: ignore[arg-type]  # of a test's own


def partner(**more: object) -> operator_pb2.PartnerStatus:
    """Returns a partner with large figures and a long name that looks like markup."""
    values: dict[str, object] = {
        "name": "a-site-with-a-long-name-indeed",
        "reachable": True,
        "offered": 1_234_567,
        "accepted": 1_000_000,
        "open": 20_000,
        "guest_offered": 1_234_567,
        "guest_accepted": 999_999,
        "guest_open": 12_345,
        "awrt_s": 123_456.0,
        **more,
    }
    return operator_pb2.PartnerStatus(**values)  # type: ignore[arg-type]  # same


def test_everything_fits_into_80_columns() -> None:
    """Also with large figures, and more jobs than there is room for."""
    jobs = [
        Job(
            job_id=f"home-{number}",
            name="",
            user="[red]somebody-with-a-long-name",
            processors=100_000,
            requested_time_s=2_592_000.0,
            state=JobState.RUNNING,
            outcome=None,
            executed_on="a-site-with-a-long-name-indeed",
            submit_time_s=0.0,
            start_time_s=None,
            end_time_s=None,
            cancel_requested=False,
            reason="",
        )
        for number in range(5)
    ]
    text = shown(screen(status(draining=True), [partner(), partner(reachable=False)], jobs, 3))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "75,000 of 100,000 busy, 75%" in text
    assert "3 own jobs open, 24,690 of partners here" in text
    assert "draining" in text
    assert "2 more" in text
    assert text.split().count("1235k") == 4
    assert "[red]" in text
    assert {"up", "down"} <= set(text.split())


def test_a_circuit_breaker_that_stops_exchange_is_shown() -> None:
    """Beside the clock; nothing while exchange goes on, or where there is no circuit breaker."""
    for circuit_breaker, said in (
        (operator_pb2.CircuitBreakerStatus(stops=True), True),
        (operator_pb2.CircuitBreakerStatus(looked_s=1.0), False),
        (None, False),
    ):
        head = shown(screen(status(circuit_breaker=circuit_breaker), [], [], 3)).splitlines()[0]
        assert head.endswith("  circuit breaker: takes no guests") == said


def test_figures_are_short() -> None:
    """However large they are."""
    values = [0, 99_999, 99_999.6, 1_234_567, 9_999_600, 12_345_678, 9.99996e9, 1e30]
    texts = ["0", "99999", "100k", "1235k", "10.0M", "12.3M", "1e+10", "1e+30"]
    assert [short(value) for value in values] == texts


async def test_a_site_is_looked_at_once(tmp_path: Path) -> None:
    """Without a terminal it is printed and the command returns."""
    async with running(document(tmp_path), tmp_path) as site:
        await site.submit("a", run_time_s=60.0)
        socket = site.users_address.removeprefix("unix:")
        done = await asyncio.to_thread(CliRunner().invoke, cli, ["top", "--site", socket])
        assert done.exit_code == 0, done.output
        assert "1 of 4 busy" in done.output
        assert "home-1" in done.output
