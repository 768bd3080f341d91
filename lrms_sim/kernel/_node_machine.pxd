# What all disciplines on a machine of nodes have in common: nodes, demands, who is where.
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libc.stdlib cimport free

from lrms_sim.kernel._memory cimport safe_realloc
from lrms_sim.kernel._node_state cimport (
    Chunk,
    Demand,
    Free,
    LicenceUse,
    Nodes,
    Placed,
    left_after,
    left_before,
    licences_suffice,
    place,
    room_on,
    set_free,
    take_licences,
)
from lrms_sim.kernel._predictions cimport Predictions
from lrms_sim.kernel._releases cimport Releases
from lrms_sim.kernel._types cimport job_index_t, seconds_t

cdef enum:
    RECENT = 64                  # a power of 2

cdef extern from *:
    """
    #define UNCOUNTED ((int64_t) 1 << 60)
    """
    const int64_t UNCOUNTED      # memory of a node where nobody counts it, MiB

cdef struct Head:
    # What the blocked head has to wait for. `room` follows the nodes as they are now, so that a
    # pass need not ask all of them; `then_…` is what they will be at the shadow time.
    job_index_t job              # -1 for none
    const Demand* demand
    int32_t* room                # by node
    int64_t room_sum
    int32_t* room_count          # by room, nodes
    seconds_t shadow_time
    int64_t cores_extra          # free at the shadow time beyond the head's own
    Free* then_free              # by node, where then_mark says so; else as now
    int32_t* then_room
    int64_t* then_mark
    int64_t mark
    int64_t changes              # of anything that a guest of the head's has to do with
    int64_t then_sum
    int32_t* then_count          # by room, nodes
    int32_t rooms                # length of the counts
    int64_t* then_licences       # by licence

cdef struct Line:
    # Who waits of one shape, in order of arrival.
    job_index_t first            # -1 for nobody
    job_index_t last
    int32_t number               # of the shape in `waiting_shapes`

cdef struct Held:
    # What a job has, or had: all of its nodes where it is exclusive.
    int64_t nodes
    int64_t cores
    int64_t memory
    int64_t gpus

cdef struct NodeNotes:
    Nodes nodes
    Demand* demands              # by shape
    LicenceUse* licences         # of all demands, one after the other
    const int32_t* shape         # by job
    Line* line                   # by shape
    job_index_t* before          # by job, its neighbours in its line; -1 for none
    job_index_t* behind
    int32_t* waiting_shapes      # those of which somebody waits, in no order
    Py_ssize_t waiting_count
    job_index_t* next            # jobs that a pass has to look at, one of a shape: a heap
    Py_ssize_t next_count
    Placed* placed               # by job
    Held* held                   # by job
    void* more                   # of a discipline that has more than these
    Releases releases            # running jobs by estimated end
    Predictions predictions      # EASY++ alone
    Head head
    # The nodes on which something was given back, the last of them; and how many there ever were.
    int32_t[RECENT] released
    int64_t released_count
    int64_t* refused             # by shape, that count when it last did not fit; -1 for never
    int64_t* delays              # by shape, `head.changes` when it last would have delayed the head
    bint keeps_places            # also of jobs that have ended
    bint settled                 # nothing has changed since a pass that looked at all who wait
    job_index_t newest           # the job that joined the queue last before that pass; -1 for none


cdef inline const Demand* demand_of(const NodeNotes* notes, job_index_t job) noexcept nogil:
    return &notes.demands[notes.shape[job]]


# --- who waits ------------------------------------------------------------------------------

cdef inline void line_up(NodeNotes* notes, job_index_t job) noexcept nogil:
    # Puts a job behind all others of its shape.
    cdef int32_t shape = notes.shape[job]
    cdef Line* line = &notes.line[shape]
    notes.before[job] = line.last
    notes.behind[job] = -1
    if line.last < 0:
        line.first = job
        line.number = <int32_t> notes.waiting_count
        notes.waiting_shapes[notes.waiting_count] = shape
        notes.waiting_count += 1
    else:
        notes.behind[line.last] = job
    line.last = job


cdef inline void leave_line(NodeNotes* notes, job_index_t job) noexcept nogil:
    cdef Line* line = &notes.line[notes.shape[job]]
    cdef int32_t last
    if notes.before[job] < 0:
        line.first = notes.behind[job]
    else:
        notes.behind[notes.before[job]] = notes.behind[job]
    if notes.behind[job] < 0:
        line.last = notes.before[job]
    else:
        notes.before[notes.behind[job]] = notes.before[job]
    if line.first < 0:
        notes.waiting_count -= 1
        last = notes.waiting_shapes[notes.waiting_count]
        notes.waiting_shapes[line.number] = last
        notes.line[last].number = line.number


cdef inline void push_next(NodeNotes* notes, job_index_t job) noexcept nogil:
    # There is room: at most one job of each shape is in the heap.
    cdef Py_ssize_t at = notes.next_count
    cdef Py_ssize_t above
    notes.next_count += 1
    while at > 0:
        above = (at - 1) >> 1
        if notes.next[above] < job:
            break
        notes.next[at] = notes.next[above]
        at = above
    notes.next[at] = job


cdef inline job_index_t pop_next(NodeNotes* notes) noexcept nogil:
    # Takes out the job that came first. There must be one.
    cdef job_index_t first = notes.next[0]
    cdef job_index_t last
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t below = 1
    notes.next_count -= 1
    last = notes.next[notes.next_count]
    while below < notes.next_count:
        if below + 1 < notes.next_count and notes.next[below + 1] < notes.next[below]:
            below += 1
        if last < notes.next[below]:
            break
        notes.next[at] = notes.next[below]
        at = below
        below = 2 * at + 1
    notes.next[at] = last
    return first


