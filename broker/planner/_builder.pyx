"""The schedule builder (paper 004, section 3.3, steps 1 to 4), compiled.

Tasks are planned in the order of their genes, each where `_places` finds it best. Occupied times
are kept in timetables, and in the sets of choices that may be free in a slice of time.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import numpy as np

from broker.planner._arena cimport Arena, arena_open, cut
from broker.planner._free_sets cimport begin_sets, cut_sets, fill_sets, mark_full
from broker.planner._instance cimport (
    ORDERS,
    CompiledProblem,
    Instance,
    duration_on,
    placement_cost_fast,
)
from broker.planner._links cimport links_close
from broker.planner._places cimport Slot, find_place
from broker.planner._scratch cimport BUCKETS_MAX, RAS_4, STRATEGIES
from broker.planner._staging cimport begin_staging, look_near, settle
from broker.planner._timetable cimport (
    Span,
    Timetable,
    timetable_close,
    timetable_copy,
    timetable_occupy_fast,
    timetable_open,
)
from broker.planner._types cimport (
    choice_t,
    money_t,
    resource_t,
    seconds_t,
    task_t,
    word_t,
    workflow_t,
)

cdef int place_task(Scratch* scratch, task_t task, Strategy strategy) except -1 nogil:
    # Steps 1 to 4 for one task whose predecessors are planned.
    cdef const Instance* instance = scratch.instance
    cdef resource_t resource
    cdef Slot best
    cdef Span full
    cdef seconds_t duration
    cdef int32_t i
    cdef workflow_t workflow = instance.workflow[task]
    if instance.sites > 0:
        look_near(scratch, task)
    find_place(scratch, task, strategy, &best)
    scratch.choice[task] = best.choice
    if best.choice < 0:
        scratch.near = NULL
        scratch.near_cost = NULL
        return 0
    duration = duration_on(instance, task, best.choice)
    scratch.start[task] = best.start
    scratch.end[task] = best.start + duration
    scratch.cost[task] = placement_cost_fast(instance, best.choice, best.start, duration)
    if scratch.near != NULL:
        settle(scratch, task, best.choice)
    scratch.left[workflow] -= scratch.cost[task]
    scratch.least_left[workflow] -= instance.least_cost[task]
    scratch.order[scratch.planned] = task
    scratch.planned += 1
    for i in range(instance.demand_begin[best.choice], instance.demand_begin[best.choice + 1]):
        resource = instance.demand_resource[i]
        timetable_occupy_fast(
            &scratch.tables[resource],
            best.start,
            scratch.end[task],
            instance.demand_units[i],
            &full,
        )
        mark_full(scratch, scratch.sets, resource, &full)
    return 0


cdef void heap_push(Scratch* scratch, int32_t* count, task_t task) noexcept nogil:
    cdef int32_t child = count[0]
    cdef int32_t parent
    cdef task_t* heap = scratch.released
    count[0] += 1
    while child > 0:
        parent = (child - 1) >> 1
        if scratch.position[heap[parent]] < scratch.position[task]:
            break
        heap[child] = heap[parent]
        child = parent
    heap[child] = task


cdef task_t heap_pop(Scratch* scratch, int32_t* count) noexcept nogil:
    cdef task_t* heap = scratch.released
    cdef task_t top = heap[0]
    cdef task_t moved
    cdef int32_t parent = 0
    cdef int32_t child
    count[0] -= 1
    moved = heap[count[0]]
    while True:
        child = 2 * parent + 1
        if child >= count[0]:
            break
        if (
            child + 1 < count[0]
            and scratch.position[heap[child + 1]] < scratch.position[heap[child]]
        ):
            child += 1
        if scratch.position[moved] < scratch.position[heap[child]]:
            break
        heap[parent] = heap[child]
        parent = child
    heap[parent] = moved
    return top


cdef int begin_schedule(Scratch* scratch, Strategy strategy) except -1 nogil:
    cdef const Instance* instance = scratch.instance
    cdef resource_t i
    for i in range(instance.resources):
        timetable_copy(&scratch.tables[i], &scratch.taken[i])
    begin_sets(scratch, strategy)
    memcpy(scratch.ready, instance.release, instance.tasks * sizeof(seconds_t))
    memcpy(scratch.missing, instance.predecessors, instance.tasks * sizeof(int32_t))
    memcpy(scratch.left, instance.allowed, instance.workflows * sizeof(money_t))
    memcpy(scratch.least_left, instance.least_total, instance.workflows * sizeof(money_t))
    memset(scratch.position, 0xFF, instance.tasks * sizeof(int32_t))
    memset(scratch.choice, 0xFF, instance.tasks * sizeof(choice_t))
    scratch.planned = 0
    begin_staging(scratch)
    return 0


cdef int build_fast(Scratch* scratch, const task_t* genes, Strategy strategy) except -1 nogil:
    # Plans the tasks in the order of their genes. A gene whose predecessors are not planned waits
    # until they are, and is planned before the next gene (phenotypic repair); the first of several
    # waiting genes goes first.
    cdef const Instance* instance = scratch.instance
    cdef int32_t released = 0
    cdef int32_t i, k
    cdef task_t task, successor
    begin_schedule(scratch, strategy)
    for i in range(instance.tasks):
        task = genes[i]
        scratch.position[task] = i
        if scratch.missing[task] > 0:
            continue
        heap_push(scratch, &released, task)
        while released > 0:
            task = heap_pop(scratch, &released)
            place_task(scratch, task, strategy)
            if scratch.choice[task] < 0:
                continue    # nor will its successors be planned
            for k in range(instance.successor_begin[task], instance.successor_begin[task + 1]):
                successor = instance.successor[k]
                scratch.missing[successor] -= 1
                if scratch.end[task] > scratch.ready[successor]:
                    scratch.ready[successor] = scratch.end[task]
                if scratch.missing[successor] == 0 and scratch.position[successor] >= 0:
                    heap_push(scratch, &released, successor)
    return 0


cdef void lay_out_links(Scratch* scratch, Arena* arena) noexcept:
    # Memory for links that carry one transfer at a time; a task sends none of its files twice.
    cdef const Instance* instance = scratch.instance
    cdef Py_ssize_t sites = instance.sites if instance.contended else 0
    cdef Py_ssize_t sent = 0
    cdef int32_t most = 0
    cdef int32_t i
    for i in range(instance.tasks if instance.contended else 0):
        most = max(most, instance.parcel_begin[i + 1] - instance.parcel_begin[i])
    if instance.contended:
        sent = instance.file_begin[instance.parcel_begin[instance.tasks]]
    scratch.links.row = <int32_t*> cut(arena, sites * sites, sizeof(int32_t))
    scratch.arrived = <seconds_t*> cut(arena, instance.files * sites, sizeof(seconds_t))
    scratch.parcels = <int32_t*> cut(arena, most, sizeof(int32_t))
    scratch.link_free = <seconds_t*> cut(arena, sites, sizeof(seconds_t))
    scratch.sent_there = <Py_ssize_t*> cut(arena, sent, sizeof(Py_ssize_t))


cdef void lay_out(Scratch* scratch, Arena* arena) noexcept:
    cdef Py_ssize_t tasks = scratch.instance.tasks
    cdef Py_ssize_t workflows = scratch.instance.workflows
    cdef Py_ssize_t words = scratch.instance.words
    cdef Py_ssize_t order
    scratch.choice = <choice_t*> cut(arena, tasks, sizeof(choice_t))
    scratch.start = <seconds_t*> cut(arena, tasks, sizeof(seconds_t))
    scratch.end = <seconds_t*> cut(arena, tasks, sizeof(seconds_t))
    scratch.cost = <money_t*> cut(arena, tasks, sizeof(money_t))
    scratch.order = <task_t*> cut(arena, tasks, sizeof(task_t))
    scratch.completion = <seconds_t*> cut(arena, workflows, sizeof(seconds_t))
    scratch.spent = <money_t*> cut(arena, workflows, sizeof(money_t))
    scratch.left = <money_t*> cut(arena, workflows, sizeof(money_t))
    scratch.least_left = <money_t*> cut(arena, workflows, sizeof(money_t))
    scratch.ready = <seconds_t*> cut(arena, tasks, sizeof(seconds_t))
    scratch.missing = <int32_t*> cut(arena, tasks, sizeof(int32_t))
    scratch.position = <int32_t*> cut(arena, tasks, sizeof(int32_t))
    scratch.released = <task_t*> cut(arena, tasks, sizeof(task_t))
    scratch.candidates = <word_t*> cut(arena, words, sizeof(word_t))
    scratch.near_room = <seconds_t*> cut(arena, scratch.instance.sites, sizeof(seconds_t))
    scratch.cost_room = <money_t*> cut(arena, scratch.instance.sites, sizeof(money_t))
    scratch.sent = <uint8_t*> cut(
        arena, <Py_ssize_t> scratch.instance.bundles * scratch.instance.sites, sizeof(uint8_t)
    )
    lay_out_links(scratch, arena)
    for order in range(ORDERS):
        cut_sets(&scratch.sets[order], scratch, arena)
        cut_sets(&scratch.sets_before[order], scratch, arena)


cdef class Workspace:
    """Memory in which one thread builds schedules of one problem, one after another.

    `horizon` is roughly the time in seconds from now that contains most of a schedule, cut into
    `buckets` (1 to 256) slices; it affects the building time, never the result.
    """

    def __cinit__(self, CompiledProblem problem, seconds_t horizon, int32_t buckets=128):
        cdef Instance* instance = &problem.instance
        cdef Scratch* scratch = &self.scratch
        cdef Arena arena = Arena(NULL, 0)
        cdef resource_t i
        if not 0 < horizon < INFINITY:
            raise ValueError(f"the horizon is {horizon} s; it must be more than 0 and finite")
        if not 1 <= buckets <= BUCKETS_MAX:
            raise ValueError(f"{buckets} buckets; from 1 to {BUCKETS_MAX}")
        self.problem = problem
        scratch.instance = instance
        scratch.buckets = buckets
        scratch.width = horizon / buckets
        scratch.live_words = (instance.words + 63) // 64
        lay_out(scratch, &arena)
        memory = np.zeros(arena.used, np.uint8)
        arena_open(&arena, memory)
        lay_out(scratch, &arena)
        self.memory = memory
        if instance.contended:
            memcpy(
                scratch.arrived,
                instance.file_there,
                <Py_ssize_t> instance.files * instance.sites * sizeof(seconds_t),
            )
        self.columns = {
            "choice": self.column(scratch.choice, np.dtype(np.int32)),
            "start": self.column(scratch.start, np.dtype(np.float64)),
            "end": self.column(scratch.end, np.dtype(np.float64)),
            "cost": self.column(scratch.cost, np.dtype(np.float64)),
            "order": self.column(scratch.order, np.dtype(np.int32)),
        }
        scratch.assigned = NULL
        scratch.tables = <Timetable*> calloc(instance.resources, sizeof(Timetable))
        scratch.taken = <Timetable*> calloc(instance.resources, sizeof(Timetable))
        if scratch.tables == NULL or scratch.taken == NULL:
            raise MemoryError(f"timetables of {instance.resources} resources")
        for i in range(instance.resources):
            timetable_open(&scratch.tables[i], instance.capacity[i])
            timetable_open(&scratch.taken[i], instance.capacity[i])
        self.take()

    def __dealloc__(self):
        cdef resource_t i
        for i in range(self.scratch.instance.resources if self.scratch.instance != NULL else 0):
            if self.scratch.tables != NULL:
                timetable_close(&self.scratch.tables[i])
            if self.scratch.taken != NULL:
                timetable_close(&self.scratch.taken[i])
        links_close(&self.scratch.links)
        free(self.scratch.tables)
        free(self.scratch.taken)

    cdef column(self, const void* array, dtype):
        # Array of the scratch by task, which keeps the memory alive.
        cdef const unsigned char[::1] memory = self.memory
        cdef Py_ssize_t begin = <const unsigned char*> array - &memory[0]
        cdef Py_ssize_t size = max(1, self.scratch.instance.tasks) * <Py_ssize_t> dtype.itemsize
        return self.memory[begin:begin + size].view(dtype)

    cdef take(self):
        cdef Scratch* scratch = &self.scratch
        cdef const Instance* instance = scratch.instance
        cdef Timetable* table
        cdef resource_t resource
        cdef Span full
        cdef int32_t i
        cdef seconds_t shortest
        fill_sets(scratch)
        shortest = INFINITY
        for i in range(instance.tasks):
            shortest = min(shortest, instance.shortest[i])
        for resource in range(instance.resources):
            table = &scratch.tables[resource]
            i = instance.opening_begin[resource]
            table.openings = instance.opening_begin[resource + 1] - i
            table.opening_from = &instance.opening_from[i]
            table.opening_until = &instance.opening_until[i]
            table.shift = instance.shift[resource]
            table.shortest = shortest if instance.tasks > 0 else 0.0
            table = &scratch.taken[resource]
            table.shortest = scratch.tables[resource].shortest
            for i in range(instance.taken_begin[resource], instance.taken_begin[resource + 1]):
                timetable_occupy_fast(
                    table,
                    instance.taken_from[i],
                    instance.taken_until[i],
                    instance.taken_units[i],
                    &full,
                )
                mark_full(scratch, scratch.sets_before, resource, &full)

    def build(
        self, const int32_t[::1] genes, int strategy, const int32_t[::1] choices=None
    ) -> None:
        """Builds the schedule of a sequence of genes with RAS-1 to RAS-6, or with choices by task.

        `strategy` is 0 to 5.

        The columns hold it until the next one. ValueError if the sequence is not one of all tasks,
        or a choice is not one of its task.
        """
        cdef task_t tasks = self.scratch.instance.tasks
        if not 0 <= strategy < STRATEGIES:
            raise ValueError(f"strategy {strategy}; from 0 to {STRATEGIES - 1}")
        if len(genes) != tasks or not (np.sort(genes) == np.arange(tasks)).all():
            raise ValueError(f"a sequence has to name each of the {tasks} tasks once")
        cdef const task_t* first = &genes[0] if tasks > 0 else NULL
        cdef const choice_t* assigned = NULL
        if choices is not None:
            self.check_choices(choices)
            assigned = &choices[0] if tasks > 0 else NULL
        with nogil:
            self.scratch.assigned = assigned
            build_fast(&self.scratch, first, <Strategy> strategy)
            self.scratch.assigned = NULL

    cdef check_choices(self, const int32_t[::1] choices):
        cdef const Instance* instance = self.scratch.instance
        cdef task_t task
        cdef choice_t choice
        if choices.shape[0] != instance.tasks:
            raise ValueError(f"{choices.shape[0]} choices for {instance.tasks} tasks")
        for task in range(instance.tasks):
            choice = choices[task]
            if not 0 <= choice < instance.choices or not (
                instance.usable[0][task * instance.words + (choice >> 6)] >> (choice & 63) & 1
            ):
                raise ValueError(f"task {task} has no choice {choice}")

    def saved(self) -> object:
        """Returns a copy of the schedule built last, for `restore`."""
        return {name: column.copy() for name, column in self.columns.items()}, self.scratch.planned

    def restore(self, saved) -> None:
        """Puts a saved schedule of this problem back into the columns, to be judged."""
        columns, planned = saved
        for name, column in columns.items():
            self.columns[name][:] = column
        self.scratch.planned = planned

    def earliest_ends(self) -> object:
        """Returns by task when it could end if no other task of the problem occupied anything.

        Calendars, fixed tasks and precedence apply, so no plan lets any task end sooner. Infinite
        if it finds no place. The schedule built last is lost.
        """
        cdef Scratch* scratch = &self.scratch
        cdef const Instance* instance = scratch.instance
        cdef task_t count = instance.tasks
        cdef task_t task, other
        cdef Slot best
        cdef int32_t k
        cdef int32_t passed = 0
        cdef int32_t planned = 0
        ends = np.full(count, INFINITY)
        cdef double[::1] end = ends
        begin_schedule(scratch, RAS_4)
        # The memory for waiting tasks serves as a queue here.
        for task in range(count):
            if scratch.missing[task] == 0:
                scratch.released[planned] = task
                planned += 1
        while passed < planned:
            task = scratch.released[passed]
            passed += 1
            find_place(scratch, task, RAS_4, &best)
            if best.choice < 0:
                continue
            end[task] = best.end
            for k in range(instance.successor_begin[task], instance.successor_begin[task + 1]):
                other = instance.successor[k]
                scratch.missing[other] -= 1
                scratch.ready[other] = max(scratch.ready[other], best.end)
                if scratch.missing[other] == 0:
                    scratch.released[planned] = other
                    planned += 1
        begin_schedule(scratch, RAS_4)
        return ends

    @property
    def planned(self) -> int:
        return self.scratch.planned
