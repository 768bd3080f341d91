# Moves of tasks in critical blocks.
from libc.stdint cimport int32_t, int64_t

from broker.planner._graph cimport Graph
from broker.planner._random cimport Random
from broker.planner._types cimport seconds_t, task_t

cdef struct Move:
    # `moved` goes right behind `pivot`, or right before it.
    task_t moved
    task_t pivot
    bint forward
    seconds_t estimate
    bint forbidden

cdef void find_move(
    const Graph* graph,
    int32_t length,
    int64_t iteration,
    seconds_t best_makespan,
    Move* best,
    Random* random,
) noexcept nogil
cdef void make_move(
    Graph* graph, const Move* move, int64_t iteration, int64_t tenure
) noexcept nogil
