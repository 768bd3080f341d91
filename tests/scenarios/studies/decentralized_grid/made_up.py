"""A study whose figures are made up, to look at what becomes of them."""

from dataclasses import replace

from scenarios.studies.decentralized_grid.grids import (
    EASY_EGOISTIC,
    EASY_NO_LOSER,
    EGOISTIC,
    NO_LOSER,
    GridRun,
    SiteFigures,
)
from scenarios.studies.decentralized_grid.reference import (
    FOUR_SITES,
    PAIRS,
    SETUPS,
    TABLE_1,
    THREE_SITES,
)
from scenarios.studies.decentralized_grid.study import Study, TrainingRun

SITES = {
    "kth-ctc-6": ("KTH", "CTC"),
    "kth-sdsc05-6": ("KTH", "SDSC05"),
    "ctc-sdsc05-6": ("CTC", "SDSC05"),
    THREE_SITES: ("KTH", "CTC", "SDSC05"),
    FOUR_SITES: ("KTH", "CTC", "SDSC05", "SDSC00"),
}


def site(name: str, awrt: float, alone: float = 100_000.0) -> SiteFigures:
    """Returns the figures of a site, of which only the response times matter."""
    return SiteFigures(
        name=name,
        jobs=1000,
        awrt_alone=alone,
        awrt=awrt,
        awrt_improvement=1 - awrt / alone,
        utilization_alone=0.6,
        utilization=0.61,
        squashed_area_change=-0.05,
        makespan_alone=13e6,
        makespan=13e6,
        jobs_given=10,
        jobs_taken=20,
    )


def made_up(factors: dict[int, float], *, shipped: bool = False) -> Study:
    """Returns a study in which each seed's learners reach so many times the paper's AWRT.

    Args:
        factors: by seed.
        shipped: whether nothing was trained; one seed then.
    """
    runs: list[GridRun] = []
    trainings: list[TrainingRun] = []
    for discipline in ("fcfs", "easy"):
        for name in (*PAIRS, THREE_SITES, FOUR_SITES):
            awf = tuple(site(one, 97_000.0) for one in SITES[name])
            runs.append(GridRun(name, discipline, "awf", None, awf))
    for regime in (EGOISTIC, NO_LOSER, EASY_EGOISTIC, EASY_NO_LOSER):
        for seed, factor in factors.items():
            for setup in SETUPS:
                sites = tuple(
                    site(name, figures.awrt * factor) for name, figures in setup.paper.items()
                )
                run = GridRun(setup.scenario, regime.discipline, regime.key, seed, sites)
                runs.append(replace(run, seed=None) if shipped else run)
                if not shipped:
                    trainings.append(
                        TrainingRun(
                            regime.key,
                            setup.number,
                            setup.site,
                            setup.partner,
                            seed,
                            150,
                            13_663,
                            40.0 + seed,
                            sites[0].awrt,
                            sites[1].awrt,
                        )
                    )
            for name in (*PAIRS, THREE_SITES, FOUR_SITES):
                sites = tuple(site(one, 80_000.0 * factor) for one in SITES[name])
                runs.append(
                    GridRun(name, regime.discipline, regime.key, None if shipped else seed, sites)
                )
    return Study(
        options={
            "seeds": [] if shipped else list(factors),
            "generations": 150,
            "more_seeds": [] if shipped else list(factors),
            "more_generations": 40,
        },
        windows={
            name: {
                "jobs": one.jobs,
                "awrt": one.awrt,
                "utilization": one.utilization,
                "makespan": one.makespan,
            }
            for name, one in TABLE_1.items()
        },
        trainings=tuple(trainings),
        runs=tuple(runs),
        machine="a processor, 2 processors",
        acknowledgements=("Thanks to those who <gave> logs.",),
    )
