"""Generates workloads after the model of Lublin and Feitelson.

U. Lublin, D. G. Feitelson 2003, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", J. Parallel Distrib. Comput. 63(11), with the values for batch
jobs. In short: sizes are serial, powers of two or anything, two-stage uniform in their
logarithm; logarithms of run times come from one of two gamma distributions, the wider the job
the likelier the longer one; so do logarithms of the gaps between arrivals, but in a time that
runs fast by day and slowly by night.

A gap e^g is work for the day to use up, a half-hour uses up 1800 s times its weight, the weights
have the mean 1. So the sum of the gaps is a position in "even" time, and the submission is where
the day's cumulative weight reaches it.

The model has no requested times and users. A request is here the run time over an accuracy that is
uniform (Mu'alem and Feitelson 2001 find it about flat), rounded up to one of the round values that
users ask for; users are drawn with probabilities after Zipf.

Streams are drawn in blocks of a fixed size, one stream for each purpose, so that a short workload
is a prefix of a long one, and another model of requests moves no arrival.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from lrms_sim.util.columns import is_whole
from lrms_sim.workload.jobs import JOBS_MAX, TIME_MAX, FloatArray, Int32Array, JobTable

IntpArray = npt.NDArray[np.intp]

BLOCK_JOBS: Final = 8192

BUCKETS: Final = 48

_DAY: Final = 86400.0
_BUCKET: Final = _DAY / BUCKETS
_BUCKET_FIRST: Final = 11
"""The model's day begins at its quietest half-hour; see `day_weights`."""

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
REQUESTS: Final = (
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 20, 30, 45)),
    *(hours * _HOUR for hours in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 24, 30, 36, 48)),
)
"""The requested times that users ask for, in seconds; longer ones are whole days."""


@dataclass(frozen=True, slots=True)
class LublinParameters:
    """The numbers of the model; the defaults are those of the paper for batch jobs.

    Attributes:
        serial: probability of one processor.
        power_of_two: probability that the logarithm of a parallel job's size is rounded.
        size_low: smallest log2 of a parallel size.
        size_medium_below_high: distance of log2 of the border of the two stages below log2 of the
            machine. The authors' program has 2 (a border of 5 for 128 processors), while its
            comments advise 2.5 and allow 1.5 to 3.5; with 2.5 jobs are a fifth narrower.
        size_low_probability: probability of the lower stage.
        run_time_shape_short: shape of the gamma distribution of short run times' logarithms.
        run_time_scale_short: its scale.
        run_time_shape_long: shape of that of long run times.
        run_time_scale_long: its scale.
        run_time_slope: probability of a short run time, change with each processor.
        run_time_intercept: same, for no processor.
        run_time_log_max: larger logarithms are drawn again.
        gap_shape: shape of the gamma distribution of the gaps' logarithms.
        gap_scale: its scale.
        gap_shape_factor: multiplies `gap_shape` (the model's ARAR).
        gap_log_max: larger logarithms are drawn again.
        day_shape: shape of the gamma distribution that the day's weights follow.
        day_scale: its scale, in half-hours.
        start_hour: hour of the day at time 0.
        request_accuracy_min: run time over request, before rounding, is uniform from here to 1.
        requested_time_max: seconds; requests are cut to it unless the run time is longer.
        users: number of users.
        user_exponent: the k-th user sends jobs in proportion to k to the power of minus this.
    """

    serial: float = 0.2927
    power_of_two: float = 0.6686
    size_low: float = 1.2
    size_medium_below_high: float = 2.0
    size_low_probability: float = 0.875
    run_time_shape_short: float = 6.57
    run_time_scale_short: float = 0.823
    run_time_shape_long: float = 639.1
    run_time_scale_long: float = 0.0156
    run_time_slope: float = -0.003
    run_time_intercept: float = 0.6986
    run_time_log_max: float = 12.0
    gap_shape: float = 6.0415
    gap_scale: float = 0.8531
    gap_shape_factor: float = 1.0519
    gap_log_max: float = 13.0
    day_shape: float = 6.1271
    day_scale: float = 5.2740
    start_hour: float = 0.0
    request_accuracy_min: float = 0.1
    requested_time_max: float = 48 * _HOUR
    users: int = 200
    user_exponent: float = 1.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not math.isfinite(value):
                raise ValueError(f"{item.name} is {value}; it must be finite")
            if item.name.endswith(("_shape", "_scale", "_factor", "_short", "_long", "_max")):
                self._check(item.name, value > 0, "more than 0")
        for name in ("serial", "power_of_two", "size_low_probability"):
            self._check(name, 0 <= getattr(self, name) <= 1, "between 0 and 1")
        self._check("size_low", self.size_low >= 0, "0 or more")
        self._check("start_hour", 0 <= self.start_hour < 24, "from 0 to less than 24")
        self._check("request_accuracy_min", 0 < self.request_accuracy_min <= 1, "in (0, 1]")
        self._check("users", 1 <= self.users <= 10**6, "from 1 to 1000000")
        # A border far below the mean would be drawn for almost for ever.
        for mean, border in (
            (self.run_time_shape_short * self.run_time_scale_short, "run_time_log_max"),
            (self.run_time_shape_long * self.run_time_scale_long, "run_time_log_max"),
            (self.gap_shape * self.gap_shape_factor * self.gap_scale, "gap_log_max"),
        ):
            limit = getattr(self, border)
            self._check(border, limit >= mean, f"at least the mean logarithm, {mean:.4g}")
            self._check(border, limit <= 40, "at most 40, 7 billion years in seconds")

    def _check(self, name: str, good: bool, bound: str) -> None:
        if not good:
            raise ValueError(f"{name} is {getattr(self, name)}; it must be {bound}")


