"""The provider over a site that fails in all ways, and over two simulated sites."""

import asyncio
import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from parsl.jobs.states import JobState
from parsl.providers.errors import SubmitException

from grms.client import (
    Job,
    JobPhase,
    Outcome,
    ResultFile,
    Results,
    SiteError,
)
from grms.client import JobState as SiteState
from lrms_sim.workload.requests import Gpus, Memory
from parsl_provider_hanse import HanseProvider
from tests.fake_client import FakeClient
from tests.grms.site.daemons import two_sites


class FakeSite(FakeClient):
    """What the provider calls of `SyncClient`."""

    def __init__(self) -> None:
        super().__init__()
        self.complete = True

    def submit(self, **wanted: Any) -> Job:
        """Takes a job."""
        self.called("submit")
        if wanted["needs"].partition == "none":
            raise SiteError("INVALID_ARGUMENT", "there is no such partition")
        job = self.take(wanted)
        self.lose()
        return job

    def results(self, _: str) -> Results:
        """Returns what a job has left."""
        self.called("results")
        said = ResultFile("stdout", 4, hashlib.sha256(b"said").digest(), "")
        return Results((said, ResultFile("stderr", 0, b"", "missing")), self.complete, "")

    def fetch(self, _: str, name: str, offset_bytes: int = 0) -> Iterator[bytes]:
        """Yields a file."""
        assert name == "stdout"
        yield b"said"[offset_bytes:]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    made = FakeSite()
    monkeypatch.setattr("parsl_provider_hanse.provider.SyncClient", made)
    monkeypatch.setenv("HANSE_SOCKET", "users.sock")
    return made


def states(provider: HanseProvider, *blocks: object) -> list[JobState]:
    return [each.state for each in provider.status(blocks)]


def test_a_block_asks_for_what_the_provider_says(site: FakeSite) -> None:
    """With Parsl's variables, and the launcher's lines behind the user's."""
    provider = HanseProvider(
        sites=["kth"],
        nodes_per_block=2,
        cores_per_node=8,
        mem_per_node=1.5,
        gpus_per_node=1,
        walltime="01:02:03",
        partition="p",
        account="a",
        qos="q",
        constraint="x&y",
        worker_init="module load parsl",
    )
    assert provider.submit("work", 2, "block") == "home-1"
    wanted = site.wanted["home-1"]
    assert wanted["script"].splitlines() == [
        "#!/bin/bash",
        "export PARSL_CORES=4",
        "export PARSL_MEMORY_GB=1.5",
        "module load parsl",
        "launch 4 work",
    ]
    needs = wanted["needs"]
    assert (needs.tasks, needs.cores_per_task, needs.tasks_per_node) == (4, 4, 2)
    assert (needs.nodes_min, needs.nodes_max, needs.exclusive) == (2, 2, False)
    assert (needs.memory, needs.gpus) == (Memory(1536, "node"), Gpus(1, "node"))
    assert (needs.partition, needs.account, needs.qos) == ("p", "a", "q")
    assert (needs.features, needs.wall_time) == (("x", "y"), 3723.0)
    assert (wanted["name"], wanted["sites"], wanted["home_only"]) == ("block", ["kth"], False)


@pytest.mark.parametrize(
    ("options", "home_only"),
    [({}, True), ({"home_only": False}, False), ({"sites": ["a"], "home_only": True}, True)],
)
def test_blocks_stay_at_home_unless_told(
    site: FakeSite, options: dict[str, Any], home_only: bool
) -> None:
    """And have whole nodes unless cores are given, as Parsl then uses all that a node has."""
    HanseProvider(**options).submit("work", 1)
    assert site.wanted["home-1"]["home_only"] is home_only
    assert site.wanted["home-1"]["needs"].exclusive


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"state": SiteState.HELD}, JobState.PENDING),
        ({"state": SiteState.DELEGATED}, JobState.PENDING),
        ({"state": SiteState.DELEGATED, "phase": JobPhase.WAITING}, JobState.PENDING),
        ({"state": SiteState.DELEGATED, "phase": JobPhase.RUNNING}, JobState.RUNNING),
        ({"state": SiteState.DELEGATED, "phase": JobPhase.COMPLETING}, JobState.RUNNING),
        ({"state": SiteState.RUNNING}, JobState.RUNNING),
        ({"state": SiteState.RUNNING, "phase": JobPhase.SUSPENDED}, JobState.HELD),
    ],
)
def test_a_block_has_started_or_not_wherever_it_is(
    site: FakeSite, change: dict[str, Any], state: JobState
) -> None:
    """While its site cannot be asked it stays what it was."""
    provider = HanseProvider()
    block = provider.submit("work", 1)
    site.change("home-1", **change)
    assert states(provider, block) == [state]
    site.change("home-1", state=SiteState.SUSPECT, phase=None)
    assert states(provider, block) == [state]


