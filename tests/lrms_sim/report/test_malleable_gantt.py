from xml.etree import ElementTree as ET  # our own pictures

import pytest

from lrms_sim.malleable.log import Allocation, AllocationLog
from lrms_sim.malleable.machine import simulate
from lrms_sim.malleable.model import PaperModel
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import POLICIES
from lrms_sim.report.malleable_gantt import draw, row


def sample(processors: int | tuple[int, ...] = 24) -> AllocationLog:
    """Returns the log of a run in which jobs are suspended and squeezed."""
    log = simulate(
        PaperModel(0.3).draw(200, 5),
        processors,
        POLICIES["both-aggressive"],
        options=MachineOptions(step=1.0),
        log=True,
    ).log
    assert log is not None
    return log


def test_bars_hold_what_the_stretches_hold() -> None:
    """No processor is held twice at one time, and none is left out."""
    log = sample()
    allocations = log.allocations()
    drawn = row(log, allocations, 24, 1.0).bars
    assert sum(round(bar.height) for bar in drawn) == sum(each.processors for each in allocations)
    for moment in {each.start for each in allocations}:
        held = [
            place
            for bar in drawn
            if bar.begin <= moment < bar.end
            for place in range(round(bar.top), round(bar.top + bar.height))
        ]
        running = [each for each in allocations if each.start <= moment < each.end]
        assert len(held) == len(set(held)) == sum(each.processors for each in running)
        assert not held or (min(held) >= 0 and max(held) < 24)


def test_too_many_processors_cannot_be_drawn() -> None:
    """A log that gives what is not there is found out."""
    allocations = [Allocation(0, 0, 0.0, 9.0, 4, "end"), Allocation(1, 0, 1.0, 2.0, 5, "end")]
    with pytest.raises(ValueError, match="job 1 finds 4 of 5 processors"):
        row(sample(), allocations, 8, 1.0)


def test_suspensions_and_squeezed_stretches_can_be_seen() -> None:
    """Each squeezed bar is hatched, and each suspension that ended has its line."""
    log = sample()
    picture = draw(log, title="A <run> & more")
    ET.fromstring(picture)  # noqa: S314  # our own picture
    assert "A &lt;run&gt; &amp; more" in picture
    allocations = log.allocations()
    shown = row(log, allocations, 24, 1.0)
    less = [bar for bar in shown.bars if bar.kind == "less"]
    assert picture.count('fill="url(#run-less)"') == len(less) > 0
    assert picture.count('class="wait"') == len(shown.links) > 0
    assert "<title>job " in picture


def test_two_machines_stand_above_each_other() -> None:
    """Each has its own axis."""
    assert draw(sample((24, 12)), title="two").count('class="room"') == 2


def test_a_span_is_cut_out_of_a_run() -> None:
    """Less is drawn of less time, the same bytes each time; an empty span is refused."""
    log = sample()
    whole, part = draw(log, title="x"), draw(log, title="x", begin=20.0, end=60.0)
    assert part == draw(log, title="x", begin=20.0, end=60.0)
    assert 0 < part.count("<rect") < whole.count("<rect")
    with pytest.raises(ValueError, match="from 60 to 60; it must be upward"):
        draw(log, title="x", begin=60.0, end=60.0)
