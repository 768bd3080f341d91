"""Memory that each thread has for itself."""

import pickle
from concurrent.futures import ThreadPoolExecutor

from grms.federation.federation import Federation
from grms.learning.transfer.fitness import Workspace
from tests.training_grids import two_sites


def test_what_was_made_once_is_used_again() -> None:
    """One table for each size and number of rules, one memory for each case."""
    workspace, federation = Workspace(), Federation(two_sites())
    table, memory = workspace.table(8, 3), workspace.replay(0, federation)
    assert workspace.table(8, 3) is table
    assert workspace.replay(0, federation) is memory
    assert len({id(workspace.table(*key)) for key in ((8, 3), (8, 4), (9, 3))}) == 3
    assert workspace.replay(1, federation) is not memory


def test_threads_share_nothing() -> None:
    """Two that evaluate at once must not write into one memory."""
    workspace, federation = Workspace(), Federation(two_sites())
    here = workspace.table(8, 3), workspace.replay(0, federation)
    with ThreadPoolExecutor(1) as threads:
        there = threads.submit(
            lambda: (workspace.table(8, 3), workspace.replay(0, federation))
        ).result()
    assert not {id(one) for one in here} & {id(one) for one in there}


def test_a_copy_for_another_process_is_empty_and_works() -> None:
    """Tables are larger than what a process should be sent."""
    workspace = Workspace()
    small = len(pickle.dumps(workspace))
    workspace.table(430, 10)
    assert len(pickle.dumps(workspace)) == small
    copy = pickle.loads(pickle.dumps(workspace))  # noqa: S301  # just written
    assert copy.table(8, 3) is copy.table(8, 3)
