"""A running daemon reads its configuration anew: partners come, move and go, certificates are renewed."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.policy.rebalancing import Rebalancing
from grms.site import daemon
from grms.site.config.load import load_config
from grms.site.gateway.admission import Admission
from grms.site.gateway.user_listener import User
from grms.site.model.lifecycle import JobState
from grms.site.rpc.reconfigure import differences
from grms.site.runtime.executor_driver import ProgramGoneError
from grms.site.scheduler.state import SiteState
from grms.v1 import job_pb2, operator_pb2, partner_pb2, request_pb2
from lrms_sim.util.files import to_toml
from tests.grms.keys import new_federation
from tests.grms.mqtt import Mosquitto
from tests.grms.site.daemons import Running, document, running, two_sites
from tests.waiting import until


async def reload(
    site: Running, folder: Path, configuration: Mapping[str, Any]
) -> operator_pb2.ReloadPoliciesResponse:
    """Writes a site's configuration and lets the daemon read it."""
    (folder / f"{site.name}.toml").write_text(to_toml(configuration), encoding="utf-8")
    request = operator_pb2.ReloadPoliciesRequest()
    answer: operator_pb2.ReloadPoliciesResponse = await site.operator.ReloadPolicies(request)
    return answer


async def listed(site: Running) -> list[str]:
    """Returns the partners that operators are shown."""
    answer = await site.operator.Partners(operator_pb2.PartnersRequest(), timeout=300)
    return [partner.name for partner in answer.partners]


def names(state: SiteState) -> list[tuple[str, bool]]:
    """Returns the books of a state, in order, and which are listed."""
    return [(name, book.listed) for name, book in state.partners.items()]


async def test_partners_come_move_and_go(tmp_path: Path) -> None:
    """Who is on the list is asked and answered, at once; the state is that of a restart."""
    ports = {name: free_port() for name in ("home", "away", "third")}
    home = document(tmp_path, "home", port=ports["home"])
    away = document(tmp_path, "away", partners={"home": ports["home"]}, port=ports["away"])
    third = document(tmp_path, "third", partners={"home": ports["home"]}, port=ports["third"])
    async with (
        running(home, tmp_path) as site,
        running(away, tmp_path) as other,
        running(third, tmp_path) as another,
    ):
        await site.submit("fills", processors=4, run_time_s=60.0)
        assert (await site.submit("stays")).executed_on == "home"
        with_away = document(tmp_path, "home", partners={"away": 1}, port=ports["home"])
        answer = await reload(site, tmp_path, with_away)
        assert dict(answer.policies) == {"away": "awf"}
        assert not answer.restart_needed
        # There is nobody at that address; then the partner is where it is.
        with_away["partners"][0]["address"] = f"127.0.0.1:{ports['away']}"
        await reload(site, tmp_path, with_away)
        await site.linked()
        await other.linked()
        assert (await site.ended((await site.submit("goes")).job_id)).executed_on == "away"

        both = document(
            tmp_path,
            "home",
            partners={"third": ports["third"], "away": ports["away"]},
            port=ports["home"],
        )
        await reload(site, tmp_path, both)
        await another.linked()
        await site.linked()
        assert await listed(site) == ["third", "away"]

        alone = document(tmp_path, "home", partners={"third": ports["third"]}, port=ports["home"])
        await reload(site, tmp_path, alone)
        assert await listed(site) == ["third"]
        with pytest.raises(aio.AioRpcError) as error:
            await site.partner.Describe(
                partner_pb2.DescribeRequest(site="away", processors=4, protocol_version=1)
            )
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        link = other.core.links.links["home"]
        other.core.links.renew()
        await until(lambda: not link.up and "no" in link.problem)
        assert (await site.ended((await site.submit("third")).job_id)).executed_on == "third"
        now = names(site.core.engine.state)
        offered = site.core.engine.state.partners["away"].offered
    async with running(alone, tmp_path) as site:
        assert names(site.core.engine.state) == now == [("third", True), ("away", False)]
        assert site.core.engine.state.partners["away"].offered == offered == 1


