import math
from dataclasses import replace
from pathlib import Path

import pytest

from grms.federation.federation import replay
from lrms_sim.analysis import metrics
from scenarios.report.output import load_run, save_run
from scenarios.run.broker_result import BatchFigures, BrokerResult
from scenarios.run.replay import Run, build_sites, load_policies, run_scenario
from scenarios.run.workloads import load_workload
from tests.scenarios.ports import ports


@pytest.fixture(scope="module")
def run() -> Run:
    """Returns a run of the ports."""
    return run_scenario(ports())


@pytest.fixture(scope="module")
def broker(run: Run) -> BrokerResult:
    """Returns what the broker of the ports has done."""
    assert run.result.broker is not None
    return run.result.broker


def test_batch_users_are_compared_with_machines_that_have_all_processors(
    run: Run, broker: BrokerResult
) -> None:
    """Beside the broker the figures are those of the run; without it the machines are larger."""
    assert [each.awrt_with for each in broker.batch] == [site.awrt for site in run.result.sites]
    assert [each.reservable for each in broker.batch] == [6, 4]
    assert [each.processors for each in broker.batch] == [16, 24]
    bare = ports()
    sites = build_sites(bare, load_policies(bare), [load_workload(site) for site in bare.sites])
    whole = [replace(site, processors=n) for site, n in zip(sites, (22, 28), strict=True)]
    schedule = replay(whole)
    assert [each.awrt_without for each in broker.batch] == [
        metrics.awrt(schedule, submitted_to=0),
        metrics.awrt(schedule, submitted_to=1),
    ]


def test_more_processors_serve_the_same_jobs_sooner_on_the_whole(broker: BrokerResult) -> None:
    """Someone pays for the partition, and everyone's figures are there."""
    assert all(each.jobs == 40 for each in broker.batch)
    assert min(each.improvement for each in broker.batch) < -0.01


def test_the_reserved_share_is_work_over_room(broker: BrokerResult) -> None:
    """Processor-seconds of tasks over what the partition had while workflows were there."""
    begin, end = broker.span
    for site in broker.batch:
        own = {each.name for each in broker.resources if each.site == site.name}
        work = sum(
            each.processors * (each.end_time - each.start_time)
            for each in broker.tasks
            if each.resource in own
        )
        assert site.reserved_share == pytest.approx(work / (site.reservable * (end - begin)))
        assert site.reserved_share is not None
        assert 0 < site.reserved_share < 1


def test_counts_are_those_of_the_workflows(broker: BrokerResult) -> None:
    """Completed ones, and those among them that keep both limits."""
    assert broker.completed == len(broker.workflows) - 1
    kept = [
        each
        for each in broker.workflows
        if each.state == "simulated" and not each.tardiness and not each.over_budget
    ]
    assert broker.keeping == len(kept)
    assert broker.plans > 0


def test_a_saved_run_is_read_back(run: Run, tmp_path: Path) -> None:
    """The broker's figures are in result.json and come out of it as they went in."""
    save_run(tmp_path / "run", run.spec, run.result, html=False)
    assert load_run(tmp_path / "run").broker == run.result.broker


def test_the_same_seed_gives_the_same_figures(run: Run) -> None:
    """To the last bit."""
    assert run_scenario(ports()).result.broker == run.result.broker


def test_without_jobs_there_is_no_change() -> None:
    """A site without batch jobs has no response time to compare."""
    assert math.isnan(BatchFigures("a", 4, 2, 0, None, None, None).improvement)
    assert BatchFigures("a", 4, 2, 1, 10.0, 12.0, None).improvement == pytest.approx(-0.2)
