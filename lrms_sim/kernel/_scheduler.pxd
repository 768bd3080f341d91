# A discipline's compiled side: its operations and its notes, owned by one machine.
from lrms_sim.kernel._view cimport DisciplineOps

cdef class Scheduler:
    cdef DisciplineOps ops
    cdef void* notes
    cdef bint taken           # a machine owns this scheduler
    cdef readonly bint any_order    # jobs may join the queue in another order than their numbers
    # Jobs that it does not see may run beside its own, and jobs come back to their old places.
    cdef readonly bint preempts
    cdef readonly bint outlives     # jobs may run for longer than they have requested
    cdef readonly bint needs_groups    # it reads job_group, which must not be NULL then
    cdef readonly bint needs_users     # it reads job_user, where NULL says that nobody is known

    cdef int take(self) except -1              # for a machine that makes it its own
    cdef int check(self, bint groups) except -1    # for a machine that is given its jobs
