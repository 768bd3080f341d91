import pytest

from lrms_sim.scheduling.disciplines import DISCIPLINES, Easy, discipline_by_name
from tests.oracles.disciplines import PASSES


@pytest.mark.parametrize("name", DISCIPLINES)
def test_every_discipline_is_found_by_its_own_name(name: str) -> None:
    """The name in files and on the command line is the discipline's."""
    assert discipline_by_name(name).name == name


@pytest.mark.parametrize("name", DISCIPLINES)
def test_every_machine_gets_a_scheduler_of_its_own(name: str) -> None:
    """Schedulers hold notes and are never shared."""
    discipline = discipline_by_name(name)
    assert discipline.scheduler() is not discipline.scheduler()


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    """The error lists what one can say."""
    with pytest.raises(ValueError, match="unknown discipline 'srpt'; there are: fcfs, list, easy"):
        discipline_by_name("srpt")


def test_passes_per_event_are_said_by_the_discipline() -> None:
    """Whoever drives a machine asks the discipline which kind of pass it makes."""
    assert Easy(per_event=True).per_event
    assert [name for name in DISCIPLINES if discipline_by_name(name).per_event] == [
        "easy-per-event",
        "easy-sjbf-per-event",
        "easy-plus-plus",
    ]


def test_every_discipline_has_an_oracle() -> None:
    """All comparisons with the plain oracles go over their names."""
    assert set(PASSES) == set(DISCIPLINES)
