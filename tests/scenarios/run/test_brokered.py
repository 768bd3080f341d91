import pytest

from broker.scheduler.lifecycle import WorkflowState
from scenarios.run.brokered import BrokeredRun, run_broker, settings_of
from scenarios.util.errors import ScenarioError
from tests.scenarios.ports import ports


@pytest.fixture(scope="module")
def run() -> BrokeredRun:
    """Returns what the broker of the ports has done."""
    return run_broker(ports())


def test_every_workflow_ends_within_precedence(run: BrokeredRun) -> None:
    """All but the one that was given up are completed; no task starts before its predecessors."""
    states = [each.state for each in run.workflows]
    assert states.pop(1) is WorkflowState.CANCELLED
    assert set(states) == {WorkflowState.SIMULATED}
    for each in run.workflows:
        assert each.submit_time >= 100
        for task in each.workflow.tasks:
            place = run.plan.placement(each.workflow.name, task.name)
            if each.state is WorkflowState.CANCELLED:
                continue
            assert place is not None
            assert place.start >= each.submit_time
            for name in task.predecessors:
                before = run.plan.placement(each.workflow.name, name)
                assert before is not None
                assert before.end <= place.start


def test_no_resource_holds_more_than_it_has(run: BrokeredRun) -> None:
    """At no start of a task are more processors of a resource in use than there are."""
    for supply in run.supplies:
        here = [each for each in run.plan if supply.name in each.resources]
        for one in here:
            used = sum(p.demands[0].units for p in here if p.start <= one.start < p.end)
            assert used <= supply.resource.capacity


def test_runs_take_their_work_over_the_speed(run: BrokeredRun) -> None:
    """A task has run for its time on that resource, and costs what the resource does.

    What was given up has run for less.
    """
    resource = {supply.name: supply.resource for supply in run.supplies}
    tasks = {(w.workflow.name, t.name): t for w in run.workflows for t in w.workflow.tasks}
    given_up = run.workflows[1].workflow.name
    for place in run.plan:
        on = resource[place.demands[0].resource]
        length = place.end - place.start
        full = on.duration(tasks[place.key].work)
        assert length == pytest.approx(full) or (place.workflow == given_up and length < full)
        assert place.cost == pytest.approx(on.price * length * place.demands[0].units)


def test_nothing_runs_on_a_broken_resource(run: BrokeredRun) -> None:
    """What it ended is run elsewhere or later: some task was launched twice."""
    ((name, begin, end),) = run.broken
    assert (name, begin, end) == ("visby-fast", 2000, 4000)
    here = [each for each in run.plan if name in each.resources]
    assert not [each for each in here if each.start < end and each.end > begin]
    assert sum(each.runs for each in run.workflows) > len(run.plan)


def test_figures_of_workflows_are_those_of_their_tasks(run: BrokeredRun) -> None:
    """Begin, end and cost are the first start, the last end and the sum."""
    for each in run.workflows:
        places = [p for p in run.plan if p.workflow == each.workflow.name]
        assert each.cost == pytest.approx(sum(p.cost for p in places))
        if each.state is WorkflowState.SIMULATED:
            assert each.start_time == min(p.start for p in places)
            assert each.end_time == max(p.end for p in places)
            assert each.tardiness == max(0.0, each.end_time - each.workflow.due_date)
        assert each.over_budget == max(0.0, each.cost - each.workflow.budget)


def test_the_same_seed_gives_the_same_run(run: BrokeredRun) -> None:
    """Equal scenarios give equal runs, to the last bit; another seed gives another one."""
    assert run_broker(ports()) == run
    assert run_broker(ports(seed=2)) != run


def test_progress_is_told() -> None:
    """It begins with nothing and ends with all workflows."""
    told: list[tuple[int, int]] = []
    done = run_broker(ports(), lambda ended, total: told.append((ended, total)))
    assert told[0] == (0, len(done.workflows))
    assert told[-1] == (len(done.workflows), len(done.workflows))


def test_settings_are_the_scenario_s() -> None:
    """The cycle of the file is that of the broker."""
    settings = settings_of(ports(cycle={"every_s": 60, "slot_s": 90, "pause_s": 1, "margin_s": 3}))
    assert (settings.cycle, settings.slot, settings.pause, settings.margin) == (60, 90, 1, 3)


def test_a_broker_without_a_way_on_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that does not end is stopped, with a reason."""
    monkeypatch.setattr("scenarios.run.brokered.STEPS_MAX", 5)
    with pytest.raises(ScenarioError, match="no end after 5 steps"):
        run_broker(ports())
