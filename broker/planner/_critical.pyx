"""Tabu search on critical blocks, for problems in which every task has one exclusive resource.

A schedule's makespan is the length of a longest path through precedence and the orders of tasks on
resources. It can only get shorter if, in some block of tasks that follow each other on a resource
on such a path, a task goes before the first or behind the last one, so these are the moves, and
inward ones of the first and last task besides (Balas and Vazacopoulos 1998; Zhang et al. 2007). A
move is judged by new heads and tails of the tasks it passes, which is quick and nearly right; then
all heads and tails are computed anew. What a move has turned round must not be turned back for a
while.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

import numpy as np

from broker.planner._arena cimport Arena, arena_open, cut
from broker.planner._scratch cimport Scratch
from broker.planner._instance cimport CompiledProblem, Instance
from broker.planner._random cimport Random, random_below, random_between
from broker.planner._types cimport choice_t, resource_t, seconds_t, task_t

TASKS_MAX = 3000
"""Larger problems are not searched: what is forbidden is noted by pair of tasks."""

cdef struct Move:
    # `moved` goes right behind `pivot`, or right before it.
    task_t moved
    task_t pivot
    bint forward
    seconds_t estimate
    bint forbidden


cdef seconds_t compute(Graph* graph) noexcept nogil:
    # Heads, tails and a topological order; returns the makespan, or −1 if the orders on the
    # resources contradict each other.
    cdef const Instance* instance = graph.instance
    cdef int32_t n = graph.tasks
    cdef int32_t ready = 0
    cdef int32_t done = 0
    cdef int32_t i
    cdef task_t task, other
    cdef seconds_t end, longest
    cdef seconds_t makespan = 0.0
    for task in range(n):
        graph.own_head[task] = instance.release[task] - instance.now
        graph.missing[task] = instance.predecessors[task] + (graph.before[task] >= 0)
        if graph.missing[task] == 0:
            graph.order[ready] = task
            ready += 1
    while done < ready:
        task = graph.order[done]
        done += 1
        end = graph.own_head[task]
        other = graph.before[task]
        if other >= 0:
            end = max(end, graph.head[other] + graph.duration[other])
        graph.head[task] = end
        end += graph.duration[task]
        makespan = max(makespan, end)
        for i in range(instance.successor_begin[task], instance.successor_begin[task + 1]):
            other = instance.successor[i]
            graph.own_head[other] = max(graph.own_head[other], end)
            graph.missing[other] -= 1
            if graph.missing[other] == 0:
                graph.order[ready] = other
                ready += 1
        other = graph.after[task]
        if other >= 0:
            graph.missing[other] -= 1
            if graph.missing[other] == 0:
                graph.order[ready] = other
                ready += 1
    if done < n:
        return -1.0
    while done > 0:
        done -= 1
        task = graph.order[done]
        longest = 0.0
        for i in range(instance.successor_begin[task], instance.successor_begin[task + 1]):
            other = instance.successor[i]
            longest = max(longest, graph.duration[other] + graph.tail[other])
        graph.own_tail[task] = longest
        other = graph.after[task]
        if other >= 0:
            longest = max(longest, graph.duration[other] + graph.tail[other])
        graph.tail[task] = longest
    return makespan


cdef int32_t critical_path(Graph* graph, seconds_t makespan, Random* random) noexcept nogil:
    # A longest path by chance, into graph.path; returns its length.
    cdef const Instance* instance = graph.instance
    cdef seconds_t least = makespan * (1.0 - 1e-12)
    cdef int32_t length = 0
    cdef int32_t candidates = 0
    cdef int32_t i
    cdef task_t task
    cdef task_t found = -1
    for task in range(graph.tasks):
        if (
            graph.head[task] + graph.duration[task] + graph.tail[task] >= least
            and graph.tail[task] == 0.0
        ):
            candidates += 1
            if random_below(random, candidates) == 0:
                found = task
    # Backward from the end.
    while found >= 0:
        graph.path[length] = found
        length += 1
        candidates = 0
        task = graph.before[found]
        if task >= 0 and graph.head[task] + graph.duration[task] == graph.head[found]:
            candidates = 1
        else:
            task = -1
        for i in range(instance.predecessor_begin[found], instance.predecessor_begin[found + 1]):
            if (
                graph.head[instance.predecessor[i]] + graph.duration[instance.predecessor[i]]
                == graph.head[found]
            ):
                candidates += 1
                if random_below(random, candidates) == 0:
                    task = instance.predecessor[i]
        found = task
    for i in range(length // 2):
        graph.path[i], graph.path[length - 1 - i] = graph.path[length - 1 - i], graph.path[i]
    return length


cdef seconds_t estimate_forward(const Graph* graph, task_t moved, task_t pivot) noexcept nogil:
    # The longest path through the tasks concerned if `moved` goes right behind `pivot`.
    cdef task_t task = graph.after[moved]
    cdef task_t before = graph.before[moved]
    cdef seconds_t end = graph.head[before] + graph.duration[before] if before >= 0 else 0.0
    cdef seconds_t longest, rest, start
    cdef task_t behind = graph.after[pivot]
    cdef seconds_t moved_tail = graph.own_tail[moved]
    if behind >= 0:
        moved_tail = max(moved_tail, graph.duration[behind] + graph.tail[behind])
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
    while task != moved:
        rest = max(graph.own_tail[task], rest)
        longest = max(longest, graph.new_head[task] + graph.duration[task] + rest)
        rest += graph.duration[task]
        task = graph.before[task]
    return longest


cdef seconds_t estimate_backward(const Graph* graph, task_t moved, task_t pivot) noexcept nogil:
    # The longest path through the tasks concerned if `moved` goes right before `pivot`.
    cdef task_t before = graph.before[pivot]
    cdef task_t behind = graph.after[moved]
    cdef task_t task
    cdef seconds_t start = graph.own_head[moved]
    cdef seconds_t end, rest, longest
    if before >= 0:
        start = max(start, graph.head[before] + graph.duration[before])
    end = start + graph.duration[moved]
    task = pivot
    while task != moved:
        graph.new_head[task] = max(graph.own_head[task], end)
        end = graph.new_head[task] + graph.duration[task]
        task = graph.after[task]
    rest = graph.duration[behind] + graph.tail[behind] if behind >= 0 else 0.0
    longest = 0.0
    task = graph.before[moved]
    while True:
        rest = max(graph.own_tail[task], rest)
        longest = max(longest, graph.new_head[task] + graph.duration[task] + rest)
        rest += graph.duration[task]
        if task == pivot:
            break
        task = graph.before[task]
    rest = max(graph.own_tail[moved], rest)
    return max(longest, start + graph.duration[moved] + rest)


cdef bint is_forbidden(const Graph* graph, const Move* move, int64_t iteration) noexcept nogil:
    # Whether the move makes one task precede another that it must not precede now.
    cdef task_t task = move.pivot
    cdef Py_ssize_t n = graph.tasks
    while task != move.moved:
        if move.forward:
            if graph.forbidden[task * n + move.moved] > iteration:
                return True
            task = graph.before[task]
        else:
            if graph.forbidden[move.moved * n + task] > iteration:
                return True
            task = graph.after[task]
    return False


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
    # Keeps the move if it cannot close a cycle and is better: one that is not forbidden, or that
    # promises the best schedule so far, before one that is; then by estimate; ties by chance.
    cdef Move move
    cdef seconds_t rest
    cdef bint better
    # Where tasks take no time, a path between two of them may be as short as none.
    if forward:
        rest = graph.tail[pivot] + graph.duration[pivot]
        if graph.own_tail[moved] > rest or (graph.instants and graph.own_tail[moved] == rest):
            return
    else:
        rest = graph.head[pivot] + graph.duration[pivot]
        if graph.own_head[moved] > rest or (graph.instants and graph.own_head[moved] == rest):
            return
    move.moved = moved
    move.pivot = pivot
    move.forward = forward
    if forward:
        move.estimate = estimate_forward(graph, moved, pivot)
    else:
        move.estimate = estimate_backward(graph, moved, pivot)
    move.forbidden = move.estimate >= best_makespan and is_forbidden(graph, &move, iteration)
    if best.moved < 0 or (best.forbidden and not move.forbidden):
        seen[0] = 1
        best[0] = move
        return
    if move.forbidden and not best.forbidden:
        return
    if move.forbidden:
        # Where everything is forbidden, any move will do.
        better = False
        seen[0] += 1
    else:
        better = move.estimate < best.estimate
        seen[0] = 1 if better else seen[0] + (move.estimate == best.estimate)
        if not better and move.estimate > best.estimate:
            return
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
            # Behind the last one; and the first one inward.
            consider_move(
                graph, path[i], path[last], True, iteration, best_makespan, best, &seen, random
            )
            if first < i:
                consider_move(
                    graph, path[first], path[i], True, iteration, best_makespan, best, &seen, random
                )
        # A block of two has one move only.
        for i in range(first + 1, last + (last - first > 1)):
            consider_move(
                graph, path[i], path[first], False, iteration, best_makespan, best, &seen, random
            )
            if i < last:
                consider_move(
                    graph, path[last], path[i], False, iteration, best_makespan, best, &seen, random
                )
        first = last + 1


cdef void make_move(
    Graph* graph, const Move* move, int64_t iteration, int64_t tenure
) noexcept nogil:
    cdef Py_ssize_t n = graph.tasks
    cdef task_t moved = move.moved
    cdef task_t pivot = move.pivot
    cdef task_t task = pivot
    cdef task_t left, right
    while task != moved:
        if move.forward:
            graph.forbidden[moved * n + task] = iteration + tenure
            task = graph.before[task]
        else:
            graph.forbidden[task * n + moved] = iteration + tenure
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


cdef void read_orders(Graph* graph, const Scratch* scratch) noexcept nogil:
    # The order of the tasks on each resource in the schedule of the scratch. Tasks were planned in
    # another order than they start where one went into a gap, so each is sorted in by its start.
    cdef const Instance* instance = graph.instance
    cdef int32_t i
    cdef task_t task, behind, before
    cdef resource_t resource
    for resource in range(instance.resources):
        graph.last[resource] = -1
    for i in range(scratch.planned):
        task = scratch.order[i]
        resource = graph.resource[task]
        behind = -1
        before = graph.last[resource]
        # What takes no time comes before what begins then.
        while before >= 0 and (
            scratch.start[before] > scratch.start[task]
            or (
                scratch.start[before] == scratch.start[task]
                and scratch.end[before] > scratch.end[task]
            )
        ):
            behind = before
            before = graph.before[before]
        graph.before[task] = before
        graph.after[task] = behind
        if before >= 0:
            graph.after[before] = task
        if behind >= 0:
            graph.before[behind] = task
        else:
            graph.last[resource] = task


cdef int64_t tabu_search_fast(
    Graph* graph, const Scratch* scratch, int64_t iterations, Random* random, task_t* genes
) noexcept nogil:
    # Searches from the schedule in the scratch; writes the tasks of the shortest schedule in an
    # order that builds it. Returns how many schedules were looked at.
    cdef int32_t n = graph.tasks
    cdef int32_t tenure = 10 + n // max(1, graph.instance.resources * graph.instance.resources)
    cdef int64_t iteration = 0
    cdef int32_t length
    cdef seconds_t makespan, best
    cdef Move move
    read_orders(graph, scratch)
    memset(graph.forbidden, 0, <Py_ssize_t> n * n * sizeof(int64_t))
    best = makespan = compute(graph)
    memcpy(graph.best_before, graph.before, n * sizeof(task_t))
    memcpy(graph.best_after, graph.after, n * sizeof(task_t))
    while iteration < iterations:
        iteration += 1
        length = critical_path(graph, makespan, random)
        find_move(graph, length, iteration, best, &move, random)
        if move.moved < 0:
            break    # no block of two tasks: nothing is shorter
        make_move(
            graph, &move, iteration, random_between(random, tenure, tenure + tenure // 2)
        )
        makespan = compute(graph)
        if makespan < 0.0:
            break    # cannot happen: moves that could close a cycle are not considered
        if makespan < best:
            best = makespan
            memcpy(graph.best_before, graph.before, n * sizeof(task_t))
            memcpy(graph.best_after, graph.after, n * sizeof(task_t))
    memcpy(graph.before, graph.best_before, n * sizeof(task_t))
    memcpy(graph.after, graph.best_after, n * sizeof(task_t))
    compute(graph)
    memcpy(genes, graph.order, n * sizeof(task_t))
    return iteration


cdef void lay_out(Graph* graph, Arena* arena) noexcept:
    cdef Py_ssize_t n = graph.tasks
    graph.duration = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.resource = <resource_t*> cut(arena, n, sizeof(resource_t))
    graph.before = <task_t*> cut(arena, n, sizeof(task_t))
    graph.after = <task_t*> cut(arena, n, sizeof(task_t))
    graph.head = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.tail = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.own_head = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.own_tail = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.new_head = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.order = <task_t*> cut(arena, n, sizeof(task_t))
    graph.missing = <int32_t*> cut(arena, n, sizeof(int32_t))
    graph.path = <task_t*> cut(arena, n, sizeof(task_t))
    graph.best_before = <task_t*> cut(arena, n, sizeof(task_t))
    graph.best_after = <task_t*> cut(arena, n, sizeof(task_t))
    graph.last = <task_t*> cut(arena, graph.instance.resources, sizeof(task_t))
    graph.forbidden = <int64_t*> cut(arena, n * n, sizeof(int64_t))


cdef class CriticalGraph:
    """Room for tabu search by one thread.

    Args:
        problem: the compiled problem. Where it is not of this kind (a task has several
            alternatives or several resources, a resource has capacity, hours or fixed tasks, or
            there are too many tasks) `usable` is false and there is no room.
    """

    def __init__(self, CompiledProblem problem):
        cdef Graph* graph = &self.graph
        cdef Arena arena = Arena(NULL, 0)
        cdef task_t task
        cdef choice_t choice
        graph.instance = &problem.instance
        graph.tasks = problem.instance.tasks
        graph.usable = is_job_shop(problem)
        graph.instants = False
        if not graph.usable:
            return
        lay_out(graph, &arena)
        self.memory = np.zeros(arena.used, np.uint8)
        arena_open(&arena, self.memory)
        lay_out(graph, &arena)
        for task in range(graph.tasks):
            choice = graph.instance.few[task]
            graph.resource[task] = graph.instance.demand_resource[
                graph.instance.demand_begin[choice]
            ]
            graph.duration[task] = graph.instance.work[task] / graph.instance.performance[choice]
            graph.instants |= graph.duration[task] == 0

    @property
    def usable(self) -> bool:
        """Whether the problem is of this kind."""
        return self.graph.usable


def is_job_shop(CompiledProblem problem) -> bool:
    """Returns whether every task has one exclusive resource that is always there for it."""
    cdef int32_t n = problem.instance.tasks
    if not 1 <= n <= TASKS_MAX:
        return False
    few = np.diff(problem.column("few_begin"))
    resources = problem.instance.resources
    return bool(
        (few == 1).all()
        and len(few) == n
        and (np.diff(problem.column("demand_begin")) == 1).all()
        and (problem.column("capacity")[:resources] == 1).all()
        and not problem.column("opening_begin")[resources]
        and not problem.column("taken_begin")[resources]
    )
