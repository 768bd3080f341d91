"""What `gorba` shows as JSON: news of searches, and states as words."""

from broker.cli.output_models import WatchedOutput, news
from broker.v1 import plan_pb2, workflow_pb2
from grms.daemon.messages import of_message


def test_searches_are_told() -> None:
    """How far one is, and how it ended, with a plan or without."""
    running = plan_pb2.PlanNews(
        progress=plan_pb2.Progress(
            number=3, reason="due", generation=2, evaluations=40, fitness=7.0
        )
    )
    said = WatchedOutput.model_validate(news(running)).model_dump()
    assert (said["plan"], said["generation"]) == (3, 2)
    ended = news(plan_pb2.PlanNews(end=plan_pb2.PlanEnd(number=3, problem="no resource")))
    assert WatchedOutput.model_validate(ended).model_dump() == {
        "plan": 3,
        "planned": 0,
        "unplanned": 0,
        "fitness": None,
        "problem": "no resource",
    }


def test_states_are_words() -> None:
    """As people are shown them, of a workflow and of its tasks."""
    message = workflow_pb2.Workflow(
        workflow_id="w1",
        state=workflow_pb2.WORKFLOW_STATE_RUNNING,
        tasks=[workflow_pb2.Task(name="a", state=workflow_pb2.TASK_STATE_BOOKED)],
    )
    said = of_message(message)
    assert (said["state"], said["tasks"][0]["state"]) == ("running", "booked")
    WatchedOutput.model_validate(said)
