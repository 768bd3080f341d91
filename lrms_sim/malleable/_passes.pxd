from lrms_sim.malleable._value cimport Learner, State
from lrms_sim.malleable._view cimport PassResult, View
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t

cdef enum Choice:
    CHOOSE_NEVER = 0
    CHOOSE_AGGRESSIVE = 1
    CHOOSE_VALUE = 2
    CHOOSE_GREEDY = 3
    CHOOSE_HIGHEST = 4           # aggressive, but the highest final utility, not the narrowest

cdef struct Victim:
    # A running job, as somebody who could be suspended.
    double remaining
    job_index_t job
    processors_t held
    double unit
    seconds_t time_left

cdef struct Scratch:
    Victim* victim               # by rank
    double* held_after           # by rank: of the victims from there on, and of the protected
    double* utility_after
    seconds_t* time_after
    Py_ssize_t capacity

cdef struct PassPolicy:
    Choice preemption
    Choice oversubscription

cdef void leave_due(View* view) noexcept nogil
cdef int grow(View* view, PassResult* result) except -1 nogil
cdef int best_fit(View* view, PassResult* result) except -1 nogil
cdef int act(
    View* view, const PassPolicy* policy, const Learner* learner, Scratch* scratch,
    PassResult* result
) except -1 nogil
cdef State state_of(const View* view) noexcept nogil
cdef Py_ssize_t rank_running(const View* view, Scratch* scratch) noexcept nogil
cdef Py_ssize_t victims_for(
    const View* view, const Scratch* scratch, Py_ssize_t count, job_index_t job, double remaining
) noexcept nogil


cdef inline State state_without(const View* view, const Scratch* scratch, Py_ssize_t victims) \
        noexcept nogil:
    # The state if the first so many victims were suspended.
    cdef State state
    cdef double held = scratch.held_after[victims]
    state.x1 = scratch.utility_after[victims] / held if held > 0.0 else 0.0
    state.x2 = scratch.time_after[victims] if held > 0.0 else 0.0
    state.x3 = view.processors_free + (scratch.held_after[0] - held)
    return state


cdef inline State state_with(
    const View* view, const Scratch* scratch, Py_ssize_t victims, processors_t processors,
    double unit, seconds_t time_left
) noexcept nogil:
    # The state if a job got so many processors after that.
    cdef State state
    cdef double held = scratch.held_after[victims] + processors
    cdef seconds_t first = scratch.time_after[victims]
    state.x1 = (scratch.utility_after[victims] + processors * unit) / held
    state.x2 = time_left if time_left < first else first
    state.x3 = (
        view.processors_free + (scratch.held_after[0] - scratch.held_after[victims]) - processors
    )
    return state
