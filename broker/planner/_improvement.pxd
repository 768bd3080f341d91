# Local searchers: each tries to improve one chromosome and keeps the better one in place.
from libc.stdint cimport int32_t

from broker.planner._chromosome cimport Chromosome
from broker.planner._random cimport Random
from broker.planner._worker cimport Bench

cdef enum:
    SEARCH_STRATEGY = 1     # the paper's: other values of the RAS gene
    SEARCH_SHIFT = 2        # tasks that the schedule shows to be in the way go forward
    SEARCH_BLOCKS = 4       # tabu search on critical blocks, where the problem is of that kind
    SEARCH_JUSTIFY = 8      # every schedule is justified when it is built; not by `improve_fast`

cdef double improve_fast(
    Bench* bench,
    Chromosome* one,
    double fitness,
    int32_t searchers,
    int32_t strategies,
    int32_t trials,
    int32_t iterations,
    Random* random,
) except? -1.0 nogil
