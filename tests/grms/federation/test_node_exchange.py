"""Sites with nodes that exchange jobs: against the plain oracle, and small cases by hand."""

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.federation.federation import Federation
from grms.federation.sites import EXCHANGING_ON_NODES, Site
from grms.policy.constraints import START_NOW
from grms.policy.location import FixedOrder
from grms.policy.transfer import (
    AcceptWhenFit,
    Constrained,
    Gaussian,
    Rule,
    RuleBase,
    TransferPolicy,
    TransferQuestion,
    UserDefinedTransfer,
)
from grms.simulation.replay import LockStepReplay
from lrms_sim.machine.nodes import Demands, NodeKind, NodeMachine
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.lrms_sim.machine.test_nodes import workloads
from tests.oracles.node_exchange import PlainNodeSite, exchange_plainly

POLICIES: dict[str, TransferPolicy] = {"awf": AcceptWhenFit(), "start-now": Constrained(START_NOW)}


def site_of(number: int, plain: PlainNodeSite, count: int) -> Site:
    """Returns the site that a plain one describes."""
    others = [f"s{other}" for other in range(count) if other != number]
    return Site(
        name=f"s{number}",
        processors=plain.machine.processors,
        jobs=plain.jobs,
        discipline=discipline_by_name(plain.discipline),
        transfer_policies=dict.fromkeys(others, POLICIES[plain.policy]),
        location_policy=FixedOrder(tuple(others)),
        nodes=plain.machine,
        demands=Demands.of(plain.requests),
        tells=plain.tells,
    )


@st.composite
def federations(draw: st.DrawFn) -> list[PlainNodeSite]:
    """Returns two or three sites."""
    sites = []
    for machine, jobs, requests in draw(st.lists(workloads(), min_size=2, max_size=3)):
        sites.append(
            PlainNodeSite(
                machine,
                draw(st.sampled_from(EXCHANGING_ON_NODES)),
                jobs,
                requests,
                draw(st.sampled_from(["awf", "start-now"])),
                draw(st.sampled_from(["requests", "requests", "processors"])),
            )
        )
    return sites


@given(plain=federations())
def test_exchange_is_that_of_the_oracle(plain: list[PlainNodeSite]) -> None:
    """Where and when every job starts, to the last bit."""
    sites = [site_of(number, one, len(plain)) for number, one in enumerate(plain)]
    schedule = Federation(sites).replay()
    found = list(zip(schedule.executed_on.tolist(), schedule.start_time.tolist(), strict=True))
    assert found == exchange_plainly(plain)


def table(*run_times: float) -> JobTable:
    """Returns jobs of one processor that come one after the other."""
    return JobTable.from_columns(
        submit_time=np.arange(len(run_times)), processors=[1] * len(run_times), run_time=run_times
    )


def gpu_and_thin(
    policy: TransferPolicy, tells: Literal["requests", "processors"] = "requests"
) -> list[Site]:
    """Returns a site with one GPU and two GPU jobs, and one with another GPU and nothing to do."""
    gpu = Request(gpus=Gpus(1), memory=Memory(10, "node"))
    node = NodeMachine((NodeKind("n", 1, 4, 100, 1),))
    sites = [
        Site(
            "a",
            4,
            table(10, 10),
            discipline_by_name("easy"),
            nodes=node,
            demands=Demands.of([gpu] * 2),
        ),
        Site(
            "b",
            4,
            table(),
            discipline_by_name("easy"),
            nodes=node,
            demands=Demands((), np.zeros(0, np.int32)),
        ),
    ]
    return [
        replace(site, transfer_policies={"b" if site.name == "a" else "a": policy}, tells=tells)
        for site in sites
    ]


def test_a_job_goes_where_a_gpu_is_free() -> None:
    """Cores are free at home, and no GPU; told as processors alone the job has to stay and wait."""
    found = Federation(gpu_and_thin(AcceptWhenFit())).replay()
    assert found.executed_on.tolist() == [0, 1]
    assert found.start_time.tolist() == [0, 1]
    found = Federation(gpu_and_thin(AcceptWhenFit(), "processors")).replay()
    assert found.executed_on.tolist() == [0, 0]
    assert found.start_time.tolist() == [0, 10]


def test_nobody_is_asked_for_what_he_does_not_have() -> None:
    """A partner without GPUs gets no offer."""
    home, other = gpu_and_thin(AcceptWhenFit())
    replayed = Federation([home, replace(other, nodes=None, demands=None)]).exchange()
    assert replayed.offers == (0, 0)
    assert replayed.schedule.executed_on.tolist() == [0, 0]


def test_a_policy_in_python_sees_shares() -> None:
    """Of the deciding site's memory and GPUs; the largest is the dominant one."""
    seen: list[tuple[float, float, float, bool]] = []

    def look(question: TransferQuestion) -> bool:
        seen.append(
            (question.memory_share, question.gpu_share, question.dominant_share, question.fits)
        )
        return question.fits

    Federation(gpu_and_thin(UserDefinedTransfer(look))).replay()
    assert seen == [(0.1, 1.0, 1.0, True), (0.1, 1.0, 1.0, False), (0.1, 1.0, 1.0, True)]


