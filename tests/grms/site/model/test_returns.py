from grms.site.model.jobs import Request
from grms.site.model.partner_conduct import KINDS_MAX, ReturnBook

WIDE = Request(4, 600.0)


def came_back(book: ReturnBook, now: float, request: Request = WIDE, user: str = "ann") -> None:
    """Lets a job come back; pauses are 10 s to 40 s."""
    book.came_back(user, request, now, first_s=10.0, most_s=40.0)


def test_such_jobs_rest_for_a_while() -> None:
    """Those of the same user that are at least as wide and as long, and no others."""
    book = ReturnBook()
    assert not book.rests("ann", WIDE, 0.0)
    came_back(book, 5.0)
    for request in (WIDE, Request(64, 600.0), Request(4, 86_400.0)):
        assert book.rests("ann", request, 14.9)
        assert not book.rests("ann", request, 15.0)
    assert not book.rests("ann", Request(3, 600.0), 6.0)
    assert not book.rests("ann", Request(4, 500.0), 6.0)
    assert not book.rests("bob", WIDE, 6.0)
    assert (book.count, book.until(6.0), book.until(15.0)) == (1, 15.0, None)


def test_the_pause_grows_with_each_return_after_it() -> None:
    """It doubles up to the longest; of many that were on their way at once the first counts."""
    book, now = ReturnBook(), 0.0
    for pause in (10.0, 20.0, 40.0, 40.0):
        came_back(book, now)
        came_back(book, now)
        assert book.until(now) == now + pause
        now += pause
    came_back(book, now + 40.1)
    assert book.until(now + 40.1) == now + 50.1  # it went well for long


def test_what_has_run_may_come_again() -> None:
    """A job that ran proves that those that are no wider and no longer are run."""
    book = ReturnBook()
    for request in (Request(1, 60.0), WIDE, Request(64, 60.0)):
        came_back(book, 0.0, request)
    came_back(book, 0.0, Request(1, 60.0), "bob")
    book.ran("ann", WIDE)
    assert not book.rests("ann", WIDE, 1.0)
    assert book.rests("ann", Request(64, 60.0), 1.0)
    assert book.rests("bob", WIDE, 1.0)


def test_not_more_than_so_many_kinds_are_remembered() -> None:
    """The one that came back longest ago is forgotten."""
    book = ReturnBook()
    for number in range(KINDS_MAX + 1):
        came_back(book, 0.0, WIDE, f"user-{number}")
    assert not book.rests("user-0", WIDE, 1.0)
    assert book.rests("user-1", WIDE, 1.0)
    assert book.rests(f"user-{KINDS_MAX}", WIDE, 1.0)
