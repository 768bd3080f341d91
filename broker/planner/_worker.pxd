# What one thread needs to judge chromosomes and to make new ones.
from libc.stdint cimport int32_t, int64_t

from broker.planner._builder cimport Workspace
from broker.planner._scratch cimport Scratch
from broker.planner._chromosome cimport Chromosome, Room
from broker.planner._critical cimport CriticalGraph
from broker.planner._graph cimport Graph
from broker.planner._project cimport Project, ProjectRoom
from broker.planner._evaluation cimport CompiledGoals, Goals, Worth
from broker.planner._types cimport task_t

cdef struct Bench:
    Scratch* scratch
    const Goals* goals
    Worth worth                  # of the schedule judged last
    Room room
    Chromosome trial             # for local searchers
    Graph* graph                 # NULL where tabu search is not wanted or not possible
    Project* project             # NULL where tasks have alternatives, or resources hours
    int64_t evaluations          # schedules built since the worker was made
    int32_t cancelled            # set by another thread: no further schedule is built for a step

cdef class Worker:
    cdef Bench bench
    cdef readonly Workspace workspace
    cdef readonly CompiledGoals goals
    cdef object memory
    cdef CriticalGraph graph
    cdef ProjectRoom project

cdef double evaluate_fast(Bench* bench, const Chromosome* one) except? -1.0 nogil
cdef double evaluate_justified(Bench* bench, task_t* genes) noexcept nogil
