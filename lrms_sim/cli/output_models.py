"""Output models of the `lrms-sim` commands, for `--json` and its schemas.

Times are seconds on the log's clock unless a name says otherwise; undefined figures are null.
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, field_validator

from lrms_sim.analysis.metrics import MachineMetrics, UserFairness
from lrms_sim.workload.preparation_report import LogDescription, PreparationReport


def plain(value: Any) -> Any:
    """Returns a value with null, which JSON has, for nan, which it has not."""
    if value is None or isinstance(value, str | int):
        return value  # most are, and lists are long
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class OutputModel(BaseModel):
    """Base of output models, without extra fields.

    Built from a mapping or an object's attributes; an attribute of another name is the field's
    `validation_alias`.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        from_attributes=True,
        validate_by_name=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _without_nan(cls, value: Any) -> Any:
        return plain(value)


Percent = Annotated[
    float | None, BeforeValidator(lambda share: None if share is None else 100.0 * share)
]
"""Of a share of 1."""


def fields_of(data: type[Any], *, nan: bool = True) -> dict[str, Any]:
    """Returns the fields of a dataclass for a model.

    With `nan` a float may be nan, which becomes null.
    """
    return {
        field.name: (float | None if nan and field.type is float else field.type, ...)
        for field in fields(data)
    }


class NamedWord(OutputModel):
    """A word that an option takes."""

    name: str
    description: str


class DisciplinesOutput(OutputModel):
    """`lrms-sim disciplines`: the queue disciplines."""

    disciplines: list[NamedWord]


class UserGroupOutput(OutputModel):
    """A user group, 1 to 5, and how it fares."""

    group: int
    jobs: int
    awrt_s: float | None


_Fairness: Any = create_model("_Fairness", __base__=OutputModel, **fields_of(UserFairness))


class UserFairnessOutput(_Fairness):
    """How alike users are served, by the mean bounded slowdown of each; jain is 1 where alike."""


class IntervalOutput(OutputModel):
    """A mean and its 95 % confidence interval."""

    mean: float | None
    low: float | None
    high: float | None


class NodeKindOutput(OutputModel):
    """Nodes that are all alike."""

    name: str
    nodes: int
    cores: int
    memory: int = Field(description="Of each, MiB; 0 where it is not counted.")
    gpus: int
    gpu_type: str
    features: list[str]


class UtilizationOutput(OutputModel):
    """Shares that jobs held on average, 0 to 1; null of what there is none of."""

    cores: float
    memory: float | None
    gpus: float | None
    licences: dict[str, float]


class WaitsOutput(OutputModel):
    """How long the jobs of a class waited, seconds."""

    name: str
    jobs: int
    mean: float | None
    median: float | None


class NodesOutput(OutputModel):
    """A machine of nodes, and how it was used."""

    kinds: list[NodeKindOutput]
    placement: str
    licences: dict[str, int]
    utilization: UtilizationOutput
    fragmentation: float = Field(
        description="Share of the core-seconds that were idle while the head asked for no more cores."
    )
    awrt_by_dominant_share_s: float | None = Field(
        description="AWRT with a job's dominant share as its weight in place of its processors."
    )
    waits_by_gpus: list[WaitsOutput]
    waits_by_memory: list[WaitsOutput]


_RunFigures: Any = create_model(
    "_RunFigures",
    __base__=OutputModel,
    lrms_sim=(str, ...),
    discipline=(str, ...),
    **fields_of(MachineMetrics),
)


class RunOutput(_RunFigures):
    """`lrms-sim run`: the figures of a replay; lrms_sim is the version of the program."""

    makespan_origin_s: float
    warm_up_days: float = Field(
        default=0.0,
        description="Jobs submitted in the first days do not count in figures of users.",
    )
    cool_down_days: float = Field(default=0.0, description="Nor those submitted in the last days.")
    tau_s: float = Field(
        default=10.0, description="Shorter run times count as this in bounded slowdowns, seconds."
    )
    user_groups: list[UserGroupOutput]
    user_fairness: UserFairnessOutput
    preparation: PreparationReport
    repetitions: dict[str, IntervalOutput] = Field(
        default_factory=dict,
        description="With shifted arrivals; only where --repeat asks for them.",
    )
    nodes: NodesOutput | None = Field(default=None, description="Only with --nodes.")


_LogFigures: Any = create_model("_LogFigures", __base__=OutputModel, **fields_of(LogDescription))


class LogOutput(_LogFigures):
    """`lrms-sim info`: what a log holds."""

    preparation: PreparationReport
