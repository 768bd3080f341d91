"""What people ask, one question at a time."""

from dataclasses import replace

import pytest

from broker.model.plan import Placement, Plan
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.commands import (
    Append,
    Command,
    PublishWorkflow,
    Refusal,
    Refuse,
    ReplyPlan,
    ReplyResource,
    ReplyWorkflow,
    StartPlanning,
)
from broker.scheduler.events import (
    Cancel,
    Event,
    Offered,
    PlanFound,
    Register,
    Remove,
    Replan,
    Submit,
    Update,
)
from broker.scheduler.offers import ResourceOffer
from broker.scheduler.planning_input import Taken
from broker.scheduler.records import Counted, Supply
from broker.scheduler.request_handler import KEY_MAX, SHOWN_MAX
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState

SETTINGS = BrokerSettings(tasks_max=50, ended_max=1, early=False)


def state(*supplies: Supply) -> BrokerState:
    """Returns a broker with resources; alpha where none are given."""
    made = BrokerState(SETTINGS)
    for supply in supplies or (Supply(Resource("alpha", capacity=2)),):
        made.handle(Register(1, supply), 0)
    return made


def answer(made: BrokerState, event: Event) -> Command:
    """Returns the answer to a question."""
    (found,) = [each for each in made.handle(event, 1) if getattr(each, "cause", None) == event.id]
    return found


def flow(name: str, *alternatives: Alternative, tasks: int = 1) -> Workflow:
    """Returns a workflow of equal tasks."""
    some = alternatives or (Alternative.of("alpha"),)
    return Workflow(name, tuple(Task(f"t{number}", 1, some) for number in range(tasks)))


@pytest.mark.parametrize(("length", "good"), [(0, False), (1, True), (KEY_MAX, True)])
def test_a_key_has_a_length(length: int, good: bool) -> None:
    """From 1 to 128 characters."""
    for more in (0, 1) if length == KEY_MAX else (0,):
        found = answer(state(), Submit(3, "k" * (length + more), flow("x")))
        assert (found == ReplyWorkflow(3, "w1")) is (good and not more)


def test_so_many_tasks_are_taken_and_no_more() -> None:
    """Up to the limit exactly; what is there counts."""
    made = state()
    assert answer(made, Submit(3, "a", flow("a", tasks=30))) == ReplyWorkflow(3, "w1")
    found = answer(made, Submit(4, "b", flow("b", tasks=21)))
    assert isinstance(found, Refuse)
    assert found.refusal is Refusal.EXHAUSTED
    assert found.reason == "workflow 'b' has 21 tasks; 20 more can be taken until others have ended"
    assert answer(made, Submit(5, "c", flow("c", tasks=20))) == ReplyWorkflow(5, "w2")


def test_those_who_watch_hear_of_a_new_workflow() -> None:
    """Once: the same submission again changes nothing."""
    made = state()
    for expected in (1, 0):
        said = made.handle(Submit(3, "a", flow("a")), 1)
        assert said.count(PublishWorkflow("w1")) == expected
        assert ReplyWorkflow(3, "w1") in said
    assert PublishWorkflow("w1") in made.handle(Cancel(4, "a"), 2)


def test_a_task_needs_one_alternative_that_is_there_and_large_enough() -> None:
    """Broken resources count; every resource of an alternative has to be there."""
    made = state(
        Supply(Resource("alpha", capacity=2)), Supply(Resource("beta"), broken=True)
    )  # fmt: skip
    large = Alternative((Demand("alpha", 3),))
    fits, gone = Alternative((Demand("alpha", 2),)), Alternative.of("alpha", "gone")
    first, second = (large, fits), (gone, Alternative.of("alpha", "beta"))
    assert answer(made, Submit(2, "first", flow("first", *first))) == ReplyWorkflow(2, "w1")
    assert answer(made, Submit(3, "second", flow("second", *second))) == ReplyWorkflow(3, "w2")
    found = answer(made, Submit(4, "k", flow("y", large, gone)))
    assert isinstance(found, Refuse)
    assert (found.refusal, found.field) == (Refusal.INVALID, "workflow.tasks[0]")
    assert found.reason == (
        "workflow 'y': 1 tasks have no alternative on resources that are there and large enough (unknown: gone): "
        "t0; there are: alpha, beta"
    )
    none = BrokerState(SETTINGS)
    found = answer(none, Submit(4, "k", flow("y", Alternative.of("z", "gone"), tasks=2)))
    assert isinstance(found, Refuse)
    assert found.reason == (
        "workflow 'y': 2 tasks have no alternative on resources that are there and large enough (unknown: gone, z): "
        "t0, t1; there are: none"
    )
    found = answer(made, Submit(4, "k", flow("y", large)))
    assert isinstance(found, Refuse)
    assert found.reason == (
        "workflow 'y': 1 tasks have no alternative on resources that are there and large enough: t0; there are: alpha, beta"
    )


