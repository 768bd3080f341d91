# What a queue discipline may see of a machine, and the interface a discipline implements.
#
# The true run time of a job is not here and cannot be reached from here: a discipline knows what
# a batch system knows. It decides by calling `start`; the machine checks and does the rest.
from libc.stdint cimport int8_t, int32_t

from lrms_sim.kernel._queue cimport WaitingQueue
from lrms_sim.kernel._types cimport job_index_t, processors_sum_t, processors_t, seconds_t

cdef struct View:
    seconds_t now
    processors_t processors               # size of the machine
    processors_t processors_free
    processors_sum_t processors_waiting   # sum of the widths of the waiting jobs
    seconds_t wake_time                   # written by the discipline: make a pass at this time
    const seconds_t* submit_time          # by job
    const processors_t* job_processors    # by job
    # By job; of a running job that has outlived its request what it is taken to run for.
    const seconds_t* requested_time
    const seconds_t* start_time           # by job, of those that have started
    const int8_t* job_group               # by job, user group 1 to 5; NULL where unknown
    const int32_t* job_user               # by job, number of the user, -1 for unknown; NULL for all
    WaitingQueue queue
    # Starts the job in a slot of the queue, now.
    int (*start)(View* view, Py_ssize_t slot) except -1 nogil

# The moments at which a discipline is called. `notes` is its own memory: reservations,
# shadow times and priorities live there and nowhere else.
ctypedef int (*notice_t)(void* notes, View* view, job_index_t job) except -1 nogil
ctypedef int (*pass_t)(void* notes, View* view) except -1 nogil
ctypedef seconds_t (*estimate_t)(void* notes, const View* view, job_index_t job) noexcept nogil

# A running job has outlived its estimate and is now taken to run for that long.
ctypedef int (*extension_t)(
    void* notes, View* view, job_index_t job, seconds_t estimate
) except -1 nogil

# A question about a job that is not in the queue. Asked between passes, when nothing more is to
# start; the answer allocates nothing and changes nothing that could be seen.
ctypedef bint (*question_t)(
    void* notes, const View* view, processors_t width, seconds_t request
) noexcept nogil

# The same about a job of the tables.
ctypedef bint (*job_question_t)(void* notes, const View* view, job_index_t job) noexcept nogil

cdef struct DisciplineOps:
    notice_t submitted   # a job has joined the queue; NULL if not of interest
    notice_t ended       # a running job's processors are free; NULL if not of interest
    # A job that it has not started runs, or is seen again, since its start time. NULL if not of
    # interest, or if the discipline cannot be told (Scheduler.preempts).
    notice_t appeared
    # Told before `requested_time` says the new estimate. NULL if not of interest, or if the
    # discipline cannot be told (Scheduler.outlives).
    extension_t outlived
    notice_t finished    # its end is handled, maybe later in that instant; NULL if not of interest
    notice_t withdrawn   # a waiting job leaves the queue unstarted; NULL if not of interest
    pass_t decide        # a scheduling pass: start what is to start now
    question_t starts_now    # would the next pass start such a job, if it joined the queue now?
    bint per_event       # a pass after every event, submissions before terminations
    # With a pass per event, for disciplines with estimates of their own; both or none of them.
    estimate_t estimate  # how long a running job runs, as far as is known; NULL: as requested
    pass_t overdue       # wake_time has come, and whoever ends as estimated has ended
    # Where more than processors decides: `starts_now` by a job's number, and whether there is room
    # for it now. NULL on a machine of processors.
    job_question_t job_starts_now
    job_question_t job_fits
