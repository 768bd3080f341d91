# Priorities that change with time: the criteria f1 to f4 of Franke, Lepping, Schwiegelshohn 2007,
# "Greedy Scheduling with Custom-made Objectives", section III, and the situation that holds.
#
# Every value is computed as it is written, from left to right and without contraction, so that it
# is the same to the last bit in every program.
from libc.math cimport fmod
from libc.stdint cimport int32_t

from lrms_sim.kernel._types cimport processors_t, seconds_t

cdef enum:
    GROUPS = 5

cdef struct Criterion:
    int32_t kind                 # 1 to 4: f1 to f4
    double weight[GROUPS]        # w, by group
    double constant[GROUPS]      # K, by group
    double waiting               # a
    double size                  # b

cdef struct Priority:
    # A criterion for each situation, and when which situation holds.
    Criterion* criteria          # by situation; one for all where there is no calendar
    const seconds_t* switch_time
    const int32_t* situation     # that begins with a switch
    Py_ssize_t switches          # 0 without a calendar
    Py_ssize_t place             # of the switch that was in force last

cdef inline double criterion_value(
    const Criterion* criterion,
    Py_ssize_t group,
    seconds_t age,
    seconds_t request,
    processors_t width,
) noexcept nogil:
    # f of a job that has waited `age` seconds.
    cdef double weight = criterion.weight[group]
    cdef double constant = criterion.constant[group]
    cdef double waiting = criterion.waiting
    cdef double size = criterion.size
    if criterion.kind == 1:
        return weight * (constant + waiting * (age / request) + size * (request / width))
    if criterion.kind == 2:
        return weight * (constant + waiting * age + size * (request * width))
    if criterion.kind == 3:
        return weight * (constant + waiting * (age / (request * width)))
    return weight * (constant + waiting * age + size * (request / width))


cdef inline const Criterion* criterion_in_force(Priority* priority, seconds_t now) noexcept nogil:
    # The criterion of the situation at a moment; see lrms_sim.scheduling.situations for what lies
    # beyond.
    cdef const seconds_t* switch_time = priority.switch_time
    cdef seconds_t first, last
    cdef seconds_t week = 604800.0
    cdef Py_ssize_t low, high, middle
    if priority.switches == 0:
        return &priority.criteria[0]
    first = switch_time[0]
    last = switch_time[priority.switches - 1]
    if now >= last:
        now = last - week + fmod(now - last, week)
    elif now < first:
        now = fmod(now - first, week)
        now = first + (now + week if now < 0.0 else now)
    low = priority.place
    if not (
        switch_time[low] <= now
        and (low + 1 == priority.switches or now < switch_time[low + 1])
    ):
        low = 0
        high = priority.switches
        while high - low > 1:
            middle = (low + high) >> 1
            if switch_time[middle] <= now:
                low = middle
            else:
                high = middle
        priority.place = low
    return &priority.criteria[priority.situation[low]]
