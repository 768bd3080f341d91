"""The examples for monitors: they ask for figures that there are, and Prometheus takes them."""

import json
import re
from pathlib import Path

import pytest

from grms.security.handshakes import Handshake
from grms.site.monitoring.accounting_monitor import CircuitBreakerFigures
from grms.site.monitoring.metrics import SiteMetrics
from tests.programs import run_program
from tests.services import need

FOLDER = Path(__file__).resolve().parents[2] / "docs/examples/monitoring"
NAME = re.compile(r"\bhanse_\w+")
LABEL = re.compile(r'(\w+)\s*(?:=~|!=|=)\s*"')


def figures() -> dict[str, set[str]]:
    """Returns what a site has: names as they are asked for, with their labels."""
    metrics = SiteMetrics(["away"])
    metrics.watch_certificate(lambda: 0.0)
    metrics.watch_telemetry(connected=bool, outbox_length=int, dropped=int)
    metrics.offers_sent.labels("away", "accept").inc()
    metrics.offer_latency.labels("away").observe(0.1)
    metrics.offers_received.labels("away", "accept").inc()
    metrics.handshake_failed(next(iter(Handshake)))
    metrics.processors.labels("free").set(1)
    metrics.partners.set_guests("away", 1)
    metrics.partners.set("away", awrt=1.0, open_jobs=1, suspended=False, breaches=0, credit=0.0)
    metrics.job_wait.labels("home").observe(1.0)
    metrics.job_response.labels("home").observe(1.0)
    metrics.jobs_ended.labels("completed").inc()
    CircuitBreakerFigures(metrics.registry)
    found: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def expressions() -> list[str]:
    """Returns what the examples ask Prometheus for."""
    board = json.loads((FOLDER / "grafana-site.json").read_text(encoding="utf-8"))
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = (FOLDER / "hanse.rules.yml").read_text(encoding="utf-8")
    return found + re.findall(r"^ +expr: (.+)$", rules, re.MULTILINE)


def test_every_figure_that_is_asked_for_exists() -> None:
    """By name, and with the labels by which it is chosen."""
    known = figures()
    asked = expressions()
    assert len(asked) > 25
    for expression in asked:
        for name in NAME.findall(expression):
            assert name in known, expression
        for name, chosen in re.findall(r"(hanse_\w+)\{([^}]*)\}", expression):
            labels = set(LABEL.findall(chosen)) - {"instance", "job"}
            assert labels <= known[name], expression


def test_every_alert_says_what_it_means() -> None:
    """With a severity, and in words for who is woken."""
    rules = (FOLDER / "hanse.rules.yml").read_text(encoding="utf-8")
    alerts = rules.split("- alert: ")[1:]
    assert len(alerts) > 5
    for alert in alerts:
        assert re.search(r"severity: (critical|warning|info)", alert), alert
        assert "summary:" in alert
        assert "description:" in alert


def test_panels_of_the_board_do_not_cover_each_other() -> None:
    """On a grid of 24 columns; each has a title and an id of its own."""
    board = json.loads((FOLDER / "grafana-site.json").read_text(encoding="utf-8"))
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        mine = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not mine & cells, panel["title"]
        assert max(x for x, _ in mine) < 24
        cells |= mine
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert all(panel["title"] for panel in board["panels"])


@pytest.mark.services
@pytest.mark.parametrize(
    "command", [["check", "rules", "hanse.rules.yml"], ["test", "rules", "hanse.rules.test.yml"]]
)
def test_prometheus_takes_the_rules(command: list[str]) -> None:
    """And alerts when it should, and not before."""
    program = need("prometheus", "promtool")
    done = run_program([program, *command], cwd=FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr
