"""The search for the best place for a task among its alternatives.

The paper's strategies take the alternative that can start earliest; among ties, the first in the
order of the strategy (the fastest, or the cheapest). Our own take the one that ends earliest.
Examining every alternative of every task would dominate the running time, so for slices of time
("buckets") there is the set of choices that may be free in them, as bits in the order of the
strategy. A choice missing from the set of a bucket cannot start in it. Buckets are scanned from
the earliest start on, and only members of the sets are searched, each once, until later ones
cannot beat what has been found. The result is that of examining all; the width of the buckets only
affects the time.

A second set for each bucket has the choices that are never fully occupied in it. A task that
starts in a bucket covers some of the next ones completely, by its duration; a choice missing from
the second set of the last of these, or of the middle one, is not searched either.
"""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from broker.planner._instance cimport CHEAPEST, FASTEST, Instance, duration_on, placement_cost_fast
from broker.planner._scratch cimport BUCKETS_MAX, RAS_2, RAS_3, RAS_4, RAS_5, RAS_6
from broker.planner._timetable cimport timetable_fit_fast
from broker.planner._types cimport word_t, workflow_t

cdef extern from *:
    int lowest_bit "__builtin_ctzll"(unsigned long long word) noexcept nogil

cdef extern from *:
    """
    /* As in broker.model.plan. */
    #define hanse_end_tolerance 1e-6
    """
    const double TIME_TOLERANCE "hanse_end_tolerance"

# Rounding in sums must not exceed a budget that just suffices.
cdef double SHARE_TOLERANCE = 1e-8


cdef seconds_t choice_fit(
    const Scratch* scratch, choice_t choice, seconds_t earliest, seconds_t duration, seconds_t limit
) noexcept nogil:
    # The earliest start at which every resource of the choice is free; beyond the limit, any
    # moment beyond it may be returned.
    cdef const Instance* instance = scratch.instance
    cdef int32_t begin = instance.demand_begin[choice]
    cdef int32_t end = instance.demand_begin[choice + 1]
    cdef int32_t i = begin
    cdef int32_t settled = 0
    cdef seconds_t start = earliest
    cdef seconds_t found
    while True:
        found = timetable_fit_fast(
            &scratch.tables[instance.demand_resource[i]],
            start,
            duration,
            instance.demand_units[i],
        )
        if found > start:
            start = found
            settled = 0
        settled += 1
        if settled == end - begin or start > limit:
            return start
        i = i + 1 if i + 1 < end else begin


cdef inline seconds_t since_at(
    const Scratch* scratch, choice_t choice, seconds_t earliest
) noexcept nogil:
    # From when on the task can begin on a choice, which depends on the site if it needs files.
    return earliest if scratch.near == NULL else scratch.near[scratch.instance.site[choice]]


cdef inline void consider(
    const Scratch* scratch,
    task_t task,
    int32_t order,
    choice_t rank,
    seconds_t earliest,
    Slot* best,
) noexcept nogil:
    # Searches one choice and keeps it if it is better: by start, then cost if the strategy prefers
    # the cheapest and prices vary, then rank.
    cdef const Instance* instance = scratch.instance
    cdef choice_t choice = instance.by_rank[order][rank]
    cdef seconds_t duration = duration_on(instance, task, choice)
    cdef seconds_t start = choice_fit(
        scratch, choice, since_at(scratch, choice, earliest), duration, best.start
    )
    cdef money_t cost = 0.0
    cdef bint better
    if start > best.start or start == INFINITY:
        return
    if order == CHEAPEST and (instance.prices_vary or scratch.near_cost != NULL):
        cost = placement_cost_fast(instance, choice, start, duration)
        if scratch.near_cost != NULL:
            cost += scratch.near_cost[instance.site[choice]]
    better = start < best.start or cost < best.cost or (cost == best.cost and rank < best.rank)
    if better:
        best.choice = choice
        best.rank = rank
        best.start = start
        best.cost = cost


cdef void find_few(
    const Scratch* scratch, task_t task, int32_t order, seconds_t earliest, Slot* best
) noexcept nogil:
    cdef const Instance* instance = scratch.instance
    cdef int32_t i
    for i in range(instance.few_begin[task], instance.few_begin[task + 1]):
        consider(scratch, task, order, instance.rank[order][instance.few[i]], earliest, best)


cdef inline int32_t buckets_covered(const Scratch* scratch, task_t task) noexcept nogil:
    # How many buckets after its first one a task surely covers completely; one less than by the
    # duration, so that rounding does not matter.
    cdef double covered = scratch.instance.shortest[task] / scratch.width - 2.0
    return BUCKETS_MAX if covered >= BUCKETS_MAX else <int32_t> covered


