"""Chromosomes of GLEAM and their mutations (paper 004, section 3.3).

A chromosome is a sequence of all tasks, cut into segments that operators move, and a gene for the
resource allocation strategy. Segments do not matter to the schedule; they evolve with it. These
operators change one chromosome, in place; `_crossovers` has those of two.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport labs
from libc.string cimport memcpy, memmove

import numpy as np

from broker.planner._arena cimport Arena, cut
from broker.planner._scratch cimport STRATEGIES
from broker.planner._random cimport Random, random_below, random_between
from broker.planner._types cimport choice_t, task_t


cdef void cut_chromosome(Chromosome* one, Arena* arena, int32_t count) noexcept:
    one.genes = <task_t*> cut(arena, count, sizeof(task_t))
    one.length = <int32_t*> cut(arena, count, sizeof(int32_t))
    one.choices = NULL


cdef void cut_room(Room* room, Arena* arena, int32_t count) noexcept:
    room.genes = <task_t*> cut(arena, count, sizeof(task_t))
    room.length = <int32_t*> cut(arena, count, sizeof(int32_t))
    room.place = <int32_t*> cut(arena, count, sizeof(int32_t))
    room.mark = <char*> cut(arena, count, sizeof(char))


cdef void chromosome_copy(Chromosome* to, const Chromosome* source, int32_t count) noexcept nogil:
    memcpy(to.genes, source.genes, count * sizeof(task_t))
    memcpy(to.length, source.length, source.segments * sizeof(int32_t))
    to.segments = source.segments
    to.strategy = source.strategy
    if to.choices != NULL and source.choices != NULL:
        memcpy(to.choices, source.choices, count * sizeof(choice_t))


cdef void cut_segments(Chromosome* one, int32_t count, Random* random) noexcept nogil:
    # New segments, of uniform length.
    cdef int32_t left = count
    cdef int32_t length
    one.segments = 0
    while left > 0:
        length = min(left, random_between(random, SEGMENT_LEAST, SEGMENT_MOST))
        one.length[one.segments] = length
        one.segments += 1
        left -= length


cdef inline int32_t segment_at(const Chromosome* one, int32_t place) noexcept nogil:
    cdef int32_t segment = 0
    while place >= one.length[segment]:
        place -= one.length[segment]
        segment += 1
    return segment


cdef inline void drop_segment(Chromosome* one, int32_t segment) noexcept nogil:
    # Forgets a segment's length; its genes belong to another one by now.
    memmove(
        &one.length[segment],
        &one.length[segment + 1],
        (one.segments - segment - 1) * sizeof(int32_t),
    )
    one.segments -= 1


cdef void shift_gene(Chromosome* one, int32_t count, Random* random) noexcept nogil:
    # Moves a gene to another place, and into the segment there.
    cdef int32_t source, to, left, joined
    cdef task_t gene
    if count < 2:
        return
    source = random_below(random, count)
    to = random_below(random, count - 1)
    to += to >= source
    left = segment_at(one, source)
    joined = segment_at(one, to)
    gene = one.genes[source]
    if source < to:
        memmove(&one.genes[source], &one.genes[source + 1], (to - source) * sizeof(task_t))
    else:
        memmove(&one.genes[to + 1], &one.genes[to], (source - to) * sizeof(task_t))
    one.genes[to] = gene
    one.length[left] -= 1
    one.length[joined] += 1
    if one.length[left] == 0:
        drop_segment(one, left)


cdef void move_segment(Chromosome* one, Room* room, Random* random, bint merge) noexcept nogil:
    # Moves a segment among the segments, and may merge it with its successor.
    cdef int32_t source, to, begin, length, target
    if one.segments < 2:
        return
    source = random_below(random, one.segments)
    to = random_below(random, one.segments - 1)
    to += to >= source
    begin = begin_of(one, source)
    length = one.length[source]
    memcpy(room.genes, &one.genes[begin], length * sizeof(task_t))
    if source < to:
        # After the segment `to`.
        target = begin_of(one, to + 1) - length
        memmove(&one.genes[begin], &one.genes[begin + length], (target - begin) * sizeof(task_t))
        memmove(&one.length[source], &one.length[source + 1], (to - source) * sizeof(int32_t))
    else:
        # Before it.
        target = begin_of(one, to)
        memmove(&one.genes[target + length], &one.genes[target], (begin - target) * sizeof(task_t))
        memmove(&one.length[to + 1], &one.length[to], (source - to) * sizeof(int32_t))
    memcpy(&one.genes[target], room.genes, length * sizeof(task_t))
    one.length[to] = length
    if merge:
        merge_at(one, to if to + 1 < one.segments else to - 1)


cdef inline void merge_at(Chromosome* one, int32_t segment) noexcept nogil:
    one.length[segment] += one.length[segment + 1]
    drop_segment(one, segment + 1)


cdef void invert_segment(Chromosome* one, Random* random) noexcept nogil:
    cdef int32_t segment = random_below(random, one.segments)
    cdef int32_t low = begin_of(one, segment)
    cdef int32_t high = low + one.length[segment] - 1
    while low < high:
        one.genes[low], one.genes[high] = one.genes[high], one.genes[low]
        low += 1
        high -= 1


cdef void merge_segments(Chromosome* one, Random* random) noexcept nogil:
    if one.segments >= 2:
        merge_at(one, random_below(random, one.segments - 1))


cdef void move_border(Chromosome* one, Random* random) noexcept nogil:
    # Moves the border between two segments between their other ends.
    cdef int32_t segment, both
    if one.segments < 2:
        return
    segment = random_below(random, one.segments - 1)
    both = one.length[segment] + one.length[segment + 1]
    one.length[segment] = random_between(random, 1, both - 1)
    one.length[segment + 1] = both - one.length[segment]


cdef void split_segment(Chromosome* one, Random* random) noexcept nogil:
    cdef int32_t segment = random_below(random, one.segments)
    cdef int32_t length = one.length[segment]
    if length < 2:
        return
    memmove(
        &one.length[segment + 1], &one.length[segment], (one.segments - segment) * sizeof(int32_t)
    )
    one.segments += 1
    one.length[segment] = random_between(random, 1, length - 1)
    one.length[segment + 1] = length - one.length[segment]


cdef void change_strategy(
    Chromosome* one, int32_t strategies, Random* random
) noexcept nogil:
    # Uniform mutation of the RAS gene to another value.
    one.strategy = (one.strategy + 1 + random_below(random, strategies - 1)) % strategies


cdef double distance_fast(
    const Chromosome* first, const Chromosome* second, int32_t count, Room* room
) noexcept nogil:
    # Mean distance of the same genes, as a share of the length.
    cdef double total = 0.0
    cdef int32_t i
    for i in range(count):
        room.place[first.genes[i]] = i
    for i in range(count):
        total += labs(room.place[second.genes[i]] - i)
    return total / count / count if count else 0.0


def checked(chromosome):
    """Returns a chromosome with its genes as an array; ValueError if it is invalid."""
    genes, lengths, strategy = chromosome
    if not len(genes) or sorted(genes) != list(range(len(genes))):
        raise ValueError("genes are every task once, and at least one")
    if min(lengths) < 1 or sum(lengths) != len(genes):
        raise ValueError(f"segments of {sum(lengths)} genes, for {len(genes)}; none is empty")
    if not 0 <= strategy < STRATEGIES:
        raise ValueError(f"strategy {strategy}; from 0 to {STRATEGIES - 1}")
    return np.array(genes, np.int32), list(lengths), strategy
