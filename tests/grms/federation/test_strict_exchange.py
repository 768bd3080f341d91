"""Strict exchange in the kernel: the plain program of the documentation job by job, and by hand."""

import ast
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.federation.federation import Federation, FederationReplay, Site
from grms.federation.sites import BYZANTINE_PREEMPTING, Checkpoints
from grms.policy._constraints import favored
from grms.policy.constraints import STRICT_EXCHANGE, AccountRules, ExchangeConstraints
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit, Constrained, TransferPolicy
from lrms_sim.scheduling.disciplines import Conservative, Discipline, Easy, Fcfs, discipline_by_name
from lrms_sim.workload.jobs import JobTable
from tests.examples import runs
from tests.grms.federation.plain_strict import PATH, plain
from tests.grms.federation.strict_cases import POLICIES, drawn_case, outcome, sites_of

STRICT = POLICIES["G"]


@pytest.mark.parametrize("block", range(runs(3, 8)))
def test_the_kernel_is_the_plain_program_job_by_job(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        case = drawn_case(seed)
        assert outcome(case) == plain.Exchange(case).run(), case["name"]


@settings(max_examples=30, deadline=None)
@given(st.integers(1000, 10**9))
def test_so_it_is_with_times_that_are_no_whole_seconds(seed: int) -> None:
    case = drawn_case(seed, whole=False)
    found, wanted = outcome(case), plain.Exchange(case).run()
    assert found["site"] == wanted["site"]
    assert found["end"] == pytest.approx(wanted["end"])
    assert found["lost"] == pytest.approx(wanted["lost"])


def test_the_drawn_federations_send_guests_home_and_lose_work() -> None:
    """Else the tests above would show little."""
    found = [outcome(drawn_case(seed)) for seed in range(40)]
    assert sum(one["preempted"] > 0 for one in found) > 20
    assert sum(one["lost"] > 0 for one in found) > 20


def test_the_plain_program_shares_nothing_with_hanse() -> None:
    text = PATH.read_text(encoding="utf-8")
    assert "import grms" not in text
    assert "from grms" not in text
    assert "lrms_sim" not in text
    assert "numpy" not in text


def test_the_plain_program_is_short_enough_to_be_read() -> None:
    """At most 300 lines of code, beside blank ones, comments and docstrings."""
    text = PATH.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            docs |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), start=1)
    code = [line for number, line in lines if number not in docs and line.strip()]
    assert len([line for line in code if not line.lstrip().startswith("#")]) <= 300


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_no_machine_runs_more_than_it_has_and_every_job_runs_to_its_end(seed: int) -> None:
    case = drawn_case(seed)
    sites = sites_of(case)
    schedule = Federation(sites).exchange().schedule
    assert np.all(schedule.start_time >= schedule.jobs.submit_time)
    # Of a job that came back the last start: it has run no longer than it had to.
    lasted = schedule.end_time - schedule.start_time
    assert np.all(lasted <= schedule.jobs.run_time)
    assert np.all(lasted > 0)
    for number, site in enumerate(sites):
        here = schedule.executed_on == number
        moments = np.concatenate([schedule.end_time[here], schedule.start_time[here]])
        change = np.concatenate([-schedule.jobs.processors[here], schedule.jobs.processors[here]])
        order = np.lexsort((change, moments))
        assert np.cumsum(change[order]).max(initial=0) <= site.processors


# --- by hand --------------------------------------------------------------------------------


def _site(
    name: str,
    processors: int,
    rows: list[tuple[float, float, int]],
    policy: TransferPolicy = STRICT,
    discipline: Discipline | None = None,
    **more: Any,
) -> Site:
    """A site with jobs (submit, run, processors) that request what they run."""
    table = JobTable.from_columns(
        job_id=list(range(1, len(rows) + 1)),
        submit_time=[row[0] for row in rows],
        run_time=[row[1] for row in rows],
        requested_time=[row[1] for row in rows],
        processors=np.array([row[2] for row in rows], np.int32),
    )
    other = {"home": "host", "host": "home"}[name]
    return Site(
        name, processors, table, discipline or Fcfs(), {other: policy}, reoffer=900.0, **more
    )


def _replayed(home: Site, host: Site) -> FederationReplay:
    return Federation([home, host]).exchange()


BUSY = (0.0, 100_000.0, 4)
LONG_GUESTS = Constrained(ExchangeConstraints(guest_length=None, account=AccountRules()))


