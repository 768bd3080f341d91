"""The queue disciplines, compiled. What each does and how it breaks ties: docs/disciplines.md."""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memmove

from lrms_sim._queue cimport (
    NO_JOB,
    WaitingQueue,
    queue_next_backfill,
    queue_next_fit,
)
from lrms_sim._types cimport job_index_t, processors_t, seconds_t
from lrms_sim._view cimport View


cdef class Scheduler:
    """The compiled side of a queue discipline; one machine owns it."""

    def __cinit__(self, **_options):
        self.notes = NULL
        self.taken = False
        self.ops.submitted = NULL
        self.ops.ended = NULL
        self.ops.decide = NULL
        self.ops.per_event = False

    @property
    def per_event(self):
        """Whether a pass follows every single event."""
        return bool(self.ops.per_event)


# --- first come, first served -------------------------------------------------------------

cdef inline int start_heads(View* view) except -1 nogil:
    # Starts the head of the queue as long as it fits.
    cdef WaitingQueue* queue = &view.queue
    while queue.count > 0 and queue.width[queue.head] <= view.processors_free:
        view.start(view, queue.head)
    return 0


cdef int fcfs_decide(void* notes, View* view) except -1 nogil:
    return start_heads(view)


cdef class FcfsScheduler(Scheduler):
    """First come, first served."""

    def __init__(self):
        self.ops.decide = fcfs_decide


# --- list scheduling ----------------------------------------------------------------------

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


# --- EASY backfilling ---------------------------------------------------------------------

cdef struct Release:
    seconds_t time             # start + requested time of a running job
    job_index_t job
    processors_t processors

cdef struct EasyNotes:
    Release* release           # running jobs, ascending by (time, job)
    Py_ssize_t count
    Py_ssize_t capacity


cdef inline Py_ssize_t release_position(
    const EasyNotes* notes, seconds_t time, job_index_t job
) noexcept nogil:
    # Number of releases before (time, job).
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = notes.count
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) >> 1
        if notes.release[middle].time < time or (
            notes.release[middle].time == time and notes.release[middle].job < job
        ):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline int easy_start(EasyNotes* notes, View* view, Py_ssize_t slot) except -1 nogil:
    cdef job_index_t job = view.queue.job[slot]
    cdef seconds_t time = view.now + view.requested_time[job]
    cdef Py_ssize_t position
    cdef void* grown
    if notes.count == notes.capacity:
        position = notes.capacity * 2 if notes.capacity else 256
        grown = realloc(notes.release, position * sizeof(Release))
        if grown == NULL:
            with gil:
                raise MemoryError(f"no memory for the releases of {position} running jobs")
        notes.release = <Release*> grown
        notes.capacity = position
    position = release_position(notes, time, job)
    memmove(
        &notes.release[position + 1],
        &notes.release[position],
        (notes.count - position) * sizeof(Release),
    )
    notes.release[position].time = time
    notes.release[position].job = job
    notes.release[position].processors = view.job_processors[job]
    notes.count += 1
    return view.start(view, slot)


cdef int easy_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef EasyNotes* notes = <EasyNotes*> own
    cdef Py_ssize_t position = release_position(
        notes, view.start_time[job] + view.requested_time[job], job
    )
    notes.count -= 1
    memmove(
        &notes.release[position],
        &notes.release[position + 1],
        (notes.count - position) * sizeof(Release),
    )
    return 0


cdef int easy_decide(void* own, View* view) except -1 nogil:
    cdef EasyNotes* notes = <EasyNotes*> own
    cdef WaitingQueue* queue = &view.queue
    cdef processors_t head_processors, extra_processors, available
    cdef seconds_t shadow_time = INFINITY
    cdef seconds_t end_estimate
    cdef processors_t width
    cdef Py_ssize_t slot, i

    while queue.count > 0 and queue.width[queue.head] <= view.processors_free:
        easy_start(notes, view, queue.head)
    if queue.count < 2 or view.processors_free == 0:
        return 0
    # Most passes end here: nobody behind the blocked head fits at all.
    slot = queue_next_fit(queue, queue.head + 1, view.processors_free)
    if slot < 0:
        return 0

    head_processors = queue.width[queue.head]
    available = view.processors_free
    for i in range(notes.count):
        if notes.release[i].time > shadow_time:
            break
        available += notes.release[i].processors
        if available >= head_processors:
            shadow_time = notes.release[i].time
    extra_processors = available - head_processors

    while view.processors_free > 0:
        slot = queue_next_backfill(
            queue, slot, view.processors_free, extra_processors, view.now, shadow_time
        )
        if slot < 0:
            break
        width = queue.width[slot]
        end_estimate = view.now + queue.request[slot]
        easy_start(notes, view, slot)
        if end_estimate > shadow_time:
            extra_processors -= width
        slot += 1
    return 0


