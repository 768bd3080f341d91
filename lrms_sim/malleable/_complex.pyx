"""Malleable machines around one queue, and their clock.

At one instant all jobs that end now are taken first (by machine, then job number), then all
arrivals, then every machine makes one pass. Nothing happens at other times.
"""

from libc.math cimport INFINITY
from libc.string cimport memset

from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.malleable._core cimport (
    ARRIVE,
    STEP_SIZE,
    WAITING,
    MalleableCore,
    Steps,
    finish,
    leave,
    note,
    resize,
    start,
    suspend,
)
from lrms_sim.malleable._orders cimport follow
from lrms_sim.malleable._passes cimport (
    CHOOSE_VALUE,
    act,
    best_fit,
    grow,
    leave_due,
    rank_running,
    state_of,
    state_with,
    state_without,
    victims_for,
)
from lrms_sim.malleable._value cimport RULES, Learner, learn, value_of
from lrms_sim.malleable._view cimport (
    GROW_FIRST,
    GROW_LAST,
    NOBODY,
    PassResult,
    View,
    completion,
    eligible,
    list_insert,
    remaining_utility,
    unit_utility,
)


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
    list_insert(&all.waiting, job)
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


cdef int replay(
    Complex* all, seconds_t until, Py_ssize_t rows, Py_ssize_t count
) except -1 nogil:
    # What happens up to `until`, and at most up to arrival `rows` of `count`.
    cdef const seconds_t* submit_time = all.core[0].view.columns.submit_time
    cdef seconds_t next_submit, next_end, now
    while True:
        next_submit = submit_time[all.row] if all.row < count else INFINITY
        next_end = complex_next_end(all)
        now = next_submit if next_submit < next_end else next_end
        if now == INFINITY or now > until or (next_submit <= next_end and all.row >= rows):
            return 0
        complex_instant(all, now)
        while all.row < count and submit_time[all.row] == now:
            complex_arrive(all, <job_index_t> all.row)
            all.row += 1
        complex_pass(all)


cdef double value_rise(Complex* all, MalleableCore* core, job_index_t job) noexcept nogil:
    # By how much the value rises with a job: the best of what the policy may do.
    cdef View* view = &core.view
    cdef processors_t width = view.columns.width[job]
    cdef processors_t processors = width
    cdef seconds_t request = view.columns.request[job]
    cdef seconds_t time_left
    cdef double present, worth, unit
    cdef double best = -INFINITY
    cdef Py_ssize_t count, victims
    if width > view.processors or view.columns.width_min[job] < 1:
        return -INFINITY
    # A job that is offered has not begun; what the view notes of it is not written yet.
    count = rank_running(view, &all.scratch)
    present = value_of(&core.learner, state_without(view, &all.scratch, 0))
    if processors > view.processors_free:
        processors = view.processors_free
    if processors == width or (
        all.policy.passes.oversubscription == CHOOSE_VALUE
        and processors >= view.columns.width_min[job]
    ):
        time_left = completion(view, job, processors, request) - view.now
        unit = unit_utility(view, job, view.now + time_left)
        best = value_of(
            &core.learner, state_with(view, &all.scratch, 0, processors, unit, time_left)
        )
    if processors < width and all.policy.passes.preemption == CHOOSE_VALUE:
        request = completion(view, job, width, request) - view.now
        unit = unit_utility(view, job, view.now + request)
        victims = victims_for(
            view, &all.scratch, count, job, remaining_utility(unit, request)
        )
        if victims != NOBODY:
            worth = value_of(
                &core.learner, state_with(view, &all.scratch, victims, width, unit, request)
            )
            if worth > best:
                best = worth
    return best - present
