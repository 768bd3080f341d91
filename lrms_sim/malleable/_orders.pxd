from lrms_sim.kernel._types cimport job_index_t, seconds_t
from lrms_sim.malleable._view cimport PassResult, View

cdef enum Order:
    ORDER_ARRIVAL = 0
    ORDER_WEIGHT = 1
    ORDER_DENSITY = 2
    ORDER_DEADLINE = 3
    ORDER_WEIGHTS = 4

cdef enum Mechanism:
    FOLLOW_HEAD = 0          # FCFS: nobody passes the first that does not fit
    FOLLOW_EASY = 1          # backfilling behind a reservation for it
    FOLLOW_LIST = 2          # whoever fits
    FOLLOW_REPLAN = 3        # running jobs stand in the order as well, and may be suspended

cdef enum:
    FEATURES = 8

cdef struct OrderPolicy:
    Mechanism mechanism
    Order order
    bint squeezes                # FOLLOW_REPLAN: the last job is squeezed into what is left
    double weights[FEATURES]     # ORDER_WEIGHTS

cdef struct Ranked:
    double score                 # higher is earlier
    job_index_t job
    bint waits
    int granted

cdef struct Release:
    seconds_t time
    job_index_t job

cdef struct OrderScratch:
    Ranked* ranked
    Release* release
    Py_ssize_t capacity

cdef int follow(
    View* view, const OrderPolicy* policy, OrderScratch* scratch, PassResult* result
) except -1 nogil
cdef void features(const View* view, job_index_t job, bint waits, double* found) noexcept nogil