cdef class EasyScheduler(Scheduler):
    """EASY backfilling."""

    def __cinit__(self, **_options):
        self.notes = calloc(1, sizeof(EasyNotes))
        if self.notes == NULL:
            raise MemoryError("no memory for a scheduler")

    def __init__(self, *, per_event=False):
        self.ops.ended = easy_ended
        self.ops.decide = easy_decide
        self.ops.per_event = per_event

    def __dealloc__(self):
        if self.notes != NULL:
            free((<EasyNotes*> self.notes).release)
            free(self.notes)


# --- conservative backfilling -------------------------------------------------------------
#
# The profile says how many processors are promised to nobody from each moment on: segment i
# reaches from time[i] to time[i+1], the last one for ever. It holds running jobs up to their
# estimated ends and a reservation of every waiting job.
#
# Compression takes the waiting jobs in order of arrival, takes each out of the profile and puts
# it back at its earliest fit. Most cannot move, and there is a cheap proof of that: a job that
# had its earliest fit at its last turn can only move if its new window covers some processors
# that have become free since. The notes keep one interval around all that was freed since then
# (by early ends, and by jobs that moved), and the most processors free anywhere in it. A wider
# job whose reservation starts after that interval stays where it is, unseen.

cdef struct ConservativeNotes:
    seconds_t* time
    processors_t* free
    Py_ssize_t count
    Py_ssize_t capacity
    seconds_t* reserved            # by job: start of its reservation
    Py_ssize_t reserved_capacity
    job_index_t* fresh             # submitted since the last pass, without reservation
    Py_ssize_t fresh_count
    Py_ssize_t fresh_capacity
    seconds_t freed_from           # interval around all that was freed since the last sweep
    seconds_t freed_to
    bint ended_early               # a job has ended before its estimate since the last pass


cdef int profile_make_room(ConservativeNotes* notes) except -1 nogil:
    cdef Py_ssize_t capacity
    cdef void* grown
    if notes.count + 2 <= notes.capacity:
        return 0
    capacity = notes.capacity * 2 if notes.capacity else 256
    grown = realloc(notes.time, capacity * sizeof(seconds_t))
    if grown != NULL:
        notes.time = <seconds_t*> grown
        grown = realloc(notes.free, capacity * sizeof(processors_t))
    if grown == NULL:
        with gil:
            raise MemoryError(f"no memory for a profile of {capacity} segments")
    notes.free = <processors_t*> grown
    notes.capacity = capacity
    return 0


cdef inline Py_ssize_t profile_segment(
    const ConservativeNotes* notes, seconds_t time
) noexcept nogil:
    # The segment that holds `time`; 0 for a time before the first.
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = notes.count
    cdef Py_ssize_t middle
    while high - low > 1:
        middle = (low + high) >> 1
        if notes.time[middle] <= time:
            low = middle
        else:
            high = middle
    return low


cdef inline Py_ssize_t profile_split(ConservativeNotes* notes, seconds_t time) noexcept nogil:
    # Makes a segment start at `time` and returns its number. Room has been made.
    cdef Py_ssize_t segment = profile_segment(notes, time)
    if notes.time[segment] == time:
        return segment
    segment += 1
    memmove(
        &notes.time[segment + 1],
        &notes.time[segment],
        (notes.count - segment) * sizeof(seconds_t),
    )
    memmove(
        &notes.free[segment + 1],
        &notes.free[segment],
        (notes.count - segment) * sizeof(processors_t),
    )
    notes.time[segment] = time
    notes.free[segment] = notes.free[segment - 1]
    notes.count += 1
    return segment


