from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrms_sim.electricity.csv_files import SeriesFileError, moment_of, read_series
from lrms_sim.electricity.series import Series
from lrms_sim.electricity.synthetic import CARBON, DAY_SHAPE, PRICE, SeriesModel
from lrms_sim.scheduling.situations import zone_named

HOUR = 3600.0

numbers = st.floats(-1e4, 1e4, allow_nan=False).map(lambda x: round(x, 3))


@st.composite
def series(draw: st.DrawFn) -> Series:
    """Draws a series of a few steps of different lengths."""
    lengths = draw(st.lists(st.integers(1, 5000), min_size=1, max_size=8))
    values = draw(st.lists(numbers, min_size=len(lengths), max_size=len(lengths)))
    edges = draw(st.integers(-10_000, 10_000)) + np.cumsum([0, *lengths]).astype(np.float64)
    return Series(edges[:-1], np.array(values), float(edges[-1]))


def by_hand(one: Series, begin: float, end: float) -> float:
    """Returns the integral, step by step."""
    total, moment = 0.0, begin
    while moment < end:
        offset = (moment - one.first) % one.period
        step = int(np.searchsorted(one.offset, offset, side="right")) - 1
        left = np.append(one.offset, one.period)[step + 1] - offset
        until = min(end, moment + max(left, 1e-6))
        total += one.value[step] * (until - moment)
        moment = until
    return total


@given(series(), st.tuples(*[st.integers(-30_000, 60_000)] * 3).map(sorted))
def test_integral_is_additive(one: Series, moments: list[int]) -> None:
    """The integral over two adjacent intervals is that over both, also where the steps come again."""
    first, middle, last = map(float, moments)
    parts = one.integral(first, middle) + one.integral(middle, last)
    noise = 1e-9 * one.scale * (abs(first) + abs(last) + one.period)
    assert one.integral(first, last) == pytest.approx(parts, abs=noise)
    assert one.integral(last, first) == -one.integral(first, last)


@settings(max_examples=50)
@given(series(), st.integers(-20_000, 20_000), st.integers(0, 20_000))
def test_integral_is_that_of_every_step(one: Series, begin: int, length: int) -> None:
    """The integral is the sum of value times length, step by step."""
    found = one.integral([float(begin)], [float(begin + length)])
    assert found[0] == pytest.approx(
        by_hand(one, begin, begin + length), abs=1e-6 * max(one.scale, 1)
    )


@given(series(), st.integers(-3, 3))
def test_steps_come_again(one: Series, cycles: int) -> None:
    """A period later everything is as before; a whole period has the mean of the series."""
    assert one.at(one.time + cycles * one.period).tolist() == one.value.tolist()
    whole = one.integral(one.first, one.first + one.period) / one.period
    assert whole == pytest.approx(one.mean, abs=1e-9 * max(one.scale, 1))
    assert one.covers(one.first, one.end)
    assert one.covers(one.first, one.end + 1) is (len(one.time) == 1)


def test_scaled_and_shifted() -> None:
    """A scaled series has scaled values; a shifted one has them later."""
    one = Series(np.array([0.0, 10.0]), np.array([2.0, -4.0]), 30.0)
    assert one.integral([0, 5, -5], [30, 15, 0]).tolist() == [-60.0, -10.0, -20.0]
    assert one.scaled(0.5).value.tolist() == [1.0, -2.0]
    assert one.shifted(100.0).at([100.0, 115.0]).tolist() == [2.0, -4.0]


@pytest.mark.parametrize(
    ("time", "value", "end"),
    [
        ([], [], 1.0),
        ([0.0, 1.0], [1.0], 2.0),
        ([0.0, 0.0], [1.0, 1.0], 2.0),
        ([0.0, 1.0], [1.0, np.nan], 2.0),
        ([0.0, 1.0], [1.0, 1.0], 1.0),
        ([0.0, np.inf], [1.0, 1.0], 2.0),
    ],
)
def test_no_series(time: list[float], value: list[float], end: float) -> None:
    """Steps need values, and moments in ascending order."""
    with pytest.raises(ValueError, match=r"shape|finite|ascending"):
        Series(np.array(time), np.array(value), end)


def written(folder: Path, text: str) -> Path:
    path = folder / "prices.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_local_times(tmp_path: Path) -> None:
    """The day on which daylight saving ends has 25 hours, the hour that comes twice among them."""
    hours = ["00", "01", "02", "02", *(f"{hour:02}" for hour in range(3, 24))]
    rows = "".join(f"2024-10-27T{hour}:00,{place}\n" for place, hour in enumerate(hours))
    found = read_series(written(tmp_path, "time,value\n" + rows), time_zone="Europe/Berlin")
    assert np.diff(found.time).tolist() == [HOUR] * 24
    assert found.first == datetime(2024, 10, 26, 22, tzinfo=UTC).timestamp()
    assert found.integral(found.first, found.end) == HOUR * sum(range(25))


