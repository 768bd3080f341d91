# One machine that can suspend and resize, several of them around one queue, and their clock.
#
# The only place that knows how long jobs really run. Policies get the `View` that a core begins
# with.
from libc.stdint cimport int8_t

from lrms_sim._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.utility._orders cimport OrderPolicy, OrderScratch
from lrms_sim.utility._passes cimport PassPolicy, Scratch
from lrms_sim.utility._value cimport Learner
from lrms_sim.utility._view cimport JobList, Options, PassResult, View

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
    MACHINES_MAX = 64

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

cdef struct Policy:
    bint ordered
    PassPolicy passes
    OrderPolicy order
    bint job_fixed               # of several machines, the best for each job

cdef struct Complex:
    # Machines around one queue.
    MalleableCore* core
    Py_ssize_t count
    JobList waiting
    Options options
    Policy policy
    Scratch scratch
    OrderScratch order_scratch
    Log log
    Results results
    seconds_t now
    Py_ssize_t row               # the next arrival
    long events                  # arrivals, ends and departures

cdef int core_open(
    MalleableCore* core, Complex* owner, job_index_t number, processors_t processors
) except -1
cdef int complex_instant(Complex* all, seconds_t now) except -1 nogil
cdef int complex_arrive(Complex* all, job_index_t job) except -1 nogil
cdef int complex_pass(Complex* all) except -1 nogil
cdef seconds_t complex_next_end(const Complex* all) noexcept nogil
