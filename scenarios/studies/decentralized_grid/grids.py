"""The grids of the study: bundled scenarios with the policies and disciplines of a regime."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from grms.learning.transfer.options import Objective, rule_base_file
from scenarios.library import scenario_path
from scenarios.run.replay import run_scenario
from scenarios.run.results import SiteResult
from scenarios.spec.files import load_spec
from scenarios.spec.spec import PoolEntry, ScenarioSpec, SiteSpec, TransferSpec
from scenarios.studies.decentralized_grid.reference import UNKNOWN_SITE

Discipline = Literal["fcfs", "easy"]


@dataclass(frozen=True, slots=True)
class Regime:
    """The conditions under which policies are learned."""

    discipline: Discipline
    objective: Objective

    @property
    def key(self) -> str:
        """The name of the regime's folder."""
        return f"{self.discipline}-{self.objective}".replace("_", "-")

    @property
    def words(self) -> str:
        """The regime, for people."""
        return f"{self.discipline.upper()}, {self.objective.replace('_', '-')}"


EGOISTIC: Final = Regime("fcfs", "egoistic")
NO_LOSER: Final = Regime("fcfs", "no_loser")
EASY_EGOISTIC: Final = Regime("easy", "egoistic")
EASY_NO_LOSER: Final = Regime("easy", "no_loser")
REGIMES: Final = (EGOISTIC, NO_LOSER, EASY_EGOISTIC, EASY_NO_LOSER)

PolicyFile = Callable[[str, str], Path]
"""Returns the rule base that a site has learned for a partner."""


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """What became of one site in one run; see `scenarios.run.results.SiteResult`."""

    name: str
    jobs: int
    awrt_alone: float
    awrt: float
    awrt_improvement: float
    utilization_alone: float
    utilization: float
    squashed_area_change: float
    makespan_alone: float
    makespan: float
    jobs_given: int
    jobs_taken: int

    @classmethod
    def of(cls, site: SiteResult) -> "SiteFigures":
        """Returns these figures of a site's result."""
        return cls(**{name: getattr(site, name) for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class GridRun:
    """One run of a grid.

    Attributes:
        scenario: the bundled scenario.
        discipline: of every site's queue.
        policies: `awf`, or the key of the regime the rule bases were learned in.
        seed: of the rule bases; `None` for `awf`.
        sites: what became of them, in site order.
    """

    scenario: str
    discipline: str
    policies: str
    seed: int | None
    sites: tuple[SiteFigures, ...]


def learned_file(folder: Path, site: str, partner: str) -> Path:
    """Returns the file of a site's rule base for a partner in a folder of rule bases."""
    return folder / rule_base_file(site, [partner])


def grid_spec(
    scenario: str,
    discipline: str,
    *,
    learned: PolicyFile | None = None,
    learners: frozenset[str] | None = None,
) -> ScenarioSpec:
    """Returns a bundled scenario with other policies and another discipline.

    A site in `learners` (all but the unknown one by default) uses its rule base `learned` for a
    partner; without `learned` everybody accepts when fit. For the unknown site the others use the
    rule base learned against the partner of nearest size, and the unknown site itself accepts when
    fit (section 8.1).
    """
    spec = load_spec(scenario_path(scenario))
    known = [site for site in spec.sites if site.name != UNKNOWN_SITE]
    using = {site.name for site in known} if learners is None else learners
    sites = [
        site.model_copy(
            update={
                "discipline": discipline,
                "transfer": _transfer(site, spec, known, learned if site.name in using else None),
            }
        )
        for site in spec.sites
    ]
    return spec.model_copy(update={"sites": sites})


def _transfer(
    site: SiteSpec, spec: ScenarioSpec, known: list[SiteSpec], learned: PolicyFile | None
) -> TransferSpec:
    if learned is None:
        return TransferSpec(default="awf")
    file = partial(learned, site.name)
    trained = [partner for partner in known if partner is not site]
    named = {partner.name: str(file(partner.name)) for partner in trained}
    if len(known) == len(spec.sites):
        return TransferSpec.model_validate(named)
    pool = [
        PoolEntry(processors=partner.processors, policy=str(file(partner.name)))
        for partner in trained
    ]
    return TransferSpec.model_validate({"pool": pool, **named})


def run_grid(
    spec: ScenarioSpec,
    *,
    policies: str,
    seed: int | None,
    environment: Mapping[str, str],
) -> GridRun:
    """Runs a grid of `grid_spec`, alone and federated.

    `policies` is `awf`, or the key of a regime; `seed` is that of the rule bases, `None` for `awf`.

    Raises:
        ScenarioError: a log is missing, or a rule base cannot be used.
    """
    result = run_scenario(spec, environment=environment).result
    return GridRun(
        scenario=spec.name,
        discipline=spec.sites[0].discipline,
        policies=policies,
        seed=seed,
        sites=tuple(SiteFigures.of(site) for site in result.sites),
    )
