# Serial schedules and their justification, for problems in which every task has one alternative.
from libc.stdint cimport int32_t

from broker.planner._instance cimport Instance
from broker.planner._scratch cimport Scratch
from broker.planner._types cimport seconds_t, task_t, units_t

cdef struct Project:
    const Instance* instance
    bint usable                 # whether the problem is of this kind
    int32_t tasks
    int32_t kinds               # resources that some task needs
    units_t* need               # by task and kind
    units_t* capacity           # by kind
    seconds_t* duration         # by task
    # The units that are free, as steps in order of time; nothing is taken from the last one on.
    int32_t steps
    seconds_t* begin            # by step
    units_t* free               # by step and kind
    # While building.
    seconds_t* ready            # by task
    seconds_t* end              # by task; in a pass to the right, seconds before the last end
    int32_t* missing            # by task: neighbours that are not placed
    int32_t* position           # by task; -1: its gene has not been passed
    task_t* waiting             # released tasks, the one to go first last
    task_t* sequence            # the order of placing
    task_t* sorted              # room to merge in

cdef class ProjectRoom:
    cdef Project project
    cdef object memory

cdef void build_serial(Project* project, Scratch* scratch, const task_t* genes) noexcept nogil
cdef void justify_fast(Project* project, Scratch* scratch) noexcept nogil
