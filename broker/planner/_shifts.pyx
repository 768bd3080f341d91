"""Shifts of tasks on a critical path to other resources (Mastrolilli and Gambardella 2000).

A task may be inserted anywhere on another resource where no path leads back: not behind one that
its successors precede, nor before one that precedes its predecessors. Heads tell enough of that:
what is reached by a path starts no earlier than the path's first task ends. The estimate is the
longest path through the task at its new place. Going back to a resource is tabu for a while.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from broker.planner._graph cimport Graph
from broker.planner._instance cimport Instance, duration_on
from broker.planner._random cimport Random, random_below
from broker.planner._types cimport choice_t, resource_t, seconds_t, task_t


cdef inline void consider_shift(
    const Graph* graph,
    Shift* shift,
    seconds_t best_makespan,
    Shift* best,
    int32_t* seen,
    Random* random,
) noexcept nogil:
    # As for moves on the same resource: not tabu, or promising the best schedule so far, comes
    # first; then the estimate; random ties.
    cdef bint better
    shift.forbidden &= shift.estimate >= best_makespan
    if best.task < 0 or (best.forbidden and not shift.forbidden):
        seen[0] = 1
        best[0] = shift[0]
        return
    if shift.forbidden and not best.forbidden:
        return
    better = not shift.forbidden and shift.estimate < best.estimate
    if better:
        seen[0] = 1
    elif shift.forbidden or shift.estimate == best.estimate:
        seen[0] += 1
    else:
        return
    if better or random_below(random, seen[0]) == 0:
        best[0] = shift[0]


cdef void find_places(
    const Graph* graph,
    task_t task,
    choice_t choice,
    bint barred,
    seconds_t best_makespan,
    Shift* best,
    int32_t* seen,
    Random* random,
) noexcept nogil:
    # All places of a task on the resource of a choice, from the last to the first.
    cdef const Instance* instance = graph.instance
    cdef resource_t resource = instance.demand_resource[instance.demand_begin[choice]]
    cdef seconds_t duration = duration_on(instance, task, choice)
    cdef seconds_t first_after = INFINITY     # when the first of its successors ends
    cdef seconds_t last_before = -INFINITY    # when the last of its predecessors starts
    cdef seconds_t head, tail
    cdef task_t behind = graph.last[resource]
    cdef task_t after = -1
    cdef task_t other
    cdef int32_t i
    cdef Shift shift
    for i in range(instance.successor_begin[task], instance.successor_begin[task + 1]):
        other = instance.successor[i]
        first_after = min(first_after, graph.head[other] + graph.duration[other])
    for i in range(instance.predecessor_begin[task], instance.predecessor_begin[task + 1]):
        last_before = max(last_before, graph.head[instance.predecessor[i]])
    shift.task = task
    shift.choice = choice
    while after < 0 or graph.head[after] + graph.duration[after] > last_before:
        if behind < 0 or graph.head[behind] < first_after:
            head = graph.own_head[task]
            if behind >= 0:
                head = max(head, graph.head[behind] + graph.duration[behind])
            tail = graph.own_tail[task]
            if after >= 0:
                tail = max(tail, graph.duration[after] + graph.tail[after])
            shift.behind = behind
            shift.estimate = head + duration + tail
            shift.forbidden = barred
            consider_shift(graph, &shift, best_makespan, best, seen, random)
        if behind < 0:
            break
        after = behind
        behind = graph.before[behind]


cdef void find_shift(
    Graph* graph,
    int32_t length,
    int64_t iteration,
    seconds_t best_makespan,
    Shift* best,
    Random* random,
) noexcept nogil:
    # The best shift of a task of the path; best.task stays -1 if there is none.
    cdef const Instance* instance = graph.instance
    cdef resource_t resource
    cdef choice_t choice
    cdef task_t task
    cdef int32_t seen = 0
    cdef int32_t i, k
    for resource in range(instance.resources):
        graph.last[resource] = -1
    for task in range(graph.tasks):
        if graph.after[task] < 0:
            graph.last[graph.resource[task]] = task
    best.task = -1
    for i in range(length):
        task = graph.path[i]
        for k in range(graph.choices_begin[task], graph.choices_begin[task + 1]):
            choice = graph.choices[k]
            if choice == graph.choice[task]:
                continue
            resource = instance.demand_resource[instance.demand_begin[choice]]
            find_places(
                graph,
                task,
                choice,
                graph.barred[<Py_ssize_t> task * instance.resources + resource] > iteration,
                best_makespan,
                best,
                &seen,
                random,
            )


cdef void make_shift(
    Graph* graph, const Shift* shift, int64_t iteration, int64_t tenure
) noexcept nogil:
    # Puts the task among those of the other resource; `take_choice` does the rest.
    cdef const Instance* instance = graph.instance
    cdef task_t task = shift.task
    cdef task_t left = graph.before[task]
    cdef task_t right = graph.after[task]
    cdef resource_t resource = instance.demand_resource[instance.demand_begin[shift.choice]]
    graph.barred[<Py_ssize_t> task * instance.resources + graph.resource[task]] = iteration + tenure
    if left >= 0:
        graph.after[left] = right
    if right >= 0:
        graph.before[right] = left
    left = shift.behind
    if left >= 0:
        right = graph.after[left]
    else:
        # The first on that resource.
        right = graph.last[resource]
        while right >= 0 and graph.before[right] >= 0:
            right = graph.before[right]
    graph.before[task] = left
    graph.after[task] = right
    if left >= 0:
        graph.after[left] = task
    if right >= 0:
        graph.before[right] = task
