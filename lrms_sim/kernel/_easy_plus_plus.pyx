"""EASY++: EASY per event on predictions of run times, shortest predictions backfilled first.

After D. Tsafrir, Y. Etsion, D. G. Feitelson, "Backfilling Using System-Generated Predictions Rather
than User Runtime Estimates", IEEE TPDS 18(6), 2007. What it does exactly: docs/disciplines.md.

A prediction rests on run times of jobs that have ended. The machine says when a job has outlived
its prediction, by calling `overdue`, and the prediction is corrected before anything else happens.
"""

from libc.stdlib cimport free

from lrms_sim.kernel._keyed cimport search_shortest
from lrms_sim.kernel._room cimport Best, Room, room_for_all
from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._predictions cimport (
    Predictions,
    history_of,
    learn,
    predict,
    predicted_ended,
    predicted_overdue,
    predicted_start,
    predictions_free,
    remember_history,
)
from lrms_sim.kernel._queue cimport (
    WaitingQueue,
    queue_free,
    queue_next_fit,
    queue_push,
    queue_remove,
    queue_slot,
)
from lrms_sim.kernel._releases cimport Releases, Shadow, releases_free, releases_shadow
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef struct Notes:
    WaitingQueue waiting         # the same jobs as in the queue, predictions as their requests
    Releases releases            # running jobs by predicted end
    Predictions predictions


cdef int predicting_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    predict(&notes.predictions, view, job)
    return queue_push(
        &notes.waiting, job, view.job_processors[job], notes.predictions.guess[job].now
    )


cdef int predicting_withdrawn(void* own, View* view, job_index_t job) except -1 nogil:
    cdef WaitingQueue* waiting = &(<Notes*> own).waiting
    queue_remove(waiting, queue_slot(waiting, job))
    return 0


cdef int predicting_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    predicted_ended(&notes.predictions, &notes.releases, view, job)
    return 0


cdef int predicting_finished(void* own, View* view, job_index_t job) except -1 nogil:
    return learn(&(<Notes*> own).predictions, view, job)


cdef seconds_t predicting_estimate(void* own, const View* view, job_index_t job) noexcept nogil:
    return (<Notes*> own).predictions.guess[job].now


cdef int predicting_overdue(void* own, View* view) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    return predicted_overdue(&notes.predictions, &notes.releases, view)


cdef int start(Notes* notes, View* view, job_index_t job) except -1 nogil:
    queue_remove(&notes.waiting, queue_slot(&notes.waiting, job))
    return predicted_start(&notes.predictions, &notes.releases, view, job)


cdef int predicting_decide(void* own, View* view) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    cdef WaitingQueue* queue = &view.queue
    cdef Room room
    cdef Best best
    cdef Shadow shadow
    while queue.count > 0 and queue.width[queue.head] <= view.processors_free:
        start(notes, view, queue.job[queue.head])
    if (
        queue.count < 2
        or view.processors_free == 0
        or queue_next_fit(queue, queue.head + 1, view.processors_free) < 0
    ):
        return 0
    shadow = releases_shadow(&notes.releases, view.processors_free, queue.width[queue.head])
    room_for_all(&room, view)
    room.shadow_time = shadow.time
    while view.processors_free > 0:
        room.free = view.processors_free
        room.extra = shadow.extra
        search_shortest(&notes.waiting, &room, &best)
        if best.job < 0:
            break
        start(notes, view, best.job)
        if view.now + best.request > shadow.time:
            shadow.extra -= best.width
    return 0


cdef class EasyPlusPlusScheduler(Scheduler):
    def __cinit__(self, *_arguments, **_options):
        self.notes = safe_calloc(1, sizeof(Notes), b"notes of a scheduler")

    def __init__(self, *, predicts=True):
        (<Notes*> self.notes).predictions.predicts = predicts
        self.outlives = True    # whoever outlives his request has outlived his prediction
        self.ops.submitted = predicting_submitted
        self.ops.withdrawn = predicting_withdrawn
        self.ops.ended = predicting_ended
        self.ops.finished = predicting_finished
        self.ops.overdue = predicting_overdue
        self.ops.estimate = predicting_estimate
        self.ops.decide = predicting_decide
        self.ops.per_event = True
        self.needs_users = predicts

    def __dealloc__(self):
        cdef Notes* notes = <Notes*> self.notes
        if notes != NULL:
            queue_free(&notes.waiting)
            releases_free(&notes.releases)
            predictions_free(&notes.predictions)
            free(notes)

    @property
    def history(self):
        """The last two run times of every user of whom a job has ended: (user, last, before)."""
        return history_of(&(<Notes*> self.notes).predictions)

    def remember(self, history):
        """Takes over the history of a machine before this one, as `history` gave it."""
        remember_history(&(<Notes*> self.notes).predictions, history)
