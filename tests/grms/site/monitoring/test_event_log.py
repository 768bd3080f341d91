"""The log of what happens: complete at `debug`, readable at `info`, and who did what."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
import structlog
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.pacing import Seldom
from grms.daemon.ports import free_port
from grms.lrms import base as port
from grms.site.gateway.user_listener import user_of
from grms.site.model import events, records
from grms.site.model.commands import AnswerOffer, Append, LrmsCancel
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.state_tables import StateTables
from grms.site.monitoring import event_log
from grms.site.monitoring.event_log import EventLog, event_name
from grms.site.monitoring.subscriber import Subscriber
from grms.site.runtime.event_loop import Engine
from grms.v1 import job_pb2, operator_pb2, partner_pb2
from tests.grms.site.daemons import document, running, two_sites
from tests.grms.site.jobs import home_job
from tests.waiting import until

COMPLETE: dict[str, Any] = {"logging": {"level": "debug"}, "mqtt": {"enabled": False}}
TERSE: dict[str, Any] = {"mqtt": {"enabled": False}}


def found(logs: list[Any], event: str, **wanted: object) -> list[Mapping[str, Any]]:
    """Returns the entries of one event with these values."""
    return [
        entry
        for entry in logs
        if entry["event"] == event
        and all(entry.get(name) == value for name, value in wanted.items())
    ]


async def test_a_job_can_be_followed(tmp_path: Path) -> None:
    """From its submission to its end at a partner's, at both sites, by job and offer."""
    with capture_logs() as logs:
        async with two_sites(tmp_path, COMPLETE, COMPLETE) as (home, away):
            await home.submit("full", processors=4, run_time_s=500.0, requested_time_s=500.0)
            job = await home.ended((await home.submit("k", processors=2)).job_id)
            assert job.executed_on == "away"
            guests = away.core.engine.state.partners["home"]
            await until(lambda: not guests.guests)
    (received,) = found(logs, "job_received", job=job.job_id)
    assert received["processors"] == 2
    assert received["user"] == user_of(os.getuid()).name
    assert "payload" not in received
    (offered,) = found(logs, "job_offered", job=job.job_id)
    assert offered["partner"] == "away"
    assert "number" not in offered
    (delegated,) = found(logs, "job_delegated", job=job.job_id)
    assert delegated["partner"] == "away"
    assert delegated["cause"] > received["cause"]
    offer = delegated["offer"]
    assert offered["offer"] == offer
    for event in ("guest_accepted", "guest_started", "guest_ended", "guest_acknowledged"):
        (entry,) = found(logs, event, offer=offer, partner="home")
        assert entry["log_level"] == "debug"
    (ended,) = found(logs, "job_ended", job=job.job_id)
    assert ended["outcome"] == "completed"
    assert ended["offer"] == offer


async def test_info_is_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of forty jobs nothing but who submitted them, and how many there were."""
    monkeypatch.setattr(event_log, "ACTIVITY_S", 3600.0)
    with capture_logs() as logs:
        async with two_sites(tmp_path, TERSE, TERSE) as (home, _):
            jobs = [await home.submit(f"k{number}") for number in range(40)]
            for job in jobs:
                await home.ended(job.job_id)
    assert not [entry for entry in logs if entry["log_level"] == "debug"]
    assert len(found(logs, "audit", act="submit")) == 40
    told = [entry for entry in found(logs, "activity") if "job_received" in entry]
    assert [entry["job_received"] for entry in told] == [40]
    assert told[0]["job_ended"] == 40
    assert {entry["partner"] for entry in found(logs, "partner_up")} == {"home", "away"}
    assert not [entry for entry in logs if str(entry["event"]).startswith("job_")]


def test_an_offer_has_one_name_wherever_it_is_told() -> None:
    """Also where a record has its number alone, or a partner has seen it."""
    job = home_job(number=7, partner="away", offer_epoch=0x2B, offer_number=3)
    memory = SimpleNamespace(epoch=0x2A, jobs={7: job})
    state = SimpleNamespace(settings=SimpleNamespace(name="home"), memory=memory)
    engine = cast("Engine", SimpleNamespace(state=state))
    subscriber = Subscriber(cast("StateTables", memory))
    noted = (
        records.JobReoffered(1.0, 8, "away", 4),
        records.JobEnded(2.0, 7, Outcome.COMPLETED, 2.0, 1.0, ""),
        records.ReportDisbelieved(2.0, "away", 3, "it ran for longer than it could"),
        records.AbandonedSettled(3.0, "away", 9),
    )
    with capture_logs() as logs:
        EventLog(structlog.get_logger(), subscriber, engine, complete=True)
        subscriber.seen(events.PartnerUp(1, None, "away", 4, OfferId(0x2A, 3)), [])
        subscriber.seen(events.TimePassed(2, None), [Append(2, noted)])
    assert [
        (one["event"], one.get("job"), one.get("offer"), one.get("number")) for one in logs
    ] == [
        ("partner_up", None, None, None),
        ("job_reoffered", "home-8", "2a/4", None),
        ("job_ended", "home-7", "2b/3", None),
        ("report_disbelieved", "home-7", "2b/3", None),
        ("abandoned_settled", None, None, 9),
    ]
    assert logs[0]["offer_seen"] == "2a/3"


async def test_activity_is_told_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once in a while, and not while nothing happens."""
    monkeypatch.setattr(event_log, "ACTIVITY_S", 0.05)
    with capture_logs() as logs:
        async with running(document(tmp_path, **TERSE), tmp_path) as site:
            await site.ended((await site.submit("k")).job_id)
            await until(
                lambda: (
                    sum(e["job_ended"] for e in found(logs, "activity") if "job_ended" in e) == 1
                )
            )
            count = len(found(logs, "activity"))
            await asyncio.sleep(0.2)  # what is not to come has no moment
            assert len(found(logs, "activity")) == count