def test_every_end_has_parsls_word(site: FakeSite, tmp_path: Path) -> None:
    """With the reason, the exit code and what the block has printed; nothing is asked twice."""
    provider = HanseProvider()
    provider.script_dir = str(tmp_path)
    ends: list[tuple[Outcome, dict[str, Any], JobState]] = [
        (Outcome.COMPLETED, {"exit_code": 0}, JobState.COMPLETED),
        (Outcome.COMPLETED, {"exit_code": 1}, JobState.FAILED),
        (Outcome.FAILED, {"exit_code": 3}, JobState.FAILED),
        (Outcome.CANCELLED, {}, JobState.CANCELLED),
        (Outcome.TIMEOUT, {}, JobState.TIMEOUT),
        (Outcome.PREEMPTED, {}, JobState.TIMEOUT),
        (Outcome.NODE_FAIL, {}, JobState.FAILED),
        (Outcome.NOT_RUN, {}, JobState.FAILED),
        (Outcome.UNKNOWN, {}, JobState.FAILED),
    ]
    blocks = [provider.submit("work", 1) for _ in ends]
    for block, (outcome, more, _) in zip(blocks, ends, strict=True):
        site.end(str(block), outcome, start_time_s=1.0, **more)
    found = provider.status(blocks)
    assert [each.state for each in found] == [state for _, _, state in ends]
    assert [each.exit_code for each in found[:3]] == [0, 1, 3]
    assert found[2].message == "Job home-3 ended with exit code 3."
    assert found[0].message is None
    assert Path(found[2].stdout_path or "").read_text() == "said"
    assert found[2].stderr_path is None
    site.calls.clear()
    found[2].state = JobState.MISSING  # as an executor does
    assert states(provider, *blocks) == [state for _, _, state in ends]
    assert site.calls == []


def test_what_was_printed_comes_when_it_is_there(site: FakeSite, tmp_path: Path) -> None:
    """A partner may still send it."""
    provider = HanseProvider()
    provider.script_dir = str(tmp_path)
    block = provider.submit("work", 1)
    site.end("home-1", Outcome.FAILED, exit_code=1, start_time_s=1.0)
    site.complete = False
    assert provider.status([block])[0].stdout_path is None
    site.complete = True
    assert provider.status([block])[0].stdout_path == str(tmp_path / "home-1/stdout")


def test_a_cancel_before_the_start_is_no_failure(site: FakeSite) -> None:
    """An executor would call every other end of a block without workers one; a block that ran is cancelled."""
    provider = HanseProvider()
    blocks = [provider.submit("work", 1) for _ in range(3)]
    site.end("home-2", Outcome.CANCELLED, start_time_s=1.0)
    del site.jobs["home-3"]
    assert provider.cancel(blocks) == [True, True, True]
    assert site.calls.count("cancel_many") == 1
    assert states(provider, *blocks) == [JobState.SCALED_IN, JobState.CANCELLED, JobState.FAILED]


