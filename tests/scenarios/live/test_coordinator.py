"""A replay through daemons is the replay in one process, job by job."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grms.daemon.ports import free_ports
from grms.federation.federation import Site, replay
from grms.policy.files import save_rule_base
from grms.policy.rebalancing import period_of
from grms.policy.transfer import AcceptWhenFit, Gaussian, Rule, RuleBase, TransferPolicy
from grms.site.model.records import RoundHeld
from grms.site.runtime.journal import reading_of
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import MachineInfo
from scenarios.live.agent_session import AgentSession
from scenarios.live.coordinator import Coordinator, LockStepRun
from scenarios.live.daemons import daemons, until_linked
from scenarios.live.sites import LiveSettings, SiteProcess, site_documents
from scenarios.run.comparison import first_difference
from scenarios.run.replay import build_sites, load_policies, looks_at_groups
from scenarios.run.workloads import Workload
from scenarios.spec.files import parse_spec
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError
from tests.grms.site.daemons import running
from tests.scenarios.live.test_live import Gone
from tests.waiting import run, until

pytestmark = pytest.mark.usefixtures("forks")

RULES = RuleBase(
    (
        Rule(Gaussian(0.5, 1.0), Gaussian(20.0, 30.0), accept=True),
        Rule(Gaussian(2.0, 1.5), Gaussian(80.0, 40.0), accept=False),
        Rule(Gaussian(4.0, 3.0), Gaussian(10.0, 20.0), accept=True),
    )
)


def workload(rng: np.random.Generator, count: int, processors: int) -> JobTable:
    """Returns jobs in a crowd: many at one moment, run times that are no whole seconds."""
    run_time = np.round(rng.exponential(40.0, count) + 0.1, 1)
    return JobTable.from_columns(
        submit_time=np.sort(rng.integers(0, 2 * count, count)).astype(float),
        processors=rng.integers(1, processors + 1, count),
        run_time=run_time,
        requested_time=run_time * rng.choice([1.0, 1.5, 3.0], count),
        user=rng.choice(12, count, p=np.array([40, 20, 10, 8, 6, 5, 4, 3, 1, 1, 1, 1]) / 100),
    )


def scenario(disciplines: tuple[str, str, str], rules: Path, count: int) -> tuple[str, list[Site]]:
    """Returns three sites as a scenario's file and for the replay in one process."""
    rng = np.random.default_rng(7)
    text = 'name = "three"\n'
    sites = []
    sizes = {"a": 8, "b": 16, "c": 5}
    for (name, processors), discipline in zip(sizes.items(), disciplines, strict=True):
        text += f"""
[[sites]]
name = "{name}"
processors = {processors}
discipline = "{discipline}"
workload = {{ model = "lublin", jobs = 0 }}
transfer = {{ default = "awf", {"a" if name == "b" else "b"} = "{rules}" }}
"""
        policies: dict[str, TransferPolicy] = {
            other: AcceptWhenFit() for other in sizes if other != name
        }
        policies["a" if name == "b" else "b"] = RULES
        sites.append(
            Site(
                name=name,
                processors=processors,
                jobs=workload(rng, count, processors),
                discipline=discipline_by_name(discipline),
                transfer_policies=policies,
            )
        )
    return text, sites


async def conduct(
    folder: Path,
    text: str,
    sites: list[Site],
) -> LockStepRun:
    """Replays through daemons."""
    spec = parse_spec(text.encode(), folder=folder, shown="three.toml")
    machines = [MachineInfo(site.name, site.processors) for site in sites]
    async with daemons(spec, LiveSettings(folder, folder)) as processes:
        coordinator = Coordinator(
            processes,
            [site.jobs for site in sites],
            machines,
            replay_id="three-1",
            by_group=looks_at_groups(spec.sites),
        )
        return await coordinator.conduct()


@pytest.mark.parametrize(
    "disciplines",
    [("fcfs", "easy-per-event", "conservative"), ("easy-group", "easy-group", "fcfs-group")],
    ids=["by arrival", "by group"],
)
async def test_live_equals_in_process(tmp_path: Path, disciplines: tuple[str, str, str]) -> None:
    """With rule bases, AWRT location, many jobs at one instant, for each kind of queue."""
    rules = tmp_path / "rules.json"
    save_rule_base(RULES, rules)
    text, sites = scenario(disciplines, rules, 70)
    expected = replay(sites)
    assert (expected.executed_on != expected.submitted_to).sum() > 10
    done = await conduct(tmp_path, text, sites)
    assert first_difference(done.schedule, expected) == ""


