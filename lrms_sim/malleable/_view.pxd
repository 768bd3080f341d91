# What a scheduling policy of a utility machine may see and do.
#
# Expected ends follow from requests. How long a job really runs is behind the policies' back: it
# is known to _core alone, and nothing here or below names it.
from libc.math cimport INFINITY, ceil, sqrt
from libc.stdint cimport int8_t

from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t

cdef enum Shape:
    LINEAR = 0
    CONVEX = 1
    CONCAVE = 2

cdef enum Law:
    LAW_LINEAR = 0
    LAW_AMDAHL = 1
    LAW_DOWNEY = 2

cdef enum Grow:
    GROW_NEVER = 0
    GROW_FIRST = 1
    GROW_LAST = 2

cdef enum Leave:
    LEAVE_NEVER = 0
    LEAVE_WORTHLESS = 1      # a completion from now on would be worth nothing
    LEAVE_ZERO = 2           # the job is so old that any completion is worth nothing

cdef enum Suspension:
    SUSPEND = 0              # progress is kept, and memory
    REQUEUE = 1              # progress is lost, but for what was saved at checkpoints

cdef struct Speedup:
    Law law
    double first             # Amdahl: serial share; Downey: average parallelism over width
    double second            # Downey: variance of parallelism

cdef struct Options:
    Grow grow
    Leave leave
    bint worthless           # jobs worth nothing may be forced and squeezed
    bint refit               # best fit once more after a preemption
    seconds_t step           # ends are rounded up to whole steps; 0 is continuous time
    Suspension suspension
    seconds_t suspension_cost    # added to the time left
    seconds_t resize_cost        # same
    seconds_t checkpoint         # progress saved by, for REQUEUE; 0 saves nothing
    seconds_t exempt             # nobody is suspended before he has run so long at a stretch
    job_index_t suspensions_max  # of one job
    double suspended_max         # memory for suspended jobs: processors over the machine's
    Speedup speedup

cdef struct Columns:
    # By job; owned by whoever opens the machine.
    const seconds_t* submit_time
    const processors_t* width        # asked for: nobody gets more
    const processors_t* width_min    # a job runs on no fewer
    const seconds_t* request         # on all of its width
    const double* weight             # value of a processor-second of ideal work
    const double* plateau            # age over request until which the utility is full
    const double* zero               # same, from which it is gone
    const double* floor              # least utility, as a share of the full one
    const int8_t* shape

cdef struct Notes:
    # By job; written by the machine alone.
    seconds_t* left                  # ideal time left by request, as of `since`
    seconds_t* since                 # when it got the processors it holds
    seconds_t* resumed               # when it was last started or resumed
    seconds_t* expected_end          # of a running job on the processors it holds
    processors_t* held               # 0 unless it runs
    processors_t* stored             # held last by a suspended job, else 0
    job_index_t* suspensions
    job_index_t* machine             # the only one on which it may go on; NO_MACHINE: any

cdef struct JobList:
    job_index_t* job                 # ascending
    Py_ssize_t count

cdef enum:
    NO_MACHINE = -1
    NOBODY = -1

cdef struct View:
    seconds_t now
    job_index_t number               # of this machine
    processors_t processors
    processors_t processors_free
    double suspended                 # processors held last by the jobs suspended here
    Columns columns
    Notes notes
    JobList* waiting                 # shared by all machines
    JobList running
    const Options* options
    int (*start)(View* view, job_index_t job, processors_t processors) except -1 nogil
    int (*suspend)(View* view, job_index_t job) except -1 nogil
    int (*resize)(View* view, job_index_t job, processors_t processors) except -1 nogil
    int (*leave)(View* view, job_index_t job) except -1 nogil

cdef struct PassResult:
    bint acted                       # a job was forced or squeezed
    bint considered                  # either was considered
    bint changed                     # a job started or grew


cdef inline double speed(const Speedup* speedup, processors_t processors, processors_t width) \
        noexcept nogil:
    # How fast a job of that width runs on so many processors, in units of one processor.
    cdef double n = processors
    cdef double a
    cdef double s
    if speedup.law == LAW_AMDAHL:
        return 1.0 / (speedup.first + (1.0 - speedup.first) / n)
    if speedup.law == LAW_DOWNEY:
        # Downey 1997, "A model for speedup of parallel programs", section 3.
        a = speedup.first * width
        if a < 1.0:
            a = 1.0
        s = speedup.second
        if s <= 1.0:
            if n <= a:
                return a * n / (a + s / 2.0 * (n - 1.0))
            if n <= 2.0 * a - 1.0:
                return a * n / (s * (a - 0.5) + n * (1.0 - s / 2.0))
            return a
        if n <= a + a * s - s:
            return n * a * (s + 1.0) / (s * (n + a - 1.0) + a)
        return a
    return n


