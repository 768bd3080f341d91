"""The ring on which GLEAM's individuals live: partners, and who is replaced (paper 004, 3.3)."""

from libc.stdint cimport int32_t

from broker.planner._random cimport Random, random_share

cdef double SELECTION_PRESSURE = 1.4      # s of linear ranking


def parents_by_step(int size, int radius) -> list[list[int]]:
    """Returns the parents of each step of a generation.

    The ring is cut into as many blocks as possible that are longer than the radius; step k takes
    the k-th of each block. No two parents of a step are in each other's deme (`radius` neighbours
    on either side).
    """
    blocks = max(1, size // (radius + 1))
    borders = [block * size // blocks for block in range(blocks + 1)]
    longest = max(end - begin for begin, end in zip(borders, borders[1:]))
    return [
        [begin + k for begin, end in zip(borders, borders[1:]) if begin + k < end]
        for k in range(longest)
    ]


cdef inline int32_t neighbour_of(const Ring* ring, int32_t parent, int32_t number) noexcept nogil:
    # Left, right, next but one to the left, and so on.
    cdef int32_t distance = number // 2 + 1
    if number % 2 == 0:
        distance = -distance
    return (parent + distance + ring.size) % ring.size


cdef int32_t partner_of(
    const Ring* ring, int32_t parent, Random* random, int32_t* quality
) noexcept nogil:
    # By linear ranking in the deme, the worst having rank 0:
    # P(r) = [(2 − s) + (2s − 2)·r/(n − 1)]/n. Ties go by the place on the ring.
    cdef int32_t n = 2 * ring.radius
    cdef int32_t i, k, rank, neighbour, other
    cdef int32_t below = 0
    cdef int32_t chosen = -1
    cdef double drawn = random_share(random)
    cdef double cumulated = 0.0
    cdef double share
    # Small rings overlap: a neighbour on both sides counts once.
    n = min(n, ring.size - 1)
    for i in range(n):
        neighbour = neighbour_of(ring, parent, i)
        below += ring.fitness[neighbour] < ring.fitness[parent]
    quality[0] = min(QUALITIES - 1, QUALITIES * below // (n + 1))
    for rank in range(n):
        share = (
            2.0 - SELECTION_PRESSURE
            + (2.0 * SELECTION_PRESSURE - 2.0) * (rank / (n - 1.0) if n > 1 else 0.5)
        ) / n
        cumulated += share
        if drawn < cumulated or rank == n - 1:
            break
    for i in range(n):
        neighbour = neighbour_of(ring, parent, i)
        below = 0
        for k in range(n):
            other = neighbour_of(ring, parent, k)
            below += ring.fitness[other] < ring.fitness[neighbour] or (
                ring.fitness[other] == ring.fitness[neighbour] and k < i
            )
        if below == rank:
            chosen = neighbour
    return chosen


cdef bint is_accepted(const Ring* ring, int32_t parent, double fitness) noexcept nogil:
    # Local least with elitism: better than the weakest of the deme, and than its best if that is
    # the parent.
    cdef int32_t n = min(2 * ring.radius, ring.size - 1)
    cdef double weakest = ring.fitness[parent]
    cdef double best = ring.fitness[parent]
    cdef int32_t i
    for i in range(n):
        weakest = min(weakest, ring.fitness[neighbour_of(ring, parent, i)])
        best = max(best, ring.fitness[neighbour_of(ring, parent, i)])
    if best == ring.fitness[parent]:
        return fitness > best
    return fitness > weakest
