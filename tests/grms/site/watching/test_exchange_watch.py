"""What exchange has brought, as Prometheus collects it."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import structlog
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from grms.site.care import reading
from grms.site.configuration.config import SiteConfig
from grms.site.engine.journal import Journal
from grms.site.watching.exchange_watch import ExchangeWatch
from grms.site.watching.metrics import SiteMetrics
from tests.grms.site.care.stories import at_home, at_partner, guest


def watched(folder: Path, hours: float = 1.0) -> tuple[ExchangeWatch, SiteMetrics]:
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
    return ExchangeWatch(settings, metrics, structlog.get_logger()), metrics


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


def test_it_looks_again_and_again_in_another_thread_until_the_daemon_ends(
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

    monkeypatch.setattr(f"{ExchangeWatch.__module__}.time.sleep", pause)

    async def scene() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(f"{ExchangeWatch.__module__}.asyncio.sleep", sleep)
            task = asyncio.create_task(watch.run())
            assert await asyncio.to_thread(paused.wait, 60)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scene())
    assert threads
    assert threading.get_ident() not in threads


def test_it_can_be_left_out(tmp_path: Path) -> None:
    """With 0 hours nothing is ever computed."""
    watch, metrics = watched(tmp_path, hours=0)
    asyncio.run(watch.run())
    assert figures(metrics) == []
