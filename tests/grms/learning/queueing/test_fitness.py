import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from grms.learning.evolution.class_search import ClassSearch
from grms.learning.evolution.genes import uniform_genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.termination import GenerationLimit
from grms.learning.queueing.encoding import CriterionEncoding, TableEncoding
from grms.learning.queueing.fitness import LIMIT_FACTOR, TuningFitness, tuning_case
from grms.learning.training import train
from lrms_sim.analysis.objectives import objectives_of
from lrms_sim.analysis.trial import Trial
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.util.executors import ThreadExecutor
from lrms_sim.workload.groups import user_groups
from lrms_sim.workload.jobs import JobTable
from tests.tuning_cases import busy_case, busy_jobs

F2 = CriterionEncoding(("f2",) * 3)


def test_the_value_is_the_objective_of_the_schedule() -> None:
    """10·AWRT₁ + 4·AWRT₂ of what the machine does with the decoded strategy."""
    case, jobs = busy_case(), busy_jobs()
    fitness = TuningFitness([case], F2)
    for seed in range(5):
        genome = uniform_genome(generator(seed), F2.space)
        assert case.calendar is not None
        policy = F2.decode(genome).at(case.calendar)
        groups = user_groups(jobs)
        found = objectives_of(simulate(jobs, 16, policy, groups=groups), groups)
        evaluation = fitness(genome)
        assert evaluation.value == pytest.approx(found.value(), rel=1e-12)
        assert evaluation.figures[0] == pytest.approx(found.seven)
        assert fitness.gain(evaluation.value) == pytest.approx(
            100 * (1 - evaluation.value / case.easy_value)
        )
    easy = objectives_of(simulate(jobs, 16, Easy()), user_groups(jobs))
    assert case.easy_value == fitness.easy_value == pytest.approx(easy.value(), rel=1e-12)


def test_several_workloads_count_by_sum_or_relative_to_easy() -> None:
    """The sum of seconds, or the mean of what each is of EASY's."""
    cases = [busy_case(seed) for seed in (1, 2, 3)]
    genome = uniform_genome(generator(4), F2.space)
    each = [TuningFitness([case], F2)(genome).value for case in cases]
    both = TuningFitness(cases, F2)(genome)
    assert both.value == pytest.approx(sum(each))
    assert len(both.figures[0]) == 21
    relative = TuningFitness(cases, F2, "relative")
    expected = np.mean([one / case.easy_value for one, case in zip(each, cases, strict=True)])
    assert relative(genome).value == pytest.approx(expected)
    assert relative.easy_value == pytest.approx(1.0)


def test_a_bound_changes_nothing_but_what_is_above_it() -> None:
    """At the bound or below: the very same evaluation; above: a value above the bound."""
    fitness = TuningFitness([busy_case(1), busy_case(2)], F2)
    genomes = [uniform_genome(generator(seed), F2.space) for seed in range(20)]
    whole = [fitness(genome) for genome in genomes]
    bound = sorted(one.value for one in whole)[10]
    for genome, expected in zip(genomes, whole, strict=True):
        found = fitness(genome, bound)
        if expected.value <= bound:
            assert found == expected
        else:
            assert found.figures == ()
            assert found.value == math.nextafter(bound, math.inf)
            assert fitness(genome, expected.value) == expected


def test_what_is_far_worse_than_easy_is_given_up() -> None:
    """With a value, too: strategies are told finite numbers."""
    narrow = 4000
    jobs = JobTable.from_columns(
        submit_time=[0, *range(1, narrow + 1), narrow + 1],
        processors=[16, *[1] * narrow, 16],
        run_time=[100, *[400] * narrow, 100],
        user=[1, *range(2, narrow + 2), 1],
    )
    groups = np.array([2, *[5] * narrow, 2])
    # The wide job of group 2 that came last waits for thousands of others.
    case = tuning_case("flood", Trial(jobs, 16, groups=groups, theta=(0, 1, 0, 0, 0)))
    good, bad = (
        Strategy("fcfs", GroupOrder(order)) for order in ((2, 1, 3, 4, 5), (5, 1, 3, 4, 2))
    )
    fitness = TuningFitness([replace(case, easy=case.run(good).objectives or case.easy)], F2)
    assert fitness.judge(good).value == fitness.easy_value == fitness.limit / LIMIT_FACTOR
    assert case.run(bad).value > fitness.limit
    assert fitness.judge(bad).value == math.nextafter(fitness.limit, math.inf)


def test_threads_and_copies_find_the_same() -> None:
    """Side by side, and after a journey to another process."""
    fitness = TuningFitness([busy_case(5)], F2)
    genomes = [uniform_genome(generator(seed), F2.space) for seed in range(40)]
    expected = [fitness(genome) for genome in genomes]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fitness, genomes)) == expected
    again = pickle.loads(pickle.dumps(fitness))  # noqa: S301  # written in this line
    assert [again(genome) for genome in genomes[:5]] == expected[:5]


def test_tables_tell_which_classes_were_met() -> None:
    """The class search needs it; the search ends below every constant among its choices."""
    encoding = TableEncoding()
    fitness = TuningFitness([busy_case(6)], encoding)
    constants = {one.name: fitness.judge(one).value for one in encoding.strategies}
    for standard in ("fcfs-arrival", "fcfs-group"):
        search = ClassSearch(encoding.space.choices, encoding.standard(standard).integer)
        with ThreadExecutor(2) as executor:
            result = train(search, fitness, executor, GenerationLimit(500))
        assert result.reason == "all 192 classes are done"
        assert result.best.evaluation.value <= constants[standard]
        visits = result.best.evaluation.figures[1]
        assert len(visits) == 192
        assert sum(visits) == sum(result.best.evaluation.figures[2])
        assert (np.array(visits) > 0).sum() * 12 + 1 >= result.evaluations - 12 * 192


def test_what_cannot_be_judged_is_refused() -> None:
    """No workload, an unknown combination, nothing that counts, no calendar where one is needed."""
    case = busy_case()
    with pytest.raises(ValueError, match="at least one workload"):
        TuningFitness([], F2)
    with pytest.raises(ValueError, match="no combination 'max'; there are: sum, relative"):
        TuningFitness([case], F2, "max")  # type: ignore[arg-type]  # what is refused
    jobs = JobTable.from_columns(submit_time=[0], processors=[1], run_time=[1], user=[1])
    with pytest.raises(ValueError, match="nothing to improve"):
        tuning_case("x", Trial(jobs, 4, theta=(0, 1, 0, 0, 0)))
    timeless = tuning_case("y", Trial(busy_jobs(), 16))
    genome = uniform_genome(generator(1), F2.space)
    with pytest.raises(ValueError, match="time zone"):
        TuningFitness([timeless], F2)(genome)
    TuningFitness([timeless], CriterionEncoding(("f2",)))(
        uniform_genome(generator(1), CriterionEncoding(("f2",)).space)
    )
