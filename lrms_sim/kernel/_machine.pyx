"""The machine: one clock, one heap of running jobs, one waiting queue.

At one instant a machine handles all terminations in order (end time, job), then all submissions
in order of arrival, then makes one scheduling pass (*batched*). A discipline that asks for passes
*per event* gets one after each of them, submissions before terminations, and these in the order in
which the jobs were started. Such a machine has the processors of a job back when its estimated end
has come and its termination is still to be handled: as the job has not outlived it, that
can only be at the very instant of the end.

Where jobs may outlive their requests, the machine notices at an estimated end, before anything else
of that instant, who has not ended, and has him run for longer as far as anybody knows.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free
from libc.string cimport memset

from lrms_sim.kernel._branches cimport unlikely
from lrms_sim.kernel._corrections cimport extended
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._queue cimport queue_free, queue_insert, queue_push, queue_remove
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport DisciplineOps, View


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


cdef inline job_index_t rank_of(const MachineCore* core, job_index_t job) noexcept nogil:
    return job if core.rank == NULL else core.rank[job]


cdef inline int log_job(JobLog* log, job_index_t job) except -1 nogil:
    cdef Py_ssize_t capacity
    if unlikely(log.count == log.capacity):
        capacity = doubled(log.capacity, 4)
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


cdef inline Py_ssize_t unseen_place(const MachineCore* core, job_index_t job) noexcept nogil:
    # Where an unseen job stands; -1 for one that is seen.
    cdef Py_ssize_t place
    for place in range(core.unseen.count):
        if core.unseen.job[place] == job:
            return place
    return -1


cdef inline bint given_back_early(const MachineCore* core, job_index_t job) noexcept nogil:
    # Whether a running job's processors are free although its termination is still to come.
    cdef const View* view = &core.view
    cdef seconds_t estimate
    if not core.ops.per_event or unseen_place(core, job) >= 0:
        return False
    estimate = view.requested_time[job]
    if core.ops.estimate != NULL:
        estimate = core.ops.estimate(core.notes, view, job)
    # An estimate may be too short; whoever outlives it keeps his processors.
    return core.end_time[job] <= view.now and view.start_time[job] + estimate <= view.now


cdef inline Py_ssize_t heap_place(const MachineCore* core, job_index_t job) noexcept nogil:
    # A running job's place in the heap; it must be there.
    cdef Py_ssize_t place = 0
    while core.heap[place].job != job:
        place += 1
    return place


cdef void heap_remove(MachineCore* core, Py_ssize_t place) noexcept nogil:
    # Takes any entry out of the heap; the last one fills its hole.
    cdef Running* heap = core.heap
    cdef Running last
    cdef Py_ssize_t below
    core.running -= 1
    if place == core.running:
        return
    last = heap[core.running]
    below = 2 * place + 1
    while below < core.running:
        if below + 1 < core.running:
            below += ends_before(&heap[below + 1], &heap[below])
        if ends_before(&last, &heap[below]):
            break
        heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    sift_up(heap, place, last)


cdef inline void notice_estimate(const MachineCore* core, Running* entry) noexcept nogil:
    # Has the machine look at a running job at its estimated end where that comes before its end.
    cdef seconds_t estimated_end = core.start_time[entry.job] + core.estimate[entry.job]
    if estimated_end < entry.end_time:
        entry.end_time = estimated_end
        entry.rank = ~entry.rank


cdef int outlive_due(MachineCore* core) except -1 nogil:
    # Those whose estimates are over by now, and who have not ended, run for longer.
    cdef View* view = &core.view
    cdef Running entry
    cdef seconds_t longer
    while core.running and core.heap[0].end_time <= view.now and core.heap[0].rank < 0:
        entry = core.heap[0]
        longer = extended(
            core.requested_time[entry.job], core.start_time[entry.job], view.now
        )
        if core.ops.outlived != NULL:
            core.ops.outlived(core.notes, view, entry.job, longer)
        core.estimate[entry.job] = longer
        heap_remove(core, 0)
        entry.end_time = core.end_time[entry.job]
        entry.rank = ~entry.rank
        notice_estimate(core, &entry)
        core.running += 1
        sift_up(core.heap, core.running - 1, entry)
        if not core.ops.per_event:
            core.pass_pending = True
    return 0


cdef inline int run_from(
    MachineCore* core, job_index_t job, seconds_t start_time
) except -1 nogil:
    # Notes a job as running since then.
    cdef Py_ssize_t place
    cdef Running entry
    if unlikely(core.running == core.heap_capacity):
        place = doubled(core.heap_capacity, 16)
        core.heap = <Running*> safe_realloc(core.heap, place, sizeof(Running), b"running jobs")
        core.heap_capacity = place
    entry.end_time = start_time + core.run_time[job]
    entry.rank = core.starts if core.ops.per_event else rank_of(core, job)
    entry.job = job
    core.start_time[job] = start_time
    core.end_time[job] = entry.end_time
    if unlikely(core.estimate != NULL):
        notice_estimate(core, &entry)
    place = core.running
    core.running += 1
    core.starts += 1
    sift_up(core.heap, place, entry)
    return 0


cdef int unseen_add(MachineCore* core, job_index_t job) except -1 nogil:
    cdef Unseen* unseen = &core.unseen
    cdef Py_ssize_t capacity
    if unseen.count == unseen.capacity:
        capacity = doubled(unseen.capacity, 16)
        unseen.job = <job_index_t*> safe_realloc(
            unseen.job, capacity, sizeof(job_index_t), b"unseen jobs"
        )
        unseen.capacity = capacity
    unseen.job[unseen.count] = job
    unseen.count += 1
    unseen.processors += core.view.job_processors[job]
    return 0


cdef void unseen_remove(MachineCore* core, Py_ssize_t place) noexcept nogil:
    cdef Unseen* unseen = &core.unseen
    unseen.processors -= core.view.job_processors[unseen.job[place]]
    unseen.count -= 1
    unseen.job[place] = unseen.job[unseen.count]


cdef inline Py_ssize_t latest_before(
    const MachineCore* core, seconds_t before, job_index_t row
) noexcept nogil:
    # Of the unseen jobs that started before (`before`, `row`) the last; -1 for none.
    cdef const Unseen* unseen = &core.unseen
    cdef Py_ssize_t found = -1
    cdef Py_ssize_t place
    cdef job_index_t rank
    cdef job_index_t last = -1
    cdef seconds_t start_time
    cdef seconds_t latest = 0.0
    for place in range(unseen.count):
        rank = rank_of(core, unseen.job[place])
        start_time = core.start_time[unseen.job[place]]
        if (start_time > before or start_time == before and rank >= row) or found >= 0 and (
            start_time < latest or start_time == latest and rank < last
        ):
            continue
        found = place
        latest = start_time
        last = rank
    return found


cdef inline void unseen_stop(MachineCore* core, job_index_t job) noexcept nogil:
    unseen_remove(core, unseen_place(core, job))
    heap_remove(core, heap_place(core, job))
    core.end_time[job] = core.view.now


cdef int preempt(MachineCore* core, processors_t lacking) except -1 nogil:
    # Unseen jobs give back that many processors; there are enough.
    cdef JobLog* log = &core.preempted
    cdef const processors_t* width = core.view.job_processors
    cdef Py_ssize_t first = log.count
    cdef Py_ssize_t kept = first
    cdef Py_ssize_t place
    cdef job_index_t job
    cdef job_index_t row = -1
    cdef seconds_t before = INFINITY
    while lacking > 0:
        job = core.unseen.job[latest_before(core, before, row)]
        log_job(log, job)
        before = core.start_time[job]
        row = rank_of(core, job)
        lacking -= width[job]
    for place in range(log.count - 1, first - 1, -1):
        if width[log.job[place]] <= -lacking:
            lacking += width[log.job[place]]
            log.job[place] = ~log.job[place]
    for place in range(first, log.count):
        job = log.job[place]
        if job >= 0:
            log.job[kept] = job
            kept += 1
            unseen_stop(core, job)
    log.count = kept
    return 0


cdef int start_job(View* view, Py_ssize_t slot) except -1 nogil:
    # The one place where a job starts: checked here, whatever a discipline believes.
    cdef MachineCore* core = <MachineCore*> view
    cdef job_index_t job = view.queue.job[slot]
    cdef processors_t width
    if job < 0 or view.job_processors[job] > view.processors_free:
        with gil:
            raise AssertionError(f"the discipline started job {job}, which does not fit")
    width = view.job_processors[job]
    if unlikely(width > core_idle(core)):
        preempt(core, width - core_idle(core))
    queue_remove(&view.queue, slot)
    view.processors_free -= width
    view.processors_waiting -= width
    run_from(core, job, view.now)
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


cdef bint cost_exceeded(const MachineCore* core) noexcept nogil:
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
    free(core.unseen.job)
    free(core.preempted.job)
    core.heap = NULL
    core.started.job = NULL
    core.ended.job = NULL
    core.unseen.job = NULL
    core.preempted.job = NULL
    core.running = 0
    core.heap_capacity = 0


cdef void core_bind(MachineCore* core, JobColumns columns) noexcept nogil:
    core.view.submit_time = columns.submit_time
    core.view.job_processors = columns.processors
    core.requested_time = columns.requested_time
    core.estimate = columns.estimate
    core.view.requested_time = columns.requested_time
    if columns.estimate != NULL:
        core.view.requested_time = columns.estimate
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


cdef int core_estimates_end(MachineCore* core) except -1 nogil:
    if core.estimate != NULL:
        outlive_due(core)
    if core.ops.per_event:
        give_back_due(core, 0)
        if core.ops.overdue != NULL and core.view.wake_time <= core.view.now:
            core.ops.overdue(core.notes, &core.view)
    return 0


cdef job_index_t core_pop_ended(MachineCore* core) except -2 nogil:
    # Takes out the job that ends first and gives its processors back. There must be one.
    cdef job_index_t job = core.heap[0].job
    cdef Running last
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t below
    cdef Py_ssize_t hidden
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
    hidden = unseen_place(core, job)
    if unlikely(hidden >= 0):
        unseen_remove(core, hidden)
    else:
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


cdef int core_return(MachineCore* core, job_index_t job) except -1 nogil:
    # A job joins the queue where it would stand if it had come when it was submitted.
    cdef View* view = &core.view
    queue_insert(&view.queue, job, view.job_processors[job], view.requested_time[job])
    view.processors_waiting += view.job_processors[job]
    if core.cost.weight != NULL:
        cost_submitted(core, job)
    if core.ops.submitted != NULL:
        core.ops.submitted(core.notes, view, job)
    core.pass_pending = True
    return 0


cdef int core_start_unseen(MachineCore* core, job_index_t job) except -1 nogil:
    # Starts a job that is in no queue on idle processors, behind the discipline's back.
    if core.view.job_processors[job] > core_idle(core):
        with gil:
            raise AssertionError(f"job {job} was started where too few processors are idle")
    unseen_add(core, job)
    return run_from(core, job, core.view.now)


cdef int core_preempt(MachineCore* core, job_index_t job) except -1 nogil:
    # An unseen job loses its processors to another one that the owner starts.
    unseen_stop(core, job)
    return log_job(&core.preempted, job)


cdef int core_hide(MachineCore* core, job_index_t job) except -1 nogil:
    # A running job becomes unseen. The pass that may follow is left to the owner.
    unseen_add(core, job)
    return give_back(core, job)


cdef int core_show(MachineCore* core, job_index_t job) except -1 nogil:
    # An unseen job is seen again.
    unseen_remove(core, unseen_place(core, job))
    core.view.processors_free -= core.view.job_processors[job]
    if core.ops.appeared != NULL:
        core.ops.appeared(core.notes, &core.view, job)
    return 0


cdef int core_resume(MachineCore* core, job_index_t job, seconds_t start_time) except -1 nogil:
    # A job that is in no queue runs, and is seen, since a moment before now.
    run_from(core, job, start_time)
    core.view.processors_free -= core.view.job_processors[job]
    if core.ops.appeared != NULL:
        core.ops.appeared(core.notes, &core.view, job)
    return 0


cdef void core_learn(MachineCore* core, job_index_t job) noexcept nogil:
    # The run time of a running job is another than it was when it started.
    cdef Py_ssize_t place = heap_place(core, job)
    cdef Running entry = core.heap[place]
    heap_remove(core, place)
    entry.end_time = core.start_time[job] + core.run_time[job]
    core.end_time[job] = entry.end_time
    core.running += 1
    sift_up(core.heap, core.running - 1, entry)


cdef inline int pop_due(MachineCore* core) except -1 nogil:
    # Terminations due by view.now; their pass is left pending, or made after each.
    while core.running and core.heap[0].end_time <= core.view.now:
        core_pop_ended(core)
        if core.ops.per_event:
            core_pass(core)
    return 0


cdef int core_pop_due(MachineCore* core) except -1 nogil:
    return pop_due(core)


cdef int core_advance(MachineCore* core, seconds_t until, bint inclusive) except -1 nogil:
    # Handles, instant by instant, all that is due before `until`; at `until` too where inclusive.
    cdef seconds_t time
    while True:
        if core.pass_pending and (inclusive or core.view.now < until):
            pop_due(core)
            core_pass(core)
        time = core_next_time(core)
        if time == INFINITY or time > until or (time == until and not inclusive):
            return 0
        core_set_clock(core, time)
        pop_due(core)
        if core.pass_pending or core.view.wake_time <= time:
            core_pass(core)


cdef Py_ssize_t core_replay(
    MachineCore* core, Py_ssize_t row, Py_ssize_t stop, Py_ssize_t count
) except -1 nogil:
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
        pop_due(core)
        if not core.ops.per_event:
            while row < count and submit_time[row] == view.now:
                core_enqueue(core, <job_index_t> row)
                row += 1
            core_pass(core)
