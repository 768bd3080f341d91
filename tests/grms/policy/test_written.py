"""Transfer and location policies written in Python, in every host."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grms.federation.federation import Federation, Site, replay
from grms.lrms.simulated.simulated import SimulatedSettings
from grms.policy.location import AwrtLocation, PartnerRecord, UserDefinedLocation, location_of
from grms.policy.registry import PolicyShelf, user_defined_location
from grms.policy.transfer import (
    AcceptWhenFit,
    Gaussian,
    Rule,
    RuleBase,
    UserDefinedTransfer,
    compiled_transfer,
    transfer_of,
)
from grms.simulation.replay import LockStepReplay
from grms.site.config.load import ConfigError, load_policies, location_policy, policies_of
from grms.site.config.schema import SiteConfig
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.workload.jobs import JobTable
from scenarios.run.replay import check_files
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import SpecError
from tests.random_workloads import random_jobs

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
RULES = [(0.3, 0.8, 20.0, 35.0, 1.0), (1.5, 1.1, 70.0, 40.0, -1.0), (0.0, 2.0, 95.0, 12.0, -1.0)]
RULE_BASE = RuleBase(
    tuple(Rule(Gaussian(a, b), Gaussian(c, d), accept=e > 0) for a, b, c, d, e in RULES)
)


@pytest.fixture(autouse=True)
def mine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Returns the example module, which is on Python's path meanwhile."""
    monkeypatch.syspath_prepend(EXAMPLES)
    yield __import__("my_policies")
    sys.modules.pop("my_policies")


def sites(transfer: Any, location: Any = None, discipline: Any = None) -> list[Site]:
    """Returns three sites that all use the same."""
    names = ("a", "b", "c")
    return [
        Site(
            name,
            size,
            random_jobs(np.random.default_rng(size), 150, size),
            discipline=discipline or Easy(),
            transfer_policies={other: transfer for other in names if other != name},
            location_policy=AwrtLocation() if location is None else location,
        )
        for name, size in zip(names, (8, 16, 24), strict=True)
    ]


def same(one: Any, other: Any) -> bool:
    """Returns whether two schedules are the same to the bit."""
    return bool(
        one.executed_on.tobytes() == other.executed_on.tobytes()
        and one.start_time.tobytes() == other.start_time.tobytes()
    )


def test_policies_in_python_make_the_kernels_schedules(mine: Any) -> None:
    """Rule base, AWRT order and EASY rewritten in Python replay as the kernels do, to the bit."""
    kernel = replay(sites(RULE_BASE))
    moved = (kernel.executed_on != kernel.submitted_to).sum()
    assert moved > 30
    own = sites(mine.MyRuleBase(RULES), mine.slowest_last, mine.MyEasy())
    assert same(replay(own), kernel)
    fits = replay(sites(lambda question: question.job_processors <= question.processors_free))
    assert same(fits, replay(sites(AcceptWhenFit())))


def test_the_state_of_a_site_asks_the_same(mine: Any) -> None:
    """Through the cores of the daemons the schedule is that of the federation kernel."""
    own = sites(mine.MyRuleBase(RULES), UserDefinedLocation(mine.slowest_last))
    assert same(LockStepReplay(own).run(), replay(sites(RULE_BASE)))


def test_a_question_holds_what_compiled_policies_are_given() -> None:
    """Width of the job, the site's three numbers, and whose job it is; nothing of a partner."""
    asked: list[Any] = []

    def answer(question: Any) -> bool:
        asked.append(question)
        return True

    jobs = JobTable.from_columns(submit_time=[0], processors=[2], run_time=[5])
    policies: Any = {"b": answer}
    replay([Site("a", 4, jobs, transfer_policies=policies), Site("b", 4, JobTable.empty())])
    (question,) = asked
    names = {name for name in dir(question) if not name.startswith("_")}
    assert names == {
        "job_processors", "processors", "processors_free", "processors_waiting", "own",
        "requested_time", "starts_now", "fits", "job_memory", "job_gpus", "memory", "gpus",
        "memory_share", "gpu_share", "dominant_share",
    }  # fmt: skip
    assert (question.job_processors, question.processors, question.own) == (2, 4, True)
    assert (question.processors_free, question.processors_waiting) == (4, 0)
    assert (question.fits, question.job_memory, question.memory_share) == (True, 0, 0)
    assert question.dominant_share == 0.5
    assert "job_processors=2" in repr(question)


