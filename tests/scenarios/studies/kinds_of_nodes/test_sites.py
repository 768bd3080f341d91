"""The sites of the study: machines, the model of requests, and the table of pods."""

from pathlib import Path

import numpy as np
import pytest

from lrms_sim.machine.nodes import misfits
from lrms_sim.workload.requests import Request
from scenarios.studies.kinds_of_nodes.sites import (
    GPU_SHARE,
    LARGE_SHARE,
    POD_HASTE,
    SILENT,
    Logs,
    Pods,
    PodsError,
    draw_request,
    machine_of,
)
from scenarios.studies.kinds_of_nodes.study import class_of
from tests.scenarios.studies.kinds_of_nodes.small import HEADING, small_logs, small_pods


def test_a_machine_has_nodes_of_each_kind() -> None:
    """And at least the cores of the log's machine."""
    machine = machine_of("GPU", 128, (0.4, 0.1, 0.5))
    assert [kind.nodes for kind in machine.kinds] == [3, 1, 4]
    assert machine.processors == 128
    assert [kind.nodes for kind in machine_of("small", 16, (0.8, 0.1, 0.1)).kinds] == [1, 1, 1]


def test_requests_are_drawn_by_the_model() -> None:
    """Their shares, and GPU jobs in tasks of four cores."""
    rng = np.random.default_rng(0)
    drawn = [draw_request(rng, 6) for _ in range(4000)]
    silent = sum(request.processors_alone for request in drawn) / len(drawn)
    classes = np.bincount([class_of(request) for request in drawn]) / len(drawn)
    assert silent == pytest.approx(SILENT, abs=0.03)
    assert classes[0] == pytest.approx(GPU_SHARE, abs=0.03)
    # A few of the small requests are large enough, too.
    assert classes[1] == pytest.approx(LARGE_SHARE, abs=0.05)
    assert {request.processors for request in drawn if request.gpus} == {8}
    assert {request.gpus_least for request in drawn if request.gpus} == {2}


def test_every_job_fits_at_home() -> None:
    """A draw is the same whenever it is drawn, and another one is another."""
    logs = Logs(small_logs())
    first, again, other = logs.sites(1), logs.sites(1), logs.sites(2)
    for site, same, changed in zip(first, again, other, strict=True):
        assert misfits(site.machine, site.demands) == []
        assert site.demands.requests == same.demands.requests
        assert np.array_equal(site.jobs.processors, same.jobs.processors)
        assert site.demands.requests != changed.demands.requests
        widths = np.array([request.processors for request in site.demands.requests])
        assert np.array_equal(widths[site.demands.shape], site.jobs.processors)


def test_pods_are_dealt_to_sites(tmp_path: Path) -> None:
    """Services and what had not ended are left out; the first comes at 0, the others sooner than recorded."""
    sites = Pods(small_pods(tmp_path)).sites(1)
    assert [site.name for site in sites] == ["throughput", "large memory", "GPU"]
    jobs = sum(len(site.jobs) for site in sites)
    assert jobs == 40
    submitted = sorted(time for site in sites for time in site.jobs.submit_time.tolist())
    assert submitted == [round(100 * n / POD_HASTE) for n in range(40)]
    asked = {request.processors for site in sites for request in site.demands.requests}
    assert asked == {4, 12, 64}
    assert all(request.on_one_node for site in sites for request in site.demands.requests)
    assert Request(tasks=4) not in sites[0].demands.requests


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "no column"),
        (HEADING + "\np,1000,1024,0,0,,LS,Pending,0,10,\n", "has no pod that ended within a day"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, text: str, words: str) -> None:
    """The text says what is missing."""
    path = tmp_path / "pods.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PodsError, match=words):
        Pods(path)
