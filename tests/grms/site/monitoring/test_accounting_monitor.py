"""What exchange has brought, as Prometheus collects it."""

import asyncio
import errno
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from grms.policy.circuit_breaker import CircuitBreaker
from grms.site.accounting import reading
from grms.site.config.schema import SiteConfig
from grms.site.model.commands import Command
from grms.site.model.events import CircuitBreakerLooked, Event
from grms.site.monitoring.accounting_monitor import AccountingMonitor, CircuitBreakerWatch
from grms.site.monitoring.metrics import SiteMetrics
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.journal import Journal
from tests.grms.site.accounting.stories import at_home, at_partner, guest
from tests.grms.site.conversation import Conversation, settings


def watched(folder: Path, hours: float = 1.0) -> tuple[AccountingMonitor, SiteMetrics]:
    """Returns a watch on a site of 8 processors, and its figures."""
    document: dict[str, Any] = {
        "name": "home",
        "processors": 8,
        "listen": {"users": str(folder / "home.sock")},
        "journal": {"path": str(folder / "home.journal")},
        "metrics": {"listen": "127.0.0.1:9464", "exchange_hours": hours},
    }
    settings = SiteConfig.model_validate(document, context={"folder": folder})
    metrics = SiteMetrics(["near"])
    return AccountingMonitor(settings, metrics, structlog.get_logger()), metrics