async def test_a_partner_that_is_back_on_the_list_is_asked_what_was_open(tmp_path: Path) -> None:
    """A job is at a partner that is taken off the list; its end comes when it is on it again."""
    ports = {name: free_port() for name in ("home", "away")}
    home = document(tmp_path, "home", partners={"away": ports["away"]}, port=ports["home"])
    away = document(tmp_path, "away", partners={"home": ports["home"]}, port=ports["away"])
    async with running(home, tmp_path) as site, running(away, tmp_path) as other:
        await site.linked()
        await other.linked()
        await site.submit("fills", processors=4, run_time_s=60.0)
        job = await site.submit("goes", run_time_s=0.3)
        found = site.core.engine.state.job(job.job_id)
        assert found is not None
        await until(lambda: found.state.name == "DELEGATED")
        await reload(site, tmp_path, document(tmp_path, "home", port=ports["home"]))
        guests = other.core.engine.state.partners["home"].guests
        await until(lambda: all(guest.completion is not None for guest in guests.values()))
        assert guests
        assert found.state.name == "DELEGATED"
        await reload(site, tmp_path, home)
        assert (await site.ended(job.job_id)).executed_on == "away"


async def test_rounds_begin_and_end_with_a_reload(tmp_path: Path) -> None:
    """What waits goes to a partner that has room by now, without a restart of anybody."""
    start_now = {"rails": "start-now"}
    async with two_sites(tmp_path, here=start_now, there=start_now) as (site, other):
        await site.submit("fills", processors=4, run_time_s=3000.0, requested_time_s=3000.0)
        blocks = await other.submit("blocks", processors=4, run_time_s=3000.0)
        job = await site.submit("waits", processors=2)
        found = site.core.engine.state.job(job.job_id)
        assert found is not None
        await until(lambda: found.state.name == "QUEUED")
        settings = site.core.engine.state.settings
        document = load_config(tmp_path / "home.toml").model_dump(
            exclude_unset=True, exclude_none=True
        )
        await reload(site, tmp_path, {**document, "reoffer": {"every": 1, "order": "widest"}})
        assert site.core.engine.state.settings.reoffer == Rebalancing(1.0, "widest")
        await other.jobs.Cancel(job_pb2.CancelRequest(job_id=blocks.job_id), timeout=300)
        ended = await site.ended(job.job_id)
        assert (ended.executed_on, ended.outcome) == ("away", request_pb2.OUTCOME_COMPLETED)
        await reload(site, tmp_path, document)
        assert site.core.engine.state.settings == settings


async def test_what_cannot_be_changed_is_named(tmp_path: Path) -> None:
    """Other keys stay as they are until a restart; a broken file changes nothing."""
    configuration = document(tmp_path, operators=["ada"])
    async with running(configuration, tmp_path) as site:
        engine, guests = site.core.engine, {"place_held_s": 60.0, "preemptible": True}
        before = engine.state.settings
        assert before.confirm_time_max == 300.0
        assert (before.requeue, before.preempt_guests) == ("never", False)
        more = document(
            tmp_path,
            processors=8,
            limits={"drain_s": 3.0},
            operators=["eve"],
            guests=guests,
            requeue="ask",
        )
        for _ in range(2):
            answer = await reload(site, tmp_path, more)
            assert list(answer.restart_needed) == ["limits.drain_s", "processors"]
        assert engine.state.settings.processors == 4
        settings = engine.state.settings
        assert settings.confirm_time_max == 60.0
        assert (settings.requeue, settings.preempt_guests) == ("ask", True)
        bad = document(tmp_path, partners={"home": 5})
        with pytest.raises(aio.AioRpcError) as error:
            await reload(site, tmp_path, bad)
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await listed(site) == []


async def test_more_partners_than_calls_were_shared_among_are_said(tmp_path: Path) -> None:
    """Connections keep the number of calls that they were told at the start, which is too much for all of them."""

    def sites(count: int) -> dict[str, Any]:
        partners = {f"p{number}": 1 for number in range(count)}
        return document(
            tmp_path,
            partners=partners,
            port=port,
            limits={"calls": 800},
            mqtt={"enabled": False},
        )

    port = free_port()
    async with running(sites(2), tmp_path) as site:
        for count, needed in ((8, []), (9, ["limits.calls"]), (8, []), (20, ["limits.calls"])):
            assert list((await reload(site, tmp_path, sites(count))).restart_needed) == needed
    async with running(sites(9), tmp_path) as site:
        assert not (await reload(site, tmp_path, sites(9))).restart_needed


def test_differences_are_found_at_any_depth(tmp_path: Path) -> None:
    """A table that is new or gone counts as one key."""
    path = tmp_path / "home.toml"

    def config(**more: Any) -> Any:
        path.write_text(to_toml(document(tmp_path, **more)), encoding="utf-8")
        return load_config(path)

    changes: dict[str, Any] = {
        "location": ["a"],
        "partners": {"a": 1},
        "partners_asked": 1,
        "reoffer": 900,
        "requeue": "allow",
        "guests": {"place_held_s": 60},
    }
    assert differences(config(), config(**changes)) == set()
    assert differences(config(), config(mqtt={"enabled": False})) == {"mqtt"}
    assert differences(config(), config(lrms={"discipline": "easy"}, suspect="resubmit")) == {
        "lrms.discipline",
        "suspect",
    }


