import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from broker.model.instances import paper_problem
from broker.model.limits import Limits, with_limits
from broker.planner._chromosome import checked
from broker.planner.gleam import GROUPS, GUIDED, Gleam, GleamSettings
from broker.planner.memetic import Memetic, Searcher
from broker.planner.planning import Planner

SMALL = GleamSettings(population=13)
MEMETIC = GleamSettings(
    population=13, memetic=Memetic(Searcher.STRATEGY | Searcher.SHIFT, trials=3)
)


OWN = replace(GUIDED, population=13)


def planner(seed: int = 3) -> Planner:
    """Returns a planner of forty tasks, whose limits are hard to keep."""
    problem = paper_problem("sRlD", 40, np.random.default_rng(seed))
    return Planner(with_limits(problem, Limits(due_factor=2.5, budget_factor=1.2)))


def stepped(one: Planner, gleam: Gleam, steps: int) -> Gleam:
    """Returns the run some steps later."""
    worker = one.worker()
    for _ in range(steps):
        gleam.begin()
        gleam.breed(worker)
        gleam.commit()
    return gleam


def whole_state(gleam: Gleam) -> str:
    """Returns all there is to a run, as text."""
    return json.dumps(gleam.state(), sort_keys=True)


@pytest.mark.parametrize("settings", [SMALL, MEMETIC, OWN])
def test_the_best_never_gets_worse(settings: GleamSettings) -> None:
    """The best fitness of the population never falls, and rises from that of the heuristics."""
    one = planner()
    worker = one.worker()
    gleam = one.run(settings, 7, worker)
    best = [gleam.best[2]]
    assert best[0] >= one.heuristics[0].worth.fitness
    for _ in range(60):
        stepped(one, gleam, 1)
        best.append(gleam.best[2])
    assert best == sorted(best)
    assert best[-1] > best[0]
    for row in range(settings.population):
        (genes, lengths, strategy), fitness = gleam.core.individual(row)
        checked((genes, lengths, strategy))
        assert fitness == worker.evaluate(genes, strategy)


@pytest.mark.parametrize("settings", [SMALL, MEMETIC, OWN])
def test_a_saved_run_goes_on_bit_for_bit(settings: GleamSettings) -> None:
    """Saved as JSON after any step and continued, it is the run that never stopped."""
    one = planner()
    straight = stepped(one, one.run(settings, 11, one.worker()), 40)
    saved = stepped(one, one.run(settings, 11, one.worker()), 23)
    resumed = stepped(one, one.resumed(Gleam.restored(json.loads(whole_state(saved)))), 17)
    assert whole_state(resumed) == whole_state(straight)


@pytest.mark.parametrize("settings", [SMALL, MEMETIC, OWN])
def test_threads_make_no_difference(settings: GleamSettings) -> None:
    """Three threads that share the matings of each step give the same population as one."""
    one = planner()
    alone = stepped(one, one.run(settings, 5, one.worker()), 30)
    together = one.run(settings, 5, one.worker())
    workers = [one.worker() for _ in range(3)]
    with ThreadPoolExecutor(3) as executor:
        for _ in range(30):
            together.begin()
            for future in [executor.submit(together.breed, worker) for worker in workers]:
                future.result()
            together.commit()
    assert whole_state(together) == whole_state(alone)


def test_asking_and_telling_is_breeding() -> None:
    """A caller who judges the offspring elsewhere gets the same run, without local search."""
    one = planner()
    bred = stepped(one, one.run(SMALL, 2, one.worker()), 25)
    asked = one.run(SMALL, 2, one.worker())
    mine, yours = one.worker(), one.worker()
    for _ in range(25):
        matings = asked.begin()
        offspring = asked.ask(mine)
        assert len(offspring.counts) == matings
        assert sum(offspring.counts) == len(offspring.genes) == len(offspring.strategies)
        assert min(offspring.counts) >= 1
        asked.tell(yours.evaluate_many(offspring.genes, offspring.strategies))
        asked.commit()
    assert whole_state(asked) == whole_state(bred)


def test_telling_has_to_fit_what_was_asked() -> None:
    """Too few values, too many, or none before the commit: errors, and nothing is replaced."""
    one = planner()
    gleam = one.run(SMALL, 2, one.worker())
    before = whole_state(gleam)
    gleam.begin()
    offspring = gleam.ask(one.worker())
    count = len(offspring.genes)
    with pytest.raises(ValueError, match="before all its offspring"):
        gleam.commit()
    with pytest.raises(ValueError, match=f"only {count - 1} values"):
        gleam.tell(np.zeros(count - 1))
    gleam.begin()
    gleam.ask(one.worker())
    with pytest.raises(ValueError, match=f"{count + 1} values for {count} children"):
        gleam.tell(np.zeros(count + 1))
    assert whole_state(gleam) == before


