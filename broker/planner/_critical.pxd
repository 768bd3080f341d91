# Tabu search on critical blocks, for problems in which every task has one exclusive resource.
from libc.stdint cimport int32_t, int64_t

from broker.planner._graph cimport Graph
from broker.planner._random cimport Random
from broker.planner._scratch cimport Scratch
from broker.planner._types cimport choice_t, task_t

cdef class CriticalGraph:
    cdef Graph graph
    cdef object memory
    cdef object problem     # keeps the instance's arrays

cdef int64_t tabu_search_fast(
    Graph* graph,
    const Scratch* scratch,
    int64_t iterations,
    Random* random,
    const int32_t* cancelled,
    task_t* genes,
    choice_t* choices,
) noexcept nogil
