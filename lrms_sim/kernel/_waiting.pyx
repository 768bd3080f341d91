"""The waiting jobs of a machine, in all orders in which strategies may look at them.

A job is in every order that is in use from its submission until it starts or is withdrawn.
"""

from libc.stdlib cimport free

from lrms_sim.kernel._criteria cimport GROUPS
from lrms_sim.kernel._keyed cimport KEY_KINDS, keyed_free, keyed_push, keyed_remove
from lrms_sim.kernel._lines cimport group_of, lines_free, lines_push, lines_remove
from lrms_sim.kernel._profile cimport profile_close
from lrms_sim.kernel._queue cimport queue_free, queue_push, queue_remove, queue_slot
from lrms_sim.kernel._releases cimport (
    releases_ended,
    releases_free,
    releases_outlived,
    releases_start,
)
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View


cdef void waiting_free(Waiting* waiting) noexcept nogil:
    cdef Py_ssize_t group, number
    for group in range(GROUPS):
        queue_free(&waiting.lanes[group])
    for number in range(waiting.lines_count):
        lines_free(&waiting.lines[number])
    free(waiting.lines)
    waiting.lines = NULL
    waiting.lines_count = 0
    for number in range(KEY_KINDS):
        keyed_free(&waiting.keyed[number])
    releases_free(&waiting.releases)
    profile_close(&waiting.profile)
    free(waiting.planned)
    waiting.planned = NULL
    waiting.planned_capacity = 0


cdef int waiting_submitted(Waiting* waiting, View* view, job_index_t job) except -1 nogil:
    cdef processors_t width = view.job_processors[job]
    cdef seconds_t request = view.requested_time[job]
    cdef Py_ssize_t group = group_of(view.job_group, job)
    cdef Py_ssize_t number
    if waiting.by_lane:
        queue_push(&waiting.lanes[group], job, width, request)
    if waiting.by_work:
        waiting.work[group] += request * width
        waiting.count[group] += 1
    for number in range(waiting.lines_count):
        lines_push(&waiting.lines[number], view, job)
    if waiting.by_key:
        for number in range(KEY_KINDS):
            if waiting.keyed[number].used:
                keyed_push(&waiting.keyed[number], view, job, width, request)
    return 0


cdef int waiting_ended(Waiting* waiting, View* view, job_index_t job) except -1 nogil:
    if waiting.by_release:
        releases_ended(&waiting.releases, view, job)
    return 0


cdef int waiting_outlived(
    Waiting* waiting, View* view, job_index_t job, seconds_t estimate
) except -1 nogil:
    if waiting.by_release:
        return releases_outlived(&waiting.releases, view, job, estimate)
    return 0


cdef void waiting_withdrawn(Waiting* waiting, View* view, job_index_t job) noexcept nogil:
    # Forgets a job that leaves the queue.
    cdef Py_ssize_t group = group_of(view.job_group, job)
    cdef Py_ssize_t number
    if waiting.by_lane:
        queue_remove(&waiting.lanes[group], queue_slot(&waiting.lanes[group], job))
    if waiting.by_work:
        # Whole seconds are summed without error; what others leave behind ends here.
        waiting.work[group] -= view.requested_time[job] * view.job_processors[job]
        waiting.count[group] -= 1
        if waiting.count[group] == 0:
            waiting.work[group] = 0.0
    for number in range(waiting.lines_count):
        lines_remove(&waiting.lines[number], job)
    if waiting.by_key:
        for number in range(KEY_KINDS):
            if waiting.keyed[number].used:
                keyed_remove(
                    &waiting.keyed[number], queue_slot(&waiting.keyed[number].queue, job)
                )


cdef int waiting_start(Waiting* waiting, View* view, job_index_t job) except -1 nogil:
    cdef Py_ssize_t slot = queue_slot(&view.queue, job)
    waiting_withdrawn(waiting, view, job)
    if waiting.by_release:
        return releases_start(&waiting.releases, view, slot)
    return view.start(view, slot)
