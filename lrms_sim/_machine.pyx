"""The machine kernel: one clock, one heap of running jobs, one waiting queue.

At one instant a machine handles all terminations in order (end time, job), then all submissions
in order of arrival, then makes one scheduling pass (*batched*). A discipline that asks for passes
*per event* gets one after each of them, submissions before terminations, and these in the order in
which the jobs were started. Such a machine has the processors of a job back when its estimated end
has come, even if its termination is still to be handled: as no run time exceeds its request, that
can only be at the very instant of the end.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free
from libc.string cimport memset

from lrms_sim._memory cimport doubled, safe_realloc
from lrms_sim._queue cimport queue_free, queue_push, queue_remove, queue_slot
from lrms_sim._scheduler cimport Scheduler
from lrms_sim._types cimport job_index_t, processors_t, seconds_t
from lrms_sim._view cimport DisciplineOps, View


cdef inline bint ends_before(const Running* left, const Running* right) noexcept nogil:
    # Without branches: which of two jobs ends first is as hard to predict as a coin.
    return (left.end_time < right.end_time) | (
        (left.end_time == right.end_time) & (left.rank < right.rank)
    )


cdef inline void sift_up(Running* heap, Py_ssize_t place, Running entry) noexcept nogil:
    # Puts an entry where it belongs between a hole at `place` and the root.
    cdef Py_ssize_t above
    while place > 0:
        above = (place - 1) >> 1
        if not ends_before(&entry, &heap[above]):
            break
        heap[place] = heap[above]
        place = above
    heap[place] = entry


cdef int log_job(JobLog* log, job_index_t job) except -1 nogil:
    cdef Py_ssize_t capacity
    if log.count == log.capacity:
        capacity = doubled(log.capacity, 256)
        log.job = <job_index_t*> safe_realloc(
            log.job, capacity, sizeof(job_index_t), b"jobs in a log"
        )
        log.capacity = capacity
    log.job[log.count] = job
    log.count += 1
    return 0


cdef int give_back(MachineCore* core, job_index_t job) except -1 nogil:
    # The processors of a job are free from now on, and the discipline knows it.
    core.view.processors_free += core.view.job_processors[job]
    if core.ops.ended != NULL:
        core.ops.ended(core.notes, &core.view, job)
    return 0


cdef inline bint given_back_early(const MachineCore* core, job_index_t job) noexcept nogil:
    # Whether a running job's processors are free although its termination is still to come.
    cdef const View* view = &core.view
    cdef seconds_t estimate
    if not core.ops.per_event:
        return False
    if core.ops.estimate == NULL:
        return view.start_time[job] + view.requested_time[job] <= view.now
    # An estimate below the request may be too short; whoever outlives it keeps his processors.
    estimate = core.ops.estimate(core.notes, view, job)
    return core.end_time[job] <= view.now and view.start_time[job] + estimate <= view.now


cdef int start_job(View* view, Py_ssize_t slot) except -1 nogil:
    # The one place where a job starts: checked here, whatever a discipline believes.
    cdef MachineCore* core = <MachineCore*> view
    cdef job_index_t job = view.queue.job[slot]
    cdef processors_t width
    cdef Py_ssize_t place
    cdef Running entry
    if job < 0 or view.job_processors[job] > view.processors_free:
        with gil:
            raise AssertionError(f"the discipline started job {job}, which does not fit")
    width = view.job_processors[job]
    if core.running == core.heap_capacity:
        place = doubled(core.heap_capacity, 256)
        core.heap = <Running*> safe_realloc(core.heap, place, sizeof(Running), b"running jobs")
        core.heap_capacity = place
    queue_remove(&view.queue, slot)
    view.processors_free -= width
    view.processors_waiting -= width
    entry.end_time = view.now + core.run_time[job]
    entry.rank = core.starts if core.ops.per_event else job
    entry.job = job
    core.start_time[job] = view.now
    core.end_time[job] = entry.end_time
    place = core.running
    core.running += 1
    core.starts += 1
    sift_up(core.heap, place, entry)
    if core.started.kept:
        log_job(&core.started, job)
    if core.cost.weight != NULL:
        cost_started(core, job)
    if given_back_early(core, job):
        give_back(core, job)    # its request is too short to be seen on the clock
    return 0


cdef inline void cost_submitted(MachineCore* core, job_index_t job) noexcept nogil:
    cdef double weight = core.cost.weight[job]
    core.cost.waiting += weight
    core.cost.waiting_since += weight * core.view.submit_time[job]


cdef inline void cost_started(MachineCore* core, job_index_t job) noexcept nogil:
    cdef double weight = core.cost.weight[job]
    core.cost.started += weight * (core.view.now - core.view.submit_time[job])
    core.cost.waiting -= weight
    core.cost.waiting_since -= weight * core.view.submit_time[job]
    if core.view.queue.count == 0:
        # Nothing waits: what rounding has left behind ends here.
        core.cost.waiting = 0.0
        core.cost.waiting_since = 0.0


cdef inline bint cost_exceeded(const MachineCore* core) noexcept nogil:
    # Whoever waits has waited until now at least.
    return core.cost.weight != NULL and (
        core.cost.started + (core.cost.waiting * core.view.now - core.cost.waiting_since)
        > core.cost.limit
    )


cdef int core_open(
    MachineCore* core, processors_t processors, DisciplineOps ops, void* notes
) except -1:
    memset(core, 0, sizeof(MachineCore))
    core.view.now = -INFINITY
    core.view.processors = processors
    core.view.processors_free = processors
    core.view.wake_time = INFINITY
    core.view.start = start_job
    core.ops = ops
    core.notes = notes
    return 0


cdef void core_close(MachineCore* core) noexcept:
    queue_free(&core.view.queue)
    free(core.heap)
    free(core.started.job)
    free(core.ended.job)
    core.heap = NULL
    core.started.job = NULL
    core.ended.job = NULL
    core.running = 0
    core.heap_capacity = 0


cdef void core_bind(MachineCore* core, JobColumns columns) noexcept nogil:
    core.view.submit_time = columns.submit_time
    core.view.job_processors = columns.processors
    core.view.requested_time = columns.requested_time
    core.view.start_time = columns.start_time
    core.view.job_group = columns.group
    core.view.job_user = columns.user
    core.run_time = columns.run_time
    core.start_time = columns.start_time
    core.end_time = columns.end_time


cdef int give_back_due(MachineCore* core, Py_ssize_t place) except -1 nogil:
    # Of the jobs at and below a place of the heap, those whose estimated end is now. Below a job
    # that ends later nobody ends by now, so few are looked at.
    if place >= core.running or core.heap[place].end_time > core.view.now:
        return 0
    if given_back_early(core, core.heap[place].job):
        give_back(core, core.heap[place].job)
    give_back_due(core, 2 * place + 1)
    return give_back_due(core, 2 * place + 2)


cdef int core_set_clock(MachineCore* core, seconds_t now) except -1 nogil:
    # Everything before that moment has been handled.
    if now > core.view.now:
        core.view.now = now
        if core.ops.per_event:
            give_back_due(core, 0)
            if core.ops.overdue != NULL and core.view.wake_time <= now:
                core.ops.overdue(core.notes, &core.view)
    return 0


cdef job_index_t core_pop_ended(MachineCore* core) except -2 nogil:
    # Takes out the job that ends first and gives its processors back. There must be one.
    cdef job_index_t job = core.heap[0].job
    cdef Running last
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t below
    core.running -= 1
    # The hole sinks to a leaf along the earlier children, then the last entry rises from there:
    # it belongs near the bottom nearly always, so this asks about half as much on the way.
    last = core.heap[core.running]
    below = 1
    while below + 1 < core.running:
        below += ends_before(&core.heap[below + 1], &core.heap[below])
        core.heap[place] = core.heap[below]
        place = below
        below = 2 * place + 1
    if below < core.running:
        core.heap[place] = core.heap[below]
        place = below
    sift_up(core.heap, place, last)
    if not given_back_early(core, job):
        give_back(core, job)
    if core.ops.finished != NULL:
        core.ops.finished(core.notes, &core.view, job)
    if core.ended.kept:
        log_job(&core.ended, job)
    core.pass_pending = True
    return job


cdef int core_enqueue(MachineCore* core, job_index_t job) except -1 nogil:
    cdef View* view = &core.view
    queue_push(&view.queue, job, view.job_processors[job], view.requested_time[job])
    view.processors_waiting += view.job_processors[job]
    if core.cost.weight != NULL:
        cost_submitted(core, job)
    if core.ops.submitted != NULL:
        core.ops.submitted(core.notes, view, job)
    core.pass_pending = True
    return 0


cdef int core_withdraw(MachineCore* core, Py_ssize_t slot) except -1 nogil:
    # Takes a waiting job out of the queue. The pass that may follow is left pending.
    cdef View* view = &core.view
    cdef job_index_t job = view.queue.job[slot]
    view.processors_waiting -= view.job_processors[job]
    if core.cost.weight != NULL:
        core.cost.waiting -= core.cost.weight[job]
        core.cost.waiting_since -= core.cost.weight[job] * view.submit_time[job]
    if core.ops.withdrawn != NULL:
        core.ops.withdrawn(core.notes, view, job)
    queue_remove(&view.queue, slot)
    core.pass_pending = True
    return 0


cdef int core_pass(MachineCore* core) except -1 nogil:
    core.pass_pending = False
    return core.ops.decide(core.notes, &core.view)


cdef int core_pop_due(MachineCore* core) except -1 nogil:
    # Terminations due by view.now; their pass is left pending, or made after each.
    while core.running and core.heap[0].end_time <= core.view.now:
        core_pop_ended(core)
        if core.ops.per_event:
            core_pass(core)
    return 0


cdef int core_advance(MachineCore* core, seconds_t until, bint inclusive) except -1 nogil:
    # Handles, instant by instant, all that is due before `until`; at `until` too where inclusive.
    cdef seconds_t time
    while True:
        if core.pass_pending and (inclusive or core.view.now < until):
            core_pop_due(core)
            core_pass(core)
        time = core_next_time(core)
        if time == INFINITY or time > until or (time == until and not inclusive):
            return 0
        core_set_clock(core, time)
        core_pop_due(core)
        if core.pass_pending or core.view.wake_time <= time:
            core_pass(core)


cdef Py_ssize_t replay(MachineCore* core, Py_ssize_t row, Py_ssize_t stop, Py_ssize_t count) \
        except -1 nogil:
    # Replays from arrival `row` on. Stops at the first instant with row >= stop < count, or
    # beyond the limit of the cost; drains the machine if stop == count.
    cdef View* view = &core.view
    cdef const seconds_t* submit_time = view.submit_time
    cdef seconds_t next_submit, next_own
    while True:
        next_submit = submit_time[row] if row < count else INFINITY
        next_own = core_next_time(core)
        if row >= stop and (stop < count or next_own == INFINITY) or cost_exceeded(core):
            return row
        if core.ops.per_event and next_submit <= next_own:
            core_set_clock(core, next_submit)
            core_enqueue(core, <job_index_t> row)
            core_pass(core)
            row += 1
            continue
        core_set_clock(core, next_own if next_own < next_submit else next_submit)
        core_pop_due(core)
        if not core.ops.per_event:
            while row < count and submit_time[row] == view.now:
                core_enqueue(core, <job_index_t> row)
                row += 1
            core_pass(core)


cdef class MachineKernel:
    """One machine over job columns that the caller owns."""

    cdef MachineCore core
    cdef Scheduler scheduler
    cdef const seconds_t[::1] submit_time
    cdef const processors_t[::1] processors
    cdef const seconds_t[::1] requested_time
    cdef const seconds_t[::1] run_time
    cdef const int8_t[::1] groups
    cdef const int32_t[::1] users
    cdef seconds_t[::1] start_time
    cdef seconds_t[::1] end_time
    cdef const double[::1] cost_weight
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
    ):
        """Says where the jobs are; may be called again when the columns have moved."""
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
        self.scheduler.check(groups is not None)
        self.groups = groups
        self.users = users
        self.submit_time = submit_time
        self.processors = processors
        self.requested_time = requested_time
        self.run_time = run_time
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
            if groups is not None:
                columns.group = &groups[0]
            if users is not None:
                columns.user = &users[0]
        core_bind(&self.core, columns)

    def run(self, Py_ssize_t rows):
        """Replays arrivals until row `rows` or, at the last one, until the machine is empty."""
        cdef Py_ssize_t count = self.submit_time.shape[0]
        if not 0 <= rows <= count:
            raise ValueError(f"rows is {rows}; there are {count} jobs")
        with nogil:
            self.row = replay(&self.core, self.row, rows, count)
        return self.row

    def limit_cost(self, const double[::1] weight, double limit):
        """Lets `run` stop once Σ weight · wait over all jobs so far is above a limit."""
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
        """Notes from now on which jobs start and end, for `drain_log`."""
        self.core.started.kept = True
        self.core.ended.kept = True

    def enqueue(self, Py_ssize_t job, double submit_time):
        """Brings the clock to `submit_time` and puts a job into the queue."""
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
        """Does everything that is due before `to`, and at `to` where inclusive."""
        with nogil:
            core_advance(&self.core, to, inclusive)
            if to < INFINITY:
                core_set_clock(&self.core, to)

    def starts_now(self, processors_t width, double requested_time):
        """Returns whether such a job, submitted at this moment, would start at it."""
        cdef MachineCore* core = &self.core
        if core.pass_pending:
            with nogil:
                core_advance(core, core.view.now, True)
        return bool(core_starts_now(core, width, requested_time))

    def make_pass(self):
        """Makes the pass that is pending at this moment, if there is one."""
        cdef MachineCore* core = &self.core
        if core.pass_pending:
            with nogil:
                core_pass(core)

    def withdraw(self, job_index_t job, bint pass_later=False):
        """Takes a job out of the queue; False where it does not wait."""
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

    def drain_log(self):
        """Returns the jobs that started and that ended since the last call."""
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
        """Number of running jobs."""
        return self.core.running

    @property
    def jobs_waiting(self):
        """Number of waiting jobs."""
        return self.core.view.queue.count
