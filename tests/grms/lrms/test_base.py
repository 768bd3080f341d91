"""The port itself has no behaviour but its words."""

import inspect
from typing import get_args, get_type_hints

from grms.lrms import base
from grms.lrms.base import (
    Lrms,
    LrmsError,
    LrmsEvent,
    LrmsLoad,
    LrmsRefusedError,
    LrmsSnapshot,
    LrmsUnavailableError,
)

AT_ONCE = {"encode", "listen", "remembers"}
"""What does not reach outside the process."""


def test_whatever_reaches_outside_can_be_awaited() -> None:
    """Every other member of the port is a coroutine, so that none can stop the event loop."""
    members = {name for name in vars(Lrms) if not name.startswith("_")}
    asynchronous = {name for name in members if inspect.iscoroutinefunction(getattr(Lrms, name))}
    assert members - asynchronous == AT_ONCE


def test_an_error_has_its_reason() -> None:
    """As text and as attribute; both kinds are errors of the batch system."""
    for kind in (LrmsRefusedError, LrmsUnavailableError):
        error = kind("no such queue")
        assert isinstance(error, LrmsError)
        assert str(error) == error.reason == "no such queue"
    assert not issubclass(LrmsRefusedError, LrmsUnavailableError)


def test_an_event_names_its_job() -> None:
    """All events but those about the batch system as a whole have the key first."""
    of_all = {base.LoadSeen, base.Away, base.Back}
    for kind in set(get_args(LrmsEvent)) - of_all:
        assert next(iter(get_type_hints(kind))) == "key"
    assert all("key" not in get_type_hints(kind) for kind in of_all)


def test_a_snapshot_has_its_load() -> None:
    """The three numbers and their moment are the same."""
    assert LrmsSnapshot(7.0, 4, 1, 9, {}).load == LrmsLoad(7.0, 4, 1, 9)
