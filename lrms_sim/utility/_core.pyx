"""The malleable machine: clock, running jobs, true ends, and what a pass may do to them.

At one instant all jobs that end now are taken first (by machine, then job number), then all
arrivals, then every machine makes one pass. Nothing happens at other times.
"""

from libc.math cimport INFINITY, floor
from libc.string cimport memset

from lrms_sim._memory cimport doubled, safe_realloc
from lrms_sim._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.utility._orders cimport follow
from lrms_sim.utility._passes cimport (
    act,
    best_fit,
    grow,
    leave_due,
    state_of,
)
from lrms_sim.utility._value cimport RULES, learn
from lrms_sim.utility._view cimport (
    GROW_FIRST,
    GROW_LAST,
    NOBODY,
    NO_MACHINE,
    REQUEUE,
    JobList,
    PassResult,
    View,
    completion,
    eligible,
    list_find,
    speed,
    unit_utility,
)

cdef enum:
    STEP_SIZE = 4 + RULES


cdef int note(
    MalleableCore* core, Kind kind, job_index_t job, processors_t processors
) except -1 nogil:
    cdef Log* log = core.log
    cdef Py_ssize_t capacity
    if not log.kept:
        return 0
    if log.count == log.capacity:
        capacity = doubled(log.capacity, 256)
        log.entry = <LogEntry*> safe_realloc(
            log.entry, capacity, sizeof(LogEntry), b"entries of a log"
        )
        log.capacity = capacity
    log.entry[log.count].time = core.view.now
    log.entry[log.count].kind = kind
    log.entry[log.count].job = job
    log.entry[log.count].processors = processors
    log.entry[log.count].machine = core.view.number
    log.count += 1
    return 0


cdef inline void insert(JobList* jobs, job_index_t job) noexcept nogil:
    cdef Py_ssize_t place = jobs.count
    while place > 0 and jobs.job[place - 1] > job:
        jobs.job[place] = jobs.job[place - 1]
        place -= 1
    jobs.job[place] = job
    jobs.count += 1


cdef inline void remove(JobList* jobs, job_index_t job) noexcept nogil:
    cdef Py_ssize_t place = list_find(jobs, job)
    jobs.count -= 1
    while place < jobs.count:
        jobs.job[place] = jobs.job[place + 1]
        place += 1


cdef inline bint holds(const JobList* jobs, job_index_t job) noexcept nogil:
    cdef Py_ssize_t place = list_find(jobs, job)
    return place < jobs.count and jobs.job[place] == job


cdef int refuse(const char* what, job_index_t job) except -1 nogil:
    with gil:
        raise AssertionError(f"the policy {what.decode()} job {job}, which is impossible")


cdef void settle(MalleableCore* core, job_index_t job) noexcept nogil:
    # Counts what a running job has done since it got the processors it holds.
    cdef View* view = &core.view
    cdef processors_t held = view.notes.held[job]
    cdef processors_t width = view.columns.width[job]
    cdef seconds_t elapsed = view.now - view.notes.since[job]
    cdef seconds_t done = elapsed
    if held != width:
        done *= speed(&view.options.speedup, held, width)
        done /= speed(&view.options.speedup, width, width)
    view.notes.left[job] -= done
    if view.notes.left[job] < 0.0:
        view.notes.left[job] = 0.0
    core.results.run_left[job] -= done
    if core.results.run_left[job] < 0.0:
        core.results.run_left[job] = 0.0
    view.notes.since[job] = view.now
    core.busy += held * elapsed
    core.results.busy[job] += held * elapsed


cdef void expect(MalleableCore* core, job_index_t job) noexcept nogil:
    # When a job ends on what it holds: as anybody may expect, and really.
    cdef View* view = &core.view
    cdef processors_t held = view.notes.held[job]
    view.notes.expected_end[job] = completion(view, job, held, view.notes.left[job])
    core.results.true_end[job] = completion(view, job, held, core.results.run_left[job])


cdef int start(View* view, job_index_t job, processors_t processors) except -1 nogil:
    cdef MalleableCore* core = <MalleableCore*> view
    if (
        not holds(view.waiting, job)
        or not eligible(view, job)
        or not view.columns.width_min[job] <= processors <= view.columns.width[job]
        or processors > view.processors_free
    ):
        refuse(b"started", job)
    remove(view.waiting, job)
    insert(&view.running, job)
    view.processors_free -= processors
    view.suspended -= view.notes.stored[job]
    view.notes.stored[job] = 0
    view.notes.held[job] = processors
    view.notes.since[job] = view.now
    view.notes.resumed[job] = view.now
    if core.results.status[job] == WAITING and core.results.ran_on[job] == NO_MACHINE:
        core.results.first_start[job] = view.now
    core.results.ran_on[job] = view.number
    core.results.status[job] = RUNNING
    expect(core, job)
    return note(
        core, START if processors == view.columns.width[job] else SQUEEZE, job, processors
    )


