"""What partners can ask, and who is no partner."""

import asyncio
import datetime as dt
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.security import authority as pki
from grms.security.files import write_certificate, write_key
from grms.security.tls import TlsFiles, channel_credentials, channel_options
from grms.v1 import job_pb2, operator_pb2, partner_pb2, partner_pb2_grpc, request_pb2
from tests.grms.keys import tls_table
from tests.grms.site.daemons import Running, document, metrics, running, two_sites
from tests.waiting import until

NOW = dt.datetime.now(dt.UTC)


def free(site: Running) -> int:
    """Returns how many processors of a site no job holds."""
    load = site.core.engine.load()
    assert load is not None
    return load.processors_free


def offer(number: int = 1, site: str = "away", processors: int = 1, **more: Any) -> Any:
    """Returns an offer of a job that runs for an hour."""
    message = partner_pb2.OfferRequest(site=site, settled_below=1, **more)
    message.offer.epoch, message.offer.number = 7, number
    message.job.processors, message.job.requested_time_s = processors, 4000.0
    message.job.simulated.run_time_s = 3600.0
    return message


def withdrawal(number: int) -> partner_pb2.WithdrawRequest:
    """Returns a withdrawal."""
    message = partner_pb2.WithdrawRequest(site="away", cancel=True)
    message.offer.epoch, message.offer.number = 7, number
    return message


def status_of(number: int) -> partner_pb2.ResolveRequest:
    """Returns a question about an offer."""
    message = partner_pb2.ResolveRequest(site="away")
    message.offer.epoch, message.offer.number = 7, number
    return message


def alone(folder: Path, **more: Any) -> dict[str, Any]:
    """Returns the configuration of a site whose partner is played by the test."""
    return document(folder, partners={"away": free_port()}, port=free_port(), **more)


async def refused(call: Any, message: Any) -> grpc.StatusCode:
    """Returns the status with which a call is refused."""
    with pytest.raises(aio.AioRpcError) as error:
        await call(message, timeout=300)
    code: grpc.StatusCode = error.value.code()
    return code


async def test_an_offer_has_one_answer(tmp_path: Path) -> None:
    """Repeated it is answered alike and runs once; one that does not fit is declined."""
    async with running(alone(tmp_path), tmp_path) as site:
        site.reach("away")
        answers = await asyncio.gather(*(site.partner.Offer(offer(1)) for _ in range(10)))
        assert {entry.answer for entry in answers} == {partner_pb2.ANSWER_ACCEPTED}
        assert free(site) == 3
        answer = await site.partner.Offer(offer(2, processors=4))
        assert answer.answer == partner_pb2.ANSWER_DECLINED
        status = await site.partner.Resolve(status_of(1))
        assert status.state == partner_pb2.OFFER_STATE_ACCEPTED
        status = await site.partner.Resolve(status_of(3))
        assert status.state == partner_pb2.OFFER_STATE_UNKNOWN


async def test_a_withdrawn_offer_is_declined_should_it_still_come(tmp_path: Path) -> None:
    """The tombstone outlives the daemon; an accepted job ends on withdrawal with cancel."""
    configuration = alone(tmp_path)
    async with running(configuration, tmp_path) as site:
        site.reach("away")
        status = await site.partner.Withdraw(withdrawal(1))
        assert status.state == partner_pb2.OFFER_STATE_WITHDRAWN
        await site.partner.Offer(offer(2))
    async with running(configuration, tmp_path) as site:
        site.reach("away")
        answer = await site.partner.Offer(offer(1))
        assert answer.answer == partner_pb2.ANSWER_DECLINED
        assert free(site) == 3
        await site.partner.Withdraw(withdrawal(2))
        assert free(site) == 4
        status = await site.partner.Resolve(status_of(2))
        assert status.state == partner_pb2.OFFER_STATE_ENDED


