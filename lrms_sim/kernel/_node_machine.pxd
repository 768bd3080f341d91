# What all disciplines on a machine of nodes have in common: nodes, demands, who is where.
from libc.stdint cimport int32_t, int64_t, uint64_t
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
    lowest_bit,
    place,
    room_on,
    set_free,
    take_licences,
)
from lrms_sim.kernel._predictions cimport Predictions
from lrms_sim.kernel._releases cimport Releases
from lrms_sim.kernel._types cimport job_index_t, seconds_t

cdef extern from *:
    """
    #define UNCOUNTED ((int64_t) 1 << 60)
    static inline int highest_bit(unsigned long long word) { return 63 - __builtin_clzll(word); }
    """
    int highest_bit(uint64_t word) noexcept nogil
    const int64_t UNCOUNTED      # memory of a node where nobody counts it, MiB

cdef struct Head:
    # What the blocked head has to wait for. `room` follows the nodes as they are now, so that a
    # pass need not ask all of them; `then_…` is what they will be at the shadow time.
    job_index_t job              # -1 for none
    bint looked                  # `then_…` is told of every start and end, and good for `job`
    bint ended                   # a job has ended since the shadow time was found
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
    seconds_t request_min        # lower bound of their requested times; where a discipline keeps it
    job_index_t next             # where a pass is: whom it looks at next, or has looked at last
    bint delays                  # the pass has looked at `next`, who would delay the head

cdef struct Held:
    # What a job has, or had: all of its nodes where it is exclusive.
    int64_t nodes
    int64_t cores
    int64_t memory
    int64_t gpus

cdef struct Asked:
    # Shapes by what they ask of a node at least, so that a node can be asked of all of them
    # together whether it could have room. A row holds those that ask for no more than its step.
    uint64_t* of_kind            # by kind, those that may go there
    uint64_t* cores              # by step
    uint64_t* gpus
    uint64_t* memory

cdef struct NodeNotes:
    Nodes nodes
    Demand* demands              # by shape
    LicenceUse* licences         # of all demands, one after the other
    const int32_t* shape         # by job
    Line* line                   # by shape
    job_index_t* before          # by job, its neighbours in its line; -1 for none
    job_index_t* behind
    Py_ssize_t words             # of a set of shapes, as bits
    uint64_t* waiting            # those of which somebody waits
    # Those for which nodes lack room, as they did when last looked at: since then `lack` tasks, or
    # more, have found none.
    uint64_t* refused
    int64_t* lack                # by shape
    int32_t* sibling             # by shape, the next in a ring of those that differ in tasks alone
    Asked asked
    job_index_t* next            # jobs that a pass has to look at, one of a shape: a heap
    Py_ssize_t next_count
    int32_t* looked_at           # shapes at which a pass looks
    Py_ssize_t looked_count
    Placed* placed               # by job
    Held* held                   # by job
    void* more                   # of a discipline that has more than these
    Releases releases            # running jobs by estimated end
    Predictions predictions      # EASY++ alone
    Head head
    int64_t* delays              # by shape, `head.changes` when it last would have delayed the head
    bint keeps_places            # also of jobs that have ended


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
        notes.waiting[shape >> 6] |= <uint64_t> 1 << (shape & 63)
    else:
        notes.behind[line.last] = job
    line.last = job


cdef inline void leave_line(NodeNotes* notes, job_index_t job) noexcept nogil:
    cdef int32_t shape = notes.shape[job]
    cdef Line* line = &notes.line[shape]
    if notes.before[job] < 0:
        line.first = notes.behind[job]
    else:
        notes.behind[notes.before[job]] = notes.behind[job]
    if notes.behind[job] < 0:
        line.last = notes.before[job]
    else:
        notes.before[notes.behind[job]] = notes.before[job]
    if line.first < 0:
        notes.waiting[shape >> 6] &= ~(<uint64_t> 1 << (shape & 63))


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


# --- for whom there is no room --------------------------------------------------------------