def test_what_a_policy_raises_comes_out() -> None:
    """A replay ends with the mistake of the policy; a decision by itself too."""

    def broken(_: Any) -> bool:
        raise KeyError("mistake")

    with pytest.raises(KeyError, match="mistake"):
        replay(sites(broken))
    compiled = compiled_transfer(broken)
    for _ in range(2):
        with pytest.raises(KeyError, match="mistake"):
            compiled.accept(1, processors=2, processors_free=1, processors_waiting=0, own=True)

    def stranger(_: Any) -> list[str]:
        return ["d"]

    with pytest.raises(
        ValueError, match=r"^location policy 'stranger' asks 'd', which is no partner$"
    ):
        replay(sites(AcceptWhenFit(), stranger))
    with pytest.raises(
        ValueError, match=r"^location policy '<lambda>' asks 'a', which is named twice$"
    ):
        replay(sites(lambda _: False, lambda partners: 2 * [partners[0].name]))
    with pytest.raises(
        ValueError, match=r"^location policy '<lambda>' asks 'a', which is named twice$"
    ):
        replay(sites(lambda _: False, lambda partners: cycle([partners[0].name])))
    with pytest.raises(
        TypeError, match=r"^location policy '<lambda>' returns 'a'; it must be a list of names$"
    ):
        replay(sites(lambda _: False, lambda partners: partners[0].name))
    with pytest.raises(
        TypeError,
        match=r"^3 is no location policy; possible are AwrtLocation and FixedOrder, a function, and an object with a method ask\(partners\)$",
    ):
        location_of(3)
    with pytest.raises(
        ValueError, match=r"^the discipline of site 0 has left 108 jobs waiting on an idle machine$"
    ):
        Federation(sites(AcceptWhenFit(), None, lambda _: None)).replay()


class Both:
    """A policy written in Python that has what a compiled one has."""

    compiled = AcceptWhenFit().compiled

    def accept(self, question: Any) -> bool:
        """Declines."""
        del question
        return False


def test_a_policy_is_wrapped_where_it_has_to_be() -> None:
    """What decides is what is asked afterwards: `accept` where there is one."""
    assert transfer_of(RULE_BASE) is RULE_BASE
    named = UserDefinedTransfer(lambda _: True)
    assert transfer_of(named) is named
    wrapped = transfer_of(Both())
    assert (wrapped.name, wrapped.compiled is Both.compiled) == ("Both", False)
    asked: dict[str, Any] = {
        "processors": 2,
        "processors_free": 2,
        "processors_waiting": 0,
        "own": True,
    }
    assert not wrapped.compiled.accept(1, **asked)
    assert transfer_of(lambda _: True).compiled.accept(1, **asked)
    with pytest.raises(TypeError, match="3 is no transfer policy"):
        transfer_of(3)


def yields(_: Any) -> Any:
    """Answers nothing before somebody asks for it."""
    yield False


@pytest.mark.parametrize("wrong", [None, "no", 2, -1, 0.0, np.array([True, False]), [], yields(0)])
def test_a_transfer_policy_answers_yes_or_no(wrong: Any) -> None:
    """Anything else is a mistake and no answer: a forgotten `return` would decline everything."""
    with pytest.raises(
        TypeError,
        match=r"^transfer policy '<lambda>' has answered .*; it must be True \(the site wants to run the job itself\) or False$",
    ):
        replay(sites(lambda _: wrong))
    for right in (True, 1, np.True_):
        assert same(replay(sites(lambda _, right=right: right)), replay(sites(lambda _: True)))
    for kind in (np.bool_, int):
        declines = replay(sites(lambda question, kind=kind: kind(question.own)))
        assert (declines.executed_on == declines.submitted_to).all()
        moved = replay(sites(lambda question, kind=kind: kind(not question.own)))
        assert same(moved, replay(sites(lambda question: not question.own)))


@pytest.mark.parametrize("wrong", [None, 3, "b"])
def test_a_location_policy_returns_names(wrong: Any) -> None:
    """What is no list of them is told with its policy, and so is a name that is none."""
    with pytest.raises(TypeError, match=f"policy '<lambda>' returns {wrong!r}; it must be a list"):
        replay(sites(AcceptWhenFit(), lambda _: wrong))
    with pytest.raises(
        ValueError, match=r"^location policy '<lambda>' asks \['b'\], which is no partner$"
    ):
        replay(sites(AcceptWhenFit(), lambda _: [["b"]]))


