# Nodes: what is free on each, which of them a job would get, and what it gets.
#
# The rules are in docs/nodes.md. A job's demand is kept once for all jobs that ask for the same;
# such jobs are of one shape.
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from lrms_sim.kernel._memory cimport safe_calloc, safe_realloc

cdef enum:
    KINDS_MAX = 64
    NO_LIMIT = 0x7FFFFFFF

cdef extern from *:
    """
    static inline int lowest_bit(unsigned long long word) { return __builtin_ctzll(word); }
    """
    int lowest_bit(uint64_t word) noexcept nogil

cdef struct LicenceUse:
    int32_t licence              # its number on the machine
    int64_t count

cdef struct Demand:
    int32_t tasks
    int32_t cores                # of a task
    int32_t most                 # tasks that one node may get
    int32_t nodes_min
    int32_t nodes_max            # NO_LIMIT for any
    int32_t task_gpus
    int32_t node_gpus
    int32_t exclusive
    int64_t task_memory
    int64_t node_memory
    uint64_t kinds               # those that will do, as bits
    const LicenceUse* licences
    int32_t licence_count        # of those that the job takes, nearly always 0

cdef struct Free:
    # What nobody holds on a node.
    int32_t cores
    int32_t gpus
    int64_t memory
    int32_t jobs                 # that run there

cdef struct Chunk:
    int32_t node
    int32_t tasks

cdef struct Placed:
    # Where a running job is; one chunk needs no memory of its own.
    Chunk* chunks
    Py_ssize_t count
    Chunk one

cdef struct Kind:
    int32_t first                # its nodes are first … end - 1
    int32_t end
    Free whole                   # a node on which nothing runs
    int64_t cores_free           # of all its nodes
    # By number of free cores, its nodes as bits; and how many these are.
    uint64_t* bits
    int32_t* row_count
    uint64_t* rows               # the numbers that some node has, as bits
    Py_ssize_t words             # of one row

cdef struct Nodes:
    int32_t count
    int32_t kind_count
    bint best_fit
    Kind[KINDS_MAX] kind
    Free* free                   # by node
    int32_t* kind_of             # by node
    int64_t* licences_free       # by licence, of the machine as a whole
    int32_t licence_count
    # What `place` has found, and room to sort in.
    Chunk* found
    Py_ssize_t found_count
    Chunk* candidates
    Py_ssize_t* of_room          # by room, first place among the sorted
    int64_t lack                 # where nodes were lacking, room that they would need besides


cdef inline void demand_of_processors(Demand* demand, int32_t width) noexcept nogil:
    # What a job asks for that says no more than how many processors.
    memset(demand, 0, sizeof(Demand))
    demand.tasks = width
    demand.cores = 1
    demand.most = width
    demand.nodes_min = 1
    demand.nodes_max = NO_LIMIT
    demand.kinds = ~<uint64_t> 0


cdef inline bint licences_suffice(
    const Demand* demand, const int64_t* licences_free
) noexcept nogil:
    cdef int32_t i
    for i in range(demand.licence_count):
        if demand.licences[i].count > licences_free[demand.licences[i].licence]:
            return False
    return True


cdef inline void take_licences(
    int64_t* licences_free, const Demand* demand, int32_t sign
) noexcept nogil:
    # Takes what a job holds, or gives it back with sign -1.
    cdef int32_t i
    for i in range(demand.licence_count):
        licences_free[demand.licences[i].licence] -= sign * demand.licences[i].count


cdef inline int32_t room_on(const Demand* demand, const Free* left) noexcept nogil:
    # How many tasks of a job a node has room for, as far as the job may use it.
    cdef int64_t tasks, memory
    cdef int32_t gpus
    if left.cores < demand.cores or (demand.exclusive and left.jobs):
        return 0
    tasks = left.cores if demand.cores == 1 else left.cores // demand.cores
    if tasks > demand.most:
        tasks = demand.most
    # GPUs before memory: that of so many tasks is then within 64 bits.
    gpus = left.gpus - demand.node_gpus
    if gpus < tasks * demand.task_gpus or gpus < 0:
        if gpus < demand.task_gpus:
            return 0
        if demand.task_gpus > 0:
            tasks = gpus // demand.task_gpus
    memory = left.memory - demand.node_memory
    if memory < tasks * demand.task_memory or memory < 0:
        if memory < demand.task_memory:
            return 0
        if demand.task_memory > 0:
            tasks = memory // demand.task_memory
    return <int32_t> tasks


cdef inline void take_from(
    Free* left, const Demand* demand, int32_t tasks, int32_t sign
) noexcept nogil:
    # Takes what some tasks of a job hold on a node, or gives it back with sign -1. Of an exclusive
    # job the caller has to take all.
    left.cores -= sign * tasks * demand.cores
    left.gpus -= sign * (demand.node_gpus + tasks * demand.task_gpus)
    left.memory -= sign * (demand.node_memory + tasks * demand.task_memory)
    left.jobs += sign


