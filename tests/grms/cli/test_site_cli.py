"""The commands around a site's daemon."""

import asyncio
import io
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grms.cli.job_table import job_words, lines, place_words
from grms.cli.main import run_command
from grms.cli.site_cli import circuit_breaker_lines
from grms.client.answers import read_job
from grms.daemon.ports import free_port
from grms.site.gateway.user_listener import user_of
from grms.site.model.events import CircuitBreakerLooked
from grms.v1 import job_pb2, operator_pb2
from tests.grms.site.daemons import document, running, two_sites
from tests.grms.site.peers.partner import Partner, listening
from tests.schemas import printed
from tests.visits import Visit
from tests.waiting import until


async def grms(*arguments: str | Path) -> int:
    """Runs a command as a shell would."""
    return await asyncio.to_thread(run_command, [str(argument) for argument in arguments])


def documents(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Returns the documents that were printed."""
    return re.split(r"\n(?=\{)", "\n".join(said(capsys)))


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Returns the lines that were printed; the daemons of the test log to the same place."""
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if not re.search(r"\[(debug|info|warning) ", line)]


async def test_a_users_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Submit, look, watch, list, cancel."""
    async with running(document(tmp_path), tmp_path):
        site = ("--site", tmp_path / "home.sock")
        job = ("-p", "2", "-t", "60")
        assert await grms("submit", *site, *job, "--run-time", "0.05", "--wait") == 0
        captured = capsys.readouterr()
        assert "home-1" in captured.out.split()
        assert re.search(r"home-1: ended, completed on home 0\.0\d+ s after", captured.err)
        assert await grms("submit", *site, *job, "--run-time", "60", "--name", "long one") == 0
        assert await grms("status", "home-2", *site) == 0
        assert "home-2: running on home" in capsys.readouterr().out
        assert await grms("status", "home-2", "--json", *site) == 0
        shown = printed("grms-status", documents(capsys)[0])
        assert (shown["state"], shown["end_time_s"], shown["name"]) == (
            "running",
            None,
            "long one",
        )
        assert await grms("jobs", *site) == 0
        lines = said(capsys)
        assert lines[0].split()[:4] == ["JOB", "PROCS", "STATE", "AT"]
        assert lines[1].split()[:4] == ["home-1", "2", "completed", "home"]
        assert await grms("jobs", "--json", *site) == 0
        both = [printed("grms-jobs", text) for text in documents(capsys)]
        assert [job["outcome"] for job in both] == ["completed", None]
        assert lines[2].split()[2:4] == ["running", "home"]
        assert lines[3] == "  long one"
        assert both[1]["phase"] == "running"
        assert both[1]["since_s"] == both[1]["start_time_s"] >= both[1]["submit_time_s"]
        assert both[0]["cost"] == pytest.approx(0.1, abs=0.02)
        assert await grms("cancel", "home-2", *site) == 0
        assert await grms("watch", "home-2", *site) == 0
        assert "home-2: ended, cancelled" in capsys.readouterr().out
        assert await grms("watch", "home-2", "--json", *site) == 0
        (last,) = (printed("grms-watch", text) for text in documents(capsys))
        assert last["outcome"] == "cancelled"
        assert await grms("jobs", "--open", *site) == 0
        assert len(said(capsys)) == 1


async def test_an_operators_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status, partners, reload, drain and back."""
    async with two_sites(tmp_path, {"circuit_breaker": {"jobs": 5}}) as (home, _):
        site = ("--site", tmp_path / "home.sock")
        engine = home.core.engine
        await until(lambda: engine.state.memory.circuit_breaker_found is not None)
        assert await grms("status", *site) == 0
        assert "breaker     exchange goes on; to judge by it has 0 own" in capsys.readouterr().out
        engine.tell(CircuitBreakerLooked(engine.new_id(), 1234, -0.0312))
        for words, expected in (
            (("status",), "processors  4, 4 free, 0 waited for"),
            (("status",), "breaker     exchange has been stopped since 20"),
            (("partners",), "away"),
            (("reload",), "away: awf"),
            (("drain",), "home takes no more work; 0 of its users' jobs"),
            (("status",), "draining: takes no work"),
            (("drain", "--undo"), "home takes work"),
            (("jobs", "--all"), "JOB"),
        ):
            assert await grms(*words, *site) == 0
            said = capsys.readouterr().out
            assert expected in said
            # The daemons of the test log to the same place.
            shown = [
                line
                for line in said.splitlines()
                if not re.search(r"\[(debug|info|warning) ", line)
            ]
            assert max(map(len, shown)) <= 80
        assert await grms("status", "--json", *site) == 0
        (status,) = documents(capsys)
        assert printed("grms-status", status)["processors_free"] == 4
        circuit_breaker = printed("grms-status", status)["circuit_breaker"]
        assert (
            circuit_breaker["stops"],
            circuit_breaker["jobs"],
            circuit_breaker["jobs_min"],
        ) == (True, 1234, 5)
        assert circuit_breaker["stopped_since_s"] == circuit_breaker["looked_s"] > 1.7e9
        assert circuit_breaker["improvement_percent"] == pytest.approx(-3.12)
        assert await grms("partners", "--json", *site) == 0
        (partners,) = documents(capsys)
        assert printed("grms-partners", partners)["partners"][0]["name"] == "away"


