"""What the verdict of a run looks at."""

from grms.simulation.findings import known, unfinished
from grms.site.model.events import OfferAnswered
from tests.grms.site.conversation import FULL, Conversation, offer
from tests.grms.site.scheduler.test_reservations import Desk


def test_what_is_open_is_unfinished_but_not_with_a_byzantine() -> None:
    """An offer without answer, then a delegated job; and nothing before."""
    site = Conversation()
    assert unfinished(site.state, "") == []
    site.submit()
    assert unfinished(site.state, "") == ["undecided offers with b: [1]"]
    assert unfinished(site.state, "b") == []
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=True)
    assert unfinished(site.state, "") == ["open jobs with b: [1]"]


def test_an_open_reservation_is_unfinished() -> None:
    """Until it is over; and what is known of it survives."""
    desk = Desk()
    before = known(desk.state)
    desk.book(0.0, 10.0)
    assert unfinished(desk.state, "") == ["open reservations: [1]"]
    after = known(desk.state)
    assert after != before
    desk.restart()
    assert known(desk.state) == after
    desk.due(10.0)
    assert unfinished(desk.state, "") == []
    assert known(desk.state) != after


def test_what_is_known_survives_a_restart() -> None:
    """And differs once something has happened."""
    site = Conversation()
    before = known(site.state)
    site.submit()
    after = known(site.state)
    assert before != after
    site.restart()
    assert known(site.state) == after
