import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from scenarios.report import wording, workflows
from scenarios.report.html import render_html
from scenarios.report.terminal import print_result
from scenarios.run.broker_result import BrokerResult
from scenarios.run.replay import run_scenario
from scenarios.run.results import ScenarioResult
from tests.scenarios.ports import ports
from tests.scenarios.towns import HOSTILE, two_towns


@pytest.fixture(scope="module")
def result() -> ScenarioResult:
    """Returns a run of the ports."""
    return run_scenario(ports()).result


@pytest.fixture(scope="module")
def broker(result: ScenarioResult) -> BrokerResult:
    """Returns its broker's part."""
    assert result.broker is not None
    return result.broker


def test_a_scenario_without_broker_has_no_such_part() -> None:
    """Other reports stay as they are."""
    assert workflows.section(two_towns()) == ""
    assert "broker" not in render_html(two_towns())


def test_the_page_has_both_response_times_of_every_site(
    result: ScenarioResult, broker: BrokerResult
) -> None:
    """With and without the broker, and how much longer it is."""
    text = str(workflows.section(result))
    for site in broker.batch:
        assert site.awrt_with is not None
        assert site.awrt_without is not None
        for figure in (wording.seconds(site.awrt_with), wording.seconds(site.awrt_without)):
            assert f"<td>{figure}</td>" in text
        assert wording.change(site.improvement) in text


def test_the_page_has_every_workflow_with_its_limits(
    result: ScenarioResult, broker: BrokerResult
) -> None:
    """A row each; the one that was given up says so, and what is late or dear stands out."""
    text = str(workflows.section(result))
    for each in broker.workflows:
        note = "" if each.state == "simulated" else f" ({each.state})"
        assert f"<span>{each.name}{note}</span>" in text
        assert each.due_date is not None
        assert wording.duration(each.due_date) in text
    assert "(cancelled)" in text
    beyond = sum((each.tardiness > 0) + (each.over_budget > 0) for each in broker.workflows)
    compact = text[text.index('<table class="compact">') :]
    assert compact.count('class="loss"') == beyond


def test_charts_show_batch_jobs_and_tasks_of_each_site(
    result: ScenarioResult, broker: BrokerResult
) -> None:
    """One for each site; every task and the breakdown are there."""
    text = str(workflows.section(result))
    charts = re.findall(r'<svg class="chart gantt".*?</svg>', text, re.DOTALL)
    assert len(charts) == 2
    assert all('"bar job"' in chart and ' deep"' in chart for chart in charts)
    assert sum(chart.count(">batch<title>") for chart in charts) == 2
    titles = set(re.findall(r"<title>(workflow-\d+ / t\d+): ", text))
    assert titles == {f"{each.workflow} / {each.task}" for each in broker.tasks}
    assert "is broken for 33 min 20 s" in text


def test_sentences_count_what_went_wrong(broker: BrokerResult) -> None:
    """All well, late, dear, and given up are told apart."""
    good = tuple(
        replace(each, state="simulated", tardiness=0.0, over_budget=0.0)
        for each in broker.workflows
    )
    assert "all in time and within their budgets:" in workflows.sentence(
        replace(broker, workflows=good)
    )
    bad = (replace(good[0], tardiness=5.0), replace(good[1], over_budget=1.0), *good[2:])
    assert "1 late and 1 over budget:" in workflows.sentence(replace(broker, workflows=bad))
    assert "1 given up or failed" in workflows.sentence(broker)
    batch = replace(broker.batch[0], awrt_without=100.0, awrt_with=150.0)
    assert "−50.0% at visby." in workflows.price_sentence(replace(broker, batch=(batch,)))
    assert workflows.price_sentence(replace(broker, batch=())).startswith("No batch job")


def test_names_are_text_and_never_markup(result: ScenarioResult, broker: BrokerResult) -> None:
    """Names of sites and workflows cannot put elements into the page."""
    names = {each.name: HOSTILE[n % len(HOSTILE)] for n, each in enumerate(broker.workflows)}
    hostile = replace(
        broker,
        batch=tuple(replace(each, name=HOSTILE[0]) for each in broker.batch),
        workflows=tuple(replace(each, name=names[each.name]) for each in broker.workflows),
        tasks=tuple(replace(each, workflow=names[each.workflow]) for each in broker.tasks),
    )
    text = str(workflows.section(replace(result, broker=hostile)))
    assert "<b>Bremen</b>" not in text
    assert "&lt;b&gt;Bremen&lt;/b&gt;" in text


def test_the_terminal_says_it_in_80_columns(result: ScenarioResult, broker: BrokerResult) -> None:
    """The sentence and a row for each site."""
    console = Console(file=io.StringIO(), width=80)
    print_result(console, result)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert " ".join(workflows.sentence(broker).split()) in " ".join(text.split())
    for site in broker.batch:
        assert site.awrt_with is not None
        assert wording.seconds(site.awrt_with) in text