def test_a_guest_goes_home_when_an_own_job_needs_its_processors_and_starts_anew() -> None:
    home = _site("home", 4, [BUSY, (10.0, 5000.0, 4)])
    host = _site("host", 4, [(0.0, 5.0, 1), (3000.0, 400.0, 4)], LONG_GUESTS)
    found = _replayed(home, host)
    # The host is in credit before its job comes: the guest is protected until the next look, by
    # which the job would run if the host were alone.
    assert found.preempted == (1, 0)
    own = found.schedule.submitted_to == 1
    assert found.schedule.start_time[own].tolist() == [0.0, 3600.0]
    assert found.lost[0] == 4 * (3600.0 - 10.0)


@pytest.mark.parametrize(
    ("every", "lost"), [(600.0, 4 * 590.0), (1000.0, 4 * 590.0), (4000.0, 4 * 3590.0)]
)
def test_what_checkpoints_have_kept_is_not_lost(every: float, lost: float) -> None:
    home = _site("home", 4, [BUSY, (10.0, 5000.0, 4)], checkpoint=Checkpoints(every))
    host = _site("host", 4, [(0.0, 5.0, 1), (3000.0, 400.0, 4)], LONG_GUESTS)
    found = _replayed(home, host)
    assert found.lost[0] == lost
    job = found.schedule.jobs.submit_time == 10.0
    lasted = float((found.schedule.end_time - found.schedule.start_time)[job][0])
    assert lasted == 5000.0 - (3590.0 - lost / 4)


def test_a_job_that_has_come_back_empty_handed_twice_stays_at_home() -> None:
    rows = [(float(t), 100.0, 4) for t in range(5000, 40_000, 5000)]
    home = _site("home", 4, [BUSY, (10.0, 50_000.0, 4)])
    host = _site("host", 4, [(0.0, 20_000.0, 1), *rows])
    for often in (1, 2, 3):
        rules = ExchangeConstraints(guest_length=None, account=AccountRules(empty_returns=often))
        policy = Constrained(rules)
        fresh = [_with(site, policy) for site in (home, host)]
        found = _replayed(*fresh)
        assert found.preempted[0] <= often


def _with(site: Site, policy: TransferPolicy) -> Site:
    other = {"home": "host", "host": "home"}[site.name]
    return Site(
        site.name, site.processors, site.jobs, site.discipline, {other: policy}, reoffer=900.0
    )


def test_guests_that_run_to_their_end_are_never_sent_home() -> None:
    for seed in range(30):
        case = drawn_case(seed)
        for site in case["sites"]:
            site["rule"] = "C1"
        assert outcome(case)["preempted"] == 0


def test_a_site_beside_accept_when_fit_may_be_strict() -> None:
    awf = AcceptWhenFit()
    rng = random.Random(5)  # noqa: S311  # a workload by chance
    rows = [(float(n * 400), float(rng.randint(10, 4000)), rng.randint(1, 4)) for n in range(80)]
    found = _replayed(_site("home", 4, rows, awf), _site("host", 4, rows[::2], STRICT))
    assert np.isfinite(found.schedule.end_time).all()
    assert found.preempted[1] == 0  # accept when fit sends nobody home


def test_training_replays_the_same() -> None:
    for seed in range(10):
        sites = sites_of(drawn_case(seed))
        federation = Federation(sites)
        schedule = federation.exchange().schedule
        awrts = federation.awrt()
        for number in range(len(sites)):
            own = schedule.submitted_to == number
            work = (schedule.jobs.run_time * schedule.jobs.processors)[own]
            response = (schedule.end_time - schedule.jobs.submit_time)[own]
            assert awrts[number] == pytest.approx(float((work * response).sum() / work.sum()))


def test_a_discipline_that_cannot_have_jobs_back_is_named() -> None:
    with pytest.raises(ValueError, match=r"'conservative' can neither .* fcfs, list, easy"):
        Federation([_site("home", 4, [BUSY], discipline=Conservative()), _site("host", 4, [BUSY])])


@pytest.mark.parametrize("discipline", ["list", "easy-per-event"])
def test_other_disciplines_exchange_strictly_too(discipline: str) -> None:
    preempted = 0
    for seed in range(30):
        sites = sites_of(drawn_case(seed))
        chosen = [
            Site(
                site.name,
                site.processors,
                site.jobs,
                discipline_by_name(discipline),
                site.transfer_policies,
                reoffer=900.0,
                checkpoint=site.checkpoint,
            )
            for site in sites
        ]
        found = Federation(chosen).exchange()
        preempted += sum(found.preempted)
        assert np.isfinite(found.schedule.end_time).all()
    assert preempted > 0


