"""Which workflow is meant by a word."""

import pytest

from broker.cli.workflow_wording import id_of
from broker.util.errors import InputError
from broker.v1 import workflow_pb2

WORKFLOWS = [
    workflow_pb2.Workflow(workflow_id="w1", name="w0"),
    workflow_pb2.Workflow(workflow_id="w2", name="w1"),
    workflow_pb2.Workflow(workflow_id="w3", name="w3"),
    workflow_pb2.Workflow(workflow_id="w4", name="again", end_time_s=1.0),
    workflow_pb2.Workflow(workflow_id="w5", name="again"),
    workflow_pb2.Workflow(workflow_id="w6", name="id:w1", end_time_s=1.0),
    workflow_pb2.Workflow(workflow_id="w7", name="over", end_time_s=1.0),
    workflow_pb2.Workflow(workflow_id="w8", name="over", end_time_s=2.0),
]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("w2", "w2"),
        ("w0", "w1"),
        ("w3", "w3"),
        ("again", "w5"),
        ("over", "w8"),
        ("id:w2", "w2"),
        ("name:w1", "w2"),
        ("name:again", "w5"),
        ("id:w1", "w6"),  # so one is called
    ],
)
def test_a_word_is_an_id_or_a_name(word: str, meant: str) -> None:
    """Of several of a name the one that is open is meant, else the youngest."""
    assert id_of(word, WORKFLOWS) == meant


def test_a_word_that_may_mean_two_workflows_is_refused() -> None:
    """Else a cancel would end another workflow than was meant."""
    with pytest.raises(InputError) as error:
        id_of("w1", WORKFLOWS)
    assert str(error.value) == (
        "'w1' is the id of workflow 'w0' and the name of w2; say id:w1 or name:w1"
    )


@pytest.mark.parametrize("word", ["w9", "id:w0", "name:w2", "id:", ""])
def test_a_word_that_means_none_is_refused(word: str) -> None:
    """The error has the words that there are."""
    with pytest.raises(InputError, match="is no workflow"):
        id_of(word, WORKFLOWS)
