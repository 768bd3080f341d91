"""The log of a daemon: events with keys and values, as JSON or for eyes.

Both daemons log this way. An entry has an event's name, `site` (at a site), and where they apply
`job` and `cause`, the id of the event that led to it, so that one can follow a job through the log. Secrets do not get in: what a key's
name or a value's form gives away as one is replaced, however deep it sits, and private keys and
passwords are kept out of the text of dataclasses as well (`repr=False`).
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
"""Entries of one library that are logged; strangers may be what it complains of, as often as they like."""

SECRET = "[secret]"  # noqa: S105  # what stands in its place
VALUE_CHARACTERS_MAX = 16_384
"""Longest text of one value; the rest is cut."""

DEPTH_MAX = 6
"""How deep lists and mappings in a value are looked into; what is deeper is left out."""

THIRD_PARTIES = ("amqtt", "asyncio", "grpc", "mqtt", "transitions", "websockets")
"""Libraries that log by themselves: from warnings on, whatever the daemon's own level."""

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
"""What could move a terminal's cursor; line ends are escaped by what renders an entry."""


def configure_logs(
    site: str | None = None,
    *,
    form: LogFormat = "json",
    level: LogLevel = "info",
    stream: TextIO | None = None,
) -> structlog.typing.FilteringBoundLogger:
    """Sets up the log of this process and returns its logger.

    What libraries write to Python's own logging goes the same way, from warnings on, and not without
    bound (`LibraryLimit`). Calling it again replaces what was set up before.

    Args:
        site: bound to every entry; None for a process that is no site's.
        form: `json` is one object a line; `console` is for eyes.
        level: what is less important is not logged.
        stream: where to; standard error by default, as services have it.
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
    # A traceback is text without the values of variables: those could be anything.
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
    """Lets through only so many entries of each library in a minute; the next one says how many were left out.

    What the daemon itself logs always passes.

    Args:
        clock: tells real seconds.
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
    """Binds a job and a cause to every entry of this task meanwhile.

    Args:
        job: the job's name; None leaves it as it is.
        cause: id of the event that leads to what happens; None leaves it as it is.
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
    """Gives what a library wrote as a sentence an event's name and keeps the sentence."""
    record = event.get("_record")
    event["library"] = record.name if isinstance(record, logging.LogRecord) else ""
    event["message"] = event["event"]
    event["event"] = "library_message"
    if left_out := getattr(record, "left_out", 0):
        event["left_out"] = left_out
    return event
