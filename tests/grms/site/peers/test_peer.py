"""What the link to one partner makes of one that is up and down, and of what it says about itself."""

import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest

from grms.daemon.ports import free_port
from grms.security.tls import CertificateTrust
from grms.site.assembly import _distrusted
from grms.site.model.events import Event, PartnerUp
from grms.site.model.jobs import OfferId
from grms.site.model.lifecycle import JobState
from grms.site.peers import instances
from grms.site.peers import peer as links
from grms.site.peers.peer import Problems
from grms.v1 import job_pb2, operator_pb2, partner_pb2
from tests.grms.keys import new_federation
from tests.grms.site.daemons import document, metrics, running
from tests.grms.site.peers.partner import Partner, full, listening
from tests.waiting import until


async def test_a_partner_that_only_says_who_it_is_is_not_up_and_down_without_end(
    tmp_path: Path,
) -> None:
    """It refuses every question about a job that it may have: it is asked again after pauses that grow."""
    partner, port = Partner(), free_port()

    async def refuse(_request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "not today")

    partner.Offer = partner.Resolve = refuse  # type: ignore[method-assign, assignment]  # as a partner that errs
    configuration = document(tmp_path, partners={"away": port})
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await site.linked()
        ups: list[Event] = []
        site.core.engine.on_event(
            lambda event, _commands: ups.append(event) if isinstance(event, PartnerUp) else None
        )
        await full(site)
        begin = time.monotonic()
        await site.submit("k")
        await until(lambda: len(ups) >= 4)
        # At least half of 0.2, 0.4 and 0.8 s, also where it had been up for a heartbeat.
        assert time.monotonic() - begin >= 0.7


async def test_a_partner_that_cannot_call_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs here are declined, as their ends could not be told; ours there are shown as stuck, with the reason."""
    partner, port = Partner(), free_port()
    limits = {"limits": {"delegated_timeout_s": 604_800.0}}
    configuration = document(tmp_path, partners={"away": port}, port=free_port()) | limits
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await site.linked()
        await full(site)
        job = await site.submit("k")
        await until(lambda: site.core.engine.state.job_counts()[JobState.DELEGATED] == 1)

        async def stuck() -> list[str]:
            request = job_pb2.ListRequest(stuck=True, all_users=True)
            return [each.stuck for each in (await site.jobs.List(request, timeout=300)).jobs]

        assert await stuck() == []
        monkeypatch.setattr(links, "UNHEARD_S", 0.0)
        (why,) = await stuck()
        assert "away answers, and has not called for" in why
        shown = (await site.operator.Partners(operator_pb2.PartnersRequest())).partners[0]
        assert "it cannot report the ends of jobs here" in shown.problem
        # Heard of once more, it is well.
        monkeypatch.setattr(links, "UNHEARD_S", 60.0)
        describe = partner_pb2.DescribeRequest(site="away", processors=4, protocol_version=1)
        await site.partner.Describe(describe, timeout=300)
        assert (await stuck(), job.job_id) == ([], "home-2")


async def test_two_daemons_under_a_partners_name_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answers, another asks; once it is silent the partner is well again."""
    monkeypatch.setattr(instances, "SPACING_S", 0.0)
    partner, port = Partner(), free_port()
    partner.instance = 7
    configuration = document(
        tmp_path,
        partners={"away": port},
        port=free_port(),
        mqtt={"enabled": False},
        **metrics(),
    )
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await site.linked()
        link, book = site.core.links.links["away"], site.core.engine.state.partners["away"]
        told = set()
        for _ in range(instances.COMES_BACK):
            assert not book.duplicated
            for instance in (8, 7):
                answer = await site.partner.Describe(
                    partner_pb2.DescribeRequest(
                        site="away", processors=4, protocol_version=1, instance=instance
                    ),
                    timeout=300,
                )
                told.add(answer.instance)
        assert len(told) == 1
        assert told == {site.core.links.instance} != {0}
        await site.partner.Describe(
            partner_pb2.DescribeRequest(site="away", protocol_version=1, instance=8),
            timeout=300,
        )
        await until(lambda: book.duplicated)
        asked = operator_pb2.PartnersRequest()
        (shown,) = (await site.operator.Partners(asked)).partners
        assert shown.reachable
        assert shown.problem.startswith("two daemons use the name away")
        assert site.core.monitor is not None
        registry = site.core.monitor.metrics.registry
        name, labels = "hanse_partner_duplicated", {"partner": "away"}
        assert registry.get_sample_value(name, labels) == 1.0
        monkeypatch.setattr(instances, "WINDOW_S", -1.0)
        link._look.set()
        await until(lambda: not book.duplicated)
        assert (await site.operator.Partners(asked)).partners[0].problem == ""


@pytest.mark.parametrize("code", [grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAVAILABLE])
async def test_what_a_partner_says_in_words_is_kept_in_short(
    tmp_path: Path, code: grpc.StatusCode
) -> None:
    """Neither journal nor log nor the answer to an operator grows by what it likes to write into an error."""
    partner, port = Partner(), free_port()
    configuration = document(tmp_path, partners={"away": port})

    async def refuse(_request: Any, context: Any) -> Any:
        await context.abort(code, "x" * 900_000)

    partner.Offer = partner.Resolve = refuse  # type: ignore[method-assign, assignment]  # as a partner that errs
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await site.linked()
        await full(site)
        await site.submit("k")
        link, book = site.core.links.links["away"], site.core.engine.state.partners["away"]
        await until(lambda: "x" in book.faulty + link.problem)
        assert len(book.faulty + link.problem) < 1000
    partner.name = "y" * 900_000
    async with listening(partner, port), running(configuration, tmp_path) as site:
        link = site.core.links.links["away"]
        await until(lambda: "says it is 'y" in link.problem)
        assert len(link.problem) < 1000


