"""Sets of the choices that may be free in a slice of time, in each order that choices have.

The builder removes what it occupies; `_places` only examines choices that are still in them.
"""

from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from broker.planner._arena cimport Arena, cut
from broker.planner._instance cimport CHEAPEST, FASTEST, ORDERS, Instance
from broker.planner._scratch cimport RAS_2, RAS_3, Scratch, Sets, Strategy
from broker.planner._timetable cimport Span
from broker.planner._types cimport choice_t, resource_t, seconds_t, word_t


cdef void cut_sets(Sets* sets, const Scratch* scratch, Arena* arena) noexcept:
    cdef Py_ssize_t size = scratch.buckets * scratch.instance.words
    sets.maybe_free = <word_t*> cut(arena, size, sizeof(word_t))
    sets.untouched = <word_t*> cut(arena, size, sizeof(word_t))
    sets.live = <word_t*> cut(arena, scratch.buckets * scratch.live_words, sizeof(word_t))


cdef void fill_sets(Scratch* scratch) noexcept:
    cdef Py_ssize_t size = scratch.buckets * scratch.instance.words * sizeof(word_t)
    cdef const Sets* sets
    cdef int32_t i, k, bucket
    for i in range(ORDERS):
        scratch.in_use[i] = True
        sets = &scratch.sets_before[i]
        memset(sets.untouched, 0xFF, size)
        for k in range(scratch.instance.choices):
            for bucket in range(scratch.buckets):
                sets.maybe_free[(k >> 6) * scratch.buckets + bucket] |= <word_t> 1 << (k & 63)
                sets.live[bucket * scratch.live_words + (k >> 12)] |= (
                    <word_t> 1 << ((k >> 6) & 63)
                )


cdef void begin_sets(Scratch* scratch, Strategy strategy) noexcept nogil:
    # As before anything is planned.
    cdef Py_ssize_t size = scratch.buckets * scratch.instance.words * sizeof(word_t)
    cdef const Sets* sets
    cdef const Sets* before
    cdef int32_t order
    scratch.in_use[FASTEST] = strategy != RAS_2
    scratch.in_use[CHEAPEST] = strategy == RAS_2 or strategy == RAS_3
    for order in range(ORDERS):
        if scratch.in_use[order]:
            sets = &scratch.sets[order]
            before = &scratch.sets_before[order]
            memcpy(sets.maybe_free, before.maybe_free, size)
            memcpy(sets.untouched, before.untouched, size)
            memcpy(sets.live, before.live, scratch.buckets * scratch.live_words * sizeof(word_t))
            scratch.first_live[order] = 0


cdef inline void remove_choice(
    const Scratch* scratch,
    const Sets* sets,
    choice_t rank,
    const int32_t* touched,
    const int32_t* taken,
) noexcept nogil:
    # Removes a choice from the sets of some buckets, each from the first to before the second.
    cdef word_t others = ~(<word_t> 1 << (rank & 63))
    cdef Py_ssize_t word = rank >> 6
    cdef word_t* row = sets.untouched + word * scratch.buckets
    cdef word_t* live = sets.live + (word >> 6)
    cdef int32_t bucket
    for bucket in range(touched[0], touched[1]):
        row[bucket] &= others
    row = sets.maybe_free + word * scratch.buckets
    for bucket in range(taken[0], taken[1]):
        row[bucket] &= others
        if row[bucket] == 0:
            live[bucket * scratch.live_words] &= ~(<word_t> 1 << (word & 63))


cdef void mark_full(
    const Scratch* scratch, const Sets* sets, resource_t resource, const Span* full
) noexcept nogil:
    # Updates the buckets affected by occupying a resource.
    cdef const Instance* instance = scratch.instance
    cdef seconds_t now = instance.now
    cdef int32_t last = scratch.buckets - 1
    cdef double place = (max(full.fresh_begin, now) - now) / scratch.width
    cdef int32_t bucket, order, i
    cdef int32_t[2] touched
    cdef int32_t[2] taken
    cdef seconds_t bucket_begin, bucket_end
    if place >= last or full.begin >= full.end:
        return
    bucket = <int32_t> place
    touched[0] = touched[1] = taken[0] = taken[1] = bucket
    bucket_end = now + bucket * scratch.width
    while bucket < last and bucket_end < full.fresh_end:
        bucket_begin = bucket_end
        bucket_end = now + (bucket + 1) * scratch.width
        if full.begin < bucket_end and bucket_begin < full.end:
            if touched[1] != bucket:
                touched[0] = bucket
            touched[1] = bucket + 1
            if full.begin <= bucket_begin and bucket_end <= full.end:
                if taken[1] != bucket:
                    taken[0] = bucket
                taken[1] = bucket + 1
        bucket += 1
    for order in range(ORDERS):
        if scratch.in_use[order]:
            for i in range(instance.choice_begin[resource], instance.choice_begin[resource + 1]):
                remove_choice(
                    scratch,
                    &sets[order],
                    instance.rank[order][instance.choice_of[i]],
                    touched,
                    taken,
                )
