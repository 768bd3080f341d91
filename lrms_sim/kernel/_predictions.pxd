# How long jobs will run, as far as EASY++ knows: by the last two jobs of a user that have ended.
#
# After Tsafrir, Etsion, Feitelson 2007; what it does exactly: docs/disciplines.md.
from libc.math cimport INFINITY, NAN, floor
from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free

from lrms_sim.kernel._corrections cimport CORRECTIONS, correction
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._queue cimport queue_slot
from lrms_sim.kernel._releases cimport Releases, releases_add, releases_remove
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef enum:
    USERS_MAX = 1 << 24

cdef struct Guess:
    seconds_t first              # the prediction at submission
    seconds_t now                # the one in force
    int8_t corrections

cdef struct Recent:
    seconds_t last               # run time of the user's job that ended last, nan before
    seconds_t before             # of the one that ended before it

cdef struct Predictions:
    Guess* guess                 # by job
    Py_ssize_t guess_capacity
    Recent* recent               # by user
    Py_ssize_t recent_capacity
    bint predicts                # else every prediction is the request


cdef inline void predictions_free(Predictions* predictions) noexcept nogil:
    free(predictions.guess)
    free(predictions.recent)
    predictions.guess = NULL
    predictions.recent = NULL


cdef inline int room_for_job(Predictions* predictions, job_index_t job) except -1 nogil:
    cdef Py_ssize_t capacity
    if job >= predictions.guess_capacity:
        capacity = doubled(predictions.guess_capacity, 1024)
        while capacity <= job:
            capacity = doubled(capacity, 1024)
        predictions.guess = <Guess*> safe_realloc(
            predictions.guess, capacity, sizeof(Guess), b"predictions of jobs"
        )
        predictions.guess_capacity = capacity
    return 0


cdef inline int room_for_user(Predictions* predictions, int32_t user) except -1 nogil:
    cdef Py_ssize_t capacity, i
    if user >= predictions.recent_capacity:
        capacity = doubled(predictions.recent_capacity, 256)
        while capacity <= user:
            capacity = doubled(capacity, 256)
        predictions.recent = <Recent*> safe_realloc(
            predictions.recent, capacity, sizeof(Recent), b"run times of users"
        )
        for i in range(predictions.recent_capacity, capacity):
            predictions.recent[i].last = NAN
            predictions.recent[i].before = NAN
        predictions.recent_capacity = capacity
    return 0


cdef inline int32_t user_of(const View* view, job_index_t job) noexcept nogil:
    return -1 if view.job_user == NULL else view.job_user[job]


cdef inline int predict(Predictions* predictions, const View* view, job_index_t job) \
        except -1 nogil:
    # The first prediction of a job that has been submitted.
    cdef seconds_t prediction = view.requested_time[job]
    cdef int32_t user = user_of(view, job)
    cdef seconds_t mean
    if predictions.predicts and 0 <= user < predictions.recent_capacity:
        # No number before two have ended, and then the comparison is false.
        mean = floor((predictions.recent[user].last + predictions.recent[user].before) / 2.0)
        if mean < 1.0:
            mean = 1.0
        if mean < prediction:
            prediction = mean
    room_for_job(predictions, job)
    predictions.guess[job].first = prediction
    predictions.guess[job].now = prediction
    predictions.guess[job].corrections = 0
    return 0


cdef inline int learn(Predictions* predictions, const View* view, job_index_t job) \
        except -1 nogil:
    # Of a job that has ended the run time is no secret any more.
    cdef int32_t user = user_of(view, job)
    if user >= 0:
        room_for_user(predictions, user)
        predictions.recent[user].before = predictions.recent[user].last
        predictions.recent[user].last = view.now - view.start_time[job]
    return 0


cdef inline void correct(
    Guess* guess, seconds_t start, seconds_t request, seconds_t now
) noexcept nogil:
    # The next prediction that is still to come, or else, after the last correction, the request.
    while start + guess.now <= now and guess.now < request:
        if guess.corrections == CORRECTIONS:
            guess.now = request
        else:
            guess.now = guess.first + correction(guess.corrections)
            guess.corrections += 1
            if guess.now > request:
                guess.now = request


# --- running jobs by predicted end ----------------------------------------------------------

cdef inline void wake_at_first(const Releases* releases, View* view) noexcept nogil:
    # The machine calls `overdue` when the first predicted end has come.
    view.wake_time = releases.release[0].time if releases.count else INFINITY


cdef inline int predicted_start(
    Predictions* predictions, Releases* releases, View* view, job_index_t job
) except -1 nogil:
    # A prediction too short to be seen on the clock is corrected at once.
    cdef Guess* guess = &predictions.guess[job]
    correct(guess, view.now, view.requested_time[job], view.now)
    releases_add(releases, view.now + guess.now, job, view.job_processors[job])
    view.start(view, queue_slot(&view.queue, job))
    wake_at_first(releases, view)
    return 0


cdef inline void predicted_ended(
    Predictions* predictions, Releases* releases, View* view, job_index_t job
) noexcept nogil:
    releases_remove(releases, view.start_time[job] + predictions.guess[job].now, job)
    wake_at_first(releases, view)


cdef inline int predicted_overdue(
    Predictions* predictions, Releases* releases, View* view
) except -1 nogil:
    # Corrects those that have outlived their predictions. Those that end at this very instant are
    # not among the releases any more.
    cdef Guess* guess = predictions.guess
    cdef job_index_t job
    cdef processors_t width
    while releases.count and releases.release[0].time <= view.now:
        job = releases.release[0].job
        width = releases.release[0].processors
        releases_remove(releases, releases.release[0].time, job)
        correct(&guess[job], view.start_time[job], view.requested_time[job], view.now)
        releases_add(releases, view.start_time[job] + guess[job].now, job, width)
    wake_at_first(releases, view)
    return 0


cdef inline object history_of(const Predictions* predictions):
    # The last two run times of every user of whom a job has ended: (user, last, before).
    cdef Py_ssize_t user
    rows = []
    for user in range(predictions.recent_capacity):
        if predictions.recent[user].last == predictions.recent[user].last:
            rows.append((user, predictions.recent[user].last, predictions.recent[user].before))
    return tuple(rows)


cdef inline object remember_history(Predictions* predictions, object history):
    for user, last, before in history:
        if not 0 <= user < USERS_MAX:
            raise ValueError(f"user {user}; numbers from 0 to {USERS_MAX - 1} are possible")
        room_for_user(predictions, user)
        predictions.recent[<Py_ssize_t> user].last = last
        predictions.recent[<Py_ssize_t> user].before = before
