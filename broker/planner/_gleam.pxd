# The population of GLEAM and the matings of one step.
from libc.stdint cimport int32_t, int64_t, uint64_t

from broker.planner._chromosome cimport Chromosome
from broker.planner._random cimport Random
from broker.planner._ring cimport Ring
from broker.planner._worker cimport Bench

cdef enum:
    CHILDREN_MAX = 8      # of one mating
    LEVELS = 3            # of the probability to improve all children that are active

cdef struct Mating:
    int32_t parent
    int32_t children
    int32_t judged              # children; fewer than all where the step is given up
    int32_t best                # child; -1 before any was judged
    int32_t level               # drawn among the active ones
    double gain                 # relative fitness gain of the best child by local search
    int64_t search_evaluations  # schedules built by local search
    int64_t evaluations         # all schedules built
    Random random

cdef struct Group:
    # A group of operators makes one child, with a probability by the parent's quality.
    double probability[3]

cdef struct Improvement:
    int32_t searchers           # a set; 0: none
    int32_t trials
    int32_t iterations
    bint best_only              # best-improvement, else adaptive all-improvement
    double probability[3]       # of the active levels
    double level[3]             # to improve a child that is not the best

cdef class GleamCore:
    cdef int32_t tasks, size, strategies
    cdef readonly bint assigned        # whether individuals have a choice for each task
    cdef uint64_t seed
    cdef int64_t generation
    cdef int32_t step
    cdef readonly object steps         # by step the parents
    cdef dict columns
    cdef Chromosome* individuals
    cdef double* fitness
    cdef Ring ring                     # of the same fitness
    cdef Chromosome* children          # CHILDREN_MAX for each mating of a step
    cdef double* child_fitness
    cdef Mating* matings
    cdef int32_t mating_count
    cdef int32_t next_mating           # taken by workers, atomically
    cdef Group groups[8]
    cdef Improvement improvement
    cdef int generate(self, Mating* mating, Bench* bench) noexcept nogil
    cdef void add_child(
        self, Mating* mating, int32_t group, int32_t partner, Bench* bench
    ) noexcept nogil
    cdef int judge(self, Mating* mating, Bench* bench) except -1 nogil
    cdef int improve(self, Mating* mating, Bench* bench) except -1 nogil
    cdef void commit_mating(self, Mating* mating) noexcept nogil
