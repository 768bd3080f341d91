# What something costs over time, as a step function that repeats itself: sums over an interval, and
# the moment within a bounded delay at which an interval costs least.
#
# lrms_sim.electricity.series has the same sums for whole columns of intervals.
from libc.math cimport fabs, floor

from lrms_sim.kernel._types cimport seconds_t

cdef struct RateSteps:
    const double* offset         # of each step from the first one, seconds; the first is 0
    const double* value          # a second from there on
    const double* before         # sum of the steps before, one more than there are steps
    Py_ssize_t count             # 0: nothing is known
    double first                 # when the first step begins
    double period                # until the first step comes again
    double scale                 # the greatest absolute value

cdef struct Deferral:
    double saving                # least part of the cost that is worth a delay
    seconds_t delay_max          # after the submission
    seconds_t look_ahead         # only so much of a job's request is looked at


cdef inline Py_ssize_t rate_step(const RateSteps* steps, double offset) noexcept nogil:
    # The step in which an offset, from 0 to the period, lies.
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = steps.count
    cdef Py_ssize_t middle
    while high - low > 1:
        middle = (low + high) >> 1
        if steps.offset[middle] <= offset:
            low = middle
        else:
            high = middle
    return low


cdef inline double rate_sum_to(const RateSteps* steps, seconds_t time) noexcept nogil:
    # Of all steps from the first one until a moment, negative before it.
    cdef double cycles = floor((time - steps.first) / steps.period)
    cdef double offset = time - steps.first - cycles * steps.period
    cdef Py_ssize_t step = rate_step(steps, offset)
    return (
        cycles * steps.before[steps.count] + steps.before[step]
        + steps.value[step] * (offset - steps.offset[step])
    )


cdef inline double rate_sum(
    const RateSteps* steps, seconds_t begin, seconds_t duration
) noexcept nogil:
    return rate_sum_to(steps, begin + duration) - rate_sum_to(steps, begin)


cdef inline seconds_t rate_next(const RateSteps* steps, seconds_t time) noexcept nogil:
    # When the next step after a moment begins.
    cdef double cycles = floor((time - steps.first) / steps.period)
    cdef Py_ssize_t step = rate_step(steps, time - steps.first - cycles * steps.period)
    cdef double next_time = time
    # Rounding may put a moment at which a step begins just before it.
    while next_time <= time:
        step += 1
        if step == steps.count:
            step = 0
            cycles += 1.0
        next_time = steps.first + cycles * steps.period + steps.offset[step]
    return next_time


cdef inline seconds_t rate_duration(const Deferral* deferral, seconds_t request) noexcept nogil:
    return request if request < deferral.look_ahead else deferral.look_ahead


cdef inline seconds_t cheapest_start(
    const RateSteps* steps, const Deferral* deferral, seconds_t now, seconds_t latest,
    seconds_t request,
) noexcept nogil:
    # From now until the latest moment, the earliest at which the job costs least; now where a
    # delay does not save enough. The cost is linear in the start between the moments at which the
    # start or the end meets a step.
    cdef seconds_t duration = rate_duration(deferral, request)
    cdef double cost = rate_sum(steps, now, duration)
    cdef double noise = 1e-9 * steps.scale * duration
    cdef double least = cost - deferral.saving * fabs(cost)
    cdef double found
    cdef seconds_t best = now
    cdef seconds_t shift = 0.0
    cdef seconds_t candidate, moment
    if latest <= now or duration <= 0.0:
        return now
    while True:
        candidate = now
        moment = now + shift
        while candidate < latest:
            moment = rate_next(steps, moment)
            candidate = moment - shift
            if candidate > latest:
                candidate = latest
            found = rate_sum(steps, candidate, duration)
            if found < least - noise or best > now and candidate < best and found <= least + noise:
                best = candidate
                least = found
        if shift > 0.0:
            return best
        shift = duration
