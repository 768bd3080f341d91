"""The information policy, held to what daemons really say to each other, in a replay and while they live.

All that passes between three daemons is recorded as bytes. Every byte has to be of a field that
docs/information-policy.md allows, and every value has to be one that the two sites know of the jobs
between them alone: nothing follows the load of a machine.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from grms.daemon.ports import free_port
from grms.federation.federation import Site, replay
from grms.lrms.base import Ended, LrmsEnd
from grms.policy.files import save_rule_base
from grms.site.model.events import LrmsTold
from grms.util.outcomes import Outcome
from grms.v1 import job_pb2, partner_pb2, request_pb2
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import MachineInfo, Schedule
from scenarios.live.coordinator import Coordinator
from scenarios.live.daemons import daemons, until_linked
from scenarios.live.sites import LiveSettings
from scenarios.spec.files import parse_spec
from tests.grms.site.daemons import document, running
from tests.grms.site.peers.partner import full
from tests.recorder import Exchange, Recorder
from tests.scenarios.live.test_coordinator import RULES, scenario
from tests.test_information_policy import MAY_CROSS
from tests.waiting import TIME_OUT_S, run, until

SERVICE = partner_pb2.DESCRIPTOR.services_by_name["PartnerService"]
PREFIX = "/grms.v1.PartnerService/"


def message(exchange: Exchange, *, answer: bool) -> Any:
    """Returns the question or the answer of an exchange, decoded."""
    method = SERVICE.methods_by_name[exchange.method.removeprefix(PREFIX)]
    kind = method.output_type if answer else method.input_type
    content = exchange.response if answer else exchange.request
    return getattr(partner_pb2, kind.name).FromString(content)


def fields(found: Message) -> Iterator[str]:
    """Yields every field that a message has, at any depth, and "?" for what no field explains."""
    name = found.DESCRIPTOR.full_name.removeprefix("grms.v1.")
    if len(UnknownFieldSet(found)):
        yield f"{name}.?"
    for field, value in found.ListFields():
        yield f"{name}.{field.name}"
        if field.message_type is None:
            continue
        values: Any = value if field.is_repeated else [value]
        for each in values:
            yield from fields(each)


def violations(exchanges: Sequence[Exchange]) -> list[str]:
    """Returns what crossed and must not, by form: methods, fields, metadata, words of refusals."""
    found = []
    for exchange in exchanges:
        if not exchange.method.startswith(PREFIX):
            found.append(f"method {exchange.method}")
            continue
        parts = [message(exchange, answer=False)]
        if exchange.code is grpc.StatusCode.OK:
            parts.append(message(exchange, answer=True))
        else:
            found.append(f"{exchange.code.name}: {exchange.details}")
        crossed = {name for part in parts for name in fields(part)}
        found += sorted(crossed - set(MAY_CROSS))
        beside = (*exchange.metadata, *exchange.trailing)
        # The library's own name and version, which it always sends.
        found += [
            f"metadata {key}"
            for key, value in beside
            if key != "user-agent" or not str(value).startswith("grpc-python")
        ]
    return found


class Bookkeeper:
    """Knows what each pair of sites may know of their jobs, and compares with what they say.

    Attributes:
        found: what is not so.

    Args:
        schedule: of the replay.
        sizes: processors of each site, in site order.
    """

    def __init__(self, schedule: Schedule, sizes: dict[str, int]) -> None:
        self.found: list[str] = []
        self._schedule = schedule
        self._sizes = sizes
        self._names = list(sizes)
        self._offers: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        jobs = schedule.jobs
        self._rows = {
            (self._names[home], submitted, processors, run_time): row
            for row, (home, submitted, processors, run_time) in enumerate(
                zip(
                    schedule.submitted_to.tolist(),
                    jobs.submit_time.tolist(),
                    jobs.processors.tolist(),
                    jobs.run_time.tolist(),
                    strict=True,
                )
            )
        }

    def read(self, exchange: Exchange) -> None:
        """Compares one exchange; they come in the order in which they were answered."""
        asked, answer = message(exchange, answer=False), message(exchange, answer=True)
        if asked.site != exchange.caller:
            self.found.append(f"{exchange.caller} says it is {asked.site}")
        if isinstance(asked, partner_pb2.DescribeRequest):
            described = (asked.processors, answer.site, answer.processors)
            if described != (
                self._sizes[exchange.caller],
                exchange.callee,
                self._sizes[exchange.callee],
            ):
                self.found.append(f"{exchange.caller} and {exchange.callee} say {described}")
        elif isinstance(asked, partner_pb2.OfferRequest):
            self._offer(exchange, asked)
        elif isinstance(asked, partner_pb2.ReportRequest):
            for end in asked.completions:
                self._end(exchange, end)
        else:
            self.found.append(f"{exchange.method} in a replay without faults")

    def _offer(self, exchange: Exchange, asked: Any) -> None:
        made = self._offers[exchange.caller, exchange.callee]
        number, job = asked.offer.number, asked.job
        # Numbers count the offers of this pair alone.
        if not number == asked.settled_below == len(made) + 1:
            self.found.append(f"offer {number} of {exchange.caller}, after {len(made)}")
        key = (
            exchange.caller,
            asked.replay_time_s,
            job.processors,
            job.simulated.run_time_s,
        )
        row = self._rows.get(key, -1)
        if row < 0 or self._schedule.jobs.requested_time[row] != job.requested_time_s:
            self.found.append(f"an offer of what no user wants: {key}")
        made[number] = row

    def _end(self, exchange: Exchange, end: Any) -> None:
        # The schedule was put together from what the sites' own journals say.
        row = self._offers[exchange.callee, exchange.caller].get(end.offer.number, -1)
        schedule = self._schedule
        if row < 0 or self._names[schedule.executed_on[row]] != exchange.caller:
            self.found.append(f"{exchange.caller} reports what {exchange.callee} did not give it")
        elif (end.end_time_s, end.run_time_s) != (
            schedule.end_time[row],
            schedule.jobs.run_time[row],
        ):
            self.found.append(f"{exchange.caller} reports another end of row {row}")


async def recorded(
    folder: Path, text: str, sites: Sequence[Site]
) -> tuple[list[Exchange], Schedule]:
    """Replays through daemons with a recorder on each way between two of them."""
    exchanges: list[Exchange] = []
    begun: set[Exchange] = set()
    spec = parse_spec(text.encode(), folder=folder, shown="three.toml")
    async with AsyncExitStack() as stack:

        async def amend(documents: dict[str, dict[str, Any]]) -> None:
            addresses = {name: each["listen"]["partners"] for name, each in documents.items()}
            for name, each in documents.items():
                for partner in each["partners"]:
                    other = partner["name"]
                    recorder = Recorder(name, other, addresses[other], exchanges.append)
                    await stack.enter_async_context(recorder)
                    partner["address"] = f"127.0.0.1:{recorder.port}"

        async with daemons(spec, LiveSettings(folder, folder), amend) as processes:
            coordinator = Coordinator(
                processes,
                [site.jobs for site in sites],
                [MachineInfo(site.name, site.processors) for site in sites],
                replay_id="recorded",
            )
            await asyncio.gather(*(until_linked(process) for process in processes))
            # Before that, whom one reaches is not there yet; the recorder says so in its stead.
            begun.update(
                exchange for exchange in exchanges if exchange.code is grpc.StatusCode.UNAVAILABLE
            )
            done = await coordinator.conduct()
    return [exchange for exchange in exchanges if exchange not in begun], done.schedule


async def test_what_crosses_in_a_replay_is_what_the_policy_allows(tmp_path: Path) -> None:
    """Names, sizes, requests, yes or no, ends of one's own jobs; and their values are these."""
    rules = tmp_path / "rules.json"
    save_rule_base(RULES, rules)
    text, sites = scenario(("fcfs", "fcfs", "fcfs"), rules, 60)
    exchanges, schedule = await recorded(tmp_path, text, sites)
    assert violations(exchanges) == []
    bookkeeper = Bookkeeper(schedule, {site.name: site.processors for site in sites})
    for exchange in exchanges:
        bookkeeper.read(exchange)
    assert bookkeeper.found == []
    crossed = {
        name
        for exchange in exchanges
        for answer in (False, True)
        for name in fields(message(exchange, answer=answer))
    }
    # It was no idle replay: offers were made, answered, and the jobs' ends reported.
    assert crossed >= {
        "DescribeResponse.processors",
        "OfferRequest.job",
        "OfferResponse.answer",
        "SimulatedProgram.run_time_s",
        "Completion.end_time_s",
    }
    delegated = int((schedule.executed_on != schedule.submitted_to).sum())
    ends = sum(
        len(message(exchange, answer=False).completions)
        for exchange in exchanges
        if isinstance(message(exchange, answer=False), partner_pb2.ReportRequest)
    )
    assert ends == delegated > 10
    ways = defaultdict(set)
    for exchange in exchanges:
        ways[exchange.callee].add(exchange.method.removeprefix(PREFIX))
    assert all(way - {"Report"} == {"Describe", "Offer"} for way in ways.values()), ways
    assert len({(exchange.caller, exchange.callee) for exchange in exchanges}) == 6