def test_the_day_on_which_daylight_saving_begins(tmp_path: Path) -> None:
    """It has 23 hours; the hour that is skipped is no time."""
    hours = [f"{hour:02}" for hour in range(24) if hour != 2]
    rows = "".join(f"2024-03-31 {hour}:00,1\n" for hour in hours)
    found = read_series(written(tmp_path, "time,value\n" + rows), time_zone="Europe/Berlin")
    assert np.diff(found.time).tolist() == [HOUR] * 22
    skipped = written(tmp_path, "time,value\n2024-03-31 01:00,1\n2024-03-31 02:30,2\n")
    with pytest.raises(SeriesFileError, match=r"prices\.csv:3: .*does not exist in Europe/Berlin"):
        read_series(skipped, time_zone="Europe/Berlin")


@given(st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)))  # noqa: DTZ001  # local times
def test_local_times_are_read_as_they_are_written(moment: datetime) -> None:
    """Every moment comes back from its local time, where it has one that is its own."""
    zone = zone_named("America/New_York")
    instant = moment.replace(tzinfo=UTC).timestamp()
    local = datetime.fromtimestamp(instant, zone)
    text = local.replace(tzinfo=None).isoformat()
    before = instant - 3600.0 if local.fold else None
    assert moment_of(text, zone, before) == pytest.approx(instant, abs=1e-6)


def test_files_in_other_words(tmp_path: Path) -> None:
    """Offsets and Unix times need no zone; other columns and empty lines are of no account."""
    text = "area,value,time\nSE3,-1.5,2024-01-01T00:00Z\n\nSE3,2,2024-01-01T02:00+01:00\nSE3,3,1704074400\n"
    found = read_series(written(tmp_path, text))
    assert found.value.tolist() == [-1.5, 2.0, 3.0]
    assert np.diff(found.time).tolist() == [HOUR, HOUR]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0 rows"),
        ("time,value\n1,2\n", "1 rows"),
        ("hour,value\n1,2\n", ":1: the heading is 'hour,value'"),
        ("time,value,value\n1,2,3\n", ":1: the heading"),
        ("time,value\n1,2\n2\n", ":3: 1 columns"),
        ("time,value\n1,2\n2,x\n", ":3: value is 'x'"),
        ("time,value\n1,2\n2,nan\n", ":3: value is 'nan'"),
        ("time,value\n1,2\n2,-1\n", ":3: value is '-1'; a finite number of at least 0"),
        ("time,value\n1,2\n\n1,3\n", ":4: time '1' is not after"),
        ("time,value\n1,2\n200000,3\n", r":3: time '200000' is 55.56 h after .*rows are missing"),
        ("time,value\n0,2\n1e-9,3\n", ":3: time '1e-9' is 1e-09 s after .*for 1 s at least"),
        ("time,value\nyesterday,2\n", ":2: time is 'yesterday'"),
        ("time,value\n2024-01-01 00:00,2\n", ":2: .*no offset from UTC"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, said: str) -> None:
    """Every mistake names the file, and its line."""
    with pytest.raises(SeriesFileError, match=rf"prices\.csv:? ?{said}"):
        read_series(written(tmp_path, text), least=0.0)


def test_a_zone_that_is_none(tmp_path: Path) -> None:
    """An unknown zone is refused before the file is read."""
    with pytest.raises(ValueError, match="Mars/Olympus"):
        read_series(tmp_path / "none.csv", time_zone="Mars/Olympus")


def test_the_model_of_prices() -> None:
    """Mean, day and weekend are as stated; prices may be negative, carbon may not; seeds decide."""
    assert DAY_SHAPE.mean() == pytest.approx(0, abs=1e-12)
    plain = SeriesModel(mean=100, swing=0.5, weekend=0.2, noise=0).series(14, seed=1)
    assert plain.value[:24] == pytest.approx(100 * (1 + 0.5 * DAY_SHAPE))
    assert plain.value[5 * 24 : 6 * 24].mean() == pytest.approx(80)
    year = PRICE.series(364, seed=1)
    assert year.value.min() < 0
    assert year.mean == pytest.approx(PRICE.mean * (1 - PRICE.weekend * 2 / 7), rel=0.1)
    assert CARBON.series(364, seed=1).value.min() >= 0
    assert PRICE.series(2, seed=1).value.tolist() == year.value[:48].tolist()
    assert PRICE.series(2, seed=2).value.tolist() != year.value[:48].tolist()


def test_the_model_follows_the_local_clock() -> None:
    """In summer the shape of the day begins an hour earlier in UTC."""
    model = SeriesModel(noise=0, weekend=0)
    local = model.series(200, seed=1, time_zone="Europe/Stockholm")
    winter, summer = local.value[23:47], local.value[150 * 24 + 22 : 151 * 24 + 22]
    assert winter == pytest.approx(summer)
    assert winter[0] == pytest.approx(model.mean * (1 + model.swing * DAY_SHAPE[0]))


@pytest.mark.parametrize("wrong", [{"mean": 0}, {"swing": -1}, {"memory": 1}, {"noise": np.inf}])
def test_no_model(wrong: dict[str, float]) -> None:
    """Numbers out of their bounds are refused."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SeriesModel(**wrong)
    with pytest.raises(ValueError, match="0 days"):
        PRICE.series(0, seed=1)