async def test_every_act_has_its_line(tmp_path: Path) -> None:
    """Who submits, cancels, drains, resumes and reloads, and on what."""
    me = user_of(os.getuid()).name
    with capture_logs() as logs:
        async with running(document(tmp_path, **TERSE), tmp_path) as site:
            job = await site.submit("k", run_time_s=500.0, requested_time_s=500.0)
            await site.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id), timeout=300)
            await site.operator.Drain(operator_pb2.DrainRequest(), timeout=300)
            await site.operator.Resume(operator_pb2.ResumeRequest(), timeout=300)
            request = operator_pb2.ReloadPoliciesRequest()
            await site.operator.ReloadPolicies(request, timeout=300)
    acts = found(logs, "audit", user=me, uid=os.getuid())
    told = [entry["act"] for entry in acts]
    assert told == ["submit", "cancel", "drain", "resume", "reload"]
    assert [entry.get("job") for entry in acts[:2]] == [job.job_id] * 2
    assert {entry["log_level"] for entry in acts} == {"info"}


async def test_strangers_are_told_and_counted(tmp_path: Path) -> None:
    """Once for many calls of one stranger, with what it claims; each is counted."""
    with capture_logs() as logs:
        async with two_sites(tmp_path, TERSE, TERSE) as (home, _):
            for _ in range(20):
                request = partner_pb2.DescribeRequest(site="mallory", protocol_version=1)
                with pytest.raises(aio.AioRpcError) as refused:
                    await home.partner.Describe(request, timeout=300)
                assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    (entry,) = found(logs, "refused", reason="not_listed")
    assert entry["log_level"] == "warning"
    assert "mallory" in entry["text"]


async def test_a_partner_does_not_fill_the_log(tmp_path: Path) -> None:
    """One that speaks another version with each call is told of some times, with how often it was left out."""
    configuration = document(tmp_path, partners={"away": free_port()}, port=free_port(), **TERSE)
    with capture_logs() as logs:
        async with running(configuration, tmp_path) as site:
            now = 0.0
            site.core.events._alike = Seldom(event_log.ALIKE_LOGGED_PER_S, lambda: now)

            async def says(version: int) -> None:
                request = partner_pb2.DescribeRequest(
                    site="away", processors=1, protocol_version=version
                )
                await site.partner.Describe(request, timeout=300)

            for version in range(2, 102):
                await says(version)
            assert len(found(logs, "partner_incompatible")) == 5
            now = 2.0
            await says(7)
    told = found(logs, "partner_incompatible")
    assert [entry.get("left_out") for entry in told] == [None] * 5 + [95]
    assert told[-1]["version"] == 7


def test_acceptances_unused_are_told_with_those_left_out() -> None:
    """A partner that only asks does not fill the log, and how often it did is told."""
    budget = SimpleNamespace(unused_lately=lambda _: 2, declined=1)
    state = SimpleNamespace(partners={"away": SimpleNamespace(budget=budget)})
    clock = SimpleNamespace(now=lambda: 1.0)
    engine = cast("Engine", SimpleNamespace(state=state, clock=clock))
    subscriber = Subscriber(cast("StateTables", SimpleNamespace(jobs={})))
    now = 0.0
    with capture_logs() as logs:
        log = EventLog(structlog.get_logger(), subscriber, engine, complete=False)
        log._alike = Seldom(event_log.ALIKE_LOGGED_PER_S, lambda: now)
        offered = events.OfferReceived(1, None, "away", OfferId(1, 1), 0, Request(1, 60.0), b"")
        declined = AnswerOffer(1, accepted=False, unused=True)
        for _ in range(20):
            subscriber.seen(offered, [declined])
        now = 2.0
        subscriber.seen(offered, [declined])
    assert [entry.get("left_out") for entry in logs] == [None] * 5 + [15]


