"""The electricity of a scenario's sites: series on its clock, policies that look at them, and bills."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grms.federation.federation import Site
from grms.federation.sites import CheaperPartners
from lrms_sim.analysis.electricity import machine_consumption, span_of
from lrms_sim.electricity.csv_files import SeriesFileError, moment_of, read_series
from lrms_sim.electricity.power import EasyDeferred, Supply
from lrms_sim.electricity.series import Series
from lrms_sim.util.file_errors import Mistake
from lrms_sim.workload.schedule import Schedule
from scenarios.spec.spec import ScenarioSpec, SiteSpec


@dataclass(frozen=True, slots=True)
class SiteElectricity:
    """What a site's machine has used from the first submission of all sites to the last end of both replays.

    Attributes:
        energy_kwh_alone: without exchange.
        energy_kwh: with exchange.
        cost_alone: in the currency of the price; idle nodes included.
        cost: with exchange; the site that runs a job pays for it.
        carbon_kg_alone: carbon dioxide; nan where the intensity is not known.
        carbon_kg: with exchange.
        covered: whether the price is known for the whole time; else its steps have come again.
    """

    name: str
    energy_kwh_alone: float
    energy_kwh: float
    cost_alone: float
    cost: float
    carbon_kg_alone: float
    carbon_kg: float
    covered: bool


def supplies_of(spec: ScenarioSpec) -> tuple[list[Supply | None], list[Mistake]]:
    """Returns the electricity of each site, `None` where nothing is said, and what is wrong with files."""
    problems: list[Mistake] = []
    return [_supply(spec, site, problems) for site in spec.sites], problems


def _supply(spec: ScenarioSpec, site: SiteSpec, problems: list[Mistake]) -> Supply | None:
    said = site.electricity
    if said is None:
        return None
    clock = spec.electricity
    begin = None if clock is None else moment_of(clock.begin, None)

    def series(name: str, value: str | float, least: float) -> Series:
        if not isinstance(value, str):
            return Series.constant(value)
        try:
            found = read_series(value, time_zone=said.time_zone, least=least)
        except (SeriesFileError, OSError) as error:
            text = (
                str(error) if isinstance(error, SeriesFileError) else f"{value}: {error.strerror}"
            )
            problems.append(Mistake(f"sites.{site.name}.electricity.{name}", text))
            return Series.constant(0.0)
        return found.shifted(-(found.first if begin is None else begin))

    carbon = None if said.carbon is None else series("carbon", said.carbon, 0.0)
    return Supply(series("price", said.price, -1e9), carbon, said.power)


def with_electricity(
    sites: Sequence[Site], spec: ScenarioSpec, supplies: Sequence[Supply | None]
) -> list[Site]:
    """Returns the sites with their tariffs, with what they prefer, and with jobs that wait for cheap hours."""
    by_carbon = any(one.electricity and one.electricity.prefer == "carbon" for one in spec.sites)
    found = []
    for site, one, supply in zip(sites, spec.sites, supplies, strict=True):
        said = one.electricity
        if said is None or supply is None:
            found.append(site)
            continue
        tariff = supply.emission if by_carbon else supply.tariff
        if said.delay and tariff is not None:
            site = replace(site, discipline=EasyDeferred(tariff, said.rule))  # noqa: PLW2901  # the same site
        prefers = None if said.prefer is None else CheaperPartners(said.rule, said.only)
        found.append(replace(site, tariff=tariff, cheaper=prefers))
    return found


def bills(
    supplies: Sequence[Supply | None], schedule: Schedule, alone: Schedule
) -> tuple[SiteElectricity, ...]:
    """Returns what each site that has electricity has used, alone and with exchange."""
    span = span_of(schedule, alone)
    found = []
    for number, supply in enumerate(supplies):
        if supply is None:
            continue
        before = machine_consumption(alone, supply, number, span)
        after = machine_consumption(schedule, supply, number, span)
        found.append(
            SiteElectricity(
                schedule.machines[number].name,
                before.energy_kwh,
                after.energy_kwh,
                before.cost,
                after.cost,
                before.carbon_kg,
                after.carbon_kg,
                supply.price.covers(*span),
            )
        )
    return tuple(found)