def generate(
    processors: int,
    *,
    seed: int | np.random.Generator,
    jobs: int | None = None,
    duration: float | None = None,
    load: float | None = None,
    parameters: LublinParameters | None = None,
) -> JobTable:
    """Generates a workload: jobs 1, 2, … in order of arrival, all times in whole seconds.

    Args:
        processors: size of the machine.
        seed: a number, or a generator from which one is spawned for each purpose.
        jobs: number of jobs.
        duration: seconds in which all jobs are submitted; either this or `jobs` is required.
        load: Σ run_time · processors as a part of the machine's capacity until the last submission;
            all gaps are scaled to it, keeping the rhythm of the day. With `duration` it sets the
            number of jobs.
        parameters: default those of the paper.

    Raises:
        ValueError: an argument is out of its bounds, both or neither of `jobs` and
            `duration` are given, or a small load puts jobs where seconds cannot be told apart.
    """
    parameters = parameters or LublinParameters()
    _check_arguments(processors, jobs, duration, load)
    day = _Day(parameters)
    measure: Callable[[_Block], FloatArray]
    if jobs is not None:
        limit, measure = float(jobs), lambda block: np.ones(len(block.gap))
    elif load is None:
        limit, measure = day.even_time(float(duration or 0)), lambda block: block.gap
    else:
        # The work that makes the load decides how many jobs there are.
        limit = load * processors * float(duration or 0)
        measure = lambda block: block.run_time * block.processors  # noqa: E731  # one of three
    columns = _columns(_blocks(processors, parameters, seed), measure, limit)
    even = np.cumsum(columns.gap)
    if load is not None and len(even):
        work = float(columns.run_time @ columns.processors)
        latest = work / (processors * load)
        if latest + float(columns.run_time.sum()) > TIME_MAX:
            raise ValueError(
                f"load is {load}; {len(even)} jobs would be submitted until {latest:g} s and could "
                "end beyond 2**53 s, where seconds cannot be told apart"
            )
        even *= day.even_time(latest) / even[-1]
    return JobTable(
        np.arange(1, len(even) + 1, dtype=np.int64),
        np.floor(day.wall_time(even)),
        columns.processors,
        columns.requested_time,
        columns.run_time,
        columns.user,
    )