async def test_a_place_is_held_until_its_job_comes(tmp_path: Path) -> None:
    """It counts as taken and starts nothing, over a restart too; confirmed once or twice it starts once."""
    configuration = alone(tmp_path)
    async with running(configuration, tmp_path) as site:
        site.reach("away")
        held = [await site.partner.Offer(offer(1, processors=3, reserve=True)) for _ in "12"]
        assert [answer.answer for answer in held] == [partner_pb2.ANSWER_ACCEPTED] * 2
        assert free(site) == 4
        answer = await site.partner.Offer(offer(2, processors=2))
        assert answer.answer == partner_pb2.ANSWER_DECLINED
        status = await site.partner.Resolve(status_of(1))
        assert status.state == partner_pb2.OFFER_STATE_ACCEPTED
        assert free(site) == 4
    async with running(configuration, tmp_path) as site:
        site.reach("away")
        assert free(site) == 4
        confirmed = status_of(1)
        confirmed.confirm = True
        for _ in range(2):
            status = await site.partner.Resolve(confirmed)
            assert status.state == partner_pb2.OFFER_STATE_ACCEPTED
            assert free(site) == 1


async def test_a_place_that_is_given_back_is_never_taken(tmp_path: Path) -> None:
    """A confirmation after that has the end of a job that has not run for an answer."""
    async with running(alone(tmp_path), tmp_path) as site:
        site.reach("away")
        await site.partner.Offer(offer(1, processors=3, reserve=True))
        back = withdrawal(1)
        back.cancel = False
        for _ in range(2):
            status = await site.partner.Withdraw(back)
            assert status.state == partner_pb2.OFFER_STATE_ENDED
        answer = await site.partner.Offer(offer(2, processors=2))
        assert answer.answer == partner_pb2.ANSWER_ACCEPTED
        confirmed = status_of(1)
        confirmed.confirm = True
        status = await site.partner.Resolve(confirmed)
        ended = status.completion
        assert (ended.outcome, ended.run_time_s) == (request_pb2.OUTCOME_LOST, 0.0)
        assert free(site) == 2


async def test_messages_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    """Offers without name, jobs without size, ends that are none: INVALID_ARGUMENT, no effect."""
    async with running(alone(tmp_path), tmp_path) as site:
        nameless = offer(1)
        nameless.offer.number = 0
        for call, message in (
            (site.partner.Offer, nameless),
            (site.partner.Offer, offer(1, processors=0)),
            (site.partner.Resolve, partner_pb2.ResolveRequest(site="away")),
            (site.partner.Withdraw, partner_pb2.WithdrawRequest(site="away")),
            (
                site.partner.Report,
                partner_pb2.ReportRequest(site="away", completions=[partner_pb2.Completion()]),
            ),
        ):
            assert await refused(call, message) is grpc.StatusCode.INVALID_ARGUMENT
        # The report, which no site of this protocol sends, has made it faulty; nothing else.
        await until(lambda: site.core.journal.count == 1)
        book = site.core.engine.state.partners["away"]
        assert book.faulty == ("it reports what cannot be: outcome is 0; it must be a known one")


async def test_without_tls_a_stranger_is_refused(tmp_path: Path) -> None:
    """Who is not on the list is refused whatever it asks."""
    async with running(alone(tmp_path), tmp_path) as site:
        code = await refused(site.partner.Offer, offer(1, site="eve"))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        code = await refused(site.partner.Describe, partner_pb2.DescribeRequest())
        assert code is grpc.StatusCode.PERMISSION_DENIED


async def test_a_flood_of_offers_is_stopped(tmp_path: Path) -> None:
    """Beyond the rate offers are refused, and the site keeps serving."""
    configuration = alone(tmp_path, limits={"offers_per_s": 1.0})
    async with running(configuration, tmp_path) as site:
        results = await asyncio.gather(
            *(site.partner.Offer(offer(number)) for number in range(1, 40)),
            return_exceptions=True,
        )
        codes = [e.code() for e in results if isinstance(e, aio.AioRpcError)]
        assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert len(codes) >= 25
        assert (await site.submit("mine")).job_id == "home-1"


def credentials_of(
    folder: Path, name: str, authority: pki.Authority, *, days: int = 1, now: Any = NOW
) -> TlsFiles:
    """Writes keys and certificate of a site, as an authority signs them."""
    key = pki.generate_key()
    certificate = pki.issue_for_site(
        authority, name, ["127.0.0.1"], key.public_key(), now=now, days=days
    )
    files = TlsFiles(folder / f"{name}-ca.pem", folder / f"{name}.pem", folder / f"{name}.key")
    write_certificate(authority.certificate, files.authority)
    write_certificate(certificate, files.certificate)
    write_key(key, files.key)
    return files


