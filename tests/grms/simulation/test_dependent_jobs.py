"""Arrays and dependent jobs in the fault test, and whether it would find what is wrong with them."""

from collections.abc import Callable
from typing import Any

import pytest

from grms.simulation.fault_run import run_trial
from grms.site.model import held_jobs
from grms.site.model.held_jobs import HeldJobBook, JobArray
from tests.examples import runs
from tests.grms.site.model.test_compaction import compacting


@pytest.mark.parametrize("chunk", range(runs(1, 20)))
@pytest.mark.parametrize(
    "how",
    [{}, {"reoffers": True}, {"rails": True}, {"factory": compacting}],
    ids=lambda how: next(iter(how), "plain"),
)
def test_each_runs_once_and_in_order(chunk: int, how: dict[str, Any]) -> None:
    """Whatever dies, at home, at a partner or elsewhere; and much of it happens."""
    held = hopeless = delegated = crashes = 0
    for seed in range(30 * chunk, 30 * (chunk + 1)):
        verdict = run_trial(seed, arrays=True, **how)
        assert verdict.problems == (), f"--seed {seed} --arrays, {how}"
        held += verdict.held
        hopeless += verdict.hopeless
        delegated += verdict.delegated
        crashes += verdict.crashes
    assert held > 400
    assert hopeless > 120
    assert delegated > 40
    assert crashes > 100


def _everything(*_: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (JobArray, "has_room", property(_everything)),
        (held_jobs, "_satisfies", lambda _, **__: True),
        (HeldJobBook, "_met", _everything),
        (HeldJobBook, "_settle_all", lambda *_, **__: None),
    ],
    ids=["no limit", "any end will do", "nothing is waited for", "nothing is noticed"],
)
def test_what_is_wrong_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrong: Callable[..., Any]
) -> None:
    """A site that lacks one of the precautions does not pass."""
    monkeypatch.setattr(owner, name, wrong)
    found = 0
    for seed in range(6):
        try:
            found += bool(run_trial(seed, arrays=True).problems)
        except AssertionError:  # the site's own checks have noticed
            found += 1
    assert found
