"""A site's account of itself, compiled; see grms.federation.own_account."""

from libc.math cimport INFINITY, NAN, exp
from libc.stdlib cimport free
from libc.string cimport memset

from lrms_sim.kernel._machine cimport (
    JobColumns,
    MachineCore,
    core_bind,
    core_close,
    core_enqueue,
    core_learn,
    core_next_time,
    core_open,
    core_pass,
    core_pop_due,
    core_resume,
    core_set_clock,
)
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._scheduler cimport Scheduler
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport DisciplineOps


cdef int account_open(
    OwnAccount* account, processors_t processors, DisciplineOps ops, void* notes,
    AccountRules rules,
) except -1:
    memset(account, 0, sizeof(OwnAccount))
    core_open(&account.shadow, processors, ops, notes)
    account.shadow.started.kept = True
    account.shadow.ended.kept = True
    account.rules = rules
    account.first_arrival = NAN
    account.last = -INFINITY
    account.in_credit = True
    account.since = -INFINITY
    return 0


cdef void account_close(OwnAccount* account) noexcept:
    core_close(&account.shadow)
    free(account.arrived)
    free(account.early)
    account.arrived = account.early = NULL


cdef void account_bind(
    OwnAccount* account, JobColumns columns, seconds_t* known_run,
    const seconds_t* real_start, const seconds_t* real_end,
) noexcept nogil:
    # `columns` are the shadow's: its starts and ends, and `known_run` for run times.
    columns.run_time = known_run
    core_bind(&account.shadow, columns)
    account.start = columns.start_time
    account.known_run = known_run
    account.real_start = real_start
    account.real_end = real_end


cdef int account_submitted(OwnAccount* account, job_index_t job) except -1 nogil:
    cdef Py_ssize_t capacity
    if account.count == account.capacity:
        capacity = doubled(account.capacity, 64)
        account.arrived = <job_index_t*> safe_realloc(
            account.arrived, capacity, sizeof(job_index_t), b"own jobs"
        )
        account.capacity = capacity
    account.arrived[account.count] = job
    account.count += 1
    if account.first_arrival != account.first_arrival:
        account.first_arrival = account.shadow.view.submit_time[job]
    return 0


cdef int account_ended(OwnAccount* account, job_index_t job, seconds_t run_time) except -1 nogil:
    # A job has really ended after running for `run_time` seconds in all.
    account.known_run[job] = run_time
    account.work += run_time * account.shadow.view.job_processors[job]
    account.asked += (
        account.shadow.view.requested_time[job] * account.shadow.view.job_processors[job]
    )
    if account.start[job] == account.start[job]:
        core_learn(&account.shadow, job)
    return 0


cdef inline seconds_t may_end(
    const OwnAccount* account, job_index_t job, seconds_t now
) noexcept nogil:
    # When a job of unknown run time might end in the shadow, where it runs.
    cdef seconds_t real = account.real_start[job]
    return account.start[job] + (now - real if real == real else 0.0)


cdef inline int note_early(OwnAccount* account, job_index_t job) except -1 nogil:
    # A job that runs in the shadow may stop it, unless it started there no earlier than it really
    # did: then it might not end before the present moment, up to which the shadow goes.
    cdef seconds_t real = account.real_start[job]
    cdef Py_ssize_t capacity
    if account.known_run[job] != INFINITY or real <= account.start[job]:
        return 0
    if account.early_count == account.early_capacity:
        capacity = doubled(account.early_capacity, 64)
        account.early = <job_index_t*> safe_realloc(
            account.early, capacity, sizeof(job_index_t), b"jobs in a shadow"
        )
        account.early_capacity = capacity
    account.early[account.early_count] = job
    account.early_count += 1
    return 0


cdef int look_for_early(OwnAccount* account) except -1 nogil:
    # Those that are still early, or all that are.
    cdef Py_ssize_t count = account.early_count
    cdef Py_ssize_t i
    account.early_count = 0
    if account.early_known:
        for i in range(count):
            note_early(account, account.early[i])
    else:
        for i in range(account.shadow.running):
            note_early(account, account.shadow.heap[i].job)
    account.early_known = True
    return 0


cdef inline void account_book(OwnAccount* account, job_index_t job) noexcept nogil:
    # A job has ended in the shadow.
    cdef MachineCore* shadow = &account.shadow
    cdef seconds_t end = shadow.end_time[job]
    cdef double work = account.known_run[job] * shadow.view.job_processors[job]
    cdef double gained = work * (end - account.real_end[job])
    account.base += work * (end - shadow.view.submit_time[job])
    account.gain += gained
    account.booked += 1.0
    account.weight += work
    account.ran += work * account.known_run[job]
    account.saved += gained
    if account.saved > account.rules.cap * account.base:
        account.saved = account.rules.cap * account.base


cdef int catch_up(OwnAccount* account, seconds_t now) except -1 nogil:
    # Lets the shadow go on, event by event, as far as it can.
    cdef MachineCore* shadow = &account.shadow
    cdef seconds_t limit = INFINITY
    cdef seconds_t own, arrival, end
    cdef job_index_t job
    cdef Py_ssize_t i
    cdef bint looked = False
    while True:
        arrival = INFINITY
        if account.next < account.count:
            arrival = shadow.view.submit_time[account.arrived[account.next]]
            if arrival >= now:
                arrival = INFINITY    # it comes after this look
        own = core_next_time(shadow)
        if (own if own < arrival else arrival) > now:
            return 0
        if not looked:
            looked = True
            look_for_early(account)
            for i in range(account.early_count):
                end = may_end(account, account.early[i], now)
                if end < limit:
                    limit = end
        if (own if own < arrival else arrival) > limit:
            return 0
        if own < arrival or own == arrival and not shadow.ops.per_event:
            account.last = own
            core_set_clock(shadow, own)
            core_pop_due(shadow)
            core_pass(shadow)
            for i in range(shadow.ended.count):
                account_book(account, shadow.ended.job[i])
            shadow.ended.count = 0
        else:
            account.last = arrival
            core_set_clock(shadow, arrival)
            core_enqueue(shadow, account.arrived[account.next])
            account.next += 1
            core_pass(shadow)
        for i in range(shadow.started.count):
            job = shadow.started.job[i]
            if account.known_run[job] == INFINITY:
                note_early(account, job)
                end = may_end(account, job, now)
                if end < limit:
                    limit = end
        shadow.started.count = 0


