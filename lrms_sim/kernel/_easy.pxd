# EASY's pass over a queue, for disciplines that start jobs in their own way.
from lrms_sim.kernel._queue cimport WaitingQueue, queue_next_backfill, queue_next_fit
from lrms_sim.kernel._releases cimport Releases, Shadow, releases_shadow
from lrms_sim.kernel._types cimport processors_t, seconds_t
from lrms_sim.kernel._view cimport View

ctypedef int (*start_slot)(void* own, View* view, Py_ssize_t slot) except -1 nogil


cdef inline int easy_pass(
    void* own, View* view, WaitingQueue* queue, const Releases* releases, start_slot start
) except -1 nogil:
    # Starts the heads that fit, then who, by estimates, does not delay the blocked head.
    cdef Shadow shadow
    cdef seconds_t end_estimate
    cdef processors_t width
    cdef Py_ssize_t slot

    while queue.count > 0 and queue.width[queue.head] <= view.processors_free:
        start(own, view, queue.head)
    if queue.count < 2 or view.processors_free == 0:
        return 0
    # Most passes end here: nobody behind the blocked head fits at all.
    slot = queue_next_fit(queue, queue.head + 1, view.processors_free)
    if slot < 0:
        return 0

    shadow = releases_shadow(releases, view.processors_free, queue.width[queue.head])
    while view.processors_free > 0:
        slot = queue_next_backfill(
            queue, slot, view.processors_free, shadow.extra, view.now, shadow.time
        )
        if slot < 0:
            break
        width = queue.width[slot]
        end_estimate = view.now + queue.request[slot]
        start(own, view, slot)
        if end_estimate > shadow.time:
            shadow.extra -= width
        slot += 1
    return 0


cdef inline bint easy_admits(
    const View* view, const WaitingQueue* queue, const Releases* releases, processors_t width,
    seconds_t request,
) noexcept nogil:
    # Whether a job that comes behind the queue would start now, if all who can have started.
    cdef Shadow shadow
    if width > view.processors_free:
        return False
    if queue.count == 0:
        return True
    shadow = releases_shadow(releases, view.processors_free, queue.width[queue.head])
    return width <= shadow.extra or view.now + request <= shadow.time