def test_a_class_derived_from_a_location_policy_asks_by_itself() -> None:
    """Its `ask` counts, as `accept` does of a transfer policy; the class without an object does not."""

    class Never(AwrtLocation):
        def ask(self, _partners: Any) -> list[str]:
            return []

    stays = replay(sites(AcceptWhenFit(), Never()))
    assert (stays.executed_on == stays.submitted_to).all()
    with pytest.raises(TypeError, match="Never'> is no location policy"):
        location_of(Never)


def test_a_discipline_in_python_has_no_guests_out_of_order() -> None:
    """Jobs that are offered again would come to it so; the error has its name."""

    def first_only(view: Any) -> list[int]:
        return [0][: len(view.queue)]

    exchanging = [replace(site, reoffer=900.0) for site in sites(AcceptWhenFit(), None, first_only)]
    with pytest.raises(
        ValueError,
        match=r"^site 'a' takes what would wait there, and 'b' offers waiting jobs again; its discipline 'first_only' cannot have guests that come out of order$",
    ):
        Federation(exchanging)


def test_names_in_files(mine: Any) -> None:
    """Site files and scenarios name policies and disciplines as `module:name`."""
    policy = PolicyShelf().policy_by_name("my_policies:Threshold")
    assert isinstance(policy, UserDefinedTransfer)
    assert policy.name == "my-threshold"
    assert isinstance(policy.written, mine.Threshold)
    assert user_defined_location("my_policies:slowest_last") == UserDefinedLocation(
        mine.slowest_last
    )


def site_config(transfer: str, location: str, discipline: str) -> SiteConfig:
    """Returns the configuration of a site with one partner."""
    return SiteConfig.model_validate(
        {
            "name": "a",
            "processors": 4,
            "location": location,
            "lrms": {"discipline": discipline},
            "journal": {"path": "a.journal"},
            "listen": {"users": "a.sock"},
            "partners": [
                {"name": "b", "processors": 8, "address": "127.0.0.1:5000", "transfer": transfer}
            ],
        }
    )


def test_a_daemon_reads_them(mine: Any) -> None:
    """A site's file may name policies written in Python; what cannot be loaded is said."""
    config = site_config("my_policies:Threshold", "my_policies:slowest_last", "my_policies:Sjf")
    assert load_policies(config, "a.toml")["b"].name == "my-threshold"
    order = location_policy(config, "x")
    assert isinstance(order, UserDefinedLocation)
    partners = [PartnerRecord("b", 1.0, 9.0), PartnerRecord("c", 1.0, 2.0)]
    assert order.asking_order(partners) == mine.slowest_last(partners) == ["c", "b"]
    assert isinstance(config.lrms, SimulatedSettings)
    assert config.lrms.discipline == "my_policies:Sjf"
    wrong = site_config("my_policies:Treshold", "my_policies:fastest", "fcfs")
    with pytest.raises(ConfigError, match=r"partners.b.transfer: transfer policy 'my_policies:Tr"):
        load_policies(wrong, "a.toml")
    with pytest.raises(
        ConfigError, match=r"a\.toml: location: location policy 'my_policies:fastest'"
    ):
        location_policy(wrong, "a.toml")
    with pytest.raises(ConfigError) as both:
        policies_of(wrong, "a.toml")
    assert len(str(both.value).splitlines()) == 2, "all that is wrong is said at once"


def test_a_scenario_reads_them() -> None:
    """`scenario validate` loads them and says at which key one cannot be."""

    def document(discipline: str, transfer: str, location: str) -> dict[str, Any]:
        workload = {"model": "lublin", "jobs": 20}
        common = {"processors": 8, "workload": workload}
        return {
            "name": "own",
            "title": "Own policies",
            "sites": [
                {"name": "A", "discipline": discipline, "location": location, **common}
                | {"transfer": {"default": transfer}},
                {"name": "B", **common},
            ],
        }

    good = document("my_policies:Sjf", "my_policies:Threshold", "my_policies:slowest_last")
    check_files(ScenarioSpec.model_validate(good))
    wrong = document("my_policies:S", "my_policies:T", "my_policies:L")
    with pytest.raises(SpecError) as caught:
        check_files(ScenarioSpec.model_validate(wrong))
    assert [problem.key for problem in caught.value.mistakes] == [
        "sites.A.discipline",
        "sites.A.location",
        "sites.A.transfer.default",
    ]
