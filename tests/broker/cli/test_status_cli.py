"""How a broker is, in lines and as JSON."""

from pathlib import Path

from broker.cli.status_cli import lines, status_of, task_line
from broker.model.resources import Resource
from broker.scheduler.records import Supply
from broker.v1 import plan_pb2, workflow_pb2
from tests.broker.brokers import configure, serving
from tests.broker.cli.test_daemon_cli import FILES, gorba
from tests.schemas import printed

RUNS, DONE = workflow_pb2.WORKFLOW_STATE_RUNNING, workflow_pb2.WORKFLOW_STATE_COMPLETED


def test_everything_has_its_line() -> None:
    """Workflows by state, what is broken, how old the plan is, and when the next one comes."""
    plan = plan_pb2.Plan(number=7, now_s=1000.0, adopted_s=990.0, fitness=61234.5)
    plan.placements.add(workflow="one", task="a")
    plan.unplanned.add(workflow="one", task="b", reason="closed")
    plan.next_planning_s = 1300.0
    plan.silent_sites.extend(["kth", "riga"])
    workflows = [workflow_pb2.Workflow(state=state) for state in (DONE, RUNS, DONE)]
    supplies = [Supply(Resource("alpha")), Supply(Resource("beta"), broken=True)]
    assert list(lines(status_of(workflows, supplies, plan))) == [
        "workflows  2 completed, 1 running",
        "resources  2, broken: beta",
        "sites      no answer from kth, riga",
        "plan       7, 10 s old: 1 task placed, 1 without a place, fitness 61,234",
        "planning   begins anew in 300 s",
    ]


def test_the_end_of_a_program_is_told_once() -> None:
    """Its exit code or signal, unless the reason has it."""
    task = workflow_pb2.Task(state=workflow_pb2.TASK_STATE_FAILED, job="riga-7", exit_code=3)
    assert task_line(task) == "failed     job riga-7  exit code 3"
    task.reason = "it has ended with exit code 3"
    assert task_line(task) == "failed     job riga-7: it has ended with exit code 3"
    task.signal, task.reason = 15, "it was ended by signal 15"
    assert task_line(task) == "failed     job riga-7: it was ended by signal 15"
    task.reason = "no output 'left.csv'"
    assert task_line(task) == "failed     job riga-7  signal 15: no output 'left.csv'"


def test_a_broker_says_how_it_is(tmp_path: Path) -> None:
    """Before its first plan, and after a workflow."""
    path = tmp_path / "all.toml"
    path.write_text(FILES)
    with serving(configure(tmp_path)):
        assert gorba(tmp_path, "status").output.splitlines() == [
            "workflows  none",
            "resources  none",
            "plan       none yet",
        ]
        gorba(tmp_path, "resources", "add", str(path))
        gorba(tmp_path, "submit", str(path), "--wait")
        assert "workflows  1 simulated\nresources  2\nplan  " in gorba(tmp_path, "status").output
        told = printed("gorba-status", gorba(tmp_path, "status", "--json").output)
    assert (told["workflows"], told["resources"], told["broken"]) == ({"simulated": 1}, 2, [])
