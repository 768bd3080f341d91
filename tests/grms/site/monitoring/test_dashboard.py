"""The dashboard of a daemon that serves: what it tells, to whom, and that it holds nothing up."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.daemon.web import pages
from grms.site.config.load import ConfigError
from grms.site.config.schema import DASHBOARD_FILE_END
from grms.site.monitoring import dashboard as service
from grms.site.monitoring.dashboard_state import DashboardState
from grms.v1 import operator_pb2
from tests.grms.keys import new_federation, tls_table
from tests.grms.site.daemons import Running, document, running, two_sites
from tests.visits import Visit
from tests.waiting import until

OF_A_PARTNER = {
    "name": "a site's name",
    "processors": "its size in processors",
    "state": "whether it answers this site",
    "problem": "what this site has met with",
    "asked": "offers that this site made",
    "accepted": "yes or no",
    "declined": "yes or no",
    "undecided": "yes or no",
    "open": "own jobs there",
    "ended": "the completion of a job one has delegated",
    "awrt_s": "the completion of a job one has delegated",
    "guests_offered": "offers that this site received",
    "guests_accepted": "this site's own yes",
    "guests_declined": "this site's own no",
    "guests_open": "jobs at this site",
    "latency_s": "this site's own clock",
    "latency_max_s": "this site's own clock",
    "last_heard_s": "this site's own clock",
    "breaches": "the completion of a job one has delegated",
    "suspended_until_s": "this site's own clock",
    "certificate_end_s": "shown to this site in a handshake",
}
"""All that pages tell of a partner, and from where the site may know it."""


def free_dashboard() -> dict[str, Any]:
    """Returns the part of a configuration that serves pages."""
    return {"dashboard": {"listen": f"127.0.0.1:{free_port()}"}}


def told(site: Running, path: str) -> Any:
    """Returns what a site's dashboard answers; blocks."""
    assert site.core.dashboard is not None
    connection, answer = Visit.by(site.core.dashboard.server.link()).open(path)
    if path == "/events":
        lines = [answer.readline().decode() for _ in range(6)]
        connection.close()
        return json.loads(lines[4].removeprefix("data: "))
    content = json.loads(answer.read())
    connection.close()
    return content


async def ask(site: Running, path: str) -> Any:
    """Returns what a site's dashboard answers."""
    return await asyncio.to_thread(told, site, path)


async def until_told(site: Running, path: str, condition: Callable[[Any], bool]) -> Any:
    """Returns an answer for which a condition holds."""
    while not condition(found := await ask(site, path)):  # noqa: ASYNC110  # a page has no event
        await asyncio.sleep(0.01)
    return found


async def test_a_job_is_followed_from_its_offer_to_its_end(tmp_path: Path) -> None:
    """The home site's page and the partner's, each as far as the site knows."""
    async with two_sites(tmp_path, free_dashboard(), free_dashboard()) as (home, away):
        await home.submit("a", processors=4, run_time_s=60.0)
        job = await home.submit("b", processors=2, name="render")
        await home.ended(job.job_id)
        story = await until_told(
            home, f"/api/job?key={job.job_id}", lambda found: found.get("state") == "ended"
        )
        assert [step["kind"] for step in story["steps"]] == [
            "received",
            "asked",
            "accepted",
            "ended",
        ]
        policy = story["steps"][1]["decision"]["policy"]
        assert (policy["needed"], policy["free"]) == (2, 0)
        guests = await until_told(
            away, "/api/jobs?kind=guests", lambda found: found["matching"] == 1
        )
        assert guests["jobs"][0]["home"] == "home"
        assert (await ask(home, "/api/jobs?search=render"))["matching"] == 1
        now = await until_told(
            home, "/events", lambda found: found["partners"] and found["partners"][0]["ended"]
        )
        assert now["sample"]["processors_free"] == 0
        assert (await ask(home, "/api/site"))["site"] == "home"
        assert (await ask(home, "/api/history?span=nan"))["samples"]
        assert (await ask(home, "/api/job?key=home-99"))["problem"]


async def test_of_others_the_pages_tell_what_may_cross_and_no_more(tmp_path: Path) -> None:
    """All that one site's pages are told is looked through for what only the other one knows."""
    async with two_sites(tmp_path, free_dashboard(), free_dashboard()) as (home, away):
        secret = {"requested_time_s": 7654.25, "run_time_s": 60.0, "name": "secret-project"}
        hidden = await away.submit("x", processors=3, **secret)  # type: ignore[arg-type]  # of a test's own
        await home.submit("a", processors=4, run_time_s=60.0)
        await home.submit("b", processors=2, run_time_s=60.0)
        lent = await home.submit("c", processors=1, requested_time_s=33.5)
        await home.ended(lent.job_id)
        await until_told(away, "/api/jobs?kind=home", lambda found: found["matching"] == 1)
        traffic = [
            await ask(home, path)
            for path in ("/api/site", "/api/history", "/api/jobs?limit=500", "/events")
        ]
        traffic += [await ask(home, f"/api/job?key={job['key']}") for job in traffic[2]["jobs"]]
        text = json.dumps(traffic)
        for word in ("secret-project", "7654.25", hidden.job_id):
            assert word not in text
        partners = [*traffic[0]["now"]["partners"], *traffic[3]["partners"]]
        assert {key for each in partners for key in each} <= set(OF_A_PARTNER)
        # Loads are the own machine's: each is of this site's size.
        for each in traffic[1]["samples"]:
            assert each["processors"] == 4
        guests = await ask(away, "/api/jobs?kind=guests")
        for guest in guests["jobs"]:
            assert (guest["user"], guest["name"]) == ("", "")


