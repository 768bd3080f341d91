"""Passes that follow an order of the jobs: FCFS, EASY, list scheduling, and replanning.

Every function takes a view, which has no run times. Higher scores come first; what ties goes by
the job's number.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport qsort

from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.malleable._view cimport (
    PassResult,
    View,
    eligible,
    has_memory,
    may_be_suspended,
    time_on,
    unit_utility,
)


cdef void features(const View* view, job_index_t job, bint waits, double* found) noexcept nogil:
    # What an order with weights knows of a job; docs/utility.md has the table.
    cdef seconds_t left = view.notes.left[job]
    cdef seconds_t request = view.columns.request[job]
    cdef seconds_t age = view.now - view.columns.submit_time[job]
    cdef double plateau = view.columns.plateau[job] * request
    cdef double zero = view.columns.zero[job] * request
    cdef double unit
    if not waits:
        left = time_on(view, job, view.notes.held[job], left)
        left -= view.now - view.notes.since[job]
        left *= time_on(view, job, view.columns.width[job], 1.0)
        left /= time_on(view, job, view.notes.held[job], 1.0)
        if left < 0.0:
            left = 0.0
    unit = unit_utility(view, job, view.now + left)
    found[0] = unit * request / left if left > 0.0 else unit * 1e6
    found[1] = unit
    found[2] = left / request
    found[3] = <double> view.columns.width[job] / view.processors
    found[4] = bounded((plateau - age - left) / request)
    found[5] = bounded((zero - age - left) / request)
    found[6] = bounded(age / request)
    found[7] = 0.0 if waits else 1.0


cdef inline double bounded(double value) noexcept nogil:
    # Utilities that never fall have an infinite slack, and a weight of 0 has to silence it.
    return -10.0 if value < -10.0 else 10.0 if value > 10.0 else value


cdef double score_of(
    const View* view, const OrderPolicy* policy, job_index_t job, bint waits
) noexcept nogil:
    cdef double found[FEATURES]
    cdef double score = 0.0
    cdef int feature
    if policy.order == ORDER_ARRIVAL:
        return 0.0
    if policy.order == ORDER_WEIGHT:
        return view.columns.weight[job]
    if policy.order == ORDER_DEADLINE:
        return -(
            view.columns.submit_time[job] + view.columns.zero[job] * view.columns.request[job]
        )
    features(view, job, waits, found)
    if policy.order == ORDER_DENSITY:
        return found[0]
    for feature in range(FEATURES):
        score += policy.weights[feature] * found[feature]
    return score


cdef int by_score(const void* left, const void* right) noexcept nogil:
    cdef const Ranked* a = <const Ranked*> left
    cdef const Ranked* b = <const Ranked*> right
    if a.score != b.score:
        return -1 if a.score > b.score else 1
    return -1 if a.job < b.job else 1


cdef int by_time(const void* left, const void* right) noexcept nogil:
    cdef const Release* a = <const Release*> left
    cdef const Release* b = <const Release*> right
    if a.time != b.time:
        return -1 if a.time < b.time else 1
    return -1 if a.job < b.job else 1


cdef Py_ssize_t rank_jobs(
    const View* view, const OrderPolicy* policy, OrderScratch* scratch, bint with_running
) noexcept nogil:
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t place
    cdef job_index_t job
    for place in range(view.waiting.count):
        job = view.waiting.job[place]
        if eligible(view, job) and view.columns.width[job] <= view.processors:
            scratch.ranked[count].job = job
            scratch.ranked[count].waits = True
            scratch.ranked[count].granted = 0
            scratch.ranked[count].score = score_of(view, policy, job, True)
            count += 1
    if with_running:
        for place in range(view.running.count):
            job = view.running.job[place]
            scratch.ranked[count].job = job
            scratch.ranked[count].waits = False
            scratch.ranked[count].granted = 0
            scratch.ranked[count].score = score_of(view, policy, job, False)
            count += 1
    qsort(scratch.ranked, count, sizeof(Ranked), by_score)
    return count


cdef seconds_t shadow_of(
    const View* view, OrderScratch* scratch, processors_t wanted, processors_t* extra
) noexcept nogil:
    # When that many processors are expected to be free, and how many more there are by then.
    cdef Py_ssize_t place
    cdef job_index_t job
    cdef processors_t free = view.processors_free
    cdef Py_ssize_t count = view.running.count
    cdef seconds_t shadow = view.now
    for place in range(count):
        job = view.running.job[place]
        scratch.release[place].job = job
        scratch.release[place].time = view.notes.expected_end[job]
    qsort(scratch.release, count, sizeof(Release), by_time)
    place = 0
    while place < count and (free < wanted or scratch.release[place].time <= shadow):
        # All that are expected to end at the shadow time count.
        shadow = scratch.release[place].time
        free += view.notes.held[scratch.release[place].job]
        place += 1
    extra[0] = free - wanted
    return shadow


cdef struct Gap:
    # What may still be filled in front of the first job that does not fit.
    bint blocked
    seconds_t shadow
    processors_t extra

cdef enum Verdict:
    STARTED = 0
    PASSED = 1
    STOPPED = 2


cdef int consider(
    View* view, const OrderPolicy* policy, OrderScratch* scratch, job_index_t job, Gap* gap,
    PassResult* result
) except -1 nogil:
    # What becomes of the next job in the order.
    cdef processors_t width = view.columns.width[job]
    if width > view.processors_free:
        if policy.mechanism == FOLLOW_HEAD:
            return STOPPED
        if policy.mechanism == FOLLOW_EASY and not gap.blocked:
            gap.blocked = True
            gap.shadow = shadow_of(view, scratch, width, &gap.extra)
        return PASSED
    if gap.blocked and view.now + view.notes.left[job] > gap.shadow:
        if width > gap.extra:
            return PASSED
        gap.extra -= width
    view.start(view, job, width)
    result.changed = True
    return STARTED


cdef int follow_queue(
    View* view, const OrderPolicy* policy, OrderScratch* scratch, PassResult* result
) except -1 nogil:
    # FCFS, EASY and list scheduling: nobody who runs is touched.
    cdef Py_ssize_t count
    cdef Py_ssize_t place = 0
    cdef job_index_t job
    cdef int verdict
    cdef Gap gap
    gap.blocked = False
    gap.shadow = INFINITY
    gap.extra = 0
    if policy.order == ORDER_ARRIVAL:
        # The queue stands in this order; whoever starts leaves it, and the next one moves up.
        while place < view.waiting.count and view.processors_free > 0:
            job = view.waiting.job[place]
            if not eligible(view, job) or view.columns.width[job] > view.processors:
                place += 1
                continue
            verdict = consider(view, policy, scratch, job, &gap, result)
            if verdict == STOPPED:
                break
            if verdict == PASSED:
                place += 1
        return 0
    if view.waiting.count == 0 or view.processors_free == 0:
        return 0
    count = rank_jobs(view, policy, scratch, False)
    for place in range(count):
        if consider(view, policy, scratch, scratch.ranked[place].job, &gap, result) == STOPPED:
            break
    return 0


cdef bint grant(
    const View* view, const OrderPolicy* policy, OrderScratch* scratch, Py_ssize_t count,
    bint keep_all
) noexcept nogil:
    # Says who gets how much, first those who may not be suspended. False if suspended jobs
    # would need more memory than there is.
    cdef Py_ssize_t place
    cdef job_index_t job
    cdef processors_t width
    cdef processors_t free = view.processors
    cdef double stored = view.suspended
    cdef Ranked* entry
    cdef bint squeezed = not policy.squeezes
    for place in range(count):
        entry = &scratch.ranked[place]
        entry.granted = 0
        if not entry.waits and (keep_all or not may_be_suspended(view, entry.job)):
            entry.granted = view.notes.held[entry.job]
            free -= entry.granted
    for place in range(count):
        entry = &scratch.ranked[place]
        job = entry.job
        width = view.columns.width[job]
        if width - entry.granted <= free:
            free -= width - entry.granted
            entry.granted = width
        elif not squeezed and entry.granted + free >= view.columns.width_min[job]:
            if entry.granted + free > 0:
                entry.granted += free
                free = 0
                squeezed = True
    for place in range(count):
        entry = &scratch.ranked[place]
        if entry.waits and entry.granted > 0:
            stored -= view.notes.stored[entry.job]
        elif not entry.waits and entry.granted == 0:
            stored += view.notes.held[entry.job]
    return keep_all or has_memory(view, stored)


cdef int replan(
    View* view, const OrderPolicy* policy, OrderScratch* scratch, PassResult* result
) except -1 nogil:
    # Everybody in order, as if the machine were empty. Releases come before grants.
    cdef Py_ssize_t count = rank_jobs(view, policy, scratch, True)
    cdef Py_ssize_t place
    cdef Ranked* entry
    if not grant(view, policy, scratch, count, False):
        grant(view, policy, scratch, count, True)
    for place in range(count):
        entry = &scratch.ranked[place]
        if not entry.waits:
            if entry.granted == 0:
                view.suspend(view, entry.job)
                result.acted = True
            elif entry.granted < view.notes.held[entry.job]:
                view.resize(view, entry.job, entry.granted)
                result.acted = True
    for place in range(count):
        entry = &scratch.ranked[place]
        if entry.waits and entry.granted > 0:
            view.start(view, entry.job, entry.granted)
            result.changed = True
        elif not entry.waits and entry.granted > view.notes.held[entry.job]:
            view.resize(view, entry.job, entry.granted)
            result.changed = True
    return 0


cdef int follow(
    View* view, const OrderPolicy* policy, OrderScratch* scratch, PassResult* result
) except -1 nogil:
    if policy.mechanism == FOLLOW_REPLAN:
        return replan(view, policy, scratch, result)
    return follow_queue(view, policy, scratch, result)
