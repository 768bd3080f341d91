"""A journal goes on under the clock that it was begun with."""

import math
import time
from pathlib import Path
from typing import Any

import pytest

from grms.site.configuration.config import ClockConfig
from grms.site.engine.clock import ScaledClock, VirtualClock, WallClock
from grms.site.engine.journal import Journal, JournalError
from grms.site.engine.site_clock import check_clock, make_clock

WALL = ClockConfig()
SCALED = ClockConfig(kind="scaled", speed=10.0, origin=1000.0)
VIRTUAL = ClockConfig(kind="virtual")


def test_the_clock_is_the_configured_one() -> None:
    """Real, scaled or told time; a virtual clock begins where it is told to."""
    assert isinstance(make_clock(WALL, 5.0), WallClock)
    assert isinstance(make_clock(SCALED, 5.0), ScaledClock)
    clock = make_clock(VIRTUAL, 5.0)
    assert isinstance(clock, VirtualClock)
    assert clock.now() == 5.0


@pytest.mark.parametrize("other", [SCALED, VIRTUAL], ids=["scaled", "virtual"])
def test_a_journal_of_another_clock_is_refused(tmp_path: Path, other: Any) -> None:
    """Both kinds and the file are named, once there is a record; a new journal takes any."""
    with Journal(tmp_path / "kth.journal", "kth") as journal:
        now = time.time()
        check_clock(WALL, make_clock(WALL, now), journal, -math.inf)
        check_clock(WALL, make_clock(WALL, now), journal, now)
        check_clock(other, make_clock(other, now), journal, -math.inf)
        check_clock(WALL, make_clock(WALL, now), journal, -math.inf)
        with pytest.raises(JournalError, match=r"kth\.journal: .*'wall', and .* says") as error:
            check_clock(other, make_clock(other, now), journal, now)
        assert repr(other.kind) in str(error.value)


def test_a_record_from_the_future_is_refused(tmp_path: Path) -> None:
    """A clock that is a little behind is taken, one that is far behind is not."""
    with Journal(tmp_path / "kth.journal", "kth") as journal:
        clock = make_clock(SCALED, 0.0)
        check_clock(SCALED, clock, journal, clock.now() + 2000.0)
        with pytest.raises(JournalError, match=r"the last record is of .* s before it"):
            check_clock(SCALED, clock, journal, clock.now() + 4000.0)