async def test_a_partner_cannot_use_up_the_epochs(tmp_path: Path) -> None:
    """One that has seen an offer of a journal to come is faulty; else no later journal would ever be new to others."""
    partner, port = Partner(), free_port()
    partner.seen = OfferId(2**62 - 1, 7)
    configuration = document(tmp_path, partners={"away": port})
    async with listening(partner, port), running(configuration, tmp_path) as site:
        memory = site.core.engine.state.memory
        epoch, book = memory.epoch, memory.books["away"]
        await until(lambda: "still to come" in book.faulty)
        assert (memory.epoch, book.reachable) == (epoch, False)
        partner.seen = OfferId(epoch + 3600 * 10**9, 7)
        await until(lambda: book.reachable)
        assert memory.epoch == epoch + 3600 * 10**9 + 1


async def test_a_link_whose_certificate_has_ended_is_not_up(tmp_path: Path) -> None:
    """GRPC would go on with a connection that stands; a new one comes about with the renewed certificate alone."""
    federation = new_federation(tmp_path, now=datetime.now(UTC) - timedelta(days=2))
    north = federation.site("north")
    soon = datetime.now(UTC) - timedelta(days=1) + timedelta(seconds=8)
    south = federation.site("south", now=soon, days=1)
    ports = {"north": free_port(), "south": free_port()}
    async with AsyncExitStack() as daemons:
        sites = {}
        for name, files, partner in (("north", north, "south"), ("south", south, "north")):
            written = document(
                tmp_path,
                name,
                partners={partner: ports[partner]},
                port=ports[name],
                tls={key: str(getattr(files, key)) for key in ("authority", "certificate", "key")},
            )
            sites[name] = await daemons.enter_async_context(running(written, tmp_path))
        links = [
            site.core.links.links[partner]
            for site, partner in ((sites["north"], "south"), (sites["south"], "north"))
        ]
        await until(lambda: all(link.up for link in links))
        await until(lambda: not any(link.up for link in links))
        await until(lambda: all("expired" in link.problem for link in links))
        assert not sites["north"].core.engine.state.partners["south"].reachable
        south.certificate.unlink()
        south.key.unlink()
        federation.site("south")
        await until(lambda: links[0].up)


class Wire:
    """A channel that is in the state in which the test says that it is.

    Attributes:
        state: which.
        graces: with which it was closed.
    """

    def __init__(self) -> None:
        self.state = grpc.ChannelConnectivity.READY
        self.graces: list[float | None] = []

    def get_state(self) -> grpc.ChannelConnectivity:
        """Returns the state."""
        return self.state

    async def close(self, grace: float | None = None) -> None:
        """Is closed."""
        self.graces.append(grace)

    def __getattr__(self, name: str) -> Any:
        """Makes what a stub asks for; nobody calls it."""
        return lambda *_args, **_more: name


@pytest.mark.parametrize("state", list(grpc.ChannelConnectivity))
async def test_who_answers_is_looked_at_before_gRPC_connects_anew(  # noqa: N802  # its name
    state: grpc.ChannelConnectivity,
) -> None:
    """Over a channel that is not connected it would do so with the certificates of before, whoever is there by now."""
    looks: list[str] = []
    wires: list[Wire] = []

    async def look(partner: str, _address: str) -> str:
        looks.append(partner)
        return ""

    def make(_partner: str, _address: str) -> Any:
        wires.append(Wire())
        return wires[-1]

    settings: Any = SimpleNamespace(offer_timeout_s=2.0, probe=links.PROBE)
    link = links.PeerClient(
        settings,
        SimpleNamespace(),  # type: ignore[arg-type]  # nothing is told
        name="away",
        address="localhost:1",
        make_channel=make,
        rng=np.random.default_rng(1),
        problems=Problems(distrusts=look),
    )
    await link._connected()
    link._ends = 1.0
    wires[0].state = state
    await link._connected()
    kept = state is grpc.ChannelConnectivity.READY
    assert len(looks) == len(wires) == 2 - kept
    assert link._ends == (1.0 if kept else None)
    await until(lambda: len(wires[0].graces) == 1 - kept)
    assert wires[0].graces in ([], [2.0])
    assert link.problem == "not reached yet"


async def test_whom_nobody_has_seen_is_not_believed_where_certificates_are_refused(
    tmp_path: Path,
) -> None:
    """He may be there a moment later, with a certificate that is refused."""
    files, endpoint = new_federation(tmp_path).site("north"), f"127.0.0.1:{free_port()}"
    trust = CertificateTrust(files, ["0" * 64])
    assert "Connection refused" in await _distrusted(trust, 300.0, "south", endpoint)
    assert await _distrusted(CertificateTrust(files), 300.0, "south", endpoint) == ""
