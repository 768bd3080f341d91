import numpy as np

from lrms_sim.workload.jobs import JobTable
from scenarios.report import wording
from scenarios.run.results import ScenarioResult, evaluate
from tests.scenarios.towns import random_towns, schedule_of, two_towns


def result_of(improvements: list[float]) -> ScenarioResult:
    """Returns a result with these ΔAWRT: one job of 100 s a site, and one that moved."""
    count = len(improvements)
    jobs = JobTable.from_columns(
        submit_time=np.zeros(count), processors=np.ones(count), run_time=np.full(count, 10.0)
    )
    machines = [(f"town{k}", 10) for k in range(count)]
    home = np.arange(count)
    responses = 100.0 * (1 - np.asarray(improvements))
    return evaluate(
        name="x",
        title="x",
        description="",
        seed=0,
        disciplines=["fcfs"] * count,
        schedule=schedule_of(machines, jobs, responses - 10, home, np.roll(home, 1)),
        schedule_alone=schedule_of(machines, jobs, np.full(count, 90.0), home, home),
    )


def test_headline_names_gainers_and_losers() -> None:
    """The headline says who gains, who loses, and how much."""
    assert wording.headline(two_towns()) == (
        "Lübeck gains, Wismar loses: average weighted response time falls by 33.3% at Lübeck and "
        "rises by 148.5% at Wismar."
    )


def test_headline_ranks_gains() -> None:
    """With all on one side the largest change comes first."""
    assert wording.headline(result_of([0.1, 0.5, 0.2])) == (
        "All 3 sites gain: average weighted response time falls by 50.0% at town1, 20.0% at "
        "town2 and 10.0% at town0."
    )
    assert wording.headline(result_of([-0.1, -0.2])).startswith("Both sites lose: ")


def test_headline_gives_ranges_where_sites_are_many() -> None:
    """Beyond four sites the sentence gives the range of the changes."""
    assert wording.headline(result_of([0.1, 0.5, 0.2, 0.3, 0.4, -0.25])) == (
        "5 of 6 sites gain: average weighted response time falls by between 10.0% (town0) and "
        "50.0% (town1) and rises by 25.0% at town5."
    )


def test_headline_where_nothing_changed() -> None:
    """Neither an exchange without effect nor no exchange at all is sold as a gain."""
    unmoved = random_towns(["a", "b"], 50, away=0.0)
    assert wording.headline(unmoved).startswith("No job was exchanged")
    assert wording.exchange_sentence(unmoved) == "All 50 jobs ran at home."
    assert "no site's average" in wording.headline(result_of([0.0, 0.0001]))


def test_headline_of_one_site() -> None:
    """One site has nobody to gain from."""
    single = random_towns(["Visby"], 10)
    assert wording.headline(single).startswith("Visby works alone: its jobs take ")
    assert wording.exchange_sentence(single) == "10 jobs on 1 site."


def test_headline_without_jobs() -> None:
    """A workload may be empty."""
    empty = random_towns(["a", "b"], 0)
    assert wording.headline(empty) == "There was no job to run."
    assert wording.exchange_sentence(empty) == "0 jobs on 2 sites."


def test_exchange_is_told_in_jobs_and_in_work() -> None:
    """The sentence counts jobs and weighs processor time."""
    assert wording.exchange_sentence(two_towns()) == (
        "2 of 4 jobs (50.0%) ran at another site, with 37.5% of all processor time."
    )
