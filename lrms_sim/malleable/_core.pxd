# One machine that can suspend and resize.
#
# The only place that knows how long jobs really run. Policies get the `View` that a core begins
# with.
from libc.stdint cimport int8_t

from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.malleable._value cimport RULES, Learner
from lrms_sim.malleable._view cimport View

cdef enum Kind:
    ARRIVE = 0
    START = 1
    SQUEEZE = 2                  # a start on fewer processors than asked for
    SUSPENDED = 3
    RESIZE = 4
    END = 5
    DROP = 6

cdef enum Status:
    NOT_SUBMITTED = 0
    WAITING = 1
    RUNNING = 2
    COMPLETED = 3
    LEFT = 4

cdef enum:
    STEP_SIZE = 4 + RULES        # numbers of one step of a learner

cdef struct LogEntry:
    seconds_t time
    job_index_t job
    processors_t processors
    job_index_t machine
    int8_t kind

cdef struct Log:
    LogEntry* entry
    Py_ssize_t count
    Py_ssize_t capacity
    bint kept

cdef struct Steps:
    # What a learner did: time, reward, delta, rho and p for each update.
    double* value
    Py_ssize_t count
    Py_ssize_t capacity
    bint kept

cdef struct Results:
    # By job; written by the cores.
    seconds_t* run_left
    seconds_t* true_end
    seconds_t* first_start
    seconds_t* end
    double* utility
    double* busy                 # processor-seconds held
    seconds_t* extra             # ideal time that suspensions and resizes have cost
    job_index_t* suspensions     # the same as the notes'
    job_index_t* resizes
    job_index_t* ran_on
    int8_t* status

cdef struct MalleableCore:
    View view                    # first: a View* handed to a policy is a MalleableCore* here
    MalleableCore* siblings      # all machines around this queue, this one among them
    const seconds_t* run_time
    Results* results
    Log* log
    double busy                  # processor-seconds held by jobs up to their last change
    double utility               # of the jobs that completed
    long completed
    long suspensions
    long resizes
    bint ended                   # since the last pass
    Learner learner
    Steps steps


cdef int note(
    MalleableCore* core, Kind kind, job_index_t job, processors_t processors
) except -1 nogil
cdef int start(View* view, job_index_t job, processors_t processors) except -1 nogil
cdef int suspend(View* view, job_index_t job) except -1 nogil
cdef int resize(View* view, job_index_t job, processors_t processors) except -1 nogil
cdef int leave(View* view, job_index_t job) except -1 nogil
cdef int finish(MalleableCore* core, job_index_t job) except -1 nogil
