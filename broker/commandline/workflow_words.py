"""Which workflow is meant by a word: its id, or its name.

A broker's ids are `w1`, `w2`, …, and a workflow may be called so, too.
"""

from collections.abc import Iterable

from broker.errors import InputError
from broker.v1 import workflow_pb2
from lrms_sim.spelling import unknown


def id_of(word: str, workflows: Iterable[workflow_pb2.Workflow]) -> str:
    """Returns the id of the workflow that a word means.

    Args:
        word: an id, or a name: of the open workflow of that name, or of the youngest that has ended;
            `id:` or `name:` before it says which.
        workflows: all that the broker knows, in the order in which they were received.

    Raises:
        InputError: there is none, or the word is the id of one and the name of another.
    """
    found = list(workflows)
    ids = {each.workflow_id: each.name for each in found}
    names = {each.name: each.workflow_id for each in found}
    # One name may have been used again; only one of that name is open.
    names |= {each.name: each.workflow_id for each in found if not each.HasField("end_time_s")}
    if word in ids and names.get(word, word) != word:
        raise InputError(
            f"{word!r} is the id of workflow {ids[word]!r} and the name of {names[word]}; "
            f"say id:{word} or name:{word}"
        )
    if word in ids:
        return word
    if word in names:
        return names[word]
    kind, _, rest = word.partition(":")
    if kind == "id" and rest in ids:
        return rest
    if kind == "name" and rest in names:
        return names[rest]
    raise InputError(unknown("workflow", word, [*ids, *names]))