async def test_a_renewed_certificate_is_shown_by_both_sides(tmp_path: Path) -> None:
    """After a reload connections are made with it; one of no use is refused, and changes nothing."""
    federation = new_federation(tmp_path)
    ports = {name: free_port() for name in ("home", "away")}
    configurations = {}
    for name, other in (("home", "away"), ("away", "home")):
        files = federation.site(name)
        configurations[name] = document(
            tmp_path,
            name,
            partners={other: ports[other]},
            port=ports[name],
            tls={
                "authority": str(files.authority),
                "certificate": str(files.certificate),
                "key": str(files.key),
            },
        )
    async with (
        running(configurations["home"], tmp_path) as home,
        running(configurations["away"], tmp_path) as away,
    ):
        await home.linked()
        await away.linked()
        link = home.core.links.links["away"]
        before = link._channel
        await reload(home, tmp_path, configurations["home"])
        assert link._channel is before
        assert link.up
        for end in ("key", "crt"):
            (tmp_path / f"home.{end}").unlink()
        federation.site("home", days=20)
        await reload(home, tmp_path, configurations["home"])
        assert link._channel is not before
        await home.linked()
        await away.linked()
        await home.submit("fills", processors=4, run_time_s=60.0)
        job = await home.ended((await home.submit("goes")).job_id)
        assert job.executed_on == "away"
        # A key without its certificate.
        (tmp_path / "other").mkdir()
        stranger = new_federation(tmp_path / "other").site("home")
        (tmp_path / "home.key").write_bytes(stranger.key.read_bytes())
        renewed = link._channel
        with pytest.raises(aio.AioRpcError) as error:
            await reload(home, tmp_path, configurations["home"])
        assert "is not the key of" in (error.value.details() or "")
        assert link._channel is renewed


async def test_a_stolen_key_is_of_no_use_from_the_reload_on(tmp_path: Path) -> None:
    """Both connections end, the one it has made and the one to it, and there are no others until it is forgiven."""
    federation = new_federation(tmp_path)
    ports = {name: free_port() for name in ("home", "away")}
    configurations = {}
    for name, other in (("home", "away"), ("away", "home")):
        files = federation.site(name)
        tls = {key: str(getattr(files, key)) for key in ("authority", "certificate", "key")}
        configurations[name] = document(
            tmp_path, name, partners={other: ports[other]}, port=ports[name], tls=tls
        )
    home_file = configurations["home"]
    shown = x509.load_pem_x509_certificate((tmp_path / "away.crt").read_bytes())
    with capture_logs() as logs:
        async with (
            running(home_file, tmp_path) as home,
            running(configurations["away"], tmp_path) as away,
        ):
            await home.linked()
            await away.linked()
            to_away, to_home = home.core.links.links["away"], away.core.links.links["home"]
            # As `openssl x509 -fingerprint` and `grms pki show` print it.
            digits = shown.fingerprint(SHA256()).hex(":").upper()
            home_file["tls"]["refused"] = [f"sha256 Fingerprint={digits}"]
            answer = await reload(home, tmp_path, home_file)
            assert not answer.restart_needed
            await until(lambda: not to_home.up and not to_away.up)
            await until(lambda: "that tls.refused names" in to_away.problem)
            ended = [each for each in logs if each["event"] == "connection_distrusted"]
            assert [(each["partner"], each["reason"]) for each in ended] == [
                ("away", "it is among those that tls.refused names")
            ]
            refused = [each for each in logs if each["event"] == "handshake_failed"]
            assert {each["reason"] for each in refused} <= {"distrusted"}
            home_file["tls"]["refused"] = []
            await reload(home, tmp_path, home_file)
            await home.linked()
            await away.linked()


