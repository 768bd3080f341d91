"""Tabu search on critical blocks, for problems in which every task has one exclusive resource.

A schedule's makespan is the length of a longest path through precedence and the orders of tasks on
resources. It can only shrink if, in some block of consecutive tasks of a resource on such a path,
a task moves before the first or after the last one, so these are the moves (`_moves`), plus inward
ones of the first and last task (Balas and Vazacopoulos 1998; Zhang et al. 2007). After each all
heads and tails are recomputed.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

import numpy as np

from broker.planner._arena cimport Arena, arena_open, cut
from broker.planner._graph cimport Graph
from broker.planner._instance cimport CompiledProblem, Instance
from broker.planner._moves cimport Move, find_move, make_move
from broker.planner._random cimport Random, random_below, random_between
from broker.planner._scratch cimport Scratch
from broker.planner._types cimport choice_t, resource_t, seconds_t, task_t

TASKS_MAX = 3000
"""Larger problems are not searched: the tabu list has an entry per pair of tasks."""

cdef seconds_t compute(Graph* graph) noexcept nogil:
    # Computes heads, tails and a topological order; returns the makespan, or −1 if the orders on
    # the resources contradict each other.
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
    # Writes a random longest path to graph.path; returns its length.
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


cdef void read_orders(Graph* graph, const Scratch* scratch) noexcept nogil:
    # The order of the tasks on each resource in the schedule. Tasks are sorted by start, as one
    # that fills a gap was planned later.
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
        # A task without duration precedes those that begin then.
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
    # order that builds it. Returns the number of schedules examined.
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
    """Memory for tabu search by one thread.

    `usable` is false, and nothing is allocated, if a task has several alternatives or several
    resources, a resource has capacity, hours or fixed tasks, or there are too many tasks.
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
        return self.graph.usable


def is_job_shop(CompiledProblem problem) -> bool:
    """Returns whether every task has one exclusive resource that is always available."""
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