def test_what_happens_to_a_partners_job_has_its_own_name() -> None:
    """And levels of its own: its end is its home site's news, that it is to leave is this one's."""
    state = SimpleNamespace(settings=SimpleNamespace(name="home"))
    subscriber = Subscriber(cast("StateTables", SimpleNamespace(jobs={})))
    noted: list[records.Record] = []
    for job in (7, GuestRef("away", OfferId(0x2A, 3))):
        noted += [
            records.JobLeaving(1.0, job),
            records.JobLost(2.0, job, ""),
            records.JobEnded(3.0, job, Outcome.FAILED, 3.0, 1.0, ""),
        ]
    with capture_logs() as logs:
        log = EventLog(
            structlog.get_logger(),
            subscriber,
            cast("Engine", SimpleNamespace(state=state)),
            complete=True,
        )
        subscriber.seen(events.TimePassed(2, None), [Append(2, tuple(noted))])
        log._tell()
    ended = {"outcome": "failed", "end_time": 3.0, "run_time": 1.0, "cause": 2}
    own, guest = {"job": "home-7", "cause": 2}, {"partner": "away", "offer": "2a/3", "cause": 2}
    names = ("leaving", "lost", "ended")
    assert [dict(entry) for entry in logs] == [
        {"event": "job_leaving", "log_level": "debug", **own},
        {"event": "job_lost", "log_level": "warning", **own, "reason": ""},
        {"event": "job_ended", "log_level": "info", **own, **ended, "reason": ""},
        {"event": "guest_leaving", "log_level": "warning", **guest},
        {"event": "guest_lost", "log_level": "warning", **guest},
        {"event": "guest_ended", "log_level": "debug", **guest, **ended},
        {
            "event": "activity",
            "log_level": "info",
            **{f"{whose}_{name}": 1 for whose in ("job", "guest") for name in names},
        },
    ]


def test_every_event_and_record_has_a_name() -> None:
    """In the form of the log; nothing of what is new is left out."""
    assert event_name(records.JobDelegated) == "job_delegated"
    assert event_name(events.LrmsRefused) == "lrms_refused"
    kinds = [kind for kind in vars(records).values() if isinstance(kind, type)]
    assert set(kinds) <= set(event_log._NAMES)
    named: list[type] = [*event_log._EVENTS, *event_log._WARNINGS]
    of_the_batch_system: dict[type, str] = {port.SeenAgain: "lrms_seen"} | {
        kind: f"lrms_{event_name(kind)}" for kind in (port.Unseen, port.Away, port.Back)
    }
    for kind in named:
        assert event_log._NAMES[kind] == of_the_batch_system.get(kind, event_name(kind))


def test_what_the_batch_system_tells_is_logged_as_of_it() -> None:
    """With the job's key there, and with the id that the news was given; a job that is waited for is no news."""
    state = SimpleNamespace(settings=SimpleNamespace(name="home"))
    subscriber = Subscriber(cast("StateTables", SimpleNamespace(jobs={})))
    with capture_logs() as logs:
        EventLog(
            structlog.get_logger(),
            subscriber,
            cast("Engine", SimpleNamespace(state=state)),
            complete=False,
        )
        told: list[events.LrmsNews] = [
            port.Unseen("a/7/1", "two of that name"),
            port.SeenAgain("a/7/1"),
            port.Away("no controller"),
            events.LrmsAppeared("a/7/2"),
            events.LrmsRefused("a/7/1", "too wide"),
            port.Accepted("a/7/1"),
        ]
        for number, news in enumerate(told, 1):
            ends = isinstance(news, events.LrmsAppeared)
            subscriber.seen(
                events.LrmsTold(number, news), [LrmsCancel(number, "a/7/2")] if ends else []
            )
        subscriber.seen(events.LrmsTold(7, events.LrmsAppeared("a/7/3")), [])
    refused = {"reason": "too wide", "undelivered": False, "passing": False}
    levels = ["warning", "info", *["warning"] * 3]
    assert [entry.pop("log_level") for entry in logs] == levels
    assert [dict(entry) for entry in logs] == [
        {"event": "lrms_unseen", "cause": 1, "lrms_key": "a/7/1", "reason": "two of that name"},
        {"event": "lrms_seen", "cause": 2, "lrms_key": "a/7/1"},
        {"event": "lrms_away", "cause": 3, "reason": "no controller"},
        {"event": "lrms_appeared", "cause": 4, "lrms_key": "a/7/2"},
        {"event": "lrms_refused", "cause": 5, "lrms_key": "a/7/1", **refused},
    ]