cdef inline int32_t first_live(Scratch* scratch, int32_t order) noexcept nogil:
    # The first bucket in which anything may be free. Sets only shrink during a schedule.
    cdef int32_t bucket = scratch.first_live[order]
    cdef int32_t last = scratch.buckets - 1
    cdef Py_ssize_t k
    cdef word_t live
    while bucket < last:
        live = 0
        for k in range(scratch.live_words):
            live |= scratch.sets[order].live[bucket * scratch.live_words + k]
        if live:
            break
        bucket += 1
    scratch.first_live[order] = bucket
    return bucket


cdef inline word_t found_in(
    const Scratch* scratch, int32_t order, Py_ssize_t i, int32_t bucket, int32_t reach
) noexcept nogil:
    # The candidates of one word that may start in a bucket and be free for the whole duration.
    cdef Py_ssize_t row = i * scratch.buckets + bucket
    cdef word_t word = scratch.candidates[i] & scratch.sets[order].maybe_free[row]
    if word and reach > 0 and bucket + reach < scratch.buckets - 1:
        word &= scratch.sets[order].untouched[row + (reach + 1) // 2]
        word &= scratch.sets[order].untouched[row + reach]
    return word


cdef void find_many(
    Scratch* scratch, task_t task, int32_t order, seconds_t earliest, Slot* best
) noexcept nogil:
    cdef const Instance* instance = scratch.instance
    cdef Py_ssize_t words = instance.words
    cdef word_t* candidates = scratch.candidates
    cdef bint first_wins = not (
        order == CHEAPEST and (instance.prices_vary or scratch.near_cost != NULL)
    )
    cdef int32_t last = scratch.buckets - 1
    cdef double place = (earliest - instance.now) / scratch.width
    cdef int32_t bucket = last if place >= last else <int32_t> place
    cdef int32_t reach = buckets_covered(scratch, task)
    cdef word_t word, live
    cdef Py_ssize_t i, k
    memcpy(candidates, &instance.usable[order][task * words], words * sizeof(word_t))
    bucket = max(bucket, first_live(scratch, order))
    while True:
        for k in range(scratch.live_words):
            live = scratch.sets[order].live[bucket * scratch.live_words + k]
            while live:
                i = 64 * k + lowest_bit(live)
                if i >= words:
                    break
                live &= live - 1
                word = found_in(scratch, order, i, bucket, reach)
                candidates[i] ^= word
                while word:
                    consider(
                        scratch, task, order, <choice_t> (64 * i + lowest_bit(word)), earliest, best
                    )
                    if first_wins and best.start == earliest:
                        # Ranks come in order, and nothing starts earlier.
                        return
                    word &= word - 1
        bucket += 1
        if bucket > last or best.start < instance.now + bucket * scratch.width:
            return


cdef money_t budget_share(const Scratch* scratch, task_t task) noexcept nogil:
    # What RAS-5 lets a task cost: the rest of the workflow's budget, divided among the unplanned
    # tasks in proportion to their least costs, so that each later task can have its least cost. A
    # workflow that cannot keep its budget any more ignores it. So does one whose tasks that are
    # left cost nothing where that is least: of a sum from which all others were taken a rounding
    # may be left.
    cdef const Instance* instance = scratch.instance
    cdef workflow_t workflow = instance.workflow[task]
    cdef money_t left = scratch.left[workflow]
    cdef money_t least = scratch.least_left[workflow]
    if (
        left == INFINITY
        or least <= SHARE_TOLERANCE * instance.least_total[workflow]
        or left < least - SHARE_TOLERANCE * instance.least_total[workflow]
    ):
        return INFINITY
    return instance.least_cost[task] * max(1.0, left / least) * (1.0 + SHARE_TOLERANCE)


cdef inline void consider_end(
    const Scratch* scratch,
    task_t task,
    choice_t choice,
    seconds_t earliest,
    money_t share,
    Slot* best,
) noexcept nogil:
    # Searches one choice and keeps it if the task ends earlier there; ties by speed.
    cdef const Instance* instance = scratch.instance
    cdef seconds_t duration = duration_on(instance, task, choice)
    cdef money_t rate = instance.rate[choice]
    cdef seconds_t start, end
    if scratch.near_cost != NULL:
        share -= scratch.near_cost[instance.site[choice]]
    if rate * duration > share:
        return
    start = choice_fit(
        scratch, choice, since_at(scratch, choice, earliest), duration, best.end
    )
    end = start + duration
    if end > best.end or start == INFINITY or (end == best.end and choice > best.choice):
        return
    if isnan(rate) and share < INFINITY and (
        placement_cost_fast(instance, choice, start, duration) > share
    ):
        return
    best.choice = choice
    best.start = start
    best.end = end


cdef void find_end(
    Scratch* scratch, task_t task, seconds_t earliest, money_t share, Slot* best
) noexcept nogil:
    # As `find_many`, but for the earliest end. Choices in a bucket come fastest first; if one
    # could not end sooner even by starting with the bucket, neither can the slower ones, nor any
    # in later buckets.
    cdef const Instance* instance = scratch.instance
    cdef Py_ssize_t words = instance.words
    cdef word_t* candidates = scratch.candidates
    cdef int32_t last = scratch.buckets - 1
    cdef double place = (earliest - instance.now) / scratch.width
    cdef int32_t bucket = last if place >= last else <int32_t> place
    cdef int32_t reach = buckets_covered(scratch, task)
    cdef word_t word, live
    cdef choice_t choice
    cdef Py_ssize_t i, k
    cdef seconds_t begin
    for i in range(instance.few_begin[task], instance.few_begin[task + 1]):
        consider_end(scratch, task, instance.few[i], earliest, share, best)
    if instance.few_begin[task] < instance.few_begin[task + 1]:
        return
    memcpy(
        candidates, &instance.usable[FASTEST][task * instance.words], words * sizeof(word_t)
    )
    bucket = max(bucket, first_live(scratch, FASTEST))
    while bucket <= last:
        begin = max(earliest, instance.now + bucket * scratch.width)
        if begin + instance.shortest[task] > best.end:
            return
        for k in range(scratch.live_words):
            live = scratch.sets[FASTEST].live[bucket * scratch.live_words + k]
            while live:
                i = 64 * k + lowest_bit(live)
                if i >= words:
                    break
                live &= live - 1
                word = found_in(scratch, FASTEST, i, bucket, reach)
                candidates[i] ^= word
                while word:
                    choice = <choice_t> (64 * i + lowest_bit(word))
                    if begin + duration_on(instance, task, choice) > best.end:
                        words = i + 1
                        break
                    consider_end(scratch, task, choice, earliest, share, best)
                    word &= word - 1
        bucket += 1


cdef bint find_kept(
    const Scratch* scratch, task_t task, seconds_t earliest, Slot* best
) noexcept nogil:
    # Where the old plan has the task, whatever its share of the budget: the old plan could afford
    # it. Returns whether it ends no later than in that plan.
    cdef const Instance* instance = scratch.instance
    cdef choice_t choice = instance.kept[task]
    cdef seconds_t duration, start
    if choice < 0:
        return False
    duration = duration_on(instance, task, choice)
    start = choice_fit(
        scratch, choice, since_at(scratch, choice, earliest), duration, INFINITY
    )
    if start == INFINITY:
        return False
    best.choice = choice
    best.start = start
    best.end = start + duration
    return best.end <= instance.kept_end[task] + TIME_TOLERANCE


cdef void find_place(
    Scratch* scratch, task_t task, Strategy strategy, Slot* best
) noexcept nogil:
    # Steps 2 and 3 of section 3.3 for a task whose predecessors are planned.
    cdef const Instance* instance = scratch.instance
    cdef seconds_t ready = scratch.ready[task]
    cdef money_t share = INFINITY
    cdef int32_t order = FASTEST
    cdef Slot kept
    best.choice = -1
    best.start = best.end = best.cost = INFINITY
    best.rank = 0
    if scratch.near != NULL:
        ready = scratch.near_least
    if scratch.assigned != NULL:
        best.start = choice_fit(
            scratch, scratch.assigned[task], since_at(scratch, scratch.assigned[task], ready),
            duration_on(instance, task, scratch.assigned[task]), INFINITY,
        )
        if best.start < INFINITY:
            best.choice = scratch.assigned[task]
        return
    if strategy >= RAS_4:
        kept = best[0]
        if strategy == RAS_6 and find_kept(scratch, task, ready, &kept):
            best[0] = kept
            return
        if strategy >= RAS_5:
            share = budget_share(scratch, task)
        find_end(scratch, task, ready, share, best)
        if best.choice < 0 and share < INFINITY:
            # If prices vary, no moment may be cheap enough.
            find_end(scratch, task, ready, INFINITY, best)
        if kept.choice >= 0 and kept.end <= best.end:
            best[0] = kept
        return
    if strategy == RAS_2:
        order = CHEAPEST
    elif strategy == RAS_3:
        order = instance.favourite[instance.workflow[task]]
    if instance.few_begin[task] < instance.few_begin[task + 1]:
        find_few(scratch, task, order, ready, best)
    else:
        find_many(scratch, task, order, ready, best)
