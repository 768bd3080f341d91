"""Output model of `lrms-sim compare`, for `--json` and its schema; undefined figures are null."""

from typing import Any

from pydantic import Field, create_model

from lrms_sim.analysis.comparison import Difference
from lrms_sim.cli.output_models import OutputModel, fields_of

_Difference: Any = create_model("_Difference", __base__=OutputModel, **fields_of(Difference))


class DifferenceOutput(_Difference):
    """A discipline held against the baseline by one metric, over the shifts of one log."""

    change: float | None = Field(description="The difference as a share of the baseline's mean.")
    change_low: float | None
    change_high: float | None
    verdict: str = Field(description="better, worse, equal or open.")


class ComparisonOutput(OutputModel):
    """`lrms-sim compare`: paired differences of disciplines to the baseline."""

    baseline: str
    disciplines: list[str]
    metrics: list[str]
    shifts: int
    seconds: float = Field(description="Largest shift of an arrival.")
    seed: int
    warm_up_days: float
    cool_down_days: float
    tau: float = Field(
        default=10.0, description="Shorter run times count as this in bounded slowdowns, seconds."
    )
    differences: list[DifferenceOutput]
