"""Scenarios as something to learn from: the reader that `grms train` finds by its entry point."""

from collections.abc import Mapping
from os import environ as process_environment
from pathlib import Path
from typing import Any

from grms.learning.transfer.fitness import SourceError, TrainingSource
from scenarios.library import scenario_path
from scenarios.run.replay import build_sites, load_policies
from scenarios.run.workloads import Workload, first_arrivals, load_workload
from scenarios.spec.files import load_spec
from scenarios.spec.spec import LublinWorkload, ScenarioSpec, SiteSpec
from scenarios.spec.traces import file_sha256
from scenarios.util.errors import ScenarioError


def load_training_source(
    reference: str, environment: Mapping[str, str] = process_environment
) -> TrainingSource:
    """Reads a scenario to learn from.

    Raises:
        SourceError: there is no such scenario, it cannot be used, or a log is not on this machine;
            the text has a line for each error.
    """
    try:
        path = scenario_path(reference)
        spec = load_spec(path).resolved()
        policies = load_policies(spec, shown=str(path))
        workloads = first_arrivals(
            [load_workload(site, spec.clock.shift, environment) for site in spec.sites],
            spec.first_arrivals,
        )
        return TrainingSource(
            name=spec.name,
            sites=tuple(build_sites(spec, policies, workloads)),
            provenance={
                site.name: _provenance(spec, site, workload)
                for site, workload in zip(spec.sites, workloads, strict=True)
            },
            warnings=tuple(
                f"sites.{site.name}: {text}"
                for site, workload in zip(spec.sites, workloads, strict=True)
                for text in workload.warnings
            ),
        )
    except (ScenarioError, OSError) as error:
        raise SourceError(str(error)) from error


def _provenance(spec: ScenarioSpec, site: SiteSpec, workload: Workload) -> dict[str, Any]:
    described: dict[str, Any] = {
        "workload": site.workload.model_dump(mode="json", exclude_none=True),
        "time_zero": spec.clock.time_zero,
    }
    if spec.first_arrivals is not None:
        described["first_arrivals"] = spec.first_arrivals
    if not isinstance(site.workload, LublinWorkload):
        file = Path(workload.source)
        # The folder is of one machine; name and checksum tell the log everywhere.
        described["file"] = file.name
        described["file_sha256"] = file_sha256(file)
        if "swf" in described["workload"]:
            described["workload"]["swf"] = file.name
    return described