def test_what_the_other_site_need_not_know_is_caught() -> None:
    """A size that is not the site's, an offer and an end that are of no job of the two."""
    nothing = replay([Site("a", 8, JobTable.empty()), Site("b", 9, JobTable.empty())])
    offer = partner_pb2.OfferRequest(site="a", settled_below=3)
    offer.offer.number = 12
    report = partner_pb2.ReportRequest(site="a")
    report.completions.add(end_time_s=5.0)
    for method, asked, texts in (
        ("Describe", partner_pb2.DescribeRequest(site="a", processors=5), ["say (5"]),
        ("Offer", offer, ["offer 12 of a, after 0", "no user wants"]),
        ("Report", report, ["did not give it"]),
        ("Resolve", partner_pb2.ResolveRequest(site="c"), ["a says it is c", "without faults"]),
    ):
        bookkeeper = Bookkeeper(nothing, {"a": 8, "b": 9})
        content = asked.SerializeToString()
        bookkeeper.read(replace(GOOD, method=PREFIX + method, request=content, response=b""))
        assert len(bookkeeper.found) == len(texts)
        for text, found in zip(texts, bookkeeper.found, strict=True):
            assert text in found


GOOD = Exchange(
    "a",
    "b",
    f"{PREFIX}Describe",
    (("user-agent", "grpc-python-asyncio/1"),),
    partner_pb2.DescribeRequest(site="a", processors=8, protocol_version=1).SerializeToString(),
    partner_pb2.DescribeResponse(site="b", processors=9, protocol_version=1).SerializeToString(),
)
LOAD = bytes([99 << 3 & 0x7F | 0x80, 99 >> 4, 7])  # field 99, a number: 7