async def test_an_operator_gets_a_link_to_the_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the configuration or by the socket; each is good once. A site without pages says so."""
    pages: dict[str, Any] = {"dashboard": {"listen": f"127.0.0.1:{free_port()}"}}
    async with running(document(tmp_path, **pages), tmp_path):
        for words in (("home.toml",), ("--socket", "home.sock"), ("--site", "home.sock")):
            given = [word if word[0] == "-" else str(tmp_path / word) for word in words]
            assert await asyncio.to_thread(run_command, ["dashboard", *given]) == 0
            lines = capsys.readouterr().out.splitlines()
            (link,) = [line for line in lines if line.startswith("http")]  # the log is here too
            visit = await asyncio.to_thread(Visit.by, link)
            assert (await asyncio.to_thread(visit.ask, "api/site"))["site"] == "home"
            with pytest.raises(AssertionError):
                await asyncio.to_thread(Visit.by, link)
    async with running(document(tmp_path), tmp_path):
        command = ["dashboard", str(tmp_path / "home.toml")]
        assert await asyncio.to_thread(run_command, command) == 2
        assert "serves no pages" in capsys.readouterr().err
    assert run_command(["dashboard"]) == 2
    assert "name the site's configuration, or its --socket" in capsys.readouterr().err
    assert run_command(["dashboard", "absent.toml", "--socket", "absent.sock"]) == 2
    assert "CONFIG and --socket exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("offered_to", "leaving", "words"),
    [("", False, ""), ("away", False, "offered to away"), ("away", True, "leaving for away")],
)
def test_a_queued_job_says_where_it_may_go(offered_to: str, *, leaving: bool, words: str) -> None:
    """Beside its state and, in a list, after its name; most jobs say nothing of it."""
    message = job_pb2.Job(job_id="home-1", user="ann", name="long one", executed_on="home")
    message.state = job_pb2.JOB_STATE_QUEUED
    message.offered_to, message.leaving = offered_to, leaving
    job = read_job(message)
    assert place_words(job) == words
    assert job_words(job) == "home-1: queued on home" + (f", {words}" if words else "")
    (line,) = lines(200, job)
    assert line.endswith("long one" + (f" ({words})" if words else ""))
    assert [*lines(80, job)][1:] == ["  long one" + (f": {words}" if words else "")]
    (line,) = lines(200, replace(job, name=""))
    assert line.endswith(f"({words})" if words else "-")


STOPPED = operator_pb2.CircuitBreakerStatus(
    stops=True, stopped_since_s=1.8e9, looked_s=1.8e9 + 3600, jobs=1234, improvement_percent=-3.1
)
"""Exchange has cost own users more than it may."""


@pytest.mark.parametrize(
    ("circuit_breaker", "said"),
    [
        (None, ""),
        (
            operator_pb2.CircuitBreakerStatus(stops=True),
            "no guests are accepted until it has looked",
        ),
        (
            STOPPED,
            (
                "exchange has been stopped since 2027-01-15 08:00:00 UTC: it has cost 1,234 own jobs 3.1% of "
                "AWRT alone; what it may cost is 2%"
            ),
        ),
        (
            operator_pb2.CircuitBreakerStatus(
                looked_s=1.8e9, jobs=1, jobs_min=100, improvement_percent=9
            ),
            "exchange goes on; to judge by it has 1 own job of 100",
        ),
        (
            operator_pb2.CircuitBreakerStatus(looked_s=1.8e9, jobs=100, improvement_percent=4),
            "exchange goes on: it has brought 100 own jobs 4.0% of AWRT alone; what it may cost is 2%",
        ),
    ],
)
def test_the_circuit_breaker_says_what_it_does_and_why(
    circuit_breaker: operator_pb2.CircuitBreakerStatus | None, said: str
) -> None:
    """In lines of 79 columns, below each other; nothing where there is no circuit breaker."""
    answer = operator_pb2.StatusResponse(site="home", clock="wall", circuit_breaker=circuit_breaker)
    if circuit_breaker is not None:
        answer.circuit_breaker.cost = 0.02
    lines = circuit_breaker_lines(answer)
    assert " ".join(line.strip() for line in lines).removeprefix("breaker     ") == said
    assert all(len(line) <= 79 for line in lines)
    assert [line[:14] for line in lines] == (["  breaker     "] + [" " * 14] * 2)[: len(lines)]


async def test_what_goes_wrong_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No daemon, no such job, a bad request: status 2 and why, never a traceback."""
    async with running(document(tmp_path), tmp_path):
        site = ("--site", tmp_path / "home.sock")
        gone = ("--site", tmp_path / "gone.sock", "--timeout", "0.2")
        for words, expected in (
            (("status", *gone), "no daemon answers on"),
            (("jobs", *gone), "no daemon answers on"),
            (("partners", *gone), "no daemon answers on"),
            (("status", "home-7", *site), "there is no job 'home-7'"),
            (("submit", *site, "-p", "1", "-t", "-5"), "'--time': -5.0 is not in the range"),
            (("submit", "-p", "1", "-t", "5"), "Missing option '--socket'"),
            (("serve", tmp_path / "none.toml"), "cannot be read"),
        ):
            assert await grms(*words) == 2
            captured = capsys.readouterr()
            assert expected in captured.err
            assert "Traceback" not in captured.err
            assert "PROCS" not in captured.out


