import math

import pytest

from broker.io.import_options import ImportOptions, MappingRule
from broker.io.importing import to_workflow
from broker.io.wfformat import RecordedTask, RecordedWorkflow
from broker.model.pool import Pool
from broker.model.resources import Resource
from broker.model.workflow import Demand
from broker.util.errors import InputError

POOL = Pool(
    (
        Resource("small"),
        Resource("large", capacity=8),
        Resource("gpu-1", "gpu", capacity=2),
        Resource("licence", "licence", capacity=3),
    ),
    {"gpu-1": (Demand("licence", 2),)},
)
SPLIT = RecordedTask("split_1", "split", "split", 10.0, 1, 2400.0, ())
ALIGN = RecordedTask("align_2", "align", "bwa", 0.0, 4, None, ("split_1",))
RECORDED = RecordedWorkflow("recorded", (SPLIT, ALIGN), 20.0)


def made(*rules: tuple[str, ...], **options: object) -> list[tuple[float, list[str]]]:
    """Returns work and alternatives of the tasks."""
    mapping = tuple(MappingRule(rule[0], rule[1:]) for rule in rules)
    workflow = to_workflow(
        RECORDED,
        POOL,
        ImportOptions(rules=mapping, **options),  # type: ignore[arg-type]  # options of any type
        name="w",
    )
    return [
        (
            task.work,
            [
                " ".join(f"{demand.resource}:{demand.units}" for demand in each.demands)
                for each in task.alternatives
            ],
        )
        for task in workflow.tasks
    ]


def test_tasks_get_every_resource_that_is_large_enough() -> None:
    """A task takes a unit for each core, and smaller resources are no alternatives."""
    assert made() == [(10.0, ["small:1", "large:1"]), (0.001, ["large:4"])]
    assert made(cores="ignore")[1] == (0.001, ["small:1", "large:1"])


def test_precedence_and_names_are_those_of_the_recording() -> None:
    """Ids become names; due date and budget stay open."""
    workflow = to_workflow(RECORDED, POOL, ImportOptions(), name="w")
    assert [(task.name, task.predecessors) for task in workflow.tasks] == [
        ("split_1", ()),
        ("align_2", ("split_1",)),
    ]
    assert (workflow.name, workflow.due_date, workflow.budget) == ("w", math.inf, math.inf)


def test_rules_say_what_tasks_run_on() -> None:
    """The first rule that matches id, name or program counts; what a resource requires comes too."""
    rules = [("bw?", "gpu"), ("align*", "small"), ("split_[0-9]", "large", "gpu-1")]
    assert made(*rules, cores="ignore") == [
        (10.0, ["large:1", "gpu-1:1 licence:2"]),
        (0.001, ["gpu-1:1 licence:2"]),
    ]


def test_work_is_run_time_at_a_reference_clock() -> None:
    """A run on a machine of 2400 MHz is twice the work of one on 1200; unknown clocks count as it."""
    assert made(reference_mhz=1200.0)[0][0] == 20.0
    assert made(time_factor=3.0)[0][0] == 30.0
    assert made(reference_mhz=1200.0, time_factor=0.5, work_min=2.0) == [
        (10.0, ["small:1", "large:1"]),
        (2.0, ["large:4"]),
    ]


def test_tasks_share_their_alternatives() -> None:
    """A thousand equal tasks do not hold a thousand copies of the pool."""
    tasks = tuple(RecordedTask(f"t{n}", "t", "", 1.0, 1, None, ()) for n in range(1000))
    workflow = to_workflow(RecordedWorkflow("r", tasks, None), POOL, ImportOptions(), name="w")
    assert len({id(task.alternatives) for task in workflow.tasks}) == 1


def test_what_can_run_nowhere_is_said() -> None:
    """The text names workflow, task and what could be done about it."""
    with pytest.raises(InputError) as caught:
        made(("*", "small"))
    assert str(caught.value) == (
        "workflow 'w', task 'align_2': used 4 cores, and the largest of its resources has 1 units; "
        "--cores ignore lets every task take one unit"
    )
    with pytest.raises(InputError) as caught:
        made(("*", "smal"))
    assert str(caught.value) == (
        "mapping of '*': 'smal' is no name or kind of a resource, did you mean 'small'? there are: "
        "cpu, gpu, licence, small, large, gpu-1, licence"
    )
    with pytest.raises(InputError) as caught:
        to_workflow(RECORDED, Pool((Resource("g", "gpu"),), {}), ImportOptions(), name="w")
    assert str(caught.value) == (
        "workflow 'w', task 'split_1': there is no resource of kind 'cpu'; kinds are 'gpu'; say "
        "with --map what tasks run on"
    )


def test_numbers_out_of_bounds_are_refused() -> None:
    """Factors and clocks are positive and finite."""
    for word, value in (("reference_mhz", 0.0), ("time_factor", -1.0), ("work_min", math.inf)):
        with pytest.raises(ValueError, match="must be more than 0"):
            ImportOptions(**{word: value})  # type: ignore[arg-type]  # one of several keywords
