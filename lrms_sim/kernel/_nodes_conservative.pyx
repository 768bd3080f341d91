"""Conservative backfilling on a machine of nodes. What it does exactly: docs/nodes.md.

Each node has a plan of its own: what is promised to nobody there, from now on and for ever. A
reservation holds certain nodes. The plan of all cores together, which is that of a machine of
processors, says before which moment nothing can fit; from there on the ends of what is planned are
tried one after the other.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from lrms_sim.kernel._memory cimport doubled, safe_calloc, safe_realloc
from lrms_sim.kernel._node_machine cimport (
    NodeNotes,
    chunks_of,
    demand_of,
    forget_place,
    leave_line,
    line_up,
    note_held,
)
from lrms_sim.kernel._node_state cimport (
    Chunk,
    Demand,
    Free,
    Nodes,
    Placed,
    demand_of_processors,
    left_after,
    left_before,
    nodes_close,
    nodes_open,
    place,
    room_on,
    set_free,
)
from lrms_sim.kernel._nodes cimport NodeScheduler
from lrms_sim.kernel._profile cimport (
    Profile,
    profile_begin,
    profile_close,
    profile_earliest,
    profile_fits,
    profile_forget,
    profile_take,
)
from lrms_sim.kernel._queue cimport WaitingQueue
from lrms_sim.kernel._releases cimport Releases, releases_add, releases_free, releases_remove
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef struct Span:
    seconds_t time               # from here on until the next one, the last for ever
    Free left

cdef struct NodePlan:
    Span* span
    Py_ssize_t count
    Py_ssize_t capacity

cdef struct Plans:
    NodePlan* plan               # by node
    Profile cores                # of all nodes together
    Profile* licences            # by licence
    Releases ends                # of all that is planned, in order of time
    seconds_t* reserved          # by job, start of its reservation; infinite for none
    job_index_t newest           # the last job that has had a reservation
    seconds_t next_start         # of all reservations
    bint ended_early             # a job has ended before its estimate since the last pass
    Nodes between                # what is free from one moment to another
    Free* least                  # by node, the same while it is being found out


cdef inline Py_ssize_t span_at(const NodePlan* plan, seconds_t time) noexcept nogil:
    # The span that holds a moment; the first for one before it.
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = plan.count
    cdef Py_ssize_t middle
    while high - low > 1:
        middle = (low + high) >> 1
        if plan.span[middle].time <= time:
            low = middle
        else:
            high = middle
    return low


cdef inline Py_ssize_t split_at(NodePlan* plan, seconds_t time) noexcept nogil:
    # Makes a span begin there and returns its number. Room has been made.
    cdef Py_ssize_t number = span_at(plan, time)
    if plan.span[number].time >= time:
        return number
    number += 1
    memmove(
        &plan.span[number + 1], &plan.span[number], (plan.count - number) * sizeof(Span)
    )
    plan.count += 1
    plan.span[number] = plan.span[number - 1]
    plan.span[number].time = time
    return number


cdef inline bint same(const Free* one, const Free* other) noexcept nogil:
    return (
        one.cores == other.cores and one.gpus == other.gpus and one.memory == other.memory
        and one.jobs == other.jobs
    )


cdef inline void join(NodePlan* plan, Py_ssize_t number) noexcept nogil:
    if 0 < number < plan.count and same(&plan.span[number].left, &plan.span[number - 1].left):
        plan.count -= 1
        memmove(
            &plan.span[number], &plan.span[number + 1], (plan.count - number) * sizeof(Span)
        )


cdef int change_plan(
    NodeNotes* notes, Plans* plans, seconds_t now, seconds_t from_time, seconds_t to_time,
    job_index_t job, bint take,
) except -1 nogil:
    # Takes what a job holds on its nodes between two moments, or gives it back.
    cdef const Demand* demand = demand_of(notes, job)
    cdef const Chunk* chunks = chunks_of(&notes.placed[job])
    cdef NodePlan* plan
    cdef Py_ssize_t i, first, last, number
    cdef int32_t cores = 0
    if from_time < now:
        from_time = now
    if from_time >= to_time:
        return 0
    for i in range(notes.placed[job].count):
        plan = &plans.plan[chunks[i].node]
        number = span_at(plan, now)
        if number > 0:
            plan.count -= number
            memmove(plan.span, &plan.span[number], plan.count * sizeof(Span))
        if plan.count + 2 > plan.capacity:
            plan.capacity = doubled(plan.capacity, 8)
            plan.span = <Span*> safe_realloc(
                plan.span, plan.capacity, sizeof(Span), b"plans of nodes"
            )
        first = split_at(plan, from_time)
        last = split_at(plan, to_time)
        for number in range(first, last):
            if take:
                plan.span[number].left = left_after(
                    &plan.span[number].left, demand, chunks[i].tasks
                )
            else:
                plan.span[number].left = left_before(
                    &notes.nodes, chunks[i].node, &plan.span[number].left, demand,
                    chunks[i].tasks,
                )
        join(plan, last)
        join(plan, first)
        if demand.exclusive:
            cores += notes.nodes.kind[notes.nodes.kind_of[chunks[i].node]].whole.cores
        else:
            cores += chunks[i].tasks * demand.cores
    for i in range(demand.licence_count):
        profile_take(
            &plans.licences[demand.licences[i].licence], from_time, to_time,
            <processors_t> demand.licences[i].count * (1 if take else -1),
        )
    return profile_take(&plans.cores, from_time, to_time, cores if take else -cores)


cdef bint fits_between(
    NodeNotes* notes, Plans* plans, const Demand* demand, seconds_t from_time, seconds_t to_time
) noexcept nogil:
    # Whether a job fits from one moment to another on the same nodes; `between.found` has them.
    # Of licences all are free in `between`: that they suffice throughout their plans say.
    cdef Nodes* nodes = &notes.nodes
    cdef const NodePlan* plan
    cdef const Free* other
    cdef Free* least
    cdef int64_t rooms = 0
    cdef int32_t number, node
    cdef Py_ssize_t i
    for i in range(demand.licence_count):
        if not profile_fits(
            &plans.licences[demand.licences[i].licence],
            <processors_t> demand.licences[i].count, from_time, to_time,
        ):
            return False
    for number in range(nodes.kind_count):
        if not (demand.kinds >> number) & 1:
            continue
        for node in range(nodes.kind[number].first, nodes.kind[number].end):
            plan = &plans.plan[node]
            least = &plans.least[node]
            i = span_at(plan, from_time)
            least[0] = plan.span[i].left
            i += 1
            while i < plan.count and plan.span[i].time < to_time:
                other = &plan.span[i].left
                least.cores = min(least.cores, other.cores)
                least.gpus = min(least.gpus, other.gpus)
                least.memory = min(least.memory, other.memory)
                least.jobs = max(least.jobs, other.jobs)
                i += 1
            rooms += room_on(demand, least)
    if rooms < demand.tasks:
        return False
    for number in range(nodes.kind_count):
        if (demand.kinds >> number) & 1:
            for node in range(nodes.kind[number].first, nodes.kind[number].end):
                set_free(&plans.between, node, plans.least[node])
    return place(&plans.between, demand)


cdef seconds_t earliest(
    NodeNotes* notes, Plans* plans, const View* view, job_index_t job, seconds_t before
) noexcept nogil:
    # The first moment before another one from which a job fits; that other one where there is none.
    cdef const Demand* demand = demand_of(notes, job)
    cdef seconds_t request = view.requested_time[job]
    cdef int32_t width = demand.tasks * demand.cores
    cdef seconds_t time = profile_earliest(&plans.cores, width, request, INFINITY)
    cdef Py_ssize_t i
    if time < view.now:
        time = view.now
    i = 0
    while i < plans.ends.count and plans.ends.release[i].time <= time:
        i += 1
    while time < before:
        if profile_fits(&plans.cores, width, time, time + request) and fits_between(
            notes, plans, demand, time, time + request
        ):
            return time
        if i == plans.ends.count:
            break
        time = plans.ends.release[i].time
        while i < plans.ends.count and plans.ends.release[i].time <= time:
            i += 1
    return before


cdef int hold(
    NodeNotes* notes, Plans* plans, const View* view, job_index_t job, seconds_t start
) except -1 nogil:
    # Reserves the nodes that `fits_between` has found.
    cdef Placed* placed = &notes.placed[job]
    cdef Py_ssize_t count = plans.between.found_count
    if count != 1:
        placed.chunks = <Chunk*> safe_realloc(
            placed.chunks, count, sizeof(Chunk), b"nodes of a job"
        )
        memcpy(placed.chunks, plans.between.found, count * sizeof(Chunk))
    else:
        placed.one = plans.between.found[0]
    placed.count = count
    return promise(notes, plans, view, job, start)


cdef int promise(
    NodeNotes* notes, Plans* plans, const View* view, job_index_t job, seconds_t start
) except -1 nogil:
    # Puts a job into the plan on the nodes that it has.
    cdef seconds_t request = view.requested_time[job]
    plans.reserved[job] = start
    if start < plans.next_start:
        plans.next_start = start
    releases_add(&plans.ends, start + request, job, 0)
    return change_plan(notes, plans, view.now, start, start + request, job, True)


cdef void forget(NodeNotes* notes, Plans* plans, seconds_t now) noexcept nogil:
    # What was planned for the time before now.
    cdef int32_t i
    profile_forget(&plans.cores, now)
    for i in range(notes.nodes.licence_count):
        profile_forget(&plans.licences[i], now)


cdef int take_out(
    NodeNotes* notes, Plans* plans, const View* view, job_index_t job, seconds_t start
) except -1 nogil:
    cdef seconds_t end = start + view.requested_time[job]
    releases_remove(&plans.ends, end, job)
    forget(notes, plans, view.now)
    return change_plan(notes, plans, view.now, start, end, job, False)


# --- moments --------------------------------------------------------------------------------

cdef Plans* plans_of(NodeNotes* notes) noexcept nogil:
    return <Plans*> notes.more


cdef int planning_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    plans_of(notes).reserved[job] = INFINITY
    line_up(notes, job)
    return 0


cdef int planning_withdrawn(void* own, View* view, job_index_t job) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef Plans* plans = plans_of(notes)
    leave_line(notes, job)
    if plans.reserved[job] < INFINITY:
        take_out(notes, plans, view, job, plans.reserved[job])
        plans.ended_early = True
    return 0


cdef int planning_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef Plans* plans = plans_of(notes)
    take_out(notes, plans, view, job, view.start_time[job])
    if view.start_time[job] + view.requested_time[job] > view.now:
        plans.ended_early = True
    forget_place(notes, job)
    return 0


cdef int planning_outlived(
    void* own, View* view, job_index_t job, seconds_t estimate
) except -1 nogil:
    # Its nodes were promised from now on: nothing is promised until the next pass.
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef Plans* plans = plans_of(notes)
    cdef WaitingQueue* queue = &view.queue
    cdef seconds_t estimated_end = view.start_time[job] + view.requested_time[job]
    cdef seconds_t longer = view.start_time[job] + estimate
    cdef Py_ssize_t slot
    for slot in range(queue.head, queue.tail):
        if queue.job[slot] < 0 or plans.reserved[queue.job[slot]] == INFINITY:
            continue
        take_out(notes, plans, view, queue.job[slot], plans.reserved[queue.job[slot]])
        plans.reserved[queue.job[slot]] = INFINITY
    releases_remove(&plans.ends, estimated_end, job)
    releases_add(&plans.ends, longer, job, 0)
    forget(notes, plans, view.now)
    return change_plan(notes, plans, view.now, estimated_end, longer, job, True)


cdef int planning_decide(void* own, View* view) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef Plans* plans = plans_of(notes)
    cdef WaitingQueue* queue = &view.queue
    cdef seconds_t before, start
    cdef job_index_t job
    cdef Py_ssize_t slot
    if plans.cores.count == 0:
        profile_begin(&plans.cores, view.now, view.processors)
    forget(notes, plans, view.now)
    if plans.ended_early:
        plans.ended_early = False
        for slot in range(queue.head, queue.tail):
            job = queue.job[slot]
            if job < 0 or plans.reserved[job] == INFINITY:
                continue
            before = plans.reserved[job]
            take_out(notes, plans, view, job, before)
            start = earliest(notes, plans, view, job, before)
            if start < before:
                hold(notes, plans, view, job, start)
            else:
                promise(notes, plans, view, job, before)
    for slot in range(queue.head, queue.tail):
        job = queue.job[slot]
        if job >= 0 and plans.reserved[job] == INFINITY:
            start = earliest(notes, plans, view, job, INFINITY)
            hold(notes, plans, view, job, start)
    plans.next_start = INFINITY
    for slot in range(queue.head, queue.tail):
        job = queue.job[slot]
        if job < 0:
            continue
        if plans.reserved[job] <= view.now:
            leave_line(notes, job)
            note_held(notes, job, chunks_of(&notes.placed[job]), notes.placed[job].count)
            view.start(view, slot)
            if queue.count == 0:
                break
        elif plans.reserved[job] < plans.next_start:
            plans.next_start = plans.reserved[job]
    view.wake_time = plans.next_start
    return 0


cdef bint planning_starts_now(
    void* own, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef Demand demand
    demand_of_processors(&demand, width)
    return width <= view.processors_free and fits_between(
        notes, plans_of(notes), &demand, view.now, view.now + request
    )


cdef bint planning_job_fits(void* own, const View* view, job_index_t job) noexcept nogil:
    # On what running jobs leave: those that wait hold nothing yet.
    cdef NodeNotes* notes = <NodeNotes*> own
    return fits_between(notes, plans_of(notes), demand_of(notes, job), view.now, view.now)


cdef bint planning_job_starts_now(void* own, const View* view, job_index_t job) noexcept nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    return fits_between(
        notes, plans_of(notes), demand_of(notes, job), view.now,
        view.now + view.requested_time[job],
    )


cdef class NodeConservative(NodeScheduler):
    """Conservative backfilling with compression on a machine of nodes."""

    def __init__(
        self, kinds not None, demands not None, shape not None, licences not None, *,
        best_fit=True,
    ):
        """Takes over what there is and who asks for what; arguments as in `NodeScheduler`."""
        NodeScheduler.__init__(
            self, "fcfs", kinds, demands, shape, licences, best_fit=best_fit
        )
        cdef NodeNotes* notes = <NodeNotes*> self.notes
        cdef Plans* plans = <Plans*> safe_calloc(1, sizeof(Plans), b"plans of nodes")
        cdef Nodes* between = &plans.between
        cdef int32_t node
        notes.more = plans
        between.kind_count = notes.nodes.kind_count
        for number in range(between.kind_count):
            between.kind[number].first = notes.nodes.kind[number].first
            between.kind[number].end = notes.nodes.kind[number].end
            between.kind[number].whole = notes.nodes.kind[number].whole
        between.licence_count = notes.nodes.licence_count
        nodes_open(between, best_fit)
        for number in range(between.licence_count):
            between.licences_free[number] = notes.nodes.licences_free[number]
        plans.licences = <Profile*> safe_calloc(
            between.licence_count, sizeof(Profile), b"plans of licences"
        )
        for number in range(between.licence_count):
            profile_begin(
                &plans.licences[<Py_ssize_t> number], -INFINITY,
                <processors_t> notes.nodes.licences_free[<Py_ssize_t> number],
            )
        plans.plan = <NodePlan*> safe_calloc(between.count, sizeof(NodePlan), b"plans of nodes")
        plans.least = <Free*> safe_calloc(between.count, sizeof(Free), b"plans of nodes")
        plans.reserved = <seconds_t*> safe_calloc(
            self.jobs, sizeof(seconds_t), b"reservations"
        )
        for node in range(between.count):
            plans.plan[node].span = <Span*> safe_calloc(8, sizeof(Span), b"plans of nodes")
            plans.plan[node].capacity = 8
            plans.plan[node].count = 1
            plans.plan[node].span[0].time = -INFINITY
            plans.plan[node].span[0].left = between.free[node]
        plans.next_start = INFINITY
        self.ops.submitted = planning_submitted
        self.ops.withdrawn = planning_withdrawn
        self.ops.ended = planning_ended
        self.ops.outlived = planning_outlived
        self.ops.decide = planning_decide
        self.ops.starts_now = planning_starts_now
        self.ops.job_fits = planning_job_fits
        self.ops.job_starts_now = planning_job_starts_now

    def __dealloc__(self):
        cdef NodeNotes* notes = <NodeNotes*> self.notes
        cdef Plans* plans
        cdef int32_t node
        if notes == NULL or notes.more == NULL:
            return
        plans = plans_of(notes)
        for node in range(plans.between.count if plans.plan != NULL else 0):
            free(plans.plan[node].span)
        free(plans.plan)
        free(plans.least)
        free(plans.reserved)
        profile_close(&plans.cores)
        for node in range(plans.between.licence_count if plans.licences != NULL else 0):
            profile_close(&plans.licences[node])
        free(plans.licences)
        releases_free(&plans.ends)
        nodes_close(&plans.between)
        free(plans)
