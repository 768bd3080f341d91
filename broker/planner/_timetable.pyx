"""Timetables of resources: what is taken, and the search for gaps.

An exclusive resource (capacity 1) is a list of busy spans, touching ones joined; a shared one is a
step function of the units in use. Both are arrays in order of time that keep their memory, so that
planning the same problem again allocates nothing.
"""

from libc.math cimport INFINITY, floor
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from broker.planner._types cimport seconds_t, units_t
from lrms_sim.kernel._memory cimport safe_realloc

cdef seconds_t WEEK = 604_800.0

cdef enum:
    GAPS_MAX = 4    # so many on either side of a new span are looked at


cdef int timetable_open(Timetable* table, units_t capacity) except -1 nogil:
    table.capacity = capacity
    table.count = 0
    table.room = 0
    table.begin = table.end = NULL
    table.used = NULL
    table.openings = 0
    table.shortest = 0.0
    return timetable_grow(table, 16)


cdef void timetable_close(Timetable* table) noexcept nogil:
    free(table.begin)
    free(table.end)
    free(table.used)
    table.begin = table.end = NULL
    table.used = NULL


cdef int timetable_grow(Timetable* table, int32_t room) except -1 nogil:
    if room <= table.room:
        return 0
    room = max(room, 2 * table.room)
    table.begin = <seconds_t*> safe_realloc(
        table.begin, room, sizeof(seconds_t), b"rows of a timetable"
    )
    table.end = <seconds_t*> safe_realloc(
        table.end, room, sizeof(seconds_t), b"rows of a timetable"
    )
    table.used = <units_t*> safe_realloc(
        table.used, room, sizeof(units_t), b"rows of a timetable"
    )
    table.room = room
    return 0


cdef int timetable_copy(Timetable* table, const Timetable* source) except -1 nogil:
    # Copies the occupied times; capacity and opening hours are the same anyway.
    timetable_grow(table, source.count)
    memcpy(table.begin, source.begin, source.count * sizeof(seconds_t))
    if table.capacity == 1:
        memcpy(table.end, source.end, source.count * sizeof(seconds_t))
    else:
        memcpy(table.used, source.used, source.count * sizeof(units_t))
    table.count = source.count
    return 0


cdef inline int32_t first_end_after(const Timetable* table, seconds_t moment) noexcept nogil:
    # The first busy span that ends after the moment. Most searches concern the last few spans.
    cdef int32_t low = 0
    cdef int32_t high = table.count
    cdef int32_t middle
    while high - low > 8:
        middle = (low + high) >> 1
        if table.end[middle] > moment:
            high = middle
        else:
            low = middle + 1
    while high > low and table.end[high - 1] > moment:
        high -= 1
    return high


cdef inline int32_t step_at(const Timetable* table, seconds_t moment) noexcept nogil:
    # The last step that begins at or before the moment; -1 before the first.
    cdef int32_t low = 0
    cdef int32_t high = table.count
    cdef int32_t middle
    while low < high:
        middle = (low + high) >> 1
        if table.begin[middle] <= moment:
            low = middle + 1
        else:
            high = middle
    return low - 1


cdef seconds_t fit_exclusive(
    const Timetable* table, seconds_t earliest, seconds_t duration
) noexcept nogil:
    cdef int32_t i
    cdef seconds_t start = earliest
    for i in range(first_end_after(table, earliest), table.count):
        if start + duration <= table.begin[i]:
            return start
        start = table.end[i]
    return start


cdef seconds_t fit_shared(
    const Timetable* table, seconds_t earliest, seconds_t duration, units_t units
) noexcept nogil:
    cdef int32_t i = step_at(table, earliest)
    cdef units_t limit = table.capacity - units
    cdef seconds_t start = earliest
    if limit < 0:
        return INFINITY
    # The last step is always empty, so everything fits there.
    while i < table.count:
        if i >= 0 and table.used[i] > limit:
            # Nothing can start before this step ends.
            start = table.begin[i + 1]
        elif i + 1 >= table.count or start + duration <= table.begin[i + 1]:
            return start
        i += 1
    return start


cdef seconds_t fit_opening(
    const Timetable* table, seconds_t earliest, seconds_t duration
) noexcept nogil:
    # When opening hours allow the task to start. A span may cross the turn of the week, so the
    # preceding week is checked, too.
    cdef seconds_t local = earliest + table.shift
    cdef double week = floor(local / WEEK)
    cdef seconds_t second = local - week * WEEK
    cdef seconds_t offset, start
    cdef int32_t turn, i
    for turn in range(3):
        offset = (turn - 1) * WEEK
        for i in range(table.openings):
            start = max(second, table.opening_from[i] + offset)
            if start + duration <= table.opening_until[i] + offset:
                return earliest if start == second else week * WEEK + start - table.shift
    return INFINITY


cdef seconds_t timetable_fit_fast(
    const Timetable* table, seconds_t earliest, seconds_t duration, units_t units
) noexcept nogil:
    # The earliest start from which the units are free for the duration; infinity if there is none.
    cdef seconds_t start = earliest
    cdef seconds_t opening
    while True:
        if table.capacity == 1:
            start = fit_exclusive(table, start, duration)
        else:
            start = fit_shared(table, start, duration, units)
        if table.openings == 0 or start == INFINITY:
            return start
        opening = fit_opening(table, start, duration)
        if opening <= start or opening == INFINITY:
            return opening
        start = opening


