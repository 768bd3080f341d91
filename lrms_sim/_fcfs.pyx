"""First come, first served, and list scheduling: the disciplines that look at no estimate.

What each does and how it breaks ties: docs/disciplines.md.
"""

from lrms_sim._queue cimport WaitingQueue, queue_next_fit
from lrms_sim._scheduler cimport Scheduler
from lrms_sim._view cimport View


cdef int fcfs_decide(void* notes, View* view) except -1 nogil:
    cdef WaitingQueue* queue = &view.queue
    while queue.count > 0 and queue.width[queue.head] <= view.processors_free:
        view.start(view, queue.head)
    return 0


cdef class FcfsScheduler(Scheduler):
    """First come, first served."""

    def __init__(self):
        self.ops.decide = fcfs_decide


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


cdef class ListScheduler(Scheduler):
    """List scheduling."""

    def __init__(self):
        self.ops.decide = list_decide
