"""The sums behind utilization and average weighted response times, in one pass without the GIL."""

from libc.math cimport INFINITY
from libc.stdint cimport int8_t

from lrms_sim.kernel._criteria cimport GROUPS
from lrms_sim.kernel._types cimport processors_t, seconds_t


def objective_sums(
    const seconds_t[::1] submit_time,
    const processors_t[::1] processors,
    const seconds_t[::1] run_time,
    const seconds_t[::1] start_time,
    const seconds_t[::1] end_time,
    const int8_t[::1] groups,
):
    """Returns per group Σ p·m and Σ p·m·(C - r), the earliest start and the latest end.

    Sums run over rows in order; with whole seconds and sums below 2⁵³ they are exact.
    """
    cdef Py_ssize_t count = submit_time.shape[0]
    cdef Py_ssize_t row, group
    cdef double consumption
    cdef double[GROUPS] work
    cdef double[GROUPS] response
    cdef seconds_t first_start = INFINITY
    cdef seconds_t last_end = -INFINITY
    if not (
        processors.shape[0] == run_time.shape[0] == start_time.shape[0] == end_time.shape[0]
        == groups.shape[0] == count
    ):
        raise ValueError(f"every column needs {count} rows, as submit_time has")
    for group in range(GROUPS):
        work[group] = 0.0
        response[group] = 0.0
    with nogil:
        for row in range(count):
            group = groups[row] - 1
            consumption = run_time[row] * processors[row]
            work[group] += consumption
            response[group] += consumption * (end_time[row] - submit_time[row])
            if start_time[row] < first_start:
                first_start = start_time[row]
            if end_time[row] > last_end:
                last_end = end_time[row]
    return (
        [work[group] for group in range(GROUPS)],
        [response[group] for group in range(GROUPS)],
        first_start,
        last_end,
    )
