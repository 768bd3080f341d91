"""Strict exchange through daemons, in step, is the replay in one process, job by job."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from grms.federation.federation import Federation, Site
from grms.v1 import replay_pb2
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import MachineInfo
from scenarios.live.agent_session import AgentSession
from scenarios.live.coordinator import ACCOUNT, Coordinator
from scenarios.live.daemons import daemons
from scenarios.live.sites import LiveSettings, SiteProcess, accounts_every, site_documents
from scenarios.run.comparison import first_difference
from scenarios.run.replay import build_sites, load_policies
from scenarios.run.workloads import Workload
from scenarios.spec.files import parse_spec
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError
from tests.scenarios.live.test_coordinator import inside

pytestmark = pytest.mark.usefixtures("forks")

PREEMPT = '"strict-exchange"'
RUN = '{ rules = "strict-exchange", guests = "run" }'


def drawn(
    folder: Path, seed: int, rules: tuple[str, ...], count: int
) -> tuple[ScenarioSpec, list[Site]]:
    """Returns sites with these rules, whose jobs are short of room."""
    rng = np.random.default_rng(seed)
    text = 'name = "strict"\n'
    for number, rule in enumerate(rules):
        text += f"""
[[sites]]
name = "s{number}"
processors = {int(rng.choice([4, 8, 16]))}
discipline = "{rng.choice(["fcfs", "easy"])}"
rails = {rule}
workload = {{ model = "lublin", jobs = 0 }}
"""
    spec = parse_spec(text.encode(), folder=folder, shown="strict.toml")
    workloads = []
    for site in spec.sites:
        run_time = np.ceil(rng.lognormal(7.5, 1.2, count))
        width = rng.integers(1, site.processors + 1, count)
        pause = run_time * width / site.processors / rng.uniform(0.7, 1.4)
        jobs = JobTable.from_columns(
            submit_time=np.floor(np.cumsum(pause)),
            processors=width,
            run_time=run_time,
            requested_time=run_time * rng.integers(1, 4, count),
        )
        workloads.append(Workload(jobs, (), ""))
    return spec, build_sites(spec, load_policies(spec), workloads)


def coordinator_of(
    kind: type[Coordinator],
    processes: Sequence[SiteProcess],
    spec: ScenarioSpec,
    sites: list[Site],
    *,
    may_restart: bool = False,
) -> Coordinator:
    """Returns who conducts a replay."""
    return kind(
        processes,
        [site.jobs for site in sites],
        [MachineInfo(site.name, site.processors) for site in sites],
        replay_id="strict-1",
        periods=[900.0] * len(sites),
        accounts=accounts_every(spec),
        may_restart=may_restart,
    )


@pytest.mark.parametrize(
    ("seed", "rules"),
    [(1, (PREEMPT, PREEMPT)), (2, (PREEMPT, RUN, PREEMPT)), (3, (PREEMPT, PREEMPT))],
)
async def test_daemons_are_the_kernel_job_by_job(
    tmp_path: Path, seed: int, rules: tuple[str, ...]
) -> None:
    spec, sites = drawn(tmp_path, seed, rules, 18)
    expected = Federation(sites).exchange()
    assert sum(expected.preempted) > 0
    async with inside(spec, tmp_path) as processes:
        done = await coordinator_of(Coordinator, processes, spec, sites).conduct()
    assert first_difference(done.schedule, expected.schedule) == ""


class Rolling(Coordinator):
    """Kills one daemon after the other between steps, in the midst of the replay."""

    kills = steps = 0

    async def _step(self, session: AgentSession, now: float, kind: replay_pb2.StepKind) -> bool:
        self.steps += 1
        if (
            kind == ACCOUNT
            and self.kills < len(self._seats)
            and self.steps > 150 * (self.kills + 1)
        ):
            os.kill(self._seats[self.kills].process.pid, signal.SIGKILL)
            self.kills += 1
        return await super()._step(session, now, kind)


@pytest.mark.timeout(180)  # it takes some seconds, and waits for the disk
async def test_a_rolling_restart_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    """The account goes on where it was, and so do guests and those that wait."""
    spec, sites = drawn(tmp_path, 3, (PREEMPT, PREEMPT), 18)
    expected = Federation(sites).exchange()
    async with daemons(spec, LiveSettings(tmp_path, tmp_path)) as processes:
        coordinator = coordinator_of(Rolling, processes, spec, sites, may_restart=True)
        done = await coordinator.conduct()
    assert isinstance(coordinator, Rolling)
    assert coordinator.kills == 2
    assert done.restarts >= 2
    assert first_difference(done.schedule, expected.schedule) == ""


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('rails = "fair-exchange"', "keeps no account of itself"),
        ('rails = "strict-exchange"\ndiscipline = "easy-per-event"', "makes passes per event"),
    ],
)
def test_what_daemons_in_step_cannot_do_is_said_before_they_begin(
    tmp_path: Path, more: str, why: str
) -> None:
    text = 'name = "two"\n'
    for name, said in (("a", 'rails = "strict-exchange"'), ("b", more)):
        text += f'[[sites]]\nname = "{name}"\nprocessors = 4\n{said}\n'
        text += 'workload = { model = "lublin", jobs = 0 }\n'
    spec = parse_spec(text.encode(), folder=tmp_path, shown="two.toml")
    with pytest.raises(LiveError, match=f"b {why}"):
        site_documents(spec, LiveSettings(tmp_path, tmp_path), [1, 2])
    scaled = LiveSettings(tmp_path, tmp_path, clock="scaled")
    assert site_documents(spec, scaled, [1, 2])["a"]["requeue"] == "allow"
