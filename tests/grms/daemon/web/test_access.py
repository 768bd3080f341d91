"""Links are good once and not for long, sessions end with their process, and a proxy's token stays."""

import json
import stat
from pathlib import Path

from grms.daemon.web.access import (
    LINK_S,
    LINKS_MAX,
    SESSION_S,
    SESSIONS_MAX,
    TOKEN_LENGTH_MIN,
    PageSessions,
    write_token,
)
from tests.grms.hand_clock import Clock


def test_a_link_begins_one_session() -> None:
    """Whoever has seen it in a list of processes, or in a browser's history, comes too late."""
    sessions = PageSessions(Clock(100.0))
    link = sessions.link()
    session = sessions.begin(link)
    assert session is not None
    assert sessions.begin(link) is None
    assert sessions.begin("another") is None
    assert sessions.knows(session.folder, session.secret)
    assert not sessions.knows(session.folder, "another")
    assert not sessions.knows("another", session.secret)
    assert not sessions.knows(session.folder, "ä")


def test_links_and_sessions_have_an_end() -> None:
    """A minute, and twelve hours."""
    clock = Clock(100.0)
    sessions = PageSessions(clock)
    good, late = sessions.link(), sessions.link()
    clock.now += LINK_S
    session = sessions.begin(good)
    assert session is not None
    clock.now += 0.1
    assert sessions.begin(late) is None
    clock.now = session.end
    assert sessions.knows(session.folder, session.secret)
    clock.now += 0.1
    assert not sessions.knows(session.folder, session.secret)
    assert session.end == 100.0 + LINK_S + SESSION_S


def test_another_process_knows_nothing_of_them() -> None:
    """What a browser has sent to whoever had the port meanwhile is good for nothing."""
    before = PageSessions()
    link, session = before.link(), before.begin(before.link())
    assert session is not None
    after = PageSessions()
    assert after.begin(link) is None
    assert not after.knows(session.folder, session.secret)


def test_so_many_are_remembered_and_no_more() -> None:
    """The oldest go."""
    sessions = PageSessions(Clock(100.0))
    first, *others = [sessions.link() for _ in range(LINKS_MAX + 1)]
    assert sessions.begin(first) is None
    begun = [sessions.begin(link) for link in others]
    begun.append(sessions.begin(sessions.link()))
    known = [each is not None and sessions.knows(each.folder, each.secret) for each in begun]
    assert known == [False] * (len(begun) - SESSIONS_MAX) + [True] * SESSIONS_MAX


def test_the_token_of_a_proxy_is_for_the_daemons_user_alone_and_stays(tmp_path: Path) -> None:
    """One that is too short, or a file that is none, is replaced."""
    path = tmp_path / "home.dashboard.json"
    token = write_token(path, "http://127.0.0.1:1/")
    assert len(token) >= TOKEN_LENGTH_MIN
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert write_token(path, "http://127.0.0.1:2/") == token
    assert json.loads(path.read_text()) == {"address": "http://127.0.0.1:2/", "token": token}
    for text in ('{"token": "short"}', "no json", "{}"):
        path.write_text(text)
        assert write_token(path, "http://127.0.0.1:2/") not in {token, "short"}