cdef int suspend(View* view, job_index_t job) except -1 nogil:
    cdef MalleableCore* core = <MalleableCore*> view
    cdef processors_t held = view.notes.held[job]
    cdef seconds_t kept, done
    if not holds(&view.running, job):
        refuse(b"suspended", job)
    settle(core, job)
    remove(&view.running, job)
    insert(view.waiting, job)
    view.processors_free += held
    view.notes.held[job] = 0
    view.notes.suspensions[job] += 1
    core.suspensions += 1
    core.results.status[job] = WAITING
    if view.options.suspension == REQUEUE:
        # Back to the last checkpoint, or to the beginning; then it may go on anywhere.
        kept = core.run_time[job] - core.results.run_left[job]
        if view.options.checkpoint > 0.0:
            kept = floor(kept / view.options.checkpoint + 1e-9) * view.options.checkpoint
        else:
            kept = 0.0
        if kept < 0.0:
            kept = 0.0
        done = core.run_time[job] - core.results.run_left[job] - kept
        if done > 0.0:
            core.results.extra[job] += done
        core.results.run_left[job] = core.run_time[job] - kept
        view.notes.left[job] = view.columns.request[job] - kept
    else:
        view.notes.machine[job] = view.number
        view.notes.stored[job] = held
        view.suspended += held
    view.notes.left[job] += view.options.suspension_cost
    core.results.run_left[job] += view.options.suspension_cost
    core.results.extra[job] += view.options.suspension_cost
    return note(core, SUSPENDED, job, held)


cdef int resize(View* view, job_index_t job, processors_t processors) except -1 nogil:
    cdef MalleableCore* core = <MalleableCore*> view
    cdef processors_t more
    if (
        not holds(&view.running, job)
        or not view.columns.width_min[job] <= processors <= view.columns.width[job]
        or processors - view.notes.held[job] > view.processors_free
    ):
        refuse(b"resized", job)
    more = processors - view.notes.held[job]
    settle(core, job)
    view.processors_free -= more
    view.notes.held[job] = processors
    view.notes.left[job] += view.options.resize_cost
    core.results.run_left[job] += view.options.resize_cost
    core.results.extra[job] += view.options.resize_cost
    core.results.resizes[job] += 1
    core.resizes += 1
    expect(core, job)
    return note(core, RESIZE, job, processors)


cdef int leave(View* view, job_index_t job) except -1 nogil:
    cdef MalleableCore* core = <MalleableCore*> view
    if not holds(view.waiting, job):
        refuse(b"dropped", job)
    remove(view.waiting, job)
    if view.notes.stored[job] > 0:
        core.siblings[view.notes.machine[job]].view.suspended -= view.notes.stored[job]
        view.notes.stored[job] = 0
    core.results.status[job] = LEFT
    core.results.end[job] = view.now
    return note(core, DROP, job, 0)


cdef int finish(MalleableCore* core, job_index_t job) except -1 nogil:
    # A job ends now. What it brings goes by the work that it really was.
    cdef View* view = &core.view
    settle(core, job)
    remove(&view.running, job)
    view.processors_free += view.notes.held[job]
    view.notes.held[job] = 0
    core.results.status[job] = COMPLETED
    core.results.end[job] = view.now
    core.results.utility[job] = (
        unit_utility(view, job, view.now) * view.columns.width[job] * core.run_time[job]
    )
    core.utility += core.results.utility[job]
    core.learner.reward += core.results.utility[job]
    core.completed += 1
    core.ended = True
    return note(core, END, job, 0)


cdef int core_open(
    MalleableCore* core, Complex* owner, job_index_t number, processors_t processors
) except -1:
    memset(core, 0, sizeof(MalleableCore))
    core.view.number = number
    core.view.processors = processors
    core.view.processors_free = processors
    core.view.options = &owner.options
    core.view.waiting = &owner.waiting
    core.view.start = start
    core.view.suspend = suspend
    core.view.resize = resize
    core.view.leave = leave
    core.siblings = owner.core
    core.results = &owner.results
    core.log = &owner.log
    core.learner.scales.utility = 1.0
    core.learner.scales.time = 1.0
    core.learner.scales.processors = processors
    core.learner.time_unit = 1.0
    return 0