def test_a_site_has_one_account() -> None:
    other = Constrained(ExchangeConstraints(account=AccountRules(memory=1.0)))
    site = Site("a", 4, JobTable.empty(), Easy(), {"b": STRICT, "c": other})
    rest = [Site(name, 4, JobTable.empty()) for name in ("b", "c")]
    with pytest.raises(ValueError, match="one account"):
        Federation([site, *rest])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"guests": "stay"}, "guests is 'stay'"),
        ({"allowance": -0.1}, "allowance is -0.1"),
        ({"allowance": math.inf}, "allowance is inf"),
        ({"memory": 0.0}, "memory is 0.0"),
        ({"cap": -1.0}, "cap is -1.0"),
        ({"every": 0.0}, "every is 0.0"),
        ({"lost_work": math.nan}, "lost_work is nan"),
        ({"empty_returns": 0}, "empty_returns is 0"),
    ],
)
def test_impossible_rules_of_an_account_are_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AccountRules(**wrong)


@pytest.mark.parametrize(("every", "jobs"), [(0.0, 1), (-1.0, 1), (math.nan, 1), (60.0, 0)])
def test_impossible_checkpoints_are_named(every: float, jobs: int) -> None:
    with pytest.raises(ValueError, match="checkpoints"):
        Checkpoints(every, jobs)


def test_the_allowance_is_for_guests_that_run_to_their_end() -> None:
    assert AccountRules().allowed == 0
    assert AccountRules(guests="run").allowed == 0.01
    assert AccountRules(guests="run", allowance=0.5).allowed == 0.5
    assert STRICT_EXCHANGE.account == AccountRules()


# --- rules for comparisons, and Byzantine partners ------------------------------------------

ALWAYS = Constrained(ExchangeConstraints(guest_length=None, account=AccountRules(protects=False)))
QUOTA = ExchangeConstraints(
    guest_length=None, balance=None, promise=None, account=AccountRules(protects=False)
)
FAVORS = Constrained(replace(QUOTA, account=AccountRules(protects=False, favors=True)))