def calls_with(files: TlsFiles, site: Running) -> tuple[aio.Channel, Any]:
    """Returns a channel to a site with a certificate."""
    channel = aio.secure_channel(
        site.core.config.listen.partners or "",
        channel_credentials(files),
        options=[*channel_options(site.name)],
    )
    return channel, partner_pb2_grpc.PartnerServiceStub(channel)


async def test_certificates_say_who_is_who(tmp_path: Path) -> None:
    """A partner speaks for itself; others, strangers, other authorities and old ones do not."""
    foreign = pki.create_authority("foreign", now=NOW)
    since = NOW - dt.timedelta(days=9)
    league = pki.create_authority("league", now=since)
    files = {name: credentials_of(tmp_path, name, league) for name in ("home", "away", "eve")}
    (tmp_path / "wrong").mkdir()
    (tmp_path / "old").mkdir()
    wrong = credentials_of(tmp_path / "wrong", "away", foreign)
    expired = credentials_of(tmp_path / "old", "away", league, now=since)
    configuration = alone(tmp_path, tls=tls_table(files["home"]))
    async with running(configuration, tmp_path) as site:
        site.reach("away")
        for who, claimed, expected in (
            (files["away"], "away", None),
            (files["away"], "eve", grpc.StatusCode.PERMISSION_DENIED),
            (files["eve"], "away", grpc.StatusCode.PERMISSION_DENIED),
            (files["eve"], "eve", grpc.StatusCode.PERMISSION_DENIED),
            (wrong, "away", grpc.StatusCode.UNAVAILABLE),
            (expired, "away", grpc.StatusCode.UNAVAILABLE),
        ):
            channel, stub = calls_with(who, site)
            async with channel:
                if expected is None:
                    answer = await stub.Offer(offer(1, site=claimed), timeout=300)
                    assert answer.answer == partner_pb2.ANSWER_ACCEPTED
                else:
                    assert await refused(stub.Offer, offer(2, site=claimed)) is expected
        plain = aio.insecure_channel(site.core.config.listen.partners or "")
        async with plain:
            stub = partner_pb2_grpc.PartnerServiceStub(plain)
            assert await refused(stub.Offer, offer(3)) is grpc.StatusCode.UNAVAILABLE
        assert site.core.engine.state.partners["away"].guest_accepted == 1
        assert (await site.submit("mine")).job_id == "home-1"


async def test_who_only_asks_is_found_out(tmp_path: Path) -> None:
    """Operators see a partner that takes back what is accepted, in its list and in the log; it hears no alone."""
    limits = {"limits": {"unused_acceptances_per_hour": 2}}
    with capture_logs() as logs:
        async with running(alone(tmp_path) | limits, tmp_path) as site:
            site.reach("away")
            answers = []
            for number in range(1, 5):
                asked = offer(number, reserve=True)
                answers.append((await site.partner.Offer(asked, timeout=300)).answer)
                await site.partner.Withdraw(withdrawal(number), timeout=300)
            yes, no = partner_pb2.ANSWER_ACCEPTED, partner_pb2.ANSWER_DECLINED
            assert answers == [yes, yes, no, no]
            shown = (await site.operator.Partners(operator_pb2.PartnersRequest())).partners[0]
            assert (shown.unused_acceptances, shown.declined_for_unused) == (2, 2)
            assert "took back 2 accepted offers within an hour" in shown.problem
    told = [entry for entry in logs if entry["event"] == "acceptances_unused"]
    assert [(entry["partner"], entry["unused"]) for entry in told] == [("away", 2)] * 2


async def test_two_sites_ask_each_other_what_they_must_and_no_more(tmp_path: Path) -> None:
    """A job goes, is cancelled there and its end comes back: one call for each, whose time is taken."""
    async with two_sites(tmp_path, metrics(), metrics()) as (home, away):
        await home.submit("fills", processors=4, run_time_s=30.0)
        job = await home.submit("goes", processors=2, run_time_s=50.0)
        await until(lambda: bool(away.core.engine.state.memory.at_lrms))
        await home.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id))
        job = await home.ended(job.job_id)
        assert job.outcome == request_pb2.OUTCOME_CANCELLED
        for asked, methods in ((away, ("Offer", "Withdraw")), (home, ("Report",))):
            assert asked.core.monitor is not None
            figures = asked.core.monitor.metrics.values()
            for method in methods:
                name = f'hanse_call_seconds_count{{method="grms.v1.PartnerService/{method}"}}'
                assert figures[name] == 1


