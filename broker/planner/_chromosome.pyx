"""Chromosomes of GLEAM and their operators (paper 004, section 3.3).

A chromosome is every task once, in an order that matters, cut into segments that operators move,
and a gene for the resource allocation strategy. Segments mean nothing to the schedule; they evolve
with it. One operator is one function; those that change a chromosome do so in place.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport labs
from libc.string cimport memcpy, memmove, memset

import numpy as np

from broker.planner._arena cimport Arena, arena_open, cut
from broker.planner._scratch cimport STRATEGIES
from broker.planner._random cimport (
    Random,
    random_begin,
    random_below,
    random_between,
)
from broker.planner._types cimport task_t


cdef void cut_chromosome(Chromosome* one, Arena* arena, int32_t count) noexcept:
    one.genes = <task_t*> cut(arena, count, sizeof(task_t))
    one.length = <int32_t*> cut(arena, count, sizeof(int32_t))


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


cdef inline int32_t begin_of(const Chromosome* one, int32_t segment) noexcept nogil:
    # Place of a segment's first gene.
    cdef int32_t place = 0
    cdef int32_t i
    for i in range(segment):
        place += one.length[i]
    return place


cdef inline int32_t segment_at(const Chromosome* one, int32_t place) noexcept nogil:
    cdef int32_t segment = 0
    while place >= one.length[segment]:
        place -= one.length[segment]
        segment += 1
    return segment


cdef inline void drop_segment(Chromosome* one, int32_t segment) noexcept nogil:
    # Forgets a segment's length; its genes are someone else's by now.
    memmove(
        &one.length[segment],
        &one.length[segment + 1],
        (one.segments - segment - 1) * sizeof(int32_t),
    )
    one.segments -= 1


cdef void shift_gene(Chromosome* one, int32_t count, Random* random) noexcept nogil:
    # A gene goes to another place, and into the segment that is there.
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
    # A segment goes to another place among the segments, and may become one with its successor.
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
        # Behind the segment `to`.
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
    # A segment becomes one with its successor.
    if one.segments >= 2:
        merge_at(one, random_below(random, one.segments - 1))


cdef void move_border(Chromosome* one, Random* random) noexcept nogil:
    # The border between two segments goes elsewhere between their other ends.
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
    # Uniform mutation of the RAS gene's parameter, to another value.
    one.strategy = (one.strategy + 1 + random_below(random, strategies - 1)) % strategies


cdef inline void append_segments(
    Chromosome* child,
    int32_t* filled,
    const Chromosome* source,
    int32_t from_segment,
    int32_t to_segment,
    char* have,
) noexcept nogil:
    # Segments of a parent without the genes that the child has already (genetic repair: surplus).
    cdef int32_t place = begin_of(source, from_segment)
    cdef int32_t segment, i, kept
    cdef task_t gene
    for segment in range(from_segment, to_segment):
        kept = 0
        for i in range(place, place + source.length[segment]):
            gene = source.genes[i]
            if not have[gene]:
                have[gene] = 1
                child.genes[filled[0] + kept] = gene
                kept += 1
        place += source.length[segment]
        if kept > 0:
            child.length[child.segments] = kept
            child.segments += 1
            filled[0] += kept


cdef inline void append_missing(
    Chromosome* child, int32_t filled, const Chromosome* source, int32_t count, const char* have
) noexcept nogil:
    # Genes that no part had go to the end of the last segment, in the order of the first parent.
    cdef int32_t i
    cdef int32_t before = filled
    for i in range(count):
        if not have[source.genes[i]]:
            child.genes[filled] = source.genes[i]
            filled += 1
    if child.segments == 0:
        child.segments = 1
        child.length[0] = 0
    child.length[child.segments - 1] += filled - before


cdef inline int32_t border_near(
    const Chromosome* one, int32_t place, int32_t from_segment
) noexcept nogil:
    # The first segment, from one on, that begins at the place or behind it.
    cdef int32_t begin = 0
    cdef int32_t segment = 0
    while segment < one.segments and (begin < place or segment < from_segment):
        begin += one.length[segment]
        segment += 1
    return segment


cdef inline int32_t next_border(
    const Chromosome* one, int32_t segment, int32_t left, Random* random
) noexcept nogil:
    # The next of so many borders behind a segment, drawn in order: uniform about its share of
    # what is left, and so that each of the others finds a place too.
    cdef int32_t ahead = one.segments - segment
    cdef int32_t most = max(1, min(2 * ahead // (left + 1), ahead - left))
    return segment + random_between(random, 1, most)


cdef void cross_points(
    Chromosome* child,
    const Chromosome* first,
    const Chromosome* second,
    int32_t points,
    int32_t count,
    Room* room,
    Random* random,
) noexcept nogil:
    # 1-point and n-point crossover: the parents take turns, changing at borders of segments of
    # the first one and at the nearest borders of the second.
    cdef int32_t filled = 0
    cdef int32_t segment = 0
    cdef int32_t other = 0
    cdef int32_t left = min(points, first.segments - 1)
    cdef int32_t place = 0
    cdef int32_t next_segment, next_other
    cdef bint from_first = True
    memset(room.mark, 0, count)
    child.segments = 0
    child.strategy = first.strategy
    while segment < first.segments:
        next_segment = first.segments
        if left > 0:
            next_segment = next_border(first, segment, left, random)
            left -= 1
        place += begin_of(first, next_segment) - begin_of(first, segment)
        next_other = border_near(second, place, other)
        if next_segment == first.segments:
            next_other = second.segments
        if from_first:
            append_segments(child, &filled, first, segment, next_segment, room.mark)
        else:
            append_segments(child, &filled, second, other, next_other, room.mark)
        from_first = not from_first
        segment = next_segment
        other = next_other
    append_missing(child, filled, first, count, room.mark)


cdef void exchange_segment(
    Chromosome* child,
    const Chromosome* first,
    const Chromosome* second,
    int32_t count,
    Room* room,
    Random* random,
) noexcept nogil:
    # A segment of the second parent takes the place of one of the first. Elsewhere its genes are
    # surplus; those of the segment that went are missing.
    cdef int32_t gone = random_below(random, first.segments)
    cdef int32_t taken = random_below(random, second.segments)
    cdef int32_t begin = begin_of(second, taken)
    cdef int32_t length = second.length[taken]
    cdef int32_t filled = 0
    cdef int32_t i
    memset(room.mark, 0, count)
    for i in range(begin, begin + length):
        room.mark[second.genes[i]] = 1
    child.segments = 0
    child.strategy = first.strategy
    append_segments(child, &filled, first, 0, gone, room.mark)
    memcpy(&child.genes[filled], &second.genes[begin], length * sizeof(task_t))
    child.length[child.segments] = length
    child.segments += 1
    filled += length
    append_segments(child, &filled, first, gone + 1, first.segments, room.mark)
    append_missing(child, filled, first, count, room.mark)


cdef void order_cross(
    Chromosome* child,
    const Chromosome* first,
    const Chromosome* second,
    int32_t runs,
    int32_t count,
    Room* room,
    Random* random,
) noexcept nogil:
    # OX (Davis): the first parent's segments are cut into runs; every second run stays where it
    # is, the other places are filled with what is missing in the order of the second parent.
    cdef int32_t left = min(runs, first.segments)
    cdef int32_t segment = 0
    cdef int32_t place = 0
    cdef int32_t source = 0
    cdef int32_t next_segment, i
    cdef bint stays = False
    memset(room.mark, 0, count)
    memset(room.place, 0, count * sizeof(int32_t))
    chromosome_copy(child, first, count)
    while segment < first.segments:
        left -= 1
        next_segment = first.segments
        if left > 0:
            next_segment = next_border(first, segment, left, random)
        while segment < next_segment:
            for i in range(place, place + first.length[segment]):
                if stays:
                    room.mark[first.genes[i]] = 1
                else:
                    room.place[i] = 1
            place += first.length[segment]
            segment += 1
        stays = not stays
    for i in range(count):
        if room.place[i]:
            while room.mark[second.genes[source]]:
                source += 1
            child.genes[i] = second.genes[source]
            source += 1


cdef double distance_fast(
    const Chromosome* first, const Chromosome* second, int32_t count, Room* room
) noexcept nogil:
    # How far apart the same genes are on average, as a share of the length.
    cdef double total = 0.0
    cdef int32_t i
    for i in range(count):
        room.place[first.genes[i]] = i
    for i in range(count):
        total += labs(room.place[second.genes[i]] - i)
    return total / count / count if count else 0.0


OPERATORS = (
    "cut",
    "shift",
    "move",
    "move and merge",
    "invert",
    "merge",
    "border",
    "split",
    "strategy",
    "one point",
    "n point",
    "exchange",
    "order 3",
    "order n",
)
"""Names for `apply_operator`."""


def apply_operator(str name, first, second, unsigned long long seed, int points=3):
    """Returns what an operator makes of a chromosome, or of two: operators, one by one, for tests.

    Args:
        name: one of `OPERATORS`.
        first: genes, lengths of segments and strategy of the first parent.
        second: the same of the second one; crossovers alone look at it.
        seed: of the generator.
        points: of "n point", runs of "order n".

    Raises:
        ValueError: there is no such operator, or a chromosome is not one.
    """
    if name not in OPERATORS:
        raise ValueError(f"there is no operator {name!r}; one of {', '.join(OPERATORS)}")
    parents = [checked(each) for each in (first, second)]
    cdef int32_t count = len(parents[0][0])
    if len(parents[1][0]) != count:
        raise ValueError(f"chromosomes of {count} and {len(parents[1][0])} genes")
    cdef Arena arena = Arena(NULL, 0)
    cdef Room room
    cdef Chromosome one, two, child
    cdef Random random
    for turn in range(2):
        if turn == 1:
            memory = np.zeros(arena.used, np.uint8)
            arena_open(&arena, memory)
        cut_room(&room, &arena, count)
        cut_chromosome(&one, &arena, count)
        cut_chromosome(&two, &arena, count)
        cut_chromosome(&child, &arena, count)
    write(&one, parents[0])
    write(&two, parents[1])
    random_begin(&random, seed, 0, 0)
    if name in ("one point", "n point", "exchange", "order 3", "order n"):
        if name == "exchange":
            exchange_segment(&child, &one, &two, count, &room, &random)
        elif name.endswith("point"):
            points = 1 if name == "one point" else points
            cross_points(&child, &one, &two, points, count, &room, &random)
        else:
            points = 3 if name == "order 3" else points
            order_cross(&child, &one, &two, points, count, &room, &random)
        one = child
    else:
        mutate(name, &one, count, &room, &random)
    return (
        [one.genes[i] for i in range(count)],
        [one.length[i] for i in range(one.segments)],
        one.strategy,
    )


cdef mutate(str name, Chromosome* one, int32_t count, Room* room, Random* random):
    if name == "cut":
        cut_segments(one, count, random)
    elif name == "shift":
        shift_gene(one, count, random)
    elif name in ("move", "move and merge"):
        move_segment(one, room, random, name != "move")
    elif name == "invert":
        invert_segment(one, random)
    elif name == "merge":
        merge_segments(one, random)
    elif name == "border":
        move_border(one, random)
    elif name == "split":
        split_segment(one, random)
    else:
        change_strategy(one, STRATEGIES, random)


cdef write(Chromosome* one, source):
    cdef int32_t i
    genes, lengths, one.strategy = source
    for i, gene in enumerate(genes):
        one.genes[i] = gene
    for i, length in enumerate(lengths):
        one.length[i] = length
    one.segments = len(lengths)


def checked(chromosome):
    """Returns a chromosome with its genes as an array.

    Raises:
        ValueError: a gene is missing or comes twice, or the segments are not those of the genes.
    """
    genes, lengths, strategy = chromosome
    if not len(genes) or sorted(genes) != list(range(len(genes))):
        raise ValueError("genes are every task once, and at least one")
    if min(lengths) < 1 or sum(lengths) != len(genes):
        raise ValueError(f"segments of {sum(lengths)} genes, for {len(genes)}; none is empty")
    if not 0 <= strategy < STRATEGIES:
        raise ValueError(f"strategy {strategy}; from 0 to {STRATEGIES - 1}")
    return np.array(genes, np.int32), list(lengths), strategy
