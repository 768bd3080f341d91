"""FCFS, LIST, EASY and EASY++ on a machine of nodes. What fits where, and ties: docs/nodes.md."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._node_machine cimport (
    Asked,
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
    least_room,
    leave_line,
    line_up,
    pop_next,
    push_next,
    step_of,
    still_refused,
    take_found,
)
from lrms_sim.kernel._node_state cimport (
    KINDS_MAX,
    NO_LIMIT,
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
    lowest_bit,
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
from lrms_sim.kernel._releases cimport (
    Release,
    releases_before,
    releases_ended,
    releases_free,
    releases_outlived,
    releases_start,
)
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View


cdef enum:
    JOBS_MAX = 0x7FFFFFFF        # greater than any job's number


# --- starting and ending --------------------------------------------------------------------

cdef int nodes_ended(void* own, View* view, job_index_t job) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    if notes.head.looked:
        end_ahead(notes, view, job)
    notes.head.changes += 1
    give_back(notes, job)
    forget_place(notes, job)
    releases_ended(&notes.releases, view, job)
    return 0


cdef int nodes_outlived(
    void* own, View* view, job_index_t job, seconds_t estimate
) except -1 nogil:
    # When the head fits is found out anew.
    cdef NodeNotes* notes = <NodeNotes*> own
    notes.head.looked = False
    notes.head.changes += 1
    return releases_outlived(&notes.releases, view, job, estimate)


cdef int nodes_submitted(void* own, View* view, job_index_t job) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef Line* line = &notes.line[notes.shape[job]]
    cdef seconds_t request = view.requested_time[job]
    if line.first < 0 or request < line.request_min:
        line.request_min = request
    line_up(notes, job)
    return 0


cdef int nodes_withdrawn(void* own, View* view, job_index_t job) except -1 nogil:
    leave_line(<NodeNotes*> own, job)
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
        # What was known of a blocked head was of another one.
        notes.head.looked = False
        notes.head.job = -1
        start_found(notes, view, queue.head)
    return 0


cdef inline void look_at_next(NodeNotes* notes, job_index_t job) noexcept nogil:
    if job >= 0:
        push_next(notes, job)


cdef void gather(NodeNotes* notes, const View* view, job_index_t head) noexcept nogil:
    # Makes the heap of those at whom the pass has to look: of each shape that may fit the first
    # who waits, but for the head.
    cdef Py_ssize_t word
    cdef uint64_t bits
    cdef int32_t shape
    cdef job_index_t job
    cdef const Demand* demand
    notes.next_count = 0
    notes.looked_count = 0
    for word in range(notes.words):
        bits = notes.waiting[word] & ~notes.refused[word]
        while bits:
            shape = <int32_t> (word * 64) + lowest_bit(bits)
            bits &= bits - 1
            demand = &notes.demands[shape]
            job = notes.line[shape].first
            if job == head:
                job = notes.behind[job]
            if (
                job < 0 or <int64_t> demand.tasks * demand.cores > view.processors_free
                or still_refused(notes, shape)
            ):
                continue
            notes.line[shape].next = job
            notes.line[shape].delays = False
            notes.looked_at[notes.looked_count] = shape
            notes.looked_count += 1
            push_next(notes, job)


# --- FCFS and LIST --------------------------------------------------------------------------

cdef int fcfs_decide(void* own, View* view) except -1 nogil:
    return start_heads(<NodeNotes*> own, view)


cdef int list_decide(void* own, View* view) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    cdef job_index_t job, behind
    if view.queue.count == 0 or view.processors_free == 0:
        return 0
    gather(notes, view, -1)
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


cdef void end_ahead(NodeNotes* notes, const View* view, job_index_t job) noexcept nogil:
    # A job is about to end. If it was to end by the shadow time, its nodes are then as they would
    # have been; else they have more.
    cdef Head* head = &notes.head
    cdef const Demand* demand = demand_of(notes, job)
    cdef const Chunk* chunks = chunks_of(&notes.placed[job])
    cdef bint late = view.start_time[job] + view.requested_time[job] > head.shadow_time
    cdef Free left
    cdef Py_ssize_t i
    head.ended = True
    for i in range(notes.placed[job].count):
        left = free_then(notes, chunks[i].node)
        if late:
            left = left_before(&notes.nodes, chunks[i].node, &left, demand, chunks[i].tasks)
        set_then(notes, chunks[i].node, left)
    if late:
        head.cores_extra += view.job_processors[job]
        take_licences(head.then_licences, demand, -1)


cdef void release_then(
    NodeNotes* notes, const Release* release, int32_t sign
) noexcept nogil:
    # Whether a running job has ended by the shadow time is another question than it was: it has
    # not, with sign -1.
    cdef Head* head = &notes.head
    cdef const Demand* demand = demand_of(notes, release.job)
    cdef const Chunk* chunks = chunks_of(&notes.placed[release.job])
    cdef Free left
    cdef Py_ssize_t i
    for i in range(notes.placed[release.job].count):
        left = free_then(notes, chunks[i].node)
        if sign > 0:
            left = left_before(&notes.nodes, chunks[i].node, &left, demand, chunks[i].tasks)
        else:
            left = left_after(&left, demand, chunks[i].tasks)
        set_then(notes, chunks[i].node, left)
    take_licences(head.then_licences, demand, -sign)
    head.cores_extra += sign * <int64_t> release.processors


cdef bint head_fits_then(const NodeNotes* notes) noexcept nogil:
    cdef const Head* head = &notes.head
    return (
        head.cores_extra >= 0
        and enough(
            head.demand, head.then_sum, head.then_count, head.rooms,
            eligible_nodes(&notes.nodes, head.demand),
        )
        and licences_suffice(head.demand, head.then_licences)
    )


cdef void look_nearer(NodeNotes* notes) noexcept nogil:
    # Jobs have ended since the shadow time was found. Then the head may fit earlier, and never
    # later: nobody has started who would have kept it from its nodes at that time.
    cdef Head* head = &notes.head
    cdef const Release* release = notes.releases.release
    cdef Py_ssize_t end = releases_before(&notes.releases, head.shadow_time, JOBS_MAX)
    cdef Py_ssize_t first, i
    head.ended = False
    while end > 0:
        # Nothing ends from the last of these ends to the shadow time.
        head.shadow_time = release[end - 1].time
        first = end
        while first > 0 and release[first - 1].time == head.shadow_time:
            first -= 1
            release_then(notes, &release[first], -1)
        if not head_fits_then(notes):
            for i in range(first, end):
                release_then(notes, &release[i], 1)
            return
        end = first


cdef void look_at_head(NodeNotes* notes, const View* view) noexcept nogil:
    # Finds out when the head of the queue fits, as far as that is not known.
    cdef Head* head = &notes.head
    cdef job_index_t job = view.queue.job[view.queue.head]
    if head.job != job:
        become_head(notes, job)
        head.looked = False
    if not head.looked:
        look_ahead(notes, view)
        head.looked = True
        head.ended = False
    elif head.ended:
        look_nearer(notes)


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


cdef job_index_t next_in_time(
    NodeNotes* notes, const View* view, int32_t shape, job_index_t job
) noexcept nogil:
    # The first of a shape, from a job on, who ends by the shadow time; -1 for none.
    cdef Line* line = &notes.line[shape]
    cdef seconds_t shadow_time = notes.head.shadow_time
    cdef seconds_t least = INFINITY
    cdef job_index_t before
    # Rounding is monotone, so that the bound excludes all of them.
    if job < 0 or view.now + line.request_min > shadow_time:
        return -1
    before = notes.before[job]
    while job >= 0:
        if view.now + view.requested_time[job] <= shadow_time:
            return job
        least = min(least, view.requested_time[job])
        job = notes.behind[job]
    if before < 0:
        line.request_min = least
    elif notes.before[before] < 0:
        line.request_min = min(least, view.requested_time[before])
    return -1


cdef void pass_over(NodeNotes* notes, const View* view, job_index_t job) noexcept nogil:
    # A job is too late, as all of its shape are until something starts, but for those in time.
    cdef int32_t shape = notes.shape[job]
    cdef job_index_t other = next_in_time(notes, view, shape, notes.behind[job])
    notes.line[shape].next = job
    notes.line[shape].delays = True
    look_at_next(notes, other)


cdef void look_again(NodeNotes* notes, job_index_t started) noexcept nogil:
    # A job has started. With other nodes than before, whoever would have delayed the head may not.
    cdef Py_ssize_t i
    cdef Line* line
    cdef job_index_t job
    notes.next_count = 0
    for i in range(notes.looked_count):
        line = &notes.line[notes.looked_at[i]]
        job = line.next
        if line.delays:
            line.delays = False
            while 0 <= job < started:
                job = notes.behind[job]
            line.next = job
        look_at_next(notes, job)


cdef int backfill(NodeNotes* notes, View* view) except -1 nogil:
    # Goes once through those in the heap.
    cdef Head* head = &notes.head
    cdef job_index_t job, behind
    cdef int32_t shape
    cdef bint ends_in_time
    cdef bint delayed = False
    while notes.next_count > 0 and view.processors_free > 0:
        job = pop_next(notes)
        shape = notes.shape[job]
        ends_in_time = view.now + view.requested_time[job] <= head.shadow_time
        if not ends_in_time and (
            view.job_processors[job] > head.cores_extra or notes.delays[shape] == head.changes
        ):
            pass_over(notes, view, job)
            delayed = True
            continue
        if not fits_now(notes, job):
            notes.line[shape].next = -1
            notes.line[shape].delays = False
            continue
        if ends_in_time:
            stay_ahead(notes)
        elif leaves_enough(notes, demand_of(notes, job), True):
            head.cores_extra -= view.job_processors[job]
        else:
            notes.delays[shape] = head.changes
            pass_over(notes, view, job)
            delayed = True
            continue
        behind = notes.behind[job]
        start_found(notes, view, queue_slot(&view.queue, job))
        head.changes += 1
        notes.line[shape].next = behind
        notes.line[shape].delays = False
        if delayed:
            delayed = False
            look_again(notes, job)
        else:
            look_at_next(notes, behind)
    return 0


cdef int easy_decide(void* own, View* view) except -1 nogil:
    cdef NodeNotes* notes = <NodeNotes*> own
    start_heads(notes, view)
    if view.queue.count < 2 or view.processors_free == 0:
        return 0
    gather(notes, view, view.queue.job[view.queue.head])
    if notes.next_count == 0:
        return 0
    look_at_head(notes, view)
    return backfill(notes, view)


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
    cdef Py_ssize_t word
    cdef uint64_t bits
    cdef int32_t shape
    for word in range(notes.words):
        bits = notes.waiting[word] & ~notes.refused[word]
        while bits:
            shape = <int32_t> (word * 64) + lowest_bit(bits)
            bits &= bits - 1
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
    look_at_head(notes, view)
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


# --- what is asked for ----------------------------------------------------------------------

cdef void leave_out_kinds(const Nodes* nodes, Demand* demand) noexcept nogil:
    # Kinds of which not even an empty node is of use.
    cdef int32_t number
    for number in range(nodes.kind_count):
        if room_on(demand, &nodes.kind[number].whole) < least_room(demand):
            demand.kinds &= ~(<uint64_t> 1 << number)


cdef uint64_t* by_step(int64_t[::1] least, int64_t most, Py_ssize_t words) except NULL:
    # Sets of those that ask for no more than each step up to that of the most.
    cdef Py_ssize_t steps = step_of(most) + 1
    cdef uint64_t* rows = <uint64_t*> safe_calloc(steps * words, sizeof(uint64_t), b"demands")
    cdef Py_ssize_t shape, step
    for shape in range(least.shape[0]):
        for step in range(step_of(least[shape]), steps):
            rows[step * words + (shape >> 6)] |= <uint64_t> 1 << (shape & 63)
    return rows


cdef int make_families(NodeNotes* notes, int32_t shapes) except -1:
    # Links the shapes that ask the same of a node and differ in the number of tasks alone, where
    # whoever has more tasks needs more room.
    cdef const Demand* demand
    cdef int32_t shape
    notes.sibling = <int32_t*> safe_calloc(shapes, sizeof(int32_t), b"demands")
    families = {}
    for shape in range(shapes):
        notes.sibling[shape] = shape
        demand = &notes.demands[shape]
        if demand.nodes_max == 1:
            sort = 1
        elif demand.most == 1 and demand.nodes_max >= demand.tasks:
            sort = 2
        elif (
            demand.nodes_min == 1 and demand.nodes_max == NO_LIMIT
            and demand.most == demand.tasks
        ):
            sort = 3
        else:
            continue
        key = (
            sort, demand.cores, demand.exclusive, demand.node_gpus, demand.task_gpus,
            demand.node_memory, demand.task_memory, demand.kinds,
        )
        other = families.setdefault(key, shape)
        if other != shape:
            notes.sibling[shape] = notes.sibling[<int32_t> other]
            notes.sibling[<int32_t> other] = shape
    return 0


cdef int sort_asked(NodeNotes* notes, Py_ssize_t shapes) except -1:
    # Makes `asked` of the demands.
    cdef Nodes* nodes = &notes.nodes
    cdef Asked* asked = &notes.asked
    cdef Py_ssize_t words = notes.words
    cdef const Demand* demand
    cdef int64_t tasks
    cdef int64_t cores_max = 0, gpus_max = 0, memory_max = 0
    cdef Py_ssize_t shape
    cdef int32_t number
    cores = np.zeros(shapes, np.int64)
    gpus = np.zeros(shapes, np.int64)
    memory = np.zeros(shapes, np.int64)
    cdef int64_t[::1] cores_view = cores, gpus_view = gpus, memory_view = memory
    asked.of_kind = <uint64_t*> safe_calloc(
        nodes.kind_count * words, sizeof(uint64_t), b"demands"
    )
    for number in range(nodes.kind_count):
        cores_max = max(cores_max, nodes.kind[number].whole.cores)
        gpus_max = max(gpus_max, nodes.kind[number].whole.gpus)
        memory_max = max(memory_max, nodes.kind[number].whole.memory)
    for shape in range(shapes):
        demand = &notes.demands[shape]
        if demand.kinds == 0:
            continue
        # Some empty node has room for so many tasks, so that none of these is beyond 64 bits.
        tasks = least_room(demand)
        cores_view[shape] = tasks * demand.cores
        gpus_view[shape] = demand.node_gpus + tasks * demand.task_gpus
        memory_view[shape] = demand.node_memory + tasks * demand.task_memory
        for number in range(nodes.kind_count):
            if (demand.kinds >> number) & 1:
                asked.of_kind[number * words + (shape >> 6)] |= <uint64_t> 1 << (shape & 63)
    asked.cores = by_step(cores_view, cores_max, words)
    asked.gpus = by_step(gpus_view, gpus_max, words)
    asked.memory = by_step(memory_view, memory_max, words)
    return 0


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
        # What differs in other things than nodes and licences is one shape here.
        rows, numbers = np.unique(np.asarray(demands), axis=0, return_inverse=True)
        self.asked = shape
        self.shape = shape = numbers.reshape(-1).astype(np.int32)[np.asarray(shape)]
        demands = rows
        self.jobs = shape.shape[0]
        self.shapes = demands.shape[0]
        notes.shape = &shape[0] if self.jobs else NULL
        notes.demands = <Demand*> safe_calloc(demands.shape[0], sizeof(Demand), b"demands")
        notes.words = (demands.shape[0] + 63) >> 6
        notes.waiting = <uint64_t*> safe_calloc(notes.words, sizeof(uint64_t), b"demands")
        notes.refused = <uint64_t*> safe_calloc(notes.words, sizeof(uint64_t), b"demands")
        notes.lack = <int64_t*> safe_calloc(demands.shape[0], sizeof(int64_t), b"demands")
        notes.delays = <int64_t*> safe_calloc(demands.shape[0], sizeof(int64_t), b"demands")
        notes.line = <Line*> safe_calloc(demands.shape[0], sizeof(Line), b"demands")
        notes.looked_at = <int32_t*> safe_calloc(demands.shape[0], sizeof(int32_t), b"demands")
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
            leave_out_kinds(nodes, &notes.demands[i])
            notes.delays[i] = -1
            notes.line[i].first = -1
            notes.line[i].last = -1
        sort_asked(notes, demands.shape[0])
        make_families(notes, demands.shape[0])
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
        self.outlives = True
        self.ops.submitted = nodes_submitted
        self.ops.outlived = nodes_outlived
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
            self.ops.outlived = NULL
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
        free(notes.waiting)
        free(notes.lack)
        free(notes.sibling)
        free(notes.asked.of_kind)
        free(notes.asked.cores)
        free(notes.asked.gpus)
        free(notes.asked.memory)
        free(notes.looked_at)
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
        asked, jobs = np.unique(np.asarray(self.asked), return_index=True)
        return [
            shape
            for shape, job in zip(asked.tolist(), jobs.tolist(), strict=True)
            if not place(&notes.nodes, demand_of(notes, job))
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
