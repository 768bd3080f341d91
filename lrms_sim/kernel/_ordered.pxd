# Passes over the waiting jobs in an order other than that of arrival; nothing is remembered from
# one pass to the next but who waits (`_waiting`) and who runs.
from libc.stdint cimport int32_t

from lrms_sim.kernel._criteria cimport GROUPS, Priority
from lrms_sim.kernel._view cimport View
from lrms_sim.kernel._waiting cimport Waiting

cdef enum Algorithm:
    ALGORITHM_FCFS
    ALGORITHM_LIST
    ALGORITHM_EASY
    ALGORITHM_CONSERVATIVE

cdef enum OrderKind:
    ORDER_ARRIVAL
    ORDER_PROCESSORS             # ascending
    ORDER_REQUEST                # ascending
    ORDER_GROUP                  # group after group
    ORDER_CRITERION              # descending
    ORDER_KEY                    # this and what follows: ascending by a KeyKind

cdef struct Alternative:
    Algorithm algorithm
    OrderKind order
    OrderKind backfill           # in which order EASY looks at those behind the blocked head
    int32_t groups[GROUPS]       # for ORDER_GROUP: the groups, 0 to 4, the first served first
    Priority priority            # for ORDER_CRITERION
    Py_ssize_t lines             # for ORDER_CRITERION: number of its lines

cdef int waiting_pass(Waiting* waiting, View* view, Alternative* how) except -1 nogil
