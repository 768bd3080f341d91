# How much longer than the scheduler believed a job is given once it has outlived that.
#
# After Tsafrir, Etsion, Feitelson 2007; what is done with it: docs/disciplines.md.
from libc.stdint cimport int8_t

from lrms_sim.kernel._types cimport seconds_t

cdef enum:
    CORRECTIONS = 11


cdef inline seconds_t correction(int8_t number) noexcept nogil:
    # What is added to the first estimate of a job, time after time.
    cdef seconds_t[CORRECTIONS] seconds
    seconds[0] = 60.0
    seconds[1] = 300.0
    seconds[2] = 900.0
    seconds[3] = 1800.0
    seconds[4] = 3600.0
    seconds[5] = 7200.0
    seconds[6] = 18000.0
    seconds[7] = 36000.0
    seconds[8] = 72000.0
    seconds[9] = 180000.0
    seconds[10] = 360000.0
    return seconds[number]


cdef inline seconds_t extended(seconds_t request, seconds_t start, seconds_t now) noexcept nogil:
    # What a running job that has outlived its request is taken to run for: the request and the
    # first correction by which it ends later than now; after the last one twice as much each time.
    cdef int8_t number
    cdef seconds_t longer = 0.0
    for number in range(CORRECTIONS):
        longer = correction(number)
        if start + (request + longer) > now:
            return request + longer
    while not start + (request + longer) > now:
        longer *= 2.0
    return request + longer