def plain_rules(question: TransferQuestion) -> bool:
    """Returns the answer of `RULES`, by the equations."""

    def degree(value: float, gaussian: Gaussian | None) -> float:
        assert gaussian is not None
        return math.exp(-(((value - gaussian.gamma) / gaussian.sigma) ** 2))

    total = 0.0
    for rule in RULES.rules:
        values = (
            (question.processors_waiting / question.processors, rule.nwp),
            (100.0 * question.job_processors / question.processors, rule.njp),
            (100.0 * question.memory_share, rule.memory_share),
            (100.0 * question.gpu_share, rule.gpu_share),
            (100.0 * question.dominant_share, rule.dominant_share),
        )
        product = math.prod(degree(value, gaussian) for value, gaussian in values)
        total += product if rule.accept else -product
    return total > 0


WIDE = Gaussian(0.0, 500.0)
RULES = RuleBase(
    (
        Rule(
            WIDE,
            WIDE,
            accept=True,
            memory_share=Gaussian(0, 40),
            gpu_share=Gaussian(10, 60),
            dominant_share=WIDE,
        ),
        Rule(
            WIDE,
            WIDE,
            accept=False,
            memory_share=WIDE,
            gpu_share=WIDE,
            dominant_share=Gaussian(60, 50),
        ),
    )
)


@given(plain=federations())
def test_rules_look_at_shares(plain: list[PlainNodeSite]) -> None:
    """A compiled rule base decides as its equations say, within constraints."""
    schedules = []
    for policy in (RULES, UserDefinedTransfer(plain_rules)):
        sites = [site_of(number, one, len(plain)) for number, one in enumerate(plain)]
        constrained = Constrained(START_NOW, policy)
        sites = [
            replace(site, transfer_policies=dict.fromkeys(site.transfer_policies, constrained))
            for site in sites
        ]
        schedules.append(Federation(sites).replay())
    first, second = schedules
    assert np.array_equal(first.executed_on, second.executed_on)
    assert np.array_equal(first.start_time, second.start_time)


def test_rules_see_no_shares_on_machines_of_processors() -> None:
    """Memory and GPUs are 0 there, and the dominant share is that of processors."""
    compiled = RULES.compiled.constrained(START_NOW.compiled)
    for width in (1, 3, 8):
        answer = compiled.accept(
            width, processors=8, processors_free=8, processors_waiting=0, own=False, starts_now=True
        )
        njp = 100.0 * width / 8
        assert answer == (RULES.compiled.output(0.0, njp) > 0)
        assert RULES.compiled.output(0.0, njp) == RULES.compiled.output(
            0.0, njp, memory_share=0, gpu_share=0, dominant_share=njp
        )


def test_alone_is_the_machine_by_itself() -> None:
    """Without exchange, in the same rows."""
    federation = Federation(gpu_and_thin(AcceptWhenFit()))
    assert federation.replay_alone().start_time.tolist() == [0, 10]


def test_states_of_sites_know_no_nodes() -> None:
    """A replay by them says so instead of taking processors alone."""
    with pytest.raises(ValueError, match="site 'a' has nodes, of which the state of a site knows"):
        LockStepReplay(gpu_and_thin(AcceptWhenFit()))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"processors": 5}, "site 'a' has 5 processors, its nodes have 4"),
        ({"nodes": None}, "site 'a' has demands and no nodes"),
        (
            {"discipline": discipline_by_name("sjf")},
            "discipline 'sjf' knows no nodes in an exchange",
        ),
        (
            {"demands": Demands.of([Request(gpus=Gpus(2))] * 2)},
            "site 'a': job 1 asks for 1 task, 2 GPUs",
        ),
        ({"demands": Demands.of([Request()])}, "site 'a': demands of 1 jobs, and there are 2"),
    ],
)
def test_sites_that_cannot_be(changes: dict[str, Any], words: str) -> None:
    """The text names the site."""
    home, other = gpu_and_thin(AcceptWhenFit())
    with pytest.raises(ValueError, match=words):
        Federation([replace(home, **changes), other])


@pytest.mark.parametrize("discipline", ["fcfs", "list", "easy"])
def test_guests_of_rounds_start_past_jobs_with_greater_numbers(discipline: str) -> None:
    """Nodes of one core are a machine of processors, also where waiting jobs are offered again."""
    moved = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        sites = []
        for name, other in ("ab", "ba"):
            requests = rng.integers(1, 20, 60)
            jobs = JobTable.from_columns(
                submit_time=np.sort(rng.integers(0, 60, 60)),
                processors=rng.integers(1, 9, 60),
                requested_time=requests,
                run_time=np.minimum(requests, rng.integers(1, 20, 60)),
            )
            policies = {other: Constrained(START_NOW)}
            sites.append(Site(name, 8, jobs, discipline_by_name(discipline), policies, reoffer=2.0))
        nodes = NodeMachine((NodeKind("n", 8, 1),))
        found = Federation([replace(site, nodes=nodes) for site in sites]).replay()
        plain = Federation(sites).replay()
        assert found.executed_on.tolist() == plain.executed_on.tolist()
        assert found.start_time.tolist() == plain.start_time.tolist()
        moved += int((found.executed_on != found.submitted_to).sum())
    assert moved > 10
