"""One machine as one object, over job columns that the caller owns; see
lrms_sim.machine.machine."""

from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t
from libc.string cimport memset

from lrms_sim.kernel._machine cimport (
    JobColumns,
    MachineCore,
    core_advance,
    core_bind,
    core_close,
    core_enqueue,
    core_hide,
    core_idle,
    core_next_time,
    core_open,
    core_pass,
    core_pop_due,
    core_replay,
    core_resume,
    core_set_clock,
    core_show,
    core_starts_now,
    core_withdraw,
    cost_exceeded,
)
from lrms_sim.kernel._queue cimport queue_slot
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t


cdef class MachineKernel:
    cdef MachineCore core
    cdef Scheduler scheduler
    cdef const seconds_t[::1] submit_time
    cdef const processors_t[::1] processors
    cdef const seconds_t[::1] requested_time
    cdef const seconds_t[::1] run_time
    cdef seconds_t[::1] estimates
    cdef const int8_t[::1] groups
    cdef const int32_t[::1] users
    cdef seconds_t[::1] start_time
    cdef seconds_t[::1] end_time
    cdef const double[::1] cost_weight
    cdef const job_index_t[::1] ranks
    cdef Py_ssize_t row

    def __cinit__(self, int processors, Scheduler scheduler not None):
        if processors < 1:
            raise ValueError(f"a machine needs at least 1 processor, not {processors}")
        scheduler.take()
        core_open(&self.core, processors, scheduler.ops, scheduler.notes)
        self.scheduler = scheduler

    def __dealloc__(self):
        core_close(&self.core)

    def bind(
        self,
        const seconds_t[::1] submit_time,
        const processors_t[::1] processors,
        const seconds_t[::1] requested_time,
        const seconds_t[::1] run_time,
        seconds_t[::1] start_time,
        seconds_t[::1] end_time,
        const int8_t[::1] groups=None,
        const int32_t[::1] users=None,
        const job_index_t[::1] ranks=None,
        seconds_t[::1] estimates=None,
    ):
        cdef JobColumns columns
        cdef Py_ssize_t count = submit_time.shape[0]
        if not (
            processors.shape[0] == requested_time.shape[0] == run_time.shape[0]
            == start_time.shape[0] == end_time.shape[0] == count
        ):
            raise ValueError(f"every column needs {count} rows, as submit_time has")
        if groups is not None and groups.shape[0] != count:
            raise ValueError(f"groups has {groups.shape[0]} rows for {count} jobs")
        if users is not None and users.shape[0] != count:
            raise ValueError(f"users has {users.shape[0]} rows for {count} jobs")
        if ranks is not None and ranks.shape[0] != count:
            raise ValueError(f"ranks has {ranks.shape[0]} rows for {count} jobs")
        if estimates is not None and estimates.shape[0] != count:
            raise ValueError(f"estimates has {estimates.shape[0]} rows for {count} jobs")
        self.scheduler.check(groups is not None)
        if estimates is not None and not self.scheduler.outlives:
            raise ValueError("under this discipline no job runs for longer than it has requested")
        self.groups = groups
        self.users = users
        self.submit_time = submit_time
        self.processors = processors
        self.requested_time = requested_time
        self.run_time = run_time
        self.estimates = estimates
        self.start_time = start_time
        self.end_time = end_time
        memset(&columns, 0, sizeof(JobColumns))
        if count > 0:
            columns.submit_time = &submit_time[0]
            columns.processors = &processors[0]
            columns.requested_time = &requested_time[0]
            columns.run_time = &run_time[0]
            columns.start_time = &start_time[0]
            columns.end_time = &end_time[0]
            if estimates is not None:
                columns.estimate = &estimates[0]
            if groups is not None:
                columns.group = &groups[0]
            if users is not None:
                columns.user = &users[0]
        core_bind(&self.core, columns)
        self.ranks = ranks
        self.core.rank = &ranks[0] if ranks is not None and count > 0 else NULL

    def run(self, Py_ssize_t rows):
        cdef Py_ssize_t count = self.submit_time.shape[0]
        if not 0 <= rows <= count:
            raise ValueError(f"rows is {rows}; there are {count} jobs")
        with nogil:
            self.row = core_replay(&self.core, self.row, rows, count)
        return self.row

    def limit_cost(self, const double[::1] weight, double limit):
        if weight.shape[0] != self.submit_time.shape[0]:
            raise ValueError(f"weight has {weight.shape[0]} rows; there are other jobs")
        self.cost_weight = weight
        self.core.cost.weight = &weight[0] if weight.shape[0] else NULL
        self.core.cost.limit = limit

    @property
    def exceeded(self):
        """Whether `run` stopped beyond the limit of the cost."""
        return bool(cost_exceeded(&self.core))

    def keep_log(self):
        self.core.started.kept = True
        self.core.ended.kept = True

    def enqueue(self, Py_ssize_t job, double submit_time):
        cdef MachineCore* core = &self.core
        if not 0 <= job < self.submit_time.shape[0]:
            raise IndexError(f"job {job} of {self.submit_time.shape[0]}")
        with nogil:
            core_advance(core, submit_time, False)
            core_set_clock(core, submit_time)
            if not core.ops.per_event:
                core_pop_due(core)
            core_enqueue(core, <job_index_t> job)
            if core.ops.per_event:
                core_pass(core)

    def advance(self, double to, bint inclusive):
        with nogil:
            core_advance(&self.core, to, inclusive)
            if to < INFINITY:
                core_set_clock(&self.core, to)

    def starts_now(self, processors_t width, double requested_time):
        cdef MachineCore* core = &self.core
        if core.pass_pending:
            with nogil:
                core_advance(core, core.view.now, True)
        return bool(core_starts_now(core, width, requested_time))

    def make_pass(self):
        cdef MachineCore* core = &self.core
        if core.pass_pending:
            with nogil:
                core_pass(core)

    def withdraw(self, job_index_t job, bint pass_later=False):
        cdef MachineCore* core = &self.core
        cdef Py_ssize_t slot
        if core.view.queue.count == 0:
            return False
        slot = queue_slot(&core.view.queue, job)
        if core.view.queue.job[slot] != job:
            return False
        with nogil:
            core_withdraw(core, slot)
            if core.ops.per_event and not pass_later:
                core_pass(core)
        return True

    def resume(self, job_index_t job, double start_time, double now):
        cdef MachineCore* core = &self.core
        with nogil:
            core_set_clock(core, now)
            core_resume(core, job, start_time)

    def hide(self, job_index_t job, bint pass_follows):
        with nogil:
            core_hide(&self.core, job)
            self.core.pass_pending |= pass_follows

    def show(self, job_index_t job):
        with nogil:
            core_show(&self.core, job)

    def drain_preempted(self):
        cdef Py_ssize_t i
        preempted = [self.core.preempted.job[i] for i in range(self.core.preempted.count)]
        self.core.preempted.count = 0
        return preempted

    @property
    def idle(self):
        """Processors that nobody at all uses."""
        return core_idle(&self.core)

    def drain_log(self):
        cdef Py_ssize_t i
        started = [self.core.started.job[i] for i in range(self.core.started.count)]
        ended = [self.core.ended.job[i] for i in range(self.core.ended.count)]
        self.core.started.count = 0
        self.core.ended.count = 0
        return started, ended

    @property
    def now(self):
        """The clock, seconds; minus infinity before the first event."""
        return self.core.view.now

    @property
    def next_event_time(self):
        """When the machine next does something by itself, seconds; infinity for never."""
        if self.core.pass_pending:
            return self.core.view.now
        return core_next_time(&self.core)

    @property
    def processors_free(self):
        """Processors no running job holds."""
        return self.core.view.processors_free

    @property
    def processors_waiting(self):
        """Sum of the widths of the waiting jobs."""
        return self.core.view.processors_waiting

    @property
    def jobs_running(self):
        return self.core.running

    @property
    def jobs_waiting(self):
        return self.core.view.queue.count
