"""What the commands of `scenario` show, as models: `--json` prints by them, and they give the schemas.

Times are seconds; null is a figure without a meaning.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, create_model

from lrms_sim.cli.output_models import OutputModel, fields_of
from scenarios.cli.listing import site_words
from scenarios.run.broker_result import BrokerResult
from scenarios.run.results import SiteResult, WorkloadNote
from scenarios.run.user_groups import GroupResult
from scenarios.spec.spec import ScenarioSpec
from scenarios.spec.traces import TRACES, find_trace


class ListedOutput(OutputModel):
    """A scenario that comes with the program."""

    name: str
    title: str
    sites: int
    logs: Sequence[str]
    logs_missing: Sequence[str] = Field(description="Logs that `scenario fetch` has not got.")


class ListOutput(OutputModel):
    """`scenario list`: the scenarios that come with the program."""

    scenarios: Sequence[ListedOutput]


class ScenarioSiteOutput(OutputModel):
    """A site of a scenario, in the words of the table."""

    name: str
    processors: int
    discipline: str
    workload: str
    asks: str
    transfer: str


class ScenarioOutput(OutputModel):
    """`scenario show`: what a scenario is about."""

    name: str
    title: str
    description: str
    seed: int
    file: str
    sites: Sequence[ScenarioSiteOutput]
    logs_missing: Sequence[str]


class ValidOutput(OutputModel):
    """`scenario validate`: of a file that is valid."""

    file: str
    sites: int
    logs_missing: Sequence[str]


class FlowOutput(OutputModel):
    """Who gave work to whom: rows are the sites that gave, columns those that ran it."""

    sites: Sequence[str]
    jobs: Sequence[Sequence[int]]
    area_processor_s: Sequence[Sequence[float]]


class NotesOutput(OutputModel):
    """What the preparation of a site's workload did."""

    site: str
    records: Sequence[WorkloadNote]


_SiteFigures: Any = create_model("_SiteFigures", __base__=OutputModel, **fields_of(SiteResult))


class SiteFiguresOutput(_SiteFigures):
    """A site alone and in the federation; docs/glossary.md says what the figures are."""


class ResultOutput(OutputModel):
    """`scenario run`, `scenario report`, and result.json of a run."""

    format: int
    version: str
    name: str
    title: str
    description: str
    seed: int
    elapsed_s: float
    jobs: int
    jobs_exchanged: int
    sites: Sequence[SiteFiguresOutput]
    flow: FlowOutput
    workload_notes: Sequence[NotesOutput]
    acknowledgements: Sequence[str]
    broker: BrokerResult | None = Field(None, description="Only of a scenario with a broker.")
    user_groups: Sequence[GroupResult] = Field((), description="Only where a queue looks at them.")


class ProvedClientOutput(OutputModel):
    """What the jobs of a command came to."""

    client: str = Field(description="sbatch, or grms for `grms submit --key`.")
    jobs: int
    calls: int = Field(description="Of the command, which is repeated if it gets no answer.")
    runs: int = Field(description="Starts, as the jobs themselves wrote them.")
    kinds: Mapping[str, int] = Field(description="How many jobs came to which end.")


class NotOnceOutput(OutputModel):
    """A job that did not run once."""

    job: str
    site: str
    kind: str
    why: str


class ProveOutput(OutputModel):
    """`scenario prove`: what was broken, and what ran."""

    batch_systems: str
    seed: int
    seconds: float
    holds: bool = Field(
        description="No job of `grms submit` was lost, ran twice, or contradicts what its user was shown."
    )
    faults: Mapping[str, int]
    clients: Sequence[ProvedClientOutput]
    delegated: int = Field(description="Jobs of `grms submit` that ran at the other site.")
    not_once: Sequence[NotOnceOutput]


def listed(specs: Sequence[ScenarioSpec], environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns scenarios as `ListOutput` has them."""
    return {
        "scenarios": [
            {
                "name": spec.name,
                "title": spec.title,
                "sites": len(spec.sites),
                "logs": list(spec.traces),
                "logs_missing": missing(spec, environment),
            }
            for spec in specs
        ]
    }


def described(spec: ScenarioSpec, path: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns a scenario as `ScenarioOutput` has it."""
    names = tuple(ScenarioSiteOutput.model_fields)[2:]
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "seed": spec.seed,
        "file": str(path),
        "sites": [
            {"name": site.name, "processors": site.processors}
            | dict(zip(names, site_words(site), strict=True))
            for site in spec.sites
        ],
        "logs_missing": missing(spec, environment),
    }


def missing(spec: ScenarioSpec, environment: Mapping[str, str]) -> list[str]:
    """Returns the logs of a scenario that are not here."""
    return [key for key in TRACES if key in spec.traces and find_trace(key, environment) is None]
