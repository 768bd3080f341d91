"""What the commands of `lrms-sim utility` show, as models: `--json` prints by them."""

from typing import Any

from pydantic import Field, create_model

from lrms_sim.cli.output_models import NamedWord, Shown, fields_of
from lrms_sim.report.malleable_report import Figures


class PoliciesShown(Shown):
    """`lrms-sim utility policies`: the policies for jobs with a utility."""

    policies: list[NamedWord]


_UtilityFigures: Any = create_model("_UtilityFigures", __base__=Shown, **fields_of(Figures))


class UtilityFiguresShown(_UtilityFigures):
    """One run of a policy for jobs with a utility."""


class UtilityRunShown(_UtilityFigures):
    """`lrms-sim utility run`: one run of a policy."""

    format: int
    source: str
    processors: int


class UtilityComparisonShown(Shown):
    """`lrms-sim utility compare`: every run of every policy."""

    format: int
    source: str
    processors: int
    runs: list[UtilityFiguresShown]


class ValueFunctionShown(Shown):
    """A value function as its file has it."""

    format_: str = Field(alias="schema")
    name: str
    p: dict[str, float]
    scales: Any
    provenance: dict[str, Any]


class UtilityTrainingShown(Shown):
    """`lrms-sim utility train`: what was learned; a lesson is number, share, updates, rho and p."""

    format: int
    value: ValueFunctionShown
    training: dict[str, Any]