async def test_an_authority_that_leaves_its_file_is_noticed_without_a_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was let in by it is let go, and whom this site has called by it is called anew."""
    monkeypatch.setattr(daemon, "TRUST_LOOKED_AT_S", 0.05)
    federation = new_federation(tmp_path)
    ports = {name: free_port() for name in ("home", "away")}
    configurations = {}
    for name, other in (("home", "away"), ("away", "home")):
        files = federation.site(name)
        tls = {key: str(getattr(files, key)) for key in ("authority", "certificate", "key")}
        tls["authority"] = str(tmp_path / f"{name}.ca")
        (tmp_path / f"{name}.ca").write_bytes(federation.ca.read_bytes())
        configurations[name] = document(
            tmp_path, name, partners={other: ports[other]}, port=ports[name], tls=tls
        )
    async with (
        running(configurations["home"], tmp_path) as home,
        running(configurations["away"], tmp_path) as away,
    ):
        await home.linked()
        await away.linked()
        (tmp_path / "other").mkdir()
        other_authority = new_federation(tmp_path / "other").ca.read_bytes()
        (tmp_path / "home.ca").write_bytes(other_authority)
        to_away, to_home = home.core.links.links["away"], away.core.links.links["home"]
        await until(lambda: not to_home.up and not to_away.up)
        await until(lambda: "unknown authority" in to_away.problem)


async def test_partners_find_each_other_through_a_real_broker_with_tls(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    """Presence tells the address, certificates tell who is there; one new on the list is found."""
    tables: dict[str, dict[str, Any]] = {}
    for name in ("KTH", "CTC"):
        settings = mosquitto.settings(name)
        assert settings.tls is not None
        tables[name] = document(
            tmp_path,
            name,
            port=free_port(),
            tls={
                "authority": str(settings.tls.authority),
                "certificate": str(settings.tls.certificate),
                "key": str(settings.tls.key),
            },
            mqtt={
                "address": f"127.0.0.1:{settings.port}",
                "tls": True,
                "discovery": True,
            },
        )
    tables["CTC"]["partners"] = [{"name": "KTH"}]
    async with (
        asyncio.timeout(300),
        running(tables["KTH"], tmp_path) as kth,
        running(tables["CTC"], tmp_path) as ctc,
    ):
        await until(lambda: ctc.core.links.links["KTH"].address is not None)
        assert not kth.core.links.links
        tables["KTH"]["partners"] = [{"name": "CTC"}]
        await reload(kth, tmp_path, tables["KTH"])
        await kth.linked()
        await ctc.linked()
        assert kth.core.links.links["CTC"].address == tables["CTC"]["listen"]["partners"]
        await kth.submit("fills", processors=4, run_time_s=60.0)
        job = await kth.ended((await kth.submit("goes", processors=2)).job_id)
        assert job.executed_on == "CTC"


async def test_operators_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is on the list may come in from then on, and who is taken off it may not."""
    doors: list[Admission] = []

    class Noted(Admission):
        """A door that the test can look at."""

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            doors.append(self)

    monkeypatch.setattr(daemon, "Admission", Noted)
    ann, bob = User(54321, "ann"), User(54322, "bob")
    async with running(document(tmp_path, operators=["ann"]), tmp_path) as site:
        (admission,) = doors
        assert (admission.is_operator(ann), admission.is_operator(bob)) == (True, False)
        banned = [f"away:{'0' * 32}"]
        more = document(tmp_path, operators=["bob", "eve"], guests={"banned": banned})
        assert not (await reload(site, tmp_path, more)).restart_needed
        with pytest.raises(ProgramGoneError, match="banned"):
            await site.daemon.owners.take("away", "away/1/1", "0" * 32)
        assert (admission.is_operator(ann), admission.is_operator(bob)) == (False, True)


async def test_names_of_partners_get_a_meaning_without_a_restart(tmp_path: Path) -> None:
    """What was declined for a name is accepted after that; one of another account still is not."""
    ports = {name: free_port() for name in ("home", "away")}
    home = document(tmp_path, "home", 4, {"away": ports["away"]}, ports["home"])
    away = document(tmp_path, "away", 4, {"home": ports["home"]}, ports["away"])
    async with running(home, tmp_path) as here, running(away, tmp_path) as there:
        await here.linked()
        await here.submit("fills", processors=4, run_time_s=90.0)

        async def goes(account: str) -> bool:
            message = job_pb2.SubmitRequest(idempotency_key=f"{account}{len(seen)}")
            message.request.processors = 1
            message.request.requested_time_s = 60.0
            message.request.simulated.run_time_s = 0.05
            message.request.needs.tasks = message.request.needs.cores_per_task = 1
            message.request.needs.account = account
            job = await here.jobs.Submit(message)
            seen.append(job.job_id)
            found = here.core.engine.state.job(job.job_id)
            assert found is not None
            await until(lambda: found.shown not in {JobState.RECEIVED, JobState.OFFERING})
            return found.partner == "away"

        seen: list[str] = []
        assert not await goes("proj")
        table = {"translate": {"accounts": {"home:proj": ""}}}
        assert not (await reload(there, tmp_path, away | {"guests": table})).restart_needed
        assert await goes("proj")
        assert not await goes("other")
