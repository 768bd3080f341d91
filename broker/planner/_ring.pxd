# The ring on which GLEAM's individuals live, each among the neighbours of its deme.
from libc.stdint cimport int32_t

from broker.planner._random cimport Random

cdef enum:
    QUALITIES = 3         # of a parent in its deme: poor, medium, good

cdef struct Ring:
    const double* fitness      # by individual
    int32_t size
    int32_t radius             # neighbours of a deme on either side

cdef int32_t partner_of(
    const Ring* ring, int32_t parent, Random* random, int32_t* quality
) noexcept nogil
cdef bint is_accepted(const Ring* ring, int32_t parent, double fitness) noexcept nogil
