"""Fair exchange on recorded traces: the figures of an independent program, to all digits."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from grms.federation.federation import Federation, FederationReplay, Site
from grms.policy.rebalancing import Rebalancing, RoundOrder
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import AlwaysKeep, TransferPolicy
from lrms_sim.scheduling.disciplines import discipline_by_name
from tests.recorded import PROCESSORS, recorded

pytestmark = pytest.mark.traces

# Each federation, with the AWRT of its sites alone and under each rule, in seconds, how many jobs
# ran elsewhere and how many offers were made.
FIGURES = """
-5 FCFS KTH+CTC alone 475699.8689 57897.7752
   S1 92310.6963 55497.9080 moved 5727 offers 27410
   S2 97743.8468 55599.2915 moved 5585 offers 27643
   S4 97727.4702 55601.7296 moved 5567 offers 27624
   R2 71905.0729 54745.5838 moved 7777 offers 749341
   R4 71906.6197 54751.2587 moved 7780 offers 748843
-5 EASY KTH+CTC alone 84052.9241 52323.9341
   S1 65087.3785 50160.0508 moved 5616 offers 13635
   S2 68188.7343 50140.9365 moved 5396 offers 13483
   S4 68188.7343 50140.9365 moved 5396 offers 13482
   R2 59250.2952 49668.5944 moved 6397 offers 83104
   R4 59250.3063 49675.9349 moved 6397 offers 83114
-6 FCFS KTH+CTC alone 100013.1841 59118.1572
   S1 67298.2274 56406.7955 moved 6937 offers 35353
   S2 68323.7010 56154.6281 moved 7173 offers 35442
   S4 68938.4390 56199.0283 moved 7162 offers 35518
   R2 63031.8063 54668.7125 moved 10244 offers 796934
   R4 63088.0930 54534.5010 moved 10270 offers 795528
-6 EASY KTH+CTC alone 68887.2377 53402.5232
   S1 59914.9305 51161.6364 moved 7115 offers 19583
   S2 60454.5944 51019.7987 moved 6956 offers 19689
   S4 60815.5616 51017.9772 moved 6969 offers 19721
   R2 56645.0903 50601.8795 moved 8566 offers 143220
   R4 56706.9979 50586.1027 moved 8500 offers 143539
-5 FCFS CTC+SDSC05 alone 57897.7752 56858.3509
   S1 47151.1865 51860.0483 moved 6922 offers 26586
   S2 47165.4589 51860.1162 moved 6930 offers 26616
   S4 48756.4147 51755.0970 moved 7596 offers 28985
   R2 45554.6794 50916.9963 moved 8793 offers 463011
   R4 46550.0226 50842.7059 moved 9415 offers 487256
-5 EASY CTC+SDSC05 alone 52323.9341 47775.3830
   S1 44854.1572 46244.0950 moved 5402 offers 11394
   S2 44860.2907 46244.0697 moved 5412 offers 11410
   S4 46163.6528 46162.6021 moved 5603 offers 12185
   R2 43466.9967 46021.4721 moved 6100 offers 61793
   R4 44606.9628 45926.1333 moved 6277 offers 70846
-6 FCFS CTC+SDSC05 alone 59118.1572 77472.7091
   S1 50509.9897 68951.4796 moved 9209 offers 55185
   S2 50457.2378 69102.4593 moved 9308 offers 55220
   S4 50249.6531 69869.7535 moved 8591 offers 55018
   R2 49087.3602 65836.2667 moved 13111 offers 1431669
   R4 48661.3399 66589.9584 moved 12122 offers 1476612
-6 EASY CTC+SDSC05 alone 53402.5232 58605.0397
   S1 46034.3935 56279.9139 moved 10721 offers 31702
   S2 46038.7046 56264.1285 moved 10703 offers 31611
   S4 46038.7046 56264.1285 moved 10703 offers 31611
   R2 43684.6522 53987.0445 moved 11839 offers 215123
   R4 43684.6522 53987.0445 moved 11839 offers 215123
-6 FCFS KTH+CTC+SDSC05 alone 100013.1841 59118.1572 77472.7091
   S1 67400.9216 48915.6177 67653.4804 moved 17033 offers 116403
   S2 68973.2089 48789.9912 69733.4599 moved 17417 offers 116691
   S4 68701.9840 48591.6296 69591.7961 moved 16554 offers 116673
   R2 59262.6437 47967.1613 63926.1028 moved 23679 offers 2573467
   R4 58761.5637 47482.6252 64469.1373 moved 23219 offers 2596632
