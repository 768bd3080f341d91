import io

import pytest
from rich.console import Console

from grms.learning.display import Pace, duration, shown, value_words
from grms.learning.evolution.termination import GenerationRecord


def record(generation: int, elapsed_s: float, best: float = 54_109.4) -> GenerationRecord:
    return GenerationRecord(generation, 13 + 91 * generation, best, 2 * best, 1.0, elapsed_s)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (0.6, "0:01"),
        (59.6, "1:00"),
        (61, "1:01"),
        (3600, "1:00:00"),
        (1e6, "277:46:40"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """Minutes and seconds, and hours where there are any."""
    assert duration(seconds) == text


def test_values_have_the_digits_that_tell() -> None:
    """Seconds without decimals, ratios with."""
    assert value_words(54109.4165) == "54,109"
    assert value_words(0.4590043) == "0.459004"
    assert value_words(-2345678.9) == "-2,345,679"


def test_the_pace_is_that_of_this_session() -> None:
    """Rate and time left do not count what an earlier session did, or waited."""
    pace = Pace(150, None)
    assert pace.words(record(0, 0.5)) == (
        "generation 0/150",
        "best 54,109  mean 108,219  26 evaluations/s",
    )
    assert pace.words(record(50, 20.0))[0] == "generation 50/150  0:40 left"
    resumed = Pace(150, None, record(100, 1000.0))
    assert resumed.evaluations_per_s(record(110, 1001.0)) == 910.0
    assert resumed.left_s(record(110, 1001.0)) == 4.0
    assert resumed.left_s(record(100, 1000.0)) is None
    assert resumed.evaluations_per_s(record(100, 1000.0)) == 0.0


def test_whichever_limit_is_nearer_counts() -> None:
    """Generations, seconds, or nobody knows; never less than nothing."""
    assert Pace(100, 30.0).left_s(record(50, 20.0)) == 10.0
    assert Pace(100, 300.0).left_s(record(50, 20.0)) == 20.0
    assert Pace(None, 30.0).left_s(record(50, 31.0)) == 0.0
    assert Pace(None, None).left_s(record(50, 20.0)) is None
    assert Pace(None, None).words(record(50, 20.0))[0] == "generation 50"


def lines_of(console: Console, clock: list[float], generations: int) -> list[str]:
    ticks = iter(clock)
    with shown(Pace(generations, None), generations, console, lambda: next(ticks)) as show:
        for generation in range(len(clock)):
            show(record(generation, float(generation)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_pipe_gets_plain_lines_now_and_then() -> None:
    """The first, one each second, and the last."""
    console = Console(file=io.StringIO(), width=40)
    lines = lines_of(console, [0.0, 0.2, 0.5, 1.1, 1.2, 1.3], 5)
    assert [line.split()[1] for line in lines] == ["0/5", "3/5", "5/5"]
    assert lines[1].startswith("generation 3/5  0:02 left  best 54,109  mean 108,219  ")
    assert "\x1b" not in "".join(lines)


def test_nothing_is_shown_of_nothing() -> None:
    """An interruption in the first generation leaves no line."""
    assert lines_of(Console(file=io.StringIO()), [], 5) == []


def test_a_terminal_of_80_columns_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest lines of a long run fit beside the bar, and disappear in the end."""
    monkeypatch.setenv("TERM", "xterm")
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system=None)
    with shown(Pace(1_000_000, None), 1_000_000, console) as show:
        show(record(999_000, 1e6, best=98_765_432.1))
    text = file.getvalue()
    assert "generation 999000/1000000  16:41 left" in text
    assert "best 98,765,432  mean 197,530,864  91 evaluations/s" in text
    assert "…" not in text
    erase_line = "\x1b[2K"
    assert text.endswith(erase_line)
