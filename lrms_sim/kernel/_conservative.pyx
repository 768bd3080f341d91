"""Conservative backfilling with compression. What it does exactly: docs/disciplines.md."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from lrms_sim.kernel._long_profile cimport (
    LongProfile,
    long_begin,
    long_close,
    long_earlier,
    long_finish,
    long_fits,
    long_forget,
    long_forget_windows,
    long_take,
    width_class,
)
from lrms_sim.kernel._memory cimport doubled, safe_calloc, safe_realloc
from lrms_sim.kernel._profile cimport (
    Profile,
    profile_begin,
    profile_close,
    profile_earliest,
    profile_fits,
    profile_forget,
    profile_most_free,
    profile_take,
)
from lrms_sim.kernel._queue cimport WaitingQueue
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

# The profile holds running jobs up to their estimated ends and a reservation of every waiting job.
#
# Compression takes the waiting jobs in order of arrival and puts each at its earliest fit. A job
# that had its earliest fit at its last turn can only move if its new window covers, before its
# present start, some processors that have become free since: by early ends, and by jobs that
# moved. The profile is searched with the job in it, as far as its own place, and is changed only
# if the job moves.
#
# A short queue has a flat profile. The notes keep one interval around all that was freed, and the
# most processors free anywhere in it: a wider job stays where it is, unseen. In a long queue
# two jobs of five move at each early end, most by a little, and what is freed is everywhere; what
# counts there is that a search and a change are cheap. Its profile keeps windows by classes of
# widths, each class with a stamp: the sweep and the job at whose turn processors were last given
# back to it. A job whose own last turn was later stays where it is.

cdef struct ConservativeNotes:
    Profile profile                # of a short queue
    LongProfile long_profile       # of a long one
    bint long_queue                # which of them is in use
    Py_ssize_t long_from           # the long one from so many waiting jobs on, until they are half
    int64_t sweep                  # number of the last compression
    seconds_t* reserved            # by job: start of its reservation
    Py_ssize_t reserved_capacity
    job_index_t* fresh             # submitted since the last pass, without reservation
    Py_ssize_t fresh_count
    Py_ssize_t fresh_capacity
    seconds_t freed_from           # interval around all that was freed since the last sweep
    seconds_t freed_to
    seconds_t next_start           # of all reservations
    bint ended_early               # a job has ended before its estimate since the last pass
    bint outlived                  # a job has outlived its estimate since then: nothing is promised


cdef int conservative_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    cdef ConservativeNotes* notes = <ConservativeNotes*> own
    cdef Py_ssize_t capacity
    if job >= notes.reserved_capacity:
        capacity = doubled(notes.reserved_capacity, 1024)
        if capacity <= job:
            capacity = <Py_ssize_t> job + 1
        notes.reserved = <seconds_t*> safe_realloc(
            notes.reserved, capacity, sizeof(seconds_t), b"reservations"
        )
        notes.reserved_capacity = capacity
    if notes.fresh_count == notes.fresh_capacity:
        capacity = doubled(notes.fresh_capacity, 64)
        notes.fresh = <job_index_t*> safe_realloc(
            notes.fresh, capacity, sizeof(job_index_t), b"arrivals at one instant"
        )
        notes.fresh_capacity = capacity
    notes.reserved[job] = INFINITY
    notes.fresh[notes.fresh_count] = job
    notes.fresh_count += 1
    return 0


cdef inline int64_t turn(int64_t sweep, job_index_t job) noexcept nogil:
    # Turns of jobs are numbered: sweep by sweep, in each by order of arrival.
    return (sweep << 32) + job


cdef inline void conservative_freed(
    ConservativeNotes* notes, seconds_t from_time, seconds_t to_time
) noexcept nogil:
    if from_time < notes.freed_from:
        notes.freed_from = from_time
    if to_time > notes.freed_to:
        notes.freed_to = to_time


cdef int conservative_give_back(
    ConservativeNotes* notes,
    const View* view,
    seconds_t from_time,
    seconds_t to_time,
    processors_t width,
) except -1 nogil:
    # Processors that were promised are nobody's, from now on at the earliest.
    notes.ended_early = True
    if notes.long_queue:
        notes.long_profile.stamp = turn(notes.sweep + 1, 0)
        long_forget(&notes.long_profile, view.now)
        return long_take(&notes.long_profile, from_time, to_time, -width)
    profile_forget(&notes.profile, view.now)
    profile_take(&notes.profile, from_time, to_time, -width)
    conservative_freed(notes, from_time, to_time)
    return 0


cdef int conservative_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef seconds_t end_estimate = view.start_time[job] + view.requested_time[job]
    if end_estimate > view.now:
        return conservative_give_back(
            <ConservativeNotes*> own, view, view.now, end_estimate, view.job_processors[job]
        )
    return 0


cdef int conservative_withdrawn(void* own, View* view, job_index_t job) except -1 nogil:
    cdef ConservativeNotes* notes = <ConservativeNotes*> own
    cdef seconds_t reserved = notes.reserved[job]
    cdef Py_ssize_t kept = 0
    cdef Py_ssize_t i
    if reserved < INFINITY:
        return conservative_give_back(
            notes, view, reserved, reserved + view.requested_time[job], view.job_processors[job]
        )
    for i in range(notes.fresh_count):
        if notes.fresh[i] != job:
            notes.fresh[kept] = notes.fresh[i]
            kept += 1
    notes.fresh_count = kept
    return 0


cdef inline int conservative_take(
    ConservativeNotes* notes, seconds_t from_time, seconds_t to_time, processors_t width
) except -1 nogil:
    if notes.long_queue:
        return long_take(&notes.long_profile, from_time, to_time, width)
    return profile_take(&notes.profile, from_time, to_time, width)


cdef int conservative_take_back(ConservativeNotes* notes, View* view) except -1 nogil:
    # Takes all reservations out of the profile.
    cdef WaitingQueue* queue = &view.queue
    cdef seconds_t reserved
    cdef job_index_t job
    cdef Py_ssize_t slot
    if notes.long_queue:
        notes.long_profile.stamp = turn(notes.sweep + 1, 0)
        long_forget(&notes.long_profile, view.now)
    else:
        profile_forget(&notes.profile, view.now)
    for slot in range(queue.head, queue.tail):
        job = queue.job[slot]
        if job < 0 or notes.reserved[job] == INFINITY:
            continue
        reserved = notes.reserved[job]
        conservative_take(notes, reserved, reserved + queue.request[slot], -queue.width[slot])
        notes.reserved[job] = INFINITY
    notes.next_start = INFINITY
    return 0


cdef int conservative_outlived(
    void* own, View* view, job_index_t job, seconds_t estimate
) except -1 nogil:
    # Its processors were promised from now on.
    cdef ConservativeNotes* notes = <ConservativeNotes*> own
    cdef seconds_t start_time = view.start_time[job]
    if not notes.outlived:
        conservative_take_back(notes, view)
        notes.outlived = True
    return conservative_take(
        notes, start_time + view.requested_time[job], start_time + estimate,
        view.job_processors[job],
    )


cdef int conservative_compress(ConservativeNotes* notes, View* view) except -1 nogil:
    cdef WaitingQueue* queue = &view.queue
    cdef seconds_t later_from = INFINITY
    cdef seconds_t later_to = -INFINITY
    cdef seconds_t reserved, start_time, request, from_time
    cdef processors_t width, most_free
    cdef job_index_t job
    cdef Py_ssize_t slot
    from_time = notes.freed_from if notes.freed_from > view.now else view.now
    most_free = profile_most_free(&notes.profile, from_time, notes.freed_to)
    for slot in range(queue.head, queue.tail):
        job = queue.job[slot]
        if job < 0 or notes.reserved[job] == INFINITY:
            continue
        reserved = notes.reserved[job]
        width = queue.width[slot]
        if reserved <= view.now or width > most_free:
            continue
        request = queue.request[slot]
        start_time = profile_earliest(&notes.profile, width, request, reserved)
        if start_time < reserved:
            profile_take(&notes.profile, reserved, reserved + request, -width)
            profile_take(&notes.profile, start_time, start_time + request, width)
            notes.reserved[job] = start_time
            if start_time < notes.next_start:
                notes.next_start = start_time
            from_time = start_time + request if start_time + request > reserved else reserved
            conservative_freed(notes, from_time, reserved + request)
            # Jobs before this one have had their turn: they look here in the next sweep.
            if from_time < later_from:
                later_from = from_time
            if reserved + request > later_to:
                later_to = reserved + request
            from_time = notes.freed_from if notes.freed_from > view.now else view.now
            most_free = profile_most_free(&notes.profile, from_time, notes.freed_to)
    notes.freed_from = later_from
    notes.freed_to = later_to
    return 0


cdef int conservative_compress_long(ConservativeNotes* notes, View* view) except -1 nogil:
    cdef LongProfile* profile = &notes.long_profile
    cdef WaitingQueue* queue = &view.queue
    cdef seconds_t reserved, start_time, request, both
    cdef processors_t width
    cdef job_index_t job
    cdef Py_ssize_t slot
    notes.sweep += 1
    for slot in range(queue.head, queue.tail):
        job = queue.job[slot]
        if job < 0 or notes.reserved[job] == INFINITY:
            continue
        reserved = notes.reserved[job]
        width = queue.width[slot]
        if (
            reserved <= view.now
            or profile.grown[width_class(width)] <= turn(notes.sweep - 1, job)
        ):
            continue
        request = queue.request[slot]
        start_time = long_earlier(profile, width, request, reserved)
        if start_time < reserved:
            profile.stamp = turn(notes.sweep, job)
            # What the old place and the new one have in common stays as it is.
            both = start_time + request
            if both > reserved:
                long_take(profile, both, reserved + request, -width)
                long_take(profile, start_time, reserved, width)
            else:
                long_take(profile, reserved, reserved + request, -width)
                long_take(profile, start_time, both, width)
            notes.reserved[job] = start_time
            if start_time < notes.next_start:
                notes.next_start = start_time
    return 0


cdef int conservative_choose_profile(ConservativeNotes* notes, View* view) except -1 nogil:
    if notes.profile.count == 0:
        profile_begin(&notes.profile, view.now, view.processors)
    if notes.long_queue:
        long_forget(&notes.long_profile, view.now)
        if view.queue.count <= notes.long_from >> 1:
            long_finish(&notes.long_profile, &notes.profile)
            notes.long_queue = False
            # Where processors have become free since everybody's last turn is not known.
            notes.freed_from = view.now
            notes.freed_to = INFINITY
    else:
        profile_forget(&notes.profile, view.now)
        if view.queue.count >= notes.long_from:
            notes.long_profile.stamp = turn(notes.sweep + 1, 0)
            long_begin(&notes.long_profile, &notes.profile)
            notes.long_queue = True
    return 0


cdef inline int conservative_promise(
    ConservativeNotes* notes, const View* view, job_index_t job
) except -1 nogil:
    cdef processors_t width = view.job_processors[job]
    cdef seconds_t request = view.requested_time[job]
    cdef seconds_t start_time
    if notes.long_queue:
        start_time = long_earlier(&notes.long_profile, width, request, INFINITY)
        long_take(&notes.long_profile, start_time, start_time + request, width)
    else:
        start_time = profile_earliest(&notes.profile, width, request, INFINITY)
        profile_take(&notes.profile, start_time, start_time + request, width)
    notes.reserved[job] = start_time
    if start_time < notes.next_start:
        notes.next_start = start_time
    return 0


cdef int conservative_reserve(ConservativeNotes* notes, View* view) except -1 nogil:
    # A reservation for each job that has come since the last pass.
    cdef Py_ssize_t i
    for i in range(notes.fresh_count):
        conservative_promise(notes, view, notes.fresh[i])
    notes.fresh_count = 0
    return 0


cdef int conservative_reserve_all(ConservativeNotes* notes, View* view) except -1 nogil:
    # The same for all who wait, none of whom has one.
    cdef WaitingQueue* queue = &view.queue
    cdef Py_ssize_t slot
    for slot in range(queue.head, queue.tail):
        if queue.job[slot] >= 0:
            conservative_promise(notes, view, queue.job[slot])
    notes.fresh_count = 0
    notes.freed_from = INFINITY
    notes.freed_to = -INFINITY
    return 0


cdef int conservative_start_due(ConservativeNotes* notes, View* view) except -1 nogil:
    # Starts those whose reservations begin now, and finds the first one of the others.
    cdef WaitingQueue* queue = &view.queue
    cdef job_index_t job
    cdef Py_ssize_t slot = queue.head
    notes.next_start = INFINITY
    while slot < queue.tail and queue.count > 0:
        job = queue.job[slot]
        if job >= 0:
            if notes.reserved[job] <= view.now:
                view.start(view, slot)
            elif notes.reserved[job] < notes.next_start:
                notes.next_start = notes.reserved[job]
        slot += 1
    return 0


cdef int conservative_decide(void* own, View* view) except -1 nogil:
    cdef ConservativeNotes* notes = <ConservativeNotes*> own
    conservative_choose_profile(notes, view)
    if notes.long_queue and (notes.ended_early or notes.outlived or notes.fresh_count > 0):
        long_forget_windows(&notes.long_profile, view.now)
    if notes.outlived:
        notes.outlived = notes.ended_early = False
        conservative_reserve_all(notes, view)
    elif notes.ended_early:
        notes.ended_early = False
        if notes.long_queue:
            conservative_compress_long(notes, view)
        else:
            conservative_compress(notes, view)
    conservative_reserve(notes, view)
    if notes.next_start <= view.now:
        conservative_start_due(notes, view)
    view.wake_time = notes.next_start
    return 0


cdef bint conservative_starts_now(
    void* own, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    cdef const ConservativeNotes* notes = <const ConservativeNotes*> own
    if width > view.processors_free:
        return False
    if notes.long_queue:
        return long_fits(&notes.long_profile, width, view.now, view.now + request)
    # Before its first pass a machine has promised nothing.
    return notes.profile.count == 0 or profile_fits(
        &notes.profile, width, view.now, view.now + request
    )


cdef class ConservativeScheduler(Scheduler):
    """Conservative backfilling with compression.

    Args:
        long_queue: from so many waiting jobs on the plan is kept in the way that suits a long
            queue; schedules do not depend on it, at least 1.
    """

    def __cinit__(self, *_arguments, **_options):
        cdef ConservativeNotes* notes = <ConservativeNotes*> safe_calloc(
            1, sizeof(ConservativeNotes), b"notes of a scheduler"
        )
        self.notes = notes
        notes.freed_from = INFINITY
        notes.freed_to = -INFINITY
        notes.next_start = INFINITY

    def __init__(self, Py_ssize_t long_queue=256):
        if long_queue < 1:
            raise ValueError(f"long_queue is {long_queue}; it has to be at least 1")
        (<ConservativeNotes*> self.notes).long_from = long_queue
        self.outlives = True
        self.ops.submitted = conservative_submitted
        self.ops.outlived = conservative_outlived
        self.ops.ended = conservative_ended
        self.ops.withdrawn = conservative_withdrawn
        self.ops.decide = conservative_decide
        self.ops.starts_now = conservative_starts_now

    def __dealloc__(self):
        cdef ConservativeNotes* notes = <ConservativeNotes*> self.notes
        if notes != NULL:
            profile_close(&notes.profile)
            long_close(&notes.long_profile)
            free(notes.reserved)
            free(notes.fresh)
            free(notes)
