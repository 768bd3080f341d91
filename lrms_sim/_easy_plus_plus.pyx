"""EASY++: EASY per event on predictions of run times, shortest predictions backfilled first.

After D. Tsafrir, Y. Etsion, D. G. Feitelson, "Backfilling Using System-Generated Predictions Rather
than User Runtime Estimates", IEEE TPDS 18(6), 2007. What it does exactly: docs/disciplines.md.

A prediction rests on run times of jobs that have ended. The machine says when a job has outlived
its prediction, by calling `overdue`, and the prediction is corrected before anything else happens.
"""

from libc.math cimport INFINITY, NAN, floor
from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free

from lrms_sim._keyed cimport search_shortest
from lrms_sim._room cimport Best, Room, room_for_all
from lrms_sim._memory cimport doubled, safe_calloc, safe_realloc
from lrms_sim._queue cimport (
    WaitingQueue,
    queue_free,
    queue_next_fit,
    queue_push,
    queue_remove,
    queue_slot,
)
from lrms_sim._releases cimport (
    Releases,
    Shadow,
    releases_add,
    releases_free,
    releases_remove,
    releases_shadow,
)
from lrms_sim._scheduler cimport Scheduler
from lrms_sim._types cimport job_index_t, processors_t, seconds_t
from lrms_sim._view cimport View

cdef enum:
    CORRECTIONS = 11
    USERS_MAX = 1 << 24

# What is added to the first prediction of a job, time after time; after the last, its request.
cdef seconds_t[CORRECTIONS] CORRECTION
CORRECTION[:] = [
    60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 18000.0, 36000.0, 72000.0, 180000.0, 360000.0,
]

cdef struct Guess:
    seconds_t first              # the prediction at submission
    seconds_t now                # the one in force
    int8_t corrections

cdef struct Recent:
    seconds_t last               # run time of the user's job that ended last, nan before
    seconds_t before             # of the one that ended before it

cdef struct Notes:
    WaitingQueue waiting         # the same jobs as in the queue, predictions as their requests
    Releases releases            # running jobs by predicted end
    Guess* guess                 # by job
    Py_ssize_t guess_capacity
    Recent* recent               # by user
    Py_ssize_t recent_capacity
    bint predicts                # else every prediction is the request


cdef inline void wake(Notes* notes, View* view) noexcept nogil:
    # The machine calls `overdue` when the first predicted end has come.
    view.wake_time = notes.releases.release[0].time if notes.releases.count else INFINITY


cdef int room_for_job(Notes* notes, job_index_t job) except -1 nogil:
    cdef Py_ssize_t capacity
    if job >= notes.guess_capacity:
        capacity = doubled(notes.guess_capacity, 1024)
        while capacity <= job:
            capacity = doubled(capacity, 1024)
        notes.guess = <Guess*> safe_realloc(
            notes.guess, capacity, sizeof(Guess), b"predictions of jobs"
        )
        notes.guess_capacity = capacity
    return 0


cdef int room_for_user(Notes* notes, int32_t user) except -1 nogil:
    cdef Py_ssize_t capacity, i
    if user >= notes.recent_capacity:
        capacity = doubled(notes.recent_capacity, 256)
        while capacity <= user:
            capacity = doubled(capacity, 256)
        notes.recent = <Recent*> safe_realloc(
            notes.recent, capacity, sizeof(Recent), b"run times of users"
        )
        for i in range(notes.recent_capacity, capacity):
            notes.recent[i].last = NAN
            notes.recent[i].before = NAN
        notes.recent_capacity = capacity
    return 0


cdef inline int32_t user_of(const View* view, job_index_t job) noexcept nogil:
    return -1 if view.job_user == NULL else view.job_user[job]


cdef int predicting_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    cdef seconds_t prediction = view.requested_time[job]
    cdef int32_t user = user_of(view, job)
    cdef seconds_t mean
    if notes.predicts and 0 <= user < notes.recent_capacity:
        # No number before two have ended, and then the comparison is false.
        mean = floor((notes.recent[user].last + notes.recent[user].before) / 2.0)
        if mean < 1.0:
            mean = 1.0
        if mean < prediction:
            prediction = mean
    room_for_job(notes, job)
    notes.guess[job].first = prediction
    notes.guess[job].now = prediction
    notes.guess[job].corrections = 0
    return queue_push(&notes.waiting, job, view.job_processors[job], prediction)


