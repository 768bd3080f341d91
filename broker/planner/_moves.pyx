"""Moves of tasks in critical blocks: what each would come to, which is best, and making it.

Any task of a block moves before the first or after the last one, and these two move inward. A move
is evaluated by new heads and tails of the tasks it passes, a fast approximation. A reversed order
is tabu for a while.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from broker.planner._graph cimport Graph
from broker.planner._instance cimport Instance
from broker.planner._random cimport Random, random_below
from broker.planner._types cimport seconds_t, task_t

cdef double ROUNDED_UP = 1.0 + 1e-9


cdef seconds_t estimate_forward(
    const Graph* graph, task_t moved, task_t pivot, seconds_t limit
) noexcept nogil:
    # The longest path through the affected tasks if `moved` goes right behind `pivot`; infinite, or
    # that of some of them, if it is above the limit. The tasks that the move passes keep their
    # time from one to the next, so that its end is known beforehand, but for rounding.
    cdef task_t task = graph.after[moved]
    cdef seconds_t end = graph.end[graph.before[moved]]
    cdef seconds_t longest, rest, start
    cdef seconds_t moved_tail = max(graph.own_tail[moved], graph.rest[graph.after[pivot]])
    start = max(graph.own_head[task], end) + (graph.end[pivot] - graph.end[moved])
    if start + graph.duration[moved] + moved_tail > limit * ROUNDED_UP:
        return INFINITY
    # Heads go forward; the moved task comes last.
    while True:
        end = max(graph.own_head[task], end) + graph.duration[task]
        graph.new_head[task] = end - graph.duration[task]
        if task == pivot:
            break
        task = graph.after[task]
    start = max(graph.own_head[moved], end)
    longest = start + graph.duration[moved] + moved_tail
    rest = graph.duration[moved] + moved_tail
    task = pivot
    while task != moved and longest <= limit:
        rest = max(graph.own_tail[task], rest)
        longest = max(longest, graph.new_head[task] + graph.duration[task] + rest)
        rest += graph.duration[task]
        task = graph.before[task]
    return longest


cdef seconds_t estimate_backward(
    const Graph* graph, task_t moved, task_t pivot, seconds_t limit
) noexcept nogil:
    # Likewise if `moved` goes right before `pivot`.
    cdef task_t task
    cdef seconds_t start = max(graph.own_head[moved], graph.end[graph.before[pivot]])
    cdef seconds_t moved_end = start + graph.duration[moved]
    cdef seconds_t end, longest
    cdef seconds_t rest = graph.rest[graph.after[moved]]
    task = graph.before[moved]
    end = moved_end + (graph.head[moved] - graph.head[pivot])
    if end + max(graph.own_tail[task], rest) > limit * ROUNDED_UP:
        return INFINITY
    # Tails go backward; the moved task comes first.
    while True:
        rest = max(graph.own_tail[task], rest)
        graph.new_tail[task] = rest
        rest += graph.duration[task]
        if task == pivot:
            break
        task = graph.before[task]
    longest = moved_end + max(graph.own_tail[moved], rest)
    end = moved_end
    task = pivot
    while task != moved and longest <= limit:
        end = max(graph.own_head[task], end) + graph.duration[task]
        longest = max(longest, end + graph.new_tail[task])
        task = graph.after[task]
    return longest


cdef inline Py_ssize_t pair(const Graph* graph, task_t first, task_t second) noexcept nogil:
    # Where two tasks of a resource are in `graph.forbidden`.
    return <Py_ssize_t> first * graph.width + graph.rank[second]


cdef bint is_forbidden(const Graph* graph, const Move* move, int64_t iteration) noexcept nogil:
    # Whether the move makes one task precede another in a tabu order.
    cdef task_t task = move.pivot
    while task != move.moved:
        if move.forward:
            if graph.forbidden[pair(graph, task, move.moved)] > iteration:
                return True
            task = graph.before[task]
        else:
            if graph.forbidden[pair(graph, move.moved, task)] > iteration:
                return True
            task = graph.after[task]
    return False


cdef bint precedes(const Instance* instance, task_t first, task_t second) noexcept nogil:
    # Whether precedence says so itself.
    cdef int32_t i
    for i in range(instance.successor_begin[first], instance.successor_begin[first + 1]):
        if instance.successor[i] == second:
            return True
    return False


cdef inline bint closes_cycle(
    const Graph* graph, task_t moved, task_t pivot, bint forward
) noexcept nogil:
    # Whether the move might: a path from one to the other is longer than what is behind its end;
    # if tasks take no time, or precedence joins the two, it may be as long.
    if forward:
        return graph.own_tail[moved] > graph.rest[pivot] or (
            graph.own_tail[moved] == graph.rest[pivot]
            and (graph.instants or precedes(graph.instance, moved, pivot))
        )
    return graph.own_head[moved] > graph.end[pivot] or (
        graph.own_head[moved] == graph.end[pivot]
        and (graph.instants or precedes(graph.instance, pivot, moved))
    )


cdef void consider_move(
    const Graph* graph,
    task_t moved,
    task_t pivot,
    bint forward,
    int64_t iteration,
    seconds_t best_makespan,
    Move* best,
    int32_t* seen,
    Random* random,
) noexcept nogil:
    # Keeps the move if it is better: not tabu, or promising the best schedule so far, comes first;
    # then the estimate; random ties.
    cdef Move move
    cdef seconds_t limit = INFINITY
    cdef bint better
    if best.moved >= 0 and not best.forbidden:
        limit = best.estimate
    move.moved = moved
    move.pivot = pivot
    move.forward = forward
    if forward:
        move.estimate = estimate_forward(graph, moved, pivot, limit)
    else:
        move.estimate = estimate_backward(graph, moved, pivot, limit)
    if move.estimate > limit:
        return
    move.forbidden = move.estimate >= best_makespan and is_forbidden(graph, &move, iteration)
    if best.moved < 0 or (best.forbidden and not move.forbidden):
        seen[0] = 1
        best[0] = move
        return
    if move.forbidden and not best.forbidden:
        return
    if move.forbidden:
        # If everything is tabu, any move will do.
        better = False
        seen[0] += 1
    else:
        better = move.estimate < best.estimate
        seen[0] = 1 if better else seen[0] + 1
    if better or random_below(random, seen[0]) == 0:
        best[0] = move


cdef void find_move(
    const Graph* graph,
    int32_t length,
    int64_t iteration,
    seconds_t best_makespan,
    Move* best,
    Random* random,
) noexcept nogil:
    # The best move in the blocks of the path; best.moved stays −1 if there is none.
    cdef int32_t seen = 0
    cdef int32_t first = 0
    cdef int32_t last, i
    cdef const task_t* path = graph.path
    best.moved = -1
    while first < length:
        last = first
        while last + 1 < length and graph.after[path[last]] == path[last + 1]:
            last += 1
        for i in range(first, last):
            # Behind the last one; and the first one inward. Neighbours are exchanged by only one of
            # the two moves that do so.
            if not closes_cycle(graph, path[i], path[last], True):
                consider_move(
                    graph, path[i], path[last], True, iteration, best_makespan, best, &seen, random
                )
            if first + 1 < i and not closes_cycle(graph, path[first], path[i], True):
                consider_move(
                    graph, path[first], path[i], True, iteration, best_makespan, best, &seen, random
                )
        # A block of two has one move only.
        for i in range(first + 1, last + (last - first > 1)):
            if not closes_cycle(graph, path[i], path[first], False):
                consider_move(
                    graph, path[i], path[first], False, iteration, best_makespan, best, &seen,
                    random,
                )
            if i + 1 < last and not closes_cycle(graph, path[last], path[i], False):
                consider_move(
                    graph, path[last], path[i], False, iteration, best_makespan, best, &seen, random
                )
        first = last + 1


cdef void make_move(
    Graph* graph, const Move* move, int64_t iteration, int64_t tenure
) noexcept nogil:
    cdef task_t moved = move.moved
    cdef task_t pivot = move.pivot
    cdef task_t task = pivot
    cdef task_t left, right
    while task != moved:
        if move.forward:
            graph.forbidden[pair(graph, moved, task)] = iteration + tenure
            task = graph.before[task]
        else:
            graph.forbidden[pair(graph, task, moved)] = iteration + tenure
            task = graph.after[task]
    left = graph.before[moved]
    right = graph.after[moved]
    if left >= 0:
        graph.after[left] = right
    if right >= 0:
        graph.before[right] = left
    if move.forward:
        left = pivot
        right = graph.after[pivot]
    else:
        left = graph.before[pivot]
        right = pivot
    graph.before[moved] = left
    graph.after[moved] = right
    if left >= 0:
        graph.after[left] = moved
    if right >= 0:
        graph.before[right] = moved
