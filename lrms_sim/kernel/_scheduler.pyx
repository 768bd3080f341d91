"""What all compiled queue disciplines are to a machine: operations, and notes of their own."""

from cpython.object cimport Py_TPFLAGS_HEAPTYPE

from lrms_sim.kernel._types cimport processors_t, seconds_t
from lrms_sim.kernel._view cimport View


cdef bint fits_and_nobody_waits(
    void* notes, const View* view, processors_t width, seconds_t request
) noexcept nogil:
    # Such a job starts under every discipline that leaves no machine idle on purpose.
    return view.queue.count == 0 and width <= view.processors_free


cdef class Scheduler:
    """The compiled side of a queue discipline; one machine owns it."""

    def __cinit__(self, *_arguments, **_options):
        self.notes = NULL
        self.taken = False
        self.any_order = False
        self.preempts = False
        self.outlives = False
        self.needs_groups = False
        self.needs_users = False
        self.ops.submitted = NULL
        self.ops.ended = NULL
        self.ops.appeared = NULL
        self.ops.outlived = NULL
        self.ops.withdrawn = NULL
        self.ops.finished = NULL
        self.ops.decide = NULL
        self.ops.starts_now = fits_and_nobody_waits
        self.ops.per_event = False
        self.ops.estimate = NULL
        self.ops.overdue = NULL

    cdef int take(self) except -1:
        # A class written in Python can set no operation, and what it overrides nobody calls:
        # without this check the one would be a call of nothing, the other silently another queue.
        if self.ops.decide == NULL or type(self).__flags__ & Py_TPFLAGS_HEAPTYPE:
            raise TypeError(
                f"{type(self).__name__} is no compiled scheduler, and one written in Python cannot "
                "run; a queue discipline is one of those in "
                "lrms_sim.scheduling.disciplines, or a kernel of "
                "its own (CONTRIBUTING.md says how)"
            )
        if self.taken:
            raise ValueError("this scheduler belongs to another machine; each needs its own")
        self.taken = True
        return 0

    cdef int check(self, bint groups) except -1:
        if self.needs_groups and not groups:
            raise ValueError(
                "this discipline orders jobs by user group, and the groups of the jobs are not "
                "given; lrms_sim.workload.groups.user_groups makes them of a workload whose "
                "users are known"
            )
        return 0
