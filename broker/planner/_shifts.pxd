# Shifts of tasks to other resources, in flexible job shops.
from libc.stdint cimport int32_t, int64_t

from broker.planner._graph cimport Graph
from broker.planner._random cimport Random
from broker.planner._types cimport choice_t, seconds_t, task_t

cdef struct Shift:
    # `task` goes to a choice, right behind a task there (-1: before all of them); -1: no shift.
    task_t task
    choice_t choice
    task_t behind
    seconds_t estimate
    bint forbidden

cdef void find_shift(
    Graph* graph,
    int32_t length,
    int64_t iteration,
    seconds_t best_makespan,
    Shift* best,
    Random* random,
) noexcept nogil
cdef void make_shift(
    Graph* graph, const Shift* shift, int64_t iteration, int64_t tenure
) noexcept nogil
