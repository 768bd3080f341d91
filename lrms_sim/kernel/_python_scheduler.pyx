"""Queue disciplines written in Python, as a machine runs them.

The machine calls them with the GIL held. Like compiled disciplines (`View` in `_view.pxd`) they see
no run time of a job that has not ended.
"""

from lrms_sim.kernel._node_machine cimport (
    NodeNotes,
    fits_now,
    forget_place,
    give_back,
    leave_line,
    line_up,
    take_found,
)
from lrms_sim.kernel._node_state cimport Free
from lrms_sim.kernel._nodes cimport NodeScheduler
from lrms_sim.kernel._queue cimport queue_next_fit, queue_slot
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, seconds_t
from lrms_sim.kernel._view cimport View


cdef class QueuedJob:
    """A job as a queue discipline sees it.

    `number` is its row in the job table or its place in the order of submission; `job_id` is its
    number in the log.
    """

    cdef readonly Py_ssize_t number
    cdef readonly object job_id
    cdef readonly double submit_time
    cdef readonly int processors
    cdef readonly double requested_time
    cdef readonly object group
    cdef readonly int user
    cdef readonly object start_time
    cdef readonly object request
    cdef double estimate

    @property
    def estimated_end(self):
        """When a running job will end at the latest, as far as is known, seconds; else `None`."""
        return None if self.start_time is None else self.start_time + self.estimate

    def __repr__(self):
        return (
            f"QueuedJob(job_id={self.job_id}, number={self.number}, "
            f"submit_time={self.submit_time:g}, "
            f"processors={self.processors}, requested_time={self.requested_time:g})"
        )


cdef class NodeView:
    """A node of a machine and what nobody holds on it."""

    cdef readonly Py_ssize_t number
    cdef readonly object kind
    cdef readonly int cores_free
    cdef readonly object memory_free
    cdef readonly int gpus_free
    cdef readonly int jobs

    def __repr__(self):
        return (
            f"NodeView(number={self.number}, kind={self.kind.name!r}, "
            f"cores_free={self.cores_free}, memory_free={self.memory_free}, "
            f"gpus_free={self.gpus_free}, jobs={self.jobs})"
        )


cdef class MachineView:
    """A machine as a discipline sees it; valid during a call only."""

    cdef View* view
    cdef NodeScheduler placing
    cdef object machine
    cdef dict waiting_jobs
    cdef dict running_jobs

    def __cinit__(self):
        self.view = NULL
        self.waiting_jobs = {}
        self.running_jobs = {}

    cdef View* seen(self) except NULL:
        if self.view == NULL:
            raise RuntimeError("a machine can be looked at during a call of the discipline only")
        return self.view

    @property
    def now(self):
        """Current time, seconds."""
        return self.seen().now

    @property
    def processors(self):
        """Size of the machine."""
        return self.seen().processors

    @property
    def processors_free(self):
        """Processors not held by a running job."""
        return self.seen().processors_free

    @property
    def processors_waiting(self):
        """Sum of the widths of the waiting jobs."""
        return self.seen().processors_waiting

    @property
    def head(self):
        """The waiting job that came first; `None` if no job waits."""
        cdef View* view = self.seen()
        if view.queue.count == 0:
            return None
        return self.waiting_jobs[view.queue.job[view.queue.head]]

    @property
    def waiting(self):
        """The waiting jobs in order of arrival, a new list."""
        self.seen()
        return list(self.waiting_jobs.values())

    @property
    def running(self):
        """The running jobs in the order of their starts, a new list."""
        self.seen()
        return list(self.running_jobs.values())

    @property
    def nodes(self):
        """The nodes by number, as they are now, a new list; none on a machine of processors."""
        cdef NodeNotes* notes
        cdef const Free* left
        cdef NodeView node
        self.seen()
        found = []
        if self.placing is not None:
            notes = <NodeNotes*> self.placing.notes
            for number in range(notes.nodes.count):
                left = &notes.nodes.free[<Py_ssize_t> number]
                node = NodeView.__new__(NodeView)
                node.number = number
                node.kind = self.machine.kinds[notes.nodes.kind_of[<Py_ssize_t> number]]
                node.cores_free = left.cores
                node.memory_free = left.memory if node.kind.memory else None
                node.gpus_free = left.gpus
                node.jobs = left.jobs
                found.append(node)
        return found

    @property
    def licences_free(self):
        """Free licences by name, a new dictionary; none on a machine of processors."""
        cdef NodeNotes* notes
        self.seen()
        if self.placing is None:
            return {}
        notes = <NodeNotes*> self.placing.notes
        return {
            name: notes.nodes.licences_free[<Py_ssize_t> number]
            for number, (name, _) in enumerate(self.machine.licences)
        }

    def fits(self, QueuedJob job not None):
        """Returns whether a waiting job could be started now."""
        cdef View* view = self.seen()
        if job.processors > view.processors_free:
            return False
        return self.placing is None or (
            self.waiting_jobs.get(job.number) is job
            and bool(fits_now(<NodeNotes*> self.placing.notes, <job_index_t> job.number))
        )

    def start(self, QueuedJob job not None):
        """Starts a waiting job now.

        Raises:
            ValueError: it does not wait, or does not fit.
        """
        cdef View* view = self.seen()
        if self.waiting_jobs.get(job.number) is not job:
            raise ValueError(f"job {job.job_id} does not wait here and cannot be started")
        if job.processors > view.processors_free:
            raise ValueError(
                f"job {job.job_id} needs {job.processors} processors; "
                f"{view.processors_free} are free"
            )
        if self.placing is not None:
            if not fits_now(<NodeNotes*> self.placing.notes, <job_index_t> job.number):
                raise ValueError(
                    f"job {job.job_id} asks for {job.request}; this is not free"
                )
            leave_line(<NodeNotes*> self.placing.notes, <job_index_t> job.number)
            take_found(<NodeNotes*> self.placing.notes, <job_index_t> job.number)
        job.start_time = view.now
        del self.waiting_jobs[job.number]
        self.running_jobs[job.number] = job
        view.start(view, queue_slot(&view.queue, <job_index_t> job.number))


