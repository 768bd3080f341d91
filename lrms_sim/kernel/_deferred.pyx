"""EASY that lets jobs wait for cheap hours. What it does exactly: docs/how-to/electricity.md.

When a job comes, its start is planned at the moment within a bounded delay at which its request
costs least. Until then it takes no part in EASY; from then on it does, in its place by order of
arrival.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free

from lrms_sim.kernel._easy cimport easy_admits, easy_pass
from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._queue cimport (
    WaitingQueue,
    queue_free,
    queue_insert,
    queue_remove,
    queue_slot,
)
from lrms_sim.kernel._rate_steps cimport (
    Deferral,
    RateSteps,
    cheapest_start,
    rate_duration,
    rate_sum,
)
from lrms_sim.kernel._releases cimport (
    Releases,
    releases_add,
    releases_ended,
    releases_free,
    releases_outlived,
    releases_remove,
)
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef struct Notes:
    WaitingQueue ready           # waiting jobs whose planned start has come, by number
    Releases planned             # the others, by planned start
    Releases releases            # running jobs by estimated end
    RateSteps steps
    Deferral deferral


cdef inline void wake(const Notes* notes, View* view) noexcept nogil:
    view.wake_time = notes.planned.release[0].time if notes.planned.count else INFINITY


cdef int deferred_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    cdef seconds_t request = view.requested_time[job]
    cdef seconds_t start = cheapest_start(
        &notes.steps, &notes.deferral, view.now,
        view.submit_time[job] + notes.deferral.delay_max, request,
    )
    if start <= view.now:
        return queue_insert(&notes.ready, job, view.job_processors[job], request)
    releases_add(&notes.planned, start, job, view.job_processors[job])
    wake(notes, view)
    return 0


cdef int deferred_withdrawn(void* own, View* view, job_index_t job) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    cdef Py_ssize_t place
    for place in range(notes.planned.count):
        if notes.planned.release[place].job == job:
            releases_remove(&notes.planned, notes.planned.release[place].time, job)
            wake(notes, view)
            return 0
    queue_remove(&notes.ready, queue_slot(&notes.ready, job))
    return 0


cdef int deferred_ended(void* own, View* view, job_index_t job) except -1 nogil:
    releases_ended(&(<Notes*> own).releases, view, job)
    return 0


cdef int deferred_outlived(
    void* own, View* view, job_index_t job, seconds_t estimate
) except -1 nogil:
    return releases_outlived(&(<Notes*> own).releases, view, job, estimate)


cdef int start(void* own, View* view, Py_ssize_t place) except -1 nogil:
    # Starts the job in a slot of `ready`.
    cdef Notes* notes = <Notes*> own
    cdef job_index_t job = notes.ready.job[place]
    queue_remove(&notes.ready, place)
    releases_add(
        &notes.releases, view.now + view.requested_time[job], job, view.job_processors[job]
    )
    return view.start(view, queue_slot(&view.queue, job))


cdef int deferred_decide(void* own, View* view) except -1 nogil:
    cdef Notes* notes = <Notes*> own
    cdef WaitingQueue* queue = &notes.ready
    cdef job_index_t job
    while notes.planned.count and notes.planned.release[0].time <= view.now:
        job = notes.planned.release[0].job
        releases_remove(&notes.planned, notes.planned.release[0].time, job)
        queue_insert(queue, job, view.job_processors[job], view.requested_time[job])
    wake(notes, view)
    return easy_pass(own, view, queue, &notes.releases, start)


cdef bint deferred_starts_now(
    void* own, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    cdef Notes* notes = <Notes*> own
    if width > view.processors_free or cheapest_start(
        &notes.steps, &notes.deferral, view.now, view.now + notes.deferral.delay_max, request
    ) > view.now:
        return False
    return easy_admits(view, &notes.ready, &notes.releases, width, request)


cdef class DeferredScheduler(Scheduler):
    cdef const double[::1] offset
    cdef const double[::1] value
    cdef const double[::1] before

    def __cinit__(self, *_arguments, **_options):
        self.notes = safe_calloc(1, sizeof(Notes), b"notes of a scheduler")

    def __init__(
        self, const double[::1] offset not None, const double[::1] value not None,
        const double[::1] before not None, double first, double period, double scale,
        *, double delay_max, double saving, double look_ahead,
    ):
        cdef Notes* notes = <Notes*> self.notes
        if not 1 <= offset.shape[0] == value.shape[0] == before.shape[0] - 1:
            raise ValueError("a series needs a step, and a sum before each step and at the end")
        self.offset, self.value, self.before = offset, value, before
        notes.steps.offset = &offset[0]
        notes.steps.value = &value[0]
        notes.steps.before = &before[0]
        notes.steps.count = offset.shape[0]
        notes.steps.first = first
        notes.steps.period = period
        notes.steps.scale = scale
        notes.deferral.delay_max = delay_max
        notes.deferral.saving = saving
        notes.deferral.look_ahead = look_ahead
        self.any_order = True
        self.outlives = True
        self.ops.submitted = deferred_submitted
        self.ops.outlived = deferred_outlived
        self.ops.withdrawn = deferred_withdrawn
        self.ops.ended = deferred_ended
        self.ops.decide = deferred_decide
        self.ops.starts_now = deferred_starts_now

    def __dealloc__(self):
        cdef Notes* notes = <Notes*> self.notes
        if notes != NULL:
            queue_free(&notes.ready)
            releases_free(&notes.planned)
            releases_free(&notes.releases)
            free(notes)

    def planned_start(self, double now, double latest, double request):
        cdef Notes* notes = <Notes*> self.notes
        return cheapest_start(&notes.steps, &notes.deferral, now, latest, request)

    def cost(self, double begin, double request):
        cdef Notes* notes = <Notes*> self.notes
        return rate_sum(&notes.steps, begin, rate_duration(&notes.deferral, request))
