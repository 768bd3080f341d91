"""Policies of users in a daemon: what goes wrong in one is said, and jobs go on."""

import sys
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.policy.location import PartnerRecord, UserDefinedLocation
from grms.policy.transfer import UserDefinedTransfer, compiled_transfer
from grms.site.config.python_policies import (
    FAILURES_SAID_MAX,
    LONGEST_FAILURE,
    CarefulLocation,
    CarefulTransfer,
)
from grms.v1 import request_pb2
from tests.grms.site.daemons import document, running
from tests.waiting import run


def fails(*_: Any) -> Any:
    """Raises."""
    raise RuntimeError("no idea")


def answer(policy: Any, *, own: bool) -> bool:
    """Returns what a policy says of a job of one processor on an idle machine of four."""
    return compiled_transfer(policy).accept(
        1, processors=4, processors_free=4, processors_waiting=0, own=own
    )


def test_a_transfer_policy_that_fails_keeps_own_jobs_alone() -> None:
    """It is said once; a policy that does not fail is asked as it is."""
    with capture_logs() as logs:
        policy = UserDefinedTransfer(CarefulTransfer(UserDefinedTransfer(fails)))
        assert [answer(policy, own=own) for own in (True, False, True)] == [True, False, True]
    assert [(each["event"], each["error"]) for each in logs] == [
        ("policy_failed", "RuntimeError: no idea")
    ]
    good = CarefulTransfer(UserDefinedTransfer(lambda question: not question.own))
    assert [answer(good, own=own) for own in (True, False)] == [False, True]


def test_a_transfer_policy_that_answers_neither_yes_nor_no_fails() -> None:
    """As one that raises: own jobs stay, partners' are declined, and the log has what it said."""
    with capture_logs() as logs:
        policy = CarefulTransfer(UserDefinedTransfer(lambda _: None))
        assert [answer(policy, own=own) for own in (True, False)] == [True, False]
    (entry,) = logs
    assert entry["error"].startswith(
        "TypeError: transfer policy '<lambda>' has answered None; it must be"
    )


def test_a_policy_cannot_end_the_daemon() -> None:
    """Nor can an error that says nothing of itself, or very much, keep it from deciding."""

    class WordlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    for mistake, said in (
        (SystemExit(3), "SystemExit: 3"),
        (WordlessError(), "WordlessError"),
        (ValueError("x" * 10_000), f"ValueError: {'x' * 10_000}"[:LONGEST_FAILURE]),
    ):

        def wrong(_: Any, mistake: BaseException = mistake) -> Any:
            raise mistake

        with capture_logs() as logs:
            assert answer(CarefulTransfer(UserDefinedTransfer(wrong)), own=True)
            location = CarefulLocation(UserDefinedLocation(wrong))
            assert location.ask([PartnerRecord("b", 0.0, 0.0)]) == ["b"]
        assert [each["error"] for each in logs] == [said, said]


def test_no_log_is_filled_by_a_policy() -> None:
    """Errors that are all different are said up to a number."""
    count = iter(range(10 * FAILURES_SAID_MAX))

    def other(_: Any) -> bool:
        raise ValueError(next(count))

    with capture_logs() as logs:
        policy = CarefulTransfer(UserDefinedTransfer(other))
        for _ in range(2 * FAILURES_SAID_MAX):
            answer(policy, own=True)
    assert len(logs) == FAILURES_SAID_MAX


@pytest.mark.parametrize(
    "wrong",
    [
        fails,
        lambda _: ["x"],
        lambda _: ["b", "b"],
        lambda _: 3,
        lambda _: "ab",
        lambda _: cycle("b"),
        lambda _: cycle("ba"),
    ],
)
def test_a_location_policy_that_fails_asks_all_in_order(wrong: Any) -> None:
    """Also one that names who is no partner, or names nobody as it should, or never stops naming."""
    partners = [PartnerRecord("b", 0.0, 0.0), PartnerRecord("a", 0.0, 0.0)]
    with capture_logs() as logs:
        policy = UserDefinedLocation(CarefulLocation(UserDefinedLocation(wrong)))
        assert policy.asking_order(partners) == ["b", "a"]
    assert [each["kind"] for each in logs] == ["location"]
    good = CarefulLocation(UserDefinedLocation(lambda _: ["a"]))
    assert good.ask(partners) == ["a"]


def test_a_daemon_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its user's job runs at home, although the policy for the partner only raises."""
    (tmp_path / "bad_policies.py").write_text(
        "def never(question):\n    raise RuntimeError('no idea')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    home = document(tmp_path, partners={"away": free_port()})
    home["partners"][0]["transfer"] = "bad_policies:never"

    async def scene() -> None:
        async with running(home, tmp_path) as site:
            job = await site.submit("one", run_time_s=0.05)
            ended = await site.ended(job.job_id)
            assert (ended.outcome, ended.executed_on) == (request_pb2.OUTCOME_COMPLETED, "home")

    try:
        run(scene)
    finally:
        sys.modules.pop("bad_policies", None)
