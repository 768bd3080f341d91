"""Recorded traces in a federation: the figures of an independent program, to all digits.

The rule bases in tests/grms/data were evolved on the -5 windows against a partner that plays AWF,
as in setups I and II of paper 003.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from grms.federation.federation import Site, replay, replay_alone
from grms.policy.files import load_rule_base
from grms.policy.transfer import AcceptWhenFit, RuleBase, TransferPolicy
from lrms_sim.analysis import metrics
from lrms_sim.workload.schedule import Schedule
from tests.examples import runs
from tests.oracles.federation import PlainPolicy, PlainRule, PlainSite, replay_plainly
from tests.recorded import PROCESSORS, recorded

pytestmark = pytest.mark.traces

DATA = Path(__file__).parent / "data"

ORACLES_DAYS = runs(20, 10_000)
"""Days of the logs that the plain oracle replays too; the figures above are of the whole logs."""
AWF = AcceptWhenFit()


@dataclass(frozen=True)
class Expected:
    """What comes of one site: AWRT in seconds as text with all digits, and counts of jobs."""

    site: str
    awrt: str
    given: int
    taken: int
    kept: int | None = None


# AWF at every site, AWRT location, FCFS.
ACCEPT_WHEN_FIT = {
    "KTH-5, CTC-5": (
        Expected("KTH-5", "89547.4226", 1917, 1810),
        Expected("CTC-5", "59905.6119", 1810, 1917),
    ),
    "KTH-5, SDSC05-5": (
        Expected("KTH-5", "80715.0350", 2016, 634),
        Expected("SDSC05-5", "58439.9832", 634, 2016),
    ),
    "CTC-5, SDSC05-5": (
        Expected("CTC-5", "47295.6015", 2780, 1563),
        Expected("SDSC05-5", "59209.5901", 1563, 2780),
    ),
    "KTH-6, CTC-6": (
        Expected("KTH-6", "73525.3215", 2517, 2253),
        Expected("CTC-6", "59634.9918", 2253, 2517),
    ),
    "KTH-6, SDSC05-6": (
        Expected("KTH-6", "70710.9658", 2562, 1637),
        Expected("SDSC05-6", "76474.7120", 1637, 2562),
    ),
    "CTC-6, SDSC05-6": (
        Expected("CTC-6", "58556.6070", 4463, 3383),
        Expected("SDSC05-6", "75428.4777", 3383, 4463),
    ),
    "KTH-6, CTC-6, SDSC05-6": (
        Expected("KTH-6", "63346.7364", 2608, 1453),
        Expected("CTC-6", "53647.3254", 4881, 5691),
        Expected("SDSC05-6", "74633.6410", 4152, 4497),
    ),
}

# The rule base of each site by its file; None is AWF.
RULE_BASES = {
    "KTH-5 evolved": (
        ("kth-for-ctc", None),
        Expected("KTH-5", "65810.1534", 9208, 756, 2567),
        Expected("CTC-5", "61501.8939", 756, 9208, 34604),
    ),
    "CTC-5 evolved": (
        (None, "ctc-for-kth"),
        Expected("KTH-5", "61655.0391", 1251, 20900, 10524),
        Expected("CTC-5", "54206.5991", 20900, 1251, 14460),
    ),
    "both evolved, on unseen jobs": (
        ("kth-for-ctc", "ctc-for-kth"),
        Expected("KTH-6", "58292.4939", 746, 1959, 15953),
        Expected("CTC-6", "57046.6632", 1959, 746, 39880),
    ),
}


def size(workload: str) -> int:
    """Returns the processors of the machine a workload was recorded on."""
    return PROCESSORS[workload.partition("-")[0]]


def federation(folder: Path, policies: dict[str, TransferPolicy]) -> list[Site]:
    """Returns FCFS sites, each with one policy for all its partners."""
    return [
        Site(
            name,
            size(name),
            recorded(folder, name),
            transfer_policies={other: policy for other in policies if other != name},
        )
        for name, policy in policies.items()
    ]


def assert_as_expected(schedule: Schedule, expected: tuple[Expected, ...]) -> None:
    """Asserts each site's AWRT and who gave and took how many jobs."""
    for site, row in enumerate(expected):
        own = schedule.submitted_to == site
        here = schedule.executed_on == site
        assert schedule.machines[site].name == row.site
        assert f"{metrics.awrt(schedule, site):.4f}" == row.awrt
        assert (int((own & ~here).sum()), int((here & ~own).sum())) == (row.given, row.taken)
        if row.kept is not None:
            assert int((own & here).sum()) == row.kept