cdef inline void profile_join(ConservativeNotes* notes, Py_ssize_t segment) noexcept nogil:
    # Drops a segment that promises what the one before it promises.
    if 0 < segment < notes.count and notes.free[segment] == notes.free[segment - 1]:
        notes.count -= 1
        memmove(
            &notes.time[segment],
            &notes.time[segment + 1],
            (notes.count - segment) * sizeof(seconds_t),
        )
        memmove(
            &notes.free[segment],
            &notes.free[segment + 1],
            (notes.count - segment) * sizeof(processors_t),
        )


cdef int profile_take(
    ConservativeNotes* notes, seconds_t from_time, seconds_t to_time, processors_t width
) except -1 nogil:
    # Takes processors (gives them back where `width` is negative) between two moments.
    cdef Py_ssize_t first, last, i
    if from_time >= to_time:
        return 0
    profile_make_room(notes)
    first = profile_split(notes, from_time)
    last = profile_split(notes, to_time)
    for i in range(first, last):
        notes.free[i] -= width
    profile_join(notes, last)
    profile_join(notes, first)
    return 0


cdef void profile_forget(ConservativeNotes* notes, seconds_t now) noexcept nogil:
    # Drops what lies before now.
    cdef Py_ssize_t segment = profile_segment(notes, now)
    if segment > 0:
        notes.count -= segment
        memmove(notes.time, &notes.time[segment], notes.count * sizeof(seconds_t))
        memmove(notes.free, &notes.free[segment], notes.count * sizeof(processors_t))
    notes.time[0] = now


cdef seconds_t profile_earliest(
    const ConservativeNotes* notes, processors_t width, seconds_t duration
) noexcept nogil:
    # Earliest start from the profile's beginning on; the last segment is the empty machine.
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t last
    cdef seconds_t end_time
    while True:
        while notes.free[first] < width:
            first += 1
        end_time = notes.time[first] + duration
        last = first + 1
        while last < notes.count and notes.time[last] < end_time and notes.free[last] >= width:
            last += 1
        if last == notes.count or notes.time[last] >= end_time:
            return notes.time[first]
        first = last


cdef processors_t profile_most_free(
    const ConservativeNotes* notes, seconds_t from_time, seconds_t to_time
) noexcept nogil:
    # Most processors free anywhere between two moments; 0 for an empty interval.
    cdef processors_t most = 0
    cdef Py_ssize_t i
    if from_time >= to_time:
        return 0
    i = profile_segment(notes, from_time)
    while i < notes.count and notes.time[i] < to_time:
        if notes.free[i] > most:
            most = notes.free[i]
        i += 1
    return most


cdef int conservative_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    cdef ConservativeNotes* notes = <ConservativeNotes*> own
    cdef Py_ssize_t capacity
    cdef void* grown
    if job >= notes.reserved_capacity:
        capacity = notes.reserved_capacity * 2 if notes.reserved_capacity else 1024
        if capacity <= job:
            capacity = <Py_ssize_t> job + 1
        grown = realloc(notes.reserved, capacity * sizeof(seconds_t))
        if grown == NULL:
            with gil:
                raise MemoryError(f"no memory for the reservations of {capacity} jobs")
        notes.reserved = <seconds_t*> grown
        notes.reserved_capacity = capacity
    if notes.fresh_count == notes.fresh_capacity:
        capacity = notes.fresh_capacity * 2 if notes.fresh_capacity else 64
        grown = realloc(notes.fresh, capacity * sizeof(job_index_t))
        if grown == NULL:
            with gil:
                raise MemoryError(f"no memory for {capacity} arrivals at one instant")
        notes.fresh = <job_index_t*> grown
        notes.fresh_capacity = capacity
    notes.reserved[job] = INFINITY
    notes.fresh[notes.fresh_count] = job
    notes.fresh_count += 1
    return 0


cdef int conservative_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef ConservativeNotes* notes = <ConservativeNotes*> own
    cdef seconds_t end_estimate = view.start_time[job] + view.requested_time[job]
    if end_estimate > view.now:
        profile_forget(notes, view.now)
        profile_take(notes, view.now, end_estimate, -view.job_processors[job])
        notes.ended_early = True
        conservative_freed(notes, view.now, end_estimate)
    return 0


