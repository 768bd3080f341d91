"""A journal goes on under the clock that it was begun with."""

import math
import time
from pathlib import Path
from typing import Any

import pytest
import structlog

from grms.daemon.clock import ScaledClock, VirtualClock, WallClock, ahead_of
from grms.daemon.config_base import ClockConfig
from grms.site.runtime.journal import Journal, JournalError
from grms.site.runtime.site_clock import check_clock, make_clock

LOG = structlog.get_logger()
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
        check_clock(WALL, make_clock(WALL, now), journal, -math.inf, LOG)
        check_clock(WALL, make_clock(WALL, now), journal, now, LOG)
        check_clock(other, make_clock(other, now), journal, -math.inf, LOG)
        check_clock(WALL, make_clock(WALL, now), journal, -math.inf, LOG)
        with pytest.raises(JournalError, match=r"kth\.journal: .*'wall', and .* says") as error:
            check_clock(other, make_clock(other, now), journal, now, LOG)
        assert repr(other.kind) in str(error.value)


def test_a_record_from_the_future_is_gone_on_from(tmp_path: Path) -> None:
    """Up to a day of real time without a question; more where an operator says so."""
    with Journal(tmp_path / "kth.journal", "kth") as journal:
        now = make_clock(SCALED, -math.inf).now()
        for ahead, taken in ((3600.0, True), (86_000.0, True), (87_000.0, False)):
            latest = now + 10.0 * ahead
            clock = make_clock(SCALED, latest)
            assert clock.now() >= latest
            assert ahead_of(clock) == pytest.approx(10.0 * ahead, abs=100.0)
            check_clock(SCALED, clock, journal, latest, LOG, accepted=True)
            if taken:
                check_clock(SCALED, clock, journal, latest, LOG)
                continue
            with pytest.raises(
                JournalError, match=r"the last record is of .* s before it.*--behind"
            ) as error:
                check_clock(SCALED, clock, journal, latest, LOG)
            assert "another journal" not in str(error.value)
        assert ahead_of(make_clock(WALL, time.time() - 1.0)) == 0.0
