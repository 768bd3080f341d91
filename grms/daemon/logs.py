"""The log of a daemon: events with keys and values, as JSON or for people.

Both daemons use it. An entry has an event's name, `site` (at a site), and if applicable `job` and `cause`, the id
of the event that led to it, so that a job can be followed through the log. Secrets are redacted: values that the
key's name or their form identifies, at any depth; private keys and passwords are also excluded from the text of
dataclasses (`repr=False`).
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Literal, TextIO

import structlog

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]

LIBRARY_ENTRIES_PER_MINUTE = 20
"""Most entries per library; strangers may be able to provoke its complaints at will."""

SECRET = "[secret]"  # noqa: S105  # what stands in its place
VALUE_CHARACTERS_MAX = 16_384
"""Longest text of one value; the rest is cut."""

DEPTH_MAX = 6
"""Depth to which lists and mappings in a value are scanned; deeper content is omitted."""

THIRD_PARTIES = ("amqtt", "asyncio", "grpc", "mqtt", "transitions", "websockets")
"""Libraries with logs of their own: logged from warnings on, whatever the daemon's level."""

_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)|secret|token|credential|authorization|private|(^|_)key$|(^|_)pem$",
    re.IGNORECASE,
)
_NO_SECRET = frozenset({"idempotency_key", "lrms_key"})
_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]*:[^/\s@]*(?=@)",
    re.DOTALL,
)
"""Private keys, and user and password in an address."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that could move a terminal's cursor; the renderer escapes line ends."""


def configure_logs(
    site: str | None = None,
    *,
    form: LogFormat = "json",
    level: LogLevel = "info",
    stream: TextIO | None = None,
) -> structlog.typing.FilteringBoundLogger:
    """Sets up the log of this process and returns its logger; a repeated call replaces the set-up.

    Python's standard logging, as used by libraries, is included from warnings on, with a limit (`LibraryLimit`).

    Args:
        site: bound to every entry, if given.
        form: `json` is one object per line; `console` is for people.
        level: least severity logged.
        stream: standard error by default, as usual for services.
    """
    stream = stream if stream is not None else sys.stderr
    given = {} if site is None else {"site": site}
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    )
    # Tracebacks omit the values of variables, which could be anything.
    render: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        redact,
        renderer,
    ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _bind(given), _name_foreign],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    handler.addFilter(LibraryLimit())
    root = logging.getLogger()
    for old in [each for each in root.handlers if getattr(each, "_hanse", False)]:
        root.removeHandler(old)
    handler._hanse = True  # type: ignore[attr-defined]  # noqa: SLF001  # to know it again
    root.addHandler(handler)
    number = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(number)
    for name in THIRD_PARTIES:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger("hanse").bind(**given)
    return logger


class LibraryLimit(logging.Filter):
    """Limits entries per library and minute; the next one says how many were dropped.

    The daemon's own entries always pass. `clock` is in real seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._minutes: dict[str, tuple[float, int, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether an entry is logged."""
        if isinstance(record.msg, dict):
            return True  # structlog's, so the daemon's own
        now = self._clock()
        begin, logged, left_out = self._minutes.get(record.name, (now, 0, 0))
        if now - begin >= 60.0:  # a minute
            begin, logged = now, 0
        if logged >= LIBRARY_ENTRIES_PER_MINUTE:
            self._minutes[record.name] = begin, logged, left_out + 1
            return False
        self._minutes[record.name] = begin, logged + 1, 0
        record.left_out = left_out
        return True


@contextmanager
def bound(*, job: str | None = None, cause: int | str | None = None) -> Iterator[None]:
    """Binds a job and a cause to every entry of this task meanwhile; `None` changes nothing.

    `cause` is the id of the event that leads to the entries.
    """
    values = {"job": job, "cause": cause}
    given = {name: value for name, value in values.items() if value is not None}
    with structlog.contextvars.bound_contextvars(**given):
        yield


def redact(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Returns an entry without secrets and endless values; a processor of structlog."""
    return {
        name: SECRET if _is_secret(name) else _clean(value, DEPTH_MAX)
        for name, value in event.items()
    }


def _is_secret(name: object) -> bool:
    return (
        isinstance(name, str) and name not in _NO_SECRET and _SECRET_NAME.search(name) is not None
    )


def _clean(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if depth == 0:
        return "[…]"
    if isinstance(value, Mapping):
        return {
            _text(name): SECRET if _is_secret(name) else _clean(each, depth - 1)
            for name, each in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(each, depth - 1) for each in value]
    return _text(value)


def _text(value: object) -> str:
    text = _SECRET_VALUE.sub(SECRET, value if isinstance(value, str) else repr(value))
    text = _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[:VALUE_CHARACTERS_MAX] + "…"


def _bind(given: Mapping[str, str]) -> structlog.typing.Processor:
    def bind(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event.update(given)
        return event

    return bind


def _name_foreign(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Gives a library's sentence an event name and keeps the sentence."""
    record = event.get("_record")
    event["library"] = record.name if isinstance(record, logging.LogRecord) else ""
    event["message"] = event["event"]
    event["event"] = "library_message"
    if left_out := getattr(record, "left_out", 0):
        event["left_out"] = left_out
    return event