@pytest.mark.parametrize("seed", range(200, 220))
def test_always_preemptible_is_the_plain_program_that_is_never_in_credit(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = drawn_case(seed)
    for site in case["sites"]:
        site["rule"] = "G"
    exchange = plain.Exchange(case)
    for site in exchange.sites:
        site.in_credit = False
    monkeypatch.setattr(plain.Site, "owed", lambda *_: math.inf)
    never = Constrained(ExchangeConstraints(account=AccountRules(protects=False)))
    sites = [
        replace(site, transfer_policies=dict.fromkeys(site.transfer_policies, never))
        for site in sites_of(case)
    ]
    found, wanted = Federation(sites).exchange(), exchange.run()
    assert found.schedule.end_time.tolist() == wanted["end"]
    assert (sum(found.offers), sum(found.preempted)) == (wanted["offers"], wanted["preempted"])


def test_a_guest_that_is_always_preemptible_goes_at_once() -> None:
    """With an account it was protected until 3600."""
    home = _site("home", 4, [BUSY, (10.0, 5000.0, 4)], ALWAYS)
    host = _site("host", 4, [(0.0, 5.0, 1), (3000.0, 400.0, 4)], ALWAYS)
    found = _replayed(home, host)
    assert found.schedule.start_time[found.schedule.submitted_to == 1].tolist() == [0.0, 3000.0]
    assert found.lost[0] == 4 * (3000.0 - 10.0)


def test_a_quota_asks_for_idle_processors_alone() -> None:
    """A guest that would be too long by own jobs, of a partner that has taken more than it gave."""
    rows = [BUSY, (10.0, 90_000.0, 4)]
    for policy, moved in ((Constrained(QUOTA), 1), (POLICIES["G"], 0)):
        home = _site("home", 4, rows, policy)
        found = _replayed(home, _site("host", 4, [(0.0, 5.0, 1)], policy))
        schedule = found.schedule
        assert int(np.sum((schedule.executed_on == 1) & (schedule.submitted_to == 0))) == moved


def test_by_favors_a_guest_gives_way_to_one_of_a_partner_that_has_done_more() -> None:
    """`b` has run a job of the host's, `a` has not: `a`'s guest of 2100 goes home for `b`'s of 3000."""

    def site(name: str, rows: list[tuple[float, float, int]], policy: TransferPolicy) -> Site:
        table = _site("host", 4, rows).jobs
        others = {other: policy for other in ("a", "b", "host") if other != name}
        order = tuple(other for other in ("b", "host", "a") if other != name)
        return Site(name, 4, table, Fcfs(), others, FixedOrder(order), reoffer=900.0)

    def sites(policy: TransferPolicy) -> list[Site]:
        a = site("a", [(0.0, 50_000.0, 4), (2100.0, 10_000.0, 4)], policy)
        b = site("b", [(1000.0, 50_000.0, 4), (3000.0, 9_000.0, 4)], policy)
        return [a, b, site("host", [(0.0, 2000.0, 4), (1.0, 500.0, 4)], policy)]

    favored = Federation(sites(FAVORS)).exchange()
    quota = Federation(sites(Constrained(QUOTA))).exchange()
    assert (favored.preempted, quota.preempted) == ((1, 0, 0), (0, 0, 0))
    second = (favored.schedule.jobs.submit_time == 3000.0).nonzero()[0][0]
    assert favored.schedule.start_time[second] == 3000.0
    assert quota.schedule.start_time[second] == 12_600.0
    assert favored.lost[0] == 4 * 900.0


def test_nobody_owes_less_than_nothing() -> None:
    """So that a partner gains nothing by a new name."""
    assert favored(5.0, 3.0, 2.0) == 6.0
    assert favored(5.0, 0.0, 9.0) == 0.0


@pytest.mark.parametrize("cost", [0.0, 300.0])
def test_a_job_that_was_sent_home_takes_longer_by_what_a_new_start_costs(cost: float) -> None:
    home = _site("home", 4, [BUSY, (10.0, 5000.0, 4)], ALWAYS, restart=cost)
    host = _site("host", 4, [(0.0, 5.0, 1), (3000.0, 400.0, 4)], ALWAYS)
    schedule = _replayed(home, host).schedule
    (row,) = (schedule.jobs.submit_time == 10.0).nonzero()[0]
    assert schedule.end_time[row] - schedule.start_time[row] == 5000.0 + cost


def test_who_returns_all_sends_every_guest_home_just_before_its_end() -> None:
    """Nothing is kept, checkpoints or not, and after the second time the job is offered no more."""
    policy = Constrained(ExchangeConstraints(guest_length=None, account=AccountRules()))
    # Rounds end when all have arrived and nobody waits, hence the third job.
    rows = [(0.0, 300_000.0, 4), (10.0, 5000.0, 4), (250_000.0, 1.0, 4)]
    home = _site("home", 4, rows, policy, checkpoint=Checkpoints(600.0))
    host = _site("host", 4, [(0.0, 5.0, 1)], policy, rogue=BYZANTINE_PREEMPTING["returns-all"])
    found = _replayed(home, host)
    assert found.preempted == (4, 0)
    assert found.lost[0] == pytest.approx(2 * 4 * 0.999 * (5000.0 + 1.0))
    (row,) = (found.schedule.jobs.submit_time == 10.0).nonzero()[0]
    assert found.schedule.start_time[row] == 300_000.0
    assert found.schedule.end_time[row] == 305_000.0


def test_only_who_can_preempt_returns_all() -> None:
    rogue = BYZANTINE_PREEMPTING["returns-all"]
    with pytest.raises(ValueError, match="strict-exchange alone"):
        _replayed(_site("home", 4, [BUSY]), _site("host", 4, [BUSY], POLICIES["C1"], rogue=rogue))


@pytest.mark.parametrize(("hides", "moved"), [(False, 1), (True, 0)])
def test_who_hides_that_a_job_keeps_its_state_is_declined_where_it_is_long(
    hides: bool, moved: int
) -> None:
    rogue = BYZANTINE_PREEMPTING["hides-checkpoints"] if hides else None
    rows = [BUSY, (1000.0, 50_000.0, 4)]
    home = _site("home", 4, rows, checkpoint=Checkpoints(600.0), rogue=rogue)
    schedule = _replayed(home, _site("host", 4, [(0.0, 900.0, 1)])).schedule
    assert int(np.sum(schedule.executed_on[schedule.submitted_to == 0])) == moved


@pytest.mark.parametrize("cost", [-1.0, math.inf, math.nan])
def test_an_impossible_cost_of_a_new_start_is_named(cost: float) -> None:
    with pytest.raises(ValueError, match="more after a return"):
        Federation([_site("home", 4, [BUSY], restart=cost), _site("host", 4, [BUSY])])