cdef int account_look(OwnAccount* account, seconds_t now) except -1 nogil:
    catch_up(account, now)
    account.gain *= account.rules.decay
    account.saved *= account.rules.decay
    account.base *= account.rules.decay
    account.booked *= account.rules.decay
    account.weight *= account.rules.decay
    account.ran *= account.rules.decay
    return 0


cdef class OwnAccountKernel:
    cdef OwnAccount account
    cdef Scheduler scheduler
    cdef const seconds_t[::1] submit_time
    cdef const processors_t[::1] processors
    cdef const seconds_t[::1] requested_time
    cdef seconds_t[::1] known_run
    cdef seconds_t[::1] start_time
    cdef seconds_t[::1] end_time
    cdef const seconds_t[::1] real_start
    cdef const seconds_t[::1] real_end

    def __cinit__(
        self, processors_t processors, Scheduler scheduler not None, double period,
        double allowance, double cap, double memory,
    ):
        cdef AccountRules rules
        if not scheduler.preempts:
            raise ValueError("the account of a site needs one of the disciplines fcfs, list, easy")
        rules.period = period
        rules.allowance = allowance
        rules.cap = cap
        rules.decay = exp(-period / memory)
        scheduler.take()
        self.scheduler = scheduler
        account_open(&self.account, processors, scheduler.ops, scheduler.notes, rules)

    def __dealloc__(self):
        account_close(&self.account)

    def bind(
        self,
        const seconds_t[::1] submit_time,
        const processors_t[::1] processors,
        const seconds_t[::1] requested_time,
        seconds_t[::1] known_run,
        seconds_t[::1] start_time,
        seconds_t[::1] end_time,
        const seconds_t[::1] real_start,
        const seconds_t[::1] real_end,
    ):
        cdef JobColumns columns
        memset(&columns, 0, sizeof(JobColumns))
        self.submit_time = submit_time
        self.processors = processors
        self.requested_time = requested_time
        self.known_run = known_run
        self.start_time = start_time
        self.end_time = end_time
        self.real_start = real_start
        self.real_end = real_end
        columns.submit_time = &submit_time[0]
        columns.processors = &processors[0]
        columns.requested_time = &requested_time[0]
        columns.start_time = &start_time[0]
        columns.end_time = &end_time[0]
        account_bind(&self.account, columns, &known_run[0], &real_start[0], &real_end[0])

    def submitted(self, job_index_t job):
        account_submitted(&self.account, job)

    def ended(self, job_index_t job, double run_time):
        account_ended(&self.account, job, run_time)

    def look(self, double now):
        self.account.early_known = False    # the caller may have changed any real start
        with nogil:
            account_look(&self.account, now)

    def owed(self, const job_index_t[::1] waiting, double now):
        cdef double ratio = account_ratio(&self.account)
        cdef double total = 0.0
        cdef Py_ssize_t i
        for i in range(waiting.shape[0]):
            total += account_owed(&self.account, waiting[i], ratio, now)
        return total

    def turn(self, double owed, double now):
        return account_turn(&self.account, owed, now)

    def resume(self, const job_index_t[::1] arrived, sums, double clock):
        # The state of an account before this one: its own jobs in order, with the columns as they
        # were, and its sums. The shadow runs whoever has a start there, and the first without one
        # that has joined its queue waits there.
        cdef OwnAccount* account = &self.account
        cdef job_index_t job
        cdef Py_ssize_t i
        cdef Py_ssize_t joined = sums["joined"]
        account.gain, account.saved, account.base = sums["gain"], sums["saved"], sums["base"]
        account.booked, account.weight = sums["booked"], sums["weight"]
        account.ran = sums["ran"]
        account.work, account.asked = sums["work"], sums["asked"]
        account.in_credit, account.since = sums["in_credit"], sums["since"]
        account.last = clock
        if clock > -INFINITY:
            core_set_clock(&account.shadow, clock)
        for i in range(arrived.shape[0]):
            job = arrived[i]
            account_submitted(account, job)
            if i >= joined:
                continue
            account.next += 1
            if account.start[job] == account.start[job]:
                core_resume(&account.shadow, job, account.start[job])
            else:
                core_enqueue(&account.shadow, job)
        account.shadow.pass_pending = False
        account.first_arrival = sums["first_arrival"]

    @property
    def joined(self):
        """How many of the own jobs, in order of arrival, have joined the shadow's queue."""
        return self.account.next

    @property
    def running(self):
        """The jobs that run in the shadow, in no order; also those that have ended in its past."""
        cdef MachineCore* shadow = &self.account.shadow
        cdef Py_ssize_t i
        return [shadow.heap[i].job for i in range(shadow.running)]

    @property
    def sums(self):
        """The sums, and since when the site is in credit or not."""
        cdef OwnAccount* account = &self.account
        return {
            "gain": account.gain, "saved": account.saved, "base": account.base,
            "booked": account.booked, "weight": account.weight, "ran": account.ran,
            "work": account.work, "asked": account.asked, "in_credit": bool(account.in_credit),
            "since": account.since, "clock": account.last, "joined": account.next,
            "first_arrival": account.first_arrival,
        }