def test_about_five_children_come_of_a_mating() -> None:
    """The groups' probabilities are the typical ones, and crossovers need parents that differ."""
    one = planner()
    gleam = one.run(GleamSettings(population=60), 1, one.worker())
    counts: list[int] = []
    for _ in range(10):
        gleam.begin()
        offspring = gleam.ask(one.worker())
        counts += offspring.counts
        gleam.tell(np.zeros(len(offspring.genes)))
        gleam.commit()
    assert 4 < sum(counts) / len(counts) < 6
    genes, lengths, strategy = gleam.core.individual(0)[0]
    for row in range(60):
        gleam.core.set_individual(row, (genes, lengths, strategy), 1.0)
    gleam.begin()
    alike = gleam.ask(one.worker())
    assert max(alike.counts) <= 2


def test_a_weak_child_does_not_replace_its_parent() -> None:
    """Acceptance: better than the weakest of the deme, and than the best where that is the parent."""
    one = planner()
    gleam = one.run(SMALL, 9, one.worker())
    for row in range(13):
        chromosome, _ = gleam.core.individual(row)
        gleam.core.set_individual(row, chromosome, float(row))
    parents = gleam.core.steps[0]
    gleam.begin()
    offspring = gleam.ask(one.worker())
    # Better than the weakest of every deme, worse than the best parent.
    gleam.tell(np.full(len(offspring.genes), 7.5))
    before = gleam.core.values
    gleam.commit()
    after = gleam.core.values
    assert list(np.flatnonzero(before != after)) == [
        parent
        for parent in parents
        if min(before[(parent + d) % 13] for d in range(-4, 5)) < 7.5
        and not (before[parent] == max(before[(parent + d) % 13] for d in range(-4, 5)) > 7.5)
    ]


@pytest.mark.parametrize(
    ("population", "radius"), [(3, 1), (4, 1), (5, 2), (7, 3), (10, 3), (11, 4), (400, 4)]
)
def test_demes_fit_the_population(population: int, radius: int) -> None:
    """Eight neighbours, six up to ten individuals, four up to five, and never the parent itself."""
    assert GleamSettings(population=population).radius == radius


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"population": 2}, "population is 2; from 3"),
        ({"population": 10_001}, "population is 10001"),
        ({"neighbours": 3}, "3 neighbours; an even"),
        ({"neighbours": 0}, "0 neighbours"),
        ({"population": 8, "neighbours": 8}, "8 neighbours in a population of 8"),
        ({"groups": ((1.0, 1.0, 1.0),)}, f"1 groups of operators; there are {len(GROUPS)}"),
        ({"groups": ((1.0, 1.0, 1.1),) * 8}, "segment exchange"),
        ({"strategies": 2}, "2 strategies; from 3 to 6"),
        ({"strategies": 7}, "7 strategies"),
    ],
)
def test_settings_have_bounds(settings: dict[str, Any], message: str) -> None:
    """The error has the value and its bound."""
    with pytest.raises(ValueError, match=message):
        GleamSettings(**settings)


def test_a_state_of_another_kind_is_refused() -> None:
    """Of another version, another problem, or with a seed that is none."""
    one = planner()
    state = one.run(SMALL, 1, one.worker()).state()
    with pytest.raises(ValueError, match="version 99"):
        Gleam.restored({**state, "version": 99})
    other = Planner(paper_problem("sRlD", 30, np.random.default_rng(1)))
    with pytest.raises(ValueError, match="saved run of 40 tasks, for a problem of 30"):
        other.resumed(Gleam.restored(state))
    with pytest.raises(ValueError, match="seed is -1"):
        Gleam(5, SMALL, -1)
    gleam = one.run(SMALL, 1, one.worker())
    gleam.begin()
    with pytest.raises(ValueError, match="a worker for 30 tasks"):
        gleam.breed(other.worker())


def test_a_step_that_is_given_up_leaves_no_trace() -> None:
    """What its children are is known; the run's state is that before, and goes on as if nothing was."""
    one = planner()
    worker = one.worker()
    gleam = one.run(GUIDED, 3, worker)
    before = whole_state(gleam)
    gleam.begin()
    worker.cancelled = True
    gleam.breed(worker)
    assert gleam.abandon() == (0, None)
    worker.cancelled = False
    done = worker.evaluations
    gleam.begin()
    thread = threading.Thread(target=gleam.breed, args=(worker,))
    thread.start()
    while worker.evaluations < done + 5:
        pass  # the kernel runs without the interpreter's lock
    worker.cancelled = True
    thread.join()
    schedules, best = gleam.abandon()
    assert schedules >= 4
    assert best is not None
    genes, strategy, fitness, choices = best
    assert one.worker().evaluate(genes, strategy) == fitness
    assert choices is None
    assert whole_state(gleam) == before
    worker.cancelled = False
    assert whole_state(stepped(one, gleam, 2)) == whole_state(
        stepped(one, one.run(GUIDED, 3, worker), 2)
    )
