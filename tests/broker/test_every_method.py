"""Every method of every service at a broker's socket has an answer to whatever it is sent."""

import asyncio
from pathlib import Path

import grpc
import pytest
import structlog
from grpc import aio
from structlog.testing import capture_logs

from broker.config.config import load_config
from broker.daemon import Daemon
from broker.runtime.journal import Journal
from tests.broker.brokers import configure
from tests.every_method import answers_of_every_method, recorded, wrong


async def test_no_method_of_the_broker_meets_an_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workflows, plans, resources, health and reflection; it serves afterwards as before."""
    servers = recorded(monkeypatch)
    config = load_config(configure(tmp_path))
    with capture_logs() as logs, Journal(Path(config.journal.path)) as journal:
        daemon = Daemon(config, journal, structlog.get_logger())
        running = asyncio.create_task(daemon.run())
        ready = asyncio.create_task(daemon.ready.wait())
        await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
        async with aio.insecure_channel(f"unix:{config.listen.socket}") as channel:
            (served,) = servers
            found = await answers_of_every_method(channel, served)
            assert not list(wrong(found))
            assert all(found.values())
            assert len(found) > 12
            assert grpc.StatusCode.OK in found["/grpc.health.v1.Health/Watch"]
        assert not running.done()
        daemon.stop()
        await running
    assert not [each for each in logs if each["event"] == "unexpected_error"]
