"""The scheduling pass of the paper: best fit, then preemption, then oversubscription.

Source: Vengerov, section 4.1. Every function takes a view, which has no run times. Ranks and
choices are total orders: what ties is decided by the job's number.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport qsort

from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.malleable._value cimport Learner, State, value_of
from lrms_sim.malleable._view cimport (
    GROW_FIRST,
    LEAVE_NEVER,
    LEAVE_ZERO,
    NOBODY,
    PassResult,
    View,
    completion,
    eligible,
    final_utility,
    has_memory,
    may_be_suspended,
    remaining_utility,
    unit_utility,
)


cdef inline seconds_t alone(const View* view, job_index_t job) noexcept nogil:
    # When a waiting job would be done if it got all of its processors now.
    return completion(view, job, view.columns.width[job], view.notes.left[job])


cdef void leave_due(View* view) noexcept nogil:
    # Step 1: jobs that nobody gains from any more leave the queue, suspended ones too.
    cdef Py_ssize_t place = 0
    cdef job_index_t job
    cdef bint gone
    if view.options.leave == LEAVE_NEVER:
        return
    while place < view.waiting.count:
        job = view.waiting.job[place]
        if view.options.leave == LEAVE_ZERO:
            gone = view.columns.floor[job] <= 0.0 and view.now >= (
                view.columns.submit_time[job]
                + view.columns.zero[job] * view.columns.request[job]
            )
        else:
            gone = unit_utility(view, job, alone(view, job)) <= 0.0
        if gone:
            view.leave(view, job)
        else:
            place += 1


cdef int grow(View* view, PassResult* result) except -1 nogil:
    # Squeezed jobs get free processors up to their width, lowest number first.
    cdef Py_ssize_t place
    cdef job_index_t job
    cdef processors_t wanted
    for place in range(view.running.count):
        if view.processors_free == 0:
            break
        job = view.running.job[place]
        wanted = view.columns.width[job] - view.notes.held[job]
        if wanted > 0:
            if wanted > view.processors_free:
                wanted = view.processors_free
            view.resize(view, job, view.notes.held[job] + wanted)
            result.changed = True
    return 0


cdef int best_fit(View* view, PassResult* result) except -1 nogil:
    # The waiting job that leaves fewest processors free, until none fits; ties: the highest
    # final utility, then the lowest number (paper, section 3.1).
    cdef Py_ssize_t place
    cdef job_index_t job, best
    cdef processors_t width, best_width
    cdef double utility, best_utility
    while view.waiting.count > 0 and view.processors_free > 0:
        best = NOBODY
        best_width = 0
        best_utility = -1.0  # unknown until a tie asks for it
        for place in range(view.waiting.count):
            job = view.waiting.job[place]
            width = view.columns.width[job]
            if width < best_width or width > view.processors_free or not eligible(view, job):
                continue
            if width > best_width:
                best = job
                best_width = width
                best_utility = -1.0
                continue
            if best_utility < 0.0:
                best_utility = final_utility(view, best, alone(view, best))
            utility = final_utility(view, job, alone(view, job))
            if utility > best_utility:
                best = job
                best_utility = utility
        if best == NOBODY:
            break
        view.start(view, best, best_width)
        result.changed = True
    return 0


cdef State state_of(const View* view) noexcept nogil:
    # Section 3.3; an empty machine has x1 = x2 = 0.
    cdef State state
    cdef Py_ssize_t place
    cdef job_index_t job
    cdef double held = 0.0
    cdef double utility = 0.0
    cdef seconds_t first = INFINITY
    for place in range(view.running.count):
        job = view.running.job[place]
        held += view.notes.held[job]
        utility += view.notes.held[job] * unit_utility(view, job, view.notes.expected_end[job])
        if view.notes.expected_end[job] < first:
            first = view.notes.expected_end[job]
    state.x1 = utility / held if held > 0.0 else 0.0
    state.x2 = first - view.now if held > 0.0 else 0.0
    state.x3 = view.processors_free
    return state


cdef int by_rank(const void* left, const void* right) noexcept nogil:
    cdef const Victim* a = <const Victim*> left
    cdef const Victim* b = <const Victim*> right
    if a.remaining != b.remaining:
        return -1 if a.remaining < b.remaining else 1
    return -1 if a.job < b.job else 1


cdef Py_ssize_t rank_running(const View* view, Scratch* scratch) noexcept nogil:
    # Ranks the running jobs that may be suspended, ascending by remaining utility, and sums over
    # what would still run if those before a rank were suspended. Says how many there are.
    cdef Victim* ranked = scratch.victim
    cdef Victim entry
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t place, rank
    cdef job_index_t job
    cdef double held = 0.0
    cdef double utility = 0.0
    cdef seconds_t first = INFINITY
    for place in range(view.running.count):
        job = view.running.job[place]
        entry.job = job
        entry.held = view.notes.held[job]
        entry.unit = unit_utility(view, job, view.notes.expected_end[job])
        entry.time_left = view.notes.expected_end[job] - view.now
        if not may_be_suspended(view, job):
            held += entry.held
            utility += entry.held * entry.unit
            if entry.time_left < first:
                first = entry.time_left
            continue
        entry.remaining = remaining_utility(entry.unit, entry.time_left)
        if view.running.count <= 32:
            rank = count
            while rank > 0 and by_rank(&entry, &ranked[rank - 1]) < 0:
                ranked[rank] = ranked[rank - 1]
                rank -= 1
            ranked[rank] = entry
        else:
            ranked[count] = entry
        count += 1
    if view.running.count > 32:
        qsort(ranked, count, sizeof(Victim), by_rank)
    scratch.held_after[count] = held
    scratch.utility_after[count] = utility
    scratch.time_after[count] = first
    for rank in range(count - 1, -1, -1):
        held += ranked[rank].held
        utility += ranked[rank].held * ranked[rank].unit
        if ranked[rank].time_left < first:
            first = ranked[rank].time_left
        scratch.held_after[rank] = held
        scratch.utility_after[rank] = utility
        scratch.time_after[rank] = first
    return count


cdef Py_ssize_t victims_for(
    const View* view, const Scratch* scratch, Py_ssize_t count, job_index_t job, double remaining
) noexcept nogil:
    # How many of the first victims make room for a job; NOBODY if it does not qualify.
    cdef long wanted = view.columns.width[job] - view.processors_free
    cdef double stored = view.suspended
    cdef Py_ssize_t rank = 0
    stored -= view.notes.stored[job]
    while wanted > 0:
        if rank == count or scratch.victim[rank].remaining > remaining:
            return NOBODY
        wanted -= scratch.victim[rank].held
        stored += scratch.victim[rank].held
        rank += 1
    return rank if rank == 0 or has_memory(view, stored) else NOBODY


cdef seconds_t room_at(const View* view, const Scratch* scratch, job_index_t job) noexcept nogil:
    # When a job would find its processors free if the running jobs ended as expected.
    cdef Py_ssize_t place
    cdef job_index_t other
    cdef long free
    cdef seconds_t last = view.now
    cdef seconds_t next
    free = view.processors_free
    while free < view.columns.width[job]:
        next = INFINITY
        for place in range(view.running.count):
            other = view.running.job[place]
            if last < view.notes.expected_end[other] < next:
                next = view.notes.expected_end[other]
        if next == INFINITY:
            return last
        for place in range(view.running.count):
            other = view.running.job[place]
            if view.notes.expected_end[other] == next:
                free += view.notes.held[other]
        last = next
    return last


cdef double gain_of(
    const View* view, const Scratch* scratch, Py_ssize_t victims, job_index_t job, seconds_t end
) noexcept nogil:
    # What final utilities gain in this one step: the job against its wait for room, less what
    # the victims lose by waiting until it has ended.
    cdef seconds_t left = view.notes.left[job]
    cdef seconds_t later
    cdef Py_ssize_t rank
    cdef job_index_t other
    cdef double gain = final_utility(view, job, end)
    gain -= final_utility(view, job, room_at(view, scratch, job) + left)
    for rank in range(victims):
        other = scratch.victim[rank].job
        later = view.notes.expected_end[other] + left + view.options.suspension_cost
        gain -= final_utility(view, other, view.notes.expected_end[other])
        gain += final_utility(view, other, later)
    return gain


cdef inline bint takes(Choice choice) noexcept nogil:
    # Whether a policy acts whenever it can.
    return choice == CHOOSE_AGGRESSIVE or choice == CHOOSE_HIGHEST


cdef inline bint comes_first(
    const View* view, Choice choice, job_index_t job, double utility, job_index_t best,
    double best_utility
) noexcept nogil:
    # The order of those policies: width, unless only utility counts; final utility; number.
    if best == NOBODY:
        return True
    if choice == CHOOSE_AGGRESSIVE and view.columns.width[job] != view.columns.width[best]:
        return view.columns.width[job] < view.columns.width[best]
    return utility > best_utility


cdef int preempt(
    View* view, Choice choice, const Learner* learner, Scratch* scratch, PassResult* result
) except -1 nogil:
    # Steps 4 to 7: forces at most one job.
    cdef Py_ssize_t count = rank_running(view, scratch)
    cdef Py_ssize_t place, victims
    cdef Py_ssize_t best_victims = 0
    cdef job_index_t job
    cdef job_index_t best = NOBODY
    cdef double unit, worth, remaining
    cdef double best_worth = 0.0
    cdef seconds_t end, left
    if choice == CHOOSE_VALUE:
        best_worth = value_of(learner, state_without(view, scratch, 0))
    for place in range(view.waiting.count):
        job = view.waiting.job[place]
        if not eligible(view, job):
            continue
        end = alone(view, job)
        left = end - view.now
        unit = unit_utility(view, job, end)
        if unit <= 0.0 and not view.options.worthless:
            continue
        remaining = INFINITY if choice == CHOOSE_GREEDY else remaining_utility(unit, left)
        victims = victims_for(view, scratch, count, job, remaining)
        if victims == NOBODY:
            continue
        if takes(choice):
            worth = unit * view.columns.width[job] * view.columns.request[job]
            if not comes_first(view, choice, job, worth, best, best_worth):
                continue
        else:
            if choice == CHOOSE_VALUE:
                worth = value_of(
                    learner,
                    state_with(view, scratch, victims, view.columns.width[job], unit, left),
                )
            else:
                worth = gain_of(view, scratch, victims, job, end)
            if worth <= best_worth:
                continue
        best = job
        best_worth = worth
        best_victims = victims
    if best != NOBODY:
        for place in range(best_victims):
            view.suspend(view, scratch.victim[place].job)
        view.start(view, best, view.columns.width[best])
        result.acted = True
        result.changed = True
    return 0


cdef int squeeze(
    View* view, Choice choice, const Learner* learner, Scratch* scratch, PassResult* result
) except -1 nogil:
    # Steps 8 to 11, against the value of the state that a preemption may have left.
    cdef Py_ssize_t place
    cdef job_index_t job
    cdef job_index_t best = NOBODY
    cdef processors_t processors
    cdef double unit, worth
    cdef double best_worth = 0.0
    cdef seconds_t end
    if not takes(choice):
        rank_running(view, scratch)
    if choice == CHOOSE_VALUE:
        best_worth = value_of(learner, state_without(view, scratch, 0))
    for place in range(view.waiting.count):
        job = view.waiting.job[place]
        if not eligible(view, job) or view.columns.width_min[job] > view.processors_free:
            continue
        processors = view.columns.width[job]
        if processors > view.processors_free:
            processors = view.processors_free
        end = completion(view, job, processors, view.notes.left[job])
        unit = unit_utility(view, job, end)
        if unit <= 0.0 and not view.options.worthless:
            continue
        if takes(choice):
            worth = final_utility(view, job, alone(view, job))
            if not comes_first(view, choice, job, worth, best, best_worth):
                continue
        else:
            if choice == CHOOSE_VALUE:
                worth = value_of(
                    learner, state_with(view, scratch, 0, processors, unit, end - view.now)
                )
            else:
                worth = gain_of(view, scratch, 0, job, end)
            if worth <= best_worth:
                continue
        best = job
        best_worth = worth
    if best != NOBODY:
        processors = view.columns.width[best]
        if processors > view.processors_free:
            processors = view.processors_free
        view.start(view, best, processors)
        result.acted = True
        result.changed = True
    return 0


cdef int act(
    View* view, const PassPolicy* policy, const Learner* learner, Scratch* scratch,
    PassResult* result
) except -1 nogil:
    # What the paper adds to best fit, if jobs still wait.
    cdef bint acted
    if policy.preemption != CHOOSE_NEVER and view.waiting.count > 0:
        result.considered = True
        acted = result.acted
        result.acted = False
        preempt(view, policy.preemption, learner, scratch, result)
        if result.acted and view.options.refit:
            if view.options.grow == GROW_FIRST:
                grow(view, result)
            best_fit(view, result)
        result.acted = result.acted or acted
    if policy.oversubscription != CHOOSE_NEVER and view.waiting.count > 0:
        result.considered = True
        if view.processors_free > 0:
            squeeze(view, policy.oversubscription, learner, scratch, result)
    return 0
