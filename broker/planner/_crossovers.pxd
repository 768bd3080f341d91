# What GLEAM makes children with: crossovers, and its groups of operators.
from libc.stdint cimport int32_t

from broker.planner._chromosome cimport Chromosome, Room
from broker.planner._random cimport Random

cdef enum:
    # Groups of operators. The first five are crossovers.
    EXCHANGE
    ONE_POINT
    N_POINT
    ORDER_3
    ORDER_N
    SMALL_DISPLACEMENT
    BIG_DISPLACEMENT
    RELINKING           # a crossover too
    GROUPS

cdef void inherit_choices(
    Chromosome* child,
    const Chromosome* parent,
    const Chromosome* other,
    int32_t count,
    double share,
    Random* random,
) noexcept nogil
cdef void make_child(
    int32_t group,
    Chromosome* child,
    const Chromosome* parent,
    const Chromosome* other,
    int32_t count,
    int32_t strategies,
    Room* room,
    Random* random,
) noexcept nogil