def rounds(folder: Path, count: int, names: str = "abc") -> tuple[ScenarioSpec, list[Site]]:
    """Returns three sites, or fewer, with `fair-exchange` and rounds of each kind, EASY at all of them."""
    rng = np.random.default_rng(11)
    text, sizes = 'name = "rounds"\n', {"a": 8, "b": 16, "c": 6}
    kinds = ('"15min"', '{ every = "15min", order = "widest" }', "{ every = 1200, questions = 3 }")
    for (name, processors), kind in zip(sizes.items(), kinds, strict=True):
        if name not in names:
            continue
        text += f"""
[[sites]]
name = "{name}"
processors = {processors}
discipline = "easy"
rails = "fair-exchange"
reoffer = {kind}
workload = {{ model = "lublin", jobs = 0 }}
"""
    spec = parse_spec(text.encode(), folder=folder, shown="rounds.toml")
    policies = load_policies(spec)
    workloads = []
    for site in spec.sites:
        run_time = np.ceil(rng.exponential(3000.0, count))
        jobs = JobTable.from_columns(
            submit_time=np.sort(np.floor(rng.uniform(0, 600.0 * count, count))),
            processors=rng.integers(1, site.processors // 2 + 1, count),
            run_time=run_time,
            requested_time=run_time * rng.integers(1, 4, count),
        )
        workloads.append(Workload(jobs, (), ""))
    return spec, build_sites(spec, policies, workloads)


class Here(SiteProcess):
    """A daemon inside this process, which costs no start of another one."""

    @property
    def pid(self) -> int:
        """It runs."""
        return os.getpid()

    async def ended(self) -> None:
        """It does not end by itself."""
        await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def inside(spec: ScenarioSpec, folder: Path) -> AsyncIterator[list[SiteProcess]]:
    """Yields the serving daemons of a scenario, inside this process."""
    documents = site_documents(spec, LiveSettings(folder, folder), free_ports(len(spec.sites)))
    async with AsyncExitStack() as stack:
        for document in documents.values():
            await stack.enter_async_context(running(document, folder))
        yield [Here(name, folder, folder) for name in documents]


async def test_rounds_through_daemons_equal_those_in_one_process(tmp_path: Path) -> None:
    """Waiting jobs leave their queues for partners, at the same moments and in the same order."""
    spec, sites = rounds(tmp_path, 60)
    expected = replay(sites)
    once = replay([replace(site, reoffer=None) for site in sites])
    assert (expected.executed_on != once.executed_on).sum() > 10
    async with inside(spec, tmp_path) as processes:
        coordinator = Coordinator(
            processes,
            [site.jobs for site in sites],
            [MachineInfo(site.name, site.processors) for site in sites],
            replay_id="rounds-1",
            periods=[period_of(site.reoffer) for site in sites],
        )
        done = await coordinator.conduct()
    assert first_difference(done.schedule, expected) == ""
    names = [site.name for site in sites]
    places = [names.index(place) for session in coordinator.places for place in session]
    order = np.argsort(expected.submitted_to, kind="stable")
    assert places == expected.executed_on[order].tolist()


class Killing(Coordinator):
    """Kills daemons within rounds: the one that holds it, and then one that it asks."""

    kills = 0
    most = 2

    async def _hold_round(self, session: AgentSession, moment: float) -> None:
        if self.kills == self.most or not session.waits:
            await super()._hold_round(session, moment)
            return
        others = [other.process for other in self._seats if other is not session]
        for process in others:
            os.kill(process.pid, signal.SIGSTOP)
        # With nobody who answers, the first question is as far as the round can come.
        round_ = asyncio.create_task(super()._hold_round(session, moment))
        try:
            await until(lambda: round_.done() or is_within_a_round(session.process))
            if not round_.done():
                os.kill((session.process, *others)[self.kills].pid, signal.SIGKILL)
                self.kills += 1
        finally:
            for process in others:
                # One that was killed may be gone before the loop is told.
                with suppress(ProcessLookupError):
                    if process.pid:
                        os.kill(process.pid, signal.SIGCONT)
        await round_


def is_within_a_round(process: SiteProcess) -> bool:
    """Returns whether a daemon's journal has a round that is not over."""
    path = process.folder / f"{process.name}.journal"
    with reading_of(path, process.name) as scan:
        last = [record for record in scan.records({RoundHeld}) if isinstance(record, RoundHeld)]
    return bool(last) and not last[-1].over


@pytest.mark.timeout(180)  # it takes four seconds, and waits for the disk
async def test_daemons_killed_within_rounds_end_as_if_nobody_had_been(tmp_path: Path) -> None:
    """The round goes on where it was: every job runs where and when it would have run."""
    spec, sites = rounds(tmp_path, 20, "ac")
    expected = replay(sites)
    once = replay([replace(site, reoffer=None) for site in sites])
    assert (expected.executed_on != once.executed_on).any()
    async with daemons(spec, LiveSettings(tmp_path, tmp_path)) as processes:
        coordinator = Killing(
            processes,
            [site.jobs for site in sites],
            [MachineInfo(site.name, site.processors) for site in sites],
            replay_id="rounds-2",
            may_restart=True,
            periods=[period_of(site.reoffer) for site in sites],
        )
        done = await coordinator.conduct()
    assert coordinator.kills == Killing.most
    assert first_difference(done.schedule, expected) == ""


async def test_a_replay_does_not_wait_for_who_waits_for_the_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that is to answer may itself wait for a partner that has ended, for ever."""

    async def nothing(*_: object) -> None:
        """Is done at once."""

    async def for_ever(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(AgentSession, "sit_down", nothing)
    for name, done in (("_until_linked", nothing), ("_replay", for_ever)):
        monkeypatch.setattr(Coordinator, name, done)
    jobs = workload(np.random.default_rng(1), 3, 4)
    machines = [MachineInfo("a", 4)]
    coordinator = Coordinator([Gone("a", tmp_path, tmp_path)], [jobs], machines, replay_id="x")
    with pytest.raises(LiveError, match=r"the daemon of a has ended; see \S*a\.log"):
        await coordinator.conduct()


class Silent(SiteProcess):
    """A daemon that runs and is never heard of."""

    @property
    def pid(self) -> int:
        """Some process's id."""
        return 1


def test_partners_are_not_awaited_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the daemon and its log, whether it runs or has ended."""
    monkeypatch.setattr("scenarios.live.daemons.LINK_TIMEOUT_S", 0.1)
    with pytest.raises(LiveError, match=r"daemon of a does not reach its partners after 0\.1 s"):
        run(lambda: until_linked(Silent("a", tmp_path, tmp_path)))
    with pytest.raises(LiveError, match=r"the daemon of b has ended; see \S*b\.log"):
        run(lambda: until_linked(SiteProcess("b", tmp_path, tmp_path)))
