"""FCFS, LIST, EASY and EASY++ on a machine of nodes. What fits where, and ties: docs/nodes.md."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._node_machine cimport (
    Head,
    Held,
    Line,
    NodeNotes,
    chunks_of,
    demand_of,
    eligible_nodes,
    enough,
    fits_now,
    forget_place,
    give_back,
    leave_line,
    line_up,
    pop_next,
    push_next,
    still_refused,
    take_found,
)
from lrms_sim.kernel._node_state cimport (
    KINDS_MAX,
    Chunk,
    Demand,
    Free,
    LicenceUse,
    Nodes,
    Placed,
    demand_of_processors,
    left_after,
    left_before,
    licences_suffice,
    nodes_close,
    nodes_open,
    place,
    room_on,
    take_licences,
)
from lrms_sim.kernel._queue cimport WaitingQueue, queue_slot
from lrms_sim.kernel._predictions cimport (
    learn,
    predict,
    predicted_ended,
    predicted_overdue,
    predicted_start,
    predictions_free,
)
from lrms_sim.kernel._releases cimport Release, releases_ended, releases_free, releases_start
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View


# --- starting and ending --------------------------------------------------------------------

cdef int nodes_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    give_back(notes, job)
    forget_place(notes, job)
    releases_ended(&notes.releases, view, job)
    return 0


cdef int nodes_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    line_up(<NodeNotes*> own, job)
    return 0


cdef int nodes_withdrawn(void* own, View* view, job_index_t job) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    leave_line(notes, job)
    notes.settled = False
    return 0


cdef int start_found(NodeNotes* notes, View* view, Py_ssize_t slot) except -1 nogil:
    cdef job_index_t job = view.queue.job[slot]
    leave_line(notes, job)
    take_found(notes, job)
    return releases_start(&notes.releases, view, slot)


cdef int start_heads(NodeNotes* notes, View* view) except -1 nogil:
    cdef WaitingQueue* queue = &view.queue
    while queue.count > 0 and queue.width[queue.head] <= view.processors_free:
        if not fits_now(notes, queue.job[queue.head]):
            break
        notes.settled = False
        start_found(notes, view, queue.head)
    return 0


cdef inline void look_at_next(NodeNotes* notes, job_index_t job) noexcept nogil:
    if job >= 0:
        push_next(notes, job)


cdef void gather(
    NodeNotes* notes, const View* view, job_index_t head, job_index_t newest
) noexcept nogil:
    # Makes the heap of those at whom the pass has to look: of each shape that may fit the first
    # who waits behind the head, or of those who came after `newest` where that is somebody else.
    cdef Py_ssize_t i
    cdef int32_t shape
    cdef job_index_t job
    cdef const Demand* demand
    notes.next_count = 0
    for i in range(notes.waiting_count):
        shape = notes.waiting_shapes[i]
        demand = &notes.demands[shape]
        if (
            notes.line[shape].last <= newest
            or <int64_t> demand.tasks * demand.cores > view.processors_free
            or still_refused(notes, shape)
        ):
            continue
        if newest == head:
            job = notes.line[shape].first
            if job == head:
                job = notes.behind[job]
        else:
            # Few have come since: they are found from behind.
            job = notes.line[shape].last
            while notes.before[job] > newest:
                job = notes.before[job]
        look_at_next(notes, job)


# --- FCFS and LIST --------------------------------------------------------------------------

cdef int fcfs_decide(void* own, View* view) except -1 nogil:
    return start_heads(<NodeNotes*> own, view)


cdef int list_decide(void* own, View* view) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef job_index_t job, behind
    if view.queue.count == 0 or view.processors_free == 0:
        return 0
    gather(notes, view, -1, -1)
    while notes.next_count > 0 and view.processors_free > 0:
        job = pop_next(notes)
        if fits_now(notes, job):
            behind = notes.behind[job]
            start_found(notes, view, queue_slot(&view.queue, job))
            look_at_next(notes, behind)
    return 0


# --- EASY -----------------------------------------------------------------------------------

cdef void become_head(NodeNotes* notes, job_index_t job) noexcept nogil:
    # From now on `change_node` keeps count of the room that this job has.
    cdef Head* head = &notes.head
    cdef Nodes* nodes = &notes.nodes
    cdef int32_t number, node, room
    head.job = job
    head.demand = demand_of(notes, job)
    head.room_sum = 0
    memset(head.room_count, 0, head.rooms * sizeof(int32_t))
    for number in range(nodes.kind_count):
        if not (head.demand.kinds >> number) & 1:
            continue
        for node in range(nodes.kind[number].first, nodes.kind[number].end):
            room = room_on(head.demand, &nodes.free[node])
            head.room[node] = room
            head.room_sum += room
            head.room_count[room] += 1


cdef void set_then(NodeNotes* notes, int32_t node, Free left) noexcept nogil:
    # What a node will have at the shadow time.
    cdef Head* head = &notes.head
    cdef int32_t before, room
    if not (head.demand.kinds >> notes.nodes.kind_of[node]) & 1:
        return
    before = head.then_room[node] if head.then_mark[node] == head.mark else head.room[node]
    room = room_on(head.demand, &left)
    head.then_free[node] = left
    head.then_room[node] = room
    head.then_mark[node] = head.mark
    head.then_sum += room - before
    head.then_count[before] -= 1
    head.then_count[room] += 1


cdef inline Free free_then(const NodeNotes* notes, int32_t node) noexcept nogil:
    if notes.head.then_mark[node] == notes.head.mark:
        return notes.head.then_free[node]
    return notes.nodes.free[node]


cdef void look_ahead(NodeNotes* notes, const View* view) noexcept nogil:
    # The shadow time of the head, and the nodes as they are then.
    cdef Head* head = &notes.head
    cdef const Demand* demand = head.demand
    cdef int32_t eligible = eligible_nodes(&notes.nodes, demand)
    cdef int64_t width = <int64_t> demand.tasks * demand.cores
    cdef int64_t cores = view.processors_free
    cdef const Release* release
    cdef const Chunk* chunks
    cdef Free left
    cdef Py_ssize_t i, k
    head.mark += 1
    head.changes += 1
    head.then_sum = head.room_sum
    memcpy(head.then_count, head.room_count, head.rooms * sizeof(int32_t))
    for k in range(notes.nodes.licence_count):
        head.then_licences[k] = notes.nodes.licences_free[k]
    head.shadow_time = INFINITY
    for i in range(notes.releases.count):
        release = &notes.releases.release[i]
        if release.time > head.shadow_time:
            break
        cores += release.processors
        take_licences(head.then_licences, demand_of(notes, release.job), -1)
        chunks = chunks_of(&notes.placed[release.job])
        for k in range(notes.placed[release.job].count):
            left = free_then(notes, chunks[k].node)
            set_then(
                notes,
                chunks[k].node,
                left_before(
                    &notes.nodes, chunks[k].node, &left, demand_of(notes, release.job),
                    chunks[k].tasks,
                ),
            )
        if (
            cores >= width and head.shadow_time == INFINITY
            and enough(demand, head.then_sum, head.then_count, head.rooms, eligible)
            and licences_suffice(demand, head.then_licences)
        ):
            head.shadow_time = release.time
    head.cores_extra = cores - width


cdef bint leaves_enough(NodeNotes* notes, const Demand* guest, bint keep) noexcept nogil:
    # Whether the head still fits at its shadow time if a job that goes where `place` has found
    # room for it is still there. Where it does, the job is taken account of if `keep`.
    cdef Head* head = &notes.head
    cdef const Chunk* found = notes.nodes.found
    cdef Py_ssize_t count = notes.nodes.found_count
    cdef int32_t eligible = eligible_nodes(&notes.nodes, head.demand)
    cdef Free left
    cdef Py_ssize_t i
    cdef bint good
    for i in range(count):
        left = free_then(notes, found[i].node)
        set_then(notes, found[i].node, left_after(&left, guest, found[i].tasks))
    take_licences(head.then_licences, guest, 1)
    good = enough(
        head.demand, head.then_sum, head.then_count, head.rooms, eligible
    ) and licences_suffice(head.demand, head.then_licences)
    if not good or not keep:
        for i in range(count):
            left = free_then(notes, found[i].node)
            set_then(
                notes,
                found[i].node,
                left_before(&notes.nodes, found[i].node, &left, guest, found[i].tasks),
            )
        take_licences(head.then_licences, guest, -1)
    return good


cdef void stay_ahead(NodeNotes* notes) noexcept nogil:
    # A job that goes where `place` has found room ends by the shadow time: then its nodes are as
    # they would be without it.
    cdef Py_ssize_t i
    cdef int32_t node
    for i in range(notes.nodes.found_count):
        node = notes.nodes.found[i].node
        set_then(notes, node, free_then(notes, node))


cdef int backfill(NodeNotes* notes, View* view) except -1 nogil:
    # Goes once through those in the heap. Returns whether a job has started.
    cdef Head* head = &notes.head
    cdef job_index_t job, behind
    cdef int32_t shape
    cdef bint started = False
    cdef bint ends_in_time
    while notes.next_count > 0 and view.processors_free > 0:
        job = pop_next(notes)
        shape = notes.shape[job]
        behind = notes.behind[job]
        ends_in_time = view.now + view.requested_time[job] <= head.shadow_time
        if not ends_in_time and (
            view.job_processors[job] > head.cores_extra or notes.delays[shape] == head.changes
        ):
            # Too late, as all of its shape are until something starts.
            look_at_next(notes, behind)
            continue
        if not fits_now(notes, job):
            continue
        if ends_in_time:
            stay_ahead(notes)
        elif leaves_enough(notes, demand_of(notes, job), True):
            head.cores_extra -= view.job_processors[job]
        else:
            notes.delays[shape] = head.changes
            look_at_next(notes, behind)
            continue
        start_found(notes, view, queue_slot(&view.queue, job))
        head.changes += 1
        started = True
        look_at_next(notes, behind)
    return started


cdef int easy_decide(void* own, View* view) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef WaitingQueue* queue = &view.queue
    cdef job_index_t head
    start_heads(notes, view)
    if queue.count < 2 or view.processors_free == 0:
        notes.settled = False
        return 0
    head = queue.job[queue.head]
    if notes.settled and notes.head.job == head:
        # Whoever was refused then is refused now: time alone has gone by.
        gather(notes, view, head, notes.newest)
    else:
        notes.settled = False
        gather(notes, view, head, head)
        if notes.next_count == 0:
            return 0
        if notes.head.job != head:
            become_head(notes, head)
        look_ahead(notes, view)
    notes.newest = queue.job[queue.tail - 1]
    if notes.newest < 0:
        notes.newest = ~notes.newest
    notes.settled = not backfill(notes, view)
    return 0


# --- EASY++ ---------------------------------------------------------------------------------

cdef int predicting_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    predict(&(<NodeNotes*> own).predictions, view, job)
    return nodes_submitted(own, view, job)


cdef int predicting_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    give_back(notes, job)
    forget_place(notes, job)
    predicted_ended(&notes.predictions, &notes.releases, view, job)
    return 0


cdef int predicting_finished(void* own, View* view, job_index_t job) except -1 nogil:
    return learn(&(<NodeNotes*> own).predictions, view, job)


cdef seconds_t predicting_estimate(void* own, const View* view, job_index_t job) noexcept nogil:
    return (<NodeNotes*> own).predictions.guess[job].now


cdef int predicting_overdue(void* own, View* view) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    return predicted_overdue(&notes.predictions, &notes.releases, view)


cdef int start_predicted(NodeNotes* notes, View* view, job_index_t job) except -1 nogil:
    # Where `place` has found room for it.
    leave_line(notes, job)
    take_found(notes, job)
    return predicted_start(&notes.predictions, &notes.releases, view, job)


cdef job_index_t shortest_behind(
    NodeNotes* notes, job_index_t head, seconds_t least, job_index_t after
) noexcept nogil:
    # Of those who may fit the one with the shortest prediction, ties in order of arrival, behind
    # (least, after) in that order; -1 for none.
    cdef job_index_t job, best = -1
    cdef seconds_t guess, best_guess = INFINITY
    cdef Py_ssize_t i
    cdef int32_t shape
    for i in range(notes.waiting_count):
        shape = notes.waiting_shapes[i]
        if still_refused(notes, shape):
            continue
        job = notes.line[shape].first
        while job >= 0:
            guess = notes.predictions.guess[job].now
            if (
                job != head
                and (guess > least or (guess == least and job > after))
                and (guess < best_guess or (guess == best_guess and job < best))
            ):
                best = job
                best_guess = guess
            job = notes.behind[job]
    return best


cdef int predicting_decide(void* own, View* view) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef WaitingQueue* queue = &view.queue
    cdef Head* head = &notes.head
    cdef job_index_t job
    cdef seconds_t guess = -INFINITY
    while queue.count > 0 and fits_now(notes, queue.job[queue.head]):
        start_predicted(notes, view, queue.job[queue.head])
    if queue.count < 2 or view.processors_free == 0:
        return 0
    job = shortest_behind(notes, queue.job[queue.head], guess, -1)
    if job < 0:
        return 0
    become_head(notes, queue.job[queue.head])
    look_ahead(notes, view)
    while job >= 0:
        guess = notes.predictions.guess[job].now
        if fits_now(notes, job):
            if view.now + guess <= head.shadow_time:
                stay_ahead(notes)
                start_predicted(notes, view, job)
            elif leaves_enough(notes, demand_of(notes, job), True):
                start_predicted(notes, view, job)
        job = shortest_behind(notes, queue.job[queue.head], guess, job)
    return 0


# --- would it start now? --------------------------------------------------------------------

cdef inline bint processors_fit(
    NodeNotes* notes, processors_t width, Demand* demand
) noexcept nogil:
    demand_of_processors(demand, width)
    return place(&notes.nodes, demand)


cdef bint nodes_job_fits(void* own, const View* view, job_index_t job) noexcept nogil:
    return fits_now(<NodeNotes*> own, job)


cdef bint fcfs_job_starts_now(void* own, const View* view, job_index_t job) noexcept nogil:
    return view.queue.count == 0 and fits_now(<NodeNotes*> own, job)


cdef bint fcfs_starts_now(
    void* own, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    cdef Demand demand
    return view.queue.count == 0 and processors_fit(<NodeNotes*> own, width, &demand)


cdef bint list_starts_now(
    void* own, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    cdef Demand demand
    return processors_fit(<NodeNotes*> own, width, &demand)


cdef bint easy_starts(
    NodeNotes* notes, const View* view, const Demand* demand, seconds_t request
) noexcept nogil:
    # Of a job that joins the queue now. The last to come delays nobody but the head, if anybody.
    cdef Head* head = &notes.head
    if not place(&notes.nodes, demand):
        return False
    if view.queue.count == 0:
        return True
    if head.job != view.queue.job[view.queue.head]:
        become_head(notes, view.queue.job[view.queue.head])
    if not notes.settled:
        look_ahead(notes, view)
    return view.now + request <= head.shadow_time or leaves_enough(notes, demand, False)


cdef bint easy_starts_now(
    void* own, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    cdef Demand demand
    demand_of_processors(&demand, width)
    return easy_starts(<NodeNotes*> own, view, &demand, request)


cdef bint easy_job_starts_now(void* own, const View* view, job_index_t job) noexcept nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    return easy_starts(notes, view, demand_of(notes, job), view.requested_time[job])


# --- the scheduler --------------------------------------------------------------------------

cdef class NodeScheduler(Scheduler):
    """A discipline on a machine of nodes; knows the demands of all jobs that may come."""

    def __cinit__(self, *_arguments, **_options):
        self.notes = safe_calloc(1, sizeof(NodeNotes), b"notes of a scheduler")

    def __init__(
        self,
        str discipline not None,
        const int64_t[:, ::1] kinds not None,
        const int64_t[:, ::1] demands not None,
        const int32_t[::1] shape not None,
        const int64_t[::1] licences not None,
        *,
        bint best_fit=True,
    ):
        """Takes over what there is and who asks for what.

        Args:
            discipline: one of `lrms_sim.machine.nodes.NODE_DISCIPLINES` but conservative.
            kinds: a row for each kind: nodes, cores, memory, GPUs.
            demands: a row for each shape: tasks, cores, most, nodes_min, nodes_max, task_gpus,
                node_gpus, exclusive, task_memory, node_memory, kinds as bits; and how many it takes
                of each licence.
            shape: by job, its row in `demands`.
            licences: how many there are of each.
        """
        cdef NodeNotes* notes = <NodeNotes*> self.notes
        cdef Nodes* nodes = &notes.nodes
        cdef Py_ssize_t i, k, cores_max, uses
        if (
            not 1 <= kinds.shape[0] <= KINDS_MAX or kinds.shape[1] != 4
            or demands.shape[1] != 11 + licences.shape[0]
        ):
            raise ValueError("tables of kinds and demands have other columns")
        nodes.kind_count = <int32_t> kinds.shape[0]
        cores_max = 0
        for i in range(kinds.shape[0]):
            nodes.kind[i].first = nodes.kind[i - 1].end if i else 0
            nodes.kind[i].end = nodes.kind[i].first + <int32_t> kinds[i, 0]
            nodes.kind[i].whole.cores = <int32_t> kinds[i, 1]
            nodes.kind[i].whole.memory = kinds[i, 2]
            nodes.kind[i].whole.gpus = <int32_t> kinds[i, 3]
            cores_max = max(cores_max, <Py_ssize_t> kinds[i, 1])
        nodes.licence_count = <int32_t> licences.shape[0]
        nodes_open(nodes, best_fit)
        for i in range(licences.shape[0]):
            nodes.licences_free[i] = licences[i]
        self.shape = shape
        self.jobs = shape.shape[0]
        self.shapes = demands.shape[0]
        notes.shape = &shape[0] if self.jobs else NULL
        notes.demands = <Demand*> safe_calloc(demands.shape[0], sizeof(Demand), b"demands")
        notes.refused = <int64_t*> safe_calloc(demands.shape[0], sizeof(int64_t), b"demands")
        notes.delays = <int64_t*> safe_calloc(demands.shape[0], sizeof(int64_t), b"demands")
        notes.line = <Line*> safe_calloc(demands.shape[0], sizeof(Line), b"demands")
        notes.waiting_shapes = <int32_t*> safe_calloc(
            demands.shape[0], sizeof(int32_t), b"demands"
        )
        notes.next = <job_index_t*> safe_calloc(demands.shape[0], sizeof(job_index_t), b"demands")
        notes.before = <job_index_t*> safe_calloc(self.jobs, sizeof(job_index_t), b"waiting jobs")
        notes.behind = <job_index_t*> safe_calloc(self.jobs, sizeof(job_index_t), b"waiting jobs")
        uses = 0
        for i in range(demands.shape[0]):
            for k in range(licences.shape[0]):
                uses += demands[i, 11 + k] > 0
        notes.licences = <LicenceUse*> safe_calloc(uses, sizeof(LicenceUse), b"licences")
        uses = 0
        for i in range(demands.shape[0]):
            notes.demands[i].licences = &notes.licences[uses]
            for k in range(licences.shape[0]):
                if demands[i, 11 + k] > 0:
                    notes.licences[uses].licence = <int32_t> k
                    notes.licences[uses].count = demands[i, 11 + k]
                    notes.demands[i].licence_count += 1
                    uses += 1
            notes.demands[i].tasks = <int32_t> demands[i, 0]
            notes.demands[i].cores = <int32_t> demands[i, 1]
            notes.demands[i].most = <int32_t> demands[i, 2]
            notes.demands[i].nodes_min = <int32_t> demands[i, 3]
            notes.demands[i].nodes_max = <int32_t> demands[i, 4]
            notes.demands[i].task_gpus = <int32_t> demands[i, 5]
            notes.demands[i].node_gpus = <int32_t> demands[i, 6]
            notes.demands[i].exclusive = <int32_t> demands[i, 7]
            notes.demands[i].task_memory = demands[i, 8]
            notes.demands[i].node_memory = demands[i, 9]
            notes.demands[i].kinds = <uint64_t> demands[i, 10]
            notes.refused[i] = -1
            notes.delays[i] = -1
            notes.line[i].first = -1
            notes.line[i].last = -1
        notes.placed = <Placed*> safe_calloc(self.jobs, sizeof(Placed), b"places of jobs")
        notes.held = <Held*> safe_calloc(self.jobs, sizeof(Held), b"places of jobs")
        notes.head.job = -1
        notes.head.rooms = <int32_t> cores_max + 1
        notes.head.room = <int32_t*> safe_calloc(nodes.count, sizeof(int32_t), b"nodes")
        notes.head.then_room = <int32_t*> safe_calloc(nodes.count, sizeof(int32_t), b"nodes")
        notes.head.then_mark = <int64_t*> safe_calloc(nodes.count, sizeof(int64_t), b"nodes")
        notes.head.then_free = <Free*> safe_calloc(nodes.count, sizeof(Free), b"nodes")
        notes.head.room_count = <int32_t*> safe_calloc(cores_max + 1, sizeof(int32_t), b"rooms")
        notes.head.then_count = <int32_t*> safe_calloc(cores_max + 1, sizeof(int32_t), b"rooms")
        notes.head.then_licences = <int64_t*> safe_calloc(
            licences.shape[0], sizeof(int64_t), b"licences"
        )
        self.any_order = False
        self.ops.submitted = nodes_submitted
        self.ops.ended = nodes_ended
        self.ops.withdrawn = nodes_withdrawn
        self.ops.job_fits = nodes_job_fits
        self.ops.per_event = discipline not in ("fcfs", "list", "easy")
        if discipline == "fcfs":
            self.ops.decide = fcfs_decide
            self.ops.starts_now = fcfs_starts_now
            self.ops.job_starts_now = fcfs_job_starts_now
        elif discipline == "list":
            self.ops.decide = list_decide
            self.ops.starts_now = list_starts_now
            self.ops.job_starts_now = nodes_job_fits
        elif discipline in ("easy", "easy-per-event"):
            self.ops.decide = easy_decide
            self.ops.starts_now = easy_starts_now
            self.ops.job_starts_now = easy_job_starts_now
        elif discipline in ("easy-plus-plus", "easy-sjbf-per-event"):
            notes.predictions.predicts = discipline == "easy-plus-plus"
            self.ops.submitted = predicting_submitted
            self.ops.ended = predicting_ended
            self.ops.finished = predicting_finished
            self.ops.overdue = predicting_overdue
            self.ops.estimate = predicting_estimate
            self.ops.decide = predicting_decide
            self.ops.starts_now = fcfs_starts_now
            self.ops.job_starts_now = fcfs_job_starts_now
            self.needs_users = notes.predictions.predicts
        else:
            raise ValueError(f"no discipline {discipline!r} on a machine of nodes")

    def __dealloc__(self):
        cdef NodeNotes* notes = <NodeNotes*> self.notes
        cdef Py_ssize_t i
        if notes == NULL:
            return
        nodes_close(&notes.nodes)
        releases_free(&notes.releases)
        predictions_free(&notes.predictions)
        if notes.placed != NULL:
            for i in range(self.jobs):
                free(notes.placed[i].chunks)
        free(notes.placed)
        free(notes.held)
        free(notes.demands)
        free(notes.licences)
        free(notes.refused)
        free(notes.delays)
        free(notes.line)
        free(notes.waiting_shapes)
        free(notes.next)
        free(notes.before)
        free(notes.behind)
        free(notes.head.room)
        free(notes.head.then_room)
        free(notes.head.then_mark)
        free(notes.head.then_free)
        free(notes.head.room_count)
        free(notes.head.then_count)
        free(notes.head.then_licences)
        free(notes)

    def misfits(self):
        """Returns the shapes of jobs that do not fit on the machine as it is, ascending."""
        cdef NodeNotes* notes = <NodeNotes*> self.notes
        return [
            shape
            for shape in np.unique(np.asarray(self.shape)).tolist()
            if not place(&notes.nodes, &notes.demands[shape])
        ]

    def held(self):
        """Returns, in an array of shape (n, 4), nodes, cores, memory and GPUs that each job had."""
        cdef NodeNotes* notes = <NodeNotes*> self.notes
        if self.jobs == 0:
            return np.zeros((0, 4), np.int64)
        return np.array(<int64_t[:self.jobs, :4]> <int64_t*> notes.held)

    def keep_places(self):
        """Keeps where jobs have run after their ends."""
        (<NodeNotes*> self.notes).keeps_places = True

    def places(self, Py_ssize_t job):
        """Returns where a job runs, or has run if places are kept: pairs of node and tasks."""
        cdef NodeNotes* notes = <NodeNotes*> self.notes
        cdef const Chunk* chunks
        if not 0 <= job < self.jobs:
            raise IndexError(f"job {job} of {self.jobs}")
        chunks = chunks_of(&notes.placed[job])
        return [
            (chunks[i].node, chunks[i].tasks)
            for i in range(notes.placed[job].count if chunks != NULL else 0)
        ]
