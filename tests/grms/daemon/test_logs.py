import asyncio
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.logs import (
    DEPTH_MAX,
    LIBRARY_ENTRIES_PER_MINUTE,
    SECRET,
    THIRD_PARTIES,
    VALUE_CHARACTERS_MAX,
    LibraryLimit,
    bound,
    configure_logs,
    redact,
)
from grms.daemon.mqtt.link import MqttSettings
from grms.security.authority import generate_key, key_pem


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """Puts the process's logging back as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    levels = {name: logging.getLogger(name).level for name in THIRD_PARTIES}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, each in levels.items():
        logging.getLogger(name).setLevel(each)
    structlog.reset_defaults()


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    """Returns the entries of a log in JSON."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_entry_has_event_site_job_and_cause() -> None:
    """One object a line, with an ISO time in UTC and what is bound."""
    stream = io.StringIO()
    log = configure_logs("KTH", stream=stream)
    log.info("job_kept", job="KTH-1", cause=7, processors=4)
    with bound(job="KTH-2", cause=8):
        with bound(cause=9):
            log.warning("offer_unanswered", partner="CTC")
        log.info("still")
    log.info("after")
    first, second, third, fourth = entries(stream)
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "event": "job_kept",
        "level": "info",
        "site": "KTH",
        "job": "KTH-1",
        "cause": 7,
        "processors": 4,
    }
    assert (second["job"], second["cause"], second["level"]) == ("KTH-2", 9, "warning")
    assert (third["job"], third["cause"]) == ("KTH-2", 8)
    assert "job" not in fourth


async def test_tasks_do_not_mix_what_they_bind() -> None:
    """Two tasks that log at the same time each have their own job."""
    stream = io.StringIO()
    log = configure_logs("KTH", stream=stream)

    async def work(job: str) -> None:
        with bound(job=job):
            for _ in range(3):
                await asyncio.sleep(0)
                log.info("working", expected=job)

    await asyncio.gather(*(work(f"KTH-{number}") for number in range(5)))
    assert len(entries(stream)) == 15
    assert all(entry["job"] == entry["expected"] for entry in entries(stream))


def test_what_is_less_important_is_not_logged() -> None:
    """The level counts for the daemon; libraries speak from warnings on."""
    stream = io.StringIO()
    log = configure_logs("KTH", level="warning", stream=stream)
    log.info("no")
    log.error("yes")
    assert [entry["event"] for entry in entries(stream)] == ["yes"]


def test_libraries_go_the_same_way() -> None:
    """Their warnings become entries of the same form; what is below is left out."""
    stream = io.StringIO()
    configure_logs("KTH", level="debug", stream=stream)
    configure_logs("KTH", level="debug", stream=stream)  # again: still one entry for each
    logging.getLogger("amqtt.broker").info("chatter")
    logging.getLogger("amqtt.broker").warning("client %s is odd", "x")
    (entry,) = entries(stream)
    assert (entry["event"], entry["message"]) == ("library_message", "client x is odd")
    assert (entry["library"], entry["level"], entry["site"]) == ("amqtt.broker", "warning", "KTH")


def test_no_library_fills_the_log() -> None:
    """Of each there are so many entries in a minute; how many more there were is said by the next."""
    now = 100.0
    limit = LibraryLimit(lambda: now)

    def passed(library: str) -> int:
        record = logging.makeLogRecord({"name": library, "msg": "No data"})
        return record.left_out if limit.filter(record) else -1  # type: ignore[attr-defined]  # set by it

    assert [passed("amqtt.broker") for _ in range(1000)].count(0) == LIBRARY_ENTRIES_PER_MINUTE
    assert passed("asyncio") == 0
    now += 59
    assert passed("amqtt.broker") == -1
    now += 1
    assert passed("amqtt.broker") == 1000 - LIBRARY_ENTRIES_PER_MINUTE + 1
    assert passed("amqtt.broker") == 0


def test_a_library_that_complains_without_end_is_cut_short() -> None:
    """The daemon's own entries are not, whatever a library writes."""
    stream = io.StringIO()
    log = configure_logs("KTH", stream=stream)
    for number in range(LIBRARY_ENTRIES_PER_MINUTE + 5):
        logging.getLogger("amqtt.broker").error("No data")
        log.info("own", number=number)
    events = [entry["event"] for entry in entries(stream)]
    assert events.count("library_message") == LIBRARY_ENTRIES_PER_MINUTE
    assert events.count("own") == LIBRARY_ENTRIES_PER_MINUTE + 5