cdef inline void change_node(NodeNotes* notes, int32_t node, Free left) noexcept nogil:
    cdef Head* head = &notes.head
    cdef int32_t room
    set_free(&notes.nodes, node, left)
    if head.job >= 0 and (head.demand.kinds >> notes.nodes.kind_of[node]) & 1:
        room = room_on(head.demand, &notes.nodes.free[node])
        if room != head.room[node]:
            head.room_sum += room - head.room[node]
            head.room_count[head.room[node]] -= 1
            head.room_count[room] += 1
            head.room[node] = room


cdef inline void note_held(
    NodeNotes* notes, job_index_t job, const Chunk* chunks, Py_ssize_t count
) noexcept nogil:
    cdef const Demand* demand = demand_of(notes, job)
    cdef Held* held = &notes.held[job]
    cdef const Free* whole
    cdef Free left
    cdef Py_ssize_t i
    held.nodes = count
    held.cores = held.memory = held.gpus = 0
    for i in range(count):
        whole = &notes.nodes.kind[notes.nodes.kind_of[chunks[i].node]].whole
        left = left_after(whole, demand, chunks[i].tasks)
        held.cores += whole.cores - left.cores
        held.gpus += whole.gpus - left.gpus
        if whole.memory < UNCOUNTED:
            held.memory += whole.memory - left.memory


cdef inline int take_found(NodeNotes* notes, job_index_t job) except -1 nogil:
    # Gives a job the nodes that `place` has found for it.
    cdef const Demand* demand = demand_of(notes, job)
    cdef Placed* placed = &notes.placed[job]
    cdef const Chunk* found = notes.nodes.found
    cdef Py_ssize_t i
    placed.count = notes.nodes.found_count
    if placed.count == 1:
        placed.one = found[0]
    else:
        placed.chunks = <Chunk*> safe_realloc(
            NULL, placed.count, sizeof(Chunk), b"nodes of a job"
        )
        memcpy(placed.chunks, found, placed.count * sizeof(Chunk))
    for i in range(placed.count):
        change_node(
            notes,
            found[i].node,
            left_after(&notes.nodes.free[found[i].node], demand, found[i].tasks),
        )
    take_licences(notes.nodes.licences_free, demand, 1)
    note_held(notes, job, found, placed.count)
    return 0


cdef inline void forget_place(NodeNotes* notes, job_index_t job) noexcept nogil:
    # Of a job that has ended.
    if not notes.keeps_places:
        free(notes.placed[job].chunks)
        notes.placed[job].chunks = NULL


cdef inline const Chunk* chunks_of(const Placed* placed) noexcept nogil:
    return &placed.one if placed.count == 1 else placed.chunks


cdef inline void give_back(NodeNotes* notes, job_index_t job) noexcept nogil:
    cdef const Demand* demand = demand_of(notes, job)
    cdef Placed* placed = &notes.placed[job]
    cdef const Chunk* chunks = chunks_of(placed)
    cdef Py_ssize_t i
    for i in range(placed.count):
        change_node(
            notes,
            chunks[i].node,
            left_before(
                &notes.nodes, chunks[i].node, &notes.nodes.free[chunks[i].node], demand,
                chunks[i].tasks,
            ),
        )
        notes.released[notes.released_count & (RECENT - 1)] = chunks[i].node
        notes.released_count += 1
    take_licences(notes.nodes.licences_free, demand, -1)
    notes.settled = False


cdef inline bint still_refused(NodeNotes* notes, int32_t shape) noexcept nogil:
    # Whether a job that did not fit cannot fit yet, as no node where something was given back
    # since then has room for it.
    cdef const Demand* demand = &notes.demands[shape]
    cdef int64_t i = notes.refused[shape]
    cdef int32_t least = demand.tasks if demand.nodes_max == 1 else 1
    cdef int32_t node
    if demand.licence_count:
        # Whether nodes or licences were lacking then is not known.
        return not licences_suffice(demand, notes.nodes.licences_free)
    if i < 0 or notes.released_count - i > RECENT:
        return False
    while i < notes.released_count:
        node = notes.released[i & (RECENT - 1)]
        if (demand.kinds >> notes.nodes.kind_of[node]) & 1 and room_on(
            demand, &notes.nodes.free[node]
        ) >= least:
            return False
        i += 1
    notes.refused[shape] = i
    return True


cdef inline bint fits_now(NodeNotes* notes, job_index_t job) noexcept nogil:
    # Whether a job fits now, and where.
    cdef int32_t shape = notes.shape[job]
    if still_refused(notes, shape):
        return False
    if place(&notes.nodes, &notes.demands[shape]):
        return True
    notes.refused[shape] = notes.released_count
    return False


# --- the blocked head -----------------------------------------------------------------------

cdef inline bint enough(
    const Demand* demand, int64_t room_sum, const int32_t* room_count, int32_t rooms,
    int32_t nodes
) noexcept nogil:
    # Whether nodes with these rooms hold all tasks; so many of the eligible ones have each room.
    cdef int64_t tasks = 0
    cdef int64_t left = demand.nodes_max
    cdef int32_t room
    if room_sum < demand.tasks or nodes - room_count[0] < demand.nodes_min:
        return False
    if demand.nodes_max >= nodes:
        return True
    for room in range(rooms - 1, 0, -1):
        if room_count[room] >= left:
            tasks += left * room
            break
        tasks += <int64_t> room_count[room] * room
        left -= room_count[room]
    return tasks >= demand.tasks


cdef inline int32_t eligible_nodes(const Nodes* nodes, const Demand* demand) noexcept nogil:
    cdef int32_t number
    cdef int32_t count = 0
    for number in range(nodes.kind_count):
        if (demand.kinds >> number) & 1:
            count += nodes.kind[number].end - nodes.kind[number].first
    return count
