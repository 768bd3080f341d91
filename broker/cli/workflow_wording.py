"""Resolves a word to a workflow: by its id, or its name.

A broker's ids are `w1`, `w2`, …, and a workflow may have such a name, too.
"""

from collections.abc import Iterable

from broker.util.errors import InputError
from broker.v1 import workflow_pb2
from lrms_sim.util.messages import unknown


def id_of(word: str, workflows: Iterable[workflow_pb2.Workflow]) -> str:
    """Returns the id of the workflow that `word` means, `workflows` being in order of arrival.

    The word is an id, or the name of the open workflow or, if none is open, of the latest that has
    ended. A prefix `id:` or `name:` decides.

    Raises:
        InputError: there is none, or the word is one workflow's id and another's name.
    """
    found = list(workflows)
    ids = {each.workflow_id: each.name for each in found}
    names = {each.name: each.workflow_id for each in found}
    # A name may have been reused; only one workflow of that name is open.
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