cdef inline int32_t step_of(int64_t amount) noexcept nogil:
    # A number that does not get less where an amount gets more: below 4 each has its own, then
    # four of them a power of 2.
    cdef int32_t power
    if amount < 4:
        return <int32_t> amount
    power = highest_bit(<uint64_t> amount)
    return 4 * (power - 1) + <int32_t> (amount >> (power - 2) & 3)


cdef inline bint is_in(const uint64_t* set_of_shapes, int32_t shape) noexcept nogil:
    return set_of_shapes[shape >> 6] >> (shape & 63) & 1


cdef inline int32_t least_room(const Demand* demand) noexcept nogil:
    # The least room of a node that is of use.
    return demand.tasks if demand.nodes_max == 1 else 1


cdef inline void ask_again(NodeNotes* notes, int32_t node, const Free* before) noexcept nogil:
    # Of those for whom there was no room: who may have some, now that a node has more than before?
    # All nodes together cannot have gained more room than each of them has.
    cdef const Free* left = &notes.nodes.free[node]
    cdef Py_ssize_t words = notes.words
    cdef const uint64_t* of_kind = &notes.asked.of_kind[words * notes.nodes.kind_of[node]]
    cdef const uint64_t* cores = &notes.asked.cores[words * step_of(left.cores)]
    cdef const uint64_t* gpus = &notes.asked.gpus[words * step_of(left.gpus)]
    cdef const uint64_t* memory = &notes.asked.memory[words * step_of(left.memory)]
    cdef const Demand* demand
    cdef uint64_t bits
    cdef Py_ssize_t word
    cdef int32_t shape, room
    for word in range(words):
        if notes.refused[word] == 0:
            continue
        bits = notes.refused[word] & of_kind[word] & cores[word] & gpus[word] & memory[word]
        while bits:
            shape = <int32_t> (word * 64) + lowest_bit(bits)
            bits &= bits - 1
            demand = &notes.demands[shape]
            room = room_on(demand, left)
            if room < least_room(demand):
                continue
            if demand.nodes_max != 1:
                room -= room_on(demand, before)
            notes.lack[shape] -= room
            if notes.lack[shape] <= 0:
                notes.refused[word] &= ~(<uint64_t> 1 << (shape & 63))


cdef inline bint still_refused(const NodeNotes* notes, int32_t shape) noexcept nogil:
    # Whether nodes or licences are known to be lacking for a job.
    return is_in(notes.refused, shape) or not licences_suffice(
        &notes.demands[shape], notes.nodes.licences_free
    )


cdef inline void refuse(NodeNotes* notes, int32_t shape) noexcept nogil:
    # A shape for which `place` has found too little room; there is no more for its siblings with
    # more tasks than that.
    cdef int64_t room = notes.demands[shape].tasks - notes.nodes.lack
    cdef int32_t other = shape
    cdef const Demand* demand
    if notes.demands[shape].nodes_max == 1:
        room = notes.demands[shape].tasks - 1
    while True:
        demand = &notes.demands[other]
        if demand.tasks > room:
            notes.lack[other] = 1 if demand.nodes_max == 1 else demand.tasks - room
            notes.refused[other >> 6] |= <uint64_t> 1 << (other & 63)
        other = notes.sibling[other]
        if other == shape:
            return


cdef inline bint fits_now(NodeNotes* notes, job_index_t job) noexcept nogil:
    # Whether a job fits now, and where.
    cdef int32_t shape = notes.shape[job]
    if still_refused(notes, shape):
        return False
    if place(&notes.nodes, &notes.demands[shape]):
        return True
    refuse(notes, shape)
    return False


cdef inline void give_back(NodeNotes* notes, job_index_t job) noexcept nogil:
    cdef const Demand* demand = demand_of(notes, job)
    cdef Placed* placed = &notes.placed[job]
    cdef const Chunk* chunks = chunks_of(placed)
    cdef Py_ssize_t i
    cdef Free before
    cdef int32_t node
    for i in range(placed.count):
        node = chunks[i].node
        before = notes.nodes.free[node]
        change_node(
            notes, node, left_before(&notes.nodes, node, &before, demand, chunks[i].tasks)
        )
        ask_again(notes, node, &before)
    take_licences(notes.nodes.licences_free, demand, -1)


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
