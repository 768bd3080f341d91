# Times of many sites, of which few are due at one moment: a tree of minima over them.
#
# The leaves are the sites in order, each node has the earlier of its two times. A change and each
# due site cost as many steps as the tree has levels; other sites cost nothing. Due sites are found
# in site order, unlike with a heap: sums over sites are then added in the same order as by a loop
# over all of them.
from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free

from lrms_sim.kernel._types cimport seconds_t

cdef struct DueTimes:
    seconds_t* least             # the root at 1, the children of i at 2i and 2i + 1
    Py_ssize_t leaves            # a power of two; site i is at leaves + i


cdef inline int due_open(DueTimes* due, Py_ssize_t count) except -1:
    # For `count` sites, none of them ever due.
    cdef Py_ssize_t i
    due.leaves = 1
    while due.leaves < count:
        due.leaves *= 2
    due.least = <seconds_t*> calloc(2 * due.leaves, sizeof(seconds_t))
    if due.least == NULL:
        raise MemoryError(f"no memory for {count} sites")
    for i in range(2 * due.leaves):
        due.least[i] = INFINITY
    return 0


cdef inline void due_close(DueTimes* due) noexcept nogil:
    free(due.least)
    due.least = NULL


cdef inline void due_set(DueTimes* due, Py_ssize_t site, seconds_t time) noexcept nogil:
    cdef Py_ssize_t node = due.leaves + site
    cdef seconds_t beside
    due.least[node] = time
    while node > 1:
        beside = due.least[node ^ 1]
        if beside < time:
            time = beside
        node >>= 1
        if due.least[node] == time:
            return
        due.least[node] = time


cdef inline Py_ssize_t due_next(
    const DueTimes* due, Py_ssize_t site, seconds_t now
) noexcept nogil:
    # The first due site from this one on; -1 for none.
    cdef Py_ssize_t node = due.leaves + site
    if site >= due.leaves or due.least[1] > now:
        return -1
    if due.least[node] <= now:
        return site
    while node & 1 or due.least[node + 1] > now:
        node >>= 1
        if node <= 1:
            return -1
    node += 1
    while node < due.leaves:
        node *= 2
        if due.least[node] > now:
            node += 1
    return node - due.leaves