@pytest.mark.parametrize(
    ("exchange", "text"),
    [
        (replace(GOOD, request=GOOD.request + LOAD), "DescribeRequest.?"),
        (replace(GOOD, response=GOOD.response + LOAD), "DescribeResponse.?"),
        (replace(GOOD, metadata=(*GOOD.metadata, ("x-load", "0.7"))), "metadata x-load"),
        (replace(GOOD, trailing=(("queue", "12"),)), "metadata queue"),
        (replace(GOOD, metadata=(("user-agent", "load 12"),)), "metadata user-agent"),
        (replace(GOOD, method="/grms.v1.OperatorService/Status"), "method /grms.v1.Operator"),
        (
            replace(GOOD, code=grpc.StatusCode.RESOURCE_EXHAUSTED, details="12 jobs wait"),
            "RESOURCE_EXHAUSTED: 12 jobs wait",
        ),
    ],
    ids=["question", "answer", "metadata", "trailing", "agent", "method", "refusal"],
)
def test_what_must_not_cross_is_caught(exchange: Exchange, text: str) -> None:
    """Another field, another header, another service, a talkative refusal."""
    assert violations([GOOD]) == []
    (found,) = violations([exchange])
    assert found.startswith(text)


async def test_what_crosses_while_jobs_run_is_of_these_jobs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they stand and what they have used is told to their home; of others' jobs no number follows."""
    monkeypatch.setattr("grms.site.peers.progress.INTERVAL_S", 0.05)
    monkeypatch.setattr("grms.site.peers.usage_fetch.FIRST_S", 0.05)
    monkeypatch.setattr("grms.site.peers.usage_fetch.INTERVAL_S", 0.05)
    exchanges: list[Exchange] = []

    def told(method: str, field: str) -> list[Any]:
        found = (each for each in exchanges if each.method == PREFIX + method)
        return [one for each in found for one in getattr(message(each, answer=True), field)]

    ports = {name: free_port() for name in ("home", "away", "third")}
    way = Recorder("home", "away", f"127.0.0.1:{ports['away']}", exchanges.append)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(way)
        others = {"home": ports["home"], "third": ports["third"]}
        sites = {
            name: await stack.enter_async_context(
                running(
                    document(tmp_path, name, size, partners=partners, port=ports[name]),
                    tmp_path,
                )
            )
            for name, size, partners in (
                ("away", 64, others),
                ("home", 4, {"away": way.port}),
                ("third", 4, {"away": ports["away"]}),
            )
        }
        for site in sites.values():
            await site.linked()
        for name in ("home", "third"):
            await full(sites[name])
        for number in range(7):
            await sites["third"].submit(f"t{number}", run_time_s=0.05)
        ended = await sites["home"].submit("ends", 2, run_time_s=0.3, name="secret")
        stays = await sites["home"].submit("stays", 3, 400.0, run_time_s=300.0)
        await sites["home"].ended(ended.job_id)
        books = sites["home"].core.engine.state
        await until(lambda: getattr(books.job(stays.job_id), "progress", None) is not None)
        await until(lambda: bool(told("ListUsage", "records")))
    assert violations(exchanges) == []
    used = told("ListUsage", "records")
    assert {(one.number, one.offer.number, one.processors) for one in used} == {(1, 1, 2)}
    assert {one.offer.number for one in told("Progress", "jobs")} <= {1, 2}
    assert all(b"secret" not in each.request + each.response for each in exchanges)