cdef inline Free left_after(
    const Free* before, const Demand* demand, int32_t tasks
) noexcept nogil:
    cdef Free left = before[0]
    if demand.exclusive:
        left.cores = 0
        left.gpus = 0
        left.memory = 0
        left.jobs = 1
    else:
        take_from(&left, demand, tasks, 1)
    return left


cdef inline Free left_before(
    const Nodes* nodes, int32_t node, const Free* after, const Demand* demand, int32_t tasks
) noexcept nogil:
    # As it is once these tasks have ended.
    cdef Free left = after[0]
    if demand.exclusive:
        left = nodes.kind[nodes.kind_of[node]].whole
    else:
        take_from(&left, demand, tasks, -1)
    return left


cdef inline void set_free(Nodes* nodes, int32_t node, Free left) noexcept nogil:
    cdef Kind* kind = &nodes.kind[nodes.kind_of[node]]
    cdef int32_t before = nodes.free[node].cores
    cdef Py_ssize_t place
    cdef uint64_t bit
    if before != left.cores:
        place = node - kind.first
        bit = <uint64_t> 1 << (place & 63)
        place >>= 6
        kind.bits[before * kind.words + place] &= ~bit
        kind.row_count[before] -= 1
        if kind.row_count[before] == 0:
            kind.rows[before >> 6] &= ~(<uint64_t> 1 << (before & 63))
        kind.rows[left.cores >> 6] |= <uint64_t> 1 << (left.cores & 63)
        kind.bits[left.cores * kind.words + place] |= bit
        kind.row_count[left.cores] += 1
        kind.cores_free += left.cores - before
    nodes.free[node] = left


cdef inline int nodes_open(Nodes* nodes, bint best_fit) except -1:
    # Of kinds whose `first`, `end` and `whole` are set, and of so many licences; the caller says
    # how many of each are free.
    cdef Kind* kind
    cdef int32_t node, number
    cdef Py_ssize_t cores_max = 0
    nodes.best_fit = best_fit
    nodes.count = nodes.kind[nodes.kind_count - 1].end
    nodes.free = <Free*> safe_calloc(nodes.count, sizeof(Free), b"nodes")
    nodes.kind_of = <int32_t*> safe_calloc(nodes.count, sizeof(int32_t), b"nodes")
    nodes.licences_free = <int64_t*> safe_calloc(
        nodes.licence_count, sizeof(int64_t), b"licences"
    )
    nodes.found = <Chunk*> safe_calloc(nodes.count, sizeof(Chunk), b"nodes")
    nodes.candidates = <Chunk*> safe_calloc(nodes.count, sizeof(Chunk), b"nodes")
    for number in range(nodes.kind_count):
        kind = &nodes.kind[number]
        kind.words = (kind.end - kind.first + 63) >> 6
        kind.bits = <uint64_t*> safe_calloc(
            (kind.whole.cores + 1) * kind.words, sizeof(uint64_t), b"nodes by free cores"
        )
        kind.row_count = <int32_t*> safe_calloc(
            kind.whole.cores + 1, sizeof(int32_t), b"nodes by free cores"
        )
        kind.rows = <uint64_t*> safe_calloc(
            (kind.whole.cores >> 6) + 1, sizeof(uint64_t), b"nodes by free cores"
        )
        kind.rows[kind.whole.cores >> 6] |= <uint64_t> 1 << (kind.whole.cores & 63)
        kind.cores_free = <int64_t> kind.whole.cores * (kind.end - kind.first)
        kind.row_count[kind.whole.cores] = kind.end - kind.first
        cores_max = max(cores_max, kind.whole.cores)
        for node in range(kind.first, kind.end):
            nodes.free[node] = kind.whole
            nodes.kind_of[node] = number
            kind.bits[kind.whole.cores * kind.words + ((node - kind.first) >> 6)] |= (
                <uint64_t> 1 << ((node - kind.first) & 63)
            )
    nodes.of_room = <Py_ssize_t*> safe_calloc(cores_max + 2, sizeof(Py_ssize_t), b"nodes")
    return 0


cdef inline void nodes_close(Nodes* nodes) noexcept:
    cdef int32_t number
    free(nodes.free)
    free(nodes.kind_of)
    free(nodes.licences_free)
    free(nodes.found)
    free(nodes.candidates)
    free(nodes.of_room)
    for number in range(nodes.kind_count):
        free(nodes.kind[number].bits)
        free(nodes.kind[number].row_count)
        free(nodes.kind[number].rows)
    memset(nodes, 0, sizeof(Nodes))


# --- where a job would go -------------------------------------------------------------------

cdef struct Search:
    # What is still to be placed while nodes are gone through in their order.
    int32_t tasks
    Py_ssize_t used
    bint collects                # every node with room, and gives none of them its tasks


