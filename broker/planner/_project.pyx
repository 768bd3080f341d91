"""Serial schedules and their justification: the resource-constrained project scheduling problem.

Where every task has one alternative, only the sequence is left to decide. A serial schedule places
the tasks in sequence, each as early as precedence and free units allow, as the builder of all
problems does; here all resources share one list of steps, which is several times as fast for the
few resources that projects have.

Justification (Valls, Ballestín, Quintanilla 2005) shifts all tasks to the right, in order of
falling ends, and then to the left, in order of rising starts. Either pass is a serial schedule,
the first one of the reversed project, and neither makes the plan longer.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memmove, memset

import numpy as np

from broker.planner._arena cimport Arena, arena_open, cut
from broker.planner._builder cimport Workspace
from broker.planner._instance cimport CompiledProblem, Instance, duration_on, placement_cost_fast
from broker.planner._types cimport choice_t, resource_t

CELLS_MAX = 2_000_000
"""Larger tables of tasks by resources are left to the builder of all problems."""


cdef inline int32_t step_at(const Project* project, seconds_t moment) noexcept nogil:
    # The last step that begins at or before the moment; the first begins before all of them.
    cdef int32_t low = 0
    cdef int32_t high = project.steps
    cdef int32_t middle
    while high - low > 1:
        middle = (low + high) >> 1
        if project.begin[middle] <= moment:
            low = middle
        else:
            high = middle
    return low


cdef inline int32_t split_at(Project* project, int32_t row, seconds_t moment) noexcept nogil:
    # Makes a step begin at the moment, which lies in the step `row`; returns its row.
    cdef int32_t kinds = project.kinds
    cdef int32_t behind
    if project.begin[row] == moment:
        return row
    behind = project.steps - row - 1
    memmove(&project.begin[row + 2], &project.begin[row + 1], behind * sizeof(seconds_t))
    memmove(
        &project.free[(row + 2) * kinds], &project.free[(row + 1) * kinds],
        behind * kinds * sizeof(units_t),
    )
    memcpy(&project.free[(row + 1) * kinds], &project.free[row * kinds], kinds * sizeof(units_t))
    project.begin[row + 1] = moment
    project.steps += 1
    return row + 1


cdef seconds_t place_earliest(Project* project, task_t task) noexcept nogil:
    # Occupies what the task needs from the earliest moment at which it is free; returns that.
    cdef int32_t kinds = project.kinds
    cdef const units_t* need = &project.need[task * kinds]
    cdef units_t* free
    cdef seconds_t duration = project.duration[task]
    cdef seconds_t start = project.ready[task]
    cdef int32_t first = step_at(project, start)
    cdef int32_t row = first
    cdef int32_t i
    cdef bint fits
    while True:
        free = &project.free[row * kinds]
        fits = True
        for i in range(kinds):
            if free[i] < need[i]:
                fits = False
                break
        row += 1
        if not fits:
            # Everything fits behind the last step.
            first = row
            start = project.begin[row]
        elif row == project.steps or start + duration <= project.begin[row]:
            break
    # The rows that it covers, the last one to be split where it ends.
    first = split_at(project, first, start)
    row = first
    while row + 1 < project.steps and project.begin[row + 1] <= start + duration:
        row += 1
    row = split_at(project, row, start + duration)
    for first in range(first, row):
        free = &project.free[first * kinds]
        for i in range(kinds):
            free[i] -= need[i]
    return start


cdef inline void clear(Project* project) noexcept nogil:
    project.steps = 1
    project.begin[0] = -INFINITY
    memcpy(project.free, project.capacity, project.kinds * sizeof(units_t))


cdef inline void release(Project* project, int32_t* waiting, task_t task) noexcept nogil:
    # Keeps the waiting tasks in order, the first gene at the end.
    cdef int32_t i = waiting[0]
    while i > 0 and project.position[project.waiting[i - 1]] < project.position[task]:
        project.waiting[i] = project.waiting[i - 1]
        i -= 1
    project.waiting[i] = task
    waiting[0] += 1


cdef void order_genes(Project* project, const task_t* genes) noexcept nogil:
    # The genes in the order of placing: one whose predecessors come later waits until they have
    # come, and goes before the next gene, as in the builder of all problems.
    cdef const Instance* instance = project.instance
    cdef int32_t waiting = 0
    cdef int32_t placed = 0
    cdef int32_t i, k
    cdef task_t task, other
    memcpy(project.missing, instance.predecessors, project.tasks * sizeof(int32_t))
    memset(project.position, 0xFF, project.tasks * sizeof(int32_t))
    for i in range(project.tasks):
        task = genes[i]
        project.position[task] = i
        if project.missing[task] > 0:
            continue
        release(project, &waiting, task)
        while waiting > 0:
            waiting -= 1
            task = project.waiting[waiting]
            project.sequence[placed] = task
            placed += 1
            for k in range(instance.successor_begin[task], instance.successor_begin[task + 1]):
                other = instance.successor[k]
                project.missing[other] -= 1
                if project.missing[other] == 0 and project.position[other] >= 0:
                    release(project, &waiting, other)


cdef void place_forward(Project* project, Scratch* scratch) noexcept nogil:
    # The serial schedule of the sequence, into the scratch.
    cdef const Instance* instance = project.instance
    cdef int32_t i, k
    cdef task_t task, other
    cdef seconds_t end
    clear(project)
    memcpy(project.ready, instance.release, project.tasks * sizeof(seconds_t))
    for i in range(project.tasks):
        task = project.sequence[i]
        scratch.start[task] = place_earliest(project, task)
        end = scratch.end[task] = scratch.start[task] + project.duration[task]
        for k in range(instance.successor_begin[task], instance.successor_begin[task + 1]):
            other = instance.successor[k]
            if end > project.ready[other]:
                project.ready[other] = end


cdef void place_backward(Project* project) noexcept nogil:
    # The serial schedule of the reversed project: time runs back from the last end.
    cdef const Instance* instance = project.instance
    cdef int32_t i, k
    cdef task_t task, other
    cdef seconds_t end
    clear(project)
    for task in range(project.tasks):
        project.ready[task] = 0.0
    for i in range(project.tasks):
        task = project.sequence[i]
        end = project.end[task] = place_earliest(project, task) + project.duration[task]
        for k in range(instance.predecessor_begin[task], instance.predecessor_begin[task + 1]):
            other = instance.predecessor[k]
            if end > project.ready[other]:
                project.ready[other] = end


cdef void sort_falling(Project* project, const seconds_t* key) noexcept nogil:
    # Reverses the sequence and sorts it by falling keys. Among equal ones the reversed order stays,
    # so a sequence that heeds precedence gives one that heeds the reversed precedence.
    cdef int32_t n = project.tasks
    cdef int32_t width = 1
    cdef int32_t i, left, right, middle, end, out
    cdef task_t* source = project.sequence
    cdef task_t* target = project.sorted
    for i in range(n // 2):
        source[i], source[n - 1 - i] = source[n - 1 - i], source[i]
    while width < n:
        out = 0
        left = 0
        while left < n:
            middle = min(left + width, n)
            end = min(left + 2 * width, n)
            right = middle
            i = left
            while i < middle and right < end:
                if key[source[i]] >= key[source[right]]:
                    target[out] = source[i]
                    i += 1
                else:
                    target[out] = source[right]
                    right += 1
                out += 1
            while i < middle:
                target[out] = source[i]
                i += 1
                out += 1
            while right < end:
                target[out] = source[right]
                right += 1
                out += 1
            left = end
        source, target = target, source
        width *= 2
    project.sequence, project.sorted = source, target


cdef void finish(Project* project, Scratch* scratch) noexcept nogil:
    # What else readers of a schedule expect in the scratch.
    cdef const Instance* instance = project.instance
    cdef task_t task
    for task in range(project.tasks):
        scratch.choice[task] = instance.few[instance.few_begin[task]]
        scratch.cost[task] = placement_cost_fast(
            instance, scratch.choice[task], scratch.start[task], project.duration[task]
        )
        scratch.ready[task] = project.ready[task]
        scratch.position[task] = project.position[task]
    memcpy(scratch.order, project.sequence, project.tasks * sizeof(task_t))
    scratch.planned = project.tasks


cdef void build_serial(Project* project, Scratch* scratch, const task_t* genes) noexcept nogil:
    # Builds the schedule of `build_fast`, whatever the strategy, as there is nothing to choose.
    order_genes(project, genes)
    place_forward(project, scratch)
    finish(project, scratch)


cdef void justify_fast(Project* project, Scratch* scratch) noexcept nogil:
    # Justifies the schedule in the scratch, which the project has built last: two passes.
    cdef int32_t i
    sort_falling(project, scratch.end)
    place_backward(project)
    sort_falling(project, project.end)
    place_forward(project, scratch)
    for i in range(project.tasks):
        project.position[project.sequence[i]] = i
    finish(project, scratch)


cdef void lay_out(Project* project, Arena* arena) noexcept:
    cdef Py_ssize_t n = project.tasks
    cdef Py_ssize_t steps = 2 * n + 3
    project.need = <units_t*> cut(arena, n * project.kinds, sizeof(units_t))
    project.capacity = <units_t*> cut(arena, project.kinds, sizeof(units_t))
    project.duration = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    project.begin = <seconds_t*> cut(arena, steps, sizeof(seconds_t))
    project.free = <units_t*> cut(arena, steps * project.kinds, sizeof(units_t))
    project.ready = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    project.end = <seconds_t*> cut(arena, n, sizeof(seconds_t))
    project.missing = <int32_t*> cut(arena, n, sizeof(int32_t))
    project.position = <int32_t*> cut(arena, n, sizeof(int32_t))
    project.waiting = <task_t*> cut(arena, n, sizeof(task_t))
    project.sequence = <task_t*> cut(arena, n, sizeof(task_t))
    project.sorted = <task_t*> cut(arena, n, sizeof(task_t))


cdef class ProjectRoom:
    """Memory for serial schedules by one thread.

    `usable` is false, and nothing is allocated, if a task has several alternatives or takes no
    time, a resource has hours or fixed tasks, or the table of tasks by resources is too large.
    """

    def __init__(self, CompiledProblem problem):
        cdef Project* project = &self.project
        cdef const Instance* instance = &problem.instance
        cdef Arena arena = Arena(NULL, 0)
        cdef task_t task
        cdef choice_t choice
        cdef int32_t i, kind
        cdef resource_t resource
        project.instance = instance
        project.tasks = instance.tasks
        needed = np.unique(problem.column("demand_resource")) if is_project(problem) else []
        project.kinds = len(needed)
        project.usable = 0 < project.kinds and project.kinds * project.tasks <= CELLS_MAX
        if not project.usable:
            return
        lay_out(project, &arena)
        self.memory = np.zeros(arena.used, np.uint8)
        arena_open(&arena, self.memory)
        lay_out(project, &arena)
        kind_of = {int(resource): kind for kind, resource in enumerate(needed)}
        for resource, kind in kind_of.items():
            project.capacity[kind] = instance.capacity[resource]
        for task in range(project.tasks):
            choice = instance.few[task]
            project.duration[task] = duration_on(instance, task, choice)
            for i in range(instance.demand_begin[choice], instance.demand_begin[choice + 1]):
                kind = kind_of[instance.demand_resource[i]]
                project.need[task * project.kinds + kind] = instance.demand_units[i]

    @property
    def usable(self) -> bool:
        return self.project.usable

    def build(
        self, Workspace workspace, const int32_t[::1] genes, *, bint justified=False
    ) -> object:
        """Builds the serial schedule of a sequence in a workspace, and may justify it.

        The workspace is one of the same problem. Returns the sequence that builds the schedule.
        ValueError if the one that is given is not of all tasks, or the room is not usable.
        """
        if not self.project.usable or workspace.scratch.instance != self.project.instance:
            raise ValueError("a workspace of another problem, or no project")
        if sorted(genes) != list(range(self.project.tasks)):
            raise ValueError(f"a sequence has to name each of the {self.project.tasks} tasks once")
        build_serial(&self.project, &workspace.scratch, &genes[0])
        if justified:
            justify_fast(&self.project, &workspace.scratch)
        return np.array([self.project.sequence[i] for i in range(self.project.tasks)], np.int32)


def is_project(CompiledProblem problem) -> bool:
    """Returns whether every task takes time and has one alternative, on resources that are always
    available."""
    cdef int32_t n = problem.instance.tasks
    cdef resource_t resources = problem.instance.resources
    few = np.diff(problem.column("few_begin"))
    return bool(
        n > 0
        and problem.instance.sites == 0
        and len(few) == n
        and (few == 1).all()
        and (problem.column("work")[:n] > 0).all()
        and not problem.column("opening_begin")[resources]
        and not problem.column("taken_begin")[resources]
    )