@pytest.mark.parametrize("requeue", ["never", "allow"])
def test_what_crosses_with_a_job_that_is_sent_home(tmp_path: Path, requeue: str) -> None:
    """One word more in the offer, and one in the report; both only where the files of both sites say so."""
    exchanges: list[Exchange] = []
    allowed = requeue == "allow"

    async def scene() -> None:
        ports = {name: free_port() for name in ("home", "away")}
        async with AsyncExitStack() as stack:
            there = Recorder("home", "away", f"127.0.0.1:{ports['away']}", exchanges.append)
            back = Recorder("away", "home", f"127.0.0.1:{ports['home']}", exchanges.append)
            for way in (there, back):
                await stack.enter_async_context(way)
            home, away = [
                await stack.enter_async_context(
                    running(
                        document(tmp_path, name, size, partners=partners, port=ports[name], **more),
                        tmp_path,
                    )
                )
                for name, size, partners, more in (
                    ("home", 4, {"away": there.port}, {"requeue": requeue}),
                    ("away", 64, {"home": back.port}, {"guests": {"preemptible": True}}),
                )
            ]
            for site in (home, away):
                await site.linked()
            await full(home)
            job = await home.submit("leaves", 2, 400.0, run_time_s=300.0)
            here, others = home.core.engine, away.core.engine.state.memory
            await until(lambda: any(guest.begun for guest in others.at_lrms.values()))
            (guest,) = others.at_lrms.values()
            assert guest.preemptible == allowed
            engine = away.core.engine
            now = engine.clock.now()
            end = LrmsEnd(Outcome.PREEMPTED, now, now - guest.start_time)
            engine.tell(LrmsTold(engine.new_id(), Ended(guest.lrms_key, end)))
            await until(lambda: not others.books["home"].guests)
            shown = await home.jobs.Get(job_pb2.GetRequest(job_id=job.job_id), timeout=TIME_OUT_S)
            found = here.state.job(job.job_id)
            assert found is not None
            if allowed:
                assert (shown.executed_on, shown.outcome) == ("home", 0)
                (sent,) = shown.sent_home
                assert (sent.site, sent.times) == ("away", 1)
                assert sent.lost_s == pytest.approx(end.run_time)
                assert found.submit_time == job.submit_time_s
            else:
                assert shown.outcome == request_pb2.OUTCOME_PREEMPTED
                assert not shown.sent_home

    run(scene)
    assert violations(exchanges) == []
    crossed = {
        name
        for exchange in exchanges
        for answer in (False, True)
        for name in fields(message(exchange, answer=answer))
    }
    assert ("OfferRequest.rerun" in crossed) == allowed
    reports = [
        message(exchange, answer=False)
        for exchange in exchanges
        if exchange.method == f"{PREFIX}Report"
    ]
    assert {end.outcome_text for one in reports for end in one.completions} == {"preempted"}