@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_never_get_in(form: Literal["json", "console"]) -> None:
    """Whatever is logged, by name, by value, nested or in a traceback, holds no secret."""
    stream = io.StringIO()
    log = configure_logs("KTH", form=form, stream=stream)
    pem = key_pem(generate_key()).decode()
    body = pem.splitlines()[1]
    log.info(
        "started",
        password="hunter2",
        mqtt={"user": "KTH", "password": "hunter2", "more": [{"api_token": "hunter2"}]},
        settings=MqttSettings(user="KTH", password="hunter2"),
        address="mqtt://KTH:hunter2@localhost:1883",
        text=f"read {pem}",
        half=pem[:60] + body,
        raw=pem.encode(),
        site_key="hunter2",
        key_pem="hunter2",
        Authorization="Bearer hunter2",
    )
    logging.getLogger("library").warning("url http://KTH:hunter2@localhost/")

    def fail(password: str) -> None:
        raise ValueError(f"cannot use {pem} {len(password)}")

    try:
        fail("hunter" + str(2))
    except ValueError:
        log.exception("failed")
    text = stream.getvalue()
    assert "hunter2" not in text
    assert body not in text
    assert text.count(SECRET) >= 10
    assert "ValueError" in text
    assert "localhost:1883" in text


def test_names_that_only_look_like_secrets() -> None:
    """The keys of the protocol are needed in a log and are none."""
    found = redact(None, "", {"idempotency_key": "a", "lrms_key": "b", "keys": 3, "job": "c"})
    assert found == {"idempotency_key": "a", "lrms_key": "b", "keys": 3, "job": "c"}


def test_an_entry_has_a_bound() -> None:
    """Endless and bottomless values are cut; bytes are counted, not shown."""
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(100):
        inner["x"] = {}
        inner = inner["x"]
    found = redact(None, "", {"long": "a" * 10**6, "deep": deep, "payload": b"abc"})
    assert len(found["long"]) == VALUE_CHARACTERS_MAX + 1
    assert str(found["deep"]).count("x") == DEPTH_MAX
    assert found["payload"] == "[3 bytes]"


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize("value", ["a\nforged entry", "a\rforged", "a\x1b[2J", "\x85 \u2028"])
def test_a_value_cannot_forge_an_entry(form: Literal["json", "console"], value: str) -> None:
    """Line ends and control characters in a value, a key or a nested one are written escaped."""
    stream = io.StringIO()
    log = configure_logs("KTH", form=form, stream=stream)
    log.info("submitted", name=value, more=[value], nested={value: value})
    text = stream.getvalue()
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), _VALUES, max_size=3))
def test_anything_can_be_logged(values: dict[str, Any]) -> None:
    """No value, of any type, makes logging fail; each call is one line of JSON."""
    found = redact(None, "", values)
    assert set(json.loads(json.dumps(found))) == set(values)


def test_the_console_is_for_eyes() -> None:
    """The form for terminals has the event and its values on one line."""
    stream = io.StringIO()
    configure_logs("KTH", form="console", stream=stream).info("job_kept", job="KTH-1")
    (line,) = stream.getvalue().splitlines()
    assert "job_kept" in line
    assert "job=KTH-1" in line
    assert "site=KTH" in line


def test_a_process_of_no_site_logs_the_same_way() -> None:
    """No site is bound; secrets stay out, and what libraries write goes the same way."""
    stream = io.StringIO()
    log = configure_logs(stream=stream)
    log.info("site_connected", address="mqtt://user:word@host", password="word", partner="CTC")
    logging.getLogger("library").warning("careful")
    first, second = entries(stream)
    assert (first["partner"], first["password"]) == ("CTC", SECRET)
    assert "word@" not in first["address"]
    assert "site" not in first | second
    assert (second["event"], second["library"]) == ("library_message", "library")


def test_no_other_module_says_how_logs_look() -> None:
    """What is redacted in one daemon is redacted in the other."""
    root = Path(__file__).resolve().parents[3]
    places = [
        str(path.relative_to(root))
        for package in ("lrms_sim", "grms", "broker")
        for path in sorted((root / package).rglob("*.py"))
        if "structlog.configure(" in path.read_text(encoding="utf-8")
    ]
    assert places == ["grms/daemon/logs.py"]