async def test_what_happened_before_the_start_is_read_from_the_journal(tmp_path: Path) -> None:
    """Stories go on; what a decision rested on is not in the journal, and nothing is made up."""
    configuration = document(tmp_path, **free_dashboard())
    async with running(configuration, tmp_path) as site:
        job = await site.submit("a")
        await site.ended(job.job_id)
    async with running(configuration, tmp_path) as site:
        found = await until_told(
            site, f"/api/job?key={job.job_id}", lambda found: found.get("state") == "ended"
        )
        assert "not in the journal" in found["steps"][1]["text"]
        later = await site.submit("b")
        found = await until_told(
            site, f"/api/job?key={later.job_id}", lambda found: "steps" in found
        )


async def test_ends_of_certificates_are_known(tmp_path: Path) -> None:
    """The own one from its file, a partner's from its handshake."""
    federation = new_federation(tmp_path / "keys")
    parts = {name: {"tls": tls_table(federation.site(name))} for name in ("home", "away")}
    async with two_sites(tmp_path, {**parts["home"], **free_dashboard()}, parts["away"]) as (
        home,
        _,
    ):
        now = await until_told(
            home,
            "/events",
            lambda found: found["partners"] and found["partners"][0]["certificate_end_s"],
        )
        own = (await ask(home, "/api/site"))["certificate_end_s"]
        assert now["partners"][0]["certificate_end_s"] > time.time()
        assert own > time.time()


async def test_a_dashboard_that_hangs_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs run, and the daemon ends, while a page is stuck."""
    begun, go_on = threading.Event(), threading.Event()

    def hang(*_: Any, **__: Any) -> Any:
        begun.set()
        go_on.wait(300)
        return {}

    monkeypatch.setattr(service, "jobs_document", hang)
    monkeypatch.setattr(pages, "END_S", 0.05)
    with capture_logs() as log:
        async with running(document(tmp_path, **free_dashboard()), tmp_path) as site:
            stuck = asyncio.create_task(ask(site, "/api/jobs"), name="stuck")
            await until(begun.is_set)
            job = await site.submit("a")
            await site.ended(job.job_id)
        # It has ended in order.
        go_on.set()
        await asyncio.wait([stuck])
        stuck.exception()
    names = [entry["event"] for entry in log]
    assert "pages_do_not_end" in names
    assert "stopped" in names
    for thread in threading.enumerate():
        if thread.name == "pages":
            thread.join(60)


async def test_a_dashboard_that_fails_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mistakes are logged once."""

    def fail(*_: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(DashboardState, "take", fail)
    with capture_logs() as log:
        async with running(document(tmp_path, **free_dashboard()), tmp_path) as site:
            job = await site.submit("a")
            await site.ended(job.job_id)
            assert (await ask(site, "/api/jobs"))["jobs"] == []
            await until(lambda: "dashboard_failed" in [entry["event"] for entry in log])
    assert [entry["event"] for entry in log].count("dashboard_failed") == 1


async def test_a_taken_port_is_logged_and_the_daemon_serves(tmp_path: Path) -> None:
    """Work goes on without its pages."""
    with capture_logs() as log:
        first = free_dashboard()
        async with two_sites(tmp_path, first, first) as (home, _):
            job = await home.submit("a")
            await home.ended(job.job_id)
    (entry,) = [entry for entry in log if entry["event"] == "dashboard_cannot_be_served"]
    assert "in use" in entry["problem"]


async def test_operators_get_a_link_over_the_socket(tmp_path: Path) -> None:
    """Every local user reaches a port of loopback; whose jobs there are is not for all of them."""
    with capture_logs() as log:
        async with running(document(tmp_path, **free_dashboard()), tmp_path) as site:
            answer = await site.operator.OpenPages(operator_pb2.OpenPagesRequest(), timeout=300)
            assert answer.seconds == 60.0
            told = await asyncio.to_thread(lambda: Visit.by(answer.address).ask("/api/site"))
            assert told["site"] == "home"
            assert not (tmp_path / f"home{DASHBOARD_FILE_END}").exists(), "there is no proxy"
        async with running(document(tmp_path), tmp_path) as site:
            with pytest.raises(grpc.aio.AioRpcError, match="serves no pages") as refused:
                await site.operator.OpenPages(operator_pb2.OpenPagesRequest(), timeout=300)
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    (entry,) = [entry for entry in log if entry.get("act") == "open_pages"]
    assert entry["user"]


async def test_a_reverse_proxy_has_a_token_in_a_file(tmp_path: Path) -> None:
    """For the daemon's user alone; where a proxy's name is configured."""
    pages = free_dashboard()
    pages["dashboard"]["hosts"] = ["hanse.example"]
    async with running(document(tmp_path, **pages), tmp_path) as site:
        assert site.core.dashboard is not None
        path = tmp_path / f"home{DASHBOARD_FILE_END}"
        assert path.stat().st_mode & 0o077 == 0
        assert json.loads(path.read_text())["token"] == site.core.dashboard.server.token


async def test_a_missing_extra_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon does not start with half of what was configured."""
    monkeypatch.setitem(__import__("sys").modules, "grms.site.monitoring.dashboard", None)
    with pytest.raises(ConfigError, match=r"hanse\[dashboard\]"):
        async with running(document(tmp_path, **free_dashboard()), tmp_path):
            pass