cdef int python_submitted(void* own, View* view, job_index_t number) except -1 nogil:
    with gil:
        (<PythonScheduler> own).note_submitted(view, number)
    return 0


cdef int python_ended(void* own, View* view, job_index_t number) except -1 nogil:
    with gil:
        (<PythonScheduler> own).note_ended(view, number)
    return 0


cdef int python_outlived(
    void* own, View* view, job_index_t number, seconds_t estimate
) except -1 nogil:
    with gil:
        (<PythonScheduler> own).note_outlived(number, estimate)
    return 0


cdef int python_withdrawn(void* own, View* view, job_index_t number) except -1 nogil:
    with gil:
        (<PythonScheduler> own).note_withdrawn(number)
    return 0


cdef int python_decide(void* own, View* view) except -1 nogil:
    # Where nobody fits nobody can start, whatever the discipline says: it is not asked.
    if (
        view.queue.count == 0
        or queue_next_fit(&view.queue, view.queue.head, view.processors_free) < 0
    ):
        return 0
    with gil:
        (<PythonScheduler> own).make_pass(view)
    return 0


cdef class PythonScheduler(Scheduler):
    """Runs a discipline written in Python on one machine."""

    cdef MachineView seen
    cdef object decide
    cdef object submitted
    cdef object ended
    cdef object noted
    cdef object job_ids
    cdef object request_of

    def __init__(
        self,
        decide,
        *,
        submitted=None,
        ended=None,
        noted=None,
        per_event=False,
        needs_groups=False,
    ):
        self.seen = MachineView()
        self.decide = decide
        self.submitted = submitted
        self.ended = ended
        self.noted = noted
        self.job_ids = None
        self.needs_groups = needs_groups
        self.needs_users = True
        self.notes = <void*> self
        self.ops.submitted = python_submitted
        self.ops.ended = python_ended
        self.ops.outlived = python_outlived
        self.outlives = True
        self.ops.withdrawn = python_withdrawn
        self.ops.decide = python_decide
        self.ops.per_event = per_event

    def name_jobs(self, job_ids):
        """Sets the log's ids of the jobs, by number; the default is the number."""
        self.job_ids = job_ids

    def noted_so_far(self):
        """Returns what the discipline has noted here; `None` if it gives nothing back."""
        return None if self.noted is None else self.noted()

    def place_on(self, NodeScheduler placing not None, machine not None, request_of not None):
        """Makes it run on a machine of nodes.

        `placing` is a scheduler of that machine that keeps the nodes and starts nothing itself;
        `request_of` returns a job's request by number.
        """
        self.seen.placing = placing
        self.seen.machine = machine
        self.request_of = request_of

    cdef int note_withdrawn(self, job_index_t number) except -1:
        del self.seen.waiting_jobs[number]
        if self.seen.placing is not None:
            leave_line(<NodeNotes*> self.seen.placing.notes, number)
        return 0

    cdef int note_submitted(self, View* view, job_index_t number) except -1:
        cdef QueuedJob job = QueuedJob.__new__(QueuedJob)
        job.number = number
        job.job_id = number if self.job_ids is None else int(self.job_ids[number])
        job.submit_time = view.submit_time[number]
        job.processors = view.job_processors[number]
        job.requested_time = job.estimate = view.requested_time[number]
        job.group = None if view.job_group == NULL else view.job_group[number]
        job.user = -1 if view.job_user == NULL else view.job_user[number]
        if self.seen.placing is not None:
            job.request = self.request_of(number)
            line_up(<NodeNotes*> self.seen.placing.notes, number)
        self.seen.waiting_jobs[number] = job
        if self.submitted is not None:
            self.call(view, self.submitted, job)
        return 0

    cdef int note_ended(self, View* view, job_index_t number) except -1:
        cdef NodeNotes* notes
        job = self.seen.running_jobs.pop(number)
        if self.seen.placing is not None:
            notes = <NodeNotes*> self.seen.placing.notes
            give_back(notes, number)
            forget_place(notes, number)
        if self.ended is not None:
            self.call(view, self.ended, job)
        return 0

    cdef int note_outlived(self, job_index_t number, seconds_t estimate) except -1:
        (<QueuedJob> self.seen.running_jobs[number]).estimate = estimate
        return 0

    cdef int make_pass(self, View* view) except -1:
        cdef View* before = self.seen.view
        self.seen.view = view
        try:
            self.decide(self.seen)
        finally:
            self.seen.view = before
        return 0

    cdef int call(self, View* view, notice, QueuedJob job) except -1:
        # A job that is started can be gone at once: then this is told within a pass, which goes on.
        cdef View* before = self.seen.view
        self.seen.view = view
        try:
            notice(self.seen, job)
        finally:
            self.seen.view = before
        return 0
