"""The malleable machine: running jobs, their true ends, and what a pass may do to them."""

from libc.math cimport floor

from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.malleable._view cimport (
    NO_MACHINE,
    REQUEUE,
    View,
    completion,
    eligible,
    list_holds,
    list_insert,
    list_remove,
    speed,
    unit_utility,
)


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
        not list_holds(view.waiting, job)
        or not eligible(view, job)
        or not view.columns.width_min[job] <= processors <= view.columns.width[job]
        or processors > view.processors_free
    ):
        refuse(b"started", job)
    list_remove(view.waiting, job)
    list_insert(&view.running, job)
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
    if not list_holds(&view.running, job):
        refuse(b"suspended", job)
    settle(core, job)
    list_remove(&view.running, job)
    list_insert(view.waiting, job)
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
        not list_holds(&view.running, job)
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
    if not list_holds(view.waiting, job):
        refuse(b"dropped", job)
    list_remove(view.waiting, job)
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
    list_remove(&view.running, job)
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