async def test_two_sites_trust_each_other_by_certificate(tmp_path: Path) -> None:
    """With mutual TLS a job that does not fit goes to the partner and comes back ended."""
    authority = pki.create_authority("league", now=NOW)
    tables = {
        name: {"tls": tls_table(credentials_of(tmp_path, name, authority))}
        for name in ("home", "away")
    }
    async with two_sites(tmp_path, tables["home"], tables["away"]) as (home, away):
        await home.submit("fills", processors=4, run_time_s=30.0)
        job = await home.submit("goes", processors=2)
        job = await home.ended(job.job_id)
        assert job.executed_on == "away"
        assert away.core.engine.state.partners["home"].guest_accepted == 1


async def test_a_job_that_is_cancelled_ends_where_it_is(tmp_path: Path) -> None:
    """The cancellation of a delegated job reaches the partner, and its end comes back."""
    async with two_sites(tmp_path) as (home, away):
        await home.submit("fills", processors=4, run_time_s=30.0)
        job = await home.submit("goes", processors=2, run_time_s=50.0)
        await until(lambda: bool(away.core.engine.state.memory.at_lrms))
        await home.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id))
        job = await home.ended(job.job_id)
        assert job.outcome == request_pb2.OUTCOME_CANCELLED
        assert free(away) == 4


async def test_a_home_with_an_older_journal_is_told_so(tmp_path: Path) -> None:
    """Who describes itself hears which of its offers was the last; another job by it is refused."""
    async with running(alone(tmp_path), tmp_path) as site:
        site.reach("away")
        hello = partner_pb2.DescribeRequest(site="away", processors=4, protocol_version=1)
        assert not (await site.partner.Describe(hello)).HasField("offer_seen")
        await site.partner.Offer(offer(1))
        seen = (await site.partner.Describe(hello)).offer_seen
        assert (seen.epoch, seen.number) == (7, 1)
        other = offer(1, processors=2)
        assert await refused(site.partner.Offer, other) is grpc.StatusCode.ALREADY_EXISTS
        shown = (await site.operator.Partners(operator_pb2.PartnersRequest())).partners[0]
        assert shown.disputed == 1
        assert "its journal is older" in shown.problem


async def test_a_partner_hears_of_its_own_jobs_alone(tmp_path: Path) -> None:
    """Where they stand, and what they have used; numbers say nothing of how many others there are."""
    ports = {name: free_port() for name in ("away", "third")}
    configuration = document(tmp_path, processors=64, partners=ports, port=free_port())
    async with running(configuration, tmp_path) as site:
        for name in ports:
            site.reach(name)
        for number in range(1, 6):
            short = offer(number, "third")
            short.job.simulated.run_time_s = 0.05
            await site.partner.Offer(short)
        mine, other = offer(11, "away"), offer(9, "third")
        mine.job.simulated.run_time_s = 0.3
        await site.partner.Offer(mine)
        await site.partner.Offer(other)
        asked = [mine.offer, other.offer]
        for name, number in (("away", 11), ("third", 9)):
            request = partner_pb2.ProgressRequest(site=name, offers=asked)
            (told,) = (await site.partner.Progress(request)).jobs
            assert told.offer.number == number
            assert told.phase == request_pb2.JOB_PHASE_RUNNING
        first = partner_pb2.ListUsageRequest(site="away")
        used = partner_pb2.ListUsageResponse()
        while not used.records:
            used = await site.partner.ListUsage(first)
            await asyncio.sleep(0.05)
        (record,) = used.records
        assert (record.number, record.offer.number, used.more) == (1, 11, False)
        assert record.processors == 1
        assert record.run_time_s == pytest.approx(0.3)
        known = partner_pb2.ListUsageRequest(site="away", log=used.log, after=1)
        assert not (await site.partner.ListUsage(known)).records
        anew = partner_pb2.ListUsageRequest(site="away", log="another", after=1)
        assert len((await site.partner.ListUsage(anew)).records) == 1
        third = await site.partner.ListUsage(partner_pb2.ListUsageRequest(site="third"))
        assert [one.number for one in third.records] == [1, 2, 3, 4, 5]
        many = partner_pb2.ProgressRequest(site="away", offers=[mine.offer] * 1001)
        code = await refused(site.partner.Progress, many)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
