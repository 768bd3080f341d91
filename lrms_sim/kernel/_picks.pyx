"""A machine on which somebody outside picks the job that is to start next.

The same core as under every discipline (`_machine`). Where a discipline would make its pass, the
machine stands still until a job is picked; what a pick does is in `_picks.pyi`.
"""

from libc.math cimport INFINITY, log1p
from libc.stdlib cimport free
from libc.string cimport memset

from lrms_sim.kernel._machine cimport (
    JobColumns,
    MachineCore,
    core_bind,
    core_close,
    core_enqueue,
    core_next_time,
    core_open,
    core_pop_due,
    core_set_clock,
)
from lrms_sim.kernel._memory cimport safe_calloc
from lrms_sim.kernel._queue cimport queue_next_backfill, queue_next_fit, queue_slot
from lrms_sim.kernel._releases cimport (
    Releases,
    Shadow,
    releases_ended,
    releases_free,
    releases_shadow,
    releases_start,
)
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport DisciplineOps, View

import numpy as np


FEATURES = 6

cdef enum:
    SEEN = 6                             # the same for C

cdef enum Objective:
    BOUNDED_SLOWDOWN
    WAIT
    AWRT

cdef double LONGEST = log1p(1e7)      # s; longer spans are observed as this


cdef int picks_ended(void* own, View* view, job_index_t job) except -1 nogil:
    releases_ended(<Releases*> own, view, job)
    return 0


cdef inline float seen_span(seconds_t span) noexcept nogil:
    cdef double share = log1p(span) / LONGEST
    return <float> (share if share < 1.0 else 1.0)


