"""A site that only calls out, as its partner and its operators see it."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from grms.cli.main import run_command
from grms.daemon.ports import free_port
from grms.site.model.lifecycle import JobState
from grms.site.peers.tunnels import origin_of
from grms.v1 import job_pb2, operator_pb2
from lrms_sim.util.files import to_toml
from tests.grms.daemon.tunnel.ends import proxy
from tests.grms.daemon.tunnel.test_dialing import has_ipv6
from tests.grms.keys import new_federation
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.peers.partner import full
from tests.waiting import TIME_OUT_S, until


class Site:
    """The file of a site, and what operators do with it."""

    def __init__(self, folder: Path, written: dict[str, Any]) -> None:
        self.path = folder / f"{written['name']}.toml"
        self.written = written

    async def reload(self, site: Running, **partner: Any) -> None:
        """Changes what the file says of the partner, or takes it off, and has it read."""
        if partner:
            self.written["partners"][0] |= partner
        else:
            self.written["partners"] = []
        self.path.write_text(to_toml(self.written))
        request = operator_pb2.ReloadPoliciesRequest()
        await site.operator.ReloadPolicies(request, timeout=TIME_OUT_S)


async def told(site: Running, command: str, capfd: pytest.CaptureFixture[str]) -> str:
    """Returns what a command of operators prints."""
    socket = site.users_address.removeprefix("unix:")
    assert await asyncio.to_thread(run_command, [command, "--socket", socket]) == 0
    return capfd.readouterr().out


async def moved(file: Site, home: Running, away: Running, address: str) -> None:
    """Where the partner is no more, connections of before do not lead to it; where it is again, it is found."""
    link, tunnels = home.core.links.links["away"], home.core.tunnels
    nowhere = f"{address.rpartition(':')[0]}:{free_port()}"
    await file.reload(home, address=nowhere)
    await until(lambda: not link.up and "through the proxy" in link.problem)
    await until(lambda: "through the proxy" in tunnels.way("away").problem)
    await file.reload(home, address=address)
    await until(lambda: not tunnels.way("away").problem)
    await away.linked()
    await home.linked()


async def test_offers_are_declined_until_there_is_a_way_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Through a proxy, by IPv6 where there is one; then they are accepted, and the ends come home."""
    federation, port = new_federation(tmp_path), free_port()
    host = "[::1]" if has_ipv6() else "127.0.0.1"
    files = {}
    for name, partner in (("home", "away"), ("away", "home")):
        keys = federation.site(name)
        tls = {key: str(getattr(keys, key)) for key in ("authority", "certificate", "key")}
        files[name] = document(tmp_path, name, tls=tls)
        files[name]["partners"] = [{"name": partner}]
    files["away"]["listen"]["partners"] = f"{host}:{port}"
    files["away"]["partners"][0]["way"] = "callback"
    files["home"]["partners"][0] |= {"address": f"{host}:{port}", "keep_open": False}
    async with proxy() as between:
        files["home"]["outgoing"] = {"proxy": f"127.0.0.1:{between.port}"}
        async with (
            running(files["home"], tmp_path) as home,
            running(files["away"], tmp_path) as away,
        ):
            home_file, away_file = (Site(tmp_path, files[name]) for name in ("home", "away"))
            await full(home)
            await until(lambda: home.core.engine.state.partners["away"].reachable)
            book = away.core.engine.state.partners["home"]
            job = await home.submit("declined", run_time_s=0.05)
            await until(lambda: book.guest_offered == 1)
            assert book.guest_accepted == 0
            shown = home.core.engine.state.job(job.job_id)
            assert shown is not None
            await until(lambda: shown.state is JobState.QUEUED)
            text = await told(away, "partners", capfd)
            assert "called back over 0 connections of its own" in text
            words = " ".join(text.split())
            assert "home has no connection open here over which it can be called" in words
            # The pause between two looks for it may be long by now: its own look is worth one at once.
            await home_file.reload(home, keep_open=True)
            await away.linked()
            await home.linked()
            taken = await home.submit("taken", run_time_s=0.05)
            ended = await home.ended(taken.job_id)
            assert (ended.executed_on, ended.state) == ("away", job_pb2.JOB_STATE_ENDED)
            assert f"CONNECT {host}:{port} HTTP/1.1" in between.asked
            back = (
                f"{host}:{port}, through the proxy; calls back over N connections kept open there"
            )
            for site, words in ((away, "called back over N connections of its own"), (home, back)):
                for command in ("partners", "status"):
                    text = re.sub(
                        r"\d connections", "N connections", await told(site, command, capfd)
                    )
                    assert words in text, text
            await moved(home_file, home, away, f"{host}:{port}")
            # Who is taken off the list cannot wait any more, and says so.
            await away_file.reload(away)
            await until(lambda: bool(home.core.tunnels.way("away").problem))
            assert home.core.tunnels.way("away").problem == (
                "away cannot call this site: home is not among the partners of this site"
            )
            await home_file.reload(home)
            assert home.core.tunnels.way("away").tunnels == 0


def test_a_partner_cannot_say_that_another_one_calls() -> None:
    """By that name connections are counted and logged until TLS says who it is; a relay's word is marked as such."""
    assert origin_of("south", "south", "east") == "south"
    assert origin_of("", "the relay hub", "east") == "east, by way of the relay hub"
