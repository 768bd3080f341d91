"""What a site's operators ask and are answered, word by word: see tests/conversations.py."""

from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from grms.kit.ports import free_port
from grms.v1 import operator_pb2
from tests.conversations import Talk
from tests.grms.site.daemons import document, running
from tests.waiting import run, until

FILES = sorted((Path(__file__).parent / "conversations").glob("*.txt"))
MASKS = (
    (r"(now_s|up_time_s): [\d.e+-]+", r"\1: TIME"),
    (r'version: ".*"', 'version: "VERSION"'),
    (r"(journal_records|journal_bytes): \d+", r"\1: COUNT"),
    (r"(last_heard_s): [\d.e+-]+", r"\1: TIME"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"problem: .*", "problem: WHY"),
    (r"/\S*/home\.toml", "home.toml"),
)
"""What is different each time, and nothing else."""


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_conversation_goes_as_it_is_written(path: Path, tmp_path: Path) -> None:
    """Every answer and every refusal is the same, letter by letter."""

    async def scene() -> None:
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
                key, processors, seconds = rest.split()
                try:
                    await site.submit(key, int(processors), run_time_s=float(seconds))
                except aio.AioRpcError:
                    assert site.core.engine.state.draining

            link = site.core.links.links["away"]
            await until(lambda: bool(link.problem))
            async with aio.insecure_channel(site.users_address) as channel:
                await Talk(channel, (operator_pb2,), act, MASKS).check(path)

    run(scene)


def test_every_method_of_operators_is_asked() -> None:
    """A method more needs a word in a conversation."""
    text = "".join(path.read_text() for path in FILES)
    service = operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]
    assert [
        name for name in service.methods_by_name if f"> OperatorService.{name}" not in text
    ] == []
