"""What a site's operators and partners ask and are answered, word by word: see tests/conversations.py."""

from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from grms.daemon.ports import free_port
from grms.v1 import operator_pb2, partner_pb2
from tests.conversations import Talk
from tests.grms.site.daemons import document, running
from tests.waiting import until

FILES = Path(__file__).parent / "conversations"
MASKS = (
    (r"(now_s|up_time_s): [\d.e+-]+", r"\1: TIME"),
    (r'version: ".*"', 'version: "VERSION"'),
    (r"instance: \d+", "instance: NUMBER"),
    (r"(journal_records|journal_bytes): \d+", r"\1: COUNT"),
    (r"(last_heard_s|end_time_s): [\d.e+-]+", r"\1: TIME"),
    (r'month: "\d{4}-\d\d"', 'month: "MONTH"'),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"problem: .*", "problem: WHY"),
    (r"details: .*", "details: DETAILS"),
    (r"/\S*/home\.toml", "home.toml"),
)
"""What is different each time, and nothing else."""


@pytest.mark.parametrize("who", ["operator", "partner"])
async def test_a_conversation_goes_as_it_is_written(who: str, tmp_path: Path) -> None:
    """Every answer and every refusal is the same, letter by letter."""
    port = free_port()
    quiet: dict[str, Any] = {"mqtt": {"enabled": False}}
    configuration = document(tmp_path, partners={"away": free_port()}, port=port, **quiet)
    async with running(configuration, tmp_path) as site:
        config = tmp_path / "home.toml"
        good = config.read_text()

        async def act(line: str) -> None:
            word, _, rest = line.partition(" ")
            if word == "configure":
                config.write_text(f"{good}{rest}\n")
                return
            if word == "free":
                load = site.core.engine.load()
                assert load is not None
                assert load.processors_free == int(rest)
                return
            key, processors, seconds = rest.split()
            try:
                await site.submit(key, int(processors), run_time_s=float(seconds))
            except aio.AioRpcError:
                assert site.core.engine.state.draining

        link = site.core.links.links["away"]
        await until(lambda: bool(link.problem))
        if who == "partner":
            site.reach("away")
        address = site.users_address if who == "operator" else f"127.0.0.1:{port}"
        async with aio.insecure_channel(address) as channel:
            talk = Talk(channel, (operator_pb2, partner_pb2), act, MASKS)
            await talk.check(FILES / f"{who}.txt")


def test_every_method_of_operators_is_asked() -> None:
    """A method more needs a word in a conversation."""
    text = (FILES / "operator.txt").read_text()
    service = operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]
    assert [
        name for name in service.methods_by_name if f"> OperatorService.{name}" not in text
    ] == []