def test_a_lost_answer_makes_no_second_block(site: FakeSite) -> None:
    """The same key goes again, for as long as it takes; a block with a lost answer can be cancelled."""
    provider = HanseProvider()
    site.loses = True
    blocks = [provider.submit("work", 1), provider.submit("work", 1)]
    assert all(str(each).startswith("parsl-") for each in blocks)
    assert states(provider, *blocks) == [JobState.PENDING] * 2
    assert provider.cancel(blocks[:1]) == [True]
    site.loses = False
    assert states(provider, *blocks) == [JobState.SCALED_IN, JobState.PENDING]
    site.change("home-2", state=SiteState.RUNNING)
    assert states(provider, *blocks) == [JobState.SCALED_IN, JobState.RUNNING]
    assert len(site.jobs) == 2


def test_a_site_that_is_away_is_waited_for(
    site: FakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    """Blocks stay as they were, nothing is cancelled, and it is said once; what it never had is handed in when it is back."""
    provider = HanseProvider()
    running = provider.submit("work", 1)
    site.change("home-1", state=SiteState.RUNNING)
    assert states(provider, running) == [JobState.RUNNING]
    site.is_away = True
    new = provider.submit("work", 1)
    assert states(provider, running, new) == [JobState.RUNNING, JobState.PENDING]
    assert len(caplog.records) == 1
    assert provider.cancel([running, new]) == [False, False]
    site.is_away = False
    assert states(provider, running, new) == [JobState.RUNNING, JobState.PENDING]
    assert len(site.jobs) == 2


def test_a_block_that_never_came_to_the_site_is_cancelled_here(site: FakeSite) -> None:
    provider = HanseProvider()
    site.is_away = True
    block = provider.submit("work", 1)
    site.is_away = False
    assert provider.cancel([block]) == [True]
    assert states(provider, block) == [JobState.SCALED_IN]
    assert not site.jobs


def test_what_is_refused_is_said(site: FakeSite) -> None:
    """At once, and also of a block that the site answers for later."""
    with pytest.raises(SubmitException, match="no such partition"):
        HanseProvider(partition="none").submit("work", 1)
    provider = HanseProvider(partition="none")
    site.is_away = True
    block = provider.submit("work", 1)
    site.is_away = False
    (found,) = provider.status([block])
    assert found.state is JobState.FAILED
    assert "no such partition" in (found.message or "")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sites": "kth"}, "must be a list"),
        ({"walltime": "10"}, "HH:MM:SS"),
        ({"walltime": "00:00:00"}, "more than 0"),
        ({"nodes_per_block": 0}, "tasks"),
        ({"mem_per_node": 0}, "memory"),
    ],
)
def test_what_no_site_could_take_is_refused_at_once(
    site: FakeSite, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        HanseProvider(**options)
    assert not site.calls


def test_a_site_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANSE_SOCKET", raising=False)
    with pytest.raises(ValueError, match="no site is named"):
        HanseProvider()


async def test_blocks_run_at_the_sites_they_are_pinned_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two simulated sites: one block at each, and one that waits and is cancelled before its start."""
    monkeypatch.setattr("grms.site.peers.progress.INTERVAL_S", 0.05)
    one = {"processors": 1}
    async with two_sites(tmp_path, one, one) as (_, away):
        make = partial(HanseProvider, str(tmp_path / "home.sock"), cores_per_node=1)
        home, partner = make(home_only=True), make(sites=["away"])
        first = await asyncio.to_thread(home.submit, "work", 1)
        other = await asyncio.to_thread(partner.submit, "work", 1)
        waits = await asyncio.to_thread(home.submit, "work", 1)

        async def states_of() -> list[JobState]:
            found = await asyncio.to_thread(home.status, [first, waits])
            found += await asyncio.to_thread(partner.status, [other])
            return [each.state for each in found]

        expected = [JobState.RUNNING, JobState.PENDING, JobState.RUNNING]
        while await states_of() != expected:  # noqa: ASYNC110  # Parsl asks, too
            await asyncio.sleep(0.02)
        assert len(away.core.engine.state.partners["home"].guests) == 1
        assert await asyncio.to_thread(home.cancel, [waits, first]) == [True, True]
        assert await asyncio.to_thread(partner.cancel, [other]) == [True]

        expected = [JobState.CANCELLED, JobState.SCALED_IN, JobState.CANCELLED]
        while await states_of() != expected:  # noqa: ASYNC110  # same
            await asyncio.sleep(0.02)
