"""What operators see of partners in a terminal, and a pardon."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

from grms import client
from grms.cli.main import run_command
from grms.v1 import operator_pb2
from tests.grms.cli.test_site_cli import documents
from tests.grms.site.daemons import two_sites
from tests.grms.site.peers.partner import full
from tests.schemas import printed
from tests.waiting import until

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


async def test_a_site_pardons_a_partner_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that it does not have is named, and other words are refused."""

    async def grms(*words: str) -> int:
        more = ["--socket", str(tmp_path / "home.sock")]
        return await asyncio.to_thread(run_command, ["partners", *words, *more])

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


def standing(used: float, more: float, limit: float | None = None) -> operator_pb2.MonthStanding:
    """Returns what was used in a month, in hours."""
    most = None if limit is None else 3600 * limit
    return operator_pb2.MonthStanding(
        month="2026-11", used=3600 * used, open=3600 * more, limit=most
    )


def test_what_was_exchanged_this_month_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its limit; nothing where there was nothing."""
    known = [
        operator_pb2.PartnerStatus(
            name="away", taken_month=standing(12.0, 3.5, 100.0), given_month=standing(2.0, 0.0)
        ),
        operator_pb2.PartnerStatus(
            name="idle", taken_month=standing(0, 0), given_month=standing(0, 0)
        ),
    ]

    class Site:
        """Knows two partners."""

        def partners(self) -> list[operator_pb2.PartnerStatus]:
            """Returns them."""
            return known

    with patch.object(client, "SyncClient", lambda *_, **__: nullcontext(Site())):
        assert run_command(["partners", "--socket", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "2026-11" in line] == [
        "  2026-11: its jobs here have used 12.0 of 100.0 hours, 3.5 more requested",
        "  2026-11: own jobs there have used 2.0 hours",
    ]


GUEST = operator_pb2.Guest(
    key="north/18eb0f2c4d5e6f70/12",
    partner="north",
    pseudonym="0f" * 16,
    state="running",
    processors=16,
    memory_mib=65536,
    gpus=2,
    requested_time_s=7200.0,
    accept_time_s=1.8e9,
    start_time_s=1.8e9 + 60,
    since_s=1.8e9 + 60,
    cost=3600.0 * 24,
)


@pytest.mark.parametrize(("width", "most"), [("80", 79), ("200", 199)])
def test_guests_are_shown_in_any_terminal(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: str,
    most: int,
) -> None:
    """From whom, since when, what they hold and have used, and how far their users are from their limits."""
    monkeypatch.setenv("COLUMNS", width)
    waits = operator_pb2.Guest(
        key="south/1/3",
        partner="a-partner-with-a-long-name",
        state="waiting",
        processors=1,
        since_s=1.8e9,
        accept_time_s=1.8e9,
        requested_time_s=60.0,
        reason="main is down",
    )
    found = operator_pb2.GuestsResponse(guests=[GUEST, waits])
    found.users.add(partner="north", pseudonym="0f" * 16, month=standing(12.0, 32.0, 100.0))
    found.users.add(partner="south", month=standing(0.0, 1.0))

    class Site:
        """Has two guests."""

        def guests(self, partner: str) -> operator_pb2.GuestsResponse:
            """Returns them."""
            assert partner == ""
            return found

    with patch.object(client, "SyncClient", lambda *_, **__: nullcontext(Site())):
        assert run_command(["guests", "--socket", str(tmp_path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert run_command(["guests", "--socket", str(tmp_path), "--json"]) == 0
    document = printed("grms-guests", capsys.readouterr().out)
    assert document["guests"][0]["start_time_s"] == 1.8e9 + 60
    assert document["guests"][1]["cost"] is None
    assert [user["month"]["limit"] for user in document["users"]] == [360_000.0, None]
    assert max(map(len, lines)) <= most
    words = lines[1].split()
    if width == "80":
        assert words[:5] == ["north/18eb…/12", "north", "0f0f0f0f…", "running", "16"]
        assert words[-1] == "24.0"
    else:
        assert words[:2] == ["north/18eb0f2c4d5e6f70/12", "north"]
        assert words[2] == "0f" * 16
        assert words[3:10] == ["running", "16", "64", "GiB", "2", "2", "h"]
    assert lines[3] == "  main is down"
    assert [line.split() for line in lines[5:]] == [
        ["PARTNER", "USER,", "2026-11", "USED/h", "OPEN/h", "LIMIT/h"],
        ["north", "0f" * 16, "12.0", "32.0", "100.0"],
        ["south", "not", "named", "0.0", "1.0", "-"],
    ]


async def test_an_operator_sees_partners_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that are here now, of one partner or all; an offer beyond the limit is declined, and said."""
    limits = {"taken_hours_per_month": 1.0}
    async with two_sites(tmp_path) as (home, away):
        path = tmp_path / "away.toml"
        document = path.read_text(encoding="utf-8")
        line = "\n".join(f"{key} = {value}" for key, value in limits.items())
        path.write_text(document.replace("[[partners]]", f"[[partners]]\n{line}"), "utf-8")
        assert (
            await asyncio.to_thread(
                run_command, ["reload", "--socket", str(tmp_path / "away.sock")]
            )
            == 0
        )
        await full(home)
        for key in "ab":
            await home.submit(key, run_time_s=500.0, requested_time_s=2000.0)
        book = away.core.engine.state.partners["home"]
        await until(lambda: book.declined_limited == 1 and len(book.guests) == 1)
        where = ["--socket", str(tmp_path / "away.sock")]
        capsys.readouterr()
        assert await asyncio.to_thread(run_command, ["guests", "--json", *where]) == 0
        (text,) = documents(capsys)
        found = printed("grms-guests", text)
        (guest,) = found["guests"]
        assert (guest["partner"], guest["state"], guest["processors"]) == ("home", "running", 1)
        (user,) = found["users"]
        assert (user["pseudonym"], user["month"]["open"]) == ("", 2000.0)
        assert await asyncio.to_thread(run_command, ["partners", *where]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "its jobs here have used 0.0 of 1.0 hours, 0.6 more requested" in said
        assert "1 of its offers were declined as the month's limit was used up" in said
        assert await asyncio.to_thread(run_command, ["guests", "--partner", "x", *where]) == 2
        assert "'x' is no partner of this site" in capsys.readouterr().err
