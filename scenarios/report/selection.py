"""Which sites a report shows where there are too many to show them all."""

from typing import Final

import numpy as np

from scenarios.run.results import ScenarioResult

DETAIL_MAX: Final = 12
"""Most sites with a card, charts of their own and a ribbon."""

ROWS_MAX: Final = 40
FLOWS_MAX: Final = 20
SITES_CSV: Final = "sites.csv"
FLOWS_CSV: Final = "flows.csv"
"""Files of the run that hold every site and every flow."""


def important(result: ScenarioResult, most: int) -> list[int]:
    """Returns the indices of the sites to show: all in site order, or the most important ones.

    Of too many, half of the places go to the sites with the most work: processor-seconds that their
    users submitted or their machines ran for others. A quarter goes to those of the rest whose
    users gained most by the exchange, a quarter to those whose users lost most, in
    processor-seconds times seconds of response time: a large loss of a tiny site moves little. At
    most `most` are shown, a multiple of 4.

    Returns:
        Indices into `result.sites`, the most work first where not all are shown; ties go by site
        order.
    """
    count = len(result.sites)
    if count <= most:
        return list(range(count))
    own = result.flow_area.sum(axis=1)
    work = own + result.flow_area.sum(axis=0) - np.diagonal(result.flow_area)
    saved = np.nan_to_num(
        own * np.array([site.awrt_alone - site.awrt for site in result.sites], dtype=np.float64)
    )
    places = np.arange(count)
    chosen = [int(k) for k in np.lexsort((places, -work))[: most // 2]]
    for ranked in (np.lexsort((places, -saved)), np.lexsort((places, saved))):
        chosen += [int(k) for k in ranked if int(k) not in chosen][: most // 4]
    return sorted(chosen, key=lambda k: (-work[k], k))


def largest_flows(result: ScenarioResult, most: int) -> list[tuple[int, int, int]]:
    """Returns the flows of the most jobs as (jobs, giver, taker), the largest first.

    At most `most` are returned.
    """
    jobs = result.flow_jobs.copy()
    np.fill_diagonal(jobs, 0)
    givers, takers = np.nonzero(jobs)
    amounts = jobs[givers, takers]
    order = np.lexsort((takers, givers, -amounts))[:most]
    return [(int(amounts[k]), int(givers[k]), int(takers[k])) for k in order]


def left_out(result: ScenarioResult, shown: int) -> str:
    """Returns a sentence on the sites that are not shown; empty if all are."""
    count = len(result.sites)
    if shown >= count:
        return ""
    return (
        f"{shown} of {count:,} sites: those with the most work, and those whose users gained and "
        f"lost most. All are in {SITES_CSV}."
    )


def notes_together(result: ScenarioResult) -> list[tuple[str, str, int, int]]:
    """Returns what preparing the workloads did, over all sites.

    Reason, treatment, number of records and number of sites, in order of appearance.
    """
    records: dict[tuple[str, str], int] = {}
    sites: dict[tuple[str, str], int] = {}
    for notes in result.workload_notes:
        for note in notes:
            key = (note.reason, note.treatment)
            records[key] = records.get(key, 0) + note.count
            sites[key] = sites.get(key, 0) + 1
    return [(*key, records[key], sites[key]) for key in records]