async def test_one_job_that_is_not_there_keeps_no_other_from_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every job that is named is cancelled; the status says that one was refused."""
    async with running(document(tmp_path), tmp_path):
        site = ("--site", tmp_path / "home.sock")
        assert await grms("submit", *site, "-p", "1", "-t", "60") == 0
        assert await grms("cancel", *site, "home-9", "home-1") == 2
        captured = capsys.readouterr()
        assert "there is no job 'home-9'" in captured.err
        assert "home-1: ended, cancelled" in captured.out


async def test_a_name_does_nothing_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters of a user's are shown as what they are."""
    async with running(document(tmp_path), tmp_path):
        site = ("--site", tmp_path / "home.sock")
        name = "\x1b[2J\nhome-7 \u202e ünï"
        assert await grms("submit", *site, "-p", "1", "-t", "60", "--name", name) == 0
        assert await grms("jobs", *site) == 0
        (line,) = (line for line in capsys.readouterr().out.splitlines() if "home-7" in line)
        assert line.endswith(r"\x1b[2J\nhome-7 \u202e ünï")


async def test_a_failed_job_is_a_failed_command(tmp_path: Path) -> None:
    """A shell script can rely on the status of a submission that waits."""
    async with running(document(tmp_path), tmp_path):
        site = ("--site", tmp_path / "home.sock", "-p", "9", "-t", "5", "--wait")
        assert await grms("submit", *site, "--run-time", "1") in {1, 2}