cdef inline void widen_over_gaps(const Timetable* table, int32_t row, Span* full) noexcept nogil:
    # A gap too small for any task counts as occupied. Only for speed, so not all gaps need to be
    # found.
    cdef int32_t low = row
    cdef int32_t high = row + 1
    cdef seconds_t begin = table.begin[row]
    cdef seconds_t end = table.end[row]
    if low > 0 and begin == full.fresh_begin and table.end[low - 1] + table.shortest > begin:
        full.fresh_begin = table.end[low - 1]
    if high < table.count and end == full.fresh_end and end + table.shortest > table.begin[high]:
        full.fresh_end = table.begin[high]
    while low > 0 and row - low < GAPS_MAX and table.end[low - 1] + table.shortest > begin:
        low -= 1
        begin = table.begin[low]
    while high < table.count and high - row <= GAPS_MAX and (
        end + table.shortest > table.begin[high]
    ):
        end = table.end[high]
        high += 1
    full.begin = begin
    full.end = end


cdef int occupy_exclusive(
    Timetable* table, seconds_t begin, seconds_t end, Span* full
) except -1 nogil:
    # Rows [low, high) touch or overlap the new span and are joined with it.
    cdef int32_t low = table.count
    cdef int32_t high, gone
    while low > 0 and table.end[low - 1] >= begin:
        low -= 1
    high = low
    while high < table.count and table.begin[high] <= end:
        high += 1
    if high == low:
        timetable_grow(table, table.count + 1)
        gone = table.count - low
        memmove(&table.begin[low + 1], &table.begin[low], gone * sizeof(seconds_t))
        memmove(&table.end[low + 1], &table.end[low], gone * sizeof(seconds_t))
        table.count += 1
        table.begin[low] = begin
        table.end[low] = end
    else:
        table.begin[low] = min(table.begin[low], begin)
        table.end[low] = max(table.end[high - 1], end)
        if high > low + 1:
            gone = table.count - high
            memmove(&table.begin[low + 1], &table.begin[high], gone * sizeof(seconds_t))
            memmove(&table.end[low + 1], &table.end[high], gone * sizeof(seconds_t))
            table.count -= high - low - 1
    full.fresh_begin = begin
    full.fresh_end = end
    widen_over_gaps(table, low, full)
    return 0


cdef int32_t split_at(Timetable* table, seconds_t moment) noexcept nogil:
    # Makes a step begin at the moment, and returns its row. Requires a free row.
    cdef int32_t row = step_at(table, moment)
    cdef int32_t behind
    if row >= 0 and table.begin[row] == moment:
        return row
    behind = table.count - (row + 1)
    memmove(&table.begin[row + 2], &table.begin[row + 1], behind * sizeof(seconds_t))
    memmove(&table.used[row + 2], &table.used[row + 1], behind * sizeof(units_t))
    table.begin[row + 1] = moment
    table.used[row + 1] = table.used[row] if row >= 0 else 0
    table.count += 1
    return row + 1


cdef int occupy_shared(
    Timetable* table, seconds_t begin, seconds_t end, units_t units, Span* full
) except -1 nogil:
    cdef int32_t first, last, i
    timetable_grow(table, table.count + 2)
    first = split_at(table, begin)
    last = split_at(table, end)
    for i in range(first, last):
        table.used[i] += units
    # The longest fully occupied run that touches the new span, from its first full step on.
    full.begin = full.end = full.fresh_begin = begin
    full.fresh_end = end
    while first < last and table.used[first] < table.capacity:
        first += 1
    if first == last:
        return 0
    i = first
    while first > 0 and table.used[first - 1] >= table.capacity:
        first -= 1
    while i < table.count and table.used[i] >= table.capacity:
        i += 1
    full.begin = table.begin[first]
    full.end = table.begin[i] if i < table.count else INFINITY
    return 0


cdef int timetable_occupy_fast(
    Timetable* table, seconds_t begin, seconds_t end, units_t units, Span* full
) except -1 nogil:
    # Occupies units from begin to end, and returns the fully occupied span around them.
    if table.capacity == 1:
        return occupy_exclusive(table, begin, end, full)
    return occupy_shared(table, begin, end, units, full)


cdef class ResourceTimetable:
    """The timetable of one resource.

    `openings` are spans of the week, in order, none for always; `shift` is the number of seconds
    from a moment to the week of 1970-01-01 in the resource's own time.
    """

    cdef Timetable table
    cdef object kept

    def __cinit__(self, units_t capacity, openings=(), seconds_t shift=0.0):
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}; at least 1")
        timetable_open(&self.table, capacity)
        self.table.shift = shift
        cdef seconds_t[::1] spans
        if openings:
            import numpy as np

            self.kept = np.array(
                [begin for begin, _ in openings] + [end for _, end in openings], np.float64
            )
            spans = self.kept
            self.table.openings = len(openings)
            self.table.opening_from = &spans[0]
            self.table.opening_until = &spans[len(openings)]

    def __dealloc__(self):
        timetable_close(&self.table)

    def fit(self, seconds_t earliest, seconds_t duration, units_t units=1) -> float:
        """Returns the earliest start at which units are free for a duration; infinity if there is
        none."""
        if not duration > 0:
            raise ValueError(f"duration is {duration}; more than 0")
        if not 1 <= units <= self.table.capacity:
            raise ValueError(f"{units} units of {self.table.capacity}")
        return timetable_fit_fast(&self.table, earliest, duration, units)

    def occupy(self, seconds_t begin, seconds_t end, units_t units=1) -> tuple[float, float]:
        """Occupies units from begin to end; returns the fully occupied span around them, which may
        be empty."""
        cdef Span full
        if not begin < end:
            raise ValueError(f"from {begin} to {end}")
        if not 1 <= units <= self.table.capacity:
            raise ValueError(f"{units} units of {self.table.capacity}")
        timetable_occupy_fast(&self.table, begin, end, units, &full)
        return full.begin, full.end
