"""The log of the broker: events with keys and values, as JSON or for eyes, on standard error."""

import logging
import sys
from typing import Any, Literal, TextIO

import structlog


def configure_logs(
    *,
    form: Literal["json", "console"] = "console",
    level: Literal["debug", "info", "warning", "error"] = "info",
    stream: TextIO | None = None,
) -> structlog.typing.FilteringBoundLogger:
    """Sets up the log of this process and returns its logger.

    Args:
        form: for programs or for eyes.
        level: what is written at least.
        stream: where to; standard error where None.
    """
    target = stream or sys.stderr
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=target.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return log
