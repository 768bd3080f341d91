# The schedule builder: from a sequence of genes and a strategy to a schedule.
from libc.stdint cimport int32_t

from broker.planner._instance cimport CompiledProblem
from broker.planner._scratch cimport Scratch, Strategy
from broker.planner._types cimport task_t

cdef class Workspace:
    cdef Scratch scratch
    cdef CompiledProblem problem
    cdef readonly dict columns   # of the schedule: arrays of the scratch, by their names
    cdef object memory
    cdef column(self, const void* array, object dtype)
    cdef take(self)
    cdef check_choices(self, const int32_t[::1] choices)

cdef int build_fast(Scratch* scratch, const task_t* genes, Strategy strategy) except -1 nogil