class ManyWorkloads(NamedTuple):
    """Workloads of very many machines, n jobs of each, times in whole seconds; columns of shape (k, n)."""

    submit_time: FloatArray
    processors: Int32Array
    requested_time: FloatArray
    run_time: FloatArray


def generate_many(
    processors: Int32Array,
    *,
    seed: int,
    jobs: int,
    load: FloatArray,
    start_hour: FloatArray | None = None,
    parameters: LublinParameters | None = None,
) -> ManyWorkloads:
    """Generates workloads of very many machines at once, by the same model.

    Machines of one size share streams, from which each takes its jobs in turn: a machine's workload
    depends on the seed, its size, and how many of that size come before it.

    Args:
        processors: sizes of the machines, shape (k,).
        seed: from 0.
        jobs: of each machine, at least 1.
        load: as in `generate`, of each machine, shape (k,).
        start_hour: instead of the parameters', of each machine, shape (k,): machines may be in other time zones.
        parameters: default those of the paper.

    Raises:
        ValueError: an argument is out of its bounds, or a small load puts jobs where seconds cannot be told apart.
    """
    parameters = parameters or LublinParameters()
    count = len(processors)
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}; it must be from 1")
    if start_hour is None:
        start_hour = np.full(count, parameters.start_hour)
    if len(load) != count or len(start_hour) != count:
        raise ValueError(f"{count} sizes, {len(load)} loads and {len(start_hour)} hours")
    for size, least, hour in zip(
        processors.tolist(), load.tolist(), start_hour.tolist(), strict=True
    ):
        _check_arguments(size, jobs, None, least)
        if not 0 <= hour < 24:
            raise ValueError(f"start_hour is {hour}; it must be from 0 to less than 24")
    day = _Day(parameters)
    found = ManyWorkloads(
        np.empty((count, jobs)),
        np.empty((count, jobs), np.int32),
        np.empty((count, jobs)),
        np.empty((count, jobs)),
    )
    for size in np.unique(processors).tolist():
        rows = np.flatnonzero(processors == size)
        blocks = _blocks(size, parameters, np.random.default_rng([seed, size]))
        some = [next(blocks) for _ in range(-(-len(rows) * jobs // BLOCK_JOBS))]
        shape = (len(rows), jobs)
        width, run_time, requested_time, gap = (
            np.concatenate([getattr(block, name) for block in some])[: len(rows) * jobs].reshape(
                shape
            )
            for name in ("processors", "run_time", "requested_time", "gap")
        )
        latest = (run_time * width).sum(1) / (size * load[rows])
        if float((latest + run_time.sum(1)).max()) > TIME_MAX:
            raise ValueError(
                "a load is so small that jobs could end where seconds cannot be told apart"
            )
        wall_start = start_hour[rows] * _HOUR
        even = np.cumsum(gap, 1)
        even *= (day.even_times(latest, wall_start) / even[:, -1])[:, None]
        found.submit_time[rows] = np.floor(day.wall_times(even, wall_start[:, None]))
        found.processors[rows] = width
        found.requested_time[rows] = requested_time
        found.run_time[rows] = run_time
    return found


def _check_arguments(
    processors: int, jobs: int | None, duration: float | None, load: float | None
) -> None:
    if not is_whole(processors, 1, np.iinfo(np.int32).max):
        raise ValueError(
            f"processors is {processors!r}; it must be a whole number from 1 to 2147483647"
        )
    if (jobs is None) == (duration is None):
        raise ValueError("one of jobs and duration is to be given, and not both")
    if jobs is not None and not is_whole(jobs, 0, JOBS_MAX):
        raise ValueError(f"jobs is {jobs!r}; it must be a whole number from 0 to {JOBS_MAX}")
    for name, value in (("duration", duration), ("load", load)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}; it must be finite and more than 0")


class _Block(NamedTuple):
    """Jobs without submission times; columns of shape (n,)."""

    processors: Int32Array
    run_time: FloatArray
    requested_time: FloatArray
    gap: FloatArray  # even seconds since the job before
    user: Int32Array


def _blocks(
    processors: int, parameters: LublinParameters, seed: int | np.random.Generator
) -> Iterator[_Block]:
    """Yields blocks of BLOCK_JOBS jobs without end."""
    sizes, run_times, gaps, requests, users = np.random.default_rng(seed).spawn(5)
    shares = np.arange(1, parameters.users + 1) ** -float(parameters.user_exponent)
    shares /= shares.sum()
    while True:
        size = _draw_sizes(sizes, processors, parameters)
        run_time = _draw_run_times(run_times, size, parameters)
        yield _Block(
            size,
            run_time,
            _draw_requests(requests, run_time, parameters),
            _draw_gaps(gaps, parameters),
            users.choice(parameters.users, BLOCK_JOBS, p=shares).astype(np.int32) + np.int32(1),
        )


def _columns(
    blocks: Iterator[_Block], measure: Callable[[_Block], FloatArray], limit: float
) -> _Block:
    """Returns the jobs up to the last at which the sum of a measure is within its limit.

    Raises:
        ValueError: these are more than a table can hold.
    """
    parts: list[_Block] = []
    total = 0.0
    count = 0
    while total <= limit:
        block = next(blocks)
        sums = total + np.cumsum(measure(block))
        inside = int(np.searchsorted(sums, limit, side="right"))
        total = float(sums[-1])
        count += inside
        # A duration that is far too long is refused by the first jobs, not when memory is full.
        if count > JOBS_MAX or limit / total * BLOCK_JOBS * (len(parts) + 1) > 2 * JOBS_MAX:
            raise ValueError(f"the workload has more than {JOBS_MAX} jobs; shorten its duration")
        parts.append(_Block(*(column[:inside] for column in block)))  # type: ignore[arg-type]  # each keeps its dtype
    return _Block(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _draw_sizes(
    rng: np.random.Generator, processors: int, parameters: LublinParameters
) -> Int32Array:
    kind, stage, place = rng.random((3, BLOCK_JOBS))
    # On small machines the stages shrink rather than cross.
    high = math.log2(processors)
    low = min(parameters.size_low, high)
    medium = max(low, high - parameters.size_medium_below_high)
    lower = stage <= parameters.size_low_probability
    size_log = np.where(lower, low + place * (medium - low), medium + place * (high - medium))
    round_log = kind <= parameters.serial + parameters.power_of_two
    size_log = np.where(round_log, np.floor(size_log + 0.5), size_log)
    # Rounding may pass a machine whose size is no power of two.
    size = np.clip(np.floor(np.exp2(size_log) + 0.5), 1, processors)
    return np.where(kind <= parameters.serial, 1, size).astype(np.int32)


def _draw_run_times(
    rng: np.random.Generator, size: Int32Array, parameters: LublinParameters
) -> FloatArray:
    slope, intercept = parameters.run_time_slope, parameters.run_time_intercept
    short_probability = np.clip(slope * size + intercept, 0, 1)

    def draw(rows: IntpArray) -> FloatArray:
        short = rng.random(len(rows)) <= short_probability[rows]
        shape = np.where(short, parameters.run_time_shape_short, parameters.run_time_shape_long)
        scale = np.where(short, parameters.run_time_scale_short, parameters.run_time_scale_long)
        return rng.gamma(shape, scale)

    return np.floor(np.exp(_draw_below(draw, parameters.run_time_log_max)))


def _draw_gaps(rng: np.random.Generator, parameters: LublinParameters) -> FloatArray:
    shape = parameters.gap_shape * parameters.gap_shape_factor

    def draw(rows: IntpArray) -> FloatArray:
        return rng.gamma(shape, parameters.gap_scale, len(rows))

    return np.exp(_draw_below(draw, parameters.gap_log_max))


def _draw_below(draw: Callable[[IntpArray], FloatArray], largest: float) -> FloatArray:
    rows = np.arange(BLOCK_JOBS)
    values = draw(rows)
    while len(rows := rows[values[rows] > largest]):
        values[rows] = draw(rows)
    return values


def _draw_requests(
    rng: np.random.Generator, run_time: FloatArray, parameters: LublinParameters
) -> FloatArray:
    """Draws requests: run time over an accuracy, rounded up to usual values."""
    accuracy = 1 - rng.random(BLOCK_JOBS) * (1 - parameters.request_accuracy_min)
    longest = np.maximum(parameters.requested_time_max, run_time)
    wanted = np.minimum(run_time / accuracy, longest)
    place = np.searchsorted(REQUESTS, wanted)
    round_values = np.asarray([*REQUESTS, math.inf])[place]
    requested = np.where(np.isinf(round_values), np.ceil(wanted / _DAY) * _DAY, round_values)
    # The limit itself may be no round value.
    limited = np.minimum(requested, parameters.requested_time_max)
    return np.where(run_time <= parameters.requested_time_max, limited, requested)


class _Day:
    """Converts between wall time and even time, in which arrivals are uniform."""

    def __init__(self, parameters: LublinParameters) -> None:
        self._walls = np.arange(BUCKETS + 1) * _BUCKET
        self._evens = np.concatenate([[0.0], np.cumsum(day_weights(parameters))]) * _BUCKET
        # The weights' mean is 1 but for rounding; a day is exactly a day either way.
        self._evens[-1] = _DAY
        self._wall_start = parameters.start_hour * _HOUR
        self._even_start = float(np.interp(self._wall_start, self._walls, self._evens))

    def even_time(self, wall: float) -> float:
        """Returns the even seconds from time 0 to a moment."""
        days, rest = divmod(self._wall_start + wall, _DAY)
        even = days * _DAY + float(np.interp(rest, self._walls, self._evens))
        return even - self._even_start

    def wall_time(self, even: FloatArray) -> FloatArray:
        """Returns the moments at which so many even seconds have passed since time 0."""
        return self._wall(self._even_start + even) - self._wall_start

    def even_times(self, wall: FloatArray, wall_start: FloatArray) -> FloatArray:
        """As `even_time`, where time 0 is so many seconds after midnight; any shape."""
        return self._even(wall_start + wall) - self._even(wall_start)

    def wall_times(self, even: FloatArray, wall_start: FloatArray) -> FloatArray:
        """As `wall_time`, where time 0 is so many seconds after midnight; any shape."""
        return self._wall(self._even(wall_start) + even) - wall_start

    def _even(self, wall: FloatArray) -> FloatArray:
        days, rest = np.divmod(wall, _DAY)
        even: FloatArray = days * _DAY + np.interp(rest, self._walls, self._evens)
        return even

    def _wall(self, even: FloatArray) -> FloatArray:
        days, rest = np.divmod(even, _DAY)
        wall: FloatArray = days * _DAY + np.interp(rest, self._evens, self._walls)
        return wall


def day_weights(parameters: LublinParameters) -> FloatArray:
    """Returns how busy each half-hour of a day is, from midnight; shape (48,), mean 1.

    The weight at i = 11, 12, … 58 is F(i + ½) - F(i - ½), F being the distribution function of
    the gamma distribution; it belongs to the half-hour (i - 1) mod 48.
    """
    weights = np.empty(BUCKETS)
    for index in range(_BUCKET_FIRST, _BUCKET_FIRST + BUCKETS):
        upper = _gamma_distribution(index + 0.5, parameters.day_shape, parameters.day_scale)
        lower = _gamma_distribution(index - 0.5, parameters.day_shape, parameters.day_scale)
        # An hour in which nobody ever comes would have no place in even time.
        weights[(index - 1) % BUCKETS] = max(upper - lower, 1e-9)
    weights /= weights.mean()
    return weights


def _gamma_distribution(x: float, shape: float, scale: float) -> float:
    """Returns P(X ≤ x), by the series of the incomplete gamma function (Abramowitz 6.5.29)."""
    z = x / scale
    term = total = 1.0
    divisor = shape
    # The terms fall for good as soon as the divisor has passed z.
    while term > total * 1e-17 or divisor < z:
        divisor += 1
        term *= z / divisor
        total += term
    return total * math.exp(shape * math.log(z) - z - math.lgamma(shape + 1))
