"""First come, first served, and list scheduling: the disciplines that look at no estimate.

What each does and how it breaks ties: docs/disciplines.md.
"""

from lrms_sim.kernel._queue cimport WaitingQueue, queue_next_fit
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport processors_t, seconds_t
from lrms_sim.kernel._view cimport View


cdef int fcfs_decide(void* notes, View* view) except -1 nogil:
    cdef WaitingQueue* queue = &view.queue
    while queue.count > 0 and queue.width[queue.head] <= view.processors_free:
        view.start(view, queue.head)
    return 0


cdef bint fcfs_starts_now(
    void* notes, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    return view.queue.count == 0 and width <= view.processors_free


cdef class FcfsScheduler(Scheduler):
    def __init__(self):
        self.any_order = True
        self.preempts = True
        self.outlives = True
        self.ops.decide = fcfs_decide
        self.ops.starts_now = fcfs_starts_now


cdef int list_decide(void* notes, View* view) except -1 nogil:
    cdef Py_ssize_t slot = view.queue.head
    while view.queue.count > 0 and view.processors_free > 0:
        slot = queue_next_fit(&view.queue, slot, view.processors_free)
        if slot < 0:
            break
        view.start(view, slot)
        # Starting only takes processors away: nothing before this slot can fit by now.
        slot += 1
    return 0


cdef bint list_starts_now(
    void* notes, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    # After a pass nobody who waits fits.
    return width <= view.processors_free


cdef class ListScheduler(Scheduler):
    def __init__(self):
        self.any_order = True
        self.preempts = True
        self.outlives = True
        self.ops.decide = list_decide
        self.ops.starts_now = list_starts_now