def figures(metrics: SiteMetrics) -> list[str]:
    """Returns the lines that Prometheus is given of it."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    return [line for line in lines if line.startswith("hanse_exchange")]


def write(folder: Path) -> None:
    """Writes the journal of a site that gives and takes, also with partners of before."""
    with Journal(folder / "home.journal", "home", durability="process") as journal:
        journal.append([*at_home(1, 0.0, 0.0, 60.0, 8), *at_partner(2, 0.0, 0.0, 60.0, 8)])
        journal.append(at_partner(3, 0.0, 0.0, 2.0, 1, partner="gone"))
        journal.append([*guest(1, 0.0, 0.0, 5.0, 2), *guest(2, 0.0, 0.0, 3.0, 1, partner="far")])


def test_figures_are_there_when_they_were_computed(tmp_path: Path) -> None:
    """Not before: there is no AWRT of 0. Partners that are on no list are counted together."""
    watch, metrics = watched(tmp_path)
    write(tmp_path)
    assert figures(metrics) == []
    asyncio.run(watch.look())
    found = dict(line.rsplit(" ", 1) for line in figures(metrics))
    assert float(found.pop('hanse_exchange_wait_seconds{users="with_partners"}')) == 0.0
    assert float(found.pop('hanse_exchange_wait_seconds{users="alone"}')) == 60.0
    awrt = [found.pop(f'hanse_exchange_awrt_seconds{{users="{word}"}}') for word in WORDS]
    assert [float(value) for value in awrt] == pytest.approx([59.88, 90.07], abs=0.01)
    assert {key: float(value) for key, value in found.items()} == {
        'hanse_exchange_work_seconds{partner="near",way="given"}': 480.0,
        'hanse_exchange_work_seconds{partner="near",way="taken"}': 10.0,
        'hanse_exchange_work_seconds{partner="other",way="given"}': 2.0,
        'hanse_exchange_work_seconds{partner="other",way="taken"}': 3.0,
    }


WORDS = ("with_partners", "alone")


def test_a_journal_that_cannot_be_read_ends_nothing(tmp_path: Path) -> None:
    """The log says why; figures of before stay."""
    watch, metrics = watched(tmp_path)
    write(tmp_path)
    asyncio.run(watch.look())
    before = figures(metrics)
    (tmp_path / "home.journal").unlink()
    with capture_logs() as logs:
        asyncio.run(watch.look())
    assert [entry["event"] for entry in logs] == ["exchange_not_known"]
    assert figures(metrics) == before


def test_a_disk_that_fails_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a process without descriptors."""
    watch, metrics = watched(tmp_path)
    write(tmp_path)

    def failing(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(f"{AccountingMonitor.__module__}.exchange_of_site", failing)
    with capture_logs() as logs:
        asyncio.run(watch.look())
    assert [entry["event"] for entry in logs] == ["exchange_not_known"]
    assert figures(metrics) == []


async def test_it_looks_again_and_again_in_another_thread_until_the_daemon_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread notices the end in the middle of a journal."""
    monkeypatch.setattr(reading, "LOOKED_EVERY", 1)
    watch, _ = watched(tmp_path)
    write(tmp_path)
    paused, threads = threading.Event(), set[int]()

    def pause(_: float) -> None:
        threads.add(threading.get_ident())
        paused.set()

    async def sleep(seconds: float) -> None:
        assert seconds == 3600.0

    monkeypatch.setattr(f"{AccountingMonitor.__module__}.time.sleep", pause)
    with monkeypatch.context() as patched:
        patched.setattr(f"{AccountingMonitor.__module__}.asyncio.sleep", sleep)
        task = asyncio.create_task(watch.run())
        assert await asyncio.to_thread(paused.wait, 60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert threads
    assert threading.get_ident() not in threads


def test_it_can_be_left_out(tmp_path: Path) -> None:
    """With 0 hours nothing is ever computed."""
    watch, metrics = watched(tmp_path, hours=0)
    asyncio.run(watch.run())
    assert figures(metrics) == []


class FakeEngine:
    """Is told what the circuit breaker has to know."""

    def __init__(self, circuit_breaker: CircuitBreaker) -> None:
        self.state = Conversation(settings(circuit_breaker=circuit_breaker)).state
        self.told: list[tuple[int, float]] = []

    def new_id(self) -> int:
        """As the engine's."""
        return 1

    def on_event(self, tell: Callable[[Event, Sequence[Command]], None]) -> None:
        """Takes who is told of events."""
        self._tell = tell

    def tell(self, event: CircuitBreakerLooked) -> None:
        """Hands the event over."""
        self.told.append((event.jobs, event.improvement))
        self._tell(event, self.state.handle(event, 0.0))


def guarding(
    folder: Path, circuit_breaker: CircuitBreaker, metrics: SiteMetrics | None = None
) -> tuple[CircuitBreakerWatch, FakeEngine]:
    """Returns a circuit breaker's watch on the journal of `write`, and who is told."""
    engine = FakeEngine(circuit_breaker)
    told = cast("Engine", engine)
    config = watched(folder)[0]._settings
    return CircuitBreakerWatch(
        config, circuit_breaker, told, metrics, structlog.get_logger()
    ), engine


def circuit_breaker_figures(metrics: SiteMetrics) -> dict[str, float]:
    """Returns what Prometheus is given of the circuit breaker."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line.startswith("hanse_circuit_breaker"))
    return {name: float(value) for name, value in found.items()}


def test_the_circuit_breaker_is_told_and_what_it_does_is_shown_and_logged_once(
    tmp_path: Path,
) -> None:
    """Own users of this journal have gained; the circuit breaker's own numbers decide what it makes of that."""
    write(tmp_path)
    metrics = SiteMetrics()
    assert circuit_breaker_figures(metrics) == {}
    watch, engine = guarding(tmp_path, CircuitBreaker(jobs=1), metrics)
    assert (
        circuit_breaker_figures(metrics)["hanse_circuit_breaker_stops"] == 1
    )  # it has not looked yet
    with capture_logs() as logs:
        asyncio.run(watch.look())
        asyncio.run(watch.look())
    [first, second] = engine.told
    assert first == second
    assert first[0] == 3
    assert first[1] == pytest.approx(0.3351, abs=1e-4)
    assert not engine.state.guarded
    assert circuit_breaker_figures(metrics) == {
        "hanse_circuit_breaker_stops": 0,
        "hanse_circuit_breaker_gain_ratio": first[1],
    }
    assert logs == []


def test_what_costs_too_much_stops_until_an_operator_begins_anew(tmp_path: Path) -> None:
    """A loss is logged when it is found, and when it is over; before the moment `since` nothing counts."""
    with Journal(tmp_path / "home.journal", "home", durability="process") as journal:
        # It waits for a guest, where it would have started at once.
        journal.append([*guest(1, 0.0, 0.0, 90.0, 8), *at_home(1, 1.0, 90.0, 10.0, 8)])
    metrics = SiteMetrics()
    watch, engine = guarding(tmp_path, CircuitBreaker(jobs=1), metrics)
    with capture_logs() as logs:
        asyncio.run(watch.look())
        asyncio.run(watch.look())
    assert engine.state.guarded
    assert circuit_breaker_figures(metrics)["hanse_circuit_breaker_stops"] == 1
    assert [(one["event"], one["log_level"]) for one in logs] == [
        ("circuit_breaker_stops_exchange", "warning")
    ]
    assert logs[0]["gain"] == pytest.approx(1 - 99 / 10)
    with Journal(tmp_path / "home.journal", "home", durability="process") as journal:
        journal.append(at_home(2, 200.0, 200.0, 1e4, 8))
    with capture_logs() as logs:
        asyncio.run(watch.look())
    assert [one["event"] for one in logs] == ["circuit_breaker_lets_exchange_go_on"]
    anew, other = guarding(tmp_path, CircuitBreaker(jobs=2, since=100.0))
    asyncio.run(anew.look())
    assert other.told[0][0] == 1
    assert not other.state.guarded


def test_a_circuit_breaker_that_cannot_look_leaves_everything_as_it_is(tmp_path: Path) -> None:
    """At a start nothing is known: no guests. The log says why."""
    watch, engine = guarding(tmp_path, CircuitBreaker())
    with capture_logs() as logs:
        asyncio.run(watch.look())
    assert [entry["event"] for entry in logs] == ["circuit_breaker_cannot_look"]
    assert engine.told == []
    assert engine.state.guarded


def test_the_circuit_breaker_looks_at_the_start_and_then_from_time_to_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the site's clock."""
    write(tmp_path)
    watch, engine = guarding(tmp_path, CircuitBreaker(period=600.0))
    pauses = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise asyncio.CancelledError

    monkeypatch.setattr(f"{CircuitBreakerWatch.__module__}.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watch.run())
    assert pauses == [0.0, 600.0, 600.0]
    assert len(engine.told) == 2
