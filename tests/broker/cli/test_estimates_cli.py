"""`gorba estimates`, what a task's status says of them, and the plan's page."""

from pathlib import Path

import pytest

from broker.cli.show_command import show
from broker.cli.status_cli import estimate_lines, task_line
from broker.gantt.page import render_page
from broker.model.estimates import Estimates, MeasuredRun
from broker.model.heft import heft
from broker.model.resources import Resource
from broker.scheduler.records import RunMeasured, Supply
from broker.scheduler.state_tables import StateTables
from broker.util.errors import CallError
from broker.v1 import plan_pb2, workflow_pb2
from broker.wire.convert import read_estimates, write_estimates
from grms.v1 import request_pb2
from tests.broker.brokers import configure, serving
from tests.broker.cli.test_daemon_cli import gorba
from tests.broker.small import SMALL
from tests.schemas import printed


def known() -> plan_pb2.EstimatesResponse:
    """Returns what is learned of two programs, one of which is slow on a resource."""
    runs = [RunMeasured(0.0, "fit", None, "ab"[n % 2], 60.0, 60.0 * (1 + n % 2)) for n in range(12)]
    return write_estimates(
        StateTables([*runs, RunMeasured(0.0, "ls", 3.0, "a", 9.0, 3.0)]), used=True
    )


def test_programs_have_their_lines() -> None:
    """From how many runs, how long, how far off, and where it is otherwise."""
    told = list(estimate_lines(known()))
    assert told == [
        "learned from runs; plans go by it",
        "  fit    12 runs  1 min 30 s of work, 1.50 of the estimate (1.00 to 2.00), 1.59 on b",
        "  ls      1 run   3 s of work, 0.33 of the estimate (0.33 to 0.33)",
    ]
    assert list(estimate_lines(plan_pb2.EstimatesResponse())) == ["no program has run yet"]


def test_what_is_written_is_read() -> None:
    """All of it, also a form that a later version has."""
    made = Estimates()
    for n in range(12):
        made.learn("fit", MeasuredRun(None, "ab"[n % 2], 60.0, 60.0 * (1 + n % 2)))
    made.learn("ls", MeasuredRun(3.0, "a", 9.0, 3.0))
    assert read_estimates(known()) == made.programs()
    later = known()
    later.programs[0].form = "by the moon"
    assert read_estimates(later)[0].form == "ratio"


def test_a_task_that_has_not_run_says_what_is_thought_of_it() -> None:
    """And one that has does not."""
    task = workflow_pb2.Task(state=workflow_pb2.TASK_STATE_WAITING, estimate_s=90, estimate_runs=1)
    assert task_line(task).endswith("thought to be 1 min 30 s of work, from 1 run")
    task.exit_code = 0
    task.outcome = request_pb2.OUTCOME_COMPLETED
    assert "thought" not in task_line(task)


def test_a_task_that_never_had_a_resource_says_why_without_a_column() -> None:
    """Its state has room behind it only where something follows."""
    task = workflow_pb2.Task(state=workflow_pb2.TASK_STATE_FAILED, reason="no site runs it")
    assert task_line(task) == "failed: no site runs it"
    task.demands.add(resource="alpha")
    assert task_line(task) == "failed     alpha: no site runs it"
    assert task_line(workflow_pb2.Task(state=workflow_pb2.TASK_STATE_WAITING)) == "waiting"


def test_the_page_of_a_plan_has_them() -> None:
    """A table, and whether the plan goes by it; without any nothing."""
    plan = heft(SMALL)
    made = read_estimates(known())
    page = render_page(SMALL, plan, title="T", estimates=made, learned=True)
    assert "Run times learned" in page
    assert "Plans go by it." in page
    assert "1.59 on b" in page
    assert "Run times learned" not in render_page(SMALL, plan, title="T")


def test_a_broker_is_asked(tmp_path: Path) -> None:
    """By the command and with `--json`; before any run it knows nothing."""
    with serving(configure(tmp_path)):
        assert gorba(tmp_path, "estimates").output == "no program has run yet\n"
        told = printed("gorba-estimates", gorba(tmp_path, "estimates", "--json").output)
    assert told["used"] is False
    assert told["programs"] == []


def test_an_older_broker_has_none(tmp_path: Path) -> None:
    """The page is written without them; another error is one."""
    told = "UNIMPLEMENTED"

    class Older:
        """A broker with one task that is planned."""

        def plan(self) -> plan_pb2.Plan:
            """Returns it."""
            made = plan_pb2.Plan(number=1, now_s=5.0)
            placed = made.placements.add(workflow="f", task="a", start_time_s=5.0, end_time_s=9.0)
            placed.demands.add(resource="r", units=1)
            return made

        def workflows(self) -> list[workflow_pb2.Workflow]:
            """Returns its workflow."""
            return [workflow_pb2.Workflow(name="f", workflow_id="w1")]

        def resources(self) -> list[Supply]:
            """Returns its resource."""
            return [Supply(Resource("r"))]

        def estimates(self) -> plan_pb2.EstimatesResponse:
            """Does not know the word."""
            raise CallError(told, "it is unknown")

    page = tmp_path / "plan.html"
    show(Older(), (), everything=True, json=None, html=page)  # type: ignore[arg-type]  # as one
    assert "Run times learned" not in page.read_text(encoding="utf-8")
    told = "INTERNAL"
    with pytest.raises(CallError, match="it is unknown"):
        show(Older(), (), everything=True, json=None, html=page)  # type: ignore[arg-type]  # same