@pytest.mark.parametrize("expected", ACCEPT_WHEN_FIT.values(), ids=ACCEPT_WHEN_FIT)
def test_accept_when_fit(expected: tuple[Expected, ...], traces_folder: Path) -> None:
    """Two or three sites that play AWF give the reference's AWRT and exchange as many jobs."""
    sites = federation(traces_folder, {row.site: AWF for row in expected})
    assert_as_expected(replay(sites), expected)


def rule_base(name: str | None) -> TransferPolicy:
    """Returns the rule base of that file, or AWF."""
    return AWF if name is None else load_rule_base(DATA / f"{name}.json")


@pytest.mark.parametrize("case", RULE_BASES.values(), ids=RULE_BASES)
def test_rule_bases(
    case: tuple[tuple[str | None, str | None], Expected, Expected], traces_folder: Path
) -> None:
    """Evolved rule bases give the reference's AWRT and exchange as many jobs."""
    bases, *expected = case
    policies = {row.site: rule_base(base) for base, row in zip(bases, expected, strict=True)}
    assert_as_expected(replay(federation(traces_folder, policies)), tuple(expected))


def test_the_baseline_is_each_sites_fcfs(traces_folder: Path) -> None:
    """Without cooperation each site has the AWRT of its own machine."""
    names = ("KTH-5", "CTC-5", "SDSC05-5")
    schedule = replay_alone(federation(traces_folder, dict.fromkeys(names, AWF)))
    assert [f"{metrics.awrt(schedule, site):.4f}" for site in range(3)] == [
        "475699.8689",
        "57897.7752",
        "56858.3509",
    ]


def plain_policy(policy: TransferPolicy) -> PlainPolicy:
    """Returns the oracle's policy for the project's."""
    if not isinstance(policy, RuleBase):
        return "awf"
    return tuple(
        PlainRule(
            rule.nwp.gamma,
            rule.nwp.sigma,
            rule.njp.gamma,
            rule.njp.sigma,
            1 if rule.accept else -1,
        )
        for rule in policy.rules
    )


@pytest.mark.parametrize(
    "bases",
    [
        {"KTH-5": "kth-for-ctc", "CTC-5": "ctc-for-kth"},
        {"KTH-6": None, "CTC-6": None, "SDSC05-6": None},
    ],
    ids=", ".join,
)
def test_every_job_runs_where_and_when_the_oracle_says(
    bases: dict[str, str | None], traces_folder: Path
) -> None:
    """Job by job the federation's schedule is the plain oracle's."""
    policies = {name: rule_base(base) for name, base in bases.items()}
    sites = [
        replace(site, jobs=site.jobs.select(since_first < ORACLES_DAYS * 86400.0))
        for site in federation(traces_folder, policies)
        for since_first in [site.jobs.submit_time - site.jobs.submit_time[0]]
    ]
    schedule = replay(sites)
    assert np.count_nonzero(schedule.submitted_to != schedule.executed_on) > 100, (
        "jobs move in them"
    )
    oracle = replay_plainly(
        [
            PlainSite(
                site.name,
                site.processors,
                "fcfs",
                site.jobs,
                {name: plain_policy(policy) for name, policy in site.transfer_policies.items()},
            )
            for site in sites
        ]
    )
    assert oracle.closest_call > 1e-9
    assert schedule.executed_on.tolist() == oracle.executed_on
    assert schedule.start_time.tolist() == oracle.start_time()
