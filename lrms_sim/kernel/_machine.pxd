# One machine: clock, running heap, waiting queue. Its owner drives it; it owns no job columns.
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t

from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport DisciplineOps, View

cdef struct Running:
    seconds_t end_time           # or when its estimate is over, if that comes first
    # Among jobs that end together: the job, or the number of its start. Less than 0 if it does not
    # end then, so that estimates are over before jobs end.
    job_index_t rank
    job_index_t job

cdef struct JobLog:
    # What has happened to which jobs since the owner last looked.
    job_index_t* job
    Py_ssize_t count
    Py_ssize_t capacity
    bint kept                    # the owner wants it

cdef struct JobColumns:
    # Pointers into a job table and into the schedule that is being made, all by job.
    const seconds_t* submit_time
    const processors_t* processors
    const seconds_t* requested_time
    const seconds_t* run_time
    # Room for what each job is taken to run for, at first `requested_time`; NULL where no job
    # outlives its request.
    seconds_t* estimate
    const int8_t* group          # NULL where unknown
    const int32_t* user          # same
    seconds_t* start_time
    seconds_t* end_time

cdef struct Unseen:
    # Jobs that run on processors of which the discipline is told that nobody uses them.
    job_index_t* job             # in no order
    Py_ssize_t count
    Py_ssize_t capacity
    processors_t processors      # of all of them

cdef struct Cost:
    # Σ weight · wait of all jobs so far, for an owner who gives up beyond a limit.
    const double* weight         # by job; NULL where nobody asks
    double started               # Σ weight · wait of the jobs that have started
    double waiting               # Σ weight of the jobs that wait
    double waiting_since         # Σ weight · submit time of these
    double limit

cdef struct MachineCore:
    View view                    # first: a View* handed to a discipline is a MachineCore* here
    DisciplineOps ops
    void* notes
    const seconds_t* run_time    # by job; behind the discipline's back
    seconds_t* start_time        # by job, written when it starts
    seconds_t* end_time          # by job, written when it starts
    const seconds_t* requested_time    # by job
    # By job, what it is taken to run for, and then what the view has for its request. NULL where no
    # job outlives its request.
    seconds_t* estimate
    const job_index_t* rank      # by job: its place among jobs of one moment; NULL: the job itself
    Running* heap                # running jobs, least (end_time, rank) first
    Py_ssize_t running
    Py_ssize_t heap_capacity
    job_index_t starts           # jobs started so far
    bint pass_pending            # something has happened at view.now and no pass has followed
    JobLog started
    JobLog ended
    Unseen unseen
    JobLog preempted             # unseen jobs that have lost their processors to one that starts
    Cost cost

cdef int core_open(
    MachineCore* core, processors_t processors, DisciplineOps ops, void* notes
) except -1
cdef void core_close(MachineCore* core) noexcept
cdef void core_bind(MachineCore* core, JobColumns columns) noexcept nogil
cdef int core_estimates_end(MachineCore* core) except -1 nogil    # what is due by the new clock
cdef job_index_t core_pop_ended(MachineCore* core) except -2 nogil
cdef int core_enqueue(MachineCore* core, job_index_t job) except -1 nogil
cdef int core_withdraw(MachineCore* core, Py_ssize_t slot) except -1 nogil
cdef int core_return(MachineCore* core, job_index_t job) except -1 nogil
cdef int core_start_unseen(MachineCore* core, job_index_t job) except -1 nogil
cdef int core_preempt(MachineCore* core, job_index_t job) except -1 nogil
cdef int core_hide(MachineCore* core, job_index_t job) except -1 nogil
cdef int core_show(MachineCore* core, job_index_t job) except -1 nogil
cdef int core_resume(MachineCore* core, job_index_t job, seconds_t start_time) except -1 nogil
cdef void core_learn(MachineCore* core, job_index_t job) noexcept nogil
cdef int core_pop_due(MachineCore* core) except -1 nogil
cdef int core_advance(MachineCore* core, seconds_t until, bint inclusive) except -1 nogil
cdef Py_ssize_t core_replay(
    MachineCore* core, Py_ssize_t row, Py_ssize_t stop, Py_ssize_t count
) except -1 nogil
cdef bint cost_exceeded(const MachineCore* core) noexcept nogil


cdef inline int core_set_clock(MachineCore* core, seconds_t now) except -1 nogil:
    # Everything before that moment has been handled.
    if now > core.view.now:
        core.view.now = now
        if core.ops.per_event or core.estimate != NULL:
            return core_estimates_end(core)
    return 0


cdef inline int core_pass(MachineCore* core) except -1 nogil:
    core.pass_pending = False
    return core.ops.decide(core.notes, &core.view)


cdef inline seconds_t core_next_end(const MachineCore* core) noexcept nogil:
    return core.heap[0].end_time if core.running else INFINITY


cdef inline processors_t core_idle(const MachineCore* core) noexcept nogil:
    # Processors that nobody at all uses.
    return core.view.processors_free - core.unseen.processors


cdef inline bint core_starts_now(
    const MachineCore* core, processors_t width, seconds_t request
) noexcept nogil:
    # Whether a job would start in the pass of this moment. No pass may be pending.
    return core.ops.starts_now(core.notes, &core.view, width, request)


cdef inline bint core_job_starts_now(
    const MachineCore* core, job_index_t job, processors_t width, seconds_t request
) noexcept nogil:
    # The same for a job of the tables, of this width and requested time.
    if core.ops.job_starts_now == NULL:
        return core.ops.starts_now(core.notes, &core.view, width, request)
    return core.ops.job_starts_now(core.notes, &core.view, job)


cdef inline bint core_job_fits(
    const MachineCore* core, job_index_t job, processors_t width
) noexcept nogil:
    # Whether there is room for such a job now, whoever waits.
    if core.ops.job_fits == NULL:
        return width <= core.view.processors_free
    return core.ops.job_fits(core.notes, &core.view, job)


cdef inline seconds_t core_next_time(const MachineCore* core) noexcept nogil:
    # When this machine next does something by itself.
    cdef seconds_t end_time = core_next_end(core)
    return end_time if end_time < core.view.wake_time else core.view.wake_time
