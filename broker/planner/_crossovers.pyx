"""What GLEAM makes children with: crossovers of two chromosomes, and its groups of operators.

Paper 004, section 3.3; `_chromosome` has the operators that change one chromosome.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

import numpy as np

from broker.planner._arena cimport Arena, arena_open
from broker.planner._chromosome cimport (
    Chromosome,
    Room,
    begin_of,
    change_strategy,
    chromosome_copy,
    cut_chromosome,
    cut_room,
    cut_segments,
    invert_segment,
    merge_segments,
    move_border,
    move_segment,
    shift_gene,
    split_segment,
)
from broker.planner._chromosome import checked
from broker.planner._random cimport (
    Random,
    random_begin,
    random_below,
    random_between,
    random_chance,
    random_share,
)
from broker.planner._scratch cimport STRATEGIES
from broker.planner._types cimport choice_t, task_t

cdef double RELINKED_LEAST = 0.3      # of the way between its parents that a child is from either


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
    # Missing genes go to the end of the last segment, in the order of the first parent.
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
    # The first segment, from one on, that begins at or after the place.
    cdef int32_t begin = 0
    cdef int32_t segment = 0
    while segment < one.segments and (begin < place or segment < from_segment):
        begin += one.length[segment]
        segment += 1
    return segment


cdef inline int32_t next_border(
    const Chromosome* one, int32_t segment, int32_t left, Random* random
) noexcept nogil:
    # The next of some borders after a segment, drawn in order: uniform about its share of the
    # rest, leaving room for the others.
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
    # 1-point and n-point crossover: the parents alternate at borders of segments of the first one
    # and the nearest borders of the second.
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
    # A segment of the second parent replaces one of the first. Its genes elsewhere are surplus;
    # those of the replaced segment are missing.
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
    # OX (Davis): the first parent's segments are cut into runs; every second run stays in place,
    # the other places are filled with the missing genes in the order of the second parent.
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


cdef int64_t inversions(const Chromosome* one, const int32_t* rank, int32_t count) noexcept nogil:
    # How many pairs of genes are not in the order of their ranks.
    cdef int64_t found = 0
    cdef int32_t i, k, mine
    for i in range(1, count):
        mine = rank[one.genes[i]]
        for k in range(i):
            found += rank[one.genes[k]] > mine
    return found


cdef inline int32_t note_descent(
    const Chromosome* one, int32_t place, int32_t count, Room* room, int32_t descents
) noexcept nogil:
    # Takes a place into the list of descents (room.genes; room.length has where), or out of it.
    cdef int32_t at
    cdef bint falls
    if place < 0 or place + 1 >= count:
        return descents
    falls = room.place[one.genes[place]] > room.place[one.genes[place + 1]]
    at = room.length[place]
    if falls and at < 0:
        room.genes[descents] = place
        room.length[place] = descents
        return descents + 1
    if not falls and at >= 0:
        descents -= 1
        room.genes[at] = room.genes[descents]
        room.length[room.genes[at]] = at
        room.length[place] = -1
    return descents


cdef void relink(
    Chromosome* child,
    const Chromosome* first,
    const Chromosome* second,
    double share,
    int32_t count,
    Room* room,
    Random* random,
) noexcept nogil:
    # A share of the way from the first parent to the second: neighbours that the second has the
    # other way round are exchanged, one random pair after another. What both parents have in the
    # same order, as all precedence if they keep it, is so in the child.
    cdef int32_t descents = 0
    cdef int32_t i, place
    cdef int64_t left
    chromosome_copy(child, first, count)
    for i in range(count):
        room.place[second.genes[i]] = i
    left = <int64_t> (share * inversions(first, room.place, count))
    for i in range(count):
        room.length[i] = -1
    for i in range(count - 1):
        descents = note_descent(child, i, count, room, descents)
    while left > 0:
        left -= 1
        place = room.genes[random_below(random, descents)]
        child.genes[place], child.genes[place + 1] = child.genes[place + 1], child.genes[place]
        for i in range(place - 1, place + 2):
            descents = note_descent(child, i, count, room, descents)


cdef void displace_little(
    Chromosome* child, int32_t count, int32_t strategies, Room* room, Random* random
) noexcept nogil:
    if random_chance(random, 0.8):
        shift_gene(child, count, random)
    if random_chance(random, 0.2):
        move_segment(child, room, random, False)
    if random_chance(random, 0.3):
        invert_segment(child, random)
    if random_chance(random, 0.3):
        move_border(child, random)
    if random_chance(random, 0.1):
        change_strategy(child, strategies, random)


cdef void displace_much(
    Chromosome* child, int32_t count, int32_t strategies, Room* room, Random* random
) noexcept nogil:
    if random_chance(random, 0.6):
        move_segment(child, room, random, False)
    if random_chance(random, 0.8):
        invert_segment(child, random)
    if random_chance(random, 0.5):
        move_segment(child, room, random, True)
    if random_chance(random, 0.3):
        merge_segments(child, random)
    if random_chance(random, 0.6):
        split_segment(child, random)
    if random_chance(random, 0.2):
        change_strategy(child, strategies, random)


cdef void inherit_choices(
    Chromosome* child,
    const Chromosome* parent,
    const Chromosome* other,
    int32_t count,
    double share,
    Random* random,
) noexcept nogil:
    # Choices of the parent; each with the probability `share` that of the partner instead.
    cdef int32_t i
    memcpy(child.choices, parent.choices, count * sizeof(choice_t))
    if share > 0.0:
        for i in range(count):
            if random_chance(random, share):
                child.choices[i] = other.choices[i]


cdef void make_child(
    int32_t group,
    Chromosome* child,
    const Chromosome* parent,
    const Chromosome* other,
    int32_t count,
    int32_t strategies,
    Room* room,
    Random* random,
) noexcept nogil:
    # The child of a parent and, for a crossover, its partner, by a group of operators.
    cdef int32_t segments = parent.segments
    cdef double share
    if group == SMALL_DISPLACEMENT:
        chromosome_copy(child, parent, count)
        displace_little(child, count, strategies, room, random)
    elif group == BIG_DISPLACEMENT:
        chromosome_copy(child, parent, count)
        displace_much(child, count, strategies, room, random)
    elif group == EXCHANGE:
        exchange_segment(child, parent, other, count, room, random)
    elif group == ONE_POINT:
        cross_points(child, parent, other, 1, count, room, random)
    elif group == N_POINT:
        segments = random_between(random, 2, max(2, segments - 1))
        cross_points(child, parent, other, segments, count, room, random)
    elif group == ORDER_3:
        order_cross(child, parent, other, 3, count, room, random)
    elif group == RELINKING:
        share = RELINKED_LEAST + (1.0 - 2.0 * RELINKED_LEAST) * random_share(random)
        relink(child, parent, other, share, count, room, random)
    else:
        segments = random_between(random, 3, max(3, segments))
        order_cross(child, parent, other, segments, count, room, random)


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
    "relink",
)


def apply_operator(str name, first, second, unsigned long long seed, int points=3):
    """Returns what an operator makes of a chromosome, or of two; for tests of single operators.

    `name` is one of `OPERATORS`; parents are genes, lengths of segments and strategy, the second
    being used by crossovers only; `points` are those of "n point", runs of "order n", or tenths of
    the way of "relink".
    ValueError if one is invalid.
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
    if name in ("one point", "n point", "exchange", "order 3", "order n", "relink"):
        if name == "relink":
            relink(&child, &one, &two, min(1.0, points / 10.0), count, &room, &random)
        elif name == "exchange":
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
