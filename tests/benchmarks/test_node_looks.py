"""A burst of offers about a large Slurm: judged soon, and as each would be by itself."""

from time import process_time

from benchmarks.node_looks import NOW, judged, look, offers
from grms.lrms.nodes import NodeTable
from lrms_sim.workload.requests import Request
from tests.oracles.plain_nodes import PlainNodes

SOON_S = 1.0
"""Five times what is promised, as machines differ."""


def test_a_burst_is_judged_as_each_offer_would_be_by_itself() -> None:
    """With thousands of jobs that run, and plans for those that wait."""
    table, asked = look(300).table(), offers(2, 40)
    assert len(table.promised) == 1000
    plain, coming = PlainNodes(table), list[Request]()
    for number, request in enumerate(asked):
        now = NOW + number / 100
        why_not = plain.why_not(request)
        starts = plain.starts_now(request, now, coming)
        assert (table.why_not(request), table.starts_now(request, now, coming)) == (why_not, starts)
        if starts and not why_not:
            coming.append(request)
    assert 0 < len(coming) < len(asked)


def test_a_burst_about_ten_thousand_nodes_does_not_hold_up_the_daemon() -> None:
    """Neither does reading what Slurm says of them, which is done beside it."""
    shown, asked = look(10_000), offers(1, 100)
    begun = process_time()
    table: NodeTable = shown.table()
    assert process_time() - begun < SOON_S
    times, accepted = judged(table, asked)
    assert sum(times) < SOON_S
    assert accepted > 50
