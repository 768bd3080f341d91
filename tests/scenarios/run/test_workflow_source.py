from scenarios.run.workflow_source import submissions_of, supplies_of
from tests.scenarios.ports import BROKER, ports


def test_resources_are_those_of_the_sites() -> None:
    """Named by their sites, with speed, price of a second and capacity."""
    supplies = supplies_of(ports())
    assert [each.name for each in supplies] == ["visby-fast", "visby-slow", "riga-cpu"]
    assert [(each.site, each.site_resource) for each in supplies] == [
        ("visby", "fast"),
        ("visby", "slow"),
        ("riga", "cpu"),
    ]
    assert [each.resource.capacity for each in supplies] == [4, 2, 4]
    assert [each.resource.performance for each in supplies] == [2.0, 1.0, 1.5]
    assert [each.resource.price * 3600 for each in supplies] == [3.0, 1.0, 2.0]


def test_workflows_come_in_order_with_limits_they_can_keep() -> None:
    """Times are whole seconds within bounds; due dates lie after, budgets above the least."""
    found = submissions_of(ports())
    assert found[0].time == 100
    assert [each.time for each in found] == sorted(each.time for each in found)
    assert all(each.time == int(each.time) < 6000 for each in found)
    assert sum(len(each.workflow.tasks) for each in found) == 30
    assert [each.workflow.name for each in found] == [
        f"workflow-{number}" for number in range(1, len(found) + 1)
    ]
    for each in found:
        assert each.workflow.earliest_start == each.time < each.workflow.due_date
        assert 0 < each.workflow.budget < float("inf")


def test_only_the_named_workflow_is_given_up() -> None:
    """Its number counts from 1 in order of arrival."""
    found = submissions_of(ports())
    assert [n for n, each in enumerate(found, 1) if each.cancel_time is not None] == [2]
    assert found[1].cancel_time == found[1].time + 600


def test_a_task_takes_no_more_processors_than_its_resource_has() -> None:
    """Wide tasks take less on narrow resources, and some task takes more than one."""
    capacity = {each.name: each.resource.capacity for each in supplies_of(ports())}
    units = [
        (demand.resource, demand.units)
        for each in submissions_of(ports())
        for task in each.workflow.tasks
        for alternative in task.alternatives
        for demand in alternative.demands
    ]
    assert all(1 <= number <= min(3, capacity[name]) for name, number in units)
    assert max(number for _, number in units) == 3


def test_streams_of_the_seed_are_apart() -> None:
    """Other arrivals change no workflow's tasks."""
    before = submissions_of(ports())
    after = submissions_of(ports(workflows=BROKER["workflows"] | {"last_s": 9000}))
    assert [each.workflow.tasks for each in before] == [each.workflow.tasks for each in after]
    assert [each.time for each in before] != [each.time for each in after]