-6 EASY KTH+CTC+SDSC05 alone 68887.2377 53402.5232 58605.0397
   S1 56718.1886 44731.7948 55960.0781 moved 16501 offers 58170
   S2 57412.0796 45463.9426 55548.5154 moved 16445 offers 57839
   S4 57198.2011 45413.1434 55676.9317 moved 16407 offers 57980
   R2 53138.3403 43660.5849 54129.8522 moved 18449 offers 362551
   R4 52883.5032 43412.0519 53936.4673 moved 18425 offers 363281
"""

RULES = {
    "S1": ("start-now", None),
    "S2": ("short-guests", None),
    "S4": ("fair-exchange", None),
    "R2": ("short-guests", 900.0),
    "R4": ("fair-exchange", 900.0),
}


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Yields the names of the workloads, discipline, rule and what comes of it."""
    names = discipline = ""
    for line in FIGURES.strip().splitlines():
        if head := re.fullmatch(r"(-\d) (\w+) (\S+) alone .*", line):
            names = " ".join(site + head[1] for site in head[3].split("+"))
            discipline = head[2].lower()
        else:
            rule, _, figures = line.strip().partition(" ")
            yield names, discipline, rule, figures


def awrts(exchange: FederationReplay, count: int) -> list[float]:
    """Returns the AWRT of each site's own users, seconds."""
    schedule = exchange.schedule
    work = schedule.jobs.run_time * schedule.jobs.processors
    response = schedule.end_time - schedule.jobs.submit_time
    whose = [schedule.submitted_to == site for site in range(count)]
    return [float(np.sum(work[own] * response[own]) / np.sum(work[own])) for own in whose]


def figures(exchange: FederationReplay, count: int) -> str:
    """Returns what a replay has come to, in the words of the table."""
    schedule = exchange.schedule
    awrt = [f"{one:.4f}" for one in awrts(exchange, count)]
    moved = np.count_nonzero(schedule.submitted_to != schedule.executed_on)
    return f"{' '.join(awrt)} moved {moved} offers {sum(exchange.offers)}"


@pytest.mark.parametrize(("names", "discipline", "rule", "expected"), list(cases()))
def test_figures_are_those_of_an_independent_program(
    names: str, discipline: str, rule: str, expected: str, traces_folder: Path
) -> None:
    """AWRT to four decimals, jobs that ran elsewhere, and every single offer."""
    word, reoffer = RULES[rule]
    policy = TRANSFER_POLICIES[word]
    sites = [
        Site(
            name,
            PROCESSORS[name.partition("-")[0]],
            recorded(traces_folder, name),
            discipline_by_name(discipline),
            {other: policy for other in names.split() if other != name},
            reoffer=reoffer,
        )
        for name in names.split()
    ]
    assert figures(Federation(sites).exchange(), len(sites)) == expected


@pytest.mark.parametrize(
    ("discipline", "order", "most"),
    [
        ("fcfs", "queue", 340_000),
        ("fcfs", "widest", 280_000),
        ("easy", "queue", 145_000),
        ("easy", "widest", 125_000),
    ],
)
def test_spared_questions_cost_no_gain(
    discipline: str, order: RoundOrder, most: int, traces_folder: Path
) -> None:
    """2.6 million questions become less than 300,000, and no site's gain changes by a point."""
    names = ("KTH-6", "CTC-6", "SDSC05-6")
    policy = TRANSFER_POLICIES["fair-exchange"]

    def replayed(reoffer: float | Rebalancing | None, transfer: TransferPolicy) -> FederationReplay:
        sites = [
            Site(
                name,
                PROCESSORS[name.partition("-")[0]],
                recorded(traces_folder, name),
                discipline_by_name(discipline),
                {other: transfer for other in names if other != name},
                reoffer=reoffer,
            )
            for name in names
        ]
        return Federation(sites).exchange()

    alone = awrts(replayed(None, AlwaysKeep()), 3)
    whole, spared = replayed(900.0, policy), replayed(Rebalancing(900.0, order), policy)
    assert sum(spared.offers) < most < sum(whole.offers)
    gains = [
        [1.0 - awrt / before for awrt, before in zip(awrts(replay, 3), alone, strict=True)]
        for replay in (whole, spared)
    ]
    assert gains[1] == pytest.approx(gains[0], abs=0.01)
    if order == "queue":
        assert spared.schedule.start_time.tolist() == whole.schedule.start_time.tolist()
        assert spared.schedule.executed_on.tolist() == whole.schedule.executed_on.tolist()
