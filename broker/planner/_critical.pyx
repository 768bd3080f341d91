"""Tabu search on critical blocks, where every task has one exclusive resource at a time.

A schedule's makespan is the length of a longest path through precedence and the orders of tasks on
resources. It can only shrink if, in some block of consecutive tasks of a resource on such a path,
a task moves before the first or after the last one, so these are the moves (`_moves`), plus inward
ones of the first and last task (Balas and Vazacopoulos 1998; Zhang et al. 2007). Where tasks have
alternatives (flexible job shops), one on the path may also go to another resource (`_shifts`;
Mastrolilli and Gambardella 2000). After a move a topological order, heads and tails are mended
where it may have changed them; after a shift all are computed anew.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from broker.planner._arena cimport Arena, arena_open, cut
from broker.planner._graph cimport Graph
from broker.planner._instance cimport CompiledProblem, Instance, duration_on
from broker.planner._moves cimport Move, find_move, make_move
from broker.planner._random cimport Random, random_begin, random_below, random_between
from broker.planner._scratch cimport Scratch
from broker.planner._shifts cimport Shift, find_shift, make_shift
from broker.planner._types cimport choice_t, resource_t, seconds_t, task_t

TASKS_MAX = 3000
"""Larger problems are not searched: the tabu list has an entry per pair of tasks."""

cdef seconds_t compute(Graph* graph) noexcept nogil:
    # Computes a topological order, heads and tails; returns the makespan, or −1 if the orders on
    # the resources contradict each other.
    cdef const Instance* instance = graph.instance
    cdef int32_t n = graph.tasks
    cdef int32_t ready = 0
    cdef int32_t done = 0
    cdef int32_t i
    cdef task_t task, other
    for task in range(n):
        graph.missing[task] = instance.predecessors[task] + (graph.before[task] >= 0)
        if graph.missing[task] == 0:
            graph.order[ready] = task
            ready += 1
    while done < ready:
        task = graph.order[done]
        graph.position[task] = done
        done += 1
        for i in range(instance.successor_begin[task], instance.successor_begin[task + 1]):
            other = instance.successor[i]
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
    set_heads(graph, 0)
    set_tails(graph, n - 1)
    return makespan_of(graph)


cdef void set_heads(Graph* graph, int32_t first) noexcept nogil:
    # Of the tasks from a place in the topological order on.
    cdef const Instance* instance = graph.instance
    cdef int32_t i, place
    cdef task_t task
    cdef seconds_t head
    for place in range(first, graph.tasks):
        task = graph.order[place]
        head = max(graph.release[task], graph.end[graph.source[task]])
        if graph.branched:
            for i in range(
                instance.predecessor_begin[task] + 1, instance.predecessor_begin[task + 1]
            ):
                head = max(head, graph.end[instance.predecessor[i]])
        graph.own_head[task] = head
        head = max(head, graph.end[graph.before[task]])
        graph.head[task] = head
        graph.end[task] = head + graph.duration[task]


cdef void set_tails(Graph* graph, int32_t last) noexcept nogil:
    # Of the tasks up to a place in the topological order.
    cdef const Instance* instance = graph.instance
    cdef int32_t i, place
    cdef task_t task
    cdef seconds_t tail
    for place in range(last, -1, -1):
        task = graph.order[place]
        tail = graph.rest[graph.target[task]]
        if graph.branched:
            for i in range(instance.successor_begin[task] + 1, instance.successor_begin[task + 1]):
                tail = max(tail, graph.rest[instance.successor[i]])
        graph.own_tail[task] = tail
        tail = max(tail, graph.rest[graph.after[task]])
        graph.tail[task] = tail
        graph.rest[task] = graph.duration[task] + tail


cdef seconds_t makespan_of(const Graph* graph) noexcept nogil:
    cdef seconds_t makespan = 0.0
    cdef int32_t i
    for i in range(graph.sinks):
        makespan = max(makespan, graph.end[graph.sink[i]])
    return makespan


cdef bint hold_later(Graph* graph, int32_t first, int32_t last) noexcept nogil:
    # The task at `first` now comes behind the one at `last`. It and those between them that it
    # precedes are held back and follow; the others stay in their order. False if the one at
    # `last` is among those that it precedes.
    cdef const Instance* instance = graph.instance
    cdef task_t task = graph.order[first]
    cdef task_t pivot = graph.order[last]
    cdef int32_t held = 1
    cdef int32_t to = first
    cdef int32_t i, place
    cdef bint late
    graph.held[0] = task
    graph.missing[task] = 1
    for place in range(first + 1, last + 1):
        task = graph.order[place]
        late = graph.missing[graph.before[task]] | graph.missing[graph.source[task]]
        if graph.branched:
            for i in range(
                instance.predecessor_begin[task] + 1, instance.predecessor_begin[task + 1]
            ):
                late |= graph.missing[instance.predecessor[i]]
        if late:
            graph.missing[task] = 1
            graph.held[held] = task
            held += 1
        else:
            graph.order[to] = task
            graph.position[task] = to
            to += 1
    late = graph.missing[pivot]
    for i in range(held):
        task = graph.held[i]
        graph.missing[task] = 0
        graph.order[to + i] = task
        graph.position[task] = to + i
    return not late


cdef bint hold_earlier(Graph* graph, int32_t first, int32_t last) noexcept nogil:
    # Likewise if the task at `last` now comes before the one at `first`.
    cdef const Instance* instance = graph.instance
    cdef task_t task = graph.order[last]
    cdef task_t pivot = graph.order[first]
    cdef int32_t held = 1
    cdef int32_t to = last
    cdef int32_t i, place
    cdef bint early
    graph.held[0] = task
    graph.missing[task] = 1
    for place in range(last - 1, first - 1, -1):
        task = graph.order[place]
        early = graph.missing[graph.after[task]] | graph.missing[graph.target[task]]
        if graph.branched:
            for i in range(instance.successor_begin[task] + 1, instance.successor_begin[task + 1]):
                early |= graph.missing[instance.successor[i]]
        if early:
            graph.missing[task] = 1
            graph.held[held] = task
            held += 1
        else:
            graph.order[to] = task
            graph.position[task] = to
            to -= 1
    early = graph.missing[pivot]
    for i in range(held):
        task = graph.held[i]
        graph.missing[task] = 0
        graph.order[to - i] = task
        graph.position[task] = to - i
    return not early


cdef seconds_t update(Graph* graph, const Move* move) noexcept nogil:
    # As `compute`, after a move on one resource: only what may have changed. Heads change behind
    # the first place in the topological order that does, tails before the last one.
    cdef int32_t first, last
    cdef bint sound
    if move.forward:
        first = graph.position[move.moved]
        last = graph.position[move.pivot]
        sound = hold_later(graph, first, last)
    else:
        first = graph.position[move.pivot]
        last = graph.position[move.moved]
        sound = hold_earlier(graph, first, last)
    if not sound:
        return -1.0
    set_heads(graph, first)
    set_tails(graph, last)
    return makespan_of(graph)


cdef int32_t critical_path(Graph* graph, seconds_t makespan, Random* random) noexcept nogil:
    # Writes a random longest path to graph.path; returns its length.
    cdef const Instance* instance = graph.instance
    cdef seconds_t least = makespan * (1.0 - 1e-12)
    cdef int32_t length = 0
    cdef int32_t candidates = 0
    cdef int32_t i
    cdef task_t task, other
    cdef task_t found = -1
    for i in range(graph.sinks):
        task = graph.sink[i]
        if graph.end[task] >= least:
            candidates += 1
            if candidates == 1 or random_below(random, candidates) == 0:
                found = task
    while found >= 0:
        graph.path[length] = found
        length += 1
        task = graph.before[found]
        candidates = task >= 0 and graph.end[task] == graph.head[found]
        if not candidates:
            task = -1
        other = graph.source[found]
        if other >= 0 and graph.end[other] == graph.head[found]:
            candidates += 1
            if candidates == 1 or random_below(random, candidates) == 0:
                task = other
        if graph.branched:
            for i in range(
                instance.predecessor_begin[found] + 1, instance.predecessor_begin[found + 1]
            ):
                other = instance.predecessor[i]
                if graph.end[other] == graph.head[found]:
                    candidates += 1
                    if candidates == 1 or random_below(random, candidates) == 0:
                        task = other
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


cdef void take_choice(Graph* graph, task_t task, choice_t choice) noexcept nogil:
    cdef const Instance* instance = graph.instance
    graph.choice[task] = choice
    graph.resource[task] = instance.demand_resource[instance.demand_begin[choice]]
    graph.duration[task] = duration_on(instance, task, choice)


cdef void keep_best(Graph* graph) noexcept nogil:
    memcpy(graph.best_before, graph.before, graph.tasks * sizeof(task_t))
    memcpy(graph.best_after, graph.after, graph.tasks * sizeof(task_t))
    if graph.flexible:
        memcpy(graph.best_choice, graph.choice, graph.tasks * sizeof(choice_t))


cdef bint take_shift(const Move* move, const Shift* shift, Random* random) noexcept nogil:
    # Whether a shift to another resource is better than a move on the same one; random ties.
    if shift.task < 0 or move.moved < 0:
        return shift.task >= 0
    if shift.forbidden != move.forbidden:
        return move.forbidden
    if shift.forbidden or shift.estimate == move.estimate:
        return random_below(random, 2) == 0
    return shift.estimate < move.estimate


cdef int64_t tabu_search_fast(
    Graph* graph,
    const Scratch* scratch,
    int64_t iterations,
    Random* random,
    const int32_t* cancelled,
    task_t* genes,
    choice_t* choices,
) noexcept nogil:
    # Searches from the schedule in the scratch, until it is cancelled by another thread; writes
    # the tasks of the shortest schedule in an order that builds it, and their choices where there
    # are several. Returns the number of schedules examined.
    cdef int32_t n = graph.tasks
    cdef int32_t tenure = 10 + n // max(1, graph.instance.resources * graph.instance.resources)
    cdef int64_t iteration = 0
    cdef int32_t length
    cdef seconds_t makespan, best
    cdef Move move
    cdef Shift shift
    cdef task_t task
    shift.task = -1
    if graph.flexible:
        for task in range(n):
            take_choice(graph, task, scratch.choice[task])
        memset(graph.barred, 0, <Py_ssize_t> n * graph.instance.resources * sizeof(int64_t))
    read_orders(graph, scratch)
    memset(graph.forbidden, 0, <Py_ssize_t> n * graph.width * sizeof(int64_t))
    best = makespan = compute(graph)
    keep_best(graph)
    while iteration < iterations and not cancelled[0]:
        iteration += 1
        length = critical_path(graph, makespan, random)
        find_move(graph, length, iteration, best, &move, random)
        if graph.flexible:
            find_shift(graph, length, iteration, best, &shift, random)
            if take_shift(&move, &shift, random):
                make_shift(
                    graph, &shift, iteration, random_between(random, tenure, tenure + tenure // 2)
                )
                take_choice(graph, shift.task, shift.choice)
                move.moved = -1
            else:
                shift.task = -1
        if move.moved >= 0:
            make_move(
                graph, &move, iteration, random_between(random, tenure, tenure + tenure // 2)
            )
        elif shift.task < 0:
            break    # no block of two tasks, and no other resource: nothing is shorter
        makespan = update(graph, &move) if move.moved >= 0 else compute(graph)
        if makespan < 0.0:
            break    # cannot happen: moves that could close a cycle are not considered
        if makespan < best:
            best = makespan
            keep_best(graph)
    memcpy(graph.before, graph.best_before, n * sizeof(task_t))
    memcpy(graph.after, graph.best_after, n * sizeof(task_t))
    if graph.flexible:
        for task in range(n):
            take_choice(graph, task, graph.best_choice[task])
        memcpy(choices, graph.best_choice, n * sizeof(choice_t))
    compute(graph)
    memcpy(genes, graph.order, n * sizeof(task_t))
    return iteration


cdef void lay_out(Graph* graph, Arena* arena, Py_ssize_t choices) noexcept:
    cdef Py_ssize_t n = graph.tasks
    graph.duration = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.release = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.source = <task_t*> cut(arena, n, sizeof(task_t))
    graph.target = <task_t*> cut(arena, n, sizeof(task_t))
    graph.resource = <resource_t*> cut(arena, n, sizeof(resource_t))
    graph.before = <task_t*> cut(arena, n, sizeof(task_t))
    graph.after = <task_t*> cut(arena, n, sizeof(task_t))
    graph.head = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.tail = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.end = <seconds_t*> cut(arena, n + 1, sizeof(seconds_t))
    graph.rest = <seconds_t*> cut(arena, n + 1, sizeof(seconds_t))
    graph.own_head = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.own_tail = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.new_head = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.new_tail = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    graph.order = <task_t*> cut(arena, n, sizeof(task_t))
    graph.position = <int32_t*> cut(arena, n, sizeof(int32_t))
    graph.missing = <int32_t*> cut(arena, n + 1, sizeof(int32_t))
    graph.held = <task_t*> cut(arena, n, sizeof(task_t))
    graph.sink = <task_t*> cut(arena, n, sizeof(task_t))
    graph.path = <task_t*> cut(arena, n, sizeof(task_t))
    graph.best_before = <task_t*> cut(arena, n, sizeof(task_t))
    graph.best_after = <task_t*> cut(arena, n, sizeof(task_t))
    graph.last = <task_t*> cut(arena, graph.instance.resources, sizeof(task_t))
    graph.rank = <int32_t*> cut(arena, n, sizeof(int32_t))
    graph.forbidden = <int64_t*> cut(arena, n * graph.width, sizeof(int64_t))
    if graph.flexible:
        graph.choice = <choice_t*> cut(arena, n, sizeof(choice_t))
        graph.best_choice = <choice_t*> cut(arena, n, sizeof(choice_t))
        graph.choices_begin = <int32_t*> cut(arena, n + 1, sizeof(int32_t))
        graph.choices = <choice_t*> cut(arena, choices, sizeof(choice_t))
        graph.barred = <int64_t*> cut(arena, n * graph.instance.resources, sizeof(int64_t))


cdef class CriticalGraph:
    """Memory for tabu search by one thread, in flexible job shops too where that is wanted.

    `usable` is false, and nothing is allocated, if a task has several resources at once, a
    resource has capacity, hours or fixed tasks, there are too many tasks, or tasks have
    alternatives and one takes no time.
    """

    def __init__(self, CompiledProblem problem, bint flexible=False):
        cdef Graph* graph = &self.graph
        cdef Arena arena = Arena(NULL, 0)
        cdef task_t task
        cdef choice_t choice
        cdef int32_t first, count
        self.problem = problem
        graph.instance = &problem.instance
        graph.tasks = problem.instance.tasks
        graph.usable = is_job_shop(problem)
        graph.flexible = flexible and not graph.usable and is_flexible(problem)
        graph.usable |= graph.flexible
        graph.instants = False
        if not graph.usable:
            return
        rows = choices_by_task(problem) if graph.flexible else []
        graph.width = graph.tasks if graph.flexible else most_on_one(problem)
        lay_out(graph, &arena, sum(map(len, rows)))
        self.memory = np.zeros(arena.used, np.uint8)
        arena_open(&arena, self.memory)
        lay_out(graph, &arena, sum(map(len, rows)))
        # A task that is not there, -1, ends at 0 and has nothing behind it.
        graph.end += 1
        graph.rest += 1
        graph.missing += 1
        graph.sinks = 0
        graph.branched = False
        for task in range(graph.tasks):
            graph.release[task] = graph.instance.release[task] - graph.instance.now
            graph.source[task] = graph.target[task] = -1
            first = graph.instance.predecessor_begin[task]
            count = graph.instance.predecessor_begin[task + 1] - first
            if count > 0:
                graph.source[task] = graph.instance.predecessor[first]
            graph.branched |= count > 1
            first = graph.instance.successor_begin[task]
            count = graph.instance.successor_begin[task + 1] - first
            if count > 0:
                graph.target[task] = graph.instance.successor[first]
            graph.branched |= count > 1
            if graph.instance.successor_begin[task] == graph.instance.successor_begin[task + 1]:
                graph.sink[graph.sinks] = task
                graph.sinks += 1
        for task, mine in enumerate(rows):
            graph.choices_begin[task + 1] = graph.choices_begin[task]
            for choice in mine:
                graph.choices[graph.choices_begin[task + 1]] = choice
                graph.choices_begin[task + 1] += 1
        if graph.flexible:
            for task in range(graph.tasks):
                graph.rank[task] = task
            return
        ranks = [0] * graph.instance.resources
        for task in range(graph.tasks):
            choice = graph.instance.few[task]
            graph.resource[task] = graph.instance.demand_resource[
                graph.instance.demand_begin[choice]
            ]
            graph.duration[task] = duration_on(graph.instance, task, choice)
            graph.instants |= graph.duration[task] == 0
            graph.rank[task] = ranks[graph.resource[task]]
            ranks[graph.resource[task]] += 1

    @property
    def usable(self) -> bool:
        return self.graph.usable

    def walk(self, orders, int32_t steps, uint64_t seed):
        """Returns the moves of a tabu search from some orders of the tasks on the resources, for
        tests.

        A move is the critical path, the task that goes behind or before another one, that one,
        whether behind, the estimate, and then makespan, heads, tails and a topological order.
        ValueError if the orders contradict precedence, or tasks have alternatives.
        """
        cdef Graph* graph = &self.graph
        cdef int32_t iteration, length
        cdef seconds_t makespan
        cdef Move move
        cdef Random random
        if not graph.usable or graph.flexible:
            raise ValueError("not a job shop")
        for order in orders:
            for before, task, after in zip([-1, *order], order, [*order[1:], -1]):
                graph.before[task] = before
                graph.after[task] = after
        memset(graph.forbidden, 0, <Py_ssize_t> graph.tasks * graph.width * sizeof(int64_t))
        random_begin(&random, seed, 0, 0)
        makespan = compute(graph)
        if makespan < 0.0:
            raise ValueError("the orders contradict precedence")
        done = []
        for iteration in range(1, steps + 1):
            length = critical_path(graph, makespan, &random)
            path = [graph.path[i] for i in range(length)]
            find_move(graph, length, iteration, makespan, &move, &random)
            if move.moved < 0:
                break
            make_move(graph, &move, iteration, random_between(&random, 1, 5))
            makespan = update(graph, &move)
            done.append(
                (
                    path,
                    move.moved,
                    move.pivot,
                    bool(move.forward),
                    move.estimate,
                    makespan,
                    [graph.head[i] for i in range(graph.tasks)],
                    [graph.tail[i] for i in range(graph.tasks)],
                    [graph.order[i] for i in range(graph.tasks)],
                )
            )
        return done


def is_job_shop(CompiledProblem problem) -> bool:
    """Returns whether every task has one exclusive resource that is always available."""
    few = np.diff(problem.column("few_begin"))
    return bool(are_machines(problem) and (few == 1).all() and len(few) == problem.instance.tasks)


def is_flexible(CompiledProblem problem) -> bool:
    """Returns whether tasks, which all take time, choose among exclusive resources that are always
    available."""
    cdef int32_t n = problem.instance.tasks
    return bool(
        are_machines(problem)
        and (problem.column("shortest")[:n] > 0).all()
        and all(len(each) for each in choices_by_task(problem))
    )


def choices_by_task(CompiledProblem problem) -> list[list[int]]:
    """Returns the choices that each task can use."""
    cdef int32_t n = problem.instance.tasks
    words = problem.column("usable_fastest")[: n * problem.instance.words]
    bits = np.unpackbits(words.view(np.uint8).reshape(n, -1), axis=1, bitorder="little")
    return [np.flatnonzero(row).tolist() for row in bits]


cdef int32_t most_on_one(CompiledProblem problem):
    # How many tasks one resource has, where each task has one choice.
    begin = problem.column("demand_begin")[problem.column("few")[: problem.instance.tasks]]
    return int(np.bincount(problem.column("demand_resource")[begin]).max())


cdef bint are_machines(CompiledProblem problem):
    # Whether every choice is one exclusive resource that is always available.
    resources = problem.instance.resources
    return bool(
        1 <= problem.instance.tasks <= TASKS_MAX
        and problem.instance.sites == 0
        and (np.diff(problem.column("demand_begin")) == 1).all()
        and (problem.column("capacity")[:resources] == 1).all()
        and not problem.column("opening_begin")[resources]
        and not problem.column("taken_begin")[resources]
    )
