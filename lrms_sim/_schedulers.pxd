# A discipline's compiled side: its operations and its notes, owned by one machine.
from lrms_sim._view cimport DisciplineOps

cdef class Scheduler:
    cdef DisciplineOps ops
    cdef void* notes
    cdef bint taken    # a machine owns this scheduler