def test_an_error_names_so_many_and_no_more() -> None:
    """Whatever it lists."""
    made = state(*(Supply(Resource(f"r{number}")) for number in range(SHOWN_MAX)))
    found = answer(made, Submit(3, "k", flow("x", Alternative.of("gone"), tasks=SHOWN_MAX)))
    assert isinstance(found, Refuse)
    assert "…" not in found.reason
    made.handle(Register(1, Supply(Resource("one-more"))), 0)
    found = answer(made, Submit(3, "k", flow("x", Alternative.of("gone"), tasks=SHOWN_MAX + 1)))
    assert isinstance(found, Refuse)
    assert found.reason.count("…") == 2
    names = [f"{kind}{number}" for kind in "tr" for number in range(SHOWN_MAX)]
    shown = [f"{', '.join(names[:SHOWN_MAX])} …", f"{', '.join(names[SHOWN_MAX:])} …"]
    assert found.reason.endswith(f"(unknown: gone): {shown[0]}; there are: {shown[1]}")
    found = answer(BrokerState(SETTINGS), Remove(4, "x"))
    assert isinstance(found, Refuse)
    assert found.reason == "there is no resource 'x'; there are: none"


def test_the_youngest_of_a_name_is_found() -> None:
    """Open ones before ended ones, an id before a name."""
    made = state()
    made.handle(Submit(1, "a", flow("x")), 0)
    made.handle(Cancel(2, "x"), 1)
    made.handle(Submit(1, "b", flow("w1")), 2)
    made.handle(Cancel(2, "w2"), 3)
    for name, expected in (("x", "w1"), ("w1", "w1"), ("w2", "w2")):
        found = made.find(name)
        assert found is not None
        assert found.workflow_id == expected
    made.handle(Submit(1, "c", flow("x")), 4)
    found = made.find("x")
    assert found is not None
    assert found.workflow_id == "w3"
    assert made.find("nobody") is None


def test_fewer_that_have_ended_than_are_kept_are_all_kept() -> None:
    """However many fewer they are."""
    made = BrokerState(replace(SETTINGS, ended_max=5))
    made.handle(Register(1, Supply(Resource("alpha"))), 0)
    for number in range(3):
        made.handle(Submit(1, f"k{number}", flow(f"x{number}")), number)
        made.handle(Cancel(2, f"x{number}"), number)
    made.handle(Submit(1, "k3", flow("x3")), 9)
    assert list(made.memory.workflows) == ["w1", "w2", "w3", "w4"]


def test_workflows_that_have_ended_are_forgotten_in_order() -> None:
    """As many are kept as is said, at the next submission."""
    made = state()
    for number in range(3):
        said = made.handle(Submit(1, f"k{number}", flow(f"x{number}")), number)
        made.handle(Cancel(2, f"x{number}"), number)
        # Nothing is noted where none is forgotten.
        (append,) = [each for each in said if isinstance(each, Append)]
        assert (type(append.records[0]) is Counted) == (number > 1)
    assert list(made.memory.workflows) == ["w2", "w3"]
    said = made.handle(Submit(1, "k3", flow("x3")), 9)
    assert list(made.memory.workflows) == ["w3", "w4"]
    assert made.memory.workflows_count == 4
    # How many there were is noted: what is forgotten leaves no other trace of its number.
    (append,) = [each for each in said if isinstance(each, Append)]
    assert append.records[0] == Counted(9, 3, 0)


def test_the_same_resource_once_more_is_nothing() -> None:
    """Another one of that name is refused; replacing says what it is for."""
    made = state()
    same = Supply(Resource("alpha", capacity=2))
    assert answer(made, Register(3, same)) == ReplyResource(3, "alpha")
    assert len(made.handle(Register(3, same), 1)) == 1
    other = answer(made, Register(4, Supply(Resource("alpha"))))
    assert isinstance(other, Refuse)
    assert (other.refusal, other.field) == (Refusal.PRECONDITION, "resource.name")
    assert answer(made, Update(5, Supply(Resource("alpha")))) == ReplyResource(5, "alpha")
    assert made.memory.supplies["alpha"].resource.capacity == 1


@pytest.mark.parametrize(
    ("change", "urgent", "wanted"),
    [
        ({"broken": True}, "resource 'alpha' is broken or has moved", ""),
        ({"site": "riga"}, "resource 'alpha' is broken or has moved", ""),
        ({"site_resource": "a2"}, "resource 'alpha' is broken or has moved", ""),
        ({"resource": Resource("alpha", price=3)}, "", ""),
    ],
)
def test_a_change_that_breaks_the_plan_is_urgent(
    change: dict[str, object], urgent: str, wanted: str
) -> None:
    """A price, speed or size waits for the next planning."""
    made = state()
    before = made.memory.supplies["alpha"]
    made.handle(Update(5, replace(before, **change)), 1)  # type: ignore[arg-type]  # fields by name
    assert (made.cycle._urgent, made.cycle._wanted) == (urgent, wanted)