cdef inline bint offer_node(
    Nodes* nodes, const Demand* demand, Search* search, int32_t node
) noexcept nogil:
    # Gives a node its tasks, or notes its room. Returns whether nothing more is to be looked at:
    # all is placed, or the job has as many nodes as it may have.
    cdef int32_t tasks = room_on(demand, &nodes.free[node])
    cdef int32_t reserved
    if tasks == 0:
        return False
    if search.collects:
        nodes.candidates[search.used].node = node
        nodes.candidates[search.used].tasks = tasks
        nodes.of_room[tasks] += 1
        search.used += 1
        return False
    if demand.nodes_max == 1 and tasks < demand.tasks:
        return False
    # Every node that the job has to have besides gets a task.
    reserved = demand.nodes_min - <int32_t> search.used - 1
    if reserved < 0:
        reserved = 0
    if tasks > search.tasks - reserved:
        tasks = search.tasks - reserved
    nodes.found[search.used].node = node
    nodes.found[search.used].tasks = tasks
    search.used += 1
    search.tasks -= tasks
    return search.tasks == 0 or search.used == demand.nodes_max


cdef inline bint in_order(
    Nodes* nodes, const Demand* demand, Search* search
) noexcept nogil:
    # Goes through the nodes in their order; returns whether all is placed.
    cdef int32_t number, node, cores, least
    cdef Kind* kind
    cdef Py_ssize_t row, word
    cdef uint64_t rows, bits
    least = demand.cores
    if demand.nodes_max == 1:
        least *= demand.tasks
    for number in range(nodes.kind_count):
        kind = &nodes.kind[number]
        if not (demand.kinds >> number) & 1 or kind.whole.cores < least:
            continue
        if nodes.best_fit:
            row = least >> 6
            rows = kind.rows[row] & ~<uint64_t> 0 << (least & 63)
            while True:
                while rows:
                    cores = <int32_t> (row * 64) + lowest_bit(rows)
                    rows &= rows - 1
                    for word in range(kind.words):
                        bits = kind.bits[cores * kind.words + word]
                        while bits:
                            node = kind.first + <int32_t> (word * 64) + lowest_bit(bits)
                            bits &= bits - 1
                            if offer_node(nodes, demand, search, node):
                                return search.tasks == 0
                row += 1
                if row > kind.whole.cores >> 6:
                    break
                rows = kind.rows[row]
        else:
            for node in range(kind.first, kind.end):
                if nodes.free[node].cores >= least and offer_node(nodes, demand, search, node):
                    return search.tasks == 0
    return False


cdef inline bint largest_first(
    Nodes* nodes, const Demand* demand, Search* search
) noexcept nogil:
    # The nodes with the most room first, those of equal room in their order.
    cdef Py_ssize_t count, i, place, next_place
    cdef int32_t room, most, tasks, reserved
    most = 0
    for i in range(nodes.kind_count):
        most = max(most, nodes.kind[i].whole.cores)
    memset(nodes.of_room, 0, (most + 2) * sizeof(Py_ssize_t))
    search.used = 0
    search.collects = True
    in_order(nodes, demand, search)
    count = search.used
    place = 0
    for room in range(most, 0, -1):
        next_place = place + nodes.of_room[room]
        nodes.of_room[room] = place
        place = next_place
    for i in range(count):
        room = nodes.candidates[i].tasks
        nodes.found[nodes.of_room[room]] = nodes.candidates[i]
        nodes.of_room[room] += 1
    search.used = 0
    search.tasks = demand.tasks
    while search.used < count and search.tasks > 0 and search.used < demand.nodes_max:
        reserved = max(0, demand.nodes_min - <int32_t> search.used - 1)
        tasks = min(nodes.found[search.used].tasks, search.tasks - reserved)
        nodes.found[search.used].tasks = tasks
        search.tasks -= tasks
        search.used += 1
    return search.tasks == 0


cdef inline bint place(Nodes* nodes, const Demand* demand) noexcept nogil:
    # Whether a job fits now; `nodes.found` then says where it goes.
    cdef Search search
    cdef int32_t number
    cdef int64_t cores = 0
    for number in range(nodes.kind_count):
        if (demand.kinds >> number) & 1:
            cores += nodes.kind[number].cores_free
    nodes.lack = demand.tasks - cores // demand.cores
    if nodes.lack > 0:
        return False
    nodes.lack = 0
    if not licences_suffice(demand, nodes.licences_free):
        return False
    search.tasks = demand.tasks
    search.used = 0
    search.collects = False
    if not in_order(nodes, demand, &search) and (
        demand.nodes_max == 1 or demand.nodes_max == NO_LIMIT
        or search.used < demand.nodes_max or not largest_first(nodes, demand, &search)
    ):
        nodes.lack = 1 if demand.nodes_max == 1 else search.tasks
        return False
    nodes.found_count = search.used
    return True
