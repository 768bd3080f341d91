"""The port itself has no behaviour: its adapters are held against it."""

import inspect
from typing import get_args

from grms.lrms.port import Lrms, LrmsEnded, LrmsEvent, LrmsStarted
from grms.lrms.simulated import SimulatedLrms


def test_the_simulated_adapter_has_the_whole_port() -> None:
    """Every member of the port is there with the same parameters."""
    members = [name for name in vars(Lrms) if not name.startswith("_")]
    assert members == ["submit", "cancel", "lookup", "state", "poll", "next_event_time"]
    for name in members:
        ported, adapted = getattr(Lrms, name), getattr(SimulatedLrms, name)
        if isinstance(ported, property):
            assert isinstance(adapted, property)
            continue
        assert inspect.signature(ported) == inspect.signature(adapted)
        assert inspect.iscoroutinefunction(adapted)


def test_an_event_is_a_start_or_an_end() -> None:
    """Nothing else is told by an LRMS."""
    assert get_args(LrmsEvent) == (LrmsStarted, LrmsEnded)