async def test_jobs_are_found_by_what_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """State, user, partner, time, a limit; over answers that end before there is anything."""
    monkeypatch.setattr("grms.site.rpc.job_service.LOOKED_AT_MAX", 2)
    async with two_sites(tmp_path) as (home, _):
        site = ("--site", str(tmp_path / "home.sock"))
        for number in range(7):
            await home.submit(f"k{number}", run_time_s=500.0, requested_time_s=500.0)
        me = user_of(os.getuid()).name

        async def shown(*options: str) -> list[str]:
            capsys.readouterr()
            assert await grms("jobs", *options, *site) == 0
            return said(capsys)[1:]

        assert [line.split()[0] for line in await shown()] == [
            f"home-{number}" for number in range(1, 8)
        ]
        assert len(await shown("--limit", "2")) == 2
        assert len(await shown("--limit", str(10**30))) == 7
        assert await grms("jobs", "--since", "0001-01-01", *site) == 2
        assert "--since: 0001-01-01 00:00:00 is out of range" in capsys.readouterr().err
        assert await grms("jobs", "--user", "ann\udcff", *site) == 2
        assert capsys.readouterr().err == "Error: ann\\udcff is not UTF-8\n"
        assert len(await shown("--state", "running", "--state", "queued")) == 4
        assert all("away" in line for line in await shown("--partner", "away"))
        assert len(await shown("--partner", "away")) == 3
        assert len(await shown("--user", me)) == 7
        assert not await shown("--user", "nobody-else")
        assert not await shown("--since", "2100-01-01")
        assert len(await shown("--since", "2020-01-01T00:00")) == 7
        assert not await shown("--stuck")
        capsys.readouterr()
        assert await grms("write-off", "--yes", "home-5", "home-99", *site) == 2
        told = capsys.readouterr()
        assert "home-5: ended, failed" in told.out
        assert "there is no job 'home-99'" in told.err


async def test_a_job_that_never_ends_at_its_partner_is_shown_and_written_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partner is up and says nothing of it: an operator sees the job with its reason, and ends it."""
    monkeypatch.setattr("grms.site.runtime.event_loop.DEADLINES_LOOKED_AT_S", 0.05)
    partner, port = Partner(), free_port()
    configuration = document(tmp_path, partners={"away": port}, limits={"delegated_timeout_s": 0.3})
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await site.linked()
        await site.submit("fills", processors=4, run_time_s=500.0, requested_time_s=500.0)
        job = await site.submit("stays", requested_time_s=0.1)
        here = ("--site", str(tmp_path / "home.sock"))

        async def stuck() -> list[str]:
            capsys.readouterr()
            assert await grms("jobs", "--stuck", *here) == 0
            return said(capsys)[1:]

        while not (shown := await stuck()):
            pass
        assert shown[0].split()[0] == job.job_id
        assert "delegated" in shown[0]
        assert "away" in shown[1]
        assert site.core.links.links["away"].up
        assert await grms("write-off", "--yes", job.job_id, *here) == 0
        assert await stuck() == []


async def test_what_is_risked_is_said_before_it_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --yes each asks; whoever does not say yes has done nothing."""
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n" * 3))
    gone = ("--site", str(tmp_path / "none.sock"), "--timeout", "0.2")
    for act, risk in (
        ("take-back", "is lost"),
        ("resubmit", "MAY RUN TWICE"),
        ("write-off", "NOBODY HEARS OF IT"),
    ):
        assert await grms(act, "home-1", *gone) == 1
        assert risk in " ".join(capsys.readouterr().err.split())
        assert await grms(act, "--help") == 0
        assert risk.split()[-1].lower() in capsys.readouterr().out.lower()


def test_a_configuration_is_checked_without_the_batch_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong has a line each, also in the policies that it names; no program is asked."""
    monkeypatch.setenv("PATH", "")
    text = """
name = "north"
processors = 8
listen.users = "users.sock"
journal.path = "north.journal"
clock.kind = "wall"
lrms.kind = "slurm"
lrms.completion_log = "/nowhere/jobcomp.txt"
"""
    partner = """
[[partners]]
name = "south"
address = "127.0.0.1:7001"
transfer = "%s"
"""
    config = tmp_path / "north.toml"
    config.write_text(text + partner % "awf")
    assert run_command(["validate", str(config)]) == 0
    alone = "cannot call this site, which has neither listen.partners nor [tls]"
    assert capsys.readouterr().out == (
        f"valid: north, 8 processors, partners: south\n  south: 127.0.0.1:7001, {alone}\n"
    )
    assert run_command(["validate", str(config), "--json"]) == 0
    told = printed("grms-validate", capsys.readouterr().out)
    assert (told["lrms"], told["partners"]) == ("slurm", ["south"])
    assert told["ways"] == {"south": f"127.0.0.1:7001, {alone}"}
    config.write_text(text + partner % "gone.json")
    assert run_command(["validate", str(config)]) == 2
    assert f"{config}: partners.south.transfer: " in capsys.readouterr().err
    config.write_text("naem = 1\n")
    assert run_command(["validate", str(config)]) == 2
    assert "naem: 'naem' is no key here, did you mean 'name'?" in capsys.readouterr().err
