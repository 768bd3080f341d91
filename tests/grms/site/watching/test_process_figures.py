"""The figures of the daemon's process."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from grms.site.watching.process_figures import ProcessFigures

FIGURES = {
    "process_virtual_memory_bytes",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
}


def test_processor_memory_and_descriptors_are_there() -> None:
    """With the time at which the process began, as ever."""
    registry = CollectorRegistry()
    ProcessFigures(registry=registry)
    samples = {each.name: each.value for family in registry.collect() for each in family.samples}
    assert samples.keys() == FIGURES
    assert samples["process_start_time_seconds"] > 0
    assert samples["process_open_fds"] < samples["process_max_fds"]


def test_they_are_there_in_the_sandbox_of_the_unit(tmp_path: Path) -> None:
    """`ProcSubset=pid` hides all of /proc but processes, and so when the machine was started."""
    (tmp_path / "self").symlink_to("/proc/self")
    whole, hidden = CollectorRegistry(), CollectorRegistry()
    ProcessFigures(registry=whole)
    ProcessFigures(registry=hidden, proc=str(tmp_path))
    samples = {each.name: each.value for family in hidden.collect() for each in family.samples}
    assert samples.keys() == FIGURES
    begin = whole.get_sample_value("process_start_time_seconds")
    assert samples["process_start_time_seconds"] == pytest.approx(begin, abs=2)
