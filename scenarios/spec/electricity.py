"""The part of a scenario file that is about electricity: prices, power, and policies that look at them.

docs/how-to/electricity.md describes the format.
"""

import math
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from grms.daemon.config_base import Model, absolute, wrong
from grms.daemon.config_errors import must_be_text
from grms.policy.constraints import Span
from lrms_sim.electricity.csv_files import moment_of
from lrms_sim.electricity.power import SAVING, DeferralRule, Power
from lrms_sim.scheduling.situations import zone_named


def _series(value: object, info: ValidationInfo) -> str | float:
    if isinstance(value, str):
        return absolute(value, info)
    if isinstance(value, bool) or not (isinstance(value, int | float) and math.isfinite(value)):
        raise wrong(must_be_text(value, "the path of a CSV file, or a number"))
    return float(value)


def _zone(value: str | float) -> str | float:
    try:
        zone_named(value)
    except ValueError as error:
        raise wrong(str(error)) from error
    return value


def _moment(value: str) -> str:
    try:
        moment_of(value, None)
    except ValueError as error:
        raise wrong(str(error)) from error
    return value


Watts = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
SeriesField = Annotated[str | float, BeforeValidator(_series)]


class ElectricityClockSpec(Model):
    """`[electricity]`: when the scenario is.

    Attributes:
        begin: the moment that falls on second 0, with an offset from UTC.
    """

    begin: Annotated[str, AfterValidator(_moment)]


class ElectricitySpec(Model):
    """`[sites.electricity]`: what a site pays, draws and prefers.

    Attributes:
        price: per MWh: a CSV file, or a number for all times.
        carbon: grams of carbon dioxide per kWh; the same. Not known if omitted.
        time_zone: where the times of the files are local that have no offset from UTC.
        idle_watts: of a node that is on and has nothing to do.
        busy_watts: of a node all of whose processors are busy.
        off_watts: of a node that is off.
        processors_per_node: 1: watts are meant per processor.
        power_off: nodes without a job are off.
        prefer: partners are asked in order of what a job would `cost` there, or emit (`carbon`).
        only: others than cheaper partners are not asked.
        delay: jobs wait so long for cheap hours at most, with `discipline = "easy"`; they do not if omitted.
        saving: the least part of a job's cost that is worth a delay, or an offer of a job that would start at home.
    """

    price: SeriesField
    carbon: SeriesField | None = None
    time_zone: Annotated[str | float | int, AfterValidator(_zone)] | None = None
    idle_watts: Watts = Power().idle_watts
    busy_watts: Watts = Power().busy_watts
    off_watts: Watts = 0.0
    processors_per_node: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    power_off: bool = False
    prefer: Literal["cost", "carbon"] | None = None
    only: bool = False
    delay: Span | None = None
    saving: Annotated[float, Field(ge=0, le=1)] = SAVING

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            _ = self.power
        except ValueError as error:
            raise wrong(str(error)) from error
        if self.prefer == "carbon" and self.carbon is None:
            raise wrong("prefers less carbon dioxide and does not say how much there is: carbon")
        if self.only and self.prefer is None:
            raise wrong("only goes with prefer")
        return self

    @property
    def power(self) -> Power:
        """What the site's machine draws."""
        return Power(
            self.idle_watts,
            self.busy_watts,
            self.processors_per_node,
            self.power_off,
            self.off_watts,
        )

    @property
    def rule(self) -> DeferralRule:
        """How long jobs wait for cheap hours, and which saving counts."""
        return DeferralRule(self.delay or 0.0, self.saving)