cdef inline void conservative_freed(
    ConservativeNotes* notes, seconds_t from_time, seconds_t to_time
) noexcept nogil:
    if from_time < notes.freed_from:
        notes.freed_from = from_time
    if to_time > notes.freed_to:
        notes.freed_to = to_time


cdef int conservative_compress(ConservativeNotes* notes, View* view) except -1 nogil:
    cdef WaitingQueue* queue = &view.queue
    cdef seconds_t later_from = INFINITY
    cdef seconds_t later_to = -INFINITY
    cdef seconds_t reserved, start_time, request, from_time
    cdef processors_t width, most_free
    cdef job_index_t job
    cdef Py_ssize_t slot
    from_time = notes.freed_from if notes.freed_from > view.now else view.now
    most_free = profile_most_free(notes, from_time, notes.freed_to)
    for slot in range(queue.head, queue.tail):
        job = queue.job[slot]
        if job == NO_JOB or notes.reserved[job] == INFINITY:
            continue
        reserved = notes.reserved[job]
        width = queue.width[slot]
        if reserved <= view.now or (width > most_free and reserved >= notes.freed_to):
            continue
        request = queue.request[slot]
        profile_take(notes, reserved, reserved + request, -width)
        start_time = profile_earliest(notes, width, request)
        profile_take(notes, start_time, start_time + request, width)
        if start_time < reserved:
            notes.reserved[job] = start_time
            from_time = start_time + request if start_time + request > reserved else reserved
            conservative_freed(notes, from_time, reserved + request)
            # Jobs before this one have had their turn: they look here in the next sweep.
            if from_time < later_from:
                later_from = from_time
            if reserved + request > later_to:
                later_to = reserved + request
            from_time = notes.freed_from if notes.freed_from > view.now else view.now
            most_free = profile_most_free(notes, from_time, notes.freed_to)
    notes.freed_from = later_from
    notes.freed_to = later_to
    return 0


cdef int conservative_decide(void* own, View* view) except -1 nogil:
    cdef ConservativeNotes* notes = <ConservativeNotes*> own
    cdef WaitingQueue* queue = &view.queue
    cdef seconds_t start_time, request
    cdef processors_t width
    cdef job_index_t job
    cdef Py_ssize_t slot, i
    if notes.count == 0:
        profile_make_room(notes)
        notes.time[0] = view.now
        notes.free[0] = view.processors
        notes.count = 1
    profile_forget(notes, view.now)
    if notes.ended_early:
        notes.ended_early = False
        conservative_compress(notes, view)
    for i in range(notes.fresh_count):
        job = notes.fresh[i]
        width = view.job_processors[job]
        request = view.requested_time[job]
        start_time = profile_earliest(notes, width, request)
        profile_take(notes, start_time, start_time + request, width)
        notes.reserved[job] = start_time
    notes.fresh_count = 0
    view.wake_time = INFINITY
    slot = queue.head
    while slot < queue.tail and queue.count > 0:
        job = queue.job[slot]
        if job != NO_JOB:
            if notes.reserved[job] <= view.now:
                view.start(view, slot)
            elif notes.reserved[job] < view.wake_time:
                view.wake_time = notes.reserved[job]
        slot += 1
    return 0


cdef class ConservativeScheduler(Scheduler):
    """Conservative backfilling with compression."""

    def __cinit__(self, **_options):
        cdef ConservativeNotes* notes
        self.notes = calloc(1, sizeof(ConservativeNotes))
        if self.notes == NULL:
            raise MemoryError("no memory for a scheduler")
        notes = <ConservativeNotes*> self.notes
        notes.freed_from = INFINITY
        notes.freed_to = -INFINITY

    def __init__(self):
        self.ops.submitted = conservative_submitted
        self.ops.ended = conservative_ended
        self.ops.decide = conservative_decide

    def __dealloc__(self):
        cdef ConservativeNotes* notes = <ConservativeNotes*> self.notes
        if notes != NULL:
            free(notes.time)
            free(notes.free)
            free(notes.reserved)
            free(notes.fresh)
            free(notes)