def test_a_resource_that_is_in_order_again_is_planned_with_soon() -> None:
    """One that stays broken is nothing new."""
    broken = Supply(Resource("alpha"), broken=True)
    made = state(broken)
    made.handle(Update(5, broken), 1)
    assert (made.cycle._urgent, made.cycle._wanted) == ("", "")
    made.handle(Update(5, replace(broken, broken=False)), 1)
    assert made.cycle._wanted == "resource 'alpha' is in order again"


def test_what_the_broker_holds_itself_is_not_kept_out_of_plans() -> None:
    """Neither what is booked, nor what it has given up and its site has not released yet."""
    made = state(Supply(Resource("mine"), "riga", "cpu"))
    made.handle(Submit(1, "k", flow("x", Alternative.of("mine"))), 1)
    place = Placement("x", "t0", (Demand("mine"),), 20, 30, 1.0)
    made.handle(PlanFound(0, made.cycle.running, Plan((place,))), 1)
    free = ((0, 20, 1), (30, 60, 1), (80, 900, 1))
    offered = Offered(0, "riga", (ResourceOffer(Resource("cpu"), free=free),), 0, 900)
    for held in (made.memory.booked, made.memory.releasing):
        assert len(held) == 1
        made.handle(offered, 2)
        assert made.cycle._others["riga"] == (Taken("mine", 60, 80),)
        made.handle(Cancel(3, "x"), 3)


def test_a_resource_that_is_taken_out_is_gone_at_once() -> None:
    """What is planned on it is planned anew as soon as possible."""
    made = state()
    assert answer(made, Remove(3, "alpha")) == ReplyResource(3, "alpha")
    assert made.memory.supplies == {}
    assert made.cycle._urgent == "resource 'alpha' was taken out"
    found = answer(made, Remove(4, "alpha"))
    assert isinstance(found, Refuse)
    assert (found.refusal, found.field) == (Refusal.NOT_FOUND, "name")


def test_who_wants_a_resource_that_is_not_there_hears_of_some_that_are() -> None:
    """Of so many, and of more only that there are."""
    for count, more in ((SHOWN_MAX, False), (SHOWN_MAX + 1, True)):
        made = state(*(Supply(Resource(f"r{number:03}")) for number in range(count)))
        found = answer(made, Remove(4, "alpha"))
        assert isinstance(found, Refuse)
        some = ", ".join(f"r{number:03}" for number in range(SHOWN_MAX))
        says = f"there is no resource 'alpha'; there are: {some}"
        assert found.reason == (f"{says} …" if more else says)


def test_what_a_site_has_new_or_changed_is_planned_with_soon() -> None:
    """What it has as before is nothing new; what it has no more is planned without at once."""
    made = state(Supply(Resource("mine"), "riga", "cpu"))
    cpu, gpu = (ResourceOffer(Resource(name), free=((0, 900, 1),)) for name in ("cpu", "gpu"))
    for offers, wanted, urgent in (
        ((cpu,), "", ""),
        ((cpu, gpu), "site 'riga' has a resource 'gpu'", ""),
        ((replace(cpu, resource=Resource("cpu", capacity=7)), gpu), "resource 'mine' has", ""),
        ((gpu,), "", "site 'riga' has no 'cpu' any more"),
    ):
        made.cycle._wanted = ""
        made.handle(Offered(0, "riga", offers, 0, 900), 2)
        assert made.cycle._wanted.startswith(wanted)
        assert (bool(made.cycle._wanted), made.cycle._urgent) == (bool(wanted), urgent)


def test_who_asks_for_a_plan_gets_the_next_one_soon() -> None:
    """The answer says which it will be."""
    made = state()
    assert answer(made, Replan(7)) == ReplyPlan(7, 1)
    assert made.cycle._urgent == "it was asked for"


@pytest.mark.parametrize("site_resource", ["", "cpu-7"])
def test_time_that_others_have_is_kept_out_of_plans(site_resource: str) -> None:
    """Of a resource whose name at its site is the same, or another; of none at another site."""
    mine = Supply(Resource("mine"), "riga", site_resource)
    made = state(mine, Supply(Resource("other"), "visby", site_resource or "mine"))
    offer = ResourceOffer(Resource(site_resource or "mine"), free=((0, 100, 1), (300, 900, 1)))
    made.handle(Offered(0, "riga", (offer,), 0, 900), 0)
    commands = made.handle(Submit(1, "k", flow("x", Alternative.of("mine"))), 1)
    (planning,) = [each for each in commands if isinstance(each, StartPlanning)]
    assert planning.planning_input.taken == (Taken("mine", 100, 300),)
    assert list(made.memory.supplies) == ["mine", "other"]