cdef inline seconds_t time_on(
    const View* view, job_index_t job, processors_t processors, seconds_t left
) noexcept nogil:
    # How long an ideal time takes on so many processors.
    cdef processors_t width = view.columns.width[job]
    cdef const Speedup* law = &view.options.speedup
    if processors == width:
        return left  # to the last bit
    return left * speed(law, width, width) / speed(law, processors, width)


cdef inline seconds_t rounded(const View* view, seconds_t end) noexcept nogil:
    # Ends are whole steps; one that is whole but for rounding does not wait for another.
    cdef seconds_t step = view.options.step
    return ceil(end / step - 1e-9) * step if step > 0.0 else end


cdef inline seconds_t completion(
    const View* view, job_index_t job, processors_t processors, seconds_t left
) noexcept nogil:
    # When an ideal time that begins now is over on so many processors.
    return rounded(view, view.now + time_on(view, job, processors, left))


cdef inline double unit_utility(const View* view, job_index_t job, seconds_t completion) \
        noexcept nogil:
    # Value of a processor-second of a job's ideal work, if it completes then (paper, Figure 1).
    cdef double z = (completion - view.columns.submit_time[job]) / view.columns.request[job]
    cdef double f = 1.0
    if z > view.columns.plateau[job]:
        if z >= view.columns.zero[job]:
            f = 0.0
        else:
            f = (view.columns.zero[job] - z) / (view.columns.zero[job] - view.columns.plateau[job])
            if view.columns.shape[job] == CONVEX:
                f = f * f
            elif view.columns.shape[job] == CONCAVE:
                f = sqrt(f)
        if f < view.columns.floor[job]:
            f = view.columns.floor[job]
    return view.columns.weight[job] * f


cdef inline double final_utility(const View* view, job_index_t job, seconds_t completion) \
        noexcept nogil:
    # What a completion then is expected to bring.
    return (
        unit_utility(view, job, completion) * view.columns.width[job] * view.columns.request[job]
    )


cdef inline double remaining_utility(double unit, seconds_t time_left) noexcept nogil:
    # Unit utility over the time to completion (paper, section 4.1, step 4).
    if time_left > 0.0:
        return unit / time_left
    return INFINITY if unit > 0.0 else 0.0


cdef inline bint has_memory(const View* view, double stored) noexcept nogil:
    # Whether jobs that held so many processors may be suspended at once.
    return (
        view.options.suspension != SUSPEND
        or stored <= view.options.suspended_max * view.processors
    )


cdef inline Py_ssize_t list_find(const JobList* jobs, job_index_t job) noexcept nogil:
    # The place of the first job that is not before this one.
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = jobs.count
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) >> 1
        if jobs.job[middle] < job:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline void list_insert(JobList* jobs, job_index_t job) noexcept nogil:
    cdef Py_ssize_t place = jobs.count
    while place > 0 and jobs.job[place - 1] > job:
        jobs.job[place] = jobs.job[place - 1]
        place -= 1
    jobs.job[place] = job
    jobs.count += 1


cdef inline void list_remove(JobList* jobs, job_index_t job) noexcept nogil:
    cdef Py_ssize_t place = list_find(jobs, job)
    jobs.count -= 1
    while place < jobs.count:
        jobs.job[place] = jobs.job[place + 1]
        place += 1


cdef inline bint list_holds(const JobList* jobs, job_index_t job) noexcept nogil:
    cdef Py_ssize_t place = list_find(jobs, job)
    return place < jobs.count and jobs.job[place] == job


cdef inline bint eligible(const View* view, job_index_t job) noexcept nogil:
    # A suspended job waits for its machine.
    cdef job_index_t machine = view.notes.machine[job]
    return machine == NO_MACHINE or machine == view.number


cdef inline bint may_be_suspended(const View* view, job_index_t job) noexcept nogil:
    return (
        view.notes.suspensions[job] < view.options.suspensions_max
        and view.now - view.notes.resumed[job] >= view.options.exempt
    )
