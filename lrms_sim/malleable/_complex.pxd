# Malleable machines around one queue, and their clock.
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.malleable._core cimport Log, MalleableCore, Results
from lrms_sim.malleable._orders cimport OrderPolicy, OrderScratch
from lrms_sim.malleable._passes cimport PassPolicy, Scratch
from lrms_sim.malleable._view cimport JobList, Options

cdef enum:
    MACHINES_MAX = 64

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
cdef int replay(Complex* all, seconds_t until, Py_ssize_t rows, Py_ssize_t count) except -1 nogil
cdef double value_rise(Complex* all, MalleableCore* core, job_index_t job) noexcept nogil
