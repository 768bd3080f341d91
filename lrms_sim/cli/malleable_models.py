"""What the commands of `lrms-sim utility` show, as models: `--json` prints by them."""

from typing import Any

from pydantic import Field, create_model

from lrms_sim.cli.output_models import NamedWord, OutputModel, fields_of
from lrms_sim.report.malleable_report import Figures


class PoliciesOutput(OutputModel):
    """`lrms-sim utility policies`: the policies for jobs with a utility."""

    policies: list[NamedWord]


_UtilityFigures: Any = create_model("_UtilityFigures", __base__=OutputModel, **fields_of(Figures))


class UtilityFiguresOutput(_UtilityFigures):
    """One run of a policy for jobs with a utility."""


class UtilityRunOutput(_UtilityFigures):
    """`lrms-sim utility run`: one run of a policy."""

    format: int
    source: str
    processors: int


class UtilityComparisonOutput(OutputModel):
    """`lrms-sim utility compare`: every run of every policy."""

    format: int
    source: str
    processors: int
    runs: list[UtilityFiguresOutput]


class ValueFunctionOutput(OutputModel):
    """A value function as its file has it."""

    format_: str = Field(alias="schema")
    name: str
    p: dict[str, float]
    scales: Any
    provenance: dict[str, Any]


class UtilityTrainingOutput(OutputModel):
    """`lrms-sim utility train`: what was learned; a lesson is number, share, updates, rho and p."""

    format: int
    value: ValueFunctionOutput
    training: dict[str, Any]