cdef int predicting_withdrawn(void* own, View* view, job_index_t job) except -1 nogil:
    cdef WaitingQueue* waiting = &(<Notes*> own).waiting
    queue_remove(waiting, queue_slot(waiting, job))
    return 0


cdef int predicting_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    releases_remove(&notes.releases, view.start_time[job] + notes.guess[job].now, job)
    wake(notes, view)
    return 0


cdef int predicting_finished(void* own, View* view, job_index_t job) except -1 nogil:
    # Of a job that has ended the run time is no secret any more.
    cdef Notes* notes = <Notes*> own
    cdef int32_t user = user_of(view, job)
    if user >= 0:
        room_for_user(notes, user)
        notes.recent[user].before = notes.recent[user].last
        notes.recent[user].last = view.now - view.start_time[job]
    return 0


cdef seconds_t predicting_estimate(void* own, const View* view, job_index_t job) noexcept nogil:
    return (<Notes*> own).guess[job].now


cdef void correct(Guess* guess, seconds_t start, seconds_t request, seconds_t now) noexcept nogil:
    # The next prediction that is still to come, or else the request.
    while start + guess.now <= now and guess.now < request:
        if guess.corrections == CORRECTIONS:
            guess.now = request
        else:
            guess.now = guess.first + CORRECTION[guess.corrections]
            guess.corrections += 1
            if guess.now > request:
                guess.now = request


cdef int predicting_overdue(void* own, View* view) except -1 nogil:
    # Those who end at this very instant are not among the releases any more.
    cdef Notes* notes = <Notes*> own
    cdef Releases* releases = &notes.releases
    cdef job_index_t job
    cdef processors_t width
    while releases.count and releases.release[0].time <= view.now:
        job = releases.release[0].job
        width = releases.release[0].processors
        releases_remove(releases, releases.release[0].time, job)
        correct(&notes.guess[job], view.start_time[job], view.requested_time[job], view.now)
        releases_add(releases, view.start_time[job] + notes.guess[job].now, job, width)
    wake(notes, view)
    return 0


cdef int start(Notes* notes, View* view, job_index_t job) except -1 nogil:
    cdef Guess* guess = &notes.guess[job]
    cdef processors_t width = view.job_processors[job]
    # A prediction too short to be seen on the clock is corrected at once.
    correct(guess, view.now, view.requested_time[job], view.now)
    releases_add(&notes.releases, view.now + guess.now, job, width)
    queue_remove(&notes.waiting, queue_slot(&notes.waiting, job))
    view.start(view, queue_slot(&view.queue, job))
    wake(notes, view)
    return 0


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
    """EASY++."""

    def __cinit__(self, *_arguments, **_options):
        self.notes = safe_calloc(1, sizeof(Notes), b"notes of a scheduler")

    def __init__(self, *, predicts=True):
        (<Notes*> self.notes).predicts = predicts
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
            free(notes.guess)
            free(notes.recent)
            free(notes)

    @property
    def history(self):
        """The last two run times of every user of whom a job has ended: (user, last, before)."""
        cdef Notes* notes = <Notes*> self.notes
        cdef Py_ssize_t user
        return tuple(
            (user, notes.recent[user].last, notes.recent[user].before)
            for user in range(notes.recent_capacity)
            if notes.recent[user].last == notes.recent[user].last
        )

    def remember(self, history):
        """Takes over the history of a machine before this one, as `history` gave it."""
        cdef Notes* notes = <Notes*> self.notes
        for user, last, before in history:
            if not 0 <= user < USERS_MAX:
                raise ValueError(f"user {user}; numbers from 0 to {USERS_MAX - 1} are possible")
            room_for_user(notes, user)
            notes.recent[<Py_ssize_t> user].last = last
            notes.recent[<Py_ssize_t> user].before = before
