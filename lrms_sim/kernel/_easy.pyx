"""EASY backfilling. What it does and how it breaks ties: docs/disciplines.md."""

from libc.stdlib cimport free

from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._queue cimport WaitingQueue, queue_next_backfill
from lrms_sim.kernel._releases cimport (
    Releases,
    Shadow,
    releases_appeared,
    releases_ended,
    releases_free,
    releases_outlived,
    releases_shadow,
    releases_start,
)
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View


cdef int easy_ended(void* own, View* view, job_index_t job) except -1 nogil:
    releases_ended(<Releases*> own, view, job)
    return 0


cdef int easy_appeared(void* own, View* view, job_index_t job) except -1 nogil:
    return releases_appeared(<Releases*> own, view, job)


cdef int easy_outlived(
    void* own, View* view, job_index_t job, seconds_t estimate
) except -1 nogil:
    return releases_outlived(<Releases*> own, view, job, estimate)


cdef int easy_start(void* own, View* view, Py_ssize_t slot) except -1 nogil:
    return releases_start(<Releases*> own, view, slot)


cdef int easy_decide(void* own, View* view) except -1 nogil:
    return easy_pass(own, view, &view.queue, <Releases*> own, easy_start)


cdef bint easy_starts_now(
    void* own, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    return easy_admits(view, &view.queue, <Releases*> own, width, request)


cdef bint easy_per_event_starts_now(
    void* own, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    # The estimated end of a job can have come before the pass that fills its place: the job in
    # question would be behind whoever may start then.
    cdef const WaitingQueue* queue = &view.queue
    cdef Shadow shadow
    if queue.count > 0 and width <= view.processors_free:
        if queue.width[queue.head] <= view.processors_free:
            return False
        shadow = releases_shadow(
            <Releases*> own, view.processors_free, queue.width[queue.head]
        )
        if queue_next_backfill(
            queue, queue.head + 1, view.processors_free, shadow.extra, view.now, shadow.time
        ) >= 0:
            return False
    return easy_starts_now(own, view, width, request)


cdef class EasyScheduler(Scheduler):
    def __cinit__(self, *_arguments, **_options):
        self.notes = safe_calloc(1, sizeof(Releases), b"notes of a scheduler")

    def __init__(self, *, per_event=False):
        self.any_order = True
        self.preempts = True
        self.outlives = True
        self.ops.appeared = easy_appeared
        self.ops.outlived = easy_outlived
        self.ops.ended = easy_ended
        self.ops.decide = easy_decide
        self.ops.starts_now = easy_per_event_starts_now if per_event else easy_starts_now
        self.ops.per_event = per_event

    def __dealloc__(self):
        if self.notes != NULL:
            releases_free(<Releases*> self.notes)
            free(self.notes)
