"""What operators see of partners in a terminal, and a pardon."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

from grms import client
from grms.cli.main import run_command
from grms.v1 import operator_pb2
from tests.grms.site.daemons import two_sites
from tests.waiting import run

SUSPENDED = operator_pb2.PartnerStatus(
    name="away",
    processors=4,
    reachable=True,
    endpoint="127.0.0.1:7001",
    credit=9000.0,
    breaches=2,
    overdue=1,
    problem="suspended for 3 d 20 h: it has broken its promise to start a job at once, 2 times",
)


def test_a_site_pardons_a_partner_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that it does not have is named, and other words are refused."""

    async def grms(*words: str) -> int:
        more = ["--socket", str(tmp_path / "home.sock")]
        return await asyncio.to_thread(run_command, ["partners", *words, *more])

    async def scene() -> None:
        async with two_sites(tmp_path):
            assert await grms("pardon", "away") == 0
            assert "away: 0 breaches are forgotten" in capsys.readouterr().out
            for words, problem in (
                (("pardon", "z"), "there is no partner 'z'"),
                (("pardon",), "there is: partners [--json], and partners pardon NAME"),
                (("forgive", "away"), "there is: partners [--json]"),
                (("pardon", "away", "--json"), "there is: partners [--json]"),
            ):
                assert await grms(*words) == 2
                assert problem in capsys.readouterr().err

    run(scene)


def test_broken_promises_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a line of their own, and what is in the way in words; nothing is wider than a terminal."""

    class Site:
        """Knows one partner."""

        def partners(self) -> list[operator_pb2.PartnerStatus]:
            """Returns it."""
            return [SUSPENDED]

    with patch.object(client, "SyncClient", lambda *_, **__: nullcontext(Site())):
        assert run_command(["partners", "--socket", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        "  127.0.0.1:7001",
        "  promise: broken 2×, overdue 1, 2.5 processor hours of credit",
        "  suspended for 3 d 20 h: it has broken its promise to start a job at once, 2",
        "    times",
    ]
    assert max(map(len, lines)) <= 80
