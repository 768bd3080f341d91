# Chromosomes of GLEAM and their mutations.
from libc.stdint cimport int32_t

from broker.planner._arena cimport Arena
from broker.planner._random cimport Random
from broker.planner._types cimport choice_t, task_t

cdef enum:
    SEGMENT_LEAST = 4     # lengths of new segments
    SEGMENT_MOST = 10

cdef struct Chromosome:
    task_t* genes            # every task once
    int32_t* length          # of each segment; none is empty
    int32_t segments
    int32_t strategy         # the RAS gene
    choice_t* choices        # by task, instead of the strategy's; NULL: the strategy decides

cdef struct Room:
    # Working memory of operators, for one thread: as many rows as there are genes.
    task_t* genes
    int32_t* length
    int32_t* place
    char* mark

cdef void cut_chromosome(Chromosome* one, Arena* arena, int32_t count) noexcept
cdef void cut_room(Room* room, Arena* arena, int32_t count) noexcept
cdef void chromosome_copy(Chromosome* to, const Chromosome* source, int32_t count) noexcept nogil
cdef void cut_segments(Chromosome* one, int32_t count, Random* random) noexcept nogil
cdef void shift_gene(Chromosome* one, int32_t count, Random* random) noexcept nogil
cdef void move_segment(Chromosome* one, Room* room, Random* random, bint merge) noexcept nogil
cdef void invert_segment(Chromosome* one, Random* random) noexcept nogil
cdef void merge_segments(Chromosome* one, Random* random) noexcept nogil
cdef void move_border(Chromosome* one, Random* random) noexcept nogil
cdef void split_segment(Chromosome* one, Random* random) noexcept nogil
cdef void change_strategy(
    Chromosome* one, int32_t strategies, Random* random
) noexcept nogil
cdef double distance_fast(
    const Chromosome* first, const Chromosome* second, int32_t count, Room* room
) noexcept nogil

cdef inline int32_t begin_of(const Chromosome* one, int32_t segment) noexcept nogil:
    cdef int32_t place = 0
    cdef int32_t i
    for i in range(segment):
        place += one.length[i]
    return place