cdef class PickMachine:
    cdef MachineCore core
    cdef Releases releases
    cdef const seconds_t[::1] submit_time
    cdef const processors_t[::1] processors
    cdef const seconds_t[::1] requested_time
    cdef const seconds_t[::1] run_time
    cdef seconds_t[::1] start_time
    cdef seconds_t[::1] end_time
    cdef Py_ssize_t* slots               # of the window
    cdef Py_ssize_t window
    cdef Py_ssize_t visible              # jobs in the window now
    cdef Py_ssize_t row                  # next arrival
    cdef Py_ssize_t first                # of the sequence
    cdef Py_ssize_t stop
    cdef job_index_t committed           # a pick that time waits for; -1 for none
    cdef bint commits
    cdef bint backfills
    cdef bint at_end                     # the reward comes with the last step
    cdef Objective objective
    cdef double tau                      # s; shorter run times count as this in a bounded slowdown
    cdef double weight                   # of all jobs of the sequence
    cdef double cost                     # of those that have started, not yet handed out

    def __cinit__(self, *_arguments, **_options):
        memset(&self.releases, 0, sizeof(Releases))
        self.slots = NULL

    def __init__(
        self,
        const seconds_t[::1] submit_time,
        const processors_t[::1] processors,
        const seconds_t[::1] requested_time,
        const seconds_t[::1] run_time,
        *,
        int machine_processors,
        Py_ssize_t window,
        bint backfills,
        bint commits,
        int objective,
        bint at_end,
        double tau=10.0,
    ):
        cdef Py_ssize_t count = submit_time.shape[0]
        if self.slots != NULL:
            raise RuntimeError("a machine is made once")
        if not (
            processors.shape[0] == requested_time.shape[0] == run_time.shape[0] == count > 0
        ):
            raise ValueError("every column needs as many rows, and at least one")
        if window < 1:
            raise ValueError(f"window is {window}; at least 1 job has to be seen")
        if machine_processors < 1 or not BOUNDED_SLOWDOWN <= objective <= AWRT:
            raise ValueError("no such machine or objective")
        self.objective = <Objective> objective
        self.tau = tau
        self.submit_time = submit_time
        self.processors = processors
        self.requested_time = requested_time
        self.run_time = run_time
        self.start_time = np.full(count, np.nan)
        self.end_time = np.full(count, np.nan)
        self.window = window
        self.backfills = backfills
        self.commits = commits
        self.at_end = at_end
        self.slots = <Py_ssize_t*> safe_calloc(window, sizeof(Py_ssize_t), b"jobs of a window")
        self.row = self.first = self.stop = 0
        self.bring_up(machine_processors)

    def __dealloc__(self):
        core_close(&self.core)
        releases_free(&self.releases)
        free(self.slots)

    cdef int bring_up(self, processors_t processors) except -1:
        cdef DisciplineOps ops
        cdef JobColumns columns
        memset(&ops, 0, sizeof(DisciplineOps))
        ops.ended = picks_ended
        core_open(&self.core, processors, ops, &self.releases)
        memset(&columns, 0, sizeof(JobColumns))
        columns.submit_time = &self.submit_time[0]
        columns.processors = &self.processors[0]
        columns.requested_time = &self.requested_time[0]
        columns.run_time = &self.run_time[0]
        columns.start_time = &self.start_time[0]
        columns.end_time = &self.end_time[0]
        core_bind(&self.core, columns)
        self.committed = -1
        self.visible = 0
        self.cost = 0.0
        return 0

    def reset(self, Py_ssize_t first, Py_ssize_t count):
        cdef Py_ssize_t row
        if count < 1 or first < 0 or first > self.submit_time.shape[0] - count:
            raise ValueError(
                f"there are {self.submit_time.shape[0]} jobs; no {count} from row {first} on"
            )
        core_close(&self.core)
        self.releases.count = 0
        self.bring_up(self.core.view.processors)
        self.row = self.first = first
        self.stop = first + count
        self.weight = 0.0
        for row in range(first, self.stop):
            self.start_time[row] = self.end_time[row] = np.nan
            self.weight += (
                self.processors[row] * self.run_time[row] if self.objective == AWRT else 1.0
            )
        with nogil:
            self.go_on(False)

    def step(self, Py_ssize_t place):
        self.check(place)
        with nogil:
            self.pick(place)
        return self.reward(), self.visible == 0

    def observe(self, float[:, ::1] seen):
        if seen.shape[0] != self.window or seen.shape[1] != SEEN:
            raise ValueError(f"an observation has shape ({self.window}, {SEEN})")
        self.look(seen)

    cdef int check(self, Py_ssize_t place) except -1:
        if not 0 <= place < self.window:
            raise ValueError(f"pick {place} is outside the window of {self.window} jobs")
        if self.visible == 0:
            raise RuntimeError("no job waits: the sequence is over or has not begun; reset first")
        return 0

    cdef double reward(self) noexcept:
        # What has been lost since the last step, as a share of the whole sequence's objective.
        cdef double given
        if self.at_end and self.visible > 0:
            return 0.0
        given = -self.cost / self.weight
        self.cost = 0.0
        return given

    cdef int start(self, Py_ssize_t slot) except -1 nogil:
        cdef job_index_t job = self.core.view.queue.job[slot]
        cdef double run_time = self.run_time[job]
        cdef double wait = self.core.view.now - self.submit_time[job]
        cdef double least
        releases_start(&self.releases, &self.core.view, slot)
        if self.objective == WAIT:
            self.cost += wait
        elif self.objective == AWRT:
            self.cost += self.processors[job] * run_time * (wait + run_time)
        else:
            least = run_time if run_time > self.tau else self.tau
            self.cost += (wait + run_time) / least if wait + run_time > least else 1.0
        return 0

    cdef int backfill(self, job_index_t head) except -1 nogil:
        # As EASY does behind its head, wherever in the queue that stands.
        cdef View* view = &self.core.view
        cdef Shadow shadow
        cdef seconds_t estimate
        cdef processors_t width
        cdef Py_ssize_t slot = queue_next_fit(
            &view.queue, view.queue.head, view.processors_free
        )
        if slot < 0:
            return 0
        shadow = releases_shadow(
            &self.releases, view.processors_free, view.job_processors[head]
        )
        while view.processors_free > 0:
            slot = queue_next_backfill(
                &view.queue, slot, view.processors_free, shadow.extra, view.now, shadow.time
            )
            if slot < 0:
                break
            width = view.queue.width[slot]
            estimate = view.now + view.queue.request[slot]
            self.start(slot)
            if estimate > shadow.time:
                shadow.extra -= width
            slot += 1
        return 0

    cdef int pick(self, Py_ssize_t place) except -1 nogil:
        cdef View* view = &self.core.view
        cdef Py_ssize_t slot = self.slots[place if place < self.visible else 0]
        cdef job_index_t job = view.queue.job[slot]
        if view.queue.width[slot] <= view.processors_free:
            self.start(slot)
            return self.go_on(False)
        if self.backfills:
            self.backfill(job)
        if self.commits:
            self.committed = job
        return self.go_on(True)

    cdef int go_on(self, bint blocked) except -1 nogil:
        # Lets time pass until somebody has to pick, or nobody is left; `blocked`: not at this
        # instant. Where no job fits, no pick could start one: then it is not asked for.
        cdef MachineCore* core = &self.core
        cdef View* view = &core.view
        cdef seconds_t next_submit, next_own
        cdef Py_ssize_t slot
        while True:
            if self.committed >= 0 and not blocked:
                if view.job_processors[self.committed] <= view.processors_free:
                    self.start(queue_slot(&view.queue, self.committed))
                    self.committed = -1
                elif self.backfills:
                    self.backfill(self.committed)
            if not blocked and self.committed < 0 and view.queue.count > 0 and (
                self.commits
                or queue_next_fit(&view.queue, view.queue.head, view.processors_free) >= 0
            ):
                self.visible = 0
                slot = view.queue.head
                while slot < view.queue.tail and self.visible < self.window:
                    if view.queue.job[slot] >= 0:
                        self.slots[self.visible] = slot
                        self.visible += 1
                    slot += 1
                return 0
            next_submit = view.submit_time[self.row] if self.row < self.stop else INFINITY
            next_own = core_next_time(core)
            if next_submit == INFINITY and next_own == INFINITY:
                self.visible = 0
                return 0
            core_set_clock(core, next_own if next_own < next_submit else next_submit)
            core_pop_due(core)
            while self.row < self.stop and view.submit_time[self.row] == view.now:
                core_enqueue(core, <job_index_t> self.row)
                self.row += 1
            blocked = False

    cdef void look(self, float[:, ::1] seen) noexcept nogil:
        cdef View* view = &self.core.view
        cdef float machine = <float> view.processors
        cdef float room = view.processors_free / machine
        cdef job_index_t job
        cdef Py_ssize_t place
        for place in range(self.visible):
            job = view.queue.job[self.slots[place]]
            seen[place, 0] = 1.0
            seen[place, 1] = seen_span(view.now - view.submit_time[job])
            seen[place, 2] = seen_span(view.requested_time[job])
            seen[place, 3] = view.job_processors[job] / machine
            seen[place, 4] = view.job_processors[job] <= view.processors_free
            seen[place, 5] = room
        if self.visible < self.window:
            memset(
                &seen[self.visible, 0], 0,
                (self.window - self.visible) * SEEN * sizeof(float),
            )

    def rows_seen(self):
        cdef Py_ssize_t place
        return np.array(
            [self.core.view.queue.job[self.slots[place]] for place in range(self.visible)],
            np.int64,
        )

    @property
    def jobs_seen(self):
        return self.visible

    @property
    def now(self):
        return self.core.view.now

    @property
    def processors_free(self):
        return self.core.view.processors_free

    @property
    def start_times(self):
        return np.asarray(self.start_time)[self.first:self.stop].copy()


def step_all(
    list machines,
    const long long[::1] places,
    float[:, :, ::1] seen,
    double[::1] rewards,
    unsigned char[::1] ended,
):
    cdef Py_ssize_t number
    cdef PickMachine machine
    if not (
        places.shape[0] == seen.shape[0] == rewards.shape[0] == ended.shape[0] == len(machines)
    ):
        raise ValueError("every array needs as many rows as there are machines")
    for number in range(len(machines)):
        if ended[number]:
            continue
        machine = <PickMachine?> machines[number]
        machine.check(<Py_ssize_t> places[number])
        machine.pick(<Py_ssize_t> places[number])
        rewards[number] = machine.reward()
        ended[number] = machine.visible == 0
        machine.observe(seen[number])