cdef seconds_t complex_next_end(const Complex* all) noexcept nogil:
    cdef Py_ssize_t number, place
    cdef seconds_t end
    cdef seconds_t first = INFINITY
    cdef const MalleableCore* core
    for number in range(all.count):
        core = &all.core[number]
        for place in range(core.view.running.count):
            end = all.results.true_end[core.view.running.job[place]]
            if end < first:
                first = end
    return first


cdef int complex_instant(Complex* all, seconds_t now) except -1 nogil:
    # Brings all clocks to `now` and ends the jobs that end there.
    cdef Py_ssize_t number, place
    cdef MalleableCore* core
    cdef job_index_t job
    all.now = now
    for number in range(all.count):
        core = &all.core[number]
        core.view.now = now
        place = 0
        while place < core.view.running.count:
            job = core.view.running.job[place]
            if all.results.true_end[job] <= now:
                finish(core, job)
                all.events += 1
            else:
                place += 1
    return 0


cdef int complex_arrive(Complex* all, job_index_t job) except -1 nogil:
    # A job joins the queue; a step that has begun already is not waited for.
    all.results.status[job] = WAITING
    all.results.run_left[job] = all.core[0].run_time[job]
    all.core[0].view.notes.left[job] = all.core[0].view.columns.request[job]
    insert(&all.waiting, job)
    all.events += 1
    return note(&all.core[0], ARRIVE, job, all.core[0].view.columns.width[job])


cdef int fit_jobs(Complex* all, PassResult* results) except -1 nogil:
    # Of several machines, the best for each job: fewest free processors on which it fits.
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t number, best
    cdef job_index_t job
    cdef processors_t width
    while place < all.waiting.count:
        job = all.waiting.job[place]
        width = all.core[0].view.columns.width[job]
        best = NOBODY
        for number in range(all.count):
            if (
                width <= all.core[number].view.processors_free
                and eligible(&all.core[number].view, job)
                and (
                    best == NOBODY
                    or all.core[number].view.processors_free < all.core[best].view.processors_free
                )
            ):
                best = number
        if best == NOBODY:
            place += 1
        else:
            start(&all.core[best].view, job, width)
            results[best].changed = True
    return 0


cdef int record_step(MalleableCore* core, double reward) except -1 nogil:
    cdef Steps* steps = &core.steps
    cdef Py_ssize_t capacity
    cdef int rule
    cdef double* row
    if not steps.kept:
        return 0
    if steps.count == steps.capacity:
        capacity = doubled(steps.capacity, 256)
        steps.value = <double*> safe_realloc(
            steps.value, capacity, STEP_SIZE * sizeof(double), b"learning steps"
        )
        steps.capacity = capacity
    row = &steps.value[steps.count * STEP_SIZE]
    row[0] = core.view.now
    row[1] = reward
    row[2] = core.learner.delta
    row[3] = core.learner.rho
    for rule in range(RULES):
        row[4 + rule] = core.learner.p[rule]
    steps.count += 1
    return 0


cdef int learn_from(MalleableCore* core, const PassResult* result) except -1 nogil:
    # When p is updated: the end of section 3.4.
    cdef Learner* learner = &core.learner
    cdef double reward = learner.reward
    cdef bint due = learner.pending and (core.ended or result.changed)
    core.ended = False
    if not learner.learning:
        return 0
    if result.acted or due:
        learner.pending = False
        if learn(learner, state_of(&core.view), core.view.now):
            record_step(core, reward)
    elif result.considered and not learner.stored:
        # The first state in which something was considered.
        learn(learner, state_of(&core.view), core.view.now)
    if result.considered and not result.acted:
        learner.pending = True
    return 0


cdef int complex_pass(Complex* all) except -1 nogil:
    # Stage 1 for all machines, then stage 2 for each (section 4.2).
    cdef Py_ssize_t number
    cdef MalleableCore* core
    cdef View* view
    cdef PassResult results[MACHINES_MAX]
    cdef bint first = all.options.grow == GROW_FIRST
    memset(results, 0, all.count * sizeof(PassResult))
    leave_due(&all.core[0].view)
    for number in range(all.count):
        view = &all.core[number].view
        if first and not all.policy.ordered:
            grow(view, &results[number])
        if all.policy.ordered:
            follow(view, &all.policy.order, &all.order_scratch, &results[number])
        elif not all.policy.job_fixed:
            best_fit(view, &results[number])
    if all.policy.job_fixed:
        fit_jobs(all, results)
    for number in range(all.count):
        core = &all.core[number]
        view = &core.view
        if not all.policy.ordered:
            act(view, &all.policy.passes, &core.learner, &all.scratch, &results[number])
            if all.options.grow == GROW_LAST:
                grow(view, &results[number])
        learn_from(core, &results[number])
    return 0
